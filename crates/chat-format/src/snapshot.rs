//! Snapshots: one branch of a chat as it is now, sealed once more, for whoever has the link.
//!
//! ```text
//! S       = 32 random bytes, in the link after `#` and nowhere else in clear      snap = a new id
//! list    = seal(sub(S, "meta"),  (snapshot, "", snap, list, ""), 1, {v, at, until, title?, count, live, leaf})
//! message = seal(sub(S, "msg"),   (snapshot, "", snap, message id, content), 1, JSON of a message)
//! embed   = seal(sub(S, "embed"), (snapshot, "", snap, embed id, content), 1, JSON {v, body})
//! kept    = seal(CK → meta, (snapshot, account, chat, snap, key), 1, S)            for the owner's own devices
//! ```
//!
//! Nothing in it leads back to the chat: the key and all ids are new, and there is no account in it. A snapshot has what the person
//! and the model said, and nothing else: no proof, no note of what was given, no other branch, nothing that a tool or the model
//! noted for itself. It never changes, so every revision is 1. Easy to get wrong: that it ends. The server forgets it in time, but
//! a copy that somebody put back would open, so the end is inside the seal and whoever opens it looks.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Sealed, seal};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::bytes::Digest;
use crate::error::Refused;
use crate::head::{List, live};
use crate::ids::{AccountId, ChatId, EmbedId, ItemId, MessageId, Origin, SnapshotId};
use crate::json::{self, Record};
use crate::record::{Message, Place, Role, Text, open_record, seal_record};
use crate::ring::{Held, Ring, SUITE, open_suite_1};

/// The key of one snapshot: whoever has it, and the id, can read it.
#[derive(Clone, PartialEq, Eq)]
pub struct SnapshotKey(Key);

impl SnapshotKey {
    /// A new one.
    pub fn random() -> Self {
        Self(Key::random())
    }

    /// The one with these 32 bytes.
    pub fn from_key(key: Key) -> Self {
        Self(key)
    }

    /// Seals it for the other devices of the owner, under the chat's key.
    ///
    /// # Panics
    /// When the key is not of a chat's ring.
    pub fn keep(&self, held: &Held, account: &AccountId, chat: &ChatId, id: &SnapshotId) -> Sealed {
        let place = Place::SnapshotKey(chat, id);
        seal_record(held, account, &place, REV, self.0.dangerously_expose_bytes())
    }

    /// Opens what [`SnapshotKey::keep`] sealed. What does not open, or is not a key: `key-refused`.
    pub fn kept(
        ring: &Ring,
        account: &AccountId,
        chat: &ChatId,
        id: &SnapshotId,
        sealed: &Sealed,
    ) -> Result<Self, Refused> {
        let opened = open_record(ring, account, &Place::SnapshotKey(chat, id), sealed);
        let opened = opened.ok().filter(|opened| opened.rev == REV).ok_or(Refused::KeyRefused)?;
        let bytes = <[u8; 32]>::try_from(opened.json.as_slice()).map_err(|_| Refused::KeyRefused)?;
        Ok(Self(Key::from_bytes(bytes)))
    }
}

debug_without_content!(SnapshotKey(***));

/// What is given to whoever may read a snapshot. A browser sends nothing of what stands after `#` to a server.
#[derive(Clone, PartialEq, Eq)]
pub struct SnapshotLink {
    /// The server that has it.
    pub origin: Origin,
    /// Which one.
    pub id: SnapshotId,
    /// What opens it.
    pub key: SnapshotKey,
}

impl SnapshotLink {
    /// Reads a link; any other text is `bad-id`.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let (origin, rest) = text.split_once(HASH).ok_or(Refused::BadId)?;
        let (id, key) = rest.split_once('/').ok_or(Refused::BadId)?;
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(key).map_err(|_| Refused::BadId)?);
        let bytes = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| Refused::BadId)?;
        Ok(Self {
            origin: Origin::parse(origin).map_err(|_| Refused::BadId)?,
            id: SnapshotId::parse(id)?,
            key: SnapshotKey(Key::from_bytes(bytes)),
        })
    }

    /// `https://chat.example/#/snapshot/snap_…/KEY`, the key in unpadded base64url. Whoever has it can read the snapshot.
    pub fn dangerously_to_text(&self) -> Zeroizing<String> {
        let key = Zeroizing::new(URL_SAFE_NO_PAD.encode(self.key.0.dangerously_expose_bytes()));
        Zeroizing::new(format!("{}{HASH}{}/{}", self.origin.as_str(), self.id, *key))
    }
}

debug_without_content!(SnapshotLink(***));

/// What is sealed as a snapshot's list: how much there has to be, and until when it may be read.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotList {
    /// Version, 1.
    pub v: u32,
    /// When it was made, in milliseconds since 1970.
    pub at: u64,
    /// Until when it may be read.
    pub until: u64,
    /// The chat's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How many messages and embeds there are.
    pub count: u32,
    /// The digest of their list.
    pub live: Digest,
    /// The last message.
    pub leaf: MessageId,
}

