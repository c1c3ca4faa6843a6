//! How long things live, and what ends them.

use std::collections::HashSet;
use std::sync::Arc;

use confidant_seal::Tag;

use crate::concepts;
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::audit::{Actor, may_be_gone};
use crate::ledger::expire::expire;
use crate::ledger::session::{self, Session};
use crate::store::Anchor;
use crate::turn::forgotten;

/// Erases every session whose lifetime is over and what folds have replaced; says how many sessions.
pub(crate) async fn sweep(inner: &Arc<Inner>) -> Result<u64, Error> {
    let mut swept = 0;
    // What says that it is over, and is not: it is left to whoever looks into it.
    let mut kept: HashSet<Tag> = HashSet::new();
    loop {
        let expired = inner.ledger.store.expired(inner.ledger.now(), SWEPT_AT_ONCE + kept.len()).await?;
        let new: Vec<Tag> = expired.into_iter().filter(|scope| !kept.contains(scope)).collect();
        if new.is_empty() {
            break;
        }
        for scope in new {
            inner.ledger.slots.forget(scope);
            if is_ended(inner, scope).await?.is_none() {
                swept += 1;
            } else {
                kept.insert(scope);
            }
        }
    }
    swept += sweep_keys(inner).await?;
    concepts::sweep(inner).await?;
    forgotten::sweep(inner).await?;
    inner.ledger.store.tidy().await?;
    let_go_of_audit(inner).await?;
    if swept > 0 {
        inner.ledger.store.scrub().await?;
    }
    Ok(swept)
}

/// Has the store let go of audit records that are past their time, where it has been told one. What may go is what the
/// keyring's anchors say: whoever checks the log holds it against the same.
async fn let_go_of_audit(inner: &Arc<Inner>) -> Result<(), Error> {
    let anchors = inner.ledger.keyring.store().lane_anchors().await?;
    for lane in inner.ledger.store.lanes().await? {
        let gone = may_be_gone(lane.head.lane, &anchors, inner.ledger.now()).min(lane.head.seq);
        if lane.until.is_some() && gone > lane.floor.map_or(0, |floor| floor.seq) {
            inner.ledger.store.drop_audit(lane.head.lane, gone).await?;
        }
    }
    Ok(())
}

/// Destroys the keys of sessions that the store has ended by itself; says how many.
async fn sweep_keys(inner: &Arc<Inner>) -> Result<u64, Error> {
    let keys = inner.ledger.keyring.store();
    let (mut swept, mut kept) = (0, HashSet::new());
    loop {
        let (mut ended, mut went_on, mut sessions) = (0, Vec::new(), Vec::new());
        let mut expired = keys.expired(inner.ledger.now(), SWEPT_AT_ONCE + kept.len()).await?;
        expired.retain(|scope| !kept.contains(scope));
        // Conversations first: a session takes what was its own with it, and then nobody knows what the key was of.
        for scope in &expired {
            if concepts::over(inner, *scope).await? {
                ended += 1;
            } else {
                sessions.push(*scope);
            }
        }
        for scope in &sessions {
            inner.ledger.slots.forget(*scope);
            match is_ended(inner, *scope).await? {
                // A turn of the last moment is not in the keyring yet.
                Some(Some(anchor)) => went_on.push(anchor),
                Some(None) => drop(kept.insert(*scope)),
                None => {
                    swept += 1;
                    ended += 1;
                }
            }
        }
        keys.anchor(&went_on, &[]).await?;
        if expired.len() < SWEPT_AT_ONCE || ended == 0 {
            return Ok(swept);
        }
    }
}

/// Ends a session that seems to be over, if it is: its log knows, not what lies beside it. `None` if it did; else where the
/// log stands, as far as it opens.
async fn is_ended(inner: &Arc<Inner>, scope: Tag) -> Result<Option<Option<Anchor>>, Error> {
    let Some(row) = inner.ledger.keyring.store().get(scope).await? else {
        // Nothing opens it any more, whatever it says.
        expire(inner, scope).await?;
        return Ok(None);
    };
    let opened = match inner.ledger.keyring.scope_of(&row) {
        Ok(readable) => {
            let session = Session::new(Arc::clone(inner), readable, Actor::system());
            session::open(&session).await.map(|opened| opened.map(|(log, _)| log))
        }
        Err(error) => Err(error),
    };
    match opened {
        Ok(Some(log)) => {
            let expires_at = match log.checkpoint().lives() {
                Some(until) => until,
                // Last written before lifetimes were sealed.
                None => inner.ledger.store.load(scope, None).await?.and_then(|loaded| loaded.expires_at),
            };
            Ok(Some(Some(Anchor { scope, kid: log.key().kid(), version: log.version(), expires_at })))
        }
        // Opening ended it; or it has a key and no log, and never will.
        Ok(None) => {
            if inner.ledger.keyring.store().get(scope).await?.is_some_and(|now| now.kid == row.kid) {
                expire(inner, scope).await?;
            }
            Ok(None)
        }
        Err(Error::Tampered(tampering)) => {
            let reason = tampering.name();
            tracing::warn!(scope.tag = %scope, reason, "cannot confirm that a session has expired; it is left as it is");
            Ok(Some(None))
        }
        Err(error) => Err(error),
    }
}

const SWEPT_AT_ONCE: usize = 100;
