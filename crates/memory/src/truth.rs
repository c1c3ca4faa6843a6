//! `memory.db`: which memories there are, and what is still to be done for them.
//!
//! The table `memories` has the columns of the seed document's schema; every text that says anything is sealed, with the
//! artifact's own key, for exactly its column and row. Beside it the outbox: whatever has to happen outside this file (an
//! upload, a removal) is written here first, in the same transaction, and struck off when it has happened. Easy to get
//! wrong: rows of state [`PENDING`] are not there yet for anyone but the outbox, and get their final id when they are.
//!
//! Nothing here is trusted for being there. What a row says in the open is sealed in it once more ([`steer`]), a task counts if
//! it is sealed ([`vouched`]), and how far the registers of the keys are is noted here ([`vouched`], too).

mod steer;
mod vouched;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use confidant_seal::{Key, Tag};
use parking_lot::{Mutex, MutexGuard};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, params};

use crate::api::ArtifactType;
use crate::blobs::Pointer;
use crate::instances::Instance;
use crate::keys::{ArtifactId, Held, OwnerKey};
use crate::locator::LocatorSeal;
use crate::{Error, Result, db};

use steer::{RowPlace, Steer};
pub(crate) use vouched::Erasure;

/// The file.
#[derive(Debug)]
pub(crate) struct Truth {
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
    /// Whether the journal may have something of rows that were removed; nobody knows after a start.
    unscrubbed: AtomicBool,
}

/// A memory that is about to be.
#[derive(Debug)]
pub(crate) struct NewRow<'r> {
    pub(crate) owner: &'r OwnerKey,
    pub(crate) artifact: ArtifactId,
    pub(crate) pointer: &'r Pointer,
    pub(crate) artifact_type: ArtifactType,
    pub(crate) mode: &'r str,
    /// The session, as a tag of its unredacted id.
    pub(crate) session_tag: Tag,
    /// Exactly this payload of this owner in this store.
    pub(crate) payload_tag: Tag,
    pub(crate) created_at: String,
    pub(crate) now: String,
    pub(crate) texts: Texts,
}

/// What is sealed of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Texts {
    pub(crate) tags_json: String,
    pub(crate) source_session_id: String,
    pub(crate) source_tool: String,
    pub(crate) title: String,
    pub(crate) snippet: String,
    pub(crate) metadata_json: String,
}

/// A memory as stored; its texts are still sealed.
#[derive(Clone, Debug)]
pub(crate) struct StoredRow {
    pub(crate) id: u64,
    pub(crate) pointer: Pointer,
    pub(crate) artifact: ArtifactId,
    pub(crate) artifact_type: ArtifactType,
    pub(crate) mode: String,
    /// Where the store put the blob, sealed.
    pub(crate) locator: Vec<u8>,
    pub(crate) created_at: String,
    pub(crate) live: bool,
    /// Whose it is said to be.
    pub(crate) owner: Option<Tag>,
    /// The session that it is said to be of.
    pub(crate) session_tag: Tag,
    pub(crate) begun: u64,
    pub(crate) state: i64,
    /// Whether what is readable of it can be read.
    sound: bool,
    payload_tag: Vec<u8>,
    content_hash: String,
    updated_at: String,
    steer: Vec<u8>,
    sealed: [Vec<u8>; 6],
}

/// What became of an insertion.
#[derive(Debug)]
pub(crate) enum Inserted {
    /// It is there, pending, with this id; the outbox has the upload.
    New(u64),
    /// The same payload is there already, or is being uploaded by somebody.
    Same(Box<StoredRow>),
}

/// What became of a row whose upload is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finished {
    /// It is there for everyone, in the place of this one.
    Shown { instead_of: Option<Pointer> },
    /// What was stored of the session meanwhile stands in for it.
    Superseded,
    /// It was forgotten, or its owner erased, during the upload. The outbox has the removal.
    Gone,
}

