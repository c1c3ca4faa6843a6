//! How many chats of an account have a session at once, and the end of the others.
//!
//! The newest by use, which is their last write: their lifetime begins there, so it tells their order in every process. Easy to
//! get wrong: a turn that runs. Its session is not ended for another's sake; the next one that begins finds it idle.

use std::cmp::Reverse;
use std::sync::Arc;

use confidant_seal::{TenantId, UserId};

use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::audit::Action;
use crate::ledger::expire::expire;
use crate::ledger::session::Session;
use crate::ledger::web_scope::{self, Keep};
use crate::store::{Find, Listed};

/// Ends the sessions of an account's chats that are more than may be, after this one was begun.
pub(crate) async fn keep_newest(session: &Session) -> Result<(), Error> {
    if web_scope::keep(&session.scope) == Some(Keep::Once) {
        return Ok(());
    }
    let most = session.inner.ledger.settings.web.chats;
    let mut others = of_account(session).await?;
    others.retain(|(other, _)| {
        other.names.scope != session.names.scope && web_scope::keep(&other.scope) != Some(Keep::Once)
    });
    others.sort_by_key(|(_, listed)| Reverse(listed.expires_at));
    for (other, listed) in others.into_iter().skip(most.saturating_sub(1)) {
        if listed.owner.is_none() {
            end(&other).await?;
        }
    }
    Ok(())
}

/// The sessions of the chats of this one's account.
pub(crate) async fn of_account(session: &Session) -> Result<Vec<(Session, Listed)>, Error> {
    let inner = &session.inner;
    let find = Find::Person { tenant: session.names.tenant, person: session.names.person };
    let mut found = Vec::new();
    for listed in inner.ledger.store.list(find, None, MOST_LISTED).await? {
        let Some(row) = inner.ledger.keyring.store().get(listed.names.scope).await? else { continue };
        let Ok(scope) = inner.ledger.keyring.scope_of(&row) else { continue };
        // The tags only found it; whose it is stands in its key.
        let same = (scope.tenant(), scope.user()) == (session.scope.tenant(), session.scope.user());
        if web_scope::is_web(&scope) && same {
            found.push((Session::new(Arc::clone(inner), scope, session.actor.clone()), listed));
        }
    }
    Ok(found)
}

/// Ends the session of a chat, like one whose lifetime is over; says whether there was one.
pub(crate) async fn end(session: &Session) -> Result<bool, Error> {
    let Session { inner, names, .. } = session;
    let Some(row) = inner.ledger.keyring.store().get(names.scope).await? else { return Ok(false) };
    if web_scope::is_volatile(&session.scope) {
        // Nothing of it is on a disk, so nothing is left there to clear.
        inner.ledger.keyring.store().destroy(&[row.scope]).await?;
        let note = session.record(Action::SessionExpired).pending(&inner.ledger.keyring);
        inner.ledger.store.erase(names.scope, Some(session.known()), vec![note]).await?;
        inner.ledger.anchors.mark_audit();
    } else {
        expire(inner, names.scope).await?;
    }
    if let Some(relay) = inner.relay.get() {
        relay.silence(names.scope).await;
    }
    forget(inner, session);
    Ok(true)
}

/// Has workers end what they have in their memory of an account's chats, if it is one that has chats.
pub(crate) async fn end_elsewhere(inner: &Inner, tenant: &TenantId, user: &UserId) {
    let Some(gateway) = inner.gateway.get() else { return };
    let any = web_scope::scope(tenant, user.as_str(), ANY_CHAT, Keep::Memory);
    if let Some(any) = any.ok().filter(web_scope::is_web) {
        gateway.end(&any, true).await;
    }
}

fn forget(inner: &Inner, session: &Session) {
    inner.ledger.slots.forget(session.names.scope);
}

const ANY_CHAT: &str = "chat";
const MOST_LISTED: usize = 1000;
