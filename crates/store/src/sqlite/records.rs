//! Logs and the audit chain as rows of one table that only grows at its end.
//!
//! A turn of any session is written to the table's last page, beside the turn of another session before it: that page is
//! what a commit dirties, however many sessions there are and however long they are. A session's row names its newest
//! record, a record names the one before it, and a load walks back from there. Audit records stand in the same table,
//! in the same order; they have no log and are never removed, and all are of one lane, the one after those that were
//! copied from elsewhere.
//!
//! Two things are put off, since they dirty a page for each session. A row's head: it is written only when something
//! else of the row changes, and for all sessions together whenever an id is reached that [`SETTLED`] divides; what is
//! newer than that is found by looking at the few records at the table's end ([`settle`], [`resolve`]). And the removal
//! of what a fold replaced: it is marked, and [`sweep`] removes it for many sessions together.
//!
//! What is easy to get wrong: pointers. A record's is always to a lower id, and ids are given upwards, so a walk ends,
//! and an id that a record points to is not given again while that record stands. A session's row points at nothing
//! that was removed: whoever removes clears it in the same transaction.

use std::collections::HashMap;

use confidant_seal::{Kid, Sealed, Tag};
use hashlink::LruCache;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::copied::own_lane;
use super::{kid_at, many, number, number_at, sealed_at};
use crate::clock::Millis;
use crate::{Append, Appended, AuditHead, AuditPlace, Loaded, Owner, PendingAudit};

/// What the writer knows without looking, for as long as nobody else writes to the file.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Where the audit lane stands; the inner `None` says that it is empty.
    audit: Option<Option<AuditHead>>,
    sessions: Option<LruCache<Tag, Head>>,
}

/// The part of a session's row that changes.
#[derive(Clone, Copy, Debug)]
struct Head {
    id: i64,
    kid: Kid,
    version: u64,
    head: i64,
    dead: Option<i64>,
    expires_at: Option<i64>,
    owner: Option<[u8; 16]>,
}

/// The most sessions that a writer knows the row of.
const MOST_KNOWN: usize = 4096;

impl Known {
    pub(super) fn forget(&mut self, scope: Tag) {
        if let Some(sessions) = &mut self.sessions {
            sessions.remove(&scope);
        }
    }

    fn sessions(&mut self) -> &mut LruCache<Tag, Head> {
        self.sessions.get_or_insert_with(|| LruCache::new(MOST_KNOWN))
    }

    fn head(&mut self, c: &Connection, scope: Tag) -> rusqlite::Result<Option<Head>> {
        if let Some(head) = self.sessions().get(&scope) {
            return Ok(Some(*head));
        }
        Head::find(c, scope)
    }
}

impl Head {
    fn find(c: &Connection, scope: Tag) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT id, kid, version, head, dead, expires_at, owner FROM sessions WHERE scope_tag = ?1";
        let found = c.prepare_cached(sql)?.query_row([scope.as_bytes()], Self::read).optional()?;
        let Some(mut head) = found else { return Ok(None) };
        resolve(c, |newest| {
            if newest.log == log(head.kid) && newest.id > head.head {
                (head.head, head.version) = (newest.id, newest.seq);
            }
        })?;
        Ok(Some(head))
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            kid: kid_at(row, 1)?,
            version: number_at(row, 2)?,
            head: pointer_at(row, 3)?,
            dead: Some(pointer_at(row, 4)?).filter(|dead| *dead != 0),
            expires_at: row.get(5)?,
            owner: row.get(6)?,
        })
    }
}

/// A whole session, read in the transaction of the caller.
pub(super) fn load(c: &Connection, scope: Tag) -> rusqlite::Result<Option<Loaded>> {
    let Some(head) = Head::find(c, scope)? else { return Ok(None) };
    let snapshot = c
        .prepare_cached("SELECT seq, sealed FROM session_snapshots WHERE session = ?1")?
        .query_row([head.id], |row| Ok((number_at(row, 0)?, sealed_at(row, 1)?)))
        .optional()?;
    let covers = snapshot.as_ref().map_or(0, |(covers, _)| *covers);
    let mut entries = Vec::new();
    // What is not as it should be is handed on as it is, or left out: opening the log finds out, and names it.
    if head.version > covers {
        let mut walk = Walk::from(c, head.kid, head.head)?;
        while let Some((_, seq, sealed)) = walk.next(|row| sealed_at(row, 2))? {
            if seq <= covers {
                break;
            }
            entries.push((seq, sealed));
        }
    }
    entries.reverse();
    Ok(Some(Loaded {
        version: head.version,
        kid: head.kid,
        expires_at: head.expires_at.map(Millis),
        owner: head.owner.map(Owner::from_bytes),
        snapshot,
        entries,
    }))
}

