//! What vouches for the rows of the inbox.
//!
//! Tags, kinds and states in the open only find rows quickly. Each row has a stamp: whose it is, in which session, of what
//! kind, when, sealed for exactly its account, event and number; what a row says otherwise does not count. Which rows are still
//! to be worked on says a roll of their numbers, sealed as well: one that was finished or erased and is put back is not worked
//! on, shown or answered. A row that nothing vouches for is set aside (state [`ASIDE`]), and `doctor` counts it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use confidant_engine::Engine;
use confidant_engine::clock::Millis;
use confidant_seal::{Context, Key, Roll, Sealed, Suite, Tag, open, seal};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::Cursor;
use super::rows::{Row, RowKind};
use super::seals::{open_json, seal_json};

/// Rows that nothing vouches for.
pub(super) const ASIDE: i64 = 4;

/// The file, with what vouches for its rows once an engine is there.
#[derive(Debug)]
pub(crate) struct File {
    connection: Connection,
    stamps: Option<Stamps>,
    settled: bool,
}

impl Deref for File {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for File {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl File {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, stamps: None, settled: false }
    }

    pub(super) fn vouch(&mut self, engine: &Engine) {
        self.stamps.get_or_insert_with(|| Stamps(engine.channel_keys().key().derive("inbox")));
    }

    /// Stamps the rows of a file of the version before, once.
    pub(super) fn settle(&mut self) -> rusqlite::Result<()> {
        let Some(stamps) = self.stamps.clone().filter(|_| !self.settled) else { return Ok(()) };
        let tx = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let stamped = "SELECT 1 FROM events WHERE stamp IS NOT NULL";
        let new = !tx.prepare("SELECT 1 FROM rolls")?.exists([])? && !tx.prepare(stamped)?.exists([])?;
        if new {
            stamps.enrol(&tx)?;
        }
        tx.commit()?;
        self.settled = true;
        Ok(())
    }

    pub(super) fn stamps(&self) -> rusqlite::Result<Stamps> {
        // Nobody works with the inbox before an engine is there.
        self.stamps.clone().ok_or(rusqlite::Error::InvalidQuery)
    }
}

/// What stamps are made with.
#[derive(Clone, Debug)]
pub(super) struct Stamps(Key);

/// Whose a row is, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    pub(super) seq: i64,
    scope: Option<String>,
    person: Option<String>,
    kind: i64,
    target: Option<String>,
    room: Option<String>,
    at: i64,
    carried: bool,
}

/// What a row says of itself, in the open.
pub(super) struct Said {
    pub(super) seq: i64,
    pub(super) scope: Option<Tag>,
    pub(super) person: Option<Tag>,
    pub(super) kind: RowKind,
    pub(super) target: Option<Tag>,
    pub(super) room: Option<Tag>,
    pub(super) at: Millis,
    pub(super) carried: bool,
}

impl Stamp {
    pub(super) fn of(said: &Said) -> Self {
        let name = |tag: Option<Tag>| tag.map(|tag| tag.to_string());
        Self {
            seq: said.seq,
            scope: name(said.scope),
            person: name(said.person),
            kind: said.kind as i64,
            target: name(said.target),
            room: name(said.room),
            at: said.at.0,
            carried: said.carried,
        }
    }

    pub(super) fn scope(&self) -> Option<Tag> {
        self.scope.as_deref().and_then(Tag::from_hex)
    }

    pub(super) fn person(&self) -> Option<Tag> {
        self.person.as_deref().and_then(Tag::from_hex)
    }

    pub(super) fn room(&self) -> Option<Tag> {
        self.room.as_deref().and_then(Tag::from_hex)
    }

    pub(super) fn kind(&self) -> RowKind {
        RowKind::from(self.kind)
    }

    pub(super) fn is_carried(&self) -> bool {
        self.carried
    }

    /// The same for a row that is done: nothing of where and what it was about.
    pub(super) fn done(self) -> Self {
        Self { target: None, room: None, ..self }
    }

    /// The same for a row that was erased: nothing of whose it was.
    pub(super) fn erased(self) -> Self {
        Self { scope: None, person: None, ..self.done() }
    }

    pub(super) fn carried(self) -> Self {
        Self { carried: true, ..self }
    }
}

/// Which rows are to be worked on, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) open: Roll,
    pub(super) rows: u64,
    pub(super) cursors: u64,
}

