//! The audit log in tables: a row for each lane, and one for each record.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_seal::Sealed;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::pool::{Args, For, Pool};
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::error::StoreError;
use crate::lane::Lane;
use crate::lanes::{LaneKeeper, LanePool, Linked};
use crate::leases::Leases;
use crate::{Audit, AuditHead, AuditLane, Instance, PendingAudit, Result};

#[async_trait]
impl Audit for PostgresStore {
    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>> {
        self.lanes.record(&audit).await
    }

    async fn lanes(&self) -> Result<Vec<AuditLane>> {
        self.lanes.all().await
    }

    async fn adopt(&self, lane: Lane, before: Option<AuditHead>, records: Vec<Sealed>) -> Result<()> {
        self.lanes.adopt(lane, before, records).await
    }

    async fn audit(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>> {
        self.lanes.read(lane, after, limit).await
    }

    async fn drop_audit(&self, lane: Lane, until: u64) -> Result<()> {
        self.lanes.drop_until(lane, until).await
    }
}

/// The lanes of a process in a database.
#[derive(Debug)]
pub(super) struct Lanes {
    pool: Arc<Pool>,
    leases: Arc<Leases>,
    own: LanePool,
    /// How long records are kept; nothing for ever.
    keep: Option<Duration>,
}

/// What a statement that writes a lane as well came to.
pub(super) enum Written {
    /// Its rows, and where the lane stands.
    Done(Vec<Row>, Option<AuditHead>),
    /// Its rows; it left the lane alone.
    Untouched(Vec<Row>),
}

impl Lanes {
    pub(super) fn new(pool: Arc<Pool>, leases: Arc<Leases>, me: Instance, keep: Option<Duration>) -> Self {
        Self { pool, leases, own: LanePool::new(me), keep }
    }

    /// Appends records; says where their lane stands then.
    pub(super) async fn record(&self, audit: &[PendingAudit]) -> Result<Option<AuditHead>> {
        if audit.is_empty() {
            return Ok(None);
        }
        let sql = "SELECT record_audit($1, $2, $3, $4, $5, $6)";
        match self.with_lane(sql, &[], audit, |_| true).await? {
            Written::Done(_, head) => Ok(head),
            Written::Untouched(_) => Ok(None),
        }
    }

    /// Runs a statement whose last six arguments are a lane and records for it. `writes` says from its rows whether the
    /// records were written.
    pub(super) async fn with_lane(
        &self,
        sql: &'static str,
        args: Args<'_>,
        audit: &[PendingAudit],
        writes: impl Fn(&[Row]) -> bool + Send + Sync,
    ) -> Result<Written> {
        if audit.is_empty() {
            let (none, nothing): (Option<i32>, Option<Vec<u8>>) = (None, None);
            let (no_seq, no_records): (Option<i64>, Vec<Vec<u8>>) = (None, Vec::new());
            let lane: [&(dyn ToSql + Sync); 6] = [&none, &nothing, &no_seq, &nothing, &nothing, &no_records];
            let rows = self.pool.query(For::Writing, sql, &[args, &lane].concat()).await?;
            return Ok(Written::Untouched(rows));
        }
        loop {
            let taken = self.own.take(self).await?;
            let linked = taken.link(audit);
            let asked = {
                let lane = Arguments::of(&linked);
                self.pool.try_query(For::Writing, sql, &[args, &lane.list()].concat()).await?
            };
            match asked {
                Ok(rows) if writes(&rows) => {
                    taken.advanced(&linked);
                    return Ok(Written::Done(rows, linked.after));
                }
                Ok(rows) => {
                    taken.unchanged();
                    return Ok(Written::Untouched(rows));
                }
                // The lane is somebody else's: it is given up, and another is taken.
                Err(error) if error.code().is_some_and(|code| code.code() == LOST) => taken.lost(),
                Err(error) => return Err(super::pool::failure(&error)),
            }
        }
    }

