//! The account key, and the rings of keys under it.
//!
//! ```text
//! kek ──opens──▶ AK, generation g ──"wrap"──▶ ring of a chat:     1, 2, …, n   CK → msg, meta, embed, hist
//!                                             ring of the account: 1, 2, …, n  UK → meta, index, cid
//!                                             ring of the mailbox: 1, 2, …, n  X25519 private keys
//! ```
//!
//! Owns what an entry is and when a ring is whole. Leaves to [`crate::opening`] whether it is the newest ring. Easy to get
//! wrong: writing under a key that an older generation made. [`Ring::writer`] gives none in that case; append first, in one
//! write with the head (or manifest) that names the new entry.

use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Kid, Sealed, Suite, open, seal};
use zeroize::Zeroizing;

use crate::error::Refused;
use crate::ids::{AccountId, ChatId, CredentialId};

/// Which credential a wrap of the account key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrap<'a> {
    /// The password.
    Password,
    /// A passkey.
    Passkey(&'a CredentialId),
    /// The recovery code.
    Recovery,
}

impl Wrap<'_> {
    fn field(self) -> String {
        match self {
            Self::Password => "pw".to_owned(),
            Self::Passkey(id) => format!("prf:{id}"),
            Self::Recovery => "rec".to_owned(),
        }
    }
}

/// What a device remembers of the wrap of its credential. A new device remembers nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeenWrap {
    /// The newest generation of the account key.
    pub generation: u32,
    /// The newest revision of the wrap.
    pub rev: u32,
}

/// The key above all keys of an account, and its generation, which counts from 1.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountKey {
    key: Key,
    generation: u32,
}

impl AccountKey {
    /// The first key of a new account. Only for an account that is being created: logging in never makes a key.
    pub fn first() -> Self {
        Self::new(Key::random(), 1)
    }

    /// The key with these bytes and generation.
    pub fn new(key: Key, generation: u32) -> Self {
        Self { key, generation }
    }

    /// Opens a wrap; gives its revision too, to remember. Not there: `account-missing`. Of a generation before the one that
    /// this device has seen, or does not open: `key-refused`. Made before the wrap that this device has used:
    /// `rolled-back`.
    pub fn open(
        kek: &Key,
        account: &AccountId,
        generation: u32,
        wrap: Wrap<'_>,
        sealed: Option<&Sealed>,
        seen: SeenWrap,
    ) -> Result<(Self, u32), Refused> {
        let sealed = sealed.ok_or(Refused::AccountMissing)?;
        if generation < seen.generation {
            return Err(Refused::KeyRefused);
        }
        let (object, field) = (object(generation), wrap.field());
        let opened = open_suite_1(kek, &key_context(account, "", &object, &field), sealed);
        let (rev, data) = opened.ok_or(Refused::KeyRefused)?;
        if rev < seen.rev {
            return Err(Refused::RolledBack);
        }
        let bytes = <[u8; 32]>::try_from(data.as_slice()).map_err(|_| Refused::KeyRefused)?;
        Ok((Self::new(Key::from_bytes(bytes), generation), rev))
    }

    /// Seals the key for one credential. `account_rev` is the revision that the account has after this change.
    pub fn wrap(&self, kek: &Key, account: &AccountId, wrap: Wrap<'_>, account_rev: u32) -> Sealed {
        let (object, field) = (object(self.generation), wrap.field());
        let context = key_context(account, "", &object, &field);
        seal(kek, SUITE, &context, account_rev, self.key.dangerously_expose_bytes())
    }

    /// A new key of the next generation; `None` after 2^32 of them.
    pub fn next(&self) -> Option<Self> {
        self.generation.checked_add(1).map(|generation| Self::new(Key::random(), generation))
    }

    /// Its generation.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The key itself, for pairing and vectors.
    pub fn key(&self) -> &Key {
        &self.key
    }
}

debug_without_content!(AccountKey { generation });

