//! What a write will do, worked out from what is there, before anything of it is written. Free of any back end, so that all
//! decide alike: a back end reads what is there, asks here, and writes what it is told, in one transaction.
//!
//! ```text
//! read: account, chat, ring, items, lists ──▶ plan_write, plan_list ──▶ a refusal, or the rows to write
//! ```
//!
//! Easy to get wrong: what is read must be what is there when the plan is written. The account is locked, or nobody else
//! writes, from the reading to the commit.

use std::collections::{BTreeMap, BTreeSet};

use confidant_chat_format::{Digest, Entry, FieldName, ItemId, List, Manifest, Refused, Shelf, Step, Trail};
use confidant_seal::Kid;

use super::chats::{DeleteChat, Put, Write};
use super::checks::{
    Envelope, Kids, Link, Sub, check_list, check_manifest, envelope, grows, has_shelf, item_envelope,
};
use super::lists::ListPut;
use super::rings::{RingEntry, RingName};
use super::{Millis, Result, StoreError, limits};

/// What every write looks at of its account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    pub(crate) rev: u32,
    pub(crate) epoch: u32,
    pub(crate) generation: u32,
    pub(crate) frozen_until: Option<u64>,
}

impl Standing {
    /// Of an account that was just made.
    pub(crate) const NEW: Self = Self { rev: 1, epoch: 1, generation: 1, frozen_until: None };

    /// Whether a rotation is under way.
    pub(crate) fn is_frozen(&self, now: Millis) -> bool {
        self.frozen_until.is_some_and(|until| now.0 < until)
    }

    /// `conflict` while a rotation is under way; it names the revision that is `there`.
    pub(crate) fn not_frozen(&self, now: Millis, there: u32) -> Result<()> {
        if self.is_frozen(now) { Err(StoreError::Conflict { now: there }) } else { Ok(()) }
    }

    /// `conflict` unless the rotation of this epoch is under way.
    pub(crate) fn in_rotation(&self, epoch: u32, now: Millis) -> Result<()> {
        if self.is_frozen(now) && self.epoch == epoch {
            Ok(())
        } else {
            Err(StoreError::Conflict { now: self.rev })
        }
    }
}

/// What every write looks at of its chat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChatState {
    pub(crate) rev: u32,
    pub(crate) draft_v: u32,
    pub(crate) count: u32,
    pub(crate) gone: u32,
    pub(crate) last_seq: u32,
    pub(crate) link: Link,
}

impl ChatState {
    /// Before the first write.
    pub(crate) const NONE: Self =
        Self { rev: 0, draft_v: 0, count: 0, gone: 0, last_seq: 0, link: Link::NONE };
}

/// What a write looks at of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemState {
    pub(crate) hash: Digest,
    pub(crate) rev: u32,
    pub(crate) seq: u32,
}

/// How many chats there are; asked before one is created.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    /// Whether the new id was deleted.
    pub(crate) is_deleted: bool,
    pub(crate) chats: u32,
    pub(crate) deleted: u32,
}

/// What a write finds.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) account: Standing,
    pub(crate) chat: Option<ChatState>,
    pub(crate) room: Room,
    pub(crate) ring: Kids,
    pub(crate) items: BTreeMap<ItemId, ItemState>,
    /// Those among the write's items that were removed before.
    pub(crate) removed: BTreeSet<ItemId>,
    /// Needed where the write has a list.
    pub(crate) list: Option<SeenList>,
}

/// What a write of floors and manifest finds.
#[derive(Debug)]
pub(crate) struct SeenList {
    /// The account's ring, with what the same write appends.
    pub(crate) ring: Kids,
    /// The manifest's revision, chain and hash; 0 before the first.
    pub(crate) manifest: (u32, Link),
    /// Revision and hash of each floor that is there.
    pub(crate) floors: BTreeMap<Shelf, (u32, Digest)>,
}

/// What a write writes.
#[derive(Debug)]
pub(crate) struct WritePlan {
    pub(crate) head: Envelope,
    /// The chat after it, but for the link, which the head makes.
    pub(crate) chat: ChatState,
    /// In the order of the write's puts.
    pub(crate) puts: Vec<PutPlan>,
    pub(crate) touches_title: bool,
    pub(crate) list: Option<ListPlan>,
}

/// An item as it will be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PutPlan {
    pub(crate) hash: Digest,
    pub(crate) rev: u32,
    pub(crate) seq: u32,
    pub(crate) is_new: bool,
}

