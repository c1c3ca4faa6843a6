//! Accounts: made, found, changed, erased.
//!
//! An account's revision grows by one with every change of its credentials or its key; whoever changes it names the revision
//! that it read. Its epoch grows whenever sessions are ended; a session of another epoch is not valid.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Digest};
use confidant_seal::{Sealed, Tag};

use super::lists::ManifestPut;
use super::rings::RingEntry;
use super::{Millis, Result};

/// Accounts.
#[async_trait]
pub trait Accounts: Send + Sync + std::fmt::Debug {
    /// Makes an account with its rings, floors and manifest. A login, credential or id that somebody has: `conflict`. A pass
    /// that is not there, was used or has expired: `login-refused`.
    async fn register(&self, new: NewAccount) -> Result<()>;
    /// Whose login this is.
    async fn by_login(&self, login: Tag) -> Result<Option<AccountId>>;
    /// Whose credential this is.
    async fn by_credential(&self, credential: Tag) -> Result<Option<AccountId>>;
    /// An account as it is.
    async fn account(&self, account: &AccountId) -> Result<AccountRow>;
    /// Changes the record and the credentials, by compare-and-set on the revision; refused with `conflict` while the account
    /// key is being rotated. Returns the new revision.
    async fn change_account(&self, change: ChangeAccount) -> Result<u32>;
    /// Puts an account back that is not there, or whose record does not open any more. A code that is not there, was used, has
    /// expired or is another account's: `login-refused`. An account that is not as the caller has read it, one that is being
    /// erased, or rings that are not those of the account: `conflict`.
    async fn restore(&self, restore: RestoreAccount) -> Result<()>;
    /// Notes that an account is being erased, so that an erasure which was cut off is found and finished. It is not undone.
    async fn mark_erasing(&self, account: &AccountId) -> Result<()>;
    /// Accounts whose erasure has begun.
    async fn erasing(&self) -> Result<Vec<AccountId>>;
    /// Removes every row of an account, and every row that names it. Call [`super::Upkeep::scrub`] afterwards.
    async fn erase(&self, account: &AccountId) -> Result<Erased>;
    /// Accounts in the order of their ids, those after this one, at most `limit`.
    async fn accounts(&self, after: Option<&AccountId>, limit: usize) -> Result<Vec<AccountId>>;
    /// How many accounts there are.
    async fn count_accounts(&self) -> Result<u64>;
}

/// A new account. Its revision, generation and epoch are 1.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// Its id, made by the server.
    pub account: AccountId,
    /// The keyed tag of its login.
    pub login: Tag,
    /// The keyed tags of its other credentials.
    pub credentials: Vec<Tag>,
    /// Its record, sealed by the server.
    pub record: Sealed,
    /// The first entry of the account's ring, and the first of the mailbox's.
    pub rings: [RingEntry; 2],
    /// All sixteen floors, shelf 0 first.
    pub floors: Vec<Sealed>,
    /// The first manifest; it expects revision 0.
    pub manifest: ManifestPut,
    /// What allows it.
    pub pass: Pass,
    /// When.
    pub now: Millis,
}

/// An account that is put back.
#[derive(Clone, Debug)]
pub struct RestoreAccount {
    /// Its id.
    pub account: AccountId,
    /// The hash of the record that the caller could not open; `None`: there is no such account.
    pub replaces: Option<Digest>,
    /// The keyed tag of its login.
    pub login: Tag,
    /// The keyed tags of its other credentials.
    pub credentials: Vec<Tag>,
    /// Its record, sealed by the server.
    pub record: Sealed,
    /// Its revision: more than before.
    pub rev: u32,
    /// The generation of the account key.
    pub generation: u32,
    /// The entries of the account's ring, and of the mailbox's.
    pub rings: Vec<RingEntry>,
    /// What becomes of the rest.
    pub rest: Rest,
    /// `H(code)`, which is used up.
    pub code: Digest,
    /// What the code has to carry.
    pub carries: Vec<u8>,
    /// When.
    pub now: Millis,
}

/// What becomes of the rest of an account that is put back.
#[derive(Clone, Debug)]
pub enum Rest {
    /// Chats, floors, manifest and data stay as they are. Its rings have to be there, entry by entry.
    Stays,
    /// It goes, and the account begins anew with these sixteen floors, shelf 0 first, and this manifest, which expects
    /// revision 0.
    Anew(Vec<Sealed>, ManifestPut),
}

/// What allows somebody to register. Which one is needed is configuration, and not decided here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Registration is open.
    Open,
    /// An invite, used up with the account that it makes: `H(code)`.
    Invite(Digest),
    /// The code that the server prints; for an empty store only: `H(code)`.
    First(Digest),
}

/// An account as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountRow {
    /// The revision of its record.
    pub rev: u32,
    /// The generation of the account key.
    pub generation: u32,
    /// Sessions of another epoch are not valid.
    pub epoch: u32,
    /// Its record, sealed by the server.
    pub record: Sealed,
    /// The number of its newest change.
    pub seq: u64,
    /// Whether its rings are frozen.
    pub state: AccountState,
}

/// Whether an account's rings are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountState {
    /// They are not.
    Active,
    /// They are, for a rotation of the account key, until it ends or until then.
    Rotating {
        /// When the freeze ends by itself.
        until: Millis,
    },
}

/// A change of an account's credentials.
#[derive(Clone, Debug)]
pub struct ChangeAccount {
    /// Whose.
    pub account: AccountId,
    /// The revision that the caller has read.
    pub expected: u32,
    /// The new login, if that changes.
    pub login: Option<Tag>,
    /// The tags of all other credentials that there are afterwards.
    pub credentials: Vec<Tag>,
    /// The new record, sealed by the server.
    pub record: Sealed,
    /// What becomes of sessions.
    pub sessions: OtherSessions,
    /// When.
    pub now: Millis,
}

/// What becomes of the sessions of an account that is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherSessions {
    /// They stay.
    Stay,
    /// All but this one end: the hash of its id. The epoch grows.
    End(Digest),
}

/// What an erasure removed, for its receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Chats.
    pub chats: u64,
    /// Messages, embeds and fields.
    pub items: u64,
    /// Devices.
    pub devices: u64,
    /// Web sessions.
    pub sessions: u64,
    /// Letters that nobody had taken.
    pub letters: u64,
    /// Snapshots that were shared.
    pub snapshots: u64,
}
