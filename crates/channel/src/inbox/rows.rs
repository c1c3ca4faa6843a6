//! Rows and the statements that move them. Knows nothing of what was said in them; whose they are say their stamps.

use confidant_engine::clock::Millis;
use confidant_seal::{Sealed, Tag};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::stamps::{ASIDE, File, Kept, Said, Stamp, Stamps};
use super::{Cursor, MOST_KEPT};

// Where a row stands, as `state` has it: 0 received, 1 claimed, 2 waiting for somebody's approval (nothing behind it waits
// for it), 3 finished, 4 set aside because nothing vouches for it.

/// What kind of event a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    Said = 0,
    Edited = 1,
    Removed = 2,
    /// `!forget`: survives the erasure that it asks for, so that it is answered.
    Forget = 3,
    /// Does not wait for what was said before it.
    Urgent = 4,
}

impl RowKind {
    pub(super) fn from(number: i64) -> Self {
        match number {
            1 => Self::Edited,
            2 => Self::Removed,
            3 => Self::Forget,
            4 => Self::Urgent,
            _ => Self::Said,
        }
    }
}

/// An event to store.
#[derive(Debug)]
pub(crate) struct NewRow {
    pub(crate) account: Tag,
    pub(crate) event: Tag,
    pub(crate) room: Option<Tag>,
    pub(crate) scope: Tag,
    pub(crate) person: Tag,
    pub(crate) kind: RowKind,
    pub(crate) target: Option<Tag>,
    pub(crate) route: Option<Sealed>,
    pub(crate) body: Option<Sealed>,
    pub(crate) at: Millis,
    /// Moves the room's cursor: its place, what it is, and the person whose private room it is.
    pub(crate) cursor: Option<(i64, Cursor, Option<Tag>)>,
}

/// A stored event.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) seq: i64,
    pub(crate) account: Tag,
    pub(crate) event: Tag,
    pub(crate) scope: Option<Tag>,
    pub(crate) kind: RowKind,
    pub(crate) target: Option<Tag>,
    /// How often it was claimed, this time included.
    pub(crate) attempts: u32,
    pub(crate) received_at: Millis,
    pub(crate) route: Option<Sealed>,
    pub(crate) body: Option<Sealed>,
    pub(crate) sent: Option<Sealed>,
    pub(crate) waits: Option<Sealed>,
    pub(super) stamp: Option<Sealed>,
}

const COLUMNS: &str =
    "seq, account, event, scope, kind, target, attempts, received_at, route, body, sent, waits, stamp";

/// Whose rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    Person(Tag),
    Session(Tag),
}

/// One after the other.
pub(super) const STEPS: &[&str] = &[SCHEMA, STAMPED];

