//! Whether the server may keep the words of a chat for the next answer, as its person chose it for all devices.
//!
//! ```text
//! field `cache` of the chat: "off" ─┐
//! `cache` switched off for all ─────┴▶ every question says: keep nothing beyond this answer       else: as the question says
//! ```
//!
//! Easy to get wrong: when it is looked at. A question may wait for long, so it is when the question is sent and not when it was asked.

use confidant_chat_format::ChatId;

use crate::device::Device;
use crate::error::Error;

impl Device {
    /// Whether the server may keep the words of this chat between questions. It may, unless somebody switched that off, for this chat or
    /// for all ([`Device::switch`]).
    #[must_use]
    pub fn is_cached(&self, chat: &ChatId) -> bool {
        if self.switched_off().iter().any(|name| name == CACHE) {
            return false;
        }
        let view = self.chat(chat).ok();
        view.is_none_or(|view| view.fields.get(CACHE).is_none_or(|word| word != OFF))
    }

    /// Switches that on or off, for questions from now on. What the server has kept ends with the next question.
    pub fn set_cached(&mut self, chat: &ChatId, is_on: bool) -> Result<(), Error> {
        self.set_field(chat, CACHE, if is_on { ON } else { OFF })
    }
}

/// The field of a chat and the switch for all, and what the field says.
pub(crate) const CACHE: &str = "cache";
const ON: &str = "on";
const OFF: &str = "off";
