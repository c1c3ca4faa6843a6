//! Marks of answers that are on their way: a turn has been given to whoever answers, and no device has its answer yet.
//!
//! ```text
//! put_mark ─▶ hold_mark, while a process has the turn in hand ─▶ put_letter | take_letter: gone, in the same step
//!                  │ nobody does any more
//!                  └▶ claim_marks: whoever finds it due looks what became of the turn, and leaves the letter
//! ```
//!
//! So an answer is not lost with the process that was asked for it. A mark has no words: the server seals the ids and digests that a
//! letter needs under the chat's key. It goes with its chat, in the same transaction, and after 30 days.
//!
//! Easy to get wrong: taking a mark for a lock. Two processes may look at one at the same time, after a pause say; that there is one
//! letter is promised by [`Letters::put_letter`](super::Letters::put_letter).

use std::time::Duration;

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, TurnId};
use confidant_display::debug_without_content;
use confidant_seal::Sealed;

use super::checks::sized;
use super::{Millis, Result, limits};

/// Marks.
#[async_trait]
pub trait Marks: Send + Sync + std::fmt::Debug {
    /// Marks a turn, as one that somebody has in hand. One that is marked already is so anew, from its first time on. If the account has
    /// [`limits::MARKS`] already, the oldest goes. A chat that is not there: `not-found`.
    async fn put_mark(&self, put: PutMark) -> Result<()>;
    /// The mark of a turn, if there is one.
    async fn mark(&self, account: &AccountId, chat: &ChatId, turn: &TurnId) -> Result<Option<MarkRow>>;
    /// Somebody has the turn in hand, or nobody any more; until then others do not look at it. Whether there is such a mark.
    async fn hold_mark(&self, account: &AccountId, chat: &ChatId, turn: &TurnId, hold: Hold) -> Result<bool>;
    /// At most so many marks, of any account, that are due now. Each is due again after a pause that grows with its age, and nobody has it
    /// in hand.
    async fn claim_marks(&self, now: Millis, pause: Pause, most: usize) -> Result<Vec<ClaimedMark>>;
    /// Removes a mark; says whether there was one.
    async fn drop_mark(&self, account: &AccountId, chat: &ChatId, turn: &TurnId) -> Result<bool>;
}

/// A turn that is to be marked.
#[derive(Clone)]
pub struct PutMark {
    /// Whose.
    pub account: AccountId,
    /// In which chat.
    pub chat: ChatId,
    /// The turn.
    pub turn: TurnId,
    /// What a letter needs, sealed by the server.
    pub sealed: Sealed,
    /// When.
    pub now: Millis,
    /// When others may look at it.
    pub look_at: Millis,
}

/// Who has a turn in hand, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Whether somebody has.
    pub held: bool,
    /// When others may look at it.
    pub look_at: Millis,
}

/// How long nobody looks at a mark again: a quarter of its age, within these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// At least.
    pub shortest: Duration,
    /// At most.
    pub longest: Duration,
}

/// A mark as stored.
#[derive(Clone, PartialEq, Eq)]
pub struct MarkRow {
    /// When the turn was marked first.
    pub asked_at: Millis,
    /// Who has it in hand.
    pub hold: Hold,
    /// What a letter needs, sealed by the server.
    pub sealed: Sealed,
}

/// A mark that was due.
#[derive(Clone, PartialEq, Eq)]
pub struct ClaimedMark {
    /// Whose.
    pub account: AccountId,
    /// In which chat.
    pub chat: ChatId,
    /// The turn.
    pub turn: TurnId,
    /// When the turn was marked first.
    pub asked_at: Millis,
    /// What a letter needs, sealed by the server.
    pub sealed: Sealed,
}

debug_without_content!(PutMark { now, look_at }, MarkRow { asked_at, hold }, ClaimedMark { asked_at });

/// Shape of a mark, before the store is asked anything.
pub(crate) fn check_mark(put: &PutMark) -> Result<()> {
    sized(put.sealed.as_bytes(), limits::MARK_BYTES, "mark")
}

/// In milliseconds, as the stores count them.
pub(crate) fn in_millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
