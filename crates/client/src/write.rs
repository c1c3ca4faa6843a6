//! Seals what is written: items, the head that lists them, floors and manifest.
//!
//! ```text
//! Change ─▶ items under the chat's newest key ─▶ list ─▶ live, chain ─▶ head ─▶ [floor ─▶ manifest]
//! ```
//!
//! Nothing here is sent or kept: each function gives the request and what this device has once it was stored. Easy to get
//! wrong: the newest key of a chat may be of an older generation; then the write brings a new one.

use std::collections::BTreeMap;

use confidant_chat_format::{
    Account, AccountKey, ChatId, DeviceId, Digest, Entry, Floor, Head, Item, Manifest, Mark, Pending, Place,
    Refused, RingOf, Shelf, chain, live, seal_record,
};
use confidant_chat_protocol::{
    DeleteChat, EncryptedChatMetadata, Envelope, FloorPut, HeadPut, KeyEntry, List, ManifestPut, Put,
    UpdateManifest,
};
use confidant_seal::{Key, Sealed};

use crate::error::Error;
use crate::plan::Change;
use crate::room::{Room, Slot, item_of};
use crate::state::{Bin, Book, Keys};

/// Who writes, and against what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scribe<'a> {
    pub(crate) account: &'a Account,
    pub(crate) book: &'a Book,
    pub(crate) device: &'a DeviceId,
    pub(crate) now: u64,
}

/// A write, and what this device has once it was stored.
pub(crate) struct Built {
    pub(crate) write: EncryptedChatMetadata,
    pub(crate) after: Room,
    /// The account, if floor and manifest are written as well.
    pub(crate) book: Option<Book>,
}

confidant_display::debug_without_content!(Built { after });

impl Scribe<'_> {
    fn ak(&self) -> &AccountKey {
        self.account.key()
    }

    /// A write to a chat; `None` creates it.
    pub(crate) fn write(&self, chat: &ChatId, room: Option<&Room>, change: &Change) -> Result<Built, Error> {
        let (keys, append) = self.keys(chat, room);
        let ring = keys.ring(self.ak(), self.account.id(), RingOf::Chat(chat))?;
        let held = ring.writer().ok_or(Refused::KeyRefused)?;
        let mut items = room.map(|room| room.items.clone()).unwrap_or_default();
        let mut puts = Vec::new();
        for (item, json) in &change.puts {
            let expected = room.and_then(|room| room.items.get(item)).map_or(0, |slot| slot.rev);
            let seen = change.seen.get(item).copied().unwrap_or(0);
            let rev = expected.max(seen).checked_add(1).ok_or(Error::TooLarge)?;
            let sealed = seal_record(held, self.account.id(), &Place::Item(chat, item), rev, json);
            let slot = Slot {
                hash: Digest::of(sealed.as_bytes()),
                rev,
                sealed: Some(sealed.clone()),
                item: Some(item_of(item, json)?),
            };
            items.insert(item.clone(), slot);
            puts.push(Put::new(item.clone(), expected, Envelope::new(sealed)?)?);
        }
        let mut gone = room.map(|room| room.gone.clone()).unwrap_or_default();
        for item in &change.removes {
            items.remove(item);
            gone.insert(item.clone());
        }
        let before = room.map_or(NOTHING, |room| room.mark);
        let list = items.iter().map(|(item, slot)| (item.clone(), slot.hash)).collect();
        let live = live(&list);
        let chain = chain(&room.map_or(Digest::ZERO, |room| room.head.chain), &before.envelope, &live);
        let head = Head {
            v: 1,
            key: held.n(),
            kid: held.key().kid(),
            count: u32::try_from(list.len()).map_err(|_| Error::TooLarge)?,
            live,
            chain,
            leaf: change.leaf.clone(),
            pending: pending(room, change),
            at: self.now,
            device: self.device.clone(),
        };
        let rev = before.rev.checked_add(1).ok_or(Error::TooLarge)?;
        let sealed_head = seal_record(held, self.account.id(), &Place::Head(chat), rev, &head.to_json());
        let mark = Mark { rev, envelope: Digest::of(sealed_head.as_bytes()) };
        let (floor, manifest, book) = match room {
            Some(_) => (None, None, None),
            None => {
                let (mut floors, manifest, book) = self.list(&[(chat, Some(mark))])?;
                (floors.pop(), Some(manifest), Some(book))
            }
        };
        let write = EncryptedChatMetadata {
            chat: chat.clone(),
            expected: before.rev,
            ring: append,
            head: HeadPut { envelope: Envelope::new(sealed_head.clone())?, live, chain },
            puts: List::new(puts)?,
            removes: List::new(change.removes.clone())?,
            floor,
            manifest,
        };
        let after = Room {
            id: chat.clone(),
            keys,
            ring: ring.clone(),
            head,
            mark,
            sealed_head,
            items,
            gone,
            title_v: room.map_or(0, |room| room.title_v),
            draft_v: room.map_or(0, |room| room.draft_v),
            draft: room.and_then(|room| room.draft.clone()),
            created_at: room.map_or(self.now, |room| room.created_at),
            updated_at: self.now,
        };
        Ok(Built { write, after, book })
    }

    /// The chat's keys for a write, and the new one if there has to be one.
    fn keys(&self, chat: &ChatId, room: Option<&Room>) -> (Keys, Option<KeyEntry>) {
        let (mut keys, is_current) = match room {
            // The ring may have been opened under an older account key.
            Some(room) => {
                let born = room.ring.newest().born();
                (room.keys.clone(), born == self.ak().generation())
            }
            None => (Keys::none(), false),
        };
        if is_current {
            return (keys, None);
        }
        let (key, n) = (Key::random(), keys.count() + 1);
        let born = self.ak().generation();
        let entry = Entry::seal(self.ak(), self.account.id(), RingOf::Chat(chat), n, &key, born);
        keys.push(key, born);
        (keys, KeyEntry::try_from(entry).ok())
    }

    /// Floors with these heads, and the manifest: for each chat the head it has now, or none if it is gone.
    pub(crate) fn list(
        &self,
        heads: &[(&ChatId, Option<Mark>)],
    ) -> Result<(Vec<FloorPut>, ManifestPut, Book), Error> {
        let mut marks: BTreeMap<ChatId, Mark> = self.account.floors().clone();
        for (chat, mark) in heads {
            match mark {
                Some(mark) => drop(marks.insert((*chat).clone(), *mark)),
                None => drop(marks.remove(*chat)),
            }
        }
        let held = self.account.ring().writer().ok_or(Refused::KeyRefused)?;
        let mut book = self.book.clone();
        let mut floors = Vec::new();
        for shelf in Shelf::all().filter(|shelf| heads.iter().any(|(chat, _)| Shelf::of(chat) == *shelf)) {
            let here = marks.iter().filter(|(chat, _)| Shelf::of(chat) == shelf);
            let chats = here.map(|(chat, mark)| (chat.clone(), *mark)).collect();
            let slot = book.floors.get_mut(shelf.index()).ok_or(Error::Damaged)?;
            let expected = slot.sealed().rev().unwrap_or(0);
            let json = Floor { v: 1, chats }.to_json();
            let sealed =
                seal_record(held, self.account.id(), &Place::Floor(shelf), expected.saturating_add(1), &json);
            *slot = Bin::of(&sealed);
            floors.push(FloorPut { shelf, expected, envelope: Envelope::new(sealed)? });
        }
        let manifest = self.account.manifest();
        let before = (self.account.mark(), manifest.chain);
        let head = seal_manifest(
            &book,
            before,
            Manifest { at: self.now, device: self.device.clone(), ..manifest.clone() },
            |rev, json| seal_record(held, self.account.id(), &Place::Manifest, rev, json),
        )?;
        book.manifest = Bin::of(head.envelope.sealed());
        Ok((floors, ManifestPut { head, ring: None, mailbox: None }, book))
    }

    pub(crate) fn update_floors(
        &self,
        heads: &[(&ChatId, Option<Mark>)],
    ) -> Result<(UpdateManifest, Book), Error> {
        let (floors, manifest, book) = self.list(heads)?;
        Ok((UpdateManifest { floors: List::new(floors)?, manifest }, book))
    }

    /// Deletes a chat whose head has this revision.
    pub(crate) fn delete_chat(&self, chat: &ChatId, expected: u32) -> Result<(DeleteChat, Book), Error> {
        let (mut floors, manifest, book) = self.list(&[(chat, None)])?;
        let floor = floors.pop().ok_or(Error::Damaged)?;
        Ok((DeleteChat { chat: chat.clone(), expected, floor, manifest }, book))
    }
}

