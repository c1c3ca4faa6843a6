//! How far each log has come, kept in the keyring, where it reveals a rollback of the data.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use confidant_seal::Tag;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::Ledger;
use crate::store::{Anchor, AuditLane, LaneAnchor};

/// Log versions on their way to the keyring, where they reveal a rollback.
///
/// They are written a moment after the turn and many at a time, so that a turn waits for one file only. What a crash
/// takes from here is the power to notice a rollback of the last moment, never a turn.
#[derive(Debug, Default)]
pub(crate) struct Anchors {
    marked: Mutex<HashMap<Tag, Anchor>>,
    /// Whether the audit log grew since the last time.
    audit: AtomicBool,
    some: Notify,
}

impl Anchors {
    pub(crate) fn mark(&self, anchor: Anchor) {
        let mut marked = self.marked.lock();
        let known = marked.entry(anchor.scope).or_insert(anchor);
        if known.kid != anchor.kid || known.version <= anchor.version {
            *known = anchor;
        }
        drop(marked);
        self.mark_audit();
    }

    pub(crate) fn mark_audit(&self) {
        self.audit.store(true, Ordering::SeqCst);
        self.some.notify_one();
    }

    /// What was marked; `None` if nothing was, not even the audit log.
    fn take(&self) -> Option<Vec<Anchor>> {
        if !self.audit.swap(false, Ordering::SeqCst) {
            return None;
        }
        let mut marked = self.marked.lock();
        Some(marked.drain().map(|(_, anchor)| anchor).collect())
    }
}

/// How long anchors gather before they are written.
const ANCHORS_GATHER: Duration = Duration::from_millis(500);

/// Holds the engine only while it writes, so that dropping the engine ends this task.
pub(crate) async fn keep_anchoring(anchors: Arc<Anchors>, inner: Weak<Inner>) {
    loop {
        let woken = tokio::time::timeout(Duration::from_secs(5), anchors.some.notified()).await;
        if woken.is_ok() {
            tokio::time::sleep(ANCHORS_GATHER).await;
        }
        let Some(engine) = inner.upgrade() else { return };
        if let Err(error) = engine.ledger.flush_anchors().await {
            tracing::warn!(error = %error, "rollback anchors could not be written; will retry");
        }
    }
}

impl Ledger {
    /// Writes the versions that were reached to the keyring.
    pub(crate) async fn flush_anchors(&self) -> Result<(), Error> {
        let Some(marked) = self.anchors.take() else { return Ok(()) };
        if let Err(error) = self.anchor_now(&marked).await {
            // Not lost: the next flush tries again, and a log ahead of its anchor opens all the same.
            marked.into_iter().for_each(|anchor| self.anchors.mark(anchor));
            self.anchors.mark_audit();
            return Err(error);
        }
        Ok(())
    }

    async fn anchor_now(&self, marked: &[Anchor]) -> Result<(), Error> {
        let lanes = self.lanes_as_they_are().await?;
        Ok(self.keyring.store().anchor(marked, &lanes).await?)
    }

    /// The anchors that the audit lanes would have now.
    pub(crate) async fn lanes_as_they_are(&self) -> Result<Vec<LaneAnchor>, Error> {
        let anchor =
            |lane: AuditLane| LaneAnchor { lane: lane.head.lane, until: lane.until, seq: lane.head.seq };
        Ok(self.store.lanes().await?.into_iter().map(anchor).collect())
    }
}
