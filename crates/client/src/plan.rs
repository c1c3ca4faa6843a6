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

use confidant_chat_format::{ItemId, Message, MessageId, Text};
use zeroize::Zeroizing;

use crate::queue::{Act, Base, Pending, To, Why, words};
use crate::room::Room;
use crate::state::Piece;

/// What becomes of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Do,
    Done,
    Lose(Why),
}

/// What a write changes in a chat.
#[derive(Default)]
pub(crate) struct Change {
    pub(crate) puts: Vec<(ItemId, Zeroizing<Vec<u8>>)>,
    pub(crate) removes: Vec<ItemId>,
    pub(crate) leaf: Option<MessageId>,
    /// Revisions that this device has seen, where what is there now may be older: the new ones are greater.
    pub(crate) seen: BTreeMap<ItemId, u32>,
}

confidant_display::debug_without_content!(Change { puts: puts.len(), removes: removes.len() });

/// What becomes of an operation on a chat; `None`: there is no such chat any more, or not yet.
pub(crate) fn decide(act: &Act, room: Option<&Room>) -> Decision {
    let Some(room) = room else {
        return match act {
            Act::Create => Decision::Do,
            Act::Delete { .. } | Act::Leaf { .. } | Act::DeleteChat | Act::Draft { body: None, .. } => {
                Decision::Done
            }
            _ => Decision::Lose(Why::ChatDeleted),
        };
    };
    match act {
        Act::Create | Act::Data { .. } => Decision::Done,
        Act::Append { id, .. } if room.items.contains_key(&ItemId::Message(id.clone())) => Decision::Done,
        Act::Embed { id, .. } if room.items.contains_key(&ItemId::Embed(id.clone())) => Decision::Done,
        Act::Append { .. } | Act::Embed { .. } | Act::DeleteChat => Decision::Do,
        Act::Edit { id, body, base } => match room.message(id) {
            Some(message) => against(Some(&message.body), Some(body), *base),
            None => Decision::Lose(Why::Deleted),
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
    }
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
        () => Decision::Lose(Why::Changed),
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
                    refs: note.refs.clone(),
                    proof: None,
                    shared: Vec::new(),
                };
                change.puts.push((ItemId::Message(id.clone()), message.to_json()));
                change.leaf = Some(id.clone());
            }
            Act::Edit { id, body, .. } => {
                if let Some(message) = room.and_then(|room| room.message(id)) {
                    let message = Message { body: body.clone(), ..message.clone() };
                    change.puts.push((ItemId::Message(id.clone()), message.to_json()));
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
            Act::Create | Act::DeleteChat | Act::Draft { .. } | Act::Data { .. } => {}
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

/// Removes a message and what only it shows; its answers move up.
pub(crate) fn remove(change: &mut Change, room: &Room, id: &MessageId) {
    let Some(gone) = room.message(id) else { return };
    change.removes.push(ItemId::Message(id.clone()));
    let others = || room.messages().filter(|(other, ..)| *other != id);
    for embed in &gone.refs {
        let item = ItemId::Embed(embed.clone());
        let is_shown = others().any(|(_, _, message)| message.refs.contains(embed));
        if !is_shown && room.items.contains_key(&item) && !change.removes.contains(&item) {
            change.removes.push(item);
        }
    }
    for (child, _, message) in others().filter(|(_, _, message)| message.parent.as_ref() == Some(id)) {
        let message = Message { parent: gone.parent.clone(), ..message.clone() };
        change.puts.push((ItemId::Message(child.clone()), message.to_json()));
    }
    if change.leaf.as_ref() == Some(id) {
        let newest = || others().max_by_key(|(id, _, message)| (message.created_at, *id)).map(|(id, ..)| id);
        change.leaf = gone.parent.clone().or_else(|| newest().cloned());
    }
}

/// What the texts of one write may take, in bytes.
pub(crate) const LARGEST: usize = 512 * 1024;
