//! What can go wrong, by name: what happened, and what to do next. Never what was written.
//!
//! ```text
//! Refused    this device does not believe what the server sent: nothing of it is shown
//! Denied     the server did not do what was asked
//! Offline    nobody knows: the queue keeps what was written, and the next flush repeats it
//! ```
//!
//! Easy to get wrong: treating `Offline` as "not done". The answer may have been lost on the way back.

use confidant_chat_format::Refused;
use confidant_chat_protocol::{ErrorName, Failure, LogoutReason, Malformed, RefusedSent};

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This device refused what the server sent.
    #[error("{0}")]
    Refused(Refused),
    /// The server refused the request.
    #[error("the server refused the request ({}); hint: {}", .error.name(), hint_of(*.error))]
    Denied {
        /// The name of the refusal.
        error: ErrorName,
        /// When to try again, in milliseconds, if the server says so.
        retry_ms: Option<u64>,
    },
    /// The server cannot be reached, or the connection ended before the answer.
    #[error("the server cannot be reached; hint: what you wrote is kept; try again when the server is back")]
    Offline,
    /// The session ended.
    #[error("this device was logged out ({}); hint: log in again", .0.name())]
    LoggedOut(LogoutReason),
    /// There is no session.
    #[error("this device is not logged in; hint: log in")]
    NotLoggedIn,
    /// The server's answer is not one of the protocol.
    #[error("the server's answer is not valid; hint: update this program, or check the server's address")]
    Unexpected,
    /// The account key is being replaced on another device.
    #[error(
        "another device is replacing the account key; hint: what you wrote is kept; try again in ten minutes"
    )]
    Frozen,
    /// What was written is larger than the server takes.
    #[error("this is too large to store; hint: shorten it or split it")]
    TooLarge,
    /// There is no such chat on this device.
    #[error("there is no such chat; hint: sync first, or load older chats")]
    NoSuchChat,
    /// Of a temporary chat nothing is kept, so this cannot be done in it.
    #[error(
        "nothing of a temporary chat is stored, so this cannot be done in it; hint: begin another chat for it"
    )]
    Temporary,
    /// There is no such message in this chat.
    #[error("there is no such message; hint: sync first")]
    NoSuchMessage,
    /// These files are another device's or another account's.
    #[error("this folder already has a device; hint: delete that device first, or use another folder")]
    Occupied,
    /// The device's files cannot be read or written.
    #[error("the device's files cannot be used: {0}; hint: check the folder's owner and the free space")]
    Files(String),
    /// The device's files do not open.
    #[error(
        "the device's files cannot be decrypted; hint: use the key they were made with, or log in again with an empty folder"
    )]
    Damaged,
}

impl Error {
    /// The name of the error: one of the format's and protocol's names, or the client's own.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused(refused) => refused.name(),
            Self::Denied { error, .. } => error.name(),
            Self::Offline => "offline",
            Self::LoggedOut(_) => "logged-out",
            Self::NotLoggedIn => "not-logged-in",
            Self::Unexpected => "unexpected",
            Self::Frozen => "frozen",
            Self::TooLarge => "too-large",
            Self::NoSuchChat => "no-such-chat",
            Self::Temporary => "temporary",
            Self::NoSuchMessage => "no-such-message",
            Self::Occupied => "occupied",
            Self::Files(_) => "files",
            Self::Damaged => "damaged",
        }
    }

    /// Whether the server says that there is no such thing.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Denied { error: ErrorName::Request(Failure::NotFound), .. })
    }

    /// Whether the server says that somebody else was first.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Denied { error: ErrorName::Content(Refused::Conflict), .. })
    }
}

fn hint_of(error: ErrorName) -> &'static str {
    match error {
        ErrorName::Content(Refused::LoginRefused) => "check the login, the password and the one-time code",
        ErrorName::Content(Refused::AccountMissing) => {
            "the server has lost the keys of this account: ask its operator for a code to restore it"
        }
        ErrorName::Content(Refused::Conflict) => "sync, then try again",
        ErrorName::Content(_) => "sync, then try again; if the error stays, ask the server's operator",
        ErrorName::Request(Failure::Rate) => "wait, then try again",
        ErrorName::Request(Failure::Unauthorised) => "log in again",
        ErrorName::Request(Failure::TooLarge | Failure::TooMany) => "make it smaller, or delete something",
        ErrorName::Request(Failure::NotFound) => "sync, then try again",
        ErrorName::Request(Failure::Malformed | Failure::StaleClient) => "update this program",
        ErrorName::Request(Failure::Stopping | Failure::Unavailable) => "try again later",
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<RefusedSent> for Error {
    fn from(sent: RefusedSent) -> Self {
        Self::Denied { error: sent.error, retry_ms: sent.retry_ms }
    }
}

/// For what this device writes: it is too large. What it reads is mapped to [`Error::Unexpected`] where it is read.
impl From<Malformed> for Error {
    fn from(_: Malformed) -> Self {
        Self::TooLarge
    }
}