/// Floors and manifest as they will be.
#[derive(Debug)]
pub(crate) struct ListPlan {
    pub(crate) manifest: Envelope,
    pub(crate) live: Digest,
    /// In the order of the list's floors.
    pub(crate) floors: Vec<Envelope>,
}

/// Decides a write whose shape was checked, which gave its `head`.
pub(crate) fn plan_write(write: &Write, head: Envelope, seen: Seen) -> Result<WritePlan> {
    let Seen { account, chat, room, mut ring, mut items, removed, list } = seen;
    let mut chat = begin(write, &account, chat, room)?;
    if let Some(entry) = &write.append {
        account.not_frozen(write.now, chat.rev)?;
        ring.append(&RingName::Chat(write.chat.clone()), entry, chat.rev)?;
    }
    ring.newest(head.kid)?;
    let mut puts = Vec::with_capacity(write.puts.len());
    for put in &write.puts {
        let there = items.get(&put.item).copied();
        let plan = plan_put(put, &mut chat, there, removed.contains(&put.item), &ring)?;
        items.insert(put.item.clone(), ItemState { hash: plan.hash, rev: plan.rev, seq: plan.seq });
        puts.push(plan);
    }
    for item in &write.removes {
        items.remove(item).ok_or(StoreError::Conflict { now: chat.rev })?;
        chat.count = chat.count.saturating_sub(1);
        chat.gone += 1;
    }
    let all: List = items.into_iter().map(|(item, state)| (item, state.hash)).collect();
    check_list(&all, &chat.link, write)?;
    let list = match (&write.list, list) {
        (Some(put), Some(seen)) => Some(plan_list(put, &seen)?),
        (Some(_), None) => return Err(Refused::ListRefused.into()),
        (None, _) => None,
    };
    Ok(WritePlan { head, chat, puts, touches_title: touches_title(write)?, list })
}

/// The chat that is written to.
fn begin(write: &Write, account: &Standing, chat: Option<ChatState>, room: Room) -> Result<ChatState> {
    match chat {
        Some(chat) if chat.rev == write.expected => Ok(chat),
        Some(chat) => Err(StoreError::Conflict { now: chat.rev }),
        None if write.expected > 0 => Err(StoreError::NotFound),
        None => {
            account.not_frozen(write.now, 0)?;
            if room.is_deleted {
                return Err(StoreError::Conflict { now: 0 });
            }
            if room.chats >= limits::CHATS || room.chats.saturating_add(room.deleted) >= limits::CHATS_EVER {
                return Err(StoreError::TooMany("chats"));
            }
            Ok(ChatState::NONE)
        }
    }
}

fn plan_put(
    put: &Put,
    chat: &mut ChatState,
    there: Option<ItemState>,
    is_removed: bool,
    ring: &Kids,
) -> Result<PutPlan> {
    let sealed = item_envelope(&put.item, &put.envelope)?;
    ring.lists(Sub::of(&put.item), sealed.kid)?;
    let conflict = StoreError::Conflict { now: chat.rev };
    let rev = there.map_or(0, |there| there.rev);
    if put.expected != rev {
        return Err(conflict);
    }
    grows(sealed.rev, put.expected, rev)?;
    let seq = match there {
        Some(there) => there.seq,
        None if is_removed => return Err(conflict),
        None if chat.count.saturating_add(chat.gone) >= limits::ITEMS_EVER => {
            return Err(StoreError::TooMany("items in this chat, deleted ones included"));
        }
        None => {
            chat.count += 1;
            chat.last_seq += 1;
            chat.last_seq
        }
    };
    Ok(PutPlan { hash: sealed.hash, rev: sealed.rev, seq, is_new: there.is_none() })
}

fn touches_title(write: &Write) -> Result<bool> {
    let title = ItemId::Field(FieldName::parse("title")?);
    Ok(write.puts.iter().any(|put| put.item == title) || write.removes.contains(&title))
}

