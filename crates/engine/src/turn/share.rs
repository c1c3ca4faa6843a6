//! Which turns other processes may hear, and what ends that.
//!
//! ```text
//! answer ──▶ tell ──▶ Outlet::tap           cancelled elsewhere, or its chat is gone ──▶ silenced ──▶ end_if_over
//! ```
//!
//! Easy to get wrong: whose turns. Only those of chats that only their owner can open, and only where the session is kept in a place
//! that others reach: what is for this process's memory stays there.

use futures_util::future::BoxFuture;

use super::outlet::Outlet;
use super::relay::RelayedTurn;
use crate::ledger::session::{Held, Session, open};
use crate::ledger::web_scope::{Keep, keep};

/// From here on the turn is told to others as well, if it may be.
pub(super) fn tell(session: &Session, held: &Held<'_>, request_id: &str, outlet: &Outlet) {
    let Some(relay) = session.inner.relay.get() else { return };
    let Some(key) = held.key().filter(|_| keep(session.scope()) == Some(Keep::Stored)) else { return };
    let (silenced, name) = (session.clone(), request_id.to_owned());
    let told = RelayedTurn {
        scope: session.names.scope,
        key: key.clone(),
        request_id: request_id.to_owned(),
        silenced: Box::new(move || -> BoxFuture<'static, ()> {
            Box::pin(async move { end_if_over(&silenced, &name).await })
        }),
    };
    outlet.tap(relay.tell(told));
}

/// Ends a turn of this process that is over in the log: somebody cancelled it elsewhere, or its chat is gone.
async fn end_if_over(session: &Session, request_id: &str) {
    let is_open = match open(session).await {
        Ok(Some((log, _))) => {
            log.checkpoint().open_exchange().is_some_and(|open| open.request_id == request_id)
        }
        Ok(None) => false,
        // That cannot be told now: it finds out when it writes.
        Err(_) => true,
    };
    if !is_open {
        session.inner.cancels.cancel(session.names.scope, Some(request_id));
    }
}