/// What an upload, or its removal, is about.
#[derive(Clone, Debug)]
pub(crate) struct Upload {
    pub(crate) owner: Tag,
    pub(crate) memory: u64,
    pub(crate) artifact: ArtifactId,
    pub(crate) pointer: Pointer,
    pub(crate) mode: String,
}

/// Something to be done outside the file.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) id: i64,
    pub(crate) kind: TaskKind,
    pub(crate) owner: Tag,
    pub(crate) memory: u64,
    pub(crate) artifact: ArtifactId,
    pub(crate) pointer: Pointer,
    pub(crate) mode: String,
    /// Where the upload has got to, sealed.
    pub(crate) locator: Option<Vec<u8>>,
    pub(crate) instance: Instance,
    /// The session that is to stay forgotten with it.
    pub(crate) mark: Option<Tag>,
}

/// Who writes, and what vouches for the tasks that they leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer<'w> {
    pub(crate) instance: Instance,
    pub(crate) vouch: &'w Key,
}

/// A memory that goes.
#[derive(Clone, Debug)]
pub(crate) struct Doomed {
    /// Its row; 0 if it has none.
    pub(crate) id: u64,
    pub(crate) artifact: ArtifactId,
    /// Where its blob is, if that is certain: what a row says may be another's.
    pub(crate) pointer: Option<Pointer>,
    pub(crate) mode: String,
    /// The session that it is of, if that is certain.
    pub(crate) session: Option<Tag>,
}

/// Why rows are taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A person said so; imports are to leave the session alone from now on.
    Forgotten,
    /// It never came to be, or everything of its owner ends.
    Ended,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskKind {
    /// Upload, then show the row.
    Put,
    /// Destroy the key, drop it from the index, remove the blob.
    Remove,
}

