//! Where a conversation stands for its client, and its history where the log has another.
//!
//! ```text
//! claim.before = the log's head ───────────────────────────▶ accept
//!       else, with the history: adopted + accepted in one write ─▶ accept
//!       else: the turn ends as `history_…`, and nothing is answered without memory
//! ```
//!
//! Only for chats whose permanent form their owner's devices keep: nobody else may say what was said. Easy to get wrong: a log
//! that does not open. It is of no use to anybody any more, so a history takes its place as well.

use std::collections::HashSet;

use futures_util::future::BoxFuture;

use super::after::resume;
use super::beside;
use super::request::{History, Inbound, Said, SaidBy};
use super::safety::SafetyRecord;
use crate::about::Note;
use crate::clock::Millis;
use crate::error::Error;
use crate::head::{HeadState, Lacks};
use crate::ledger::audit::Action;
use crate::ledger::checkpoint::Checkpoint;
use crate::ledger::entry::{Entry, Reply, ReplyFrom, Taken};
use crate::ledger::erased;
use crate::ledger::session::{self, Held, Session, Wrote};
use crate::ledger::web_cache;

impl Session {
    /// Where the conversation stands for its client, to be asked before a turn. Hands out nothing that was said.
    pub fn head(&self) -> BoxFuture<'_, Result<HeadState, Error>> {
        Box::pin(async move {
            match session::open(self).await {
                Ok(Some((log, _))) => {
                    Ok(log.checkpoint().head().map_or(HeadState::Missing, HeadState::Known))
                }
                Ok(None) => Ok(HeadState::Missing),
                Err(Error::Tampered(tampering)) => Ok(HeadState::Unreadable(tampering.name())),
                Err(error) => Err(error),
            }
        })
    }

    /// Replaces what was said by what the client has, in one write. Only for chats that devices keep; `Busy` while a turn runs.
    /// Where a turn follows at once, [`TurnRequest::history`](super::TurnRequest::history) does the same in the write that
    /// accepts it, wherever it is run.
    pub fn adopt(&self, history: History) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            only_chats(self)?;
            let mut held = self.lock().await?;
            let entry = adopted(&history, self.inner.ledger.now())?;
            loop {
                let open = match held.fresh().await {
                    Ok(log) => log.is_some_and(|log| log.checkpoint().open_exchange().is_some()),
                    Err(Error::Tampered(_)) => {
                        make_way(self, &mut held).await?;
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                if open {
                    if !resume::take_over(self, &mut held).await? {
                        return Err(Error::Busy);
                    }
                    resume::settle(self, &mut held).await?;
                    continue;
                }
                let owner = held.owner();
                let note = self.record(Action::SessionRecorded).counting(history.said.len() as u64);
                if held.write(vec![entry.clone()], owner, note).await? == Wrote::Done {
                    break;
                }
            }
            let is_new = held.is_new();
            drop(held);
            self.inner.ledger.store.tidy().await?;
            if is_new { web_cache::keep_newest(self).await } else { Ok(()) }
        })
    }

    /// How harmful the conversation has been, for whoever keeps that longer than this log; `None` if nobody here knows. What a worker alone
    /// knows, since the log is in its memory, it said with the end of the turn; that is told once.
    pub fn safety(&self) -> BoxFuture<'_, Result<Option<SafetyRecord>, Error>> {
        Box::pin(async move {
            let here = session::open(self).await?.map(|(log, _)| safety_of(log.checkpoint()));
            let there = self.inner.gateway.get().and_then(|gateway| gateway.take_score(&self.scope));
            Ok(match (here, there) {
                (Some(here), Some(there)) => Some(here.merged(there)),
                (here, there) => here.or(there),
            })
        })
    }
}

impl History {
    /// Without its oldest messages, where there are more than a log takes. Where it stands is what its client said all the same: no prompt has room
    /// for so much, and a chat that has become long is answered like any other.
    #[must_use]
    pub fn newest(mut self) -> Self {
        let mut bytes = 0;
        let fits = |one: &&Said| {
            bytes += one.text.len();
            bytes <= MOST_BYTES
        };
        let kept = self.said.iter().rev().take(MOST_MESSAGES).take_while(fits).count();
        self.said.drain(..self.said.len() - kept);
        self
    }
}

/// What a log knows of harm.
pub(super) fn safety_of(log: &Checkpoint) -> SafetyRecord {
    let about = log.about();
    SafetyRecord {
        harm: *log.harm(),
        flagged_for_review: about.flagged_for_review,
        terminated: about.terminated,
    }
}

