//! The audit log: chains of sealed records, one for each lane.

use async_trait::async_trait;
use confidant_display::debug_without_content;
use confidant_seal::Sealed;

use super::{Lane, Result};
use crate::clock::Millis;

/// The audit log.
#[async_trait]
pub trait Audit: Send + Sync + std::fmt::Debug {
    /// Appends audit records to a lane and returns where it stands then; nothing if there were none.
    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>>;
    /// Every lane of the audit log.
    async fn lanes(&self) -> Result<Vec<AuditLane>>;
    /// Appends records as another store has sealed them to a lane that stands at `before`, or begins there.
    ///
    /// Only for a store in which nothing is recorded yet, and nobody else works.
    async fn adopt(&self, lane: Lane, before: Option<AuditHead>, records: Vec<Sealed>) -> Result<()>;
    /// The audit records of a lane after a sequence.
    async fn audit(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>>;
    /// Lets go of the records of a lane up to this one, which are past their time. A store that does so by itself, or never, has
    /// nothing to do.
    async fn drop_audit(&self, _lane: Lane, _until: u64) -> Result<()> {
        Ok(())
    }
}

/// Where an audit record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditPlace {
    pub lane: Lane,
    pub seq: u64,
    /// The tag of the record before it in its lane; none for the first.
    pub previous: Option<[u8; 16]>,
}

impl AuditPlace {
    /// The first of a lane.
    pub fn first(lane: Lane) -> Self {
        Self { lane, seq: 1, previous: None }
    }
}

/// An audit record that is sealed when its place is known.
pub struct PendingAudit(Box<dyn Fn(AuditPlace) -> Sealed + Send + Sync>);

impl PendingAudit {
    pub fn new(seal: impl Fn(AuditPlace) -> Sealed + Send + Sync + 'static) -> Self {
        Self(Box::new(seal))
    }

    /// Seals the record for its place.
    pub fn link(&self, place: AuditPlace) -> Sealed {
        (self.0)(place)
    }
}

debug_without_content!(PendingAudit(..));

/// The newest record of an audit lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditHead {
    pub lane: Lane,
    pub seq: u64,
    pub tag: [u8; 16],
}

impl AuditHead {
    /// The place after it.
    pub fn next(self) -> AuditPlace {
        AuditPlace { lane: self.lane, seq: self.seq + 1, previous: Some(self.tag) }
    }
}

/// A whole audit lane, as a store knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditLane {
    pub head: AuditHead,
    /// The last record before those that are still there; nothing if all are.
    pub floor: Option<AuditHead>,
    /// When the store may let go of what is there now; nothing if it never does.
    pub until: Option<Millis>,
}
