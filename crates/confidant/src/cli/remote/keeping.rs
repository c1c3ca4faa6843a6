//! What the server keeps of a chat beyond its words, as the person switched it on for that chat: `/keep`.
//!
//! Easy to get wrong: switching off without a server. The sealed chat says so at once, and the server forgets with the next question.

use anyhow::anyhow;
use confidant_chat_format::ChatId;
use confidant_chat_protocol::Remembered;
use confidant_client::Error;
use serde_json::json;

use super::Remote;
use crate::output::note;

impl Remote<'_> {
    pub(super) async fn keep(&mut self, rest: &str) -> anyhow::Result<()> {
        let chat = self.open_chat()?;
        if !rest.is_empty() {
            let hint = || anyhow!("say what, and on or off; hint: /keep concepts on");
            let (name, to) = rest.rsplit_once(' ').ok_or_else(hint)?;
            let what = Remembered::ALL.iter().find(|one| one.name() == name.trim()).ok_or_else(hint)?;
            let is_on = match to {
                "on" => true,
                "off" => false,
                _ => return Err(hint()),
            };
            self.device.set_remembered(&chat, *what, is_on)?;
            self.send().await?;
            if !is_on {
                self.forget_one(&chat, *what).await?;
            } else if !self.device.is_cached(&chat) {
                note("/cache is off for this chat, so nothing is kept until it is on");
            }
        }
        for what in self.device.remembers(&chat) {
            let name = what.name();
            self.show(json!({ "keeps": name }), &format!("the server keeps of this chat: {name}"), None)?;
        }
        Ok(())
    }

    /// A chat goes: what is kept of it is forgotten first, for the receipt. Where that cannot be done now, it goes with the chat.
    pub(super) async fn forget_kept(&mut self, chat: &ChatId) -> anyhow::Result<()> {
        for what in self.device.remembers(chat) {
            self.forget_one(chat, what).await?;
        }
        Ok(())
    }

    async fn forget_one(&mut self, chat: &ChatId, what: Remembered) -> anyhow::Result<()> {
        match self.device.forget_remembered(chat, what).await {
            Ok(Some(receipt)) => {
                let line = json!({ "forgotten": what.name(), "receipt": receipt });
                self.show(line, "forgotten; the receipt", Some(&receipt))
            }
            Ok(None) => Ok(()),
            Err(Error::Offline | Error::NotLoggedIn | Error::LoggedOut(_) | Error::Frozen) => {
                note(
                    "offline: the server forgets it with the next question in this chat, or when the chat is deleted",
                );
                Ok(())
            }
            // A chat that was never stored.
            Err(Error::Denied { error, .. }) if error.name() == "not-found" => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
