//! The scopes of the keys of accounts, whose chats only their owner can open.
//!
//! ```text
//! accounts : <account> : account     : <account>      the account's record and its own rings
//! accounts : <account> : <chat>      : <account>      the ring of one chat
//! ```
//!
//! The account is the person of these scopes, so erasing the person ends every one of them, leaves a mark by which none comes
//! back, and names them in the receipt.

use confidant_seal::{ChannelName, PlaceId, Scope, ScopeError, TenantId, ThreadId, UserId};

/// The scope of the key of an account, or of one of its chats.
pub(crate) fn scope(tenant: &TenantId, account: &str, chat: Option<&str>) -> Result<Scope, ScopeError> {
    let thread = ThreadId::new(chat.unwrap_or(WHOLE))?;
    let (place, user) = (PlaceId::new(account)?, UserId::any(account)?);
    Ok(Scope::place(tenant.clone(), ChannelName::any(CHANNEL)?, place, thread, user))
}

/// Whether a scope is that of an account's key, which no log belongs to.
pub(crate) fn is_account_key(scope: &Scope) -> bool {
    scope.channel().as_str() == CHANNEL
}

/// The channel under which the keyring has the keys of accounts; no session is on it.
const CHANNEL: &str = "accounts";
/// What stands in the place of a chat in the scope of an account's own key. No chat is called so: their ids have a prefix.
const WHOLE: &str = "account";
