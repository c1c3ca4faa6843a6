//! What changed since a device last looked, and which chats it should load first.
//!
//! Every change of an account gets the next number, without gaps: 1, 2, 3, … A device that has seen 41 asks for what came
//! after 41. Old changes may be dropped; a device that is further behind than that loads everything anew.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, FieldName};

use super::{Millis, Result};

/// The change feed and the order of synchronising.
#[async_trait]
pub trait Feed: Send + Sync + std::fmt::Debug {
    /// Changes after number `since`, the oldest first, at most `limit`.
    async fn changes(&self, account: &AccountId, since: u64, limit: usize) -> Result<Changes>;
    /// Chats, in the order in which a device loads them.
    async fn lines(&self, account: &AccountId, phase: Phase) -> Result<Vec<ChatLine>>;
    /// Drops changes up to number `until`. Returns how many went.
    async fn trim_feed(&self, account: &AccountId, until: u64) -> Result<u64>;
}

/// Changes since a device last looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The number of the newest change.
    pub newest: u64,
    /// Whether changes after `since` were dropped: the device has to load everything anew. Then there are none here.
    pub is_behind: bool,
    /// The changes.
    pub changes: Vec<Change>,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its number.
    pub seq: u64,
    /// What changed.
    pub what: Changed,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The account: its record, credentials, generation.
    Account,
    /// Floors and manifest, and perhaps the rings of account and mailbox.
    List,
    /// A chat was written to.
    Chat(ChatId),
    /// A chat was deleted.
    Deleted(ChatId),
    /// A chat's draft.
    Draft(ChatId),
    /// A piece of account data: its kind and its name.
    Data(FieldName, FieldName),
    /// Devices.
    Devices,
}

/// Which chats to load now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// First: the one that was opened last.
    LastOpened,
    /// Second: the 20 written to most recently.
    Recent,
    /// Third: the next 80.
    Rest,
    /// On demand: those before this one, in the same order; at most so many.
    Older(Millis, ChatId, usize),
}

/// A chat in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatLine {
    /// Which.
    pub chat: ChatId,
    /// The revision of its head.
    pub messages_v: u32,
    /// Grows with its title.
    pub title_v: u32,
    /// The revision of its draft.
    pub draft_v: u32,
    /// When it was last written to.
    pub updated_at: Millis,
}

/// Chats of the second phase.
pub(crate) const RECENT: i64 = 20;
/// Chats of the second and third.
pub(crate) const REST: i64 = 100;