/// What vouches for the rows.
const STAMPED: &str = "
ALTER TABLE events ADD COLUMN stamp BLOB;
CREATE TABLE rolls (name TEXT PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID;
";

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    account BLOB NOT NULL,
    event BLOB NOT NULL UNIQUE,
    room BLOB,
    scope BLOB,
    person BLOB,
    kind INTEGER NOT NULL,
    target BLOB,
    state INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER NOT NULL DEFAULT 0,
    received_at INTEGER NOT NULL,
    finished_at INTEGER,
    carried INTEGER NOT NULL DEFAULT 0,
    route BLOB, body BLOB, sent BLOB, waits BLOB
);
CREATE INDEX IF NOT EXISTS events_open ON events (account, state, seq) WHERE state < 3;
CREATE INDEX IF NOT EXISTS events_order ON events (scope, seq) WHERE state < 2;
CREATE INDEX IF NOT EXISTS events_scope ON events (scope);
CREATE INDEX IF NOT EXISTS events_person ON events (person);
CREATE INDEX IF NOT EXISTS events_finished ON events (finished_at) WHERE state = 3;
CREATE TABLE IF NOT EXISTS cursors (
    account BLOB NOT NULL,
    room BLOB NOT NULL,
    place INTEGER NOT NULL,
    person BLOB,
    sealed BLOB NOT NULL,
    PRIMARY KEY (account, room)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kept (name BLOB PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID;
";

/// Stores an event with its cursor; false if it is there already.
pub(crate) fn insert(c: &mut File, row: &NewRow) -> rusqlite::Result<bool> {
    let stamps = c.stamps()?;
    let tx = begin(c)?;
    let added = tx
        .prepare_cached(
            "INSERT INTO events (account, event, room, scope, person, kind, target, received_at, route, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (event) DO NOTHING",
        )?
        .execute(params![
            row.account.as_bytes(),
            row.event.as_bytes(),
            row.room.as_ref().map(Tag::as_bytes),
            row.scope.as_bytes(),
            row.person.as_bytes(),
            row.kind as i64,
            row.target.as_ref().map(Tag::as_bytes),
            row.at.0,
            row.route.as_ref().map(Sealed::as_bytes),
            row.body.as_ref().map(Sealed::as_bytes),
        ])?;
    let mut kept = stamps.kept(&tx)?;
    if added > 0 {
        let said = Said {
            seq: tx.last_insert_rowid(),
            scope: Some(row.scope),
            person: Some(row.person),
            kind: row.kind,
            target: row.target,
            room: row.room,
            at: row.at,
            carried: false,
        };
        stamp(&tx, &stamps, row.account, row.event, &said)?;
        kept.open.put(said.seq.cast_unsigned());
        kept.rows += 1;
    }
    if let (Some(room), Some((place, cursor, person))) = (row.room, &row.cursor) {
        write_cursor(&tx, &stamps, &mut kept, (row.account, room), (*place, cursor, *person))?;
    }
    stamps.keep(&tx, &kept)?;
    tx.commit()?;
    Ok(added > 0)
}

fn begin(c: &mut File) -> rusqlite::Result<rusqlite::Transaction<'_>> {
    c.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
}

fn stamp(c: &Connection, stamps: &Stamps, account: Tag, event: Tag, said: &Said) -> rusqlite::Result<()> {
    let sealed = stamps.seal(account, event, &Stamp::of(said));
    c.prepare_cached("UPDATE events SET stamp = ?2 WHERE seq = ?1")?
        .execute(params![said.seq, sealed.as_bytes()])
        .map(drop)
}

/// Notes that an event is gone that is not stored: should it still come, it is not answered.
pub(crate) fn bury(c: &mut File, account: Tag, event: Tag, now: Millis) -> rusqlite::Result<()> {
    let stamps = c.stamps()?;
    let tx = begin(c)?;
    let added = tx
        .prepare_cached(
            "INSERT INTO events (account, event, kind, state, received_at, finished_at) VALUES (?1, ?2, ?3, 3, ?4, ?4)
             ON CONFLICT (event) DO NOTHING",
        )?
        .execute(params![account.as_bytes(), event.as_bytes(), RowKind::Removed as i64, now.0])?;
    if added > 0 {
        let (seq, kind) = (tx.last_insert_rowid(), RowKind::Removed);
        let said =
            Said { seq, scope: None, person: None, kind, target: None, room: None, at: now, carried: false };
        stamp(&tx, &stamps, account, event, &said)?;
        let mut kept = stamps.kept(&tx)?;
        kept.rows += 1;
        stamps.keep(&tx, &kept)?;
    }
    tx.commit()
}

/// Whether an event is stored, before the work of sealing it.
pub(crate) fn is_known(c: &Connection, event: Tag) -> rusqlite::Result<bool> {
    let found = c.prepare_cached("SELECT 1 FROM events WHERE event = ?1")?.exists([event.as_bytes()])?;
    Ok(found)
}

/// The session that an event belongs to, if that is still known.
pub(crate) fn session_of(c: &File, event: Tag) -> rusqlite::Result<Option<(Tag, Tag)>> {
    let stamps = c.stamps()?;
    let sql = "SELECT seq FROM events WHERE event = ?1";
    let seq: Option<i64> =
        c.prepare_cached(sql)?.query_row([event.as_bytes()], |row| row.get(0)).optional()?;
    let Some(seq) = seq else { return Ok(None) };
    let stamp = stamps.stamp_of(c, seq)?;
    Ok(stamp.and_then(|(_, _, stamp)| stamp.scope().zip(stamp.person())))
}

/// Moves a room's cursor, unless it is farther.
pub(crate) fn move_cursor(
    c: &mut File,
    account: Tag,
    room: Tag,
    place: i64,
    cursor: &Cursor,
) -> rusqlite::Result<()> {
    let stamps = c.stamps()?;
    let tx = begin(c)?;
    let mut kept = stamps.kept(&tx)?;
    write_cursor(&tx, &stamps, &mut kept, (account, room), (place, cursor, None))?;
    stamps.keep(&tx, &kept)?;
    tx.commit()
}

fn write_cursor(
    c: &Connection,
    stamps: &Stamps,
    kept: &mut Kept,
    (account, room): (Tag, Tag),
    (place, cursor, person): (i64, &Cursor, Option<Tag>),
) -> rusqlite::Result<()> {
    let sql = "SELECT sealed FROM cursors WHERE account = ?1 AND room = ?2";
    let names = [account.as_bytes(), room.as_bytes()];
    let before = c.prepare_cached(sql)?.query_row(names, |row| row.get::<_, Vec<u8>>(0)).optional()?;
    let is_new = before.is_none();
    let before = before.and_then(|sealed| stamps.open_place(account, room, &Sealed::from_bytes(sealed)));
    if before.as_ref().is_some_and(|(_, _, before, _)| *before > place) {
        return Ok(());
    }
    let known = before.and_then(|(.., person)| person);
    let person = person.map(|person| person.to_string()).or(known);
    let tag = person.as_deref().and_then(Tag::from_hex);
    let sealed = stamps.seal_place(account, room, &cursor.place(place, person));
    c.prepare_cached(
        "INSERT OR REPLACE INTO cursors (account, room, place, person, sealed) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        account.as_bytes(),
        room.as_bytes(),
        place,
        tag.as_ref().map(Tag::as_bytes),
        sealed.as_bytes()
    ])?;
    kept.cursors += u64::from(is_new);
    Ok(())
}