/// Looks at the log before a turn that says where the conversation stands: one that does not open makes way for what the turn
/// brings along, or the turn ends.
pub(super) async fn look(session: &Session, held: &mut Held<'_>, inbound: &Inbound) -> Result<(), Error> {
    let request = &inbound.request;
    if request.claim.is_none() && request.history.is_none() {
        return Ok(());
    }
    only_chats(session)?;
    match held.log().await {
        Ok(_) => Ok(()),
        Err(Error::Tampered(_)) if brings_all(inbound) => make_way(session, held).await,
        Err(Error::Tampered(_)) => {
            session.inner.ledger.counters.history_asked.add();
            Err(Error::History(Lacks::Unreadable))
        }
        Err(error) => Err(error),
    }
}

/// What must be written with the acceptance of a turn so that it is answered with the client's history; nothing if the log has it.
pub(super) fn needed(
    session: &Session,
    log: Option<&Checkpoint>,
    inbound: &Inbound,
) -> Result<Option<Entry>, Error> {
    let Some(claim) = inbound.request.claim else { return Ok(None) };
    let stands = log.and_then(Checkpoint::head);
    let is_blank = || log.is_none_or(|log| log.all().all(|one| one.request_id == inbound.request_id));
    let counters = &session.inner.ledger.counters;
    if stands == Some(claim.head()) {
        counters.history_known.add();
        return Ok(None);
    }
    if claim.count == 0 && stands.is_none() && is_blank() {
        return Ok(None);
    }
    if !brings_all(inbound) {
        counters.history_asked.add();
        return Err(Error::History(if stands.is_some() { Lacks::Differs } else { Lacks::Missing }));
    }
    let nothing = || History { said: Vec::new(), head: claim.head() };
    let history = inbound.request.history.clone().unwrap_or_else(nothing);
    adopted(&history, session.inner.ledger.now()).map(Some)
}

/// What is known of harm from outside the log, for the log, where that knows less.
pub(super) fn noted_safety(session: &Session, log: Option<&Checkpoint>, inbound: &Inbound) -> Option<Entry> {
    let given = inbound.request.safety.filter(|_| session.is_web())?;
    let known = log.map(safety_of).unwrap_or_default();
    let merged = known.merged(given);
    let note = Note {
        flagged_for_review: merged.flagged_for_review && !known.flagged_for_review,
        terminated: merged.terminated && !known.terminated,
        ..Note::default()
    };
    let harm = Some(merged.harm).filter(|harm| *harm != known.harm);
    let (request_id, at) = (inbound.request_id.clone(), session.inner.ledger.now());
    (harm.is_some() || !note.is_empty()).then(|| Entry::Noted { request_id, at, note: Box::new(note), harm })
}

/// Whether a turn has all of the history that it claims: where nothing was said before, that is nothing.
fn brings_all(inbound: &Inbound) -> bool {
    let (claim, history) = (inbound.request.claim, inbound.request.history.as_ref());
    match (claim, history) {
        (Some(claim), Some(history)) => history.head == claim.head(),
        (Some(claim), None) => claim.count == 0,
        (None, _) => false,
    }
}

/// Removes a log that does not open: its key first, like that of one that is over.
async fn make_way(session: &Session, held: &mut Held<'_>) -> Result<(), Error> {
    tracing::warn!(scope.tag = %session.tag(), "a chat's log could not be opened; its client's history takes its place");
    erased::remove(session).await?;
    held.cool();
    Ok(())
}

fn only_chats(session: &Session) -> Result<(), Error> {
    if session.is_web() {
        return Ok(());
    }
    Err(invalid(
        "a history can replace that of a chat only whose owner's devices keep it",
        "send messages one by one",
    ))
}

/// A history as the log has it.
fn adopted(history: &History, at: Millis) -> Result<Entry, Error> {
    let History { said, head } = history;
    let bytes: usize = said.iter().map(|one| one.text.len()).sum();
    if said.len() > MOST_MESSAGES || bytes > MOST_BYTES {
        return Err(invalid(
            "the history is too long",
            "send its newest messages, and a summary of the others",
        ));
    }
    let mut names = HashSet::new();
    let is_name = |id: &str| !id.is_empty() && id.len() <= 128 && id.chars().all(|c| c.is_ascii_graphic());
    if !said.iter().all(|one| is_name(&one.id) && names.insert(one.id.as_str())) {
        return Err(invalid(
            "the messages of the history have no valid names",
            "give each one a name of its own",
        ));
    }
    Ok(Entry::Adopted { at, said: exchanges(said), head: Some(*head) })
}