    /// Gives back the lanes that are not in use.
    pub(super) async fn release(&self) -> Result<()> {
        self.own.release(self).await
    }

    /// Every lane with a record.
    pub(super) async fn all(&self) -> Result<Vec<AuditLane>> {
        let sql = "SELECT lane, seq, tag, floor_seq, floor_tag FROM audit_lanes WHERE seq > 0 ORDER BY lane";
        let rows = self.pool.query(For::Reading, sql, &[]).await?;
        let mut lanes = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(head) = head(row)? else { continue };
            let (seq, tag): (i64, Option<Vec<u8>>) = (get(row, 3)?, get(row, 4)?);
            let tag: Option<[u8; 16]> = tag.and_then(|tag| tag.try_into().ok());
            let floor = tag.map(|tag| AuditHead { lane: head.lane, seq: seq.cast_unsigned(), tag });
            lanes.push(AuditLane { head, floor, until: self.until() });
        }
        Ok(lanes)
    }

    /// From when on what is written now may go: the end of this eighth, and the whole time after it. In eighths, so that the
    /// keyring has few anchors to keep.
    fn until(&self) -> Option<Millis> {
        let keep = i64::try_from(self.keep?.as_millis()).unwrap_or(i64::MAX / 2);
        let eighth = (keep / 8).max(1);
        Some(Millis((SystemClock.now().0 / eighth + 1) * eighth + keep))
    }

    /// Lets go of a lane's records up to this one. Its tag stays: what follows is held against it.
    pub(super) async fn drop_until(&self, lane: Lane, until: u64) -> Result<()> {
        let last = self.read(lane, until.saturating_sub(1), 1).await?;
        let tag = last.first().filter(|(seq, _)| *seq == until).and_then(|(_, sealed)| sealed.tag());
        let Some(tag) = tag else { return Ok(()) };
        // One statement, so that no record is gone before the floor says so.
        let sql = "WITH moved AS (
                       UPDATE audit_lanes SET floor_seq = $2, floor_tag = $3 WHERE lane = $1 AND floor_seq < $2
                   )
                   DELETE FROM audit_records WHERE lane = $1 AND seq <= $2";
        let (number, until, tag) = (number(lane)?, until.cast_signed(), tag.to_vec());
        self.pool.query(For::Writing, sql, &[&number, &until, &tag]).await.map(drop)
    }

    /// Appends records that have their places already.
    pub(super) async fn adopt(
        &self,
        lane: Lane,
        before: Option<AuditHead>,
        records: Vec<Sealed>,
    ) -> Result<()> {
        let linked = Linked::adopted(self.own.me(), lane, before, records);
        let lane = Arguments::of(&linked);
        let sql = "INSERT INTO audit_lanes (lane, writer, seq, tag, floor_seq, floor_tag) VALUES ($1, $2, $3, $4, $3, $4)
                   ON CONFLICT (lane) DO UPDATE SET writer = excluded.writer";
        self.pool.query(For::Writing, sql, &[&lane.lane, &lane.writer, &lane.seq, &lane.tag]).await?;
        self.pool
            .query(For::Writing, "SELECT record_audit($1, $2, $3, $4, $5, $6)", &lane.list())
            .await
            .map(drop)
    }

    /// Records of a lane after a sequence.
    pub(super) async fn read(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>> {
        let sql = "SELECT seq, sealed FROM audit_records WHERE lane = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        let (number, after, limit) = (number(lane)?, after.cast_signed(), many(limit));
        let rows = self.pool.query(For::Reading, sql, &[&number, &after, &limit]).await?;
        let record = |row: &Row| {
            let (seq, sealed): (i64, Vec<u8>) = (get(row, 0)?, get(row, 1)?);
            Ok((seq.cast_unsigned(), Sealed::from_bytes(sealed)))
        };
        rows.iter().map(record).collect()
    }
}