impl Truth {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let (writer, reader) = (Mutex::new(db::open(path, STEPS)?), Mutex::new(db::open(path, STEPS)?));
        Ok(Self { writer, reader, unscrubbed: AtomicBool::new(true) })
    }

    /// Adds a pending row and its upload, together.
    ///
    /// The artifact that is `lost` does not count as there. Its row keeps its place until the new one takes it, but is no
    /// longer the one that has this payload.
    pub(crate) fn insert(
        &self,
        row: &NewRow<'_>,
        key: &Key,
        blob: &[u8],
        by: Writer<'_>,
        lost: Option<ArtifactId>,
    ) -> Result<Inserted> {
        self.write(|tx| {
            let sql = format!(
                "SELECT {COLUMNS} FROM memories WHERE owner = ?1 AND payload_tag = ?2 AND state <> {SUPERSEDED}"
            );
            let (owner, payload) = (row.owner.tag.as_bytes(), row.payload_tag.as_bytes());
            if let Some(same) = tx.query_row(&sql, [&owner[..], payload], stored).optional()? {
                if !same.live || lost != Some(same.artifact) {
                    return Ok(Inserted::Same(Box::new(same)));
                }
                let apart = "UPDATE memories SET payload_tag = artifact WHERE id = ?1";
                tx.execute(apart, [number(same.id)])?;
            }
            let place = RowPlace {
                owner: row.owner,
                artifact: row.artifact,
                pointer: row.pointer,
                artifact_type: row.artifact_type,
                created_at: &row.created_at,
            };
            let sealed = place.seal(key, &row.texts);
            let [tags, session, tool, title, snippet, metadata] = &sealed;
            tx.execute(
                "INSERT INTO memories (pointer, content_hash, artifact_type, tags_json, source_session_id,
                     source_tool, title, snippet, metadata_json, created_at, updated_at,
                     owner, artifact, session_tag, payload_tag, mode, locator, state)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, x'', 0)",
                params![
                    row.pointer.to_string(),
                    row.pointer.hex(),
                    row.artifact_type.as_str(),
                    tags,
                    session,
                    tool,
                    title,
                    snippet,
                    metadata,
                    row.created_at,
                    row.now,
                    owner,
                    row.artifact.0,
                    row.session_tag.as_bytes(),
                    payload,
                    row.mode
                ],
            )?;
            let id = tx.last_insert_rowid();
            let id = id.unsigned_abs();
            let steer = Steer {
                id,
                begun: id,
                session_tag: row.session_tag,
                payload_tag: row.payload_tag.as_bytes(),
                mode: row.mode,
                updated_at: &row.now,
            };
            let steer = steer.seal(&place, key);
            tx.execute("UPDATE memories SET begun = id, steer = ?2 WHERE id = ?1", params![number(id), steer])?;
            let upload = Upload {
                owner: row.owner.tag,
                memory: id,
                artifact: row.artifact,
                pointer: row.pointer.clone(),
                mode: row.mode.to_owned(),
            };
            note_upload(tx, &upload, blob, by)?;
            Ok(Inserted::New(id))
        })
    }

    /// The upload is done: the row is there for everyone, in the place of older ones of the same session.
    ///
    /// It gets a new id if anything was begun after it, so that whoever goes through the rows in order of id, as the search
    /// index does, meets it however long its upload took.
    pub(crate) fn finish(
        &self,
        upload: &Upload,
        locator: &[u8],
        seal: &LocatorSeal,
        anchor: Option<&[u8]>,
        by: Writer<'_>,
    ) -> Result<Finished> {
        self.write(|tx| {
            let id = number(upload.memory);
            tx.execute("DELETE FROM outbox WHERE memory = ?1 AND kind = 'put'", [id])?;
            if let Some(anchor) = anchor {
                vouched::write_anchor(tx, upload.owner, anchor)?;
            }
            let sql = format!("SELECT {COLUMNS} FROM memories WHERE id = ?1 AND artifact = ?2 AND state = 0");
            let row = tx.query_row(&sql, params![id, upload.artifact.0], stored).optional()?;
            let Some(row) = row else {
                let there = "SELECT 1 FROM memories WHERE artifact = ?1";
                if tx.prepare(there)?.exists([upload.artifact.0])? {
                    return Ok(Finished::Shown { instead_of: None });
                }
                note_removal(tx, upload, None, by)?;
                return Ok(Finished::Gone);
            };
            let (owner, session) = (upload.owner.as_bytes(), row.session_tag.as_bytes());
            let same = "owner = ?1 AND session_tag = ?2 AND state = 1 AND begun";
            let begun = number(row.begun);
            let of = params![owner, session, begun];
            if tx.prepare(&format!("SELECT 1 FROM memories WHERE {same} > ?3"))?.exists(of)? {
                let sql = format!("UPDATE memories SET state = {SUPERSEDED}, locator = ?2 WHERE id = ?1");
                tx.execute(&sql, params![id, locator])?;
                return Ok(Finished::Superseded);
            }
            let before = tx
                .query_row(
                    &format!("SELECT pointer FROM memories WHERE {same} < ?3 ORDER BY begun DESC LIMIT 1"),
                    of,
                    |row| row.get::<_, String>(0),
                )
                .optional()?;
            tx.execute(&format!("UPDATE memories SET state = {SUPERSEDED} WHERE {same} < ?3"), of)?;
            let last = "SELECT seq FROM sqlite_sequence WHERE name = 'memories'";
            let last: i64 = tx.query_row(last, [], |row| row.get(0))?;
            let shown = if last > id { last + 1 } else { id };
            tx.execute("UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'memories'", [last.max(shown)])?;
            // Its number may be another now, and is sealed in it; what somebody changed meanwhile is not.
            let place = row.place(&seal.owner);
            let steer = match row.agrees(&place, &seal.key) {
                Ok(()) => row.steered_as(shown.unsigned_abs()).seal(&place, &seal.key),
                Err(_) => row.steer.clone(),
            };
            let sql = "UPDATE memories SET id = ?2, state = 1, locator = ?3, steer = ?4 WHERE id = ?1";
            tx.execute(sql, params![id, shown, locator, steer])?;
            Ok(Finished::Shown { instead_of: before.and_then(|text| Pointer::parse(&text).ok()) })
        })
    }

    /// A row whose upload is not done, and whose it is.
    pub(crate) fn pending(&self, memory: u64) -> Result<Option<(Tag, StoredRow)>> {
        let sql = format!("SELECT {COLUMNS} FROM memories WHERE id = ?1 AND state = 0");
        let row = |row: &Row<'_>| Ok((Tag::from_bytes(row.get(14)?), stored(row)?));
        self.reader().query_row(&sql, [number(memory)], row).optional().map_err(db::failed)
    }

    /// Takes back a row of which nothing has left the file.
    pub(crate) fn undo(&self, memory: u64) -> Result<()> {
        self.write(|tx| {
            tx.execute("DELETE FROM outbox WHERE memory = ?1", [number(memory)])?;
            tx.execute("DELETE FROM memories WHERE id = ?1 AND state = 0", [number(memory)]).map(drop)
        })
    }

    /// Where an upload has got to, so that it can go on after a crash.
    pub(crate) fn note_locator(&self, memory: u64, locator: &[u8]) -> Result<()> {
        self.write(|tx| {
            let sql = "UPDATE outbox SET locator = ?2 WHERE memory = ?1 AND kind = 'put'";
            tx.execute(sql, params![number(memory), locator]).map(drop)
        })
    }

    /// Takes rows out, and notes what is to be removed outside, together. Says which sessions are to stay forgotten.
    pub(crate) fn remove(&self, doomed: &[Doomed], owner: Tag, why: Why, by: Writer<'_>) -> Result<Vec<Tag>> {
        let marks = self.write(|tx| {
            let mut marks = Vec::new();
            for one in doomed {
                // What is to be uploaded of it is not, any more. Whose task it is says its artifact.
                let (id, artifact) = (number(one.id), one.artifact.0);
                let sql = "DELETE FROM outbox WHERE memory = ?1 AND artifact = ?2";
                tx.execute(sql, params![id, artifact])?;
                tx.execute("DELETE FROM memories WHERE id = ?1", [id])?;
                let mark = match one.session {
                    Some(session) if why == Why::Forgotten => {
                        let others =
                            "SELECT 1 FROM memories WHERE owner = ?1 AND session_tag = ?2 AND state = 1";
                        let of = params![owner.as_bytes(), session.as_bytes()];
                        (!tx.prepare_cached(others)?.exists(of)?).then_some(session)
                    }
                    _ => None,
                };
                marks.extend(mark);
                if let Some(pointer) = one.pointer.clone() {
                    let (memory, artifact, mode) = (one.id, one.artifact, one.mode.clone());
                    note_removal(tx, &Upload { owner, memory, artifact, pointer, mode }, mark, by)?;
                }
            }
            Ok(marks)
        })?;
        self.unscrubbed.store(true, Ordering::SeqCst);
        Ok(marks)
    }

    /// Leaves nothing of removed rows in the journal; until then a removal is not done.
    pub(crate) fn scrub(&self) -> Result<()> {
        if self.unscrubbed.swap(false, Ordering::SeqCst) {
            db::scrub(&self.writer()).inspect_err(|_| self.unscrubbed.store(true, Ordering::SeqCst))?;
        }
        Ok(())
    }

    /// A row by its pointer.
    pub(crate) fn by_pointer(&self, owner: Tag, pointer: &Pointer) -> Result<Option<StoredRow>> {
        let sql = format!("SELECT {COLUMNS} FROM memories WHERE pointer = ?1 AND owner = ?2 AND state <> 0");
        let reader = self.reader();
        let mut statement = reader.prepare_cached(&sql).map_err(db::failed)?;
        let found = statement.query_row(params![pointer.to_string(), owner.as_bytes()], stored);
        found.optional().map_err(db::failed)
    }

    /// The rows that this one stands in for; none if another stands in for it.
    pub(crate) fn superseded_by(&self, owner: Tag, row: &StoredRow) -> Result<Vec<StoredRow>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM memories WHERE owner = ?1 AND state = {SUPERSEDED}
             AND session_tag = (SELECT session_tag FROM memories WHERE id = ?2 AND state = 1) ORDER BY id"
        );
        self.rows(&sql, params![owner.as_bytes(), number(row.id)])
    }

    /// The rows with these ids that are there for everyone, in the order of the ids given.
    pub(crate) fn by_ids(&self, owner: Tag, ids: &[u64]) -> Result<Vec<StoredRow>> {
        let sql = format!("SELECT {COLUMNS} FROM memories WHERE id = ?1 AND owner = ?2 AND state = 1");
        let reader = self.reader();
        let mut statement = reader.prepare_cached(&sql).map_err(db::failed)?;
        let mut rows = Vec::with_capacity(ids.len());
        for id in ids {
            let row = statement.query_row(params![number(*id), owner.as_bytes()], stored).optional();
            rows.extend(row.map_err(db::failed)?);
        }
        Ok(rows)
    }

    /// Rows of an owner after an id, in order, live ones only or all.
    pub(crate) fn after(&self, owner: Tag, after: u64, live: bool, limit: usize) -> Result<Vec<StoredRow>> {
        let state = if live { "AND state = 1" } else { "" };
        let sql = format!(
            "SELECT {COLUMNS} FROM memories WHERE owner = ?1 AND id > ?2 {state} ORDER BY id LIMIT ?3"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.rows(&sql, params![owner.as_bytes(), number(after), limit])
    }

    /// The highest id of an owner's rows, superseded ones included: they were there for everyone once.
    pub(crate) fn newest(&self, owner: Tag) -> Result<u64> {
        let sql = "SELECT max(id) FROM memories WHERE owner = ?1 AND state <> 0";
        let reader = self.reader();
        let mut statement = reader.prepare_cached(sql).map_err(db::failed)?;
        let newest = statement.query_row([owner.as_bytes()], |row| row.get::<_, Option<i64>>(0));
        Ok(newest.map_err(db::failed)?.unwrap_or(0).unsigned_abs())
    }

    /// Which of these ids are there for everyone.
    pub(crate) fn live(&self, owner: Tag, ids: &[u64]) -> Result<Vec<u64>> {
        let sql = "SELECT 1 FROM memories WHERE id = ?1 AND owner = ?2 AND state = 1";
        let reader = self.reader();
        let mut statement = reader.prepare_cached(sql).map_err(db::failed)?;
        let mut live = Vec::with_capacity(ids.len());
        for id in ids {
            if statement.exists(params![number(*id), owner.as_bytes()]).map_err(db::failed)? {
                live.push(*id);
            }
        }
        Ok(live)
    }

    /// Whether there are neither rows nor anything to be done.
    pub(crate) fn is_empty(&self) -> Result<bool> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM memories) AND NOT EXISTS (SELECT 1 FROM outbox)";
        self.reader().query_row(sql, [], |row| row.get(0)).map_err(db::failed)
    }

    /// Takes a task over from an instance that is gone; false if somebody else was faster.
    pub(crate) fn claim(&self, task: &Task, by: Instance) -> Result<bool> {
        self.write(|tx| {
            let sql = "UPDATE outbox SET instance = ?3 WHERE id = ?1 AND instance = ?2";
            Ok(tx.execute(sql, params![task.id, task.instance.0, by.0])? == 1)
        })
    }

    /// The bytes that a task uploads.
    pub(crate) fn blob(&self, task: &Task) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT blob FROM outbox WHERE id = ?1";
        let blob = self.reader().query_row(sql, [task.id], |row| row.get::<_, Option<Vec<u8>>>(0)).optional();
        Ok(blob.map_err(db::failed)?.flatten())
    }

    /// Strikes a task off.
    pub(crate) fn done(&self, task: &Task) -> Result<()> {
        self.write(|tx| tx.execute("DELETE FROM outbox WHERE id = ?1", [task.id]).map(drop))
    }

    /// The sealed note about what was imported last from this source.
    pub(crate) fn imported(&self, owner: Tag, source: Tag) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT note FROM imports WHERE owner = ?1 AND source = ?2";
        let reader = self.reader();
        let mut statement = reader.prepare_cached(sql).map_err(db::failed)?;
        let note = statement.query_row([&owner.as_bytes()[..], source.as_bytes()], |row| row.get(0));
        note.optional().map_err(db::failed)
    }

    /// Notes what was imported from a source.
    pub(crate) fn note_import(&self, owner: Tag, source: Tag, note: &[u8]) -> Result<()> {
        self.write(|tx| {
            let sql = "INSERT OR REPLACE INTO imports (owner, source, note) VALUES (?1, ?2, ?3)";
            tx.execute(sql, [&owner.as_bytes()[..], source.as_bytes(), note]).map(drop)
        })
    }

    /// Drops all notes about an owner.
    pub(crate) fn forget_notes(&self, owner: Tag) -> Result<()> {
        self.write(|tx| tx.execute("DELETE FROM imports WHERE owner = ?1", [owner.as_bytes()]).map(drop))
    }

    /// Checks the file for damage.
    pub(crate) fn check(&self) -> Result<()> {
        let verdict: String =
            self.reader().query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(db::failed)?;
        if verdict == "ok" {
            return Ok(());
        }
        Err(Error::unavailable("memory.db is damaged", "restore it from a backup"))
    }

    fn rows(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<StoredRow>> {
        let reader = self.reader();
        let mut statement = reader.prepare_cached(sql).map_err(db::failed)?;
        let rows = statement.query_map(values, stored).map_err(db::failed)?;
        rows.collect::<rusqlite::Result<_>>().map_err(db::failed)
    }

    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        let mut writer = self.writer();
        let tx = writer.transaction_with_behavior(TransactionBehavior::Immediate).map_err(db::failed)?;
        let done = work(&tx).map_err(db::failed)?;
        tx.commit().map_err(db::failed)?;
        Ok(done)
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock()
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock()
    }
}