/// Decides floors and manifest.
pub(crate) fn plan_list(list: &ListPut, seen: &SeenList) -> Result<ListPlan> {
    let manifest = check_manifest(&list.manifest)?;
    seen.ring.newest(manifest.kid)?;
    let mut shelves: Vec<Shelf> = list.floors.iter().map(|floor| floor.shelf).collect();
    shelves.sort_unstable();
    if shelves.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(StoreError::Malformed("a floor is there twice"));
    }
    // The manifest decides who was first; its revision is what a conflict names.
    let (rev, link) = seen.manifest;
    grows(manifest.rev, list.manifest.expected, rev)?;
    let mut hashes: BTreeMap<Shelf, Digest> =
        seen.floors.iter().map(|(shelf, (_, hash))| (*shelf, *hash)).collect();
    let mut floors = Vec::with_capacity(list.floors.len());
    for floor in &list.floors {
        let sealed = envelope(&floor.envelope, limits::FLOOR_BYTES, "floor")?;
        seen.ring.lists(Sub::Meta, sealed.kid)?;
        let there = seen.floors.get(&floor.shelf).map_or(0, |(rev, _)| *rev);
        if floor.expected != there {
            return Err(StoreError::Conflict { now: rev });
        }
        grows(sealed.rev, floor.expected, there)?;
        hashes.insert(floor.shelf, sealed.hash);
        floors.push(sealed);
    }
    let hashes: Vec<Digest> = hashes.into_values().collect();
    let hashes: [Digest; 16] =
        hashes.try_into().map_err(|_| StoreError::Malformed("there are sixteen floors"))?;
    let live = Manifest::live(&hashes);
    link.leads_to(&live, (&list.manifest.live, &list.manifest.chain))?;
    Ok(ListPlan { manifest, live, floors })
}

/// Decides a deletion. The list is decided by itself.
pub(crate) fn plan_delete(delete: &DeleteChat, account: &Standing, chat: Option<ChatState>) -> Result<()> {
    has_shelf(Some(&delete.list), &delete.chat)?;
    let chat = chat.ok_or(StoreError::NotFound)?;
    account.not_frozen(delete.now, chat.rev)?;
    if chat.rev == delete.expected { Ok(()) } else { Err(StoreError::Conflict { now: chat.rev }) }
}

/// A new account has a key of its own and one of its mailbox; so has a rotation.
pub(crate) fn own_and_box(rings: &[RingEntry; 2], otherwise: &'static str) -> Result<()> {
    let [first, second] = rings;
    if (&first.of, &second.of) == (&RingName::Account, &RingName::Box) {
        Ok(())
    } else {
        Err(StoreError::Malformed(otherwise))
    }
}

/// The keys of the account's ring, of an account that is put back with these entries: its own and its mailbox's, each 1, 2, …
/// without a gap, else `ring-gap`.
pub(crate) fn whole_rings(rings: &[RingEntry], generation: u32) -> Result<Kids> {
    if rings.iter().any(|row| matches!(row.of, RingName::Chat(_))) {
        return Err(StoreError::Malformed("a chat's key comes with the chat"));
    }
    let [own, letters] = [RingName::Account, RingName::Box].map(|of| {
        let mut ring = kids(Vec::new(), generation)?;
        for (n, row) in (1..).zip(rings.iter().filter(|row| row.of == of)) {
            if row.entry.n != n {
                return Err(StoreError::from(Refused::RingGap));
            }
            ring.append(&of, &row.entry, 0)?;
        }
        if ring.kids.is_empty() { Err(Refused::RingGap.into()) } else { Ok(ring) }
    });
    letters.and(own)
}

/// The entries among `sent` that take the place of those that are there. One that is missing, or has other keys: `conflict`.
/// What is not there is not put there.
pub(crate) fn successors<'a>(there: &[Entry], sent: &[&'a Entry]) -> Result<Vec<&'a Entry>> {
    let next = |old: &Entry| {
        let same = |new: &&&'a Entry| (new.n, new.kid, &new.subs) == (old.n, old.kid, &old.subs);
        sent.iter().find(same).copied().ok_or(StoreError::Conflict { now: 0 })
    };
    there.iter().map(next).collect()
}

/// The ids of a ring's keys, from its rows in order: number, key, sub-keys, generation. Numbers that are not 1, 2, … are
/// `ring-gap`.
pub(crate) fn kids(rows: Vec<(u32, Kid, Vec<Kid>, u32)>, generation: u32) -> Result<Kids> {
    if !rows.iter().map(|row| row.0).eq((1..).take(rows.len())) {
        return Err(Refused::RingGap.into());
    }
    let born = rows.last().map_or(0, |row| row.3);
    let (kids, subs) = rows.into_iter().map(|(_, kid, subs, _)| (kid, subs)).unzip();
    Ok(Kids { kids, subs, born, generation })
}

/// Steps from one revision on: the chain at it, then what each later write left. From 0 on, or from one that is not there:
/// nothing.
pub(crate) fn trail(mut steps: Vec<(u32, Digest, Step)>, from: u32) -> Trail {
    match steps.first() {
        Some((rev, chain, _)) if from > 0 && *rev == from => {
            Trail { chain: *chain, steps: steps.drain(1..).map(|(.., step)| step).collect() }
        }
        _ => Trail::NONE,
    }
}
