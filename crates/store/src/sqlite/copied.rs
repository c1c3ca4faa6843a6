//! Audit lanes that were copied from another store. They stand as they are; what is recorded here is in the lane after them.

use confidant_seal::Sealed;
use rusqlite::{Connection, params};

use super::{many, number, number_at, sealed_at};
use crate::lane::Lane;
use crate::{AuditHead, AuditLane};

/// The lane of what is recorded here.
pub(super) fn own_lane(c: &Connection) -> rusqlite::Result<Lane> {
    let sql = "SELECT coalesce(max(lane) + 1, 0) FROM copied_lanes";
    c.prepare_cached(sql)?.query_row([], |row| row.get(0)).map(Lane::new)
}

/// Appends records to a lane that stands at `before`, unless they are there.
pub(super) fn adopt(
    c: &Connection,
    lane: Lane,
    before: Option<AuditHead>,
    records: &[Sealed],
) -> rusqlite::Result<()> {
    let Some(tag) = records.last().and_then(Sealed::tag) else { return Ok(()) };
    let start = before.map_or(0, |head| head.seq);
    let sql = "INSERT OR REPLACE INTO copied_records (lane, seq, sealed) VALUES (?1, ?2, ?3)";
    let mut insert = c.prepare_cached(sql)?;
    for (seq, sealed) in (start + 1..).zip(records) {
        insert.execute(params![lane.number(), number(seq), sealed.as_bytes()])?;
    }
    let sql = "INSERT INTO copied_lanes (lane, floor, floor_tag, head, head_tag) VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT (lane) DO UPDATE SET head = excluded.head, head_tag = excluded.head_tag";
    let head = start + records.len() as u64;
    let floor_tag = before.map(|head| head.tag);
    c.prepare_cached(sql)?.execute(params![lane.number(), number(start), floor_tag, number(head), tag])?;
    Ok(())
}

pub(super) fn lanes(c: &Connection) -> rusqlite::Result<Vec<AuditLane>> {
    let sql = "SELECT lane, floor, floor_tag, head, head_tag FROM copied_lanes ORDER BY lane";
    let mut statement = c.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let lane = Lane::new(row.get(0)?);
        let floor_tag: Option<[u8; 16]> = row.get(2)?;
        let floor = number_at(row, 1)?;
        Ok(AuditLane {
            head: AuditHead { lane, seq: number_at(row, 3)?, tag: row.get(4)? },
            floor: floor_tag.map(|tag| AuditHead { lane, seq: floor, tag }),
            until: None,
        })
    })?;
    rows.collect()
}

/// Records of such a lane after a sequence.
pub(super) fn audit(
    c: &Connection,
    lane: Lane,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<(u64, Sealed)>> {
    let sql = "SELECT seq, sealed FROM copied_records WHERE lane = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
    let mut statement = c.prepare_cached(sql)?;
    let rows = statement.query_map(params![lane.number(), number(after), many(limit)], |row| {
        Ok((number_at(row, 0)?, sealed_at(row, 1)?))
    })?;
    rows.collect()
}
