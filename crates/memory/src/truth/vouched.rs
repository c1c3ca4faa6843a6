//! What this file is told to do, and what it says of the keys: believed only where a seal vouches for it.
//!
//! A task destroys keys and removes blobs, an erasure ends everything of a person. Whoever can write to the file could order
//! either, so each is sealed for exactly what it is about. Anchors say how far the registers of the keys were; they are sealed
//! by whose register it is, and only kept here.

use confidant_seal::{Context, Key, Sealed, Suite, Tag, open, seal};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::{COLUMNS, StoredRow, Task, TaskKind, Truth, Upload, number, stored, task};
use crate::keys::{ArtifactId, OwnerKey};
use crate::{Result, db};

/// An erasure that was begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Erasure {
    /// The numbers of the keys that it was begun for: whoever came back since has another.
    pub(crate) numbers: Vec<u64>,
    /// What there was of them.
    pub(crate) artifacts: Vec<ArtifactId>,
}

impl Erasure {
    /// Whether it was begun for the key with this number; one of the version before does not say.
    pub(crate) fn concerns(&self, number: Option<u64>) -> bool {
        self.numbers.is_empty() || number.is_some_and(|number| self.numbers.contains(&number))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.numbers.len() as u64).to_be_bytes().to_vec();
        self.numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_be_bytes()));
        self.artifacts.iter().for_each(|artifact| bytes.extend_from_slice(&artifact.0));
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, mut rest) = bytes.split_first_chunk::<8>()?;
        let mut numbers = Vec::new();
        for _ in 0..u64::from_be_bytes(*count) {
            let (number, after) = rest.split_first_chunk::<8>()?;
            numbers.push(u64::from_be_bytes(*number));
            rest = after;
        }
        let artifacts =
            rest.chunks(16).map(|id| id.try_into().ok().map(ArtifactId)).collect::<Option<_>>()?;
        Some(Self { numbers, artifacts })
    }
}

impl Truth {
    /// What is to be done, oldest first; and how many tasks are there that nothing vouches for.
    pub(crate) fn tasks(&self, vouch: &Key) -> Result<(Vec<Task>, u64)> {
        let reader = self.reader();
        let sql =
            "SELECT id, kind, owner, memory, artifact, pointer, mode, locator, instance, sealed FROM outbox
                   ORDER BY id";
        let mut statement = reader.prepare(sql).map_err(db::failed)?;
        let read = statement.query_map([], |row| {
            // One that was damaged cannot be done, but the others can.
            let Ok(task) = task(row) else { return Ok(None) };
            let sealed: Vec<u8> = row.get(9).unwrap_or_default();
            Ok(open_task(vouch, &task, sealed).map(|mark| Task { mark, ..task }))
        });
        let (mut tasks, mut strange) = (Vec::new(), 0);
        for one in read.map_err(db::failed)? {
            match one.map_err(db::failed)? {
                Some(task) => tasks.push(task),
                None => strange += 1,
            }
        }
        Ok((tasks, strange))
    }

    /// Erasures that were begun and have not ended; and how many are there that nothing vouches for.
    pub(crate) fn erasing(&self, vouch: &Key) -> Result<(Vec<(Tag, Erasure)>, u64)> {
        let reader = self.reader();
        let mut statement = reader.prepare("SELECT owner, sealed FROM erasing").map_err(db::failed)?;
        let read = statement.query_map([], |row| {
            let (Ok(owner), Ok(sealed)) = (row.get(0).map(Tag::from_bytes), row.get::<_, Vec<u8>>(1)) else {
                return Ok(None);
            };
            let name = owner.to_string();
            let opened = open(vouch, &erasing_context(&name), &Sealed::from_bytes(sealed)).ok();
            Ok(opened.and_then(|opened| Some((owner, Erasure::from_bytes(&opened.data)?))))
        });
        let (mut erasing, mut strange) = (Vec::new(), 0);
        for one in read.map_err(db::failed)? {
            match one.map_err(db::failed)? {
                Some(one) => erasing.push(one),
                None => strange += 1,
            }
        }
        Ok((erasing, strange))
    }

