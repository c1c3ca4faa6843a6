//! Safety rows: what the server has to remember of a chat for longer than its words, such as a running score.
//!
//! One row per chat, sealed by the server under the chat's key, without content. It is replaced by compare-and-set, so that
//! of two gateways which count at once, one counts again. It goes with the chat and with nothing else.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId};
use confidant_seal::Sealed;

use super::checks::sized;
use super::{Result, StoreError, limits};

/// Safety rows.
#[async_trait]
pub trait Safety: Send + Sync + std::fmt::Debug {
    /// Puts a chat's row. `conflict` carries the revision that is there. A chat that is not there: `not-found`.
    async fn put_safety(&self, put: PutSafety) -> Result<()>;
    /// A chat's row; nothing if there is none.
    async fn safety(&self, account: &AccountId, chat: &ChatId) -> Result<Option<Sealed>>;
}

/// A chat's new row.
#[derive(Clone, Debug)]
pub struct PutSafety {
    /// Whose.
    pub account: AccountId,
    /// Of which chat.
    pub chat: ChatId,
    /// The revision that it replaces; 0 for the first.
    pub expected: u32,
    /// It, sealed by the server; its revision is one more than `expected`.
    pub sealed: Sealed,
}

/// Shape of a row, before the store is asked anything. Gives its revision.
pub(crate) fn check_safety(put: &PutSafety) -> Result<u32> {
    sized(put.sealed.as_bytes(), limits::SAFETY_BYTES, "safety row")?;
    match put.sealed.rev() {
        Some(rev) if put.expected.checked_add(1) == Some(rev) => Ok(rev),
        _ => Err(StoreError::Malformed("the safety row's revision is not the next one")),
    }
}

/// Whether the row that is there is the one to be replaced.
pub(crate) fn replaces(expected: u32, there: u32) -> Result<()> {
    if expected == there { Ok(()) } else { Err(StoreError::Conflict { now: there }) }
}
