//! Where client-sealed chats are kept.
//!
//! [`ChatStore`] is the sum of small traits; code that needs one part takes that part. None of them knows SQLite or PostgreSQL.
//!
//! ```text
//!  Accounts   registering, finding, changing, erasing       Sessions   devices and web sessions
//!  Rings      keys of chats, account, mailbox; rotation     Codes      one-use codes, pairing, delays after failed logins
//!  Lists      floors, manifest, account data                Upkeep     expiry, scrubbing, checking
//!  Chats      writes, drafts, deletion, reading             Feed       what changed since, which chats come first
//!  Letters    answers that wait for a device                Safety     what is remembered of a chat without its words
//!  Marks      answers that are on their way                Snapshots  what is shared by a link
//! ```
//!
//! - A write is one transaction: all of it happens, or none. The checks are made inside it.
//! - Every method about an account takes its id. What belongs to another account is [`StoreError::NotFound`].
//! - Time comes from the caller as [`Millis`]; nothing here reads a clock.
//! - Logins, credentials and networks arrive as keyed tags; account records, ring rows and device labels as sealed bytes.
//!
//! [`copy()`] moves a whole store to another back end.
//!
//! Easy to get wrong: a check before the transaction. Two gateways that share one store would both pass it.

mod accounts;
mod chats;
mod checks;
mod codes;
mod copy;
mod delays;
mod error;
mod feed;
mod letters;
pub mod limits;
mod lists;
mod marks;
mod names;
mod plan;
#[cfg(feature = "postgres")]
pub mod postgres;
mod rings;
mod safety;
mod sessions;
mod snapshots;
pub mod sqlite;
mod time;

#[cfg(test)]
pub(crate) mod conformance;

use async_trait::async_trait;

pub use accounts::{
    AccountRow, AccountState, Accounts, ChangeAccount, Erased, NewAccount, OtherSessions, Pass, Rest,
    RestoreAccount,
};
pub use chats::{
    ChatDelta, ChatRow, Chats, DeleteChat, DraftRow, Gone, Have, ItemLine, ItemRow, Put, PutDraft, Write,
    Written,
};
pub use codes::{Code, CodeKind, Codes, Slot};
pub use copy::{Cell, Copied, Part, Table, copy};
pub use delays::{Attempts, FREE_ATTEMPTS, LONGEST_DELAY};
pub use error::{Result, StoreError};
pub use feed::{Change, Changed, Changes, ChatLine, Feed, Phase};
pub use letters::{Kept, LetterRow, Letters, PutLetter};
pub use lists::{
    AccountList, DataRow, FloorPut, FloorRow, HaveList, ListPut, ListWrite, Lists, ManifestPut, ManifestRow,
    PutData,
};
pub use marks::{ClaimedMark, Hold, MarkRow, Marks, Pause, PutMark};
pub use rings::{BeginRotation, CommitRotation, Frozen, RingEntry, RingName, Rings, Stage, Staged};
pub use safety::{PutSafety, Safety};
pub use sessions::{Device, NewDevice, Session, Sessions};
pub use snapshots::{FoundSnapshot, PutSnapshot, SnapshotRow, Snapshots};
pub use time::Millis;

/// Everything that is kept of client-sealed chats.
pub trait ChatStore:
    Accounts + Rings + Lists + Chats + Feed + Letters + Marks + Safety + Sessions + Snapshots + Codes + Upkeep
{
}

impl<T> ChatStore for T where
    T: Accounts
        + Rings
        + Lists
        + Chats
        + Feed
        + Letters
        + Marks
        + Safety
        + Sessions
        + Snapshots
        + Codes
        + Upkeep
{
}

/// What keeps a store in order.
#[async_trait]
pub trait Upkeep: Send + Sync + std::fmt::Debug {
    /// Removes what has expired: codes, pairing slots, sessions, letters, marks, snapshots, failed logins and rotations that nobody committed.
    /// Returns how many rows went.
    async fn expire(&self, now: Millis) -> Result<u64>;
    /// Leaves nothing of erased rows behind in journals or pages. [`StoreError::Busy`] says that somebody still reads. This may
    /// take as long as copying everything, and writers wait meanwhile: once after several erasures is enough.
    async fn scrub(&self) -> Result<()>;
    /// Whether an erasure has left traces that nobody has scrubbed.
    async fn must_scrub(&self) -> Result<bool>;
    /// Checks the store for damage.
    async fn check(&self) -> Result<()>;
}