impl Record for SnapshotList {
    fn version(&self) -> u32 {
        self.v
    }
}

impl SnapshotList {
    /// Its JSON.
    pub fn to_json(&self) -> Zeroizing<Vec<u8>> {
        json::write(self)
    }

    /// Reads its JSON, or `record-refused`.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Refused> {
        json::read(bytes)
    }
}

debug_without_content!(SnapshotList { count });

/// A message of a snapshot.
#[derive(Clone, PartialEq, Eq)]
pub struct SnapshotMessage {
    /// Its id.
    pub id: MessageId,
    /// Who speaks: the person or the model.
    pub role: Role,
    /// When, in milliseconds since 1970.
    pub created_at: u64,
    /// The words.
    pub body: String,
    /// Which model spoke.
    pub model: Option<String>,
    /// What it shows.
    pub refs: Vec<EmbedId>,
}

debug_without_content!(SnapshotMessage { role });

/// A snapshot, in clear.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// When it was made, in milliseconds since 1970.
    pub at: u64,
    /// Until when it may be read.
    pub until: u64,
    /// The chat's title, if it was shared.
    pub title: Option<String>,
    /// The messages, the first one first.
    pub messages: Vec<SnapshotMessage>,
    /// What they show.
    pub embeds: BTreeMap<EmbedId, Text>,
}

debug_without_content!(Snapshot { messages: messages.len() });

/// A snapshot as the server keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSnapshot {
    /// Its list.
    pub list: Sealed,
    /// Messages and embeds, in the order of their ids, which says nothing.
    pub items: Vec<(ItemId, Sealed)>,
}

debug_without_content!(SealedSnapshot { items: items.len() });

impl Snapshot {
    /// A snapshot of a branch, whose first message comes first, with the embeds that are given. Every id is made anew; what is neither
    /// the person's nor the model's words is left out. `None`: nothing is left.
    pub fn of_branch(
        (at, until): (u64, u64),
        title: Option<String>,
        branch: Vec<SnapshotMessage>,
        embeds: &BTreeMap<EmbedId, Text>,
    ) -> Option<Self> {
        let mut renamed: BTreeMap<EmbedId, EmbedId> = BTreeMap::new();
        let mut messages = Vec::new();
        for message in branch.into_iter().filter(|message| is_said(message.role)) {
            let given = message.refs.iter().filter(|embed| embeds.contains_key(embed));
            let refs =
                given.map(|embed| renamed.entry(embed.clone()).or_insert_with(EmbedId::random).clone());
            let refs = refs.collect();
            messages.push(SnapshotMessage { id: MessageId::random(), refs, ..message });
        }
        let shown = renamed.into_iter().filter_map(|(old, new)| Some((new, embeds.get(&old)?.clone())));
        let embeds = shown.collect();
        (!messages.is_empty()).then_some(Self { at, until, title, messages, embeds })
    }

    /// Seals it.
    ///
    /// # Panics
    /// When it has no message.
    pub fn seal(&self, key: &SnapshotKey, id: &SnapshotId) -> SealedSnapshot {
        let mut items: BTreeMap<ItemId, Sealed> = BTreeMap::new();
        let mut put = |item: ItemId, json: &[u8]| {
            let place = SnapshotPlace::Item(&item);
            let sealed = seal(&place.key(key), SUITE, &place.context(id, &item.to_string()), REV, json);
            items.insert(item, sealed);
        };
        let mut parent = None;
        for message in &self.messages {
            put(
                ItemId::Message(message.id.clone()),
                &as_record(message, parent.replace(message.id.clone())).to_json(),
            );
        }
        for (embed, text) in &self.embeds {
            put(ItemId::Embed(embed.clone()), &text.to_json());
        }
        let listed: List =
            items.iter().map(|(item, sealed)| (item.clone(), Digest::of(sealed.as_bytes()))).collect();
        let list = SnapshotList {
            v: 1,
            at: self.at,
            until: self.until,
            title: self.title.clone(),
            count: count_of(&listed),
            live: live(&listed),
            leaf: parent.expect("a snapshot has a message"),
        };
        let place = SnapshotPlace::List;
        let list = seal(&place.key(key), SUITE, &place.context(id, LIST), REV, &list.to_json());
        SealedSnapshot { list, items: items.into_iter().collect() }
    }