/// Each message of the person with what was said after it.
fn exchanges(said: &[Said]) -> Vec<Taken> {
    let mut taken: Vec<Taken> = Vec::new();
    for one in said {
        let from = match one.kind {
            SaidBy::User => {
                taken.push(begun(one, one.text.clone()));
                continue;
            }
            SaidBy::Assistant => ReplyFrom::Ai,
            SaidBy::Tool => ReplyFrom::Tool,
            SaidBy::Summary => ReplyFrom::Summary,
            SaidBy::Quoted => ReplyFrom::Quoted,
        };
        if taken.is_empty() {
            taken.push(begun(one, String::new()));
        }
        let name = match from {
            ReplyFrom::Ai => "",
            ReplyFrom::Tool => beside::tool_of(&one.text).unwrap_or("tool"),
            ReplyFrom::Summary => "summary",
            ReplyFrom::Quoted => "quoted",
        };
        let reply = Reply { from, ..Reply::ai(one.text.clone(), None, name.to_owned()) };
        taken.last_mut().into_iter().for_each(|last| last.replies.push(reply.clone()));
    }
    taken
}

fn begun(one: &Said, content: String) -> Taken {
    Taken { request_id: one.id.clone(), at: one.at, content, replies: Vec::new(), stand: one.stand }
}

fn invalid(what: &str, hint: &str) -> Error {
    Error::Invalid { what: what.to_owned(), hint: hint.to_owned() }
}

/// As much as is looked at in a turn, and some.
const MOST_MESSAGES: usize = 10_000;
const MOST_BYTES: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{Digest, Head};

    fn said(kind: SaidBy, id: &str) -> Said {
        Said { id: id.to_owned(), at: Millis(1), kind, text: format!("{id}!"), stand: None }
    }

    #[test]
    fn what_was_said_after_a_message_belongs_to_it() {
        let branch = [
            said(SaidBy::Summary, "m0"),
            said(SaidBy::User, "m1"),
            said(SaidBy::Tool, "m2"),
            said(SaidBy::Assistant, "m3"),
            said(SaidBy::User, "m4"),
            said(SaidBy::User, "m5"),
            said(SaidBy::Quoted, "m6"),
        ];
        let taken = exchanges(&branch);
        let told: Vec<(&str, &str, Vec<ReplyFrom>)> = taken
            .iter()
            .map(|one| {
                let from = one.replies.iter().map(|reply| reply.from).collect();
                (one.request_id.as_str(), one.content.as_str(), from)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("m0", "", vec![ReplyFrom::Summary]),
                ("m1", "m1!", vec![ReplyFrom::Tool, ReplyFrom::Ai]),
                ("m4", "m4!", vec![]),
                ("m5", "m5!", vec![ReplyFrom::Quoted]),
            ]
        );
    }

    #[test]
    fn of_a_history_that_is_too_long_the_newest_messages_are_taken() {
        let head = Head { count: 9, digest: Digest::from_bytes([1; 32]) };
        let third = "x".repeat(MOST_BYTES / 3);
        let named = |n: usize| format!("m{n}");
        let long = |n| Said { text: third.clone(), ..said(SaidBy::User, &named(n)) };
        let newest = |said: Vec<Said>| {
            let history = History { said, head }.newest();
            assert!(history.head == head && adopted(&history, Millis(1)).is_ok());
            history.said.into_iter().map(|one| one.id).collect::<Vec<_>>()
        };
        assert_eq!(newest((0..5).map(long).collect()), ["m2", "m3", "m4"]);
        let many: Vec<Said> = (0..MOST_MESSAGES + 2).map(|n| said(SaidBy::User, &named(n))).collect();
        assert_eq!(newest(many), (2..MOST_MESSAGES + 2).map(named).collect::<Vec<_>>());
        assert_eq!(newest(vec![said(SaidBy::User, "m0")]), ["m0"], "what fits stays whole");
    }

    #[test]
    fn a_history_that_is_too_long_or_names_a_message_twice_is_refused() {
        let head = Head { count: 2, digest: Digest::from_bytes([1; 32]) };
        let twice = vec![said(SaidBy::User, "m1"), said(SaidBy::Assistant, "m1")];
        let long = vec![Said { text: "x".repeat(MOST_BYTES + 1), ..said(SaidBy::User, "m1") }];
        let odd = vec![said(SaidBy::User, "a b")];
        for said in [twice, long, odd] {
            let refused = adopted(&History { said, head }, Millis(1)).err().unwrap();
            assert_eq!(refused.code(), "invalid_request");
        }
    }
}
