//! What a server remembers of a chat's safety, as an export has it: scores and flags, without a word of the chat.
//!
//! It is the server's own record, sealed for it alone, so it comes opened. Easy to get wrong: taking it for the chat's. A device neither
//! needs nor checks it.

use confidant_chat_format::ChatId;

use crate::limits::{MAX_BATCH, MAX_SAFETY};
use crate::lists::List;
use crate::shapes::objects;
use crate::values::Text;

objects! {
    /// What the server remembers of the safety of some chats; those that it remembers nothing of are left out.
    pub struct SafetyRecords {
        /// The records.
        pub records: List<SafetySent, MAX_BATCH>,
    }

    /// What the server remembers of a chat's safety.
    pub struct SafetySent {
        /// The chat.
        pub chat: ChatId,
        /// The record in JSON: running scores, and whether it was flagged or ended. Left out if it cannot be opened.
        pub record: Option<Text<MAX_SAFETY>>,
    }
}
