//! What a server can check without opening anything. Free of any back end, so that all refuse alike.
//!
//! Easy to get wrong: trusting a number beside an envelope. Revision and key id are read from the envelope's own header,
//! which its owner's devices check when they open it.

use confidant_chat_format::{ChatId, Digest, Entry, ItemId, List, Refused, Shelf, chain, check_append, live};
use confidant_seal::{Kid, Sealed, Suite};

use super::chats::Write;
use super::lists::{ListPut, ManifestPut};
use super::rings::RingName;
use super::{Result, StoreError, limits};

/// Header and hash of an envelope that a client sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) rev: u32,
    pub(crate) kid: Kid,
    pub(crate) hash: Digest,
}

/// Takes the header of an envelope apart. Too long: `too-large`; no envelope of suite 1: `record-refused`.
pub(crate) fn envelope(sealed: &Sealed, most: usize, what: &'static str) -> Result<Envelope> {
    sized(sealed.as_bytes(), most, what)?;
    match (sealed.suite(), sealed.rev(), sealed.kid()) {
        (Some(Suite::Aes256Gcm), Some(rev), Some(kid)) => {
            Ok(Envelope { rev, kid, hash: Digest::of(sealed.as_bytes()) })
        }
        _ => Err(Refused::RecordRefused.into()),
    }
}

pub(crate) fn sized(bytes: &[u8], most: usize, what: &'static str) -> Result<()> {
    if bytes.len() <= most { Ok(()) } else { Err(StoreError::TooLarge(what)) }
}

/// The envelope of an item, with the limit of its kind.
pub(crate) fn item_envelope(item: &ItemId, sealed: &Sealed) -> Result<Envelope> {
    match item {
        ItemId::Embed(_) => envelope(sealed, limits::EMBED_BYTES, "embed"),
        ItemId::Field(_) => envelope(sealed, limits::HEAD_BYTES, "field"),
        ItemId::Message(_) => envelope(sealed, limits::MESSAGE_BYTES, "message"),
    }
}

/// A record's new revision: more than the one that it replaces, which must be the one there.
pub(crate) fn grows(rev: u32, expected: u32, there: u32) -> Result<()> {
    if expected != there {
        Err(StoreError::Conflict { now: there })
    } else if rev <= there {
        Err(Refused::RolledBack.into())
    } else {
        Ok(())
    }
}

/// The ids of the sub-keys that a ring lists, entry by entry.
#[derive(Debug)]
pub(crate) struct Kids {
    pub(crate) kids: Vec<Kid>,
    pub(crate) subs: Vec<Vec<Kid>>,
    /// The generation of the account key when the newest entry was appended.
    pub(crate) born: u32,
    /// The generation now.
    pub(crate) generation: u32,
}

/// Which sub-key seals a record of a chat.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sub {
    Msg = 0,
    Meta = 1,
    Embed = 2,
}

impl Sub {
    pub(crate) fn of(item: &ItemId) -> Self {
        match item {
            ItemId::Embed(_) => Self::Embed,
            ItemId::Field(_) => Self::Meta,
            ItemId::Message(_) => Self::Msg,
        }
    }
}

impl Kids {
    /// Checks and adds the next entry. Not the next one: `conflict`, which names the revision that is `there`; a key that the ring has: `ring-forked`; another number of
    /// sub-keys than its kind of ring has: `key-refused`.
    pub(crate) fn append(&mut self, of: &RingName, entry: &Entry, there: u32) -> Result<()> {
        let length = u32::try_from(self.kids.len()).unwrap_or(u32::MAX);
        check_append(length, entry).map_err(|_| StoreError::Conflict { now: there })?;
        if length >= limits::RING_ENTRIES {
            return Err(StoreError::TooMany("keys"));
        }
        check_entry(of, entry)?;
        if self.kids.contains(&entry.kid) {
            return Err(Refused::RingForked.into());
        }
        self.kids.push(entry.kid);
        self.subs.push(entry.subs.clone());
        self.born = self.generation;
        Ok(())
    }

    /// Whether any entry lists this key for such records; else `key-refused`.
    pub(crate) fn lists(&self, sub: Sub, kid: Kid) -> Result<()> {
        let listed = self.subs.iter().any(|subs| Self::pick(subs, sub) == Some(kid));
        if listed { Ok(()) } else { Err(Refused::KeyRefused.into()) }
    }

