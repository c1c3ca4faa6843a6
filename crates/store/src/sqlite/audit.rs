//! The audit log: the lane of what is recorded here, and those that were copied from another store.

use async_trait::async_trait;
use confidant_seal::Sealed;
use rusqlite::Connection;

use super::data::SqliteStore;
use super::{copied, records};
use crate::lane::Lane;
use crate::{Audit, AuditHead, AuditLane, PendingAudit, Result};

#[async_trait]
impl Audit for SqliteStore {
    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>> {
        self.writer.write_with(move |c, known| records::record(c, known, &audit)).await
    }

    async fn lanes(&self) -> Result<Vec<AuditLane>> {
        // On the thread of the caller, as in `load`.
        let (mut lanes, own) = self.readers.with(|c| {
            let c = c.unchecked_transaction()?;
            Ok((copied::lanes(&c)?, records::audit_head(&c)?))
        })?;
        lanes.extend(own.map(|head| AuditLane { head, floor: None, until: None }));
        Ok(lanes)
    }

    async fn adopt(&self, lane: Lane, before: Option<AuditHead>, records: Vec<Sealed>) -> Result<()> {
        self.writer.write_with(move |c, _| copied::adopt(c, lane, before, &records)).await
    }

    async fn audit(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>> {
        let read = move |c: &Connection| {
            let c = c.unchecked_transaction()?;
            match copied::own_lane(&c)? {
                own if own == lane => records::audit(&c, after, limit),
                _ => copied::audit(&c, lane, after, limit),
            }
        };
        self.readers.read(read).await
    }
}
