//! Rings of keys, and the rotation of the account key above them.
//!
//! A ring only grows: an entry is appended by the write that first needs it ([`super::Write`], [`super::ListWrite`]), by
//! compare-and-set on the length. Only a rotation replaces entries, and then all of them in one commit:
//!
//! ```text
//! begin ─▶ rings frozen, other sessions ended ─▶ stage, stage, … ─▶ commit: everything is replaced
//!                                                                └▶ abandon, or ten minutes: nothing has changed
//! ```

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, Digest, Entry, RingOf, Shelf};
use confidant_seal::{Kid, Sealed, Tag};

use super::lists::ListPut;
use super::{Millis, Result};

/// Rings and rotation.
#[async_trait]
pub trait Rings: Send + Sync + std::fmt::Debug {
    /// The entries of a ring, the first one first; none if there is no such ring.
    async fn ring(&self, account: &AccountId, of: &RingName) -> Result<Vec<Entry>>;
    /// Entries of all rings, in a fixed order, after `after`; at most [`super::limits::PAGE`].
    async fn rings(&self, account: &AccountId, after: Option<(RingName, u32)>) -> Result<Vec<RingEntry>>;
    /// Freezes the rings, begins a new epoch, and ends all sessions but one. What an earlier rotation has staged is dropped.
    async fn begin_rotation(&self, begin: BeginRotation) -> Result<Frozen>;
    /// Keeps entries and floors sealed under the next account key aside. Not frozen, frozen anew since, or sealed under
    /// another key than what was staged before: `conflict`.
    async fn stage(&self, stage: Stage) -> Result<Staged>;
    /// The floors that are staged, by shelf.
    async fn staged_floors(&self, account: &AccountId) -> Result<Vec<(Shelf, Sealed)>>;
    /// Puts what was staged in force. `conflict`, and nothing changes, unless the account is as the caller has read it, what is
    /// staged is every entry that there is, and floors and manifest follow. Returns the new revision of the account.
    async fn commit_rotation(&self, commit: CommitRotation) -> Result<u32>;
    /// Puts the entries of a ring back as they are sealed now; numbers and keys have to be those that are there, else
    /// `conflict`. A ring that is not there: `not-found`.
    async fn reseal(&self, account: &AccountId, of: &RingName, entries: Vec<Entry>) -> Result<()>;
    /// Drops what was staged and ends the freeze.
    async fn abandon_rotation(&self, account: &AccountId) -> Result<()>;
}

/// Whose ring.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RingName {
    /// A chat's.
    Chat(ChatId),
    /// The account's own.
    Account,
    /// The mailbox's.
    Box,
}

impl RingName {
    /// The same, borrowed.
    #[must_use]
    pub fn of(&self) -> RingOf<'_> {
        match self {
            Self::Chat(chat) => RingOf::Chat(chat),
            Self::Account => RingOf::Account,
            Self::Box => RingOf::Box,
        }
    }

    /// How many sub-keys its rows list: `msg`, `meta` and `embed` of a chat, `meta` of an account, none of a mailbox.
    pub(crate) fn subs(&self) -> usize {
        match self {
            Self::Chat(_) => 3,
            Self::Account => 1,
            Self::Box => 0,
        }
    }
}

/// An entry and its ring. What is sealed is what the server's own seal made of the client's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingEntry {
    /// Whose ring.
    pub of: RingName,
    /// The entry.
    pub entry: Entry,
}

/// The beginning of a rotation.
#[derive(Clone, Debug)]
pub struct BeginRotation {
    /// Whose.
    pub account: AccountId,
    /// The account's revision that the caller has read.
    pub expected: u32,
    /// The hash of the id of the session that stays.
    pub session: Digest,
    /// When.
    pub now: Millis,
}

/// Rings that are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// The new epoch; it names this rotation.
    pub epoch: u32,
    /// When the freeze ends by itself.
    pub until: Millis,
}

/// Entries and floors for the next account key.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Whose.
    pub account: AccountId,
    /// The epoch of the rotation's beginning.
    pub epoch: u32,
    /// Which key seals the entries, as their headers say; `None` where there are only floors. One for all: entries of two
    /// attempts must not be mixed.
    pub wrap: Option<Kid>,
    /// The entries.
    pub entries: Vec<RingEntry>,
    /// The floors.
    pub floors: Vec<(Shelf, Sealed)>,
    /// When.
    pub now: Millis,
}

/// What is staged so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staged {
    /// Rings of which an entry is staged.
    pub rings: u32,
    /// Floors.
    pub floors: u32,
}

/// The end of a rotation: what takes the place of everything under the old account key.
#[derive(Clone, Debug)]
pub struct CommitRotation {
    /// Whose.
    pub account: AccountId,
    /// The epoch of its beginning.
    pub epoch: u32,
    /// The account's revision that the caller has read.
    pub expected: u32,
    /// The hash of the id of the session that stays: whoever logged in with an old credential meanwhile is out.
    pub session: Digest,
    /// Which key seals the entries that were staged; another one: `conflict`.
    pub wrap: Kid,
    /// [`confidant_chat_format::rings_digest`] of all entries that there are before it.
    pub digest: Digest,
    /// New entries, after the staged ones: one of the account's ring and one of the mailbox's.
    pub append: [RingEntry; 2],
    /// All sixteen floors, and the manifest.
    pub list: ListPut,
    /// The record after it, sealed by the server.
    pub record: Sealed,
    /// The new login, if that changes.
    pub login: Option<Tag>,
    /// The tags of the credentials that were presented; all others go.
    pub credentials: Vec<Tag>,
    /// When.
    pub now: Millis,
}
