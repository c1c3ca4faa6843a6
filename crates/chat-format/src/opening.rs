//! What a device checks before it shows anything: the server is not believed.
//!
//! ```text
//! account key ─▶ ring of the account ─▶ manifest ─▶ mailbox key ─▶ 16 floors ─▶ each chat: ring, head, list, records
//! ```
//!
//! Pure functions over what the server sent and what the device remembers. Each refusal has the name of the first check
//! that fails, in this order. Leaves to callers where memory is kept, and whether the person says "send mine again".
//! Easy to get wrong: showing a part of what was refused. Nothing comes out of here unless all of it holds.
//!
//! A device that remembers nothing can be shown an earlier whole state of the account; only memory helps against that.

use std::collections::{BTreeMap, BTreeSet};

use confidant_seal::{Kid, Sealed};

use crate::bytes::{Digest, PublicKey};
use crate::error::Refused;
use crate::head::{Head, List, Mark, Trail};
use crate::ids::{AccountId, ChatId, ItemId, MessageId};
use crate::mailbox::BoxKey;
use crate::manifest::{Floor, Manifest};
use crate::record::{Message, Place, Shelf, Text, open_record};
use crate::ring::{AccountKey, Entry, Held, Ring, RingOf};

/// What the server sent about an account.
#[derive(Debug, Clone)]
pub struct SentAccount {
    /// Rows of the account's own ring.
    pub ring: Vec<Entry>,
    /// Rows of the mailbox's ring.
    pub box_ring: Vec<Entry>,
    /// The public key under which the server seals replies.
    pub box_pub: PublicKey,
    /// The manifest.
    pub manifest: Sealed,
    /// How it follows from what the device remembers.
    pub trail: Trail,
    /// The floors, shelf 0 first.
    pub floors: Vec<Sealed>,
}

/// What a device remembers of an account. A new device remembers nothing; a paired one, what the old device told it.
#[derive(Debug, Clone, Default)]
pub struct SeenAccount {
    /// The newest generation of the account key.
    pub generation: u32,
    /// The newest manifest.
    pub manifest: Option<Mark>,
}

/// An account that passed every check.
#[derive(Debug)]
pub struct Account {
    id: AccountId,
    ak: AccountKey,
    ring: Ring,
    boxes: Vec<BoxKey>,
    manifest: Manifest,
    mark: Mark,
    floors: BTreeMap<ChatId, Mark>,
}

impl Account {
    /// Checks what the server sent, in the order of the format, and stops at the first refusal.
    pub fn open(
        id: &AccountId,
        ak: &AccountKey,
        sent: &SentAccount,
        seen: &SeenAccount,
    ) -> Result<Self, Refused> {
        if ak.generation() < seen.generation {
            return Err(Refused::KeyRefused);
        }
        let ring = Ring::open(ak, id, RingOf::Account, &sent.ring)?;
        let (manifest, mark) = open_manifest(id, ak, &ring, sent, seen)?;
        let boxes = open_boxes(id, ak, &manifest, sent)?;
        let floors = open_floors(id, &ring, &manifest, &sent.floors)?;
        Ok(Self { id: id.clone(), ak: ak.clone(), ring, boxes, manifest, mark, floors })
    }

    /// Whether this device's chats are all there: every chat with a floor was sent, else `withheld`; every chat that was
    /// sent has a floor, else `list-refused`: it was deleted, and somebody put it back.
    pub fn check_chats<'a>(&self, sent: impl IntoIterator<Item = &'a ChatId>) -> Result<(), Refused> {
        let sent: BTreeSet<&ChatId> = sent.into_iter().collect();
        if self.floors.keys().any(|chat| !sent.contains(chat)) {
            return Err(Refused::Withheld);
        }
        if sent.into_iter().all(|chat| self.floors.contains_key(chat)) {
            Ok(())
        } else {
            Err(Refused::ListRefused)
        }
    }

    /// What to remember from now on.
    pub fn seen(&self) -> SeenAccount {
        SeenAccount { generation: self.ak.generation(), manifest: Some(self.mark) }
    }

    /// Whose it is.
    pub fn id(&self) -> &AccountId {
        &self.id
    }

    /// The account key.
    pub fn key(&self) -> &AccountKey {
        &self.ak
    }

    /// The account's own ring, which seals its data.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The mailbox's keys, the newest last.
    pub fn boxes(&self) -> &[BoxKey] {
        &self.boxes
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The manifest's revision and envelope.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Every chat, and a head that it has reached.
    pub fn floors(&self) -> &BTreeMap<ChatId, Mark> {
        &self.floors
    }
}

/// What the server sent about a chat.
#[derive(Debug, Clone)]
pub struct SentChat {
    /// Rows of the chat's ring.
    pub ring: Vec<Entry>,
    /// The head.
    pub head: Sealed,
    /// How it follows from the head that the device remembers, or else from the one in the floor.
    pub trail: Trail,
    /// Every item and the hash of its envelope.
    pub list: Vec<(ItemId, Digest)>,
}