/// Where a room stands, as it is sealed.
pub(super) type Place = (String, String, i64, Option<String>);

impl Stamps {
    pub(super) fn seal(&self, account: Tag, event: Tag, stamp: &Stamp) -> Sealed {
        seal_json(&self.0, account, event, "stamp", stamp)
    }

    pub(super) fn open(&self, account: Tag, event: Tag, sealed: &Sealed) -> Option<Stamp> {
        open_json(&self.0, account, event, "stamp", sealed)
    }

    /// The row as its stamp has it, if it is one that is to be worked on.
    pub(super) fn genuine(&self, kept: &Kept, row: Row) -> Option<(Row, Stamp)> {
        let stamp = self.open(row.account, row.event, row.stamp.as_ref()?)?;
        let number = u64::try_from(row.seq).ok()?;
        if stamp.seq != row.seq || !kept.open.has(number) {
            return None;
        }
        let target = stamp.target.as_deref().and_then(Tag::from_hex);
        let (scope, kind, received_at) = (stamp.scope(), stamp.kind(), Millis(stamp.at));
        Some((Row { scope, kind, target, received_at, ..row }, stamp))
    }

    pub(super) fn seal_place(&self, account: Tag, room: Tag, place: &Place) -> Sealed {
        seal_json(&self.0, account, room, "cursor", place)
    }

    pub(super) fn open_place(&self, account: Tag, room: Tag, sealed: &Sealed) -> Option<Place> {
        open_json(&self.0, account, room, "cursor", sealed)
    }

    /// What is kept. Nothing is to be worked on if that is not what was written.
    pub(super) fn kept(&self, c: &Connection) -> rusqlite::Result<Kept> {
        Ok(kept_row(c)?.and_then(|sealed| self.open_kept(sealed)).unwrap_or_default())
    }

    fn open_kept(&self, sealed: Vec<u8>) -> Option<Kept> {
        let opened = open(&self.0, &KEPT, &Sealed::from_bytes(sealed)).ok()?;
        let (rows, rest) = opened.data.split_first_chunk()?;
        let (cursors, roll) = rest.split_first_chunk()?;
        let (rows, cursors) = (u64::from_be_bytes(*rows), u64::from_be_bytes(*cursors));
        Some(Kept { open: Roll::from_bytes(roll)?, rows, cursors })
    }

    pub(super) fn keep(&self, c: &Connection, kept: &Kept) -> rusqlite::Result<()> {
        let parts = [&kept.rows.to_be_bytes()[..], &kept.cursors.to_be_bytes(), &kept.open.to_bytes()];
        let sealed = seal(&self.0, Suite::ChaCha20Poly1305, &KEPT, 1, &parts.concat());
        let sql = "INSERT OR REPLACE INTO rolls (name, sealed) VALUES ('events', ?1)";
        c.prepare_cached(sql)?.execute([sealed.as_bytes()]).map(drop)
    }

    /// Writes a row's stamp anew; one that does not open stays as it is.
    pub(super) fn restamp(
        &self,
        c: &Connection,
        seq: i64,
        change: impl FnOnce(Stamp) -> Stamp,
    ) -> rusqlite::Result<()> {
        let Some((account, event, stamp)) = self.stamp_of(c, seq)? else { return Ok(()) };
        let sealed = self.seal(account, event, &change(stamp));
        c.prepare_cached("UPDATE events SET stamp = ?2 WHERE seq = ?1")?
            .execute(params![seq, sealed.as_bytes()])
            .map(drop)
    }

