//! A chat as it is sent: whole or what changed, in parts that fit into a frame.
//!
//! ```text
//! store.chat: head, ring, trail, (id, hash, bytes) of what changed ─▶ as many items as fit ─▶ their envelopes ─▶ ChatSent
//! ```
//!
//! List and envelopes are read one after the other. If a device writes in between, the hashes tell, and it is read again.
//! Between two parts of one chat there is no going back: a chat that changes there is a `conflict`, and the device asks anew.

use confidant_chat_format::{AccountId, ChatId, Digest, ItemId, Step};
use confidant_chat_protocol::{
    ChatSent, Envelope, ItemSent, List, Removed, StepSent, TrailSent, Versions, limits,
};

use super::Inner;
use super::refusals::{Answer, conflict};
use crate::store::{ChatDelta, Have, ItemLine, RingName, StoreError};

/// How far a chat has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// The revision of the head that is being sent.
    rev: u32,
    items: usize,
    steps: usize,
}

/// Which items come with their envelopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Embeds {
    /// All but embeds, which are fetched when they are shown.
    Left,
    /// Embeds as well.
    Sent,
}

/// What there is to send.
pub(crate) enum Made {
    /// No such chat.
    Missing,
    /// It does not fit into what is left of the frame.
    NotNow,
    /// A part, its size in JSON, and where the next one begins.
    Part(Box<ChatSent>, usize, Option<At>),
}

impl Inner {
    /// The next part of a chat for a device that has `have`, in at most `left` bytes of JSON if the frame has something else
    /// already (`!is_first`).
    pub(crate) async fn part(
        &self,
        account: &AccountId,
        chat: &ChatId,
        have: &Versions,
        at: Option<At>,
        embeds: Embeds,
        (left, is_first): (usize, bool),
    ) -> Answer<Made> {
        let here = self.hub.room(account);
        for attempt in 1..=TRIES {
            // The last time, nobody of this process writes meanwhile.
            let _turn = if attempt == TRIES { Some(here.turn().await) } else { None };
            let (delta, whole) = match self.delta(account, chat, have).await {
                Ok(found) => found,
                Err(StoreError::NotFound) if at.is_none() => return Ok(Made::Missing),
                Err(StoreError::NotFound) => return Err(conflict()),
                Err(error) => return Err(error.into()),
            };
            let begin = at.unwrap_or(At { rev: delta.chat.messages_v, items: 0, steps: 0 });
            if begin.rev != delta.chat.messages_v {
                return Err(conflict());
            }
            let of = RingName::Chat(chat.clone());
            let ring = match self.open_ring(account, &of, delta.ring.clone()).await {
                Ok((ring, _)) => ring,
                Err(refused) if refused.error.status() == 404 => continue,
                Err(refused) => return Err(refused),
            };
            let trail: &[Step] = if whole && have.messages_v == 0 { &[] } else { &delta.trail.steps };
            let base = base_size(&delta, ring.len());
            let room = left.saturating_sub(base);
            let (items, steps) = (&delta.changed[begin.items..], &trail[begin.steps..]);
            let (count, mut size) = fitting(items, embeds, room);
            let takes = steps.len().min(limits::MAX_STEPS).min(room.saturating_sub(size) / STEP_SIZE);
            size += base + takes * STEP_SIZE;
            if !is_first
                && (size > left || (count, takes) == (0, 0) && !(items.is_empty() && steps.is_empty()))
            {
                return Ok(Made::NotNow);
            }
            let (count, takes) = match (count, takes) {
                // Alone in a frame, one item always fits.
                (0, 0) => (items.len().min(1), if items.is_empty() { steps.len().min(1) } else { 0 }),
                some => some,
            };
            let Some(sent) = self.envelopes(account, chat, &items[..count], embeds).await? else { continue };
            let next = At { rev: begin.rev, items: begin.items + count, steps: begin.steps + takes };
            let more = next.items < delta.changed.len() || next.steps < trail.len();
            let steps = (!trail.is_empty()).then(|| &steps[..takes]);
            let part = chat_sent(chat, &delta, (whole, more), ring, steps, sent)?;
            return Ok(Made::Part(Box::new(part), size, more.then_some(next)));
        }
        Err(conflict())
    }

    /// What the device lacks, and whether that is everything. A device that has more than there is gets everything, and says
    /// itself what that means.
    async fn delta(
        &self,
        account: &AccountId,
        chat: &ChatId,
        have: &Versions,
    ) -> Result<(ChatDelta, bool), StoreError> {
        let since = Have { messages_v: have.messages_v, draft_v: have.draft_v, trail_from: have.messages_v };
        let delta = self.store.chat(account, chat, since).await?;
        let behind = delta.chat.messages_v < have.messages_v;
        if behind || delta.gone.len() > limits::MAX_ITEMS {
            let trail_from = if behind { 0 } else { have.messages_v };
            let everything = Have { messages_v: 0, draft_v: have.draft_v, trail_from };
            return Ok((self.store.chat(account, chat, everything).await?, true));
        }
        Ok((delta, have.messages_v == 0))
    }