/// What a device remembers of a chat.
#[derive(Debug, Clone, Default)]
pub struct SeenChat {
    /// The newest head.
    pub head: Option<Mark>,
    /// Number and id of the newest key.
    pub key: Option<(u32, Kid)>,
    /// The newest revision of each item.
    pub revs: BTreeMap<ItemId, u32>,
}

/// A chat whose head and list passed every check; its items are checked as they come.
#[derive(Debug)]
pub struct Chat {
    account: AccountId,
    id: ChatId,
    ring: Ring,
    head: Head,
    mark: Mark,
    list: List,
    seen: SeenChat,
}

/// An item of a chat, opened and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A message.
    Message(Message),
    /// An embed or a field.
    Text(Text),
}

impl Chat {
    /// Checks what the server sent, in the order of the format. `None` is `withheld`; a chat without a floor is
    /// `list-refused`.
    pub fn open(
        account: &Account,
        id: &ChatId,
        sent: Option<&SentChat>,
        seen: &SeenChat,
    ) -> Result<Self, Refused> {
        let sent = sent.ok_or(Refused::Withheld)?;
        // Deleted, and put back.
        let floor = account.floors.get(id).copied().ok_or(Refused::ListRefused)?;
        let ring = Ring::open(&account.ak, &account.id, RingOf::Chat(id), &sent.ring)?;
        let (head, mark) = open_head(account, id, &ring, sent, &floor, seen)?;
        let mut list = List::new();
        for (item, envelope) in &sent.list {
            if list.insert(item.clone(), *envelope).is_some() {
                return Err(Refused::ListRefused);
            }
        }
        head.check_list(&list)?;
        Ok(Self { account: account.id.clone(), id: id.clone(), ring, head, mark, list, seen: seen.clone() })
    }

    /// Opens one item. Not in the list: `list-refused`. Another envelope than the list's, or one that does not open or is
    /// not the JSON of its kind: `record-refused`. Older than what this device has seen: `rolled-back`. A message whose
    /// parent is not in the list: `parent-missing`.
    pub fn item(&self, id: &ItemId, sealed: &Sealed) -> Result<(u32, Item), Refused> {
        let listed = self.list.get(id).ok_or(Refused::ListRefused)?;
        if Digest::of(sealed.as_bytes()) != *listed {
            return Err(Refused::RecordRefused);
        }
        let opened = open_record(&self.ring, &self.account, &Place::Item(&self.id, id), sealed)?;
        let item = match id {
            ItemId::Message(_) => Item::Message(Message::from_json(&opened.json)?),
            ItemId::Embed(_) | ItemId::Field(_) => Item::Text(Text::from_json(&opened.json)?),
        };
        if self.seen.revs.get(id).is_some_and(|seen| opened.rev < *seen) {
            return Err(Refused::RolledBack);
        }
        if let Item::Message(Message { parent: Some(parent), .. }) = &item
            && !self.list.contains_key(&ItemId::Message(parent.clone()))
        {
            return Err(Refused::ParentMissing);
        }
        Ok((opened.rev, item))
    }

    /// Opens every item, and checks that every message leads to a first one. An item that was not sent: `withheld`.
    pub fn items(&self, sent: &BTreeMap<ItemId, Sealed>) -> Result<BTreeMap<ItemId, (u32, Item)>, Refused> {
        let mut items = BTreeMap::new();
        for id in self.list.keys() {
            let sealed = sent.get(id).ok_or(Refused::Withheld)?;
            items.insert(id.clone(), self.item(id, sealed)?);
        }
        check_roots(items.keys(), |id| match items.get(&ItemId::Message(id.clone())) {
            Some((_, Item::Message(message))) => message.parent.clone(),
            _ => None,
        })?;
        Ok(items)
    }

    /// What to remember from now on, with the items that were opened.
    pub fn seen(&self, items: &BTreeMap<ItemId, (u32, Item)>) -> SeenChat {
        let newest = self.ring.newest();
        SeenChat {
            head: Some(self.mark),
            key: Some((newest.n(), newest.key().kid())),
            revs: items.iter().map(|(id, (rev, _))| (id.clone(), *rev)).collect(),
        }
    }

    /// Which chat.
    pub fn id(&self) -> &ChatId {
        &self.id
    }

    /// Its keys.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Its head.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The head's revision and envelope.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Its list.
    pub fn list(&self) -> &List {
        &self.list
    }
}

