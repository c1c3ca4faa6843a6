//! Letters: answers that came when no device was there, sealed to the account's mailbox until one takes them.
//!
//! ```text
//! put_letter ─▶ put_letter_more ─▶ letter, letters ─▶ (the device writes the message) ─▶ take_letter
//!                                                  └▶ 30 days, or 1,000 newer ones: gone
//! ```
//!
//! A letter belongs to a turn of a chat. It goes with the chat, and with the account, in the same transaction. The store cannot
//! open it; its seal is `docs/FORMAT.md`, section 10. No device is told by the feed: a letter is not a change of the chat.
//!
//! Easy to get wrong: a second letter for one turn. A worker that repeats a turn after a kill may have another answer, and a
//! device may have read the first: the first stays. Nor is there one for an answer that a device at another gateway has stored.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, MessageId, TurnId};
use confidant_display::debug_without_content;

use super::checks::sized;
use super::{Millis, Result, limits};

/// Letters.
#[async_trait]
pub trait Letters: Send + Sync + std::fmt::Debug {
    /// Keeps a letter for a turn, whose mark goes, unless its reply is stored already, or was. If the account has [`limits::LETTERS`] already, the oldest
    /// goes. A chat that is not there: `not-found`.
    async fn put_letter(&self, put: PutLetter) -> Result<Kept>;
    /// Adds what came after the answer, sealed likewise; the first stays. No letter for this turn: `not-found`.
    async fn put_letter_more(
        &self,
        account: &AccountId,
        chat: &ChatId,
        turn: &TurnId,
        more: Vec<u8>,
    ) -> Result<Kept>;
    /// The letter of a turn, if there is one.
    async fn letter(&self, account: &AccountId, chat: &ChatId, turn: &TurnId) -> Result<Option<LetterRow>>;
    /// The account's letters in the order of (chat, turn), those after this one, as many as fit into `bytes`, at least one. None
    /// at the end.
    async fn letters(
        &self,
        account: &AccountId,
        after: Option<(ChatId, TurnId)>,
        bytes: usize,
    ) -> Result<Vec<LetterRow>>;
    /// Removes a letter, and the mark of its turn; says whether there was one. Once more is no error.
    async fn take_letter(&self, account: &AccountId, chat: &ChatId, turn: &TurnId) -> Result<bool>;
}

/// A new letter.
#[derive(Clone)]
pub struct PutLetter {
    /// Whose.
    pub account: AccountId,
    /// In which chat.
    pub chat: ChatId,
    /// The turn that it answers.
    pub turn: TurnId,
    /// The id that the client picked for the reply.
    pub reply: MessageId,
    /// The letter, sealed to the mailbox's key.
    pub letter: Vec<u8>,
    /// When.
    pub now: Millis,
}

/// Whether something was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was.
    Now,
    /// There was one already, which stays; or the answer itself was stored.
    Before,
}

/// A letter as stored.
#[derive(Clone, PartialEq, Eq)]
pub struct LetterRow {
    /// In which chat.
    pub chat: ChatId,
    /// The turn that it answers.
    pub turn: TurnId,
    /// The id that the client picked for the reply.
    pub reply: MessageId,
    /// The letter, sealed to the mailbox's key.
    pub letter: Vec<u8>,
    /// What came after the answer, sealed likewise.
    pub more: Option<Vec<u8>>,
    /// When it was left.
    pub left_at: Millis,
}

debug_without_content!(PutLetter { now }, LetterRow { left_at });

/// Shape of a letter, before the store is asked anything.
pub(crate) fn check_letter(put: &PutLetter) -> Result<()> {
    sized(&put.letter, limits::LETTER_BYTES, "letter")
}

/// Shape of what is added to a letter.
pub(crate) fn check_more(more: &[u8]) -> Result<()> {
    sized(more, limits::MORE_BYTES, "addition to a letter")
}

/// Letters that were left by then have expired.
pub(crate) fn expired_by(now: Millis) -> Millis {
    let life = u64::try_from(limits::LETTER_LIFE.as_millis()).unwrap_or(u64::MAX);
    Millis(now.0.saturating_sub(life))
}
