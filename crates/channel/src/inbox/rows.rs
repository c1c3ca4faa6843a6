//! Rows and the statements that move them. Knows nothing of what is sealed in them.

use confidant_engine::Millis;
use confidant_seal::{Sealed, Tag};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{InboxError, MOST_KEPT, failed};

// Where a row stands, as `state` has it: 0 received, 1 claimed, 2 waiting for somebody's approval (nothing behind it waits
// for it), 3 finished.

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
    fn from(number: i64) -> Self {
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
    /// Moves the room's cursor: its place, its sealed form, and the person whose private room it is.
    pub(crate) cursor: Option<(i64, Sealed, Option<Tag>)>,
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
}

const COLUMNS: &str =
    "seq, account, event, scope, kind, target, attempts, received_at, route, body, sent, waits";

/// Whose rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose {
    Person(Tag),
    Session(Tag),
}

pub(super) fn prepare(c: &Connection) -> Result<(), InboxError> {
    let run = || -> rusqlite::Result<i64> {
        c.busy_timeout(confidant_sqlite::PATIENCE)?;
        confidant_sqlite::write_ahead(c)?;
        c.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;
             PRAGMA trusted_schema = OFF;",
        )?;
        c.query_row("PRAGMA user_version", [], |row| row.get(0))
    };
    match run().map_err(|e| failed(&e))? {
        VERSION => Ok(()),
        0 => c.execute_batch(SCHEMA).map_err(|e| failed(&e)),
        _ => Err(InboxError::Newer),
    }
}

const VERSION: i64 = 1;

/// Made in one go, however many processes open the file at once.
const SCHEMA: &str = "
BEGIN IMMEDIATE;
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
PRAGMA user_version = 1;
COMMIT;
";

/// Stores an event with its cursor; false if it is there already.
pub(crate) fn insert(c: &mut Connection, row: &NewRow) -> rusqlite::Result<bool> {
    let tx = c.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
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
    if let (Some(room), Some((place, sealed, person))) = (row.room, &row.cursor) {
        move_cursor(&tx, row.account, room, *place, *person, sealed)?;
    }
    tx.commit()?;
    Ok(added > 0)
}

/// Notes that an event is gone that is not stored: should it still come, it is not answered.
pub(crate) fn bury(c: &Connection, account: Tag, event: Tag, now: Millis) -> rusqlite::Result<()> {
    c.prepare_cached(
        "INSERT INTO events (account, event, kind, state, received_at, finished_at) VALUES (?1, ?2, ?3, 3, ?4, ?4)
         ON CONFLICT (event) DO NOTHING",
    )?
    .execute(params![account.as_bytes(), event.as_bytes(), RowKind::Removed as i64, now.0])?;
    Ok(())
}

/// Whether an event is stored, before the work of sealing it.
pub(crate) fn is_known(c: &Connection, event: Tag) -> rusqlite::Result<bool> {
    let found = c.prepare_cached("SELECT 1 FROM events WHERE event = ?1")?.exists([event.as_bytes()])?;
    Ok(found)
}

/// The session that an event belongs to, if that is still known.
pub(crate) fn session_of(c: &Connection, event: Tag) -> rusqlite::Result<Option<(Tag, Tag)>> {
    let sql =
        "SELECT scope, person FROM events WHERE event = ?1 AND scope IS NOT NULL AND person IS NOT NULL";
    c.prepare_cached(sql)?
        .query_row([event.as_bytes()], |row| Ok((tag_at(row, 0)?, tag_at(row, 1)?)))
        .optional()
}

pub(crate) fn move_cursor(
    c: &Connection,
    account: Tag,
    room: Tag,
    place: i64,
    person: Option<Tag>,
    sealed: &Sealed,
) -> rusqlite::Result<()> {
    c.prepare_cached(
        "INSERT INTO cursors (account, room, place, person, sealed) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (account, room) DO UPDATE SET place = ?3, person = coalesce(?4, person), sealed = ?5 WHERE place <= ?3",
    )?
    .execute(params![
        account.as_bytes(),
        room.as_bytes(),
        place,
        person.as_ref().map(Tag::as_bytes),
        sealed.as_bytes()
    ])?;
    Ok(())
}