    /// Opens a snapshot, at this time. In this order: the list does not open under this key and id, or is none: `record-refused`; it may
    /// not be read any more: `rolled-back`; something is missing, was added, exchanged or comes twice: `list-refused`; something does not
    /// open, or is not what a snapshot has: `record-refused`; a message's parent is missing: `parent-missing`; a message that is on no
    /// way to the last one, an embed that nothing shows, or one that is shown and not there: `list-refused`.
    pub fn open(
        key: &SnapshotKey,
        id: &SnapshotId,
        now: u64,
        sealed: &SealedSnapshot,
    ) -> Result<Self, Refused> {
        let place = SnapshotPlace::List;
        let list = open_once(&place.key(key), &place.context(id, LIST), &sealed.list)?;
        let list = SnapshotList::from_json(&list)?;
        if now >= list.until {
            return Err(Refused::RolledBack);
        }
        let listed: List =
            sealed.items.iter().map(|(item, sealed)| (item.clone(), Digest::of(sealed.as_bytes()))).collect();
        let is_whole = listed.len() == sealed.items.len() && list.count == count_of(&listed);
        if !is_whole || list.live != live(&listed) {
            return Err(Refused::ListRefused);
        }
        let (mut messages, mut embeds) = (BTreeMap::new(), BTreeMap::new());
        for (item, sealed) in &sealed.items {
            let place = SnapshotPlace::Item(item);
            let json = open_once(&place.key(key), &place.context(id, &item.to_string()), sealed)?;
            match item {
                ItemId::Message(id) => drop(messages.insert(id.clone(), said(&json)?)),
                ItemId::Embed(id) => drop(embeds.insert(id.clone(), Text::from_json(&json)?)),
                ItemId::Field(_) => return Err(Refused::ListRefused),
            }
        }
        let messages = in_order(messages, &list.leaf)?;
        let shown: BTreeSet<&EmbedId> = messages.iter().flat_map(|message| &message.refs).collect();
        if !shown.into_iter().eq(embeds.keys()) {
            return Err(Refused::ListRefused);
        }
        Ok(Self { at: list.at, until: list.until, title: list.title, messages, embeds })
    }
}

/// Where something of a snapshot stands.
#[derive(Clone, Copy)]
enum SnapshotPlace<'a> {
    List,
    Item(&'a ItemId),
}

impl SnapshotPlace<'_> {
    fn key(self, key: &SnapshotKey) -> Key {
        key.0.derive(match self {
            Self::Item(ItemId::Message(_)) => "msg",
            Self::Item(ItemId::Embed(_)) => "embed",
            Self::List | Self::Item(ItemId::Field(_)) => "meta",
        })
    }

    fn context<'a>(self, id: &'a SnapshotId, object: &'a str) -> Context<'a> {
        let field = match self {
            Self::List => "",
            Self::Item(_) => "content",
        };
        Context { purpose: "snapshot", owner: "", container: id.as_str(), object, field }
    }
}

fn open_once(key: &Key, context: &Context<'_>, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, Refused> {
    match open_suite_1(key, context, sealed) {
        Some((REV, json)) => Ok(json),
        _ => Err(Refused::RecordRefused),
    }
}

/// Whether such a message is part of snapshots.
fn is_said(role: Role) -> bool {
    matches!(role, Role::User | Role::Assistant)
}

fn as_record(message: &SnapshotMessage, parent: Option<MessageId>) -> Message {
    Message {
        v: 1,
        role: message.role,
        parent,
        created_at: message.created_at,
        body: message.body.clone(),
        model: message.model.clone(),
        reason: None,
        refs: message.refs.clone(),
        proof: None,
        shared: Vec::new(),
    }
}

/// A message as snapshots have it: what was said, and nothing that only its owner and the server have to know.
fn said(json: &[u8]) -> Result<Message, Refused> {
    let message = Message::from_json(json)?;
    let is_bare = message.proof.is_none() && message.reason.is_none() && message.shared.is_empty();
    if is_bare && is_said(message.role) { Ok(message) } else { Err(Refused::RecordRefused) }
}

/// The one branch that there is, from its first message to the last.
fn in_order(
    mut messages: BTreeMap<MessageId, Message>,
    leaf: &MessageId,
) -> Result<Vec<SnapshotMessage>, Refused> {
    let mut branch = Vec::new();
    let mut at = Some(leaf.clone());
    while let Some(id) = at {
        // One that was met before is not there any more: a ring has no first message.
        let message = messages.remove(&id).ok_or(Refused::ParentMissing)?;
        let Message { role, parent, created_at, body, model, refs, .. } = message;
        branch.push(SnapshotMessage { id, role, created_at, body, model, refs });
        at = parent;
    }
    branch.reverse();
    if messages.is_empty() { Ok(branch) } else { Err(Refused::ListRefused) }
}