fn open_manifest(
    id: &AccountId,
    ak: &AccountKey,
    ring: &Ring,
    sent: &SentAccount,
    seen: &SeenAccount,
) -> Result<(Manifest, Mark), Refused> {
    // A key that is not in the ring: the server keeps back the entry that the manifest is sealed under.
    let kid = sent.manifest.kid().ok_or(Refused::RecordRefused)?;
    if ring.find(crate::ring::Sub::Meta, kid).is_none() {
        return Err(Refused::RingForked);
    }
    let opened = open_record(ring, id, &Place::Manifest, &sent.manifest)?;
    let manifest = Manifest::from_json(&opened.json)?;
    let mark = Mark { rev: opened.rev, envelope: Digest::of(sent.manifest.as_bytes()) };
    let live = Manifest::live(&manifest.floors);
    sent.trail.check(seen.manifest.as_ref(), &mark, &manifest.chain, &live)?;
    if manifest.g != ak.generation() {
        return Err(Refused::KeyRefused);
    }
    // Sealed under the newest key, which this generation made: a lost device has older ones, and a server could keep the
    // newest entry back.
    let newest = ring.writer().map(Held::n);
    if newest == Some(manifest.uk) && newest == Some(opened.held.n()) {
        Ok((manifest, mark))
    } else {
        Err(Refused::RingForked)
    }
}

fn open_boxes(
    id: &AccountId,
    ak: &AccountKey,
    manifest: &Manifest,
    sent: &SentAccount,
) -> Result<Vec<BoxKey>, Refused> {
    let ring = Ring::open(ak, id, RingOf::Box, &sent.box_ring)?;
    if ring.writer().map(Held::n) != Some(manifest.box_n) {
        return Err(Refused::RingForked);
    }
    let boxes: Vec<BoxKey> = ring.iter().map(BoxKey::of).collect();
    let ours = boxes.last().map(BoxKey::public_key);
    if ours == Some(manifest.box_pub) && sent.box_pub == manifest.box_pub {
        Ok(boxes)
    } else {
        Err(Refused::BoxRefused)
    }
}

fn open_floors(
    id: &AccountId,
    ring: &Ring,
    manifest: &Manifest,
    sent: &[Sealed],
) -> Result<BTreeMap<ChatId, Mark>, Refused> {
    if sent.len() != manifest.floors.len() {
        return Err(Refused::ListRefused);
    }
    let mut floors = BTreeMap::new();
    for ((shelf, sealed), listed) in Shelf::all().zip(sent).zip(&manifest.floors) {
        if Digest::of(sealed.as_bytes()) != *listed {
            return Err(Refused::ListRefused);
        }
        let opened = open_record(ring, id, &Place::Floor(shelf), sealed).map_err(|_| Refused::ListRefused)?;
        let floor = Floor::from_json(shelf, &opened.json).map_err(|_| Refused::ListRefused)?;
        floors.extend(floor.chats);
    }
    Ok(floors)
}

fn open_head(
    account: &Account,
    id: &ChatId,
    ring: &Ring,
    sent: &SentChat,
    floor: &Mark,
    seen: &SeenChat,
) -> Result<(Head, Mark), Refused> {
    let kid = sent.head.kid().ok_or(Refused::RecordRefused)?;
    if ring.find(crate::ring::Sub::Meta, kid).is_none() {
        return Err(Refused::RingForked);
    }
    let opened = open_record(ring, &account.id, &Place::Head(id), &sent.head)?;
    let head = Head::from_json(&opened.json)?;
    let mark = Mark { rev: opened.rev, envelope: Digest::of(sent.head.as_bytes()) };
    if mark.rev < floor.rev {
        return Err(Refused::RolledBack);
    }
    let from = seen.head.as_ref().unwrap_or(floor);
    sent.trail.check(Some(from), &mark, &head.chain, &head.live)?;
    sent.trail.passes(from, floor)?;
    // Written since the floor, so in this generation: no honest writer used an older key, a lost device has no other.
    if mark.rev > floor.rev && opened.held.born() != account.ak.generation() {
        return Err(Refused::KeyRefused);
    }
    let newest = ring.newest();
    let named = head.key == newest.n() && head.kid == newest.key().kid() && opened.held.n() == head.key;
    let kept = seen.key.is_none_or(|(n, kid)| ring.get(n).is_some_and(|held| held.key().kid() == kid));
    if named && kept { Ok((head, mark)) } else { Err(Refused::RingForked) }
}

/// A message that answers itself, however long the circle, has no first one: `parent-missing`. `parent` says what a message
/// answers.
pub fn check_roots<'a>(
    items: impl Iterator<Item = &'a ItemId>,
    parent: impl Fn(&MessageId) -> Option<MessageId>,
) -> Result<(), Refused> {
    let mut rooted = BTreeSet::new();
    for id in items {
        let ItemId::Message(id) = id else { continue };
        let mut path = BTreeSet::new();
        let mut at = Some(id.clone());
        while let Some(id) = at.filter(|id| !rooted.contains(id)) {
            at = parent(&id);
            if !path.insert(id) {
                return Err(Refused::ParentMissing);
            }
        }
        rooted.append(&mut path);
    }
    Ok(())
}