/// Where each room of an account stands.
pub(crate) fn cursors(c: &File, account: Tag) -> rusqlite::Result<Vec<Cursor>> {
    let stamps = c.stamps()?;
    let mut statement = c.prepare_cached("SELECT room, sealed FROM cursors WHERE account = ?1")?;
    let rows = statement.query_map([account.as_bytes()], |row| {
        let (Ok(room), Ok(sealed)) = (row.get(0).map(Tag::from_bytes), row.get(1).map(Sealed::from_bytes))
        else {
            return Ok(None);
        };
        Ok(stamps.open_place(account, room, &sealed).map(|(room, event, ..)| Cursor { room, event }))
    })?;
    rows.filter_map(Result::transpose).collect()
}

pub(crate) fn drop_cursor(c: &mut File, account: Tag, room: Tag) -> rusqlite::Result<()> {
    let stamps = c.stamps()?;
    let tx = begin(c)?;
    let sql = "DELETE FROM cursors WHERE account = ?1 AND room = ?2";
    let gone = tx.execute(sql, [account.as_bytes(), room.as_bytes()])?;
    let mut kept = stamps.kept(&tx)?;
    kept.cursors = kept.cursors.saturating_sub(gone as u64);
    stamps.keep(&tx, &kept)?;
    tx.commit()
}

/// How many rows can be begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Those that wait for what was said before them.
    pub(crate) usual: usize,
    /// Those that do not, and that would help nobody if they waited for a place among the others.
    pub(crate) urgent: usize,
}