/// The records of a log, newest first. It ends at the first pointer that does not lead down to a record of that log.
struct Walk<'c> {
    record: rusqlite::CachedStatement<'c>,
    log: i64,
    at: i64,
}

impl<'c> Walk<'c> {
    fn from(c: &'c Connection, kid: Kid, at: i64) -> rusqlite::Result<Self> {
        let record = c.prepare_cached("SELECT prev, seq, sealed FROM records WHERE id = ?1 AND log = ?2")?;
        Ok(Self { record, log: log(kid), at })
    }

    /// The next record's id and sequence, and what `read` takes from its row.
    fn next<T>(
        &mut self,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<(i64, u64, T)>> {
        if self.at == 0 {
            return Ok(None);
        }
        let found = self
            .record
            .query_row([self.at, self.log], |row| {
                Ok((pointer_at(row, 0)?, pointer_at(row, 1)?.cast_unsigned(), read(row)?))
            })
            .optional()?;
        let Some((prev, seq, value)) = found else { return Ok(None) };
        let id = self.at;
        self.at = if prev < id { prev } else { 0 };
        Ok(Some((id, seq, value)))
    }
}

/// A pointer, or what stands in its place: a row that is not as it was written must still be erasable.
fn pointer_at(row: &Row<'_>, index: usize) -> rusqlite::Result<i64> {
    Ok(row.get_ref(index)?.as_i64().unwrap_or(0))
}

/// A log's name in its records.
pub(super) fn log(kid: Kid) -> i64 {
    i64::from_be_bytes(*kid.as_bytes())
}

/// Compare-and-set, the records, the fold, the audit records. Says also how many records a fold left to be swept.
pub(super) fn append(
    c: &Connection,
    known: &mut Known,
    append: &Append,
) -> rusqlite::Result<(Appended, u64)> {
    let scope = append.names.scope;
    let before = match known.head(c, scope)? {
        None if append.expected == 0 => None,
        Some(head) if append.expected > 0 && head.version == append.expected && head.kid == append.kid => {
            Some(head)
        }
        _ => return Ok((Appended::Conflict, 0)),
    };
    let covers = append.snapshot.as_ref().map_or(0, |(covers, _)| *covers);
    let mut newest = before.map_or(0, |head| head.head);
    for (seq, sealed) in (append.expected + 1..).zip(&append.entries) {
        if seq > covers {
            newest = insert(c, Some(append.kid), seq, newest, sealed)?;
        }
    }
    let mut head = Head {
        id: before.map_or(0, |head| head.id),
        kid: append.kid,
        version: append.expected + append.entries.len() as u64,
        head: newest,
        dead: before.and_then(|head| head.dead),
        expires_at: append.expires_at.map(|at| at.0),
        owner: append.owner.map(Owner::to_bytes),
    };
    let mut died = 0;
    if let Some(before) = &before
        && append.snapshot.is_some()
    {
        (head.dead, died) = bury(c, before, covers)?;
    }
    store_head(c, append, before.as_ref(), &mut head)?;
    if let Some((covers, sealed)) = &append.snapshot {
        c.prepare_cached(
            "INSERT OR REPLACE INTO session_snapshots (session, seq, sealed) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![head.id, number(*covers), sealed.as_bytes()])?;
    }
    record(c, known, &append.audit)?;
    known.sessions().insert(scope, head);
    Ok((Appended::Done, died))
}

fn insert(c: &Connection, kid: Option<Kid>, seq: u64, prev: i64, sealed: &Sealed) -> rusqlite::Result<i64> {
    c.prepare_cached("INSERT INTO records (log, seq, prev, sealed) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![kid.map(log), number(seq), prev, sealed.as_bytes()])?;
    let id = c.last_insert_rowid();
    if id % SETTLED == 0 {
        settle(c, id)?;
    }
    Ok(id)
}

/// Rows are settled up to the last id that this divides. The larger, the fewer pages a turn dirties on average, and the
/// more records are looked at to open a log.
const SETTLED: i64 = 64;

/// A record that may be newer than what its session's row says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    pub(super) log: i64,
    pub(super) id: i64,
    pub(super) seq: u64,
}

/// Shows the records of logs that are not settled, oldest first. Some that are may be among them.
pub(super) fn resolve(c: &Connection, mut look: impl FnMut(Newest)) -> rusqlite::Result<()> {
    let most = c
        .prepare_cached("SELECT max(id) FROM records")?
        .query_row([], |row| row.get::<_, Option<i64>>(0))?
        .unwrap_or(0);
    window(c, most - most.rem_euclid(SETTLED), most, &mut look)
}

fn window(c: &Connection, after: i64, to: i64, look: &mut impl FnMut(Newest)) -> rusqlite::Result<()> {
    let sql = "SELECT log, id, seq FROM records WHERE id > ?1 AND id <= ?2 AND log IS NOT NULL ORDER BY id";
    let mut statement = c.prepare_cached(sql)?;
    let mut rows = statement.query([after, to])?;
    while let Some(row) = rows.next()? {
        look(Newest { log: pointer_at(row, 0)?, id: row.get(1)?, seq: pointer_at(row, 2)?.cast_unsigned() });
    }
    Ok(())
}

/// Writes the heads of the sessions that have records in the last window up to `id` into their rows.
fn settle(c: &Connection, id: i64) -> rusqlite::Result<()> {
    let mut newest: HashMap<i64, Newest> = HashMap::new();
    window(c, id - SETTLED, id, &mut |found| {
        newest.insert(found.log, found);
    })?;
    let sql = "UPDATE sessions SET version = ?3, head = ?2 WHERE kid = ?1 AND head < ?2";
    let mut update = c.prepare_cached(sql)?;
    for Newest { log, id, seq } in newest.into_values() {
        update.execute(params![log.to_be_bytes(), id, number(seq)])?;
    }
    Ok(())
}

/// The newest record that a snapshot up to `covers` makes superfluous, and how many it does.
fn bury(c: &Connection, before: &Head, covers: u64) -> rusqlite::Result<(Option<i64>, u64)> {
    let covered = c
        .prepare_cached("SELECT seq FROM session_snapshots WHERE session = ?1")?
        .query_row([before.id], |row| number_at(row, 0))
        .optional()?;
    let last = covers.min(before.version);
    let died = last.saturating_sub(covered.unwrap_or(0));
    if last == before.version {
        return Ok(((before.head != 0).then_some(before.head), died));
    }
    let mut walk = Walk::from(c, before.kid, before.head)?;
    while let Some((id, seq, ())) = walk.next(|_| Ok(()))? {
        if seq <= last {
            return Ok((Some(id), died));
        }
    }
    Ok((before.dead, died))
}

/// Writes the session's row, or the part of it that changed.
fn store_head(
    c: &Connection,
    append: &Append,
    before: Option<&Head>,
    head: &mut Head,
) -> rusqlite::Result<()> {
    let Some(before) = before else {
        let names = append.names;
        let sql =
            "INSERT INTO sessions (scope_tag, person_tag, tenant_tag, kid, version, head, expires_at, owner)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let (scope, person, tenant) =
            (names.scope.as_bytes(), names.person.as_bytes(), names.tenant.as_bytes());
        let version = number(head.version);
        let values = params![
            scope,
            person,
            tenant,
            head.kid.as_bytes(),
            version,
            head.head,
            head.expires_at,
            head.owner
        ];
        c.prepare_cached(sql)?.execute(values)?;
        head.id = c.last_insert_rowid();
        return Ok(());
    };
    // Version and head are settled later. The others have an index each, which is why only a change is written.
    if (head.expires_at, head.owner, head.dead) != (before.expires_at, before.owner, before.dead)
        || append.snapshot.is_some()
    {
        let sql = "UPDATE sessions SET version = ?2, head = ?3, dead = ?4, expires_at = ?5, owner = ?6
                   WHERE id = ?1";
        let version = number(head.version);
        let values = params![head.id, version, head.head, head.dead, head.expires_at, head.owner];
        c.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}

/// Removes a session with all its records, those that wait for the sweep included; says how many a load had.
///
/// A row that somebody set back to an earlier one leads to the earlier records only; the later ones stay, without a key.
pub(super) fn erase(c: &Connection, known: &mut Known, scope: Tag) -> rusqlite::Result<u64> {
    known.forget(scope);
    let Some(head) = known.head(c, scope)? else { return Ok(0) };
    let snapshot = c
        .prepare_cached("DELETE FROM session_snapshots WHERE session = ?1 RETURNING seq")?
        .query_row([head.id], |row| number_at(row, 0))
        .optional()?;
    let covers = snapshot.unwrap_or(0);
    let (mut ids, mut seqs) = (Vec::new(), Vec::new());
    let mut walk = Walk::from(c, head.kid, head.head)?;
    while let Some((id, seq, ())) = walk.next(|_| Ok(()))? {
        ids.push(id);
        if seq > covers {
            seqs.push(seq);
        }
    }
    let whole = seqs.len() as u64 == head.version.saturating_sub(covers)
        && head.dead.is_none_or(|dead| ids.contains(&dead));
    if whole {
        remove(c, &mut ids)?;
    } else {
        // Somebody broke the chain: what it does not lead to any more is found the long way.
        c.execute("DELETE FROM records WHERE log = ?1", [log(head.kid)])?;
    }
    c.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([head.id])?;
    Ok(seqs.len() as u64 + u64::from(snapshot.is_some()))
}

/// Removes records that folds left behind, of some sessions; says whether there are more.
pub(super) fn sweep(c: &Connection, known: &mut Known) -> rusqlite::Result<bool> {
    let sql = "SELECT id, kid, dead FROM sessions WHERE dead IS NOT NULL ORDER BY dead LIMIT ?1";
    let mut statement = c.prepare_cached(sql)?;
    let found = statement.query_map([many(MOST_SWEPT)], |row| {
        Ok((row.get::<_, i64>(0)?, kid_at(row, 1)?, pointer_at(row, 2)?))
    })?;
    let found = found.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut left = MOST_SWEPT;
    let mut more = found.len() == MOST_SWEPT;
    for (id, kid, dead) in found {
        if left == 0 {
            more = true;
            break;
        }
        // The chain is walked and removed in one statement, by the same rules as a `Walk`.
        let sql = "DELETE FROM records WHERE id IN (
            WITH RECURSIVE chain (id, prev) AS (
                SELECT id, prev FROM records WHERE id = ?1 AND log = ?2
                UNION ALL
                SELECT records.id, records.prev FROM chain CROSS JOIN records ON records.id = chain.prev
                WHERE records.id < chain.id AND records.log = ?2
            ) SELECT id FROM chain)";
        left = left.saturating_sub(c.prepare_cached(sql)?.execute([dead, log(kid)])?);
        let sql =
            "UPDATE sessions SET head = CASE head WHEN dead THEN 0 ELSE head END, dead = NULL WHERE id = ?1";
        c.prepare_cached(sql)?.execute([id])?;
    }
    known.sessions = None;
    Ok(more)
}

/// About how many records one transaction sweeps: enough to share pages, few enough not to keep turns waiting.
const MOST_SWEPT: usize = 2048;

fn remove(c: &Connection, ids: &mut [i64]) -> rusqlite::Result<()> {
    ids.sort_unstable();
    let mut delete = c.prepare_cached("DELETE FROM records WHERE id = ?1")?;
    for id in ids {
        delete.execute([*id])?;
    }
    Ok(())
}

/// Appends audit records; says where the lane stands then.
pub(super) fn record(
    c: &Connection,
    known: &mut Known,
    audit: &[PendingAudit],
) -> rusqlite::Result<Option<AuditHead>> {
    let mut head = match known.audit {
        Some(head) => head,
        None => audit_head(c)?,
    };
    for pending in audit {
        let place = match head {
            Some(head) => head.next(),
            None => AuditPlace::first(own_lane(c)?),
        };
        let sealed = pending.link(place);
        insert(c, None, place.seq, 0, &sealed)?;
        head = sealed.tag().map(|tag| AuditHead { lane: place.lane, seq: place.seq, tag });
    }
    known.audit = Some(head);
    Ok(head.filter(|_| !audit.is_empty()))
}

pub(super) fn audit_head(c: &Connection) -> rusqlite::Result<Option<AuditHead>> {
    let last = c
        .prepare_cached("SELECT seq, sealed FROM records WHERE log IS NULL ORDER BY id DESC LIMIT 1")?
        .query_row([], |row| Ok((number_at(row, 0)?, sealed_at(row, 1)?)))
        .optional()?;
    let lane = own_lane(c)?;
    Ok(last.and_then(|(seq, sealed)| sealed.tag().map(|tag| AuditHead { lane, seq, tag })))
}

/// Audit records after a sequence.
pub(super) fn audit(c: &Connection, after: u64, limit: usize) -> rusqlite::Result<Vec<(u64, Sealed)>> {
    let from = if after == 0 { 0 } else { place_of(c, after)? };
    let sql = "SELECT seq, sealed FROM records WHERE id > ?1 AND log IS NULL ORDER BY id LIMIT ?2";
    let mut statement = c.prepare_cached(sql)?;
    let rows =
        statement.query_map([from, many(limit)], |row| Ok((number_at(row, 0)?, sealed_at(row, 1)?)))?;
    rows.collect()
}

/// The id of the last audit record up to a sequence, found by halving: both rise together.
fn place_of(c: &Connection, seq: u64) -> rusqlite::Result<i64> {
    let most: Option<i64> = c.query_row("SELECT max(id) FROM records", [], |row| row.get(0))?;
    let mut next =
        c.prepare_cached("SELECT id, seq FROM records WHERE id >= ?1 AND log IS NULL ORDER BY id LIMIT 1")?;
    // Everything up to `low` is not after it; everything from `high` on is.
    let (mut low, mut high) = (0, most.unwrap_or(0).saturating_add(1));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let found =
            next.query_row([middle], |row| Ok((row.get::<_, i64>(0)?, number_at(row, 1)?))).optional()?;
        match found {
            Some((id, found)) if found <= seq => low = id.max(middle),
            _ => high = middle,
        }
    }
    Ok(low)
}