pub(crate) fn cursors(c: &Connection, account: Tag) -> rusqlite::Result<Vec<(Tag, Sealed)>> {
    let mut statement = c.prepare_cached("SELECT room, sealed FROM cursors WHERE account = ?1")?;
    let rows = statement
        .query_map([account.as_bytes()], |row| Ok((tag_at(row, 0)?, Sealed::from_bytes(row.get(1)?))))?;
    rows.collect()
}

pub(crate) fn drop_cursor(c: &Connection, account: Tag, room: Tag) -> rusqlite::Result<()> {
    c.execute("DELETE FROM cursors WHERE account = ?1 AND room = ?2", [account.as_bytes(), room.as_bytes()])?;
    Ok(())
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
pub(crate) fn claim(c: &mut Connection, account: Tag, now: Millis, most: Room) -> rusqlite::Result<Vec<Row>> {
    let tx = c.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
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
        for row in found {
            rows.push(row?);
        }
    }
    for row in &rows {
        tx.prepare_cached("UPDATE events SET state = 1, attempts = attempts + 1 WHERE seq = ?1")?
            .execute([row.seq])?;
    }
    tx.commit()?;
    Ok(rows.into_iter().map(|row| Row { attempts: row.attempts + 1, ..row }).collect())
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
pub(crate) fn waiting(c: &Connection, account: Tag) -> rusqlite::Result<Vec<Row>> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE account = ?1 AND state = 2 ORDER BY seq");
    let mut statement = c.prepare_cached(&sql)?;
    let rows = statement.query_map([account.as_bytes()], read)?;
    rows.collect()
}

/// The next few of them behind a row.
pub(crate) fn waiting_after(
    c: &Connection,
    account: Tag,
    seq: i64,
    most: usize,
) -> rusqlite::Result<Vec<Row>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM events WHERE account = ?1 AND state = 2 AND seq > ?2 ORDER BY seq LIMIT ?3"
    );
    let mut statement = c.prepare_cached(&sql)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![account.as_bytes(), seq, most], read)?;
    rows.collect()
}

/// The rows of a room that ask for an approval, or are about to.
pub(crate) fn asking_in(c: &Connection, account: Tag, room: Tag) -> rusqlite::Result<Vec<Row>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM events
         WHERE account = ?1 AND state < 3 AND room = ?2 AND waits IS NOT NULL ORDER BY seq"
    );
    let mut statement = c.prepare_cached(&sql)?;
    let rows = statement.query_map([account.as_bytes(), room.as_bytes()], read)?;
    rows.collect()
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
pub(crate) fn finish(c: &Connection, event: Tag, now: Millis) -> rusqlite::Result<()> {
    c.prepare_cached(
        "UPDATE events SET state = 3, finished_at = ?2, room = NULL, route = NULL, body = NULL, sent = NULL,
                           waits = NULL, target = NULL
         WHERE event = ?1 AND state <> 3",
    )?
    .execute(params![event.as_bytes(), now.0])?;
    Ok(())
}

/// Rows of a session that came after this one and that nobody has begun to work on.
pub(crate) fn later(c: &Connection, scope: Tag, seq: i64) -> rusqlite::Result<Vec<Row>> {
    let sql =
        format!("SELECT {COLUMNS} FROM events WHERE scope = ?1 AND seq > ?2 AND state = 0 AND carried = 0");
    let mut statement = c.prepare_cached(&sql)?;
    let rows = statement.query_map(params![scope.as_bytes(), seq], read)?;
    rows.collect()
}

/// Replaces what a row holds by what outlives its session.
pub(crate) fn carry(c: &Connection, seq: i64, body: &Sealed) -> rusqlite::Result<()> {
    let sql = "UPDATE events SET body = ?2, carried = 1 WHERE seq = ?1 AND state = 0";
    c.prepare_cached(sql)?.execute(params![seq, body.as_bytes()])?;
    Ok(())
}