/// Claims rows that can be worked on: oldest first, and of each session only the first that is not done. Another account's
/// rows are not waited for: that account may be gone for good.
pub(crate) fn claim(c: &mut File, account: Tag, now: Millis, most: Room) -> rusqlite::Result<Vec<Row>> {
    let stamps = c.stamps()?;
    let tx = begin(c)?;
    let kept = stamps.kept(&tx)?;
    let usual = "kind <> ?4 AND NOT EXISTS (
                    SELECT 1 FROM events AS earlier
                    WHERE earlier.scope = e.scope AND earlier.seq < e.seq AND earlier.state < 2
                      AND earlier.kind <> ?4 AND earlier.account = e.account)";
    let mut rows = Vec::new();
    for (which, most) in [("kind = ?4", most.urgent), (usual, most.usual)] {
        let sql = format!(
            "SELECT {COLUMNS} FROM events AS e
             WHERE account = ?1 AND state = 0 AND not_before <= ?2 AND {which} ORDER BY seq LIMIT ?3"
        );
        let mut statement = tx.prepare_cached(&sql)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let found =
            statement.query_map(params![account.as_bytes(), now.0, most, RowKind::Urgent as i64], read)?;
        for row in found.collect::<rusqlite::Result<Vec<_>>>()? {
            let seq = row.as_ref().map_or_else(|seq| *seq, |row| row.seq);
            match row.ok().and_then(|row| stamps.genuine(&kept, row)) {
                Some((row, _)) => rows.push(row),
                None => set_aside(&tx, seq)?,
            }
        }
    }
    for row in &rows {
        tx.prepare_cached("UPDATE events SET state = 1, attempts = attempts + 1 WHERE seq = ?1")?
            .execute([row.seq])?;
    }
    tx.commit()?;
    Ok(rows.into_iter().map(|row| Row { attempts: row.attempts.saturating_add(1), ..row }).collect())
}

/// Nothing vouches for a row: it is not worked on, and `doctor` tells of it.
fn set_aside(c: &Connection, seq: i64) -> rusqlite::Result<()> {
    tracing::warn!("an event in the inbox was changed or put back by somebody else, so it is not processed");
    c.execute("UPDATE events SET state = ?2 WHERE seq = ?1", [seq, ASIDE]).map(drop)
}

/// Those of the rows that a stamp vouches for, as it has them.
fn genuine(c: &File, sql: &str, values: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<Vec<(Row, Stamp)>> {
    let (stamps, kept) = (c.stamps()?, c.stamps()?.kept(c)?);
    let mut statement = c.prepare_cached(sql)?;
    let rows = statement.query_map(values, read)?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows.into_iter().filter_map(|row| stamps.genuine(&kept, row.ok()?)).collect())
}

fn rows_of(c: &File, sql: &str, values: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<Vec<Row>> {
    Ok(genuine(c, sql, values)?.into_iter().map(|(row, _)| row).collect())
}

/// When the next row can be worked on that cannot now; rows behind others count by themselves.
pub(crate) fn next_time(c: &Connection, account: Tag, now: Millis) -> rusqlite::Result<Option<Millis>> {
    let sql = "SELECT min(not_before) FROM events WHERE account = ?1 AND state = 0 AND not_before > ?2";
    let next: Option<i64> =
        c.prepare_cached(sql)?.query_row(params![account.as_bytes(), now.0], |row| row.get(0))?;
    Ok(next.map(Millis))
}

/// Puts back what a process that is gone had claimed.
pub(crate) fn release(c: &Connection, account: Tag) -> rusqlite::Result<u64> {
    let sql = "UPDATE events SET state = 0, not_before = 0 WHERE account = ?1 AND state = 1";
    Ok(c.execute(sql, [account.as_bytes()])? as u64)
}

/// Rows that wait for somebody's approval.
pub(crate) fn waiting(c: &File, account: Tag) -> rusqlite::Result<Vec<Row>> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE account = ?1 AND state = 2 ORDER BY seq");
    rows_of(c, &sql, params![account.as_bytes()])
}

