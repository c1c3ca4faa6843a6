//! Rings as rows.

use confidant_chat_format::{Digest, Entry, rings_digest};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::checks::Kids;
use super::super::names::{ring_key, ring_of, subs_bytes, subs_of};
use super::super::plan;
use super::super::rings::{RingEntry, RingName};
use super::Work;
use super::rows::{damaged, get, kid_at, sealed_at, u32_at};

/// The entries of a ring.
pub(super) const ENTRIES: &str =
    "SELECT n, kid, subs, sealed FROM rings WHERE account = $1 AND container = $2 AND kind = $3 ORDER BY n";
/// The ids of a ring's keys, without what is sealed, which no check looks at.
pub(super) const KIDS: &str =
    "SELECT n, kid, subs, born FROM rings WHERE account = $1 AND container = $2 AND kind = $3 ORDER BY n";
/// All rings' keys, without what is sealed.
pub(super) const ALL_KIDS: &str =
    "SELECT n, kid, subs, born, container, kind FROM rings WHERE account = $1 ORDER BY container, kind, n";
/// New entries.
pub(super) const APPEND: &str = "INSERT INTO rings (account, container, kind, n, kid, subs, born, sealed)
    SELECT $1, container, kind, n, kid, subs, $2, sealed
    FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[], $8::bytea[])
        AS u (container, kind, n, kid, subs, sealed)";

/// n, kid, subs and sealed, from this column on.
pub(super) fn entry_at(row: &Row, at: usize) -> Work<Entry> {
    Ok(Entry {
        n: u32_at(row, at)?,
        kid: kid_at(row, at + 1)?,
        subs: subs_of(get(row, at + 2)?).ok_or_else(damaged)?,
        sealed: sealed_at(row, at + 3)?,
    })
}

/// A row that begins with container and kind.
pub(super) fn ring_entry_at(row: &Row) -> Work<RingEntry> {
    let of = ring_of(get(row, 0)?, get(row, 1)?).ok_or_else(damaged)?;
    Ok(RingEntry { of, entry: entry_at(row, 2)? })
}

/// What [`KIDS`] found.
pub(super) fn kids<'r>(rows: impl IntoIterator<Item = &'r Row>, generation: u32) -> Work<Kids> {
    let rows = rows.into_iter().map(|row| {
        let subs = subs_of(get(row, 2)?).ok_or_else(damaged)?;
        Ok((u32_at(row, 0)?, kid_at(row, 1)?, subs, u32_at(row, 3)?))
    });
    Ok(plan::kids(rows.collect::<Work<_>>()?, generation)?)
}

/// The keys of one ring among those of [`ALL_KIDS`].
pub(super) fn kids_of(rows: &[Row], of: &RingName, generation: u32) -> Work<Kids> {
    let is_its = |row: &&Row| {
        let (container, kind) = ring_key(of);
        get::<&str>(row, 4).is_ok_and(|text| text == container)
            && get::<i64>(row, 5).is_ok_and(|number| number == kind)
    };
    kids(rows.iter().filter(is_its), generation)
}

/// The digest of all entries that there are. What is sealed is not part of it.
pub(super) fn digest(rows: &[Row]) -> Work<Digest> {
    let entries = rows.iter().map(|row| {
        let of = ring_of(get(row, 4)?, get(row, 5)?).ok_or_else(damaged)?;
        let subs = subs_of(get(row, 2)?).ok_or_else(damaged)?;
        let sealed = confidant_seal::Sealed::from_bytes(Vec::new());
        Ok(RingEntry { of, entry: Entry { n: u32_at(row, 0)?, kid: kid_at(row, 1)?, subs, sealed } })
    });
    let entries = entries.collect::<Work<Vec<_>>>()?;
    Ok(rings_digest(entries.iter().map(|row| (row.of.of(), &row.entry))))
}

/// Entries as columns.
#[derive(Debug, Default)]
pub(super) struct Columns<'a> {
    containers: Vec<&'a str>,
    kinds: Vec<i64>,
    ns: Vec<i64>,
    kids: Vec<&'a [u8]>,
    subs: Vec<Vec<u8>>,
    sealed: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    pub(super) fn new(entries: impl IntoIterator<Item = (&'a RingName, &'a Entry)>) -> Self {
        let mut columns = Self::default();
        for (of, entry) in entries {
            let (container, kind) = ring_key(of);
            columns.containers.push(container);
            columns.kinds.push(kind);
            columns.ns.push(i64::from(entry.n));
            columns.kids.push(entry.kid.as_bytes());
            columns.subs.push(subs_bytes(entry));
            columns.sealed.push(entry.sealed.as_bytes());
        }
        columns
    }

    /// Container, kind, n, kid, subs, sealed.
    pub(super) fn args(&self) -> [&(dyn ToSql + Sync); 6] {
        [&self.containers, &self.kinds, &self.ns, &self.kids, &self.subs, &self.sealed]
    }

    /// Container, kind, n, kid.
    pub(super) fn names(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.containers, &self.kinds, &self.ns, &self.kids]
    }
}
