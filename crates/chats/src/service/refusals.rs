//! Refusals: every error of a part becomes one of the protocol, in one place.
//!
//! Easy to get wrong: words about the inside. What failed in a store or a vault is for the operator's log; a client hears that
//! it is unavailable.

use confidant_chat_format::Refused;
use confidant_chat_protocol::{ErrorName, Failure, RefusedSent};
use confidant_display::Hinted as _;

use crate::store::StoreError;
use crate::vault::VaultError;

/// An answer, or why there is none.
pub(crate) type Answer<T> = std::result::Result<T, RefusedSent>;

pub(crate) fn login_refused() -> RefusedSent {
    Refused::LoginRefused.into()
}

pub(crate) fn conflict() -> RefusedSent {
    Refused::Conflict.into()
}

pub(crate) fn not_found() -> RefusedSent {
    StoreError::NotFound.into()
}

pub(crate) fn malformed(what: &'static str) -> RefusedSent {
    StoreError::Malformed(what).into()
}

pub(crate) fn unauthorised() -> RefusedSent {
    failure(Failure::Unauthorised, "there is no valid session", "log in again")
}

pub(crate) fn unavailable(what: &str) -> RefusedSent {
    failure(Failure::Unavailable, what, "try again later, or ask the operator of this server")
}

/// Too fast; this many milliseconds to wait.
pub(crate) fn too_fast(retry_ms: u64) -> RefusedSent {
    let refused = failure(Failure::Rate, "there were too many attempts", "wait, then try again");
    RefusedSent { retry_ms: Some(retry_ms), ..refused }
}

fn failure(failure: Failure, what: &str, hint: &str) -> RefusedSent {
    RefusedSent::new(ErrorName::Request(failure), what, hint)
}

impl From<StoreError> for RefusedSent {
    fn from(error: StoreError) -> Self {
        let name = match &error {
            StoreError::Refused(refused) => return (*refused).into(),
            StoreError::Conflict { .. } => return conflict(),
            StoreError::NotFound => Failure::NotFound,
            StoreError::TooLarge(_) => Failure::TooLarge,
            StoreError::TooMany(_) => Failure::TooMany,
            StoreError::Malformed(_) => Failure::Malformed,
            _ => {
                tracing::warn!(%error, "chats: the store failed");
                return unavailable("the server cannot reach its database");
            }
        };
        let (what, hint) = error.what_and_hint("try again");
        failure(name, &what, &hint)
    }
}

impl From<VaultError> for RefusedSent {
    fn from(error: VaultError) -> Self {
        tracing::warn!(%error, "chats: the vault failed");
        unavailable("the server cannot reach its keys")
    }
}
