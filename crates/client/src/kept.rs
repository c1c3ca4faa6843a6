//! What the server may keep of a chat, as its person chose it for all devices: its words for the next answer, and more only where that was
//! switched on.
//!
//! ```text
//! field `cache` of the chat: "off" ──────┐
//! `cache` switched off for all ──────────┴▶ every question says: keep nothing beyond this answer       else: as the question says
//! field `remembers`: ["concepts"] ────────▶ every question says: keep these, and use them              else: forget what there is
//! `concepts` switched off for all ────────▶ no question says anything of them: nothing is kept, used or forgotten
//! ```
//!
//! Easy to get wrong: when it is looked at. A question may wait for long, so it is when the question is sent and not when it was asked.

use confidant_chat_format::ChatId;
use confidant_chat_protocol::limits::MAX_REMEMBERS;
use confidant_chat_protocol::{ClientEvent, ForgetRemembered, List, Remembered, ServerEvent};

use crate::device::Device;
use crate::error::Error;

impl Device {
    /// Whether the server may keep the words of this chat between questions. It may, unless the chat is a temporary one or somebody switched that
    /// off, for this chat or for all ([`Device::switch`]).
    #[must_use]
    pub fn is_cached(&self, chat: &ChatId) -> bool {
        if self.is_temporary(chat) || self.switched_off().iter().any(|name| name == CACHE) {
            return false;
        }
        let view = self.chat(chat).ok();
        view.is_none_or(|view| view.fields.get(CACHE).is_none_or(|word| word != OFF))
    }

    /// Switches that on or off, for questions from now on. What the server has kept ends with the next question.
    pub fn set_cached(&mut self, chat: &ChatId, is_on: bool) -> Result<(), Error> {
        self.set_field(chat, CACHE, if is_on { ON } else { OFF })
    }

    /// What the server may keep of this chat beyond its words. Nothing at first.
    #[must_use]
    pub fn remembers(&self, chat: &ChatId) -> Vec<Remembered> {
        let view = self.chat(chat).ok();
        let names =
            view.and_then(|view| serde_json::from_str::<Vec<String>>(view.fields.get(REMEMBERS)?).ok());
        let names = names.unwrap_or_default();
        Remembered::ALL.iter().copied().filter(|one| names.iter().any(|name| name == one.name())).collect()
    }

    /// Switches on for this chat, on all devices, that the server keeps this and uses it for its answers; or off again. What it has is
    /// forgotten with the next question, or at once by [`Device::forget_remembered`].
    pub fn set_remembered(&mut self, chat: &ChatId, what: Remembered, is_on: bool) -> Result<(), Error> {
        let mut all = self.remembers(chat);
        all.retain(|one| *one != what);
        if is_on {
            all.push(what);
        }
        let names: Vec<&str> = all.iter().map(|one| one.name()).collect();
        let names = serde_json::to_string(&names).map_err(|_| Error::Damaged)?;
        self.set_field(chat, REMEMBERS, &names)
    }

    /// Has the server forget what it keeps of this chat; its receipt, if there was anything.
    pub async fn forget_remembered(
        &mut self,
        chat: &ChatId,
        what: Remembered,
    ) -> Result<Option<String>, Error> {
        let forget = ForgetRemembered { chat: chat.clone(), what };
        match self.request_one(ClientEvent::ForgetRemembered(forget)).await?.1 {
            ServerEvent::RememberedForgotten(done) if done.chat == *chat && done.what == what => {
                Ok(done.receipt.map(|receipt| receipt.as_str().to_owned()))
            }
            _ => Err(Error::Unexpected),
        }
    }

    /// What a question says of it.
    pub(crate) fn remembered_with(
        &self,
        chat: &ChatId,
        off: &[String],
    ) -> Result<Option<List<Remembered, MAX_REMEMBERS>>, Error> {
        let all = self.remembers(chat);
        if Remembered::ALL.iter().any(|one| off.iter().any(|name| name == one.name())) {
            return Ok(None);
        }
        Ok(Some(List::new(all)?))
    }
}

/// The field of a chat and the switch for all, and what the field says.
pub(crate) const CACHE: &str = "cache";
/// The field of a chat that says what is kept of it.
const REMEMBERS: &str = "remembers";
const ON: &str = "on";
const OFF: &str = "off";