#[async_trait]
impl LaneKeeper for Lanes {
    async fn writers(&self) -> Result<Vec<(Lane, Option<Instance>)>> {
        let rows =
            self.pool.query(For::Reading, "SELECT lane, writer FROM audit_lanes ORDER BY lane", &[]).await?;
        let writer = |row: &Row| {
            let id: Option<Vec<u8>> = get(row, 1)?;
            Ok((lane(row)?, id.and_then(|id| id.try_into().ok()).map(Instance)))
        };
        rows.iter().map(writer).collect()
    }

    async fn alive(&self, instances: &[Instance]) -> Result<HashSet<Instance>> {
        self.leases.alive(instances).await
    }

    async fn add(&self) -> Result<Lane> {
        // Two at once may find the same number; the one that is later finds its lane taken, and looks again.
        let sql = "INSERT INTO audit_lanes (lane) SELECT coalesce(max(lane), -1) + 1 FROM audit_lanes
                   ON CONFLICT (lane) DO UPDATE SET lane = excluded.lane RETURNING lane";
        let rows = self.pool.query(For::Writing, sql, &[]).await?;
        lane(rows.first().ok_or_else(odd)?)
    }

    async fn hand_over(
        &self,
        lane: Lane,
        from: Option<Instance>,
        to: Option<Instance>,
    ) -> Result<Option<Option<AuditHead>>> {
        let id = |instance: Option<Instance>| instance.map(|instance| instance.0.to_vec());
        let (number, from, to) = (number(lane)?, id(from), id(to));
        let sql = "UPDATE audit_lanes SET writer = $3
                   WHERE lane = $1 AND (writer IS NOT DISTINCT FROM $2 OR writer IS NOT DISTINCT FROM $3)
                   RETURNING lane, seq, tag";
        let rows = self.pool.query(For::Writing, sql, &[&number, &from, &to]).await?;
        rows.first().map(head).transpose()
    }
}

/// The code with which `write_lane` refuses.
const LOST: &str = "CFLAN";

/// A lane and records for it, as arguments.
struct Arguments {
    lane: i32,
    writer: Vec<u8>,
    seq: i64,
    tag: Option<Vec<u8>>,
    new_tag: Option<Vec<u8>>,
    records: Vec<Vec<u8>>,
}

impl Arguments {
    fn of(linked: &Linked) -> Self {
        let tag = |head: Option<AuditHead>| head.map(|head| head.tag.to_vec());
        Self {
            lane: linked.lane.number().cast_signed(),
            writer: linked.writer.0.to_vec(),
            seq: linked.before.map_or(0, |head| head.seq).cast_signed(),
            tag: tag(linked.before),
            new_tag: tag(linked.after),
            records: linked.records.iter().map(|record| record.as_bytes().to_vec()).collect(),
        }
    }

    fn list(&self) -> [&(dyn ToSql + Sync); 6] {
        [&self.lane, &self.writer, &self.seq, &self.tag, &self.new_tag, &self.records]
    }
}

fn lane(row: &Row) -> Result<Lane> {
    Ok(Lane::new(get::<i32>(row, 0)?.cast_unsigned()))
}

fn number(lane: Lane) -> Result<i32> {
    i32::try_from(lane.number()).map_err(|_| odd())
}

/// Where a lane stands, from lane, length and tag; nothing if it is empty.
fn head(row: &Row) -> Result<Option<AuditHead>> {
    let (seq, tag): (i64, Option<Vec<u8>>) = (get(row, 1)?, get(row, 2)?);
    let tag: Option<[u8; 16]> = tag.and_then(|tag| tag.try_into().ok());
    let lane = lane(row)?;
    Ok(tag.map(|tag| AuditHead { lane, seq: seq.cast_unsigned(), tag }))
}

/// A column; one of another type is a row that we never wrote.
pub(super) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, index: usize) -> Result<T> {
    row.try_get(index).map_err(|_| odd())
}

pub(super) fn many(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn odd() -> StoreError {
    StoreError::Failed("PostgreSQL: an unexpected reply".to_owned())
}
