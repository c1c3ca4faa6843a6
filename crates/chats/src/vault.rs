//! The server's own keys: what they are asked for, and nothing about where they are kept.
//!
//! ```text
//! logins key ──tags──▶ logins, credentials, networks, salts
//! account key ──seals──▶ record, device labels, rings of account and mailbox     + anchor: the newest revision of the record
//! chat's key ───seals──▶ the chat's ring, its safety row, marks, snapshots          + anchor: the newest revision of the safety row
//!                                                                                destroyed with the chat
//! ```
//!
//! Whoever has `chats.db` and not these keys has no public key of a credential, no wrapped account key and no entry of a ring.
//! Easy to get wrong: the anchor. It is kept beside the key and not in the database, so that an old row which is put back is
//! found out.

#[cfg(any(test, feature = "testing"))]
mod memory;

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId};
pub use confidant_seal::{Key, Tag};

#[cfg(any(test, feature = "testing"))]
pub use memory::MemoryVault;

/// The server's keys.
#[async_trait]
pub trait Vault: Send + Sync + std::fmt::Debug {
    /// A keyed tag under the named key `logins`. It never changes, also not when the root key is rotated.
    fn tag(&self, label: &str, bytes: &[u8]) -> Tag;
    /// The key of an account (`chat` = `None`) or of one of its chats; `None` if there is none.
    async fn key(&self, account: &AccountId, chat: Option<&ChatId>) -> Result<Option<Key>, VaultError>;
    /// The same, made if there is none. Of two callers at once, both get the same.
    async fn key_or_new(&self, account: &AccountId, chat: Option<&ChatId>) -> Result<Key, VaultError>;
    /// The highest revision of the account's record that was ever seen; 0 for none.
    async fn anchor(&self, account: &AccountId) -> Result<u32, VaultError>;
    /// Raises the anchor; it never goes back.
    async fn raise(&self, account: &AccountId, rev: u32) -> Result<(), VaultError>;
    /// Sets the anchor as given, for an operator who restored a backup on purpose.
    async fn accept(&self, account: &AccountId, rev: u32) -> Result<(), VaultError>;
    /// The highest revision of the chat's safety row that was ever seen; 0 for none.
    async fn chat_anchor(&self, account: &AccountId, chat: &ChatId) -> Result<u32, VaultError>;
    /// Raises the chat's anchor; it never goes back.
    async fn raise_chat(&self, account: &AccountId, chat: &ChatId, rev: u32) -> Result<(), VaultError>;
    /// Sets the chat's anchor as given, for an operator who restored a backup on purpose.
    async fn accept_chat(&self, account: &AccountId, chat: &ChatId, rev: u32) -> Result<(), VaultError>;
    /// Whether this account was destroyed. Nothing brings such a one back.
    async fn was_destroyed(&self, account: &AccountId) -> Result<bool, VaultError>;
    /// Removes the key of an account that was not made after all. Nothing that it sealed was kept, so this may be quick and
    /// leave traces of it.
    async fn discard(&self, account: &AccountId) -> Result<(), VaultError>;
    /// Destroys the keys of these chats beyond recovery. One that is not there is destroyed already.
    async fn destroy_chats(&self, account: &AccountId, chats: &[ChatId]) -> Result<(), VaultError>;
    /// Destroys the account's key, those of all its chats, and its anchor. Once more is no error. Returns the receipt that proves
    /// it, where there is somebody to sign one.
    async fn destroy_account(&self, account: &AccountId) -> Result<Option<String>, VaultError>;
}

/// The vault cannot be asked. Says why in words that reveal no key and no id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server's keys cannot be reached ({0}); hint: try again; if the error stays, run `confidant doctor`"
)]
pub struct VaultError(pub String);