/// The manifest over the floors of `book`, after the one with this mark and chain.
pub(crate) fn seal_manifest(
    book: &Book,
    (before, chain_before): (Mark, Digest),
    manifest: Manifest,
    seal: impl FnOnce(u32, &[u8]) -> Sealed,
) -> Result<HeadPut, Error> {
    let hashes: Vec<Digest> = book.floors.iter().map(|floor| Digest::of(&floor.0)).collect();
    let floors: [Digest; 16] = hashes.try_into().map_err(|_| Error::Damaged)?;
    let live = Manifest::live(&floors);
    let chain = chain(&chain_before, &before.envelope, &live);
    let rev = before.rev.checked_add(1).ok_or(Error::TooLarge)?;
    let sealed = seal(rev, &Manifest { floors, chain, ..manifest }.to_json());
    Ok(HeadPut { envelope: Envelope::new(sealed)?, live, chain })
}

/// Replies that the head waits for after this change.
fn pending(room: Option<&Room>, change: &Change) -> Vec<Pending> {
    let before = room.map(|room| room.head.pending.as_slice()).unwrap_or_default();
    let still = before.iter().filter(|pending| !change.settles.contains(&pending.reply));
    still.chain(&change.awaits).cloned().collect()
}

/// What stands before the first head.
pub(crate) const NOTHING: Mark = Mark { rev: 0, envelope: Digest::ZERO };

/// Fills JSON up with spaces to a multiple of 1 KiB, so that its length tells little.
pub(crate) fn padded(mut json: zeroize::Zeroizing<Vec<u8>>) -> zeroize::Zeroizing<Vec<u8>> {
    let full = json.len().div_ceil(1024) * 1024;
    json.resize(full, b' ');
    json
}

/// The text of an embed or field that was opened.
pub(crate) fn text_of(item: Option<&Item>) -> Option<&str> {
    match item {
        Some(Item::Text(text)) => Some(&text.body),
        _ => None,
    }
}