/// Whose ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingOf<'a> {
    /// A chat's.
    Chat(&'a ChatId),
    /// The account's own, for its list of chats and its data.
    Account,
    /// The mailbox's.
    Box,
}

impl<'a> RingOf<'a> {
    /// The chat, or nothing.
    pub fn container(self) -> &'a str {
        match self {
            Self::Chat(chat) => chat.as_str(),
            Self::Account | Self::Box => "",
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Chat(_) => "chat",
            Self::Account => "account",
            Self::Box => "box",
        }
    }

    /// The sub-keys that seal records, whose ids the row lists.
    fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Chat(_) => &["msg", "meta", "embed"],
            Self::Account => &["meta"],
            Self::Box => &[],
        }
    }
}

/// A row of a ring, as the server keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number, from 1.
    pub n: u32,
    /// The id of the key inside.
    pub kid: Kid,
    /// The ids of the sub-keys that seal: `msg`, `meta`, `embed` of a chat, `meta` of an account. The server takes no
    /// envelope with another id.
    pub subs: Vec<Kid>,
    /// `seal(sub(AK, "wrap"), (key, account, chat or "", "{n}:{kid}", kind), rev = g, key ‖ u32 born)`.
    pub sealed: Sealed,
}

impl Entry {
    /// Seals `key` as entry `n`; `born` is the generation under which it was made.
    pub fn seal(ak: &AccountKey, account: &AccountId, of: RingOf<'_>, n: u32, key: &Key, born: u32) -> Self {
        let kid = key.kid();
        let mut data = Zeroizing::new(Vec::with_capacity(36));
        data.extend_from_slice(key.dangerously_expose_bytes());
        data.extend_from_slice(&born.to_be_bytes());
        let object = format!("{n}:{kid}");
        let context = key_context(account, of.container(), &object, of.field());
        let sealed = seal(&ak.key.derive("wrap"), SUITE, &context, ak.generation, &data);
        let subs = of.labels().iter().map(|label| key.derive(label).kid()).collect();
        Self { n, kid, subs, sealed }
    }
}

/// A key of a ring, opened.
#[derive(Clone)]
pub struct Held {
    n: u32,
    born: u32,
    key: Key,
    /// In the order of [`RingOf::labels`].
    subs: Vec<Key>,
}

impl Held {
    /// Its number in the ring.
    pub fn n(&self) -> u32 {
        self.n
    }

    /// The generation of the account key under which it was made.
    pub fn born(&self) -> u32 {
        self.born
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Its sub-key that seals records of this kind, if its ring has that.
    pub(crate) fn sub(&self, sub: Sub) -> Option<&Key> {
        match (sub, self.subs.len()) {
            (Sub::Meta, 1) => self.subs.first(),
            (Sub::Msg, 3) => self.subs.first(),
            (Sub::Meta, 3) => self.subs.get(1),
            (Sub::Embed, 3) => self.subs.get(2),
            _ => None,
        }
    }
}

debug_without_content!(Held { n, born });

/// Which sub-key seals a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sub {
    Msg,
    Meta,
    Embed,
}

/// A whole ring, opened: entries 1 to n, never empty.
#[derive(Debug, Clone)]
pub struct Ring {
    held: Vec<Held>,
    generation: u32,
}

impl Ring {
    /// Opens every entry. In this order: a number is missing: `ring-gap`; two entries have one number: `ring-forked`;
    /// an entry does not open under this account key, has another generation, or holds another key than its row says:
    /// `key-refused`. Rows may come in any order.
    pub fn open(
        ak: &AccountKey,
        account: &AccountId,
        of: RingOf<'_>,
        entries: &[Entry],
    ) -> Result<Self, Refused> {
        let mut sorted: Vec<&Entry> = entries.iter().collect();
        sorted.sort_by_key(|entry| entry.n);
        let mut numbers: Vec<u32> = sorted.iter().map(|entry| entry.n).collect();
        numbers.dedup();
        if numbers.is_empty() || !numbers.iter().copied().eq((1..).take(numbers.len())) {
            return Err(Refused::RingGap);
        }
        if numbers.len() != sorted.len() {
            return Err(Refused::RingForked);
        }
        let wrap = ak.key.derive("wrap");
        let held = sorted.into_iter().map(|entry| open_entry(ak, &wrap, account, of, entry));
        Ok(Self { held: held.collect::<Result<_, _>>()?, generation: ak.generation })
    }

