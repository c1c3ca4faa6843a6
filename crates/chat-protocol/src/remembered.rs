//! What a server keeps of a chat beyond its words, because the person switched that on for it.
//!
//! The switch is in the sealed chat, which a server cannot read; so each question says what is on, and the device asks the server to
//! forget what is switched off. Easy to get wrong: leaving the list out. A question without it uses and keeps nothing of the kind, and
//! leaves what there is; an empty list has it forgotten.

use confidant_chat_format::ChatId;

use crate::limits::{MAX_RECEIPT, MAX_RECORDS, MAX_REMEMBERED};
use crate::lists::List;
use crate::shapes::{objects, words};
use crate::values::Text;

words! {
    /// What a server may keep of a chat.
    pub enum Remembered {
        /// Public concepts (rules, taxes, terms) that answers of the chat named, for its later answers.
        Concepts = "concepts",
    }
}

objects! {
    /// Asks to forget what is kept of a chat: the person switched it off. Answer: `remembered_forgotten`.
    pub struct ForgetRemembered {
        /// The chat.
        pub chat: ChatId,
        /// What.
        pub what: Remembered,
    }

    /// It is forgotten: the keys that it was sealed under are destroyed.
    pub struct RememberedForgotten {
        /// The chat.
        pub chat: ChatId,
        /// What.
        pub what: Remembered,
        /// The receipt, as `confidant audit verify --receipt` reads it; left out if nothing was kept.
        pub receipt: Option<Text<MAX_RECEIPT>>,
    }

    /// What the server keeps of some chats beyond their words; in as many frames as it takes.
    pub struct RememberedRecords {
        /// The records, those of a chat in the order in which they were made.
        pub records: List<RememberedSent, MAX_RECORDS>,
    }

    /// One thing that the server keeps of a chat.
    pub struct RememberedSent {
        /// The chat.
        pub chat: ChatId,
        /// What kind.
        pub what: Remembered,
        /// The record in JSON.
        pub record: Text<MAX_REMEMBERED>,
    }
}