/// The next few of them behind a row.
pub(crate) fn waiting_after(c: &File, account: Tag, seq: i64, most: usize) -> rusqlite::Result<Vec<Row>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM events WHERE account = ?1 AND state = 2 AND seq > ?2 ORDER BY seq LIMIT ?3"
    );
    rows_of(c, &sql, params![account.as_bytes(), seq, i64::try_from(most).unwrap_or(i64::MAX)])
}

/// The rows of a room that ask for an approval, or are about to.
pub(crate) fn asking_in(c: &File, account: Tag, room: Tag) -> rusqlite::Result<Vec<Row>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM events
         WHERE account = ?1 AND state < 3 AND room = ?2 AND waits IS NOT NULL ORDER BY seq"
    );
    let asking = genuine(c, &sql, params![account.as_bytes(), room.as_bytes()])?;
    Ok(asking.into_iter().filter(|(_, stamp)| stamp.room() == Some(room)).map(|(row, _)| row).collect())
}

/// Puts a row of an approval back among those to be worked on, if it waits; says whether it is, or will be, worked on.
pub(crate) fn wake(c: &Connection, event: Tag) -> rusqlite::Result<bool> {
    let sql = "UPDATE events SET state = 0, not_before = 0 WHERE event = ?1 AND state = 2";
    if c.prepare_cached(sql)?.execute([event.as_bytes()])? > 0 {
        return Ok(true);
    }
    c.prepare_cached("SELECT 1 FROM events WHERE event = ?1 AND state < 2")?.exists([event.as_bytes()])
}

/// Leaves what became of an event to its own row: wakes it if it waits. False if there is no such row; one that is finished has
/// told it.
pub(crate) fn leave_to(c: &Connection, event: Tag) -> rusqlite::Result<bool> {
    Ok(wake(c, event)? || is_known(c, event)?)
}

pub(crate) fn note_sent(c: &Connection, seq: i64, sent: &Sealed) -> rusqlite::Result<()> {
    c.prepare_cached("UPDATE events SET sent = ?2 WHERE seq = ?1 AND state <> 3")?
        .execute(params![seq, sent.as_bytes()])?;
    Ok(())
}

pub(crate) fn put_back(c: &Connection, seq: i64, not_before: Millis) -> rusqlite::Result<()> {
    c.prepare_cached("UPDATE events SET state = 0, not_before = ?2 WHERE seq = ?1 AND state = 1")?
        .execute(params![seq, not_before.0])?;
    Ok(())
}

/// Notes what a row is about to wait for, before anybody can see its question.
pub(crate) fn note_waits(c: &Connection, seq: i64, waits: &Sealed) -> rusqlite::Result<()> {
    c.prepare_cached("UPDATE events SET waits = ?2 WHERE seq = ?1 AND state = 1")?
        .execute(params![seq, waits.as_bytes()])?;
    Ok(())
}

pub(crate) fn park(c: &Connection, seq: i64, waits: &Sealed) -> rusqlite::Result<()> {
    // What was sent is the question; the answer is another message, and nobody has tried to send it yet.
    let sql =
        "UPDATE events SET state = 2, waits = ?2, sent = NULL, attempts = 1 WHERE seq = ?1 AND state = 1";
    c.prepare_cached(sql)?.execute(params![seq, waits.as_bytes()])?;
    Ok(())
}

/// The event is done: what is left tells that it was, and whose it was.
pub(crate) fn finish(c: &mut File, event: Tag, now: Millis) -> rusqlite::Result<()> {
    let stamps = c.stamps()?;
    let tx = begin(c)?;
    finish_in(&tx, &stamps, event, now)?;
    tx.commit()
}

fn finish_in(c: &Connection, stamps: &Stamps, event: Tag, now: Millis) -> rusqlite::Result<()> {
    let sql = "SELECT seq FROM events WHERE event = ?1 AND state <> 3";
    let seq: Option<i64> =
        c.prepare_cached(sql)?.query_row([event.as_bytes()], |row| row.get(0)).optional()?;
    let Some(seq) = seq else { return Ok(()) };
    c.prepare_cached(
        "UPDATE events SET state = 3, finished_at = ?2, room = NULL, route = NULL, body = NULL, sent = NULL,
                           waits = NULL, target = NULL
         WHERE seq = ?1",
    )?
    .execute(params![seq, now.0])?;
    stamps.restamp(c, seq, Stamp::done)?;
    let mut kept = stamps.kept(c)?;
    kept.open.remove(seq.cast_unsigned());
    stamps.keep(c, &kept)
}