    /// The entry with the highest number.
    pub fn newest(&self) -> &Held {
        self.held.last().expect("a ring that opened has an entry")
    }

    /// The key to write under: the newest, if this generation of the account key made it. `None` means: append first.
    pub fn writer(&self) -> Option<&Held> {
        Some(self.newest()).filter(|held| held.born == self.generation)
    }

    /// The row after the newest. Send it with the ring's length, so that of two devices one loses with `conflict`.
    pub fn append(&self, ak: &AccountKey, account: &AccountId, of: RingOf<'_>, key: &Key) -> Entry {
        Entry::seal(ak, account, of, self.newest().n + 1, key, ak.generation)
    }

    /// Every key, the first one first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Held> {
        self.held.iter()
    }

    /// The key with this number.
    pub fn get(&self, n: u32) -> Option<&Held> {
        self.held.get(usize::try_from(n.checked_sub(1)?).ok()?)
    }

    /// The key whose sub-key has this id.
    pub(crate) fn find(&self, sub: Sub, kid: Kid) -> Option<&Held> {
        self.held.iter().rev().find(|held| held.sub(sub).is_some_and(|key| key.kid() == kid))
    }
}

/// What a server checks before it appends: the row is the next one. Else `conflict`.
pub fn check_append(length: u32, entry: &Entry) -> Result<(), Refused> {
    if length.checked_add(1) == Some(entry.n) { Ok(()) } else { Err(Refused::Conflict) }
}

fn open_entry(
    ak: &AccountKey,
    wrap: &Key,
    account: &AccountId,
    of: RingOf<'_>,
    entry: &Entry,
) -> Result<Held, Refused> {
    let object = format!("{}:{}", entry.n, entry.kid);
    let context = key_context(account, of.container(), &object, of.field());
    let (rev, data) = open_suite_1(wrap, &context, &entry.sealed).ok_or(Refused::KeyRefused)?;
    let (key, born) = data.split_first_chunk::<32>().ok_or(Refused::KeyRefused)?;
    let born = u32::from_be_bytes(born.try_into().map_err(|_| Refused::KeyRefused)?);
    let key = Key::from_bytes(*key);
    let subs: Vec<Key> = of.labels().iter().map(|label| key.derive(label)).collect();
    let named = key.kid() == entry.kid && subs.iter().map(Key::kid).eq(entry.subs.iter().copied());
    if rev == ak.generation && named && (1..=ak.generation).contains(&born) {
        Ok(Held { n: entry.n, born, key, subs })
    } else {
        Err(Refused::KeyRefused)
    }
}

/// Opens an envelope of a client: suite 1, or not at all.
pub(crate) fn open_suite_1(
    key: &Key,
    context: &Context<'_>,
    sealed: &Sealed,
) -> Option<(u32, Zeroizing<Vec<u8>>)> {
    if sealed.suite() != Some(SUITE) {
        return None;
    }
    open(key, context, sealed).ok().map(|opened| (opened.rev, opened.data))
}

fn object(generation: u32) -> String {
    format!("account:{generation}")
}

fn key_context<'a>(
    account: &'a AccountId,
    container: &'a str,
    object: &'a str,
    field: &'a str,
) -> Context<'a> {
    Context { purpose: "key", owner: account.as_str(), container, object, field }
}

pub(crate) const SUITE: Suite = Suite::Aes256Gcm;
