//! What erasures mean for a session: which key it may have, and what goes if one came in between.

use confidant_seal::Key;

use crate::error::Error;
use crate::ledger::epoch::Epoch;
use crate::ledger::erasures::{self, Asked};
use crate::ledger::session::Session;

/// A session's data key, made if it has none, with the last erasure before it. What was asked before an erasure gets none.
pub(crate) async fn data_key(session: &Session, asked: &mut Asked) -> Result<(Key, Epoch), Error> {
    let Session { inner, scope, names, .. } = session;
    // The number first: an erasure that comes from here on has a higher one, and its mark is seen before or after the write.
    let at = asked.look(&inner.ledger).await?;
    let expires_at = inner.ledger.expiry(scope, inner.ledger.now());
    for _ in 0..TRIES {
        let erased = inner.ledger.last_erasure(names).await?;
        if asked.is_before(&inner.ledger, erased) {
            erasures::catch_up(&inner.ledger, erased).await?;
            return Err(Error::Erased);
        }
        let found = inner.ledger.keyring.data_key_or_new(scope, names, expires_at, at).await?;
        if found.born >= erased {
            return Ok((found.key, erased));
        }
        // A key that the erasure did not find, since there was no log under it, such as of an event in a channel's inbox.
        remove(session).await?;
    }
    Err(Error::Busy)
}

/// Whether an erasure came between a session's making and its first write, which then must go.
pub(crate) async fn came_between(session: &Session, before: Epoch) -> Result<bool, Error> {
    Ok(session.inner.ledger.last_erasure(&session.names).await? > before)
}

/// Removes what is left of a session that was erased.
pub(crate) async fn remove(session: &Session) -> Result<(), Error> {
    let Session { inner, names, .. } = session;
    inner.ledger.keyring.destroy(&[names.scope]).await?;
    inner.ledger.store.erase(names.scope, Some(session.known()), Vec::new()).await?;
    Ok(())
}

const TRIES: usize = 8;