/// Rows of a session that came after this one and that nobody has begun to work on.
pub(crate) fn later(c: &File, scope: Tag, seq: i64) -> rusqlite::Result<Vec<Row>> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE scope = ?1 AND seq > ?2 AND state = 0");
    let later = genuine(c, &sql, params![scope.as_bytes(), seq])?;
    let later = later.into_iter().filter(|(row, stamp)| row.scope == Some(scope) && !stamp.is_carried());
    Ok(later.map(|(row, _)| row).collect())
}

/// Replaces what a row holds by what outlives its session.
pub(crate) fn carry(c: &mut File, seq: i64, body: &Sealed) -> rusqlite::Result<()> {
    let stamps = c.stamps()?;
    let tx = begin(c)?;
    let sql = "UPDATE events SET body = ?2, carried = 1 WHERE seq = ?1 AND state = 0";
    if tx.prepare_cached(sql)?.execute(params![seq, body.as_bytes()])? > 0 {
        stamps.restamp(&tx, seq, Stamp::carried)?;
    }
    tx.commit()
}

/// Finishes an event that nobody has begun to work on; false if somebody has.
pub(crate) fn finish_unread(c: &mut File, event: Tag, now: Millis) -> rusqlite::Result<bool> {
    let stamps = c.stamps()?;
    let tx = begin(c)?;
    let sql = "SELECT 1 FROM events WHERE event = ?1 AND state = 0 AND attempts = 0";
    let unread = tx.prepare_cached(sql)?.exists([event.as_bytes()])?;
    if unread {
        finish_in(&tx, &stamps, event, now)?;
    }
    tx.commit()?;
    Ok(unread)
}

pub(crate) fn keep(c: &Connection, name: Tag, sealed: Option<&Sealed>) -> rusqlite::Result<()> {
    match sealed {
        Some(sealed) => c
            .prepare_cached("INSERT OR REPLACE INTO kept (name, sealed) VALUES (?1, ?2)")?
            .execute(params![name.as_bytes(), sealed.as_bytes()])?,
        None => c.execute("DELETE FROM kept WHERE name = ?1", [name.as_bytes()])?,
    };
    Ok(())
}

pub(crate) fn kept(c: &Connection, name: Tag) -> rusqlite::Result<Option<Sealed>> {
    let sql = "SELECT sealed FROM kept WHERE name = ?1";
    c.prepare_cached(sql)?.query_row([name.as_bytes()], |row| Ok(Sealed::from_bytes(row.get(0)?))).optional()
}

/// Finishes the rows of someone and takes their names off them; says how many there were.
pub(crate) fn forget(c: &mut File, whose: Whose, keep_forget: bool) -> rusqlite::Result<u64> {
    let stamps = c.stamps()?;
    let tx = begin(c)?;
    let mut kept = stamps.kept(&tx)?;
    let (theirs, astray) = theirs(&tx, &stamps, &kept, whose, keep_forget)?;
    for seq in theirs.iter().chain(&astray) {
        tx.prepare_cached(
            "UPDATE events SET state = 3, finished_at = coalesce(finished_at, received_at), room = NULL,
                               scope = NULL, person = NULL, route = NULL, body = NULL, sent = NULL, waits = NULL,
                               target = NULL
             WHERE seq = ?1",
        )?
        .execute([seq])?;
        stamps.restamp(&tx, *seq, Stamp::erased)?;
        kept.open.remove(seq.cast_unsigned());
    }
    if let Whose::Person(tag) = whose {
        // What cannot be opened now must not come back to be theirs.
        let lost: Vec<u64> = kept.open.numbers().collect();
        for number in lost {
            if stamps.stamp_of(&tx, number.cast_signed())?.is_none() {
                kept.open.remove(number);
            }
        }
        let gone = forget_cursors(&tx, &stamps, tag)?;
        kept.cursors = kept.cursors.saturating_sub(gone);
    }
    stamps.keep(&tx, &kept)?;
    tx.commit()?;
    Ok((theirs.len() + astray.len()) as u64)
}

