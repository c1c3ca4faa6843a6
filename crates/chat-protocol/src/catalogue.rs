//! What answers may use here, so that a person can switch some of it off: tools and focus modes, by name.
//!
//! Nothing of a person or a chat is in it. What is off is sealed account data of the person, and in each question (`off`): a tool by its name, a
//! focus mode as `focus:` and its name.

use crate::limits::{MAX_CATALOGUE, MAX_FRAME, MAX_SHORT};
use crate::lists::List;
use crate::shapes::objects;
use crate::values::Text;

/// What a focus mode's name has before it in `off`.
pub const FOCUS_MODE: &str = "focus:";

objects! {
    /// Asks what answers may use.
    pub struct RequestCatalogue {}

    /// What answers in this account's chats may use now.
    pub struct Catalogue (limit MAX_FRAME) {
        /// Tools, without those of the program itself, which have words of their own in `off`.
        pub tools: List<CatalogueEntry, MAX_CATALOGUE>,
        /// Focus modes.
        pub focus_modes: List<CatalogueEntry, MAX_CATALOGUE>,
        /// Whether there are no others: a gateway does not know the tools of its workers.
        pub whole: bool,
    }

    /// A tool or a focus mode.
    pub struct CatalogueEntry {
        /// Its name.
        pub name: Text<MAX_SHORT>,
        /// What people call it, if that is something else.
        pub title: Option<Text<MAX_SHORT>>,
        /// What it is for, in a line; empty if nobody said so. For a tool, that is its server's word.
        pub about: Text<MAX_SHORT>,
    }
}
