//! What is remembered of a chat's safety for longer than its words: running scores, flags, whether it was ended.
//!
//! ```text
//! seal(chat's key, (safety, acct, chat, safety, ""), rev, bytes)       rev: 1, 2, …; bytes without content, not looked at here
//! ```
//!
//! The row outlives every cache and goes with the chat, whose key is destroyed then. Time, eviction and a resent history do not touch
//! it. Whoever can write to the database could put an older row back, or take it away: the highest revision that was seen is kept
//! beside the chat's key, in the keyring, so both are `rolled-back`. Old copies of the database and the keyring together are not
//! noticed, as with accounts.
//!
//! Easy to get wrong: the order. The row is stored first and the anchor raised after it; a process that is killed in between has
//! forgotten nothing, and the other way round the chat would be refused for ever.

use confidant_chat_format::{AccountId, ChatId, Refused};
use confidant_chat_protocol::{ErrorName, List, SafetyRecords, SafetySent, ServerEvent, Text};
use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Sealed, open, seal};
use zeroize::Zeroizing;

use super::Inner;
use super::record::SUITE;
use super::refusals::{Answer, not_found, unavailable};
use crate::store::{Have, PutSafety};

/// A chat's safety row, opened.
pub(crate) struct SafetyRow {
    /// Its revision; who replaces it names it.
    pub(crate) rev: u32,
    /// What is remembered.
    pub(crate) bytes: Zeroizing<Vec<u8>>,
}

debug_without_content!(SafetyRow { rev });

impl Inner {
    /// What is remembered of a chat; nothing if nothing was so far. Somebody put an older row back, or took it away:
    /// `rolled-back`; it does not open: `record-refused`.
    pub(crate) async fn safety(&self, account: &AccountId, chat: &ChatId) -> Answer<Option<SafetyRow>> {
        // The anchor first: a row that is stored meanwhile is newer than it.
        let seen = self.vault.chat_anchor(account, chat).await?;
        let Some(sealed) = self.store.safety(account, chat).await? else {
            if seen > 0 {
                // Unless the chat was deleted meanwhile, which is `not-found`.
                self.store.chat(account, chat, Have::ALL).await?;
                return Err(Refused::RolledBack.into());
            }
            return Ok(None);
        };
        let Some(key) = self.vault.key(account, Some(chat)).await? else {
            return Err(unavailable("the server has lost the key of something that it keeps"));
        };
        let row = open_row(&key, account, chat, &sealed)?;
        if row.rev < seen { Err(Refused::RolledBack.into()) } else { Ok(Some(row)) }
    }

    /// Remembers this in the place of revision `before`, which is 0 for the first. Somebody else did meanwhile: `conflict`.
    /// Returns the new revision.
    pub(crate) async fn remember_safety(
        &self,
        account: &AccountId,
        chat: &ChatId,
        before: u32,
        bytes: &[u8],
    ) -> Answer<u32> {
        let key = self.vault.key(account, Some(chat)).await?.ok_or_else(not_found)?;
        let rev = before.saturating_add(1);
        let sealed = seal(&key, SUITE, &context(account, chat), rev, bytes);
        let put = PutSafety { account: account.clone(), chat: chat.clone(), expected: before, sealed };
        self.store.put_safety(put).await?;
        self.vault.raise_chat(account, chat, rev).await?;
        Ok(rev)
    }

    /// What is remembered of these chats, opened, for an export. One that cannot be opened is said to be there.
    pub(crate) async fn safety_frame(&self, account: &AccountId, chats: &[ChatId]) -> Answer<ServerEvent> {
        let mut records = Vec::new();
        for chat in chats {
            let record = match self.safety(account, chat).await {
                Ok(None) => continue,
                Ok(Some(row)) => Some(Text::cut(&String::from_utf8_lossy(&row.bytes))),
                Err(refused) if matches!(refused.error, ErrorName::Content(_)) => None,
                Err(refused) => return Err(refused),
            };
            records.push(SafetySent { chat: chat.clone(), record });
        }
        Ok(ServerEvent::SafetyRecords(SafetyRecords { records: List::new(records)? }))
    }

    /// Takes the row as it is for the newest, as after restoring a backup. Says whether it was behind. One that does not open is
    /// left as it is.
    pub(crate) async fn accept_safety(&self, account: &AccountId, chat: &ChatId) -> Answer<bool> {
        let seen = self.vault.chat_anchor(account, chat).await?;
        let (sealed, key) =
            (self.store.safety(account, chat).await?, self.vault.key(account, Some(chat)).await?);
        let rev = match (&sealed, &key) {
            (None, _) => 0,
            (Some(sealed), Some(key)) => match open_row(key, account, chat, sealed) {
                Ok(row) => row.rev,
                Err(_) => return Ok(false),
            },
            (Some(_), None) => return Ok(false),
        };
        if rev < seen {
            self.vault.accept_chat(account, chat, rev).await?;
        }
        Ok(rev < seen)
    }
}

fn open_row(key: &Key, account: &AccountId, chat: &ChatId, sealed: &Sealed) -> Result<SafetyRow, Refused> {
    let opened = open(key, &context(account, chat), sealed).map_err(|_| Refused::RecordRefused)?;
    Ok(SafetyRow { rev: opened.rev, bytes: opened.data })
}

fn context<'a>(account: &'a AccountId, chat: &'a ChatId) -> Context<'a> {
    let (owner, container) = (account.as_str(), chat.as_str());
    Context { purpose: "safety", owner, container, object: "safety", field: "" }
}
