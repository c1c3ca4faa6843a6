//! What counts once: challenges, tickets, one-time passwords, invites, pairing slots; and the delays after failed logins.
//!
//! A code is a row under the hash of its secret. Whoever removes the row has used the code, so of several processes that
//! share the store, one wins. A code that has expired is not there, whether or not its row is.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Digest};
use confidant_display::debug_without_content;
use confidant_seal::{Sealed, Tag};

use super::delays::Attempts;
use super::{Millis, Result};

/// One-use codes, pairing, delays.
#[async_trait]
pub trait Codes: Send + Sync + std::fmt::Debug {
    /// Keeps a code until it is used or expires. One that is there already: `conflict`.
    async fn issue(&self, code: Code) -> Result<()>;
    /// Uses a code up: gives what it carries, once.
    async fn consume(&self, kind: CodeKind, key: Digest, now: Millis) -> Result<Option<Code>>;
    /// What a code carries, without using it up.
    async fn peek(&self, kind: CodeKind, key: Digest, now: Millis) -> Result<Option<Code>>;
    /// Uses up a code that nobody has issued, such as the step of a one-time password: true the first time only. It is
    /// remembered until it expires.
    async fn spend(&self, code: Code, now: Millis) -> Result<bool>;

    /// Opens a pairing slot for two minutes: a new device leaves its public key. A slot that is there already: `conflict`.
    async fn open_slot(&self, id: [u8; 16], offer: Vec<u8>, now: Millis) -> Result<()>;
    /// What the new device has left, for the old device.
    async fn slot(&self, id: [u8; 16], now: Millis) -> Result<Slot>;
    /// The old device's answer, once: a slot that has one is `pair-refused`.
    async fn answer_slot(&self, account: &AccountId, id: [u8; 16], answer: Sealed, now: Millis)
    -> Result<()>;
    /// The answer, once it is there; the slot is gone with it. `None`: not yet.
    async fn take_slot(&self, id: [u8; 16], now: Millis) -> Result<Option<(AccountId, Sealed)>>;

    /// Failed logins of this login from this network.
    async fn attempts(&self, login: Tag, network: Tag, now: Millis) -> Result<Attempts>;
    /// Counts one more failure.
    async fn login_failed(&self, login: Tag, network: Tag, now: Millis) -> Result<Attempts>;
    /// Forgets the failures.
    async fn login_succeeded(&self, login: Tag, network: Tag) -> Result<()>;
}

/// What a code is for. A code of one kind is none of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeKind {
    /// To be signed, for one purpose.
    Challenge,
    /// Opens a socket.
    Ticket,
    /// A step of a one-time password.
    Totp,
    /// Allows somebody to register.
    Invite,
    /// Allows the first account to register.
    First,
    /// Allows one account to be put back.
    Restore,
}

/// A code.
#[derive(Clone, PartialEq, Eq)]
pub struct Code {
    /// What it is for.
    pub kind: CodeKind,
    /// The hash of its secret.
    pub key: Digest,
    /// Whose it is, if anybody's: it is erased with the account.
    pub account: Option<AccountId>,
    /// Which login it is about, if any: it is erased with the account that has this login.
    pub login: Option<Tag>,
    /// What it carries, such as a purpose or a session; the store does not look inside.
    pub carries: Vec<u8>,
    /// When it expires.
    pub expires_at: Millis,
}

debug_without_content!(Code { kind, expires_at });

/// A pairing slot that has no answer yet.
#[derive(Clone, PartialEq, Eq)]
pub struct Slot {
    /// What the new device has left.
    pub offer: Vec<u8>,
    /// When it closes.
    pub expires_at: Millis,
}

debug_without_content!(Slot { expires_at });
