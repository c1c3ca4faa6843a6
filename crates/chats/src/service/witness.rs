//! Who did what, for an audit log that somebody else keeps.
//!
//! What opens something (a session, an export) is written down before it is given: where that fails, it is not given. What
//! changes something is written down afterwards; that it could not be is said in the log, and undoes nothing. A refusal is
//! written down beside the answer, which must not take longer for a login that somebody has.
//!
//! ```text
//! refusals ─▶ some at once, then one a second ─▶ a record each
//!          └▶ the others ─▶ counted by account ─▶ once a minute, a record with their number
//! ```
//!
//! Easy to get wrong: an audit log that strangers fill. Anybody can be refused, as often as he likes.

use async_trait::async_trait;
use confidant_chat_format::AccountId;

use super::Inner;
use super::refusals::{Answer, unavailable};
use crate::vault::VaultError;

/// Hears who did what.
#[async_trait]
pub trait Witness: Send + Sync + std::fmt::Debug {
    /// An account did something.
    async fn witness(&self, account: &AccountId, act: Act) -> Result<(), VaultError>;

    /// The same so many times, in one record.
    async fn witness_many(&self, account: &AccountId, act: Act, times: u64) -> Result<(), VaultError> {
        let _ = times;
        self.witness(account, act).await
    }
}

/// What an account did. An erasure is not among these: it has a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// It was made.
    Registered,
    /// A session began.
    LoggedIn,
    /// Somebody who is not its owner, or mistyped, wanted to do something in its name.
    Refused,
    /// A session was ended by itself.
    LoggedOut,
    /// Credentials were added or replaced.
    CredentialsChanged,
    /// A password was replaced by the recovery code.
    Recovered,
    /// The account, or a ring of it, was lost and put back from a device.
    Restored,
    /// The account key was replaced.
    KeyRotated,
    /// A device was added by another one.
    DevicePaired,
    /// A device was ended with its sessions.
    DeviceRevoked,
    /// A session was ended by another one.
    SessionRevoked,
    /// Everything was exported.
    Exported,
    /// A chat was deleted, and its key destroyed.
    ChatDeleted,
    /// A snapshot of a chat was shared.
    SnapshotMade,
    /// A snapshot was ended.
    SnapshotRevoked,
}

impl Inner {
    /// Writes down what is about to be opened; else it is not.
    pub(crate) async fn must_witness(&self, account: &AccountId, act: Act) -> Answer<()> {
        let Some(witness) = &self.hooks.witness else { return Ok(()) };
        witness.witness(account, act).await.map_err(|error| {
            tracing::warn!(%error, "chats: the audit log takes no record, so nothing was opened");
            unavailable("the server cannot write its audit log")
        })
    }

    /// Writes down what was done.
    pub(crate) async fn witness(&self, account: &AccountId, act: Act) {
        let Some(witness) = &self.hooks.witness else { return };
        if let Err(error) = witness.witness(account, act).await {
            tracing::warn!(%error, ?act, "chats: the audit log takes no record of what was done");
        }
    }

    /// Writes down a refusal, while the answer is on its way.
    pub(crate) fn witness_refusal(&self, account: &AccountId) {
        let Some(witness) = self.hooks.witness.clone() else { return };
        if !self.left_out.admit(account, self.now()) {
            return;
        }
        let account = account.clone();
        tokio::spawn(async move {
            if let Err(error) = witness.witness(&account, Act::Refused).await {
                tracing::warn!(%error, "chats: the audit log takes no record of a refusal");
            }
        });
    }

    /// Writes down how many refusals were not, since the last time.
    pub(crate) async fn witness_left_out(&self) {
        let Some(witness) = &self.hooks.witness else { return };
        let (accounts, others) = self.left_out.take();
        for (account, times) in accounts {
            if let Err(error) = witness.witness_many(&account, Act::Refused, times).await {
                tracing::warn!(%error, times, "chats: the audit log takes no record of refusals");
            }
        }
        if others > 0 {
            tracing::warn!(times = others, "chats: refusals of many accounts are in no record");
        }
    }
}