    /// A row's names and stamp, if it opens in its place.
    pub(super) fn stamp_of(&self, c: &Connection, seq: i64) -> rusqlite::Result<Option<(Tag, Tag, Stamp)>> {
        let sql = "SELECT account, event, stamp FROM events WHERE seq = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            let tag = |at| tag_at(row, at);
            let sealed = row.get::<_, Vec<u8>>(2).ok().map(Sealed::from_bytes);
            Ok(tag(0).zip(tag(1)).zip(sealed))
        };
        let found = c.prepare_cached(sql)?.query_row([seq], read).optional()?.flatten();
        Ok(found.and_then(|((account, event), sealed)| {
            let stamp = self.open(account, event, &sealed).filter(|stamp| stamp.seq == seq)?;
            Some((account, event, stamp))
        }))
    }

    /// Stamps everything as it is: a file of the version before, or an empty one.
    fn enrol(&self, c: &Connection) -> rusqlite::Result<()> {
        let mut kept = Kept::default();
        let mut rows = c.prepare(
            "SELECT seq, account, event, scope, person, kind, target, room, received_at, carried, state
             FROM events ORDER BY seq",
        )?;
        let mut found = rows.query([])?;
        while let Some(row) = found.next()? {
            kept.rows += 1;
            let tag = |at| tag_at(row, at);
            let (Some(account), Some(event)) = (tag(1), tag(2)) else { continue };
            let seq: i64 = row.get(0)?;
            let said = Said {
                seq,
                scope: tag(3),
                person: tag(4),
                kind: RowKind::from(row.get(5).unwrap_or_default()),
                target: tag(6),
                room: tag(7),
                at: Millis(row.get(8).unwrap_or_default()),
                carried: row.get(9).unwrap_or(0) == 1,
            };
            let sealed = self.seal(account, event, &Stamp::of(&said));
            c.prepare_cached("UPDATE events SET stamp = ?2 WHERE seq = ?1")?
                .execute(params![seq, sealed.as_bytes()])?;
            if row.get(10).unwrap_or(3) < 3 {
                kept.open.put(u64::try_from(seq).unwrap_or_default());
            }
        }
        let mut cursors = c.prepare("SELECT account, room, place, person, sealed FROM cursors")?;
        let mut found = cursors.query([])?;
        while let Some(row) = found.next()? {
            kept.cursors += 1;
            let tag = |at| tag_at(row, at);
            let (Some(account), Some(room)) = (tag(0), tag(1)) else { continue };
            let sealed = Sealed::from_bytes(row.get(4)?);
            let old: Option<(String, String)> = open_json(&self.0, account, room, "cursor", &sealed);
            let Some((id, event)) = old else { continue };
            let place = (id, event, row.get(2)?, tag(3).map(|tag| tag.to_string()));
            let sealed = self.seal_place(account, room, &place);
            let sql = "UPDATE cursors SET sealed = ?3 WHERE account = ?1 AND room = ?2";
            c.execute(sql, params![account.as_bytes(), room.as_bytes(), sealed.as_bytes()])?;
        }
        self.keep(c, &kept)
    }
}

/// What is kept, as stored. Whatever somebody put in its place is something that does not open.
fn kept_row(c: &Connection) -> rusqlite::Result<Option<Vec<u8>>> {
    let sql = "SELECT sealed FROM rolls WHERE name = 'events'";
    let read = |row: &rusqlite::Row<'_>| Ok(row.get(0).unwrap_or_default());
    c.prepare_cached(sql)?.query_row([], read).optional()
}

