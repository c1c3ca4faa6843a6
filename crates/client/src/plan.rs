//! What is sent next, and what becomes of it against the chat as it is now.
//!
//! ```text
//! first of the queue ─▶ decide ─┬─ Done: it is there already           (an answer was lost)
//!                               ├─ Lose: another device was first      (a copy that the person sees)
//!                               └─ Do:   one write, with what follows for the same chat
//! ```
//!
//! Whoever is stored first wins; nothing is merged and nothing is lost without a copy. Easy to get wrong: deleting a
//! message that others answer. Every device refuses a message whose parent is not there, so the answers move up in the
//! same write.

use std::collections::{BTreeMap, BTreeSet};

use confidant_chat_format::{FieldName, ItemId, Message, MessageId, Pending as Awaited, Role, Shared, Text};
use zeroize::Zeroizing;

use crate::beside;
use crate::queue::{Act, Answer, Base, LossReason, Pending, To, words};
use crate::room::Room;
use crate::state::Piece;

/// What becomes of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Do,
    Done,
    Lose(LossReason),
}

/// What a write changes in a chat.
#[derive(Default)]
pub(crate) struct Change {
    pub(crate) puts: Vec<(ItemId, Zeroizing<Vec<u8>>)>,
    pub(crate) removes: Vec<ItemId>,
    pub(crate) leaf: Option<MessageId>,
    /// Replies that the head waits for from now on.
    pub(crate) awaits: Vec<Awaited>,
    /// Replies that it waits for no longer.
    pub(crate) settles: Vec<MessageId>,
    /// Revisions that this device has seen, where what is there now may be older: the new ones are greater.
    pub(crate) seen: BTreeMap<ItemId, u32>,
}

confidant_display::debug_without_content!(Change { puts: puts.len(), removes: removes.len() });

/// What becomes of an operation on a chat; `None`: there is no such chat any more, or not yet.
pub(crate) fn decide(act: &Act, room: Option<&Room>) -> Decision {
    let Some(room) = room else {
        return match act {
            Act::Create => Decision::Do,
            Act::Delete { .. }
            | Act::Leaf { .. }
            | Act::DeleteChat
            | Act::Draft { body: None, .. }
            | Act::Retry { .. }
            | Act::Reply { .. }
            | Act::Gave { .. }
            | Act::GiveUp { .. }
            | Act::Made { .. } => Decision::Done,
            _ => Decision::Lose(LossReason::ChatDeleted),
        };
    };
    match act {
        Act::Create | Act::Data { .. } | Act::Suggest { .. } => Decision::Done,
        Act::Append { id, .. } if room.items.contains_key(&ItemId::Message(id.clone())) => Decision::Done,
        Act::Embed { id, .. } if room.items.contains_key(&ItemId::Embed(id.clone())) => Decision::Done,
        Act::Append { .. } | Act::Embed { .. } | Act::DeleteChat => Decision::Do,
        Act::Edit { id, body, base } => match room.message(id) {
            Some(message) => against(Some(&message.body), Some(body), *base),
            None => Decision::Lose(LossReason::Deleted),
        },
        Act::Delete { id, base } => match room.message(id) {
            Some(message) => against(Some(&message.body), None, *base),
            None => Decision::Done,
        },
        Act::Field { name, body, base } => against(room.field(name), Some(body), *base),
        Act::Leaf { id } if room.message(id).is_none() || room.head.leaf.as_ref() == Some(id) => {
            Decision::Done
        }
        Act::Leaf { .. } => Decision::Do,
        Act::Draft { body, base } => {
            against(room.draft.as_ref().map(|draft| draft.body.as_str()), body.as_deref(), *base)
        }
        Act::Retry { message, wanted, .. } => {
            let is_there = room.message(message).is_some() && awaited(room, &wanted.reply).is_none();
            if is_there { Decision::Do } else { Decision::Done }
        }
        Act::Reply { id, .. } => {
            // Stored by another device, or given up, or what it answers was deleted: it goes without a word.
            let is_new = !room.items.contains_key(&ItemId::Message(id.clone()));
            let waits = awaited(room, id).is_some_and(|awaited| room.message(&awaited.parent).is_some());
            if is_new && waits { Decision::Do } else { Decision::Done }
        }
        Act::Gave { id, shared } => match room.message(id) {
            Some(answer) if !shared.iter().all(|one| answer.shared.contains(one)) => Decision::Do,
            // It is noted, or the answer went, and what it notes with it.
            _ => Decision::Done,
        },
        Act::GiveUp { reply } if awaited(room, reply).is_none() => Decision::Done,
        Act::GiveUp { .. } => Decision::Do,
        Act::Made { fields } => {
            let is_there = |(name, body): &(FieldName, String)| room.field(name) == Some(body.as_str());
            if fields.iter().all(is_there) { Decision::Done } else { Decision::Do }
        }
    }
}