    /// Whether the newest entry lists this key, and was appended under the account key of now; else `key-refused`. Every device
    /// refuses a head or manifest under another: whoever has only keys from before a rotation cannot spoil a chat.
    pub(crate) fn newest(&self, kid: Kid) -> Result<()> {
        let newest = self.subs.last().and_then(|subs| Self::pick(subs, Sub::Meta));
        if newest == Some(kid) && self.born == self.generation {
            Ok(())
        } else {
            Err(Refused::KeyRefused.into())
        }
    }

    /// An account's ring has one sub-key, `meta`; a chat's has three.
    fn pick(subs: &[Kid], sub: Sub) -> Option<Kid> {
        match (subs, sub) {
            ([meta], Sub::Meta) => Some(*meta),
            ([_, _, _], sub) => subs.get(sub as usize).copied(),
            _ => None,
        }
    }
}

/// Shape of a ring's row.
pub(crate) fn check_entry(of: &RingName, entry: &Entry) -> Result<()> {
    sized(entry.sealed.as_bytes(), limits::ENTRY_BYTES, "key")?;
    if entry.subs.len() == of.subs() && entry.n > 0 { Ok(()) } else { Err(Refused::KeyRefused.into()) }
}

/// Shape of a write, before the store is asked anything.
pub(crate) fn check_write(write: &Write) -> Result<Envelope> {
    if write.puts.len() + write.removes.len() > limits::ITEMS_A_WRITE {
        return Err(StoreError::TooMany("items in one write"));
    }
    let mut items: Vec<&ItemId> = write.puts.iter().map(|put| &put.item).chain(&write.removes).collect();
    items.sort_unstable();
    if items.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(StoreError::Malformed("an item is there twice"));
    }
    if write.expected == 0 {
        has_shelf(write.list.as_ref(), &write.chat)?;
        if write.append.is_none() {
            return Err(Refused::RingGap.into());
        }
    }
    let head = envelope(&write.head, limits::HEAD_BYTES, "head")?;
    if write.expected.checked_add(1) == Some(head.rev) {
        Ok(head)
    } else {
        Err(StoreError::Malformed("the head's revision is not the next one"))
    }
}

/// Creating and deleting a chat carry its floor; else `list-refused`.
pub(crate) fn has_shelf(list: Option<&ListPut>, chat: &ChatId) -> Result<()> {
    let shelf = Shelf::of(chat);
    let there = list.is_some_and(|list| list.floors.iter().any(|floor| floor.shelf == shelf));
    if there { Ok(()) } else { Err(Refused::ListRefused.into()) }
}

/// What the last head or manifest left: its chain and the hash of its envelope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) chain: Digest,
    pub(crate) envelope: Digest,
}

impl Link {
    /// Before the first.
    pub(crate) const NONE: Self = Self { chain: Digest::ZERO, envelope: Digest::ZERO };

    /// Whether a head or manifest with this list and chain follows: another list: `list-refused`; another chain: `forked`.
    pub(crate) fn leads_to(&self, own_live: &Digest, claimed: (&Digest, &Digest)) -> Result<()> {
        if own_live != claimed.0 {
            return Err(Refused::ListRefused.into());
        }
        if chain(&self.chain, &self.envelope, own_live) == *claimed.1 {
            Ok(())
        } else {
            Err(Refused::Forked.into())
        }
    }
}

/// Whether a chat's list is the one that its new head seals.
pub(crate) fn check_list(list: &List, before: &Link, write: &Write) -> Result<()> {
    if u32::try_from(list.len()).is_ok_and(|count| count <= limits::ITEMS) {
        before.leads_to(&live(list), (&write.live, &write.chain))
    } else {
        Err(StoreError::TooMany("items in this chat"))
    }
}

/// Shape of a manifest: the next revision, by its header.
pub(crate) fn check_manifest(put: &ManifestPut) -> Result<Envelope> {
    let manifest = envelope(&put.envelope, limits::HEAD_BYTES, "manifest")?;
    if put.expected.checked_add(1) == Some(manifest.rev) {
        Ok(manifest)
    } else {
        Err(StoreError::Malformed("the manifest's revision is not the next one"))
    }
}
