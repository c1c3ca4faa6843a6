//! The end of a session whose lifetime is over.

use std::sync::Arc;

use confidant_seal::Tag;

use crate::concepts;
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::audit::{Action, Actor, AuditRecord};

/// Ends one session whose lifetime is over: its key first, so that it is dead from that moment on.
pub(crate) async fn expire(inner: &Arc<Inner>, scope: Tag) -> Result<(), Error> {
    concepts::forget_expired(inner, scope).await?;
    let mut note =
        AuditRecord::new(inner.ledger.now(), &Actor::system(), Action::SessionExpired).about(scope);
    // The last moment to learn whose it was: the name goes with the key.
    let row = inner.ledger.keyring.store().get(scope).await?;
    let whose = row.and_then(|row| inner.ledger.keyring.scope_of(&row).ok());
    note.tenant = whose.map(|whose| inner.ledger.keyring.tenant(whose.tenant()).to_string());
    inner.ledger.keyring.destroy(&[scope]).await?;
    inner.ledger.store.erase(scope, None, vec![note.pending(&inner.ledger.keyring)]).await?;
    inner.ledger.anchors.mark_audit();
    Ok(())
}