    /// Items with their envelopes. `None`: somebody wrote in between.
    async fn envelopes(
        &self,
        account: &AccountId,
        chat: &ChatId,
        lines: &[ItemLine],
        embeds: Embeds,
    ) -> Answer<Option<Vec<ItemSent>>> {
        let mut ahead = self.ahead(account, chat).await;
        // What was read ahead counts if it is what the store has.
        ahead.retain(|item, envelope| {
            lines.iter().any(|line| line.item == *item && line.hash == Digest::of(envelope.as_bytes()))
        });
        let wanted = lines.iter().filter(|line| is_sent(line, embeds) && !ahead.contains_key(&line.item));
        let wanted: Vec<ItemId> = wanted.map(|line| line.item.clone()).collect();
        let rows = match wanted.is_empty() {
            true => Ok(Vec::new()),
            false => self.store.items(account, chat, wanted, usize::MAX).await,
        };
        let rows = match rows {
            Err(StoreError::NotFound) => return Ok(None),
            rows => rows?,
        };
        let mut rows = rows.into_iter();
        let mut sent = Vec::with_capacity(lines.len());
        for line in lines {
            let envelope = if let Some(envelope) = ahead.remove(&line.item) {
                Some(Envelope::new(envelope)?)
            } else if is_sent(line, embeds) {
                let Some(row) = rows.next() else { return Ok(None) };
                if row.item != line.item || Digest::of(row.envelope.as_bytes()) != line.hash {
                    return Ok(None);
                }
                Some(Envelope::new(row.envelope)?)
            } else {
                None
            };
            sent.push(ItemSent { item: line.item.clone(), seq: line.seq.into(), hash: line.hash, envelope });
        }
        Ok(Some(sent))
    }
}

fn chat_sent(
    chat: &ChatId,
    delta: &ChatDelta,
    (whole, more): (bool, bool),
    ring: Vec<confidant_chat_protocol::KeyEntry>,
    steps: Option<&[Step]>,
    items: Vec<ItemSent>,
) -> Answer<ChatSent> {
    let row = &delta.chat;
    let trail = steps.map(|steps| {
        let steps = steps.iter().map(|step| StepSent { live: step.live, envelope: step.envelope });
        Ok::<_, confidant_chat_protocol::Malformed>(TrailSent {
            chain: delta.trail.chain,
            steps: List::new(steps.collect())?,
        })
    });
    let removed = if whole { &[] } else { delta.gone.as_slice() };
    let removed = removed.iter().map(|gone| Removed { item: gone.item.clone(), rev: gone.at });
    let draft = delta.draft.as_ref().and_then(|draft| draft.envelope.clone());
    Ok(ChatSent {
        chat: chat.clone(),
        versions: Versions { messages_v: row.messages_v, title_v: row.title_v, draft_v: row.draft_v },
        whole,
        more,
        ring: List::new(ring)?,
        head: Envelope::new(row.head.clone())?,
        trail: trail.transpose()?,
        items: List::new(items)?,
        removed: List::new(removed.collect())?,
        draft: draft.map(Envelope::new).transpose()?,
        created_at: row.created_at.0,
        updated_at: row.updated_at.0,
        opened_at: None,
    })
}

/// How many of the items fit into so many bytes of JSON, and how many bytes that takes.
fn fitting(lines: &[ItemLine], embeds: Embeds, room: usize) -> (usize, usize) {
    let mut size = 0;
    for (count, line) in lines.iter().enumerate() {
        let envelope = if is_sent(line, embeds) { base64(line.bytes as usize) } else { 0 };
        let next = size + ITEM_SIZE + envelope;
        if next > room {
            return (count, size);
        }
        size = next;
    }
    (lines.len(), size)
}

fn is_sent(line: &ItemLine, embeds: Embeds) -> bool {
    embeds == Embeds::Sent || !matches!(line.item, ItemId::Embed(_))
}

/// What every part of a chat has.
fn base_size(delta: &ChatDelta, ring: usize) -> usize {
    let draft = delta.draft.as_ref().and_then(|draft| draft.envelope.as_ref());
    let bytes = delta.chat.head.as_bytes().len() + draft.map_or(0, |draft| draft.as_bytes().len());
    let entries = delta.ring.iter().map(|entry| base64(entry.sealed.as_bytes().len())).sum::<usize>();
    600 + base64(bytes) + entries + ring * 200 + delta.gone.len() * 100
}

/// How many characters bytes take, at most.
pub(crate) const fn base64(bytes: usize) -> usize {
    bytes / 3 * 4 + 8
}

/// What an item takes beside its envelope, and a step of a trail: names, ids, digests.
pub(crate) const ITEM_SIZE: usize = 240;
const STEP_SIZE: usize = 130;
/// How often a chat is read again when somebody writes to it meanwhile.
const TRIES: usize = 8;
