//! The rotation of the account key: staged aside, put in force by one commit.
//!
//! What is staged lies in a table of its own, which nothing else reads. So a rotation that is cut off anywhere before its
//! commit has changed nothing but the epoch.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Digest, Entry, Shelf, check_commit, rings_digest};
use confidant_seal::{Kid, Sealed};
use rusqlite::{Connection, params};

use super::super::checks::{check_entry, sized};
use super::super::names::ring_key;
use super::super::plan::own_and_box;
use super::super::rings::{BeginRotation, CommitRotation, Frozen, RingEntry, RingName, Rings, Stage, Staged};
use super::super::{Changed, Millis, Result, StoreError, limits};
use super::rings::{append, entries, kids, ring_entry_at};
use super::rows::{Account, account, all, kid_at, many, note, number, one, run, sealed_at, value};
use super::{SqliteChats, Work, accounts, lists, restore, rings};

#[async_trait]
impl Rings for SqliteChats {
    async fn ring(&self, whose: &AccountId, of: &RingName) -> Result<Vec<Entry>> {
        let (whose, of) = (whose.clone(), of.clone());
        self.read_with(move |c| Ok(entries(c, account(c, &whose)?.n, &of)?)).await
    }

    async fn rings(&self, whose: &AccountId, after: Option<(RingName, u32)>) -> Result<Vec<RingEntry>> {
        let whose = whose.clone();
        self.read_with(move |c| {
            let n = account(c, &whose)?.n;
            let (container, kind, last) = match &after {
                Some((of, last)) => (ring_key(of).0, ring_key(of).1, *last),
                None => ("", 0, 0),
            };
            let sql = "SELECT container, kind, n, kid, subs, sealed FROM rings
                       WHERE account = ?1 AND (container, kind, n) > (?2, ?3, ?4)
                       ORDER BY container, kind, n LIMIT ?5";
            Ok(all(c, sql, params![n, container, kind, last, many(limits::PAGE)], ring_entry_at)?)
        })
        .await
    }

    async fn begin_rotation(&self, begin: BeginRotation) -> Result<Frozen> {
        self.write_with(move |c| self::begin(c, &begin)).await
    }

    async fn stage(&self, stage: Stage) -> Result<Staged> {
        self.write_with(move |c| self::stage(c, &stage)).await
    }

    async fn staged_floors(&self, whose: &AccountId) -> Result<Vec<(Shelf, Sealed)>> {
        let whose = whose.clone();
        self.read_with(move |c| {
            let sql = "SELECT shelf, envelope FROM staged_floors WHERE account = ?1 ORDER BY shelf";
            let rows = all(c, sql, params![account(c, &whose)?.n], |row| {
                Ok((row.get::<_, usize>(0)?, sealed_at(row, 1)?))
            })?;
            Ok(rows.into_iter().filter_map(|(at, floor)| Some((Shelf::all().nth(at)?, floor))).collect())
        })
        .await
    }

    async fn commit_rotation(&self, commit: CommitRotation) -> Result<u32> {
        self.write_with(move |c| self::commit(c, &commit)).await
    }

    async fn reseal(&self, whose: &AccountId, of: &RingName, entries: Vec<Entry>) -> Result<()> {
        let (whose, of) = (whose.clone(), of.clone());
        self.write_with(move |c| {
            let sent: Vec<&Entry> = entries.iter().collect();
            restore::reseal(c, account(c, &whose)?.n, &of, &sent)
        })
        .await
    }

    async fn abandon_rotation(&self, whose: &AccountId) -> Result<()> {
        let whose = whose.clone();
        self.write_with(move |c| Ok(thaw(c, account(c, &whose)?.n)?)).await
    }
}

pub(super) fn begin(c: &Connection, begin: &BeginRotation) -> Work<Frozen> {
    let found = account(c, &begin.account)?;
    if found.standing.rev != begin.expected {
        return Err(StoreError::Conflict { now: found.standing.rev }.into());
    }
    thaw(c, found.n)?;
    let epoch = accounts::end_other_sessions(c, &found, begin.session)?;
    let until = begin.now.plus(limits::FREEZE);
    run(c, "UPDATE accounts SET frozen_until = ?2 WHERE n = ?1", params![found.n, number(until.0)])?;
    Ok(Frozen { epoch, until })
}

pub(super) fn stage(c: &Connection, stage: &Stage) -> Work<Staged> {
    if stage.entries.len() > limits::STAGED_A_CALL {
        return Err(StoreError::TooMany("keys in one call").into());
    }
    let found = account(c, &stage.account)?;
    found.standing.in_rotation(stage.epoch, stage.now)?;
    if let Some(wrap) = stage.wrap {
        let sql = "INSERT INTO rotations (account, wrap) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        run(c, sql, params![found.n, wrap.as_bytes()])?;
        under(c, &found, wrap)?;
    } else if !stage.entries.is_empty() {
        return Err(StoreError::Malformed("entries are sealed under a key").into());
    }
    for RingEntry { of, entry } in &stage.entries {
        check_entry(of, entry)?;
        // Only an entry that takes the place of one that is there: nobody fills the table with others.
        let (container, kind) = ring_key(of);
        let sql =
            "SELECT 1 FROM rings WHERE account = ?1 AND container = ?2 AND kind = ?3 AND n = ?4 AND kid = ?5";
        let kid = entry.kid.as_bytes();
        if one(c, sql, params![found.n, container, kind, entry.n, kid], |_| Ok(()))?.is_none() {
            return Err(StoreError::Conflict { now: found.standing.rev }.into());
        }
        rings::stage(c, found.n, of, entry)?;
    }
    for (shelf, floor) in &stage.floors {
        sized(floor.as_bytes(), limits::FLOOR_BYTES, "floor")?;
        let sql = "INSERT OR REPLACE INTO staged_floors (account, shelf, envelope) VALUES (?1, ?2, ?3)";
        run(c, sql, params![found.n, shelf.index(), floor.as_bytes()])?;
    }
    let sql = "SELECT count(*) FROM (SELECT DISTINCT container, kind FROM staged WHERE account = ?1)";
    let rings = value(c, sql, params![found.n])?;
    let floors = value(c, "SELECT count(*) FROM staged_floors WHERE account = ?1", params![found.n])?;
    Ok(Staged { rings, floors })
}