    /// Says that everything of an owner ends.
    pub(crate) fn begin_erasing(&self, vouch: &Key, owner: Tag, what: &Erasure) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO erasing (owner, sealed) VALUES (?1, ?2)";
        let sealed = seal_erasure(vouch, owner, what);
        self.write(|tx| tx.execute(sql, params![owner.as_bytes(), sealed]).map(drop))
    }

    /// Says that it has ended.
    pub(crate) fn end_erasing(&self, owner: Tag) -> Result<()> {
        self.write(|tx| tx.execute("DELETE FROM erasing WHERE owner = ?1", [owner.as_bytes()]).map(drop))
    }

    /// Vouches for what the version before left to do. Only for a file of that time.
    pub(crate) fn vouch(&self, vouch: &Key) -> Result<()> {
        let tasks: Vec<Task> = {
            let reader = self.reader();
            let sql = "SELECT id, kind, owner, memory, artifact, pointer, mode, locator, instance FROM outbox
                       WHERE sealed IS NULL";
            let mut statement = reader.prepare(sql).map_err(db::failed)?;
            let read = statement.query_map([], task).map_err(db::failed)?;
            read.filter_map(std::result::Result::ok).collect()
        };
        let erasing: Vec<Tag> = {
            let reader = self.reader();
            let mut statement =
                reader.prepare("SELECT owner FROM erasing WHERE sealed IS NULL").map_err(db::failed)?;
            let read = statement.query_map([], |row| row.get(0).map(Tag::from_bytes)).map_err(db::failed)?;
            read.filter_map(std::result::Result::ok).collect()
        };
        self.write(|tx| {
            for task in &tasks {
                let sealed = seal_task(vouch, task.kind, &task.upload(), None);
                tx.execute("UPDATE outbox SET sealed = ?2 WHERE id = ?1", params![task.id, sealed])?;
            }
            for owner in &erasing {
                let sealed = seal_erasure(vouch, *owner, &Erasure::default());
                let sql = "UPDATE erasing SET sealed = ?2 WHERE owner = ?1";
                tx.execute(sql, params![owner.as_bytes(), sealed])?;
            }
            Ok(())
        })
    }

    /// Seals what steers in an owner's rows of the version before; returns, and drops, the sessions that it had marked as
    /// forgotten.
    pub(crate) fn steer_all(&self, owner: &OwnerKey, keys: &[(ArtifactId, Key)]) -> Result<Vec<Tag>> {
        let by_artifact = format!("SELECT {COLUMNS} FROM memories WHERE artifact = ?1");
        self.write(|tx| {
            for (artifact, key) in keys {
                let row = tx.prepare_cached(&by_artifact)?.query_row([artifact.0], stored).optional()?;
                if let Some(row) = row.filter(|row| row.owner == Some(owner.tag) && row.sound().is_ok()) {
                    let sql = "UPDATE memories SET steer = ?2 WHERE id = ?1";
                    tx.prepare_cached(sql)?.execute(params![number(row.id), row.steer_anew(owner, key)])?;
                }
            }
            let marks = {
                let mut statement = tx.prepare("SELECT session_tag FROM forgotten WHERE owner = ?1")?;
                let read = statement.query_map([owner.tag.as_bytes()], |row| row.get(0))?;
                read.filter_map(std::result::Result::ok).map(Tag::from_bytes).collect()
            };
            Ok(marks)
        })
    }

    /// The row of an artifact, whosever it is said to be.
    pub(crate) fn by_artifact(&self, artifact: ArtifactId) -> Result<Option<StoredRow>> {
        let sql = format!("SELECT {COLUMNS} FROM memories WHERE artifact = ?1");
        Ok(self.rows(&sql, params![artifact.0])?.into_iter().next())
    }

    /// Every row, by its number and the artifact that it names.
    pub(crate) fn all(&self) -> Result<Vec<(u64, Option<ArtifactId>)>> {
        let reader = self.reader();
        let mut statement = reader.prepare("SELECT id, artifact FROM memories").map_err(db::failed)?;
        let read = statement
            .query_map([], |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1).ok().map(ArtifactId))));
        read.map_err(db::failed)?.collect::<rusqlite::Result<_>>().map_err(db::failed)
    }

    /// A row by its number, whosever it is said to be.
    pub(crate) fn by_number(&self, id: u64) -> Result<Option<StoredRow>> {
        let sql = format!("SELECT {COLUMNS} FROM memories WHERE id = ?1");
        Ok(self.rows(&sql, params![number(id)])?.into_iter().next())
    }

    /// Every note about an import of an owner's: what it is about, and the sealed note.
    pub(crate) fn notes(&self, owner: Tag) -> Result<Vec<(Option<Tag>, Vec<u8>)>> {
        let reader = self.reader();
        let sql = "SELECT source, note FROM imports WHERE owner = ?1";
        let mut statement = reader.prepare(sql).map_err(db::failed)?;
        let read = statement.query_map([owner.as_bytes()], |row| {
            Ok((row.get(0).ok().map(Tag::from_bytes), row.get(1).unwrap_or_default()))
        });
        read.map_err(db::failed)?.collect::<rusqlite::Result<_>>().map_err(db::failed)
    }

    /// How many notes about imports there are, and marks where none are kept any more.
    pub(crate) fn count_notes(&self) -> Result<(u64, u64)> {
        let sql = "SELECT (SELECT count(*) FROM imports), (SELECT count(*) FROM forgotten)";
        let count = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let (notes, marks) = self.reader().query_row(sql, [], count).map_err(db::failed)?;
        Ok((notes.unsigned_abs(), marks.unsigned_abs()))
    }

    /// Drops the marks of the version before, which lie with the keys now.
    pub(crate) fn drop_marks(&self) -> Result<()> {
        self.write(|tx| tx.execute("DELETE FROM forgotten", []).map(drop))
    }

    /// Whether nothing is to be done outside the file.
    pub(crate) fn is_idle(&self) -> Result<bool> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM outbox) AND NOT EXISTS (SELECT 1 FROM erasing)";
        self.reader().query_row(sql, [], |row| row.get(0)).map_err(db::failed)
    }

    /// How far a register was, sealed.
    pub(crate) fn anchor(&self, owner: Tag) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT sealed FROM anchors WHERE owner = ?1";
        let read = |row: &rusqlite::Row<'_>| Ok(row.get(0).unwrap_or_default());
        self.reader().query_row(sql, [owner.as_bytes()], read).optional().map_err(db::failed)
    }

    /// Notes how far it is.
    pub(crate) fn set_anchor(&self, owner: Tag, sealed: &[u8]) -> Result<()> {
        self.write(|tx| write_anchor(tx, owner, sealed))
    }

    /// Drops the note.
    pub(crate) fn drop_anchor(&self, owner: Tag) -> Result<()> {
        self.write(|tx| tx.execute("DELETE FROM anchors WHERE owner = ?1", [owner.as_bytes()]).map(drop))
    }
}