/// The reply that the head waits for under this id.
fn awaited<'a>(room: &'a Room, reply: &MessageId) -> Option<&'a Awaited> {
    room.head.pending.iter().find(|awaited| awaited.reply == *reply)
}

/// The suggestions for new chats with these in front, as many as are kept; `None` if they are all there.
pub(crate) fn suggestions(there: Option<&Piece>, texts: &[String]) -> Option<Vec<String>> {
    let there = there.and_then(|piece| piece.body.as_deref());
    let there: Vec<String> = there.and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
    if texts.iter().all(|text| there.contains(text)) {
        return None;
    }
    let mut pool: Vec<String> = Vec::new();
    for text in texts.iter().chain(&there) {
        if !pool.contains(text) {
            pool.push(text.clone());
        }
    }
    pool.truncate(POOL);
    Some(pool)
}

/// What becomes of a piece of account data.
pub(crate) fn decide_data(there: Option<&Piece>, body: Option<&str>, base: Base) -> Decision {
    against(there.and_then(|piece| piece.body.as_deref()), body, base)
}

fn against(now: Option<&str>, mine: Option<&str>, base: Base) -> Decision {
    let is_base = match base {
        Base::Nothing => now.is_none(),
        Base::Words(seen) => now.is_some_and(|now| words(now) == seen),
        // What it was based on is gone from the queue without a trace: nobody knows what the person saw.
        Base::Op(_) => false,
    };
    match () {
        () if now == mine => Decision::Done,
        () if is_base => Decision::Do,
        () => Decision::Lose(LossReason::Changed),
    }
}

/// The first operation, with what follows it for the same chat and can go in the same write.
pub(crate) fn batch(ops: &[Pending], room: Option<&Room>, most: usize) -> Vec<Pending> {
    let Some(first) = ops.first() else { return Vec::new() };
    let mut batch = vec![first.clone()];
    if !is_addition(&first.act) {
        return batch;
    }
    let mut items: BTreeSet<ItemId> = item_of(&first.act).into_iter().collect();
    let mut size = size_of(&first.act);
    for op in &ops[1..] {
        // A field of a chat that is being created is set against nothing.
        let is_new =
            room.is_none() && matches!(op.act, Act::Append { .. } | Act::Embed { .. } | Act::Field { .. });
        let can = op.chat == first.chat && is_addition(&op.act) && op.act != Act::Create;
        size += size_of(&op.act);
        if batch.len() >= most || !can || size > LARGEST || !(is_new || decide(&op.act, room) == Decision::Do)
        {
            break;
        }
        if !item_of(&op.act).is_none_or(|item| items.insert(item)) {
            break;
        }
        batch.push(op.clone());
    }
    batch
}

fn is_addition(act: &Act) -> bool {
    matches!(act, Act::Create | Act::Append { .. } | Act::Embed { .. } | Act::Field { .. })
}

fn item_of(act: &Act) -> Option<ItemId> {
    match act {
        Act::Append { id, .. } => Some(ItemId::Message(id.clone())),
        Act::Embed { id, .. } => Some(ItemId::Embed(id.clone())),
        Act::Field { name, .. } => Some(ItemId::Field(name.clone())),
        _ => None,
    }
}

fn size_of(act: &Act) -> usize {
    match act {
        Act::Append { note, .. } => note.body.len(),
        Act::Embed { body, .. } | Act::Field { body, .. } => body.len(),
        _ => 0,
    }
}

