//! The scopes of chats whose permanent form only their owner can open. What a model needs of one is a session like any other,
//! for a while.
//!
//! ```text
//! web : <chat> : main   : <account>      kept where conversations are
//! web : <chat> : memory : <account>      in this process's memory only, for as long
//! web : <chat> : once   : <account>      the same until its answer is confirmed
//! ```
//!
//! The channel is reserved: every other surface refuses it. Easy to get wrong: two places for one chat. Whoever opens one ends
//! the others.

use confidant_seal::{ChannelName, PlaceId, Scope, ScopeError, TenantId, ThreadId, UserId};
use serde::{Deserialize, Serialize};

/// Where the session of a chat is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Where conversations are.
    Stored,
    /// In this process's memory.
    Memory,
    /// In memory, and only until its answer is confirmed.
    Once,
}

impl Keep {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Stored, Self::Memory, Self::Once];

    const fn thread(self) -> &'static str {
        match self {
            Self::Stored => "main",
            Self::Memory => "memory",
            Self::Once => "once",
        }
    }
}

/// The scope of an account's chat.
pub(crate) fn scope(tenant: &TenantId, account: &str, chat: &str, keep: Keep) -> Result<Scope, ScopeError> {
    let (channel, place) = (ChannelName::any(CHANNEL)?, PlaceId::new(chat)?);
    Ok(Scope::place(tenant.clone(), channel, place, ThreadId::new(keep.thread())?, UserId::any(account)?))
}

/// Where a session is kept, if it is of such a chat.
pub(crate) fn keep(scope: &Scope) -> Option<Keep> {
    if !is_web(scope) {
        return None;
    }
    let thread = scope.thread().map(ThreadId::as_str);
    // One that is not known is kept nowhere that lasts.
    Some(Keep::ALL.into_iter().find(|keep| Some(keep.thread()) == thread).unwrap_or(Keep::Once))
}

/// Whether a session is kept in memory only.
pub(crate) fn is_volatile(scope: &Scope) -> bool {
    keep(scope).is_some_and(|keep| keep != Keep::Stored)
}

/// Whether a session is of such a chat. Before the name was reserved, other applications may have used it for people of theirs.
pub(crate) fn is_web(scope: &Scope) -> bool {
    scope.channel().as_str() == CHANNEL && UserId::new(scope.user().as_str()).is_err()
}

const CHANNEL: &str = "web";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_a_scope_of_its_own_and_no_other_channel_has_any() {
        let tenant = TenantId::new("acme").unwrap();
        for keep_at in Keep::ALL {
            let scope = scope(&tenant, "acct_a", "chat_b", keep_at).unwrap();
            assert_eq!((keep(&scope), is_volatile(&scope)), (Some(keep_at), keep_at != Keep::Stored));
            assert!(Scope::parse(tenant.clone(), &scope.session_id()).is_err(), "the channel is reserved");
        }
        let stored = scope(&tenant, "acct_a", "chat_b", Keep::Stored).unwrap();
        assert_eq!(stored.session_id(), "web:chat_b:main:acct_a");
        let odd = Scope::parse_any(tenant.clone(), "web:chat_b:elsewhere:acct_a").unwrap();
        assert_eq!(keep(&odd), Some(Keep::Once));
        for other in ["http:chat_b:main:alice", "web:chat_b:main:alice", "web_conv:alice"] {
            assert_eq!(keep(&Scope::parse_any(tenant.clone(), other).unwrap()), None, "{other}");
        }
    }
}
