//! How long things live, and what ends them.

use std::sync::Arc;
use std::time::Duration;

use confidant_seal::{Scope, Tag};

use crate::audit::{Action, Actor, AuditRecord};
use crate::clock::Millis;
use crate::concepts;
use crate::engine::Inner;
use crate::error::Error;
use crate::store::{Anchor, Loaded};
use crate::turn::forgotten;

/// How long a session lives after its last turn; `None` is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Sessions keyed by room and thread.
    pub place: Option<Duration>,
    /// Sessions keyed by person alone.
    pub person: Option<Duration>,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { place: Some(Duration::from_secs(86_400)), person: None }
    }
}

impl Lifetimes {
    /// When a session of this scope ends if nothing more is said.
    pub(crate) fn expiry(&self, scope: &Scope, now: Millis) -> Option<Millis> {
        let lifetime = if scope.is_person() { self.person } else { self.place }?;
        // Rounded, so that the index by expiry is not rewritten for every turn; down, so that nothing outlives its lifetime.
        let grain = i64::try_from(lifetime.as_millis() / 1000).unwrap_or(i64::MAX).clamp(1, 60_000);
        Some(Millis(now.plus(lifetime).0 / grain * grain))
    }
}

/// Erases every session whose lifetime is over and what folds have replaced; says how many sessions.
pub(crate) async fn sweep(inner: &Arc<Inner>) -> Result<u64, Error> {
    let mut swept = 0;
    loop {
        let expired = inner.store.expired(inner.now(), SWEPT_AT_ONCE).await?;
        if expired.is_empty() {
            break;
        }
        for scope in expired {
            inner.slots.forget(scope);
            expire(inner, scope).await?;
            swept += 1;
        }
    }
    swept += sweep_keys(inner).await?;
    concepts::sweep(inner).await?;
    forgotten::sweep(inner).await?;
    inner.store.tidy().await?;
    if swept > 0 {
        inner.store.scrub().await?;
    }
    Ok(swept)
}

/// Destroys the keys of sessions that the store has ended by itself; says how many.
async fn sweep_keys(inner: &Arc<Inner>) -> Result<u64, Error> {
    let keys = inner.keyring.store();
    let mut swept = 0;
    loop {
        let (mut ended, mut went_on, mut sessions) = (0, Vec::new(), Vec::new());
        let expired = keys.expired(inner.now(), SWEPT_AT_ONCE).await?;
        // Conversations first: a session takes what was its own with it, and then nobody knows what the key was of.
        for scope in &expired {
            if concepts::over(inner, *scope).await? {
                ended += 1;
            } else {
                sessions.push(*scope);
            }
        }
        for scope in &sessions {
            inner.slots.forget(*scope);
            match inner.store.load(*scope, None).await? {
                // A turn of the last moment is not in the keyring yet.
                Some(log) if log.expires_at.is_none_or(|at| at > inner.now()) => {
                    let Loaded { version, kid, expires_at, .. } = log;
                    went_on.push(Anchor { scope: *scope, kid, version, expires_at });
                }
                _ => {
                    expire(inner, *scope).await?;
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

/// Ends one session whose lifetime is over: its key first, so that it is dead from that moment on.
pub(crate) async fn expire(inner: &Arc<Inner>, scope: Tag) -> Result<(), Error> {
    concepts::forget(inner, scope, None).await?;
    inner.keyring.destroy(&[scope]).await?;
    let note = AuditRecord::new(inner.now(), &Actor::system(), Action::SessionExpired).about(scope);
    inner.store.erase(scope, None, vec![note.pending(&inner.keyring)]).await?;
    inner.anchors.mark_audit();
    Ok(())
}

const SWEPT_AT_ONCE: usize = 100;