/// How many rows [`forget`] would end.
pub(crate) fn count(c: &File, whose: Whose, keep_forget: bool) -> rusqlite::Result<u64> {
    let stamps = c.stamps()?;
    let (theirs, astray) = theirs(c, &stamps, &stamps.kept(c)?, whose, keep_forget)?;
    Ok((theirs.len() + astray.len()) as u64)
}

/// The rows of someone, by their stamps; and those that only say that they are theirs, and that nothing vouches for.
///
/// A person's are looked for among all. A session's are looked for by its tag and among those that are to be worked on: only
/// those have anything of it.
fn theirs(
    c: &Connection,
    stamps: &Stamps,
    kept: &Kept,
    whose: Whose,
    keep_forget: bool,
) -> rusqlite::Result<(Vec<i64>, Vec<i64>)> {
    let (column, tag) = match whose {
        Whose::Person(tag) => ("person", tag),
        Whose::Session(tag) => ("scope", tag),
    };
    let said: std::collections::HashSet<i64> =
        seqs(c, &format!("WHERE {column} = ?1"), tag)?.into_iter().collect();
    let all: Vec<i64> = match whose {
        Whose::Person(_) => seqs(c, "WHERE ?1 IS NOT NULL", tag)?,
        Whose::Session(_) => {
            let open = kept.open.numbers().map(u64::cast_signed).filter(|seq| !said.contains(seq));
            said.iter().copied().chain(open).collect()
        }
    };
    let (mut theirs, mut astray) = (Vec::new(), Vec::new());
    for seq in all {
        let Some((_, _, stamp)) = stamps.stamp_of(c, seq)? else {
            astray.extend(Some(seq).filter(|seq| said.contains(seq)));
            continue;
        };
        let is_theirs = match whose {
            Whose::Person(tag) => stamp.person() == Some(tag),
            Whose::Session(tag) => stamp.scope() == Some(tag),
        };
        // What outlives the erasure that it asks for, or was said after it.
        let outlives = keep_forget
            && (stamp.kind() == RowKind::Forget || stamp.is_carried())
            && kept.open.has(seq.cast_unsigned())
            && is_at_work(c, seq)?;
        if is_theirs && !outlives {
            theirs.push(seq);
        }
    }
    Ok((theirs, astray))
}

fn seqs(c: &Connection, condition: &str, tag: Tag) -> rusqlite::Result<Vec<i64>> {
    let mut statement = c.prepare_cached(&format!("SELECT seq FROM events {condition}"))?;
    let rows = statement.query_map([tag.as_bytes()], |row| row.get(0))?;
    rows.collect()
}

fn is_at_work(c: &Connection, seq: i64) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT 1 FROM events WHERE seq = ?1 AND state < 2")?.exists([seq])
}

/// Drops where the private rooms of a person stand.
fn forget_cursors(c: &Connection, stamps: &Stamps, person: Tag) -> rusqlite::Result<u64> {
    let mut gone = 0;
    let mut statement = c.prepare("SELECT account, room, person, sealed FROM cursors")?;
    let rows = statement.query_map([], |row| {
        let bytes = |at| row.get::<_, Vec<u8>>(at).unwrap_or_default();
        Ok((bytes(0), bytes(1), bytes(2), bytes(3)))
    })?;
    for row in rows.collect::<rusqlite::Result<Vec<_>>>()? {
        let (account, room, said, sealed) = row;
        let tag = |bytes: &[u8]| bytes.try_into().ok().map(Tag::from_bytes);
        let place = tag(&account)
            .zip(tag(&room))
            .and_then(|(account, room)| stamps.open_place(account, room, &Sealed::from_bytes(sealed)));
        let theirs = match place {
            Some((.., known)) => known.as_deref().and_then(Tag::from_hex) == Some(person),
            None => said == person.as_bytes(),
        };
        if theirs {
            let sql = "DELETE FROM cursors WHERE account = ?1 AND room = ?2";
            gone += c.execute(sql, params![account, room])?;
        }
    }
    Ok(gone as u64)
}