pub(super) fn write_anchor(tx: &Transaction<'_>, owner: Tag, sealed: &[u8]) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO anchors (owner, sealed) VALUES (?1, ?2)";
    tx.execute(sql, params![owner.as_bytes(), sealed]).map(drop)
}

pub(super) fn seal_task(vouch: &Key, kind: TaskKind, of: &Upload, mark: Option<Tag>) -> Vec<u8> {
    let mark = mark.map(|mark| mark.as_bytes().to_vec()).unwrap_or_default();
    with_task(kind, of, |context| seal(vouch, SUITE, context, 0, &mark).as_bytes().to_vec())
}

/// The session that is marked with it; nothing if it is not vouched for.
fn open_task(vouch: &Key, task: &Task, sealed: Vec<u8>) -> Option<Option<Tag>> {
    let opened =
        with_task(task.kind, &task.upload(), |context| open(vouch, context, &Sealed::from_bytes(sealed)))
            .ok()?;
    match opened.data.as_slice() {
        [] => Some(None),
        mark => mark.try_into().ok().map(Tag::from_bytes).map(Some),
    }
}

fn with_task<T>(kind: TaskKind, of: &Upload, work: impl FnOnce(&Context<'_>) -> T) -> T {
    let (owner, artifact) = (of.owner.to_string(), of.artifact.hex());
    let field = format!("{} {} {}", of.memory, of.pointer, of.mode);
    let object = match kind {
        TaskKind::Put => "put",
        TaskKind::Remove => "remove",
    };
    work(&Context { purpose: "memory-task", owner: &owner, container: &artifact, object, field: &field })
}

fn seal_erasure(vouch: &Key, owner: Tag, what: &Erasure) -> Vec<u8> {
    let name = owner.to_string();
    seal(vouch, SUITE, &erasing_context(&name), 0, &what.to_bytes()).as_bytes().to_vec()
}

fn erasing_context(owner: &str) -> Context<'_> {
    Context { purpose: "memory-erasing", owner, container: "", object: "", field: "" }
}

const SUITE: Suite = Suite::ChaCha20Poly1305;
