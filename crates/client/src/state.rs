//! What a device remembers: the account, the session, what it has seen, and what it still has to send.
//!
//! ```text
//! State ─┬─ who: account, device, session, account key
//!        ├─ Book: the account's keys, manifest and floors, as last verified
//!        ├─ Piece: account data by kind and name
//!        └─ Queue: what is not sent yet, and copies that lost
//! ```
//!
//! Easy to get wrong: keeping rows of a ring. They are sealed under one account key; the keys inside outlive it, so keys
//! are kept, and rows are made from them.

use std::collections::{BTreeMap, BTreeSet};

use confidant_chat_format::{
    Account, AccountId, AccountKey, BoxKey, ChatId, DeviceId, Digest, Entry, FieldName, Mark, MessageId,
    Place, PublicKey, Refused, Ring, RingOf, SeenAccount, SentAccount, Shared, Text, Trail, TurnId,
    open_record,
};
use confidant_display::debug_without_content;
use confidant_seal::{Key, Sealed};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::queue::Queue;
use crate::transport::SessionKeys;

/// Bytes, in the files as base64url.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bin(pub(crate) Vec<u8>);

debug_without_content!(Bin(..));

impl Bin {
    pub(crate) fn of(sealed: &Sealed) -> Self {
        Self(sealed.as_bytes().to_vec())
    }

    pub(crate) fn sealed(&self) -> Sealed {
        Sealed::from_bytes(self.0.clone())
    }
}

impl Serialize for Bin {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&base64::Engine::encode(&BASE64, &self.0))
    }
}

impl<'de> Deserialize<'de> for Bin {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(from)?);
        let bytes = base64::Engine::decode(&BASE64, text.as_bytes());
        bytes.map(Self).map_err(|_| serde::de::Error::custom("not base64url"))
    }
}

const BASE64: base64::engine::GeneralPurpose = base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// 32 secret bytes, in a file that is sealed as a whole.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Kept(pub(crate) Key);

debug_without_content!(Kept(***));

impl Serialize for Kept {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Bin(self.0.dangerously_expose_bytes().to_vec()).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Kept {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let bytes = Zeroizing::new(Bin::deserialize(from)?.0);
        let bytes = <[u8; 32]>::try_from(bytes.as_slice());
        bytes.map(|bytes| Self(Key::from_bytes(bytes))).map_err(|_| serde::de::Error::custom("not 32 bytes"))
    }
}

/// The keys of a ring, each with the generation that made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keys(Vec<(Kept, u32)>);

impl Keys {
    pub(crate) fn of(ring: &Ring) -> Self {
        Self(ring.iter().map(|held| (Kept(held.key().clone()), held.born())).collect())
    }

    /// The ring's rows under this account key, as a server with the same keys has them.
    pub(crate) fn rows(&self, ak: &AccountKey, account: &AccountId, of: RingOf<'_>) -> Vec<Entry> {
        let rows = (1..).zip(&self.0);
        rows.map(|(n, (key, born))| Entry::seal(ak, account, of, n, &key.0, *born)).collect()
    }

    pub(crate) fn ring(&self, ak: &AccountKey, account: &AccountId, of: RingOf<'_>) -> Result<Ring, Refused> {
        Ring::open(ak, account, of, &self.rows(ak, account, of))
    }

    /// The public halves of a mailbox's keys.
    pub(crate) fn publics(&self) -> Vec<PublicKey> {
        self.0.iter().map(|(key, _)| BoxKey::from_key(&key.0).public_key()).collect()
    }

    pub(crate) fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn push(&mut self, key: Key, born: u32) {
        self.0.push((Kept(key), born));
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }
}

/// The account, as it was last verified.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Book {
    pub(crate) keys: Keys,
    pub(crate) boxes: Keys,
    pub(crate) box_pub: PublicKey,
    pub(crate) manifest: Bin,
    pub(crate) floors: Vec<Bin>,
}

impl Book {
    /// The manifest's revision and envelope.
    pub(crate) fn mark(&self) -> Mark {
        let rev = self.manifest.sealed().rev().unwrap_or(0);
        Mark { rev, envelope: Digest::of(&self.manifest.0) }
    }

    /// Opens it again, with every check that needs no server.
    pub(crate) fn open(&self, id: &AccountId, ak: &AccountKey) -> Result<Account, Refused> {
        let sent = SentAccount {
            ring: self.keys.rows(ak, id, RingOf::Account),
            box_ring: self.boxes.rows(ak, id, RingOf::Box),
            box_pub: self.box_pub,
            manifest: self.manifest.sealed(),
            trail: Trail::NONE,
            floors: self.floors.iter().map(Bin::sealed).collect(),
        };
        let seen = SeenAccount { generation: ak.generation(), manifest: Some(self.mark()) };
        Account::open(id, ak, &sent, &seen)
    }
}

/// A piece of account data.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub(crate) kind: FieldName,
    pub(crate) name: FieldName,
    pub(crate) rev: u32,
    /// What it says; `None` when it was removed.
    pub(crate) body: Option<String>,
}

debug_without_content!(Piece { kind, rev });

/// Opens a piece of account data: not under the account's keys, or not a text: `record-refused`.
pub(crate) fn open_data(
    account: &Account,
    kind: &FieldName,
    name: &FieldName,
    sealed: &Sealed,
) -> Result<(u32, String), Refused> {
    let opened = open_record(account.ring(), account.id(), &Place::Data(kind, name), sealed)?;
    Ok((opened.rev, Text::from_json(&opened.json)?.body))
}

