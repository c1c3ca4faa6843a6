//! Rings as rows: read, and appended to.

use confidant_chat_format::Entry;
use rusqlite::{Connection, Row, params};

use super::super::checks::Kids;
use super::super::names::{ring_key, ring_of, subs_bytes, subs_of};
use super::super::plan;
use super::super::rings::{RingEntry, RingName};
use super::Work;
use super::rows::{Account, all, kid_at, run, sealed_at};

/// A row that begins with container and kind.
pub(super) fn ring_entry_at(row: &Row<'_>) -> rusqlite::Result<RingEntry> {
    let of = ring_of(row.get_ref(0)?.as_str()?, row.get(1)?).ok_or(rusqlite::Error::InvalidQuery)?;
    Ok(RingEntry { of, entry: entry_at(row, 2)? })
}

/// n, kid, subs and sealed, from this column on.
fn entry_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Entry> {
    Ok(Entry {
        n: row.get(at)?,
        kid: kid_at(row, at + 1)?,
        subs: subs_of(row.get_ref(at + 2)?.as_blob()?).ok_or(rusqlite::Error::InvalidQuery)?,
        sealed: sealed_at(row, at + 3)?,
    })
}

/// The entries of a ring.
pub(super) fn entries(c: &Connection, account: i64, of: &RingName) -> rusqlite::Result<Vec<Entry>> {
    let (container, kind) = ring_key(of);
    let sql = "SELECT n, kid, subs, sealed FROM rings WHERE account = ?1 AND container = ?2 AND kind = ?3 ORDER BY n";
    all(c, sql, params![account, container, kind], |row| entry_at(row, 0))
}

/// The ids of a ring's keys.
pub(super) fn kids(c: &Connection, account: &Account, of: &RingName) -> Work<Kids> {
    // Without what is sealed, which nothing here looks at.
    let (container, kind) = ring_key(of);
    let sql = "SELECT n, kid, subs, x'', born FROM rings WHERE account = ?1 AND container = ?2 AND kind = ?3 ORDER BY n";
    let rows = all(c, sql, params![account.n, container, kind], |row| {
        let entry = entry_at(row, 0)?;
        Ok((entry.n, entry.kid, entry.subs, row.get::<_, u32>(4)?))
    })?;
    Ok(plan::kids(rows, account.standing.generation)?)
}

/// Checks the next entry of a ring and writes it. A conflict names the revision that is `there`.
pub(super) fn append(
    c: &Connection,
    account: &Account,
    ring: &mut Kids,
    new: (&RingName, &Entry),
    there: u32,
) -> Work<()> {
    let (of, entry) = new;
    ring.append(of, entry, there)?;
    Ok(put(c, account, of, entry)?)
}

/// Writes an entry that was checked.
pub(super) fn put(c: &Connection, account: &Account, of: &RingName, entry: &Entry) -> rusqlite::Result<()> {
    let (container, kind) = ring_key(of);
    let sql = "INSERT INTO rings (account, container, kind, n, kid, subs, born, sealed)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let (kid, subs, sealed) = (entry.kid.as_bytes(), subs_bytes(entry), entry.sealed.as_bytes());
    run(c, sql, params![account.n, container, kind, entry.n, kid, subs, account.standing.generation, sealed])
        .map(drop)
}

/// Keeps an entry aside that is to take the place of the one with its number.
pub(super) fn stage(c: &Connection, account: i64, of: &RingName, entry: &Entry) -> rusqlite::Result<()> {
    let (container, kind) = ring_key(of);
    let sql = "INSERT OR REPLACE INTO staged (account, container, kind, n, kid, subs, sealed)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let kid = entry.kid.as_bytes();
    run(c, sql, params![account, container, kind, entry.n, kid, subs_bytes(entry), entry.sealed.as_bytes()])
        .map(drop)
}