fn count_of(list: &List) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// A snapshot is written once.
const REV: u32 = 1;
/// What the list is called.
const LIST: &str = "list";
/// What stands in a link between the server and the id.
const HASH: &str = "/#/snapshot/";

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, body: &str, refs: &[EmbedId]) -> SnapshotMessage {
        let (id, refs) = (MessageId::random(), refs.to_vec());
        SnapshotMessage { id, role, created_at: 5, body: body.to_owned(), model: None, refs }
    }

    fn text(body: &str) -> Text {
        Text { v: 1, body: body.to_owned() }
    }

    fn snapshot() -> Snapshot {
        let (shown, hidden, other) = (EmbedId::random(), EmbedId::random(), EmbedId::random());
        let branch = vec![
            message(Role::User, "where to?", &[shown.clone(), hidden]),
            message(Role::Tool, "working notes", &[]),
            message(Role::Assistant, "Rome", std::slice::from_ref(&shown)),
        ];
        let embeds = [(shown, text("a map")), (other, text("another chat's"))].into();
        Snapshot::of_branch((7, 9), Some("Trip".to_owned()), branch, &embeds).unwrap()
    }

    #[test]
    fn a_snapshot_has_what_was_said_and_nothing_that_leads_back() {
        let made = snapshot();
        let said: Vec<_> =
            made.messages.iter().map(|one| (one.role, one.body.as_str(), one.refs.len())).collect();
        assert_eq!(said, [(Role::User, "where to?", 1), (Role::Assistant, "Rome", 1)]);
        assert_eq!(made.embeds.values().map(|text| text.body.as_str()).collect::<Vec<_>>(), ["a map"]);
        let again = snapshot();
        assert!(made.messages.iter().all(|one| again.messages.iter().all(|other| one.id != other.id)));
        let (key, id) = (SnapshotKey::random(), SnapshotId::random());
        let sealed = made.seal(&key, &id);
        assert_eq!(Snapshot::open(&key, &id, 8, &sealed), Ok(made));
        let notes = vec![message(Role::Summary, "x", &[])];
        assert_eq!(Snapshot::of_branch((7, 9), None, notes, &BTreeMap::new()), None);
    }

    #[test]
    fn what_a_server_changes_is_refused() {
        let (key, id) = (SnapshotKey::random(), SnapshotId::random());
        let sealed = snapshot().seal(&key, &id);
        let open = |sealed: &SealedSnapshot| Snapshot::open(&key, &id, 8, sealed).map(drop);
        assert_eq!(open(&sealed), Ok(()));
        assert_eq!(Snapshot::open(&key, &id, 9, &sealed), Err(Refused::RolledBack), "it is over");
        let other = SnapshotId::random();
        assert_eq!(Snapshot::open(&key, &other, 8, &sealed), Err(Refused::RecordRefused), "of another link");
        let stranger = SnapshotKey::random();
        assert_eq!(
            Snapshot::open(&stranger, &id, 8, &sealed),
            Err(Refused::RecordRefused),
            "without the key"
        );
        for at in 0..sealed.items.len() {
            let mut short = sealed.clone();
            short.items.remove(at);
            assert_eq!(open(&short), Err(Refused::ListRefused), "truncated");
            let mut twice = sealed.clone();
            twice.items.push(sealed.items[at].clone());
            assert_eq!(open(&twice), Err(Refused::ListRefused), "twice");
        }
        let mut swapped = sealed.clone();
        let (first, last) = (sealed.items[1].1.clone(), sealed.items[2].1.clone());
        (swapped.items[1].1, swapped.items[2].1) = (last, first);
        assert_eq!(open(&swapped), Err(Refused::ListRefused), "swapped");
        // The list of another snapshot under the same key, as if there were an older one.
        let older = SealedSnapshot { list: snapshot().seal(&key, &id).list, ..sealed.clone() };
        assert_eq!(open(&older), Err(Refused::ListRefused), "another list");
    }

    #[test]
    fn a_link_has_one_spelling() {
        let link = SnapshotLink {
            origin: Origin::parse("https://chat.example:8443").unwrap(),
            id: SnapshotId::from_bits(&[7; 16]),
            key: SnapshotKey::from_key(Key::from_bytes([0xff; 32])),
        };
        let text = link.dangerously_to_text();
        assert_eq!(
            *text,
            format!(
                "https://chat.example:8443/#/snapshot/snap_a4dqobyha4dqobyha4dqobyha4/{}8",
                "_".repeat(42)
            )
        );
        assert!(SnapshotLink::parse(&text).as_ref() == Ok(&link));
        assert_eq!(format!("{link:?} {:?}", link.key), "SnapshotLink(***) SnapshotKey(***)");
        for bad in [
            text.replace("snap_", "chat_"),
            text.replace("#/snapshot/", "#/snap/"),
            text.replace("https", "ftp"),
            format!("{}9", &text[..text.len() - 1]),
            format!("{}=", *text),
            text[..text.len() - 1].to_owned(),
            String::new(),
        ] {
            assert_eq!(SnapshotLink::parse(&bad).err(), Some(Refused::BadId), "{bad}");
        }
    }
}