/// Writes down that a blob is to be uploaded.
fn note_upload(tx: &Transaction<'_>, of: &Upload, blob: &[u8], by: Writer<'_>) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT INTO outbox (kind, owner, memory, artifact, pointer, mode, blob, instance, sealed)
         VALUES ('put', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            of.owner.as_bytes(),
            number(of.memory),
            of.artifact.0,
            of.pointer.to_string(),
            of.mode,
            blob,
            by.instance.0,
            vouched::seal_task(by.vouch, TaskKind::Put, of, None)
        ],
    )
    .map(drop)
}

/// Writes down that a blob is to be removed, with its key and what the index says of it.
fn note_removal(
    tx: &Transaction<'_>,
    of: &Upload,
    mark: Option<Tag>,
    by: Writer<'_>,
) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT INTO outbox (kind, owner, memory, artifact, pointer, mode, instance, sealed)
         VALUES ('remove', ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            of.owner.as_bytes(),
            number(of.memory),
            of.artifact.0,
            of.pointer.to_string(),
            of.mode,
            by.instance.0,
            vouched::seal_task(by.vouch, TaskKind::Remove, of, mark)
        ],
    )
    .map(drop)
}

impl Task {
    /// What it is about.
    pub(crate) fn upload(&self) -> Upload {
        Upload {
            owner: self.owner,
            memory: self.memory,
            artifact: self.artifact,
            pointer: self.pointer.clone(),
            mode: self.mode.clone(),
        }
    }
}