/// Holds everything in the file against what is sealed; says what is not as it was written, and how often. `vault` opens
/// the small secrets of connections.
pub(super) fn verify(file: &File, vault: &Key, now: Millis) -> rusqlite::Result<BTreeMap<&'static str, u64>> {
    let stamps = file.stamps()?;
    let mut faults = BTreeMap::new();
    let mut fault = |what: &'static str, times: u64| {
        if times > 0 {
            *faults.entry(what).or_insert(0) += times;
        }
    };
    let sealed = kept_row(file)?;
    let rolls: i64 = file.query_row("SELECT count(*) FROM rolls", [], |row| row.get(0))?;
    let kept = sealed.and_then(|sealed| stamps.open_kept(sealed));
    fault("the roll of events is missing or does not open", u64::from(kept.is_none() || rolls != 1));
    let kept = kept.unwrap_or_default();
    let mut rows = file.prepare(
        "SELECT seq, scope, person, kind, target, room, received_at, carried, state, attempts, not_before,
                finished_at, waits IS NULL, (body IS NULL) + (route IS NULL) + (sent IS NULL) + (waits IS NULL)
         FROM events",
    )?;
    let (mut count, mut open_rows) = (0_u64, 0_u64);
    let mut found = rows.query([])?;
    while let Some(row) = found.next()? {
        count += 1;
        let seq: i64 = row.get(0)?;
        let tag = |at| tag_at(row, at);
        let Some((_, _, stamp)) = stamps.stamp_of(file, seq)? else {
            fault("an event without a valid stamp", 1);
            continue;
        };
        let said = Said {
            seq,
            scope: tag(1),
            person: tag(2),
            kind: RowKind::from(row.get(3).unwrap_or(-1)),
            target: tag(4),
            room: tag(5),
            at: Millis(row.get(6).unwrap_or(-1)),
            carried: row.get(7).unwrap_or(-1) == 1,
        };
        let is_open = kept.open.has(u64::try_from(seq).unwrap_or_default());
        open_rows += u64::from(is_open);
        let state: i64 = row.get(8).unwrap_or(-1);
        let finished: Option<i64> = row.get(11).unwrap_or(Some(-1));
        let agrees = Stamp::of(&said) == stamp
            && row.get::<_, i64>(3).unwrap_or(-1) == stamp.kind
            && (0..=1).contains(&row.get::<_, i64>(7).unwrap_or(-1));
        // What is done is empty; what waits for an approval says for which; nothing waits for years.
        let sane = match state {
            0..=2 => {
                is_open
                    && finished.is_none()
                    && (state != 2 || !row.get::<_, bool>(12)?)
                    && (0..=MOST_ATTEMPTS).contains(&row.get::<_, i64>(9).unwrap_or(-1))
                    && (0..=now.0.saturating_add(LONGEST_WAIT)).contains(&row.get::<_, i64>(10).unwrap_or(-1))
            }
            3 => !is_open && finished.is_some_and(|at| at >= stamp.at) && row.get::<_, i64>(13)? == 4,
            _ => false,
        };
        fault("an event that was changed or put back", u64::from(!agrees || !sane));
    }
    fault("an event that is missing", kept.rows.saturating_sub(count).max(kept.open.len() - open_rows));
    fault("an extra event", count.saturating_sub(kept.rows));
    let (cursors, bad) = verify_cursors(file, &stamps)?;
    fault("a room's position was changed", bad);
    fault("a room's position is missing, or was put back", kept.cursors.abs_diff(cursors));
    fault("stored connection data that does not open", verify_secrets(file, vault)?);
    Ok(faults)
}

/// How many cursors there are, and how many of them are not as they were written.
fn verify_cursors(file: &File, stamps: &Stamps) -> rusqlite::Result<(u64, u64)> {
    let (mut cursors, mut bad) = (0, 0);
    let mut statement = file.prepare("SELECT account, room, place, person, sealed FROM cursors")?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        cursors += 1;
        let tag = |at| tag_at(row, at);
        let place = tag(0).zip(tag(1)).and_then(|(account, room)| {
            stamps.open_place(account, room, &Sealed::from_bytes(row.get(4).ok()?))
        });
        let agrees = place.is_some_and(|(_, _, place, person)| {
            row.get(2).is_ok_and(|said: i64| said == place) && tag(3).map(|tag| tag.to_string()) == person
        });
        bad += u64::from(!agrees);
    }
    Ok((cursors, bad))
}

/// A tag, or what stands in its place: anything else than a tag or nothing is nobody's tag, so that it agrees with none.
fn tag_at(row: &rusqlite::Row<'_>, at: usize) -> Option<Tag> {
    let value = row.get_ref(at).ok()?;
    (value != rusqlite::types::ValueRef::Null)
        .then(|| value.as_blob().ok().and_then(|bytes| bytes.try_into().ok()).unwrap_or_default())
        .map(Tag::from_bytes)
}

/// How many small secrets of connections do not open.
fn verify_secrets(file: &File, vault: &Key) -> rusqlite::Result<u64> {
    let mut bad = 0;
    let mut statement = file.prepare("SELECT name, sealed FROM kept")?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let opens = row.get(0).ok().map(Tag::from_bytes).is_some_and(|name| {
            let (object, sealed) = (name.to_string(), Sealed::from_bytes(row.get(1).unwrap_or_default()));
            open(vault, &Context { object: &object, field: "kept", ..EMPTY }, &sealed).is_ok()
        });
        bad += u64::from(!opens);
    }
    Ok(bad)
}

impl Cursor {
    /// The cursor as it is sealed.
    pub(super) fn place(&self, order: i64, person: Option<String>) -> Place {
        (self.room.clone(), self.event.clone(), order, person)
    }
}

const EMPTY: Context<'_> = Context { purpose: "inbox", owner: "", container: "", object: "", field: "" };
const KEPT: Context<'_> = Context { object: "events", field: "roll", ..EMPTY };
/// More often than anything is tried, and later than anything is put off.
const MOST_ATTEMPTS: i64 = 2_001;
const LONGEST_WAIT: i64 = 86_400_000;
