//! Letters: answers that came when no device was there, sealed to the account's mailbox.
//!
//! A device opens a letter with a key of its mailbox's ring, and believes it only if the chat's sealed head waits for that reply.

use confidant_chat_format::{ChatId, MessageId, TurnId};

use crate::limits::{MAX_LETTERS, MAX_MESSAGE, MAX_RECORD};
use crate::lists::List;
use crate::shapes::objects;
use crate::values::Blob;

objects! {
    /// Letters that wait for a device.
    pub struct LettersWaiting {
        /// The letters, in the order of chat and turn.
        pub letters: List<LetterSent, MAX_LETTERS>,
        /// Whether more follow in another message.
        pub more: bool,
    }

    /// An answer that waits for a device.
    pub struct LetterSent {
        /// The chat.
        pub chat: ChatId,
        /// The turn that it answers.
        pub turn: TurnId,
        /// The id that the client picked for the reply.
        pub reply: MessageId,
        /// The reply, sealed to the mailbox's public key.
        pub letter: Blob<MAX_MESSAGE>,
        /// What came after the answer, sealed likewise.
        pub more: Option<Blob<MAX_RECORD>>,
        /// When it was left, in milliseconds since 1970.
        pub left_at: u64,
    }
}
