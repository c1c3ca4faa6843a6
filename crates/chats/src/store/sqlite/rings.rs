//! Rings as rows: read, and appended to.

use confidant_chat_format::{ChatId, Entry, Refused};
use confidant_seal::Kid;
use rusqlite::{Connection, Row, params};

use super::super::checks::Kids;
use super::super::rings::{RingEntry, RingName};
use super::Work;
use super::rows::{Account, all, kid_at, parsed_at, run, sealed_at};

/// How a ring is named in a row: container and kind.
pub(super) fn key(of: &RingName) -> (&str, i64) {
    match of {
        RingName::Chat(chat) => (chat.as_str(), 0),
        RingName::Account => ("", 1),
        RingName::Box => ("", 2),
    }
}

/// A row that begins with container and kind.
pub(super) fn ring_entry_at(row: &Row<'_>) -> rusqlite::Result<RingEntry> {
    let of = match row.get(1)? {
        0 => RingName::Chat(parsed_at(row, 0, ChatId::parse)?),
        1 => RingName::Account,
        2 => RingName::Box,
        other => return Err(rusqlite::Error::IntegralValueOutOfRange(1, other)),
    };
    Ok(RingEntry { of, entry: entry_at(row, 2)? })
}

/// n, kid, subs and sealed, from this column on.
fn entry_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Entry> {
    let subs = row.get_ref(at + 2)?.as_blob()?;
    let (subs, rest) = subs.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(rusqlite::Error::InvalidQuery);
    }
    Ok(Entry {
        n: row.get(at)?,
        kid: kid_at(row, at + 1)?,
        subs: subs.iter().copied().map(Kid::from_bytes).collect(),
        sealed: sealed_at(row, at + 3)?,
    })
}

/// The entries of a ring.
pub(super) fn entries(c: &Connection, account: i64, of: &RingName) -> rusqlite::Result<Vec<Entry>> {
    let (container, kind) = key(of);
    let sql = "SELECT n, kid, subs, sealed FROM rings WHERE account = ?1 AND container = ?2 AND kind = ?3 ORDER BY n";
    all(c, sql, params![account, container, kind], |row| entry_at(row, 0))
}

/// The ids of a ring's keys. Numbers that are not 1, 2, … are `ring-gap`.
pub(super) fn kids(c: &Connection, account: &Account, of: &RingName) -> Work<Kids> {
    // Without what is sealed, which nothing here looks at.
    let (container, kind) = key(of);
    let sql = "SELECT n, kid, subs, x'', born FROM rings WHERE account = ?1 AND container = ?2 AND kind = ?3 ORDER BY n";
    let rows = all(c, sql, params![account.n, container, kind], |row| {
        Ok((entry_at(row, 0)?, row.get::<_, u32>(4)?))
    })?;
    if !rows.iter().map(|(entry, _)| entry.n).eq((1..).take(rows.len())) {
        return Err(Refused::RingGap.into());
    }
    let born = rows.last().map_or(0, |(_, born)| *born);
    let (kids, subs) = rows.into_iter().map(|(entry, _)| (entry.kid, entry.subs)).unzip();
    Ok(Kids { kids, subs, born, generation: account.generation })
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
    let (container, kind) = key(of);
    let sql = "INSERT INTO rings (account, container, kind, n, kid, subs, born, sealed)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let (kid, subs, sealed) = (entry.kid.as_bytes(), subs(entry), entry.sealed.as_bytes());
    run(c, sql, params![account.n, container, kind, entry.n, kid, subs, account.generation, sealed])?;
    Ok(())
}

/// Keeps an entry aside that is to take the place of the one with its number.
pub(super) fn stage(c: &Connection, account: i64, of: &RingName, entry: &Entry) -> rusqlite::Result<()> {
    let (container, kind) = key(of);
    let sql = "INSERT OR REPLACE INTO staged (account, container, kind, n, kid, subs, sealed)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let kid = entry.kid.as_bytes();
    run(c, sql, params![account, container, kind, entry.n, kid, subs(entry), entry.sealed.as_bytes()])
        .map(drop)
}

fn subs(entry: &Entry) -> Vec<u8> {
    entry.subs.iter().flat_map(|kid| *kid.as_bytes()).collect()
}