/// What these operations change, one after the other.
pub(crate) fn change(ops: &[Pending], room: Option<&Room>) -> Change {
    let mut change = Change { leaf: room.and_then(|room| room.head.leaf.clone()), ..Change::default() };
    for op in ops {
        match &op.act {
            Act::Append { id, note, to } => {
                let message = Message {
                    v: 1,
                    role: note.role,
                    parent: parent(&change, room, to),
                    created_at: note.created_at,
                    body: note.body.clone(),
                    model: note.model.clone(),
                    reason: None,
                    refs: note.refs.clone(),
                    proof: None,
                    shared: note.shared.clone(),
                };
                change.puts.push((ItemId::Message(id.clone()), message.to_json()));
                change.leaf = Some(id.clone());
                change.awaits.extend(note.ask.as_ref().map(|wanted| Awaited {
                    turn: wanted.turn.clone(),
                    parent: id.clone(),
                    reply: wanted.reply.clone(),
                }));
            }
            Act::Retry { message, wanted, instead } => {
                let (turn, reply) = (wanted.turn.clone(), wanted.reply.clone());
                change.awaits.push(Awaited { turn, parent: message.clone(), reply });
                change.settles.extend(instead.iter().cloned());
                // Shown without its older answers, until the new one is there.
                change.leaf = Some(message.clone());
            }
            Act::Reply { id, answer } => {
                if let Some(room) = room {
                    reply(&mut change, room, id, answer);
                }
            }
            Act::Gave { id, shared } => {
                if let Some(answer) = room.and_then(|room| room.message(id)) {
                    let mut answer = answer.clone();
                    let missing = shared.iter().filter(|one| !answer.shared.contains(one)).cloned();
                    let missing: Vec<Shared> = missing.collect();
                    answer.shared.extend(missing);
                    change.puts.push((ItemId::Message(id.clone()), answer.to_json()));
                }
            }
            Act::GiveUp { reply } => change.settles.push(reply.clone()),
            Act::Made { fields } => {
                for (name, body) in fields {
                    change.puts.push((ItemId::Field(name.clone()), text(body)));
                }
            }
            Act::Edit { id, body, .. } => {
                if let Some(message) = room.and_then(|room| room.message(id)) {
                    let message = Message { body: body.clone(), ..message.clone() };
                    change.puts.push((ItemId::Message(id.clone()), message.to_json()));
                }
                if let Some(room) = room {
                    changes_beside(&mut change, room, id);
                }
            }
            Act::Delete { id, .. } => {
                if let Some(room) = room {
                    remove(&mut change, room, id);
                }
            }
            Act::Field { name, body, .. } => {
                change.puts.push((ItemId::Field(name.clone()), text(body)));
            }
            Act::Embed { id, body } => change.puts.push((ItemId::Embed(id.clone()), text(body))),
            Act::Leaf { id } => change.leaf = Some(id.clone()),
            Act::Create | Act::DeleteChat | Act::Draft { .. } | Act::Data { .. } | Act::Suggest { .. } => {}
        }
    }
    change
}

pub(crate) fn text(body: &str) -> Zeroizing<Vec<u8>> {
    Text { v: 1, body: body.to_owned() }.to_json()
}

/// The message that a new one answers: one that is there, or is put in the same write.
fn parent(change: &Change, room: Option<&Room>, to: &To) -> Option<MessageId> {
    let To::After(path) = to else { return change.leaf.clone() };
    let is_there = |id: &&MessageId| {
        let item = ItemId::Message((*id).clone());
        room.is_some_and(|room| room.items.contains_key(&item)) || change.puts.iter().any(|put| put.0 == item)
    };
    match path.iter().find(is_there) {
        Some(id) => Some(id.clone()),
        // The first message of a branch of its own.
        None if path.is_empty() => None,
        None => change.leaf.clone(),
    }
}

