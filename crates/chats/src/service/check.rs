//! Whether everything that the server sealed of accounts opens, and is the newest: for an operator who looks after it.
//!
//! What people sealed cannot be looked at here. Their devices find out whether a part of it is missing or old.

use confidant_chat_format::AccountId;
use confidant_chat_protocol::{ErrorName, RefusedSent};

use super::record::AccountRecord;
use super::refusals::Answer;
use super::rows::open_entry;
use super::{Inner, Service};
use crate::store::{AccountRow, RingName, StoreError, limits};

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Accounts whose record and rings open.
    pub accounts: u64,
    /// Those that do not, by a tag that only the server can make, with the name of the reason.
    pub refused: Vec<(String, &'static str)>,
}

impl Service {
    /// Opens the record, every ring, every safety row and every snapshot of every account.
    pub async fn check(&self) -> Result<Checked, RefusedSent> {
        let this = &*self.inner;
        let (mut checked, mut after) = (Checked::default(), None);
        loop {
            let page = this.store.accounts(after.as_ref(), limits::PAGE).await?;
            let Some(last) = page.last() else { return Ok(checked) };
            after = Some(last.clone());
            for account in &page {
                match this.fault(account).await? {
                    None => checked.accounts += 1,
                    Some(reason) => {
                        let tag = this.vault.tag("account", account.as_str().as_bytes());
                        checked.refused.push((tag.to_string(), reason));
                    }
                }
            }
        }
    }

    /// Takes the records as they are now for the newest, as after restoring a backup; says how many accounts were
    /// behind, with what is remembered of their chats. What does not open is left as it is.
    pub async fn accept_restore(&self) -> Result<u64, RefusedSent> {
        let this = &*self.inner;
        let (mut behind, mut after) = (0, None);
        loop {
            let page = this.store.accounts(after.as_ref(), limits::PAGE).await?;
            let Some(last) = page.last() else { return Ok(behind) };
            after = Some(last.clone());
            for account in &page {
                let Some((row, Ok(_))) = this.look_at(account).await? else { continue };
                let mut is_behind = row.rev < this.vault.anchor(account).await?;
                if is_behind {
                    this.vault.accept(account, row.rev).await?;
                }
                for line in this.lines(account).await? {
                    is_behind |= this.accept_safety(account, &line.chat).await?;
                }
                behind += u64::from(is_behind);
            }
        }
    }
}

/// An account's row, and its record if it opens.
type Opened = (AccountRow, Result<AccountRecord, &'static str>);

impl Inner {
    /// An account as it is; `None` if it went meanwhile.
    async fn look_at(&self, account: &AccountId) -> Answer<Option<Opened>> {
        let row = match self.store.account(account).await {
            Err(StoreError::NotFound) => return Ok(None),
            row => row?,
        };
        let record = match self.vault.key(account, None).await? {
            None => Err("key-gone"),
            Some(key) => AccountRecord::open(&key, account, &row).map_err(|refused| refused.name()),
        };
        Ok(Some((row, record)))
    }

    /// What is wrong with what is remembered of an account's chats, if anything is.
    async fn safety_fault(&self, account: &AccountId) -> Answer<Option<&'static str>> {
        for line in self.lines(account).await? {
            match self.safety(account, &line.chat).await {
                Err(refused) if matches!(refused.error, ErrorName::Content(_)) => {
                    return Ok(Some(refused.error.name()));
                }
                // A chat that was deleted meanwhile.
                Err(refused) if refused.error.status() == 404 => {}
                looked => drop(looked?),
            }
        }
        Ok(None)
    }

    /// What is wrong with an account, if anything is.
    async fn fault(&self, account: &AccountId) -> Answer<Option<&'static str>> {
        let Some((row, record)) = self.look_at(account).await? else { return Ok(None) };
        if let Err(reason) = record {
            return Ok(Some(reason));
        }
        if row.rev < self.vault.anchor(account).await? {
            return Ok(Some("rolled-back"));
        }
        let mut after: Option<(RingName, u32)> = None;
        let mut key = None;
        loop {
            let page = self.store.rings(account, after.clone()).await?;
            if page.is_empty() {
                return match self.safety_fault(account).await? {
                    None if !self.snapshots_open(account).await? => Ok(Some("record-refused")),
                    fault => Ok(fault),
                };
            }
            for row in page {
                if after.as_ref().is_none_or(|(of, _)| *of != row.of) {
                    key = self.ring_key(account, &row.of).await?;
                }
                after = Some((row.of.clone(), row.entry.n));
                let Some(key) = &key else { return Ok(Some("key-gone")) };
                if let Err(refused) = open_entry(key, account, &row.of, row.entry) {
                    return Ok(Some(refused.name()));
                }
            }
        }
    }
}