/// Finishes an event that nobody has begun to work on; false if somebody has.
pub(crate) fn finish_unread(c: &Connection, event: Tag, now: Millis) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM events WHERE event = ?1 AND state = 0 AND attempts = 0";
    if !c.prepare_cached(sql)?.exists([event.as_bytes()])? {
        return Ok(false);
    }
    finish(c, event, now)?;
    Ok(true)
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
pub(crate) fn forget(c: &mut Connection, whose: Whose, keep_forget: bool) -> rusqlite::Result<u64> {
    let (condition, tag, kept) = forgotten(whose, keep_forget);
    let tx = c.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let gone = tx.execute(
        &format!(
            "UPDATE events SET state = 3, finished_at = coalesce(finished_at, received_at), room = NULL,
                               scope = NULL, person = NULL, route = NULL, body = NULL, sent = NULL, waits = NULL,
                               target = NULL
             WHERE {condition}"
        ),
        params![tag.as_bytes(), kept],
    )?;
    if let Whose::Person(tag) = whose {
        tx.execute("DELETE FROM cursors WHERE person = ?1", [tag.as_bytes()])?;
    }
    tx.commit()?;
    Ok(gone as u64)
}

/// How many rows [`forget`] would end.
pub(crate) fn count(c: &Connection, whose: Whose, keep_forget: bool) -> rusqlite::Result<u64> {
    let (condition, tag, kept) = forgotten(whose, keep_forget);
    let sql = format!("SELECT count(*) FROM events WHERE {condition}");
    let counted = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    c.prepare_cached(&sql)?.query_row(params![tag.as_bytes(), kept], counted).map(i64::cast_unsigned)
}

/// Which rows are forgotten: the condition, and its two parameters.
fn forgotten(whose: Whose, keep_forget: bool) -> (String, Tag, i64) {
    let (column, tag) = match whose {
        Whose::Person(tag) => ("person", tag),
        Whose::Session(tag) => ("scope", tag),
    };
    let kept = if keep_forget { RowKind::Forget as i64 } else { -1 };
    let condition = format!("{column} = ?1 AND NOT ((kind = ?2 OR (?2 >= 0 AND carried = 1)) AND state < 2)");
    (condition, tag, kept)
}

pub(crate) fn unfinished_of(c: &Connection, person: Tag) -> rusqlite::Result<Vec<Row>> {
    let sql = format!("SELECT {COLUMNS} FROM events WHERE person = ?1 AND state < 3 ORDER BY seq");
    let mut statement = c.prepare_cached(&sql)?;
    let rows = statement.query_map([person.as_bytes()], read)?;
    rows.collect()
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
pub(crate) fn prune(c: &Connection, before: Millis) -> rusqlite::Result<u64> {
    let old = c.execute("DELETE FROM events WHERE state = 3 AND finished_at < ?1", [before.0])?;
    let surplus = c.execute(
        "DELETE FROM events WHERE state = 3 AND seq <= (
             SELECT seq FROM events WHERE state = 3 ORDER BY seq DESC LIMIT 1 OFFSET ?1)",
        [MOST_KEPT],
    )?;
    Ok((old + surplus) as u64)
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let sealed =
        |index: usize| row.get::<_, Option<Vec<u8>>>(index).map(|bytes| bytes.map(Sealed::from_bytes));
    let tag = |index: usize| row.get::<_, Option<[u8; 16]>>(index).map(|bytes| bytes.map(Tag::from_bytes));
    Ok(Row {
        seq: row.get(0)?,
        account: tag_at(row, 1)?,
        event: tag_at(row, 2)?,
        scope: tag(3)?,
        kind: RowKind::from(row.get(4)?),
        target: tag(5)?,
        attempts: row.get(6)?,
        received_at: Millis(row.get(7)?),
        route: sealed(8)?,
        body: sealed(9)?,
        sent: sealed(10)?,
        waits: sealed(11)?,
    })
}

fn tag_at(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<Tag> {
    Ok(Tag::from_bytes(row.get(index)?))
}