/// `conflict` unless what is staged is sealed under this key.
fn under(c: &Connection, account: &Account, wrap: Kid) -> Work<()> {
    let there =
        one(c, "SELECT wrap FROM rotations WHERE account = ?1", params![account.n], |row| kid_at(row, 0))?;
    if there == Some(wrap) { Ok(()) } else { Err(StoreError::Conflict { now: account.standing.rev }.into()) }
}

pub(super) fn commit(c: &Connection, commit: &CommitRotation) -> Work<u32> {
    let found = account(c, &commit.account)?;
    found.standing.in_rotation(commit.epoch, commit.now)?;
    under(c, &found, commit.wrap)?;
    let conflict = StoreError::Conflict { now: found.standing.rev };
    let own = own_digest(c, found.n)?;
    check_commit((commit.expected, &commit.digest), (found.standing.rev, &own))
        .map_err(|_| conflict.clone())?;
    // Every entry has its successor, with the same keys; nothing else was staged.
    let sql = "SELECT count(*) FROM rings AS r LEFT JOIN staged AS s USING (account, container, kind, n)
               WHERE r.account = ?1 AND (s.kid IS NOT r.kid OR s.subs IS NOT r.subs)";
    let lacking: i64 = value(c, sql, params![found.n])?;
    let staged: i64 = value(c, "SELECT count(*) FROM staged WHERE account = ?1", params![found.n])?;
    let there: i64 = value(c, "SELECT count(*) FROM rings WHERE account = ?1", params![found.n])?;
    if lacking > 0 || staged != there {
        return Err(conflict.into());
    }
    let sql = "UPDATE rings SET sealed = s.sealed FROM staged AS s WHERE rings.account = ?1 AND s.account = rings.account
               AND s.container = rings.container AND s.kind = rings.kind AND s.n = rings.n";
    run(c, sql, params![found.n])?;
    thaw(c, found.n)?;
    let mut next = found;
    next.standing.generation = found.standing.generation.saturating_add(1);
    own_and_box(&commit.append, "a rotation adds a key to the account's ring and to the mailbox's")?;
    for RingEntry { of, entry } in &commit.append {
        let mut ring = kids(c, &next, of)?;
        append(c, &next, &mut ring, (of, entry), found.standing.rev)?;
    }
    if commit.list.floors.len() != 16 {
        return Err(StoreError::Malformed("a rotation writes all sixteen floors").into());
    }
    lists::put_list(c, &next, &commit.list)?;
    sized(commit.record.as_bytes(), limits::RECORD_BYTES, "account record")?;
    accounts::put_credentials(c, found.n, commit.login, &commit.credentials)?;
    let sql = "DELETE FROM sessions WHERE account = ?1 AND id <> ?2";
    run(c, sql, params![found.n, commit.session.as_bytes()])?;
    let sql = "UPDATE accounts SET rev = rev + 1, generation = generation + 1, record = ?2 WHERE n = ?1 RETURNING rev";
    let rev = value(c, sql, params![next.n, commit.record.as_bytes()])?;
    note(c, found.n, &Changed::Account)?;
    note(c, found.n, &Changed::List)?;
    Ok(rev)
}

/// The digest of all entries that there are. What is sealed is not part of it, and not read.
fn own_digest(c: &Connection, account: i64) -> rusqlite::Result<Digest> {
    let sql = "SELECT container, kind, n, kid, subs, x'' FROM rings WHERE account = ?1";
    let entries = all(c, sql, params![account], ring_entry_at)?;
    Ok(rings_digest(entries.iter().map(|row| (row.of.of(), &row.entry))))
}

/// Ends a freeze and drops what was staged.
pub(super) fn thaw(c: &Connection, account: i64) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM staged WHERE account = ?1",
        "DELETE FROM staged_floors WHERE account = ?1",
        "DELETE FROM rotations WHERE account = ?1",
    ] {
        run(c, sql, params![account])?;
    }
    run(c, "UPDATE accounts SET frozen_until = NULL WHERE n = ?1", params![account]).map(drop)
}

/// Ends every freeze that is over.
pub(super) fn thaw_expired(c: &Connection, now: Millis) -> rusqlite::Result<usize> {
    let over: Vec<i64> =
        all(c, "SELECT n FROM accounts WHERE frozen_until <= ?1", params![number(now.0)], |row| row.get(0))?;
    over.iter().try_for_each(|account| thaw(c, *account))?;
    Ok(over.len())
}