impl StoredRow {
    /// The same as something that goes, with what is certain of it.
    pub(crate) fn doomed(&self, held: Option<&Held>, session: Option<Tag>) -> Doomed {
        Doomed {
            id: self.id,
            artifact: held.map_or(self.artifact, |held| held.id),
            pointer: held.and_then(|held| held.pointer.clone()),
            mode: self.mode.clone(),
            session,
        }
    }

    /// Fails if what is readable of it was damaged, so that even its key cannot be looked for.
    pub(crate) fn sound(&self) -> Result<()> {
        if self.sound { Ok(()) } else { Err(row_refused()) }
    }

    /// Opens its texts.
    pub(crate) fn texts(&self, owner: &OwnerKey, key: &Key) -> Result<Texts> {
        self.sound()?;
        let place = self.place(owner);
        self.agrees(&place, key)?;
        let text = |column: usize| place.open(key, TEXT_COLUMNS[column], &self.sealed[column]);
        Ok(Texts {
            tags_json: text(0)?,
            source_session_id: text(1)?,
            source_tool: text(2)?,
            title: text(3)?,
            snippet: text(4)?,
            metadata_json: text(5)?,
        })
    }

    fn place<'p>(&'p self, owner: &'p OwnerKey) -> RowPlace<'p> {
        self.place_as(owner, self.artifact)
    }

