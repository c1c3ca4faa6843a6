//! The history of a turn, where the server has none or another one: asked for, and proved as far as it can be.
//!
//! What the assistant, a tool or a summary said counts as theirs if the server's own proof comes with it, for this chat, this message and
//! these words before it. Everything else goes to the model as a quotation. Easy to get wrong: a history in parts of which one is missing. It is
//! as long as the device said with the question, or it is refused.

use std::collections::HashMap;

use confidant_chat_format::{ChatId, MessageId, Said, Transcript, TranscriptKind, adopt};
use confidant_chat_protocol::limits::MAX_ITEMS;
use confidant_chat_protocol::{ChatMessageAdded, Heard, HistoryReason, RefusedSent, SaidBy};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::proved;
use super::running::Part;
use crate::answerer::{Branch, Have, Kept, Line};
use crate::service::refusals::{Answer, unavailable};
use crate::vault::Key;

/// What the device has to be asked for, before the turn can run.
pub(super) enum Before {
    /// Nothing: this is what the server has.
    Kept(Kept),
    /// Nothing: there are no messages before it.
    Nothing,
    /// The history.
    Wanted(HistoryReason, u32),
}

/// Compares what the server has with what the device expects.
pub(super) fn compare(have: &Have, ask: &ChatMessageAdded) -> Before {
    match have {
        // The first message of a chat comes after nothing, whatever branch the server has.
        _ if ask.count == 0 => Before::Nothing,
        Have::There(kept) if kept.digest == ask.before && kept.messages == ask.count => Before::Kept(*kept),
        Have::There(kept) => Before::Wanted(HistoryReason::Other, kept.messages),
        Have::Missing => Before::Wanted(HistoryReason::Missing, 0),
        Have::Unreadable => Before::Wanted(HistoryReason::Unreadable, 0),
    }
}

/// Waits for all parts. Those of a socket that went half-way are forgotten when another begins. One that comes again, since the device cannot
/// know whether it went out, takes the place of what was heard from there on.
pub(super) async fn collect(
    parts: &mut mpsc::Receiver<Part>,
    count: u32,
    deadline: Instant,
) -> Answer<Vec<Heard>> {
    let (mut all, mut size): (Vec<Heard>, usize) = (Vec::new(), 0);
    // Where each part begins, by its first message: how many messages and bytes are before it.
    let (mut begins, mut from): (HashMap<MessageId, (usize, usize)>, _) = (HashMap::new(), None);
    loop {
        let part = timeout_at(deadline, parts.recv()).await.ok().flatten();
        let (seat, part) = part.ok_or_else(|| unavailable("the history did not come in time"))?;
        if from.replace(seat) != Some(seat) {
            all.clear();
            begins.clear();
            size = 0;
        }
        let Some(first) = part.messages.first() else { if part.more { continue } else { break } };
        if let Some((at, before)) = begins.get(&first.id).copied() {
            all.truncate(at);
            begins.retain(|_, (other, _)| *other < at);
            size = before;
        }
        begins.insert(first.id.clone(), (all.len(), size));
        size += part.messages.iter().map(|heard| heard.text.as_str().len()).sum::<usize>();
        all.extend(part.messages.into_vec());
        if all.len() > MAX_ITEMS || size > LARGEST {
            return Err(refused("the history is too long"));
        }
        if !part.more {
            break;
        }
    }
    let messages: u64 = all.iter().map(|heard| u64::from(heard.count.unwrap_or(1))).sum();
    if messages == u64::from(count) {
        Ok(all)
    } else {
        Err(refused("the history has another length than the device said"))
    }
}

/// A history, to be taken over: what is proved as what it says it is, the rest as quotations. What stands before the last summary is not
/// told any more: the device shows it as summed up. Says whether it proves the question that continues it ([`super::proved`]).
pub(super) fn prove(account_key: &Key, chat: &ChatId, heard: Vec<Heard>) -> (Branch, bool) {
    let unproved = proved::key(account_key, false);
    let (mut kinds, mut transcript, mut is_proved) = (Vec::new(), Transcript::start(), false);
    for one in &heard {
        let sums_up = one.sums_up.map(Transcript::resume);
        // Only as the first, a summary takes the place of what it sums up.
        let is_moved = one.by == SaidBy::Summary
            && !kinds.is_empty()
            && sums_up.is_some_and(|place| place != transcript);
        let said = Said {
            id: &one.id,
            kind: kind(one.by),
            text: one.text.as_str(),
            proof: one.proof.as_ref().filter(|_| !is_moved),
            sums_up,
        };
        let by = [(account_key, true), (&unproved, false)].into_iter().find_map(|(key, proves)| {
            let (kinds, next) = adopt(key, chat, transcript, [said]);
            (kinds == [said.kind]).then_some((next, proves))
        });
        match by {
            Some((next, proves)) => {
                is_proved |= proves && said.kind != TranscriptKind::User;
                kinds.push(said.kind);
                transcript = next;
            }
            None => {
                kinds.push(TranscriptKind::Quoted);
                transcript = transcript.then(TranscriptKind::Quoted, said.text);
            }
        }
    }
    let summed_up = heard.iter().rposition(|one| one.by == SaidBy::Summary).unwrap_or(0);
    let (mut before, mut after, mut lines) = (0, Transcript::start(), Vec::new());
    for (one, kind) in heard.into_iter().zip(kinds) {
        let line = Line { id: one.id, kind, text: one.text.as_str().to_owned(), before, after };
        after = match one.sums_up.filter(|_| kind == TranscriptKind::Summary) {
            Some(place) => Transcript::resume(place),
            None => after.then(kind, &line.text),
        };
        before = before.saturating_add(one.count.unwrap_or(1));
        lines.push(line);
    }
    lines.drain(..summed_up);
    (Branch { lines, transcript }, is_proved)
}

const fn kind(by: SaidBy) -> TranscriptKind {
    match by {
        SaidBy::User => TranscriptKind::User,
        SaidBy::Assistant => TranscriptKind::Assistant,
        SaidBy::Tool => TranscriptKind::Tool,
        SaidBy::Summary => TranscriptKind::Summary,
    }
}

fn refused(what: &str) -> RefusedSent {
    let mut refused: RefusedSent = confidant_chat_format::Refused::ListRefused.into();
    refused.what = confidant_chat_protocol::Text::cut(what);
    refused
}

/// Words of a history, in bytes.
const LARGEST: usize = 32 << 20;