/// Puts an answer in the place that waits for it. It is shown, if the person still looks at what it answers.
fn reply(change: &mut Change, room: &Room, id: &MessageId, answer: &Answer) {
    let Some(awaited) = awaited(room, id) else { return };
    let message = Message {
        v: 1,
        role: Role::Assistant,
        parent: Some(awaited.parent.clone()),
        created_at: answer.created_at,
        body: answer.body.clone(),
        model: answer.model.clone(),
        reason: answer.reason.clone(),
        refs: Vec::new(),
        proof: answer.proof,
        shared: answer.shared.clone(),
    };
    change.puts.push((ItemId::Message(id.clone()), message.to_json()));
    let beside = beside::messages(room, &awaited.parent, id, answer).into_iter();
    change.puts.extend(beside.map(|(id, message)| (ItemId::Message(id), message.to_json())));
    change.settles.push(id.clone());
    if change.leaf.as_ref() == Some(&awaited.parent) {
        change.leaf = Some(id.clone());
    }
    let is_title = |item: &ItemId| matches!(item, ItemId::Field(name) if name.as_str() == TITLE);
    if !room.items.keys().any(is_title) {
        let fields = answer.fields.iter().map(|(name, body)| (ItemId::Field(name.clone()), text(body)));
        change.puts.extend(fields);
    }
}

/// A message that changes: no summary tells of it any more, and the answer that a tool said it for is another branch to the server.
fn changes_beside(change: &mut Change, room: &Room, id: &MessageId) {
    let summaries = beside::summaries_of(room, id).into_iter();
    change.removes.extend(summaries.filter(|one| *one != id).map(|one| ItemId::Message(one.clone())));
    if let Some(owner) = beside::owner(room, id)
        && let Some(answer) = room.message(owner)
    {
        change.puts.push((ItemId::Message(owner.clone()), answer.to_json()));
    }
}

/// Removes a message, what only it shows and what stands beside it; its answers move up, and those that are waited for are not any more.
pub(crate) fn remove(change: &mut Change, room: &Room, id: &MessageId) {
    let Some(gone) = room.message(id) else { return };
    change.removes.push(ItemId::Message(id.clone()));
    changes_beside(change, room, id);
    let tools = if gone.role == Role::Assistant { beside::tools_of(room, id) } else { Vec::new() };
    change.removes.extend(tools.into_iter().map(|tool| ItemId::Message(tool.clone())));
    let unwanted = room.head.pending.iter().filter(|awaited| awaited.parent == *id);
    change.settles.extend(unwanted.map(|awaited| awaited.reply.clone()));
    let others = || room.messages().filter(|(other, ..)| *other != id);
    for embed in &gone.refs {
        let item = ItemId::Embed(embed.clone());
        let is_shown = others().any(|(_, _, message)| message.refs.contains(embed));
        if !is_shown && room.items.contains_key(&item) && !change.removes.contains(&item) {
            change.removes.push(item);
        }
    }
    let removes: BTreeSet<ItemId> = change.removes.iter().cloned().collect();
    let goes = |id: &MessageId| removes.contains(&ItemId::Message(id.clone()));
    let stays = |from: Option<&MessageId>| {
        let mut at = from;
        while let Some(id) = at.filter(|id| goes(id)) {
            at = room.message(id).and_then(|message| message.parent.as_ref());
        }
        at.cloned()
    };
    let children =
        others().filter(|(other, _, message)| !goes(other) && message.parent.as_ref().is_some_and(goes));
    for (child, _, message) in children {
        let message = Message { parent: stays(message.parent.as_ref()), ..message.clone() };
        let item = ItemId::Message(child.clone());
        change.puts.retain(|(put, _)| *put != item);
        change.puts.push((item, message.to_json()));
    }
    if change.leaf.as_ref().is_some_and(goes) {
        let others = || others().filter(|(id, _, message)| !goes(id) && !beside::is_beside(message));
        let newest = || others().max_by_key(|(id, _, message)| (message.created_at, *id)).map(|(id, ..)| id);
        change.leaf = stays(change.leaf.as_ref()).or_else(|| newest().cloned());
    }
}

/// The field that has a chat's title.
pub(crate) const TITLE: &str = "title";
/// Suggestions for new chats that are kept.
const POOL: usize = 30;
/// What the texts of one write may take, in bytes.
pub(crate) const LARGEST: usize = 512 * 1024;
