//! Who did what, for an audit log that somebody else keeps.
//!
//! What opens something (a session, an export) is written down before it is given: where that fails, it is not given. What
//! changes something is written down afterwards; that it could not be is said in the log, and undoes nothing. A refusal is
//! written down beside the answer, which must not take longer for a login that somebody has.

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
        let account = account.clone();
        tokio::spawn(async move {
            if let Err(error) = witness.witness(&account, Act::Refused).await {
                tracing::warn!(%error, "chats: the audit log takes no record of a refusal");
            }
        });
    }
}