/// A session, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    id: Kept,
    secret: Kept,
    pub(crate) expires_at: u64,
}

impl Session {
    pub(crate) fn new(id: [u8; 32], secret: [u8; 32], expires_at: u64) -> Self {
        Self { id: Kept(Key::from_bytes(id)), secret: Kept(Key::from_bytes(secret)), expires_at }
    }

    pub(crate) fn keys(&self) -> SessionKeys {
        SessionKeys {
            id: *self.id.0.dangerously_expose_bytes(),
            secret: *self.secret.0.dangerously_expose_bytes(),
        }
    }
}

/// A rotation that was begun: what the account has if it was committed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rotating {
    pub(crate) generation: u32,
    pub(crate) ak: Kept,
}

/// An answer that this device asked for: what goes with the question, besides its words.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) chat: ChatId,
    pub(crate) turn: TurnId,
    pub(crate) message: MessageId,
    pub(crate) reply: MessageId,
    /// Whether the server may keep the words for the next question.
    pub(crate) is_kept: bool,
    pub(crate) focus: Option<String>,
    pub(crate) off: Vec<String>,
    pub(crate) available: Vec<String>,
    /// What the person gives: `settings`, `summary` or `search`; a name; the words.
    pub(crate) given: Vec<(String, String, String)>,
    /// Whether it was sent; the answer to that may have been lost.
    pub(crate) is_sent: bool,
    /// The digest with the reply, once the server has the question.
    pub(crate) begun: Option<Digest>,
    /// Whether anything was heard of its answer: words, or that there is none. Then only the person asks again.
    #[serde(default)]
    pub(crate) is_heard: bool,
    /// How often the server had lost it, so that it was asked once more.
    #[serde(default)]
    pub(crate) again: u8,
    /// Whether the person was there to be asked for more.
    #[serde(default)]
    pub(crate) is_person: bool,
    /// What was given while it was answered, for the note inside the reply.
    #[serde(default)]
    pub(crate) gave: Vec<Shared>,
}

debug_without_content!(Question { is_kept });

/// Everything but the chats.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct State {
    v: u32,
    pub(crate) account: AccountId,
    pub(crate) device: DeviceId,
    pub(crate) session: Option<Session>,
    pub(crate) generation: u32,
    pub(crate) ak: Kept,
    /// The newest revision of the wrap of each credential that this device logged in with.
    pub(crate) wraps: BTreeMap<String, u32>,
    pub(crate) account_rev: u32,
    pub(crate) book: Option<Book>,
    /// What a pairing said about the manifest, before the first sync.
    pub(crate) pinned: Option<Mark>,
    pub(crate) seq: u64,
    /// Whether the server has chats older than those that were synced.
    pub(crate) older: bool,
    pub(crate) data: Vec<Piece>,
    pub(crate) queue: Queue,
    pub(crate) rotating: Option<Rotating>,
    /// The chat that was opened last, until the server has been told.
    #[serde(default)]
    pub(crate) opened: Option<ChatId>,
    /// Answers that this device asked for and that are not stored yet.
    #[serde(default)]
    pub(crate) asks: Vec<Question>,
    /// Answers that the server may forget once they are stored.
    #[serde(default)]
    pub(crate) acks: Vec<(ChatId, TurnId)>,
    /// Chats that this device saw go.
    #[serde(default)]
    pub(crate) gone: BTreeSet<ChatId>,
}

debug_without_content!(State { generation, account_rev, seq });

impl State {
    pub(crate) fn new(account: AccountId, device: DeviceId, ak: &AccountKey) -> Self {
        Self {
            v: 1,
            account,
            device,
            session: None,
            generation: ak.generation(),
            ak: Kept(ak.key().clone()),
            wraps: BTreeMap::new(),
            account_rev: 0,
            book: None,
            pinned: None,
            seq: 0,
            older: false,
            data: Vec::new(),
            queue: Queue::default(),
            rotating: None,
            opened: None,
            asks: Vec::new(),
            acks: Vec::new(),
            gone: BTreeSet::new(),
        }
    }

    pub(crate) fn from_json(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok().filter(|state: &Self| state.v == 1)
    }

    pub(crate) fn to_json(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(crate) fn account_key(&self) -> AccountKey {
        AccountKey::new(self.ak.0.clone(), self.generation)
    }

    pub(crate) fn set_account_key(&mut self, ak: &AccountKey) {
        (self.generation, self.ak) = (ak.generation(), Kept(ak.key().clone()));
    }

    /// What to compare the next account state with.
    pub(crate) fn seen(&self) -> SeenAccount {
        let manifest = self.book.as_ref().map(Book::mark).or(self.pinned);
        SeenAccount { generation: self.generation, manifest }
    }

    /// Remembers that a chat went.
    pub(crate) fn note_gone(&mut self, chats: &[ChatId]) {
        self.gone.extend(chats.iter().cloned());
        while self.gone.len() > MAX_GONE {
            self.gone.pop_first();
        }
    }

    pub(crate) fn piece(&self, kind: &FieldName, name: &FieldName) -> Option<&Piece> {
        self.data.iter().find(|piece| piece.kind == *kind && piece.name == *name)
    }

    pub(crate) fn put_piece(&mut self, piece: Piece) {
        self.data.retain(|there| (&there.kind, &there.name) != (&piece.kind, &piece.name));
        self.data.push(piece);
    }
}

/// Chats that went, remembered.
const MAX_GONE: usize = 10_000;