    /// The same, as if it were of this artifact.
    fn place_as<'p>(&'p self, owner: &'p OwnerKey, artifact: ArtifactId) -> RowPlace<'p> {
        RowPlace {
            owner,
            artifact,
            pointer: &self.pointer,
            artifact_type: self.artifact_type,
            created_at: &self.created_at,
        }
    }
}

pub(crate) fn row_refused() -> Error {
    Error::tampered(
        "a row of memory.db cannot be opened in its place",
        "restore memory.db from a backup, or forget this memory",
    )
}

/// Reads a row. One that is damaged is a row that does not open, not one over which everything else fails.
fn stored(row: &Row<'_>) -> rusqlite::Result<StoredRow> {
    let sealed = |at: usize| match row.get::<_, SqlValue>(at) {
        Ok(SqlValue::Blob(bytes)) => bytes,
        _ => Vec::new(),
    };
    let (pointer, artifact) = (pointer_at(row, 1).ok(), row.get(2).ok());
    let kind = row.get::<_, String>(3).ok().and_then(|kind| ArtifactType::parse(&kind));
    Ok(StoredRow {
        id: row.get::<_, i64>(0)?.unsigned_abs(),
        sound: pointer.is_some() && artifact.is_some() && kind.is_some(),
        pointer: pointer.unwrap_or_else(|| Pointer::of(&[])),
        artifact: ArtifactId(artifact.unwrap_or_default()),
        artifact_type: kind.unwrap_or(ArtifactType::ArtifactOnly),
        mode: row.get(4).unwrap_or_default(),
        locator: sealed(5),
        created_at: row.get(6).unwrap_or_default(),
        live: row.get(7).unwrap_or(-1) == 1,
        sealed: [sealed(8), sealed(9), sealed(10), sealed(11), sealed(12), sealed(13)],
        owner: row.get(14).ok().map(Tag::from_bytes),
        session_tag: Tag::from_bytes(row.get(15).unwrap_or_default()),
        payload_tag: sealed(16),
        begun: row.get(17).map(i64::unsigned_abs).unwrap_or_default(),
        steer: sealed(18),
        content_hash: row.get(19).unwrap_or_default(),
        updated_at: row.get(20).unwrap_or_default(),
        state: row.get(7).unwrap_or(-1),
    })
}

fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    Ok(Task {
        id: row.get(0)?,
        kind: match row.get::<_, String>(1)?.as_str() {
            "put" => TaskKind::Put,
            "remove" => TaskKind::Remove,
            _ => return Err(unreadable(1)),
        },
        owner: Tag::from_bytes(row.get(2)?),
        memory: row.get::<_, i64>(3)?.unsigned_abs(),
        artifact: ArtifactId(row.get(4)?),
        pointer: pointer_at(row, 5)?,
        mode: row.get(6)?,
        locator: row.get(7)?,
        instance: Instance(row.get(8)?),
        mark: None,
    })
}

fn pointer_at(row: &Row<'_>, at: usize) -> rusqlite::Result<Pointer> {
    Pointer::parse(&row.get::<_, String>(at)?).map_err(|_| unreadable(at))
}

fn unreadable(at: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(at, String::new(), rusqlite::types::Type::Text)
}

fn number(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

/// Rows whose upload is not done.
#[cfg(doc)]
const PENDING: i64 = 0;
/// Rows that a newer one of the same session stands in for: retrievable, but not found by searches.
const SUPERSEDED: i64 = 2;
const TEXT_COLUMNS: [&str; 6] =
    ["tags_json", "source_session_id", "source_tool", "title", "snippet", "metadata_json"];
const COLUMNS: &str = "id, pointer, artifact, artifact_type, mode, locator, created_at, state,
    tags_json, source_session_id, source_tool, title, snippet, metadata_json,
    owner, session_tag, payload_tag, begun, steer, content_hash, updated_at";

const STEPS: &[&str] = &[SCHEMA, BEGUN, VOUCHED];

/// `id` says in which order memories came to be there for everyone, `begun` in which they were begun.
const BEGUN: &str = "
    ALTER TABLE memories ADD COLUMN begun INTEGER NOT NULL DEFAULT 0;
    UPDATE memories SET begun = id;
";

/// What steers is sealed, too. Marks of forgotten sessions lie with the keys from now on.
const VOUCHED: &str = "
    ALTER TABLE memories ADD COLUMN steer BLOB;
    ALTER TABLE outbox ADD COLUMN sealed BLOB;
    ALTER TABLE erasing ADD COLUMN sealed BLOB;
    CREATE TABLE anchors (owner BLOB PRIMARY KEY, sealed BLOB NOT NULL) WITHOUT ROWID;
";

const SCHEMA: &str = "
    CREATE TABLE memories (
        id                INTEGER PRIMARY KEY AUTOINCREMENT,
        pointer           TEXT NOT NULL UNIQUE,
        content_hash      TEXT NOT NULL,
        artifact_type     TEXT NOT NULL,
        tags_json         TEXT NOT NULL,   -- sealed, as are the next five
        source_session_id TEXT,
        source_tool       TEXT,
        title             TEXT,
        snippet           TEXT,
        metadata_json     TEXT,
        created_at        TEXT NOT NULL,
        updated_at        TEXT NOT NULL,
        owner             BLOB NOT NULL,
        artifact          BLOB NOT NULL UNIQUE,
        session_tag       BLOB NOT NULL,
        payload_tag       BLOB NOT NULL,
        mode              TEXT NOT NULL,
        locator           BLOB NOT NULL,    -- sealed
        vector            BLOB,             -- not used: places in meaning are the index's
        state             INTEGER NOT NULL  -- 0 pending, 1 live, 2 superseded
    );
    CREATE INDEX memories_by_owner ON memories (owner, id);
    CREATE INDEX memories_by_session ON memories (owner, session_tag);
    CREATE UNIQUE INDEX memories_by_payload ON memories (owner, payload_tag) WHERE state <> 2;
    CREATE TABLE outbox (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        kind     TEXT NOT NULL,
        owner    BLOB NOT NULL,
        memory   INTEGER NOT NULL,
        artifact BLOB NOT NULL,
        pointer  TEXT NOT NULL,
        mode     TEXT NOT NULL,
        locator  BLOB,                      -- sealed
        blob     BLOB,
        instance BLOB NOT NULL
    );
    CREATE INDEX outbox_by_memory ON outbox (memory);
    CREATE TABLE imports (
        owner   BLOB NOT NULL,
        source  BLOB NOT NULL,
        note    BLOB NOT NULL,   -- sealed
        PRIMARY KEY (owner, source)
    ) WITHOUT ROWID;
    CREATE TABLE erasing (owner BLOB PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE forgotten (
        owner       BLOB NOT NULL,
        session_tag BLOB NOT NULL,
        PRIMARY KEY (owner, session_tag)
    ) WITHOUT ROWID;
";
