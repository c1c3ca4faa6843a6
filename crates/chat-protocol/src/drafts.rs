//! Drafts and account data: records outside every list, whose own revision protects them.
//!
//! A draft is what was typed into a chat and not sent. Account data is settings, suggestions for new chats and the
//! like, by kind and name. Both are written against the revision before; a device that is behind gets `write_conflict`.

use confidant_chat_format::{ChatId, FieldName};

use crate::limits::{MAX_DATA, MAX_DRAFT, MAX_RECORD};
use crate::lists::List;
use crate::shapes::objects;
use crate::values::Envelope;

objects! {
    /// Stores a draft. At most every five seconds. Answer: `chat_draft_updated`.
    pub struct UpdateDraft {
        /// The chat.
        pub chat: ChatId,
        /// The draft's revision before; 0 if there is none.
        pub expected: u32,
        /// The sealed draft.
        pub draft: Envelope<MAX_DRAFT>,
    }

    /// Removes a draft. Answer: `draft_deleted`.
    pub struct DeleteDraft {
        /// The chat.
        pub chat: ChatId,
        /// The draft's revision.
        pub expected: u32,
    }

    /// A draft was stored: the answer to the device that wrote it, and the news for the others.
    pub struct ChatDraftUpdated {
        /// The chat.
        pub chat: ChatId,
        /// The draft's revision now.
        pub draft_v: u32,
        /// The sealed draft; left out for the device that wrote it.
        pub draft: Option<Envelope<MAX_DRAFT>>,
    }

    /// A draft was removed.
    pub struct DraftDeleted {
        /// The chat.
        pub chat: ChatId,
        /// Its last revision; the next draft has a greater one.
        pub draft_v: u32,
    }

    /// Stores a piece of account data. Answer: `data_updated`.
    pub struct UpdateData {
        /// What kind: `settings`, `suggestion`.
        pub kind: FieldName,
        /// Its name.
        pub name: FieldName,
        /// Its revision before; 0 for a new one.
        pub expected: u32,
        /// The sealed data.
        pub data: Envelope<MAX_RECORD>,
    }

    /// Removes a piece of account data. Answer: `data_updated` without data.
    pub struct DeleteData {
        /// What kind.
        pub kind: FieldName,
        /// Its name.
        pub name: FieldName,
        /// Its revision.
        pub expected: u32,
    }

    /// Asks for account data. Answer: `data_records`, perhaps several.
    pub struct RequestData {
        /// Only this kind.
        pub kind: Option<FieldName>,
    }

    /// Pieces of account data.
    pub struct DataRecords {
        /// The pieces.
        pub records: List<DataSent, MAX_DATA>,
        /// Whether more follow in another message.
        pub more: bool,
    }

    /// A piece of account data as the server has it.
    pub struct DataSent {
        /// What kind.
        pub kind: FieldName,
        /// Its name.
        pub name: FieldName,
        /// The sealed data.
        pub data: Envelope<MAX_RECORD>,
    }

    /// A piece of account data was stored or removed: the answer to the device that did it, and the news for the
    /// others.
    pub struct DataUpdated {
        /// What kind.
        pub kind: FieldName,
        /// Its name.
        pub name: FieldName,
        /// Its revision now; of a removed one, the last.
        pub rev: u32,
        /// Whether it was removed.
        pub removed: bool,
        /// The sealed data; left out when it was removed, and for the device that wrote it.
        pub data: Option<Envelope<MAX_RECORD>>,
    }
}