/// A person's rows that are to be worked on, by their stamps, whatever else the rows say.
pub(crate) fn unfinished_of(c: &File, person: Tag) -> rusqlite::Result<Vec<Row>> {
    let (rows, _) = unfinished(c)?;
    Ok(rows.into_iter().filter(|(_, stamp)| stamp.person() == Some(person)).map(|(row, _)| row).collect())
}

/// All rows that are to be worked on, by their stamps; and how many of them cannot be read.
pub(super) fn unfinished(c: &File) -> rusqlite::Result<(Vec<(Row, Stamp)>, u64)> {
    let kept = c.stamps()?.kept(c)?;
    let sql = format!("SELECT {COLUMNS} FROM events WHERE seq = ?1");
    let (mut rows, mut unread) = (Vec::new(), 0);
    for number in kept.open.numbers() {
        let found = genuine(c, &sql, params![number.cast_signed()])?;
        unread += u64::from(found.is_empty());
        rows.extend(found);
    }
    Ok((rows, unread))
}

/// How many events of an account are not done, those aside that wait for somebody's approval.
pub(crate) fn backlog_of(c: &Connection, account: Tag) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM events WHERE account = ?1 AND state < 2";
    c.prepare_cached(sql)?.query_row([account.as_bytes()], |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
}

/// How many events are not done.
pub(crate) fn backlog(c: &Connection) -> rusqlite::Result<u64> {
    c.query_row("SELECT count(*) FROM events WHERE state < 2", [], |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
}

/// Removes the tags of events that were done long ago, or that are too many.
pub(crate) fn prune(c: &mut File, before: Millis) -> rusqlite::Result<u64> {
    let stamps = c.stamps()?;
    let tx = begin(c)?;
    let old = tx.execute("DELETE FROM events WHERE state = 3 AND finished_at < ?1", [before.0])?;
    let surplus = tx.execute(
        "DELETE FROM events WHERE state = 3 AND seq <= (
             SELECT seq FROM events WHERE state = 3 ORDER BY seq DESC LIMIT 1 OFFSET ?1)",
        [MOST_KEPT],
    )?;
    let gone = (old + surplus) as u64;
    let mut kept = stamps.kept(&tx)?;
    kept.rows = kept.rows.saturating_sub(gone);
    stamps.keep(&tx, &kept)?;
    tx.commit()?;
    Ok(gone)
}

/// Reads a row; of one that is not as it was written, only which it is.
fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Result<Row, i64>> {
    let seq = row.get(0)?;
    Ok(read_whole(row).map_err(|_| seq))
}

fn read_whole(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let sealed =
        |index: usize| row.get::<_, Option<Vec<u8>>>(index).map(|bytes| bytes.map(Sealed::from_bytes));
    let tag = |index: usize| row.get::<_, Option<[u8; 16]>>(index).map(|bytes| bytes.map(Tag::from_bytes));
    let tag_at = |index: usize| row.get(index).map(Tag::from_bytes);
    Ok(Row {
        seq: row.get(0)?,
        account: tag_at(1)?,
        event: tag_at(2)?,
        scope: tag(3)?,
        kind: RowKind::from(row.get(4)?),
        target: tag(5)?,
        attempts: row.get(6)?,
        received_at: Millis(row.get(7)?),
        route: sealed(8)?,
        body: sealed(9)?,
        sent: sealed(10)?,
        waits: sealed(11)?,
        stamp: sealed(12)?,
    })
}
