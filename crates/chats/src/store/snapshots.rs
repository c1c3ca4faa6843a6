//! Snapshots: branches of chats that their owner shares with whoever has a link.
//!
//! ```text
//! put_snapshot ─▶ find_snapshot, for whoever has the link ─▶ revoke_snapshot | its time | its chat: gone
//!                 snapshots, snapshot_content: for its owner
//! ```
//!
//! A row has the digest of the snapshot's id, and what the server sealed under the chat's key: so a row that somebody puts back after
//! the chat or the account went opens nothing, whoever has the link. It goes with its chat, in the same transaction.
//!
//! Easy to get wrong: one id of two accounts. Whoever opens a link names no account, so an id is taken once, by whoever it is.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, Digest};
use confidant_display::debug_without_content;
use confidant_seal::Sealed;

use super::checks::sized;
use super::{Millis, Result, limits};

/// Snapshots.
#[async_trait]
pub trait Snapshots: Send + Sync + std::fmt::Debug {
    /// Keeps a snapshot. A chat that is not there: `not-found`; an id that is taken: `duplicate`; [`limits::SNAPSHOTS`] of the account:
    /// `too-many`.
    async fn put_snapshot(&self, put: PutSnapshot) -> Result<()>;
    /// The account's snapshots that are not over, without their content.
    async fn snapshots(&self, account: &AccountId, now: Millis) -> Result<Vec<SnapshotRow>>;
    /// The content of one of the account's snapshots.
    async fn snapshot_content(&self, account: &AccountId, id: Digest) -> Result<Option<Sealed>>;
    /// A snapshot that is not over, whosever it is.
    async fn find_snapshot(&self, id: Digest, now: Millis) -> Result<Option<FoundSnapshot>>;
    /// Removes one of the account's snapshots; says whether there was one.
    async fn revoke_snapshot(&self, account: &AccountId, id: Digest) -> Result<bool>;
}

/// A new snapshot.
#[derive(Clone)]
pub struct PutSnapshot {
    /// Whose.
    pub account: AccountId,
    /// Of which chat.
    pub chat: ChatId,
    /// The digest of its id.
    pub id: Digest,
    /// Until when it can be opened.
    pub expires_at: Millis,
    /// What its owner sees in a list, sealed by the server.
    pub line: Sealed,
    /// What its link opens, sealed by the server.
    pub content: Sealed,
    /// When.
    pub now: Millis,
}

/// A snapshot as stored, without its content.
#[derive(Clone, PartialEq, Eq)]
pub struct SnapshotRow {
    /// Of which chat.
    pub chat: ChatId,
    /// The digest of its id.
    pub id: Digest,
    /// Until when it can be opened.
    pub expires_at: Millis,
    /// What its owner sees in a list, sealed by the server.
    pub line: Sealed,
}

/// A snapshot that somebody has the id of.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundSnapshot {
    /// Whose.
    pub account: AccountId,
    /// Of which chat.
    pub chat: ChatId,
    /// What its owner sees in a list, sealed by the server.
    pub line: Sealed,
    /// What its link opens, sealed by the server.
    pub content: Sealed,
}

debug_without_content!(
    PutSnapshot { expires_at, now },
    SnapshotRow { expires_at },
    FoundSnapshot { bytes: content.as_bytes().len() }
);

/// Shape of a snapshot, before the store is asked anything.
pub(crate) fn check_snapshot(put: &PutSnapshot) -> Result<()> {
    sized(put.line.as_bytes(), limits::SNAPSHOT_LINE_BYTES, "snapshot")?;
    sized(put.content.as_bytes(), limits::SNAPSHOT_BYTES, "snapshot")
}
