//! The embedded default: two plain SQLite files in WAL mode, `confidant.db` and `keyring.db`, holding tags and sealed
//! bytes only.
//!
//! Writes share commits (`writer.rs`); reads take a connection from a small pool; `records.rs` says how logs lie in their
//! file. What is easy to get wrong: `secure_delete` clears rows in the database, but erased bytes live on in the WAL until it is
//! truncated, and as copies in unused parts of pages until those are written anew. `scrub` does the first, and for keys both:
//! without its key, what is left of a log opens for nobody.

mod audit;
mod contexts;
mod copied;
mod data;
mod instances;
mod keys;
mod records;
mod tokens;
mod writer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use confidant_seal::{Kid, Sealed, Tag};
use confidant_sqlite::{OpenError, PATIENCE, Privacy, rewrite, truncate_journal};
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode};

use super::Result;
use crate::error::StoreError;

pub use data::SqliteStore;
pub use keys::SqliteKeys;

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the disk has it: survives a loss of power.
    #[default]
    Power,
    /// When the operating system has it: survives the end of the process, not of the machine.
    Process,
}

/// One database file: what it is called in errors, and what makes it.
#[derive(Clone, Copy, Debug)]
struct File {
    name: &'static str,
    /// Applied in order; the count applied is the file's `user_version`. Only ever added to.
    migrations: &'static [&'static str],
}

impl File {
    /// Makes it, or brings it up to date.
    fn open(self, path: &Path, durability: Durability) -> Result<Connection> {
        self.kind(durability).open(path).map_err(|error| match error {
            OpenError::Newer => StoreError::Newer,
            OpenError::Private(_) => StoreError::ReadOnly,
            OpenError::Sqlite(error) => self.error(&error),
        })
    }

    /// One more connection to a file that is open.
    fn join(self, path: &Path) -> Result<Connection> {
        self.kind(Durability::Process).join(path).map_err(|e| self.error(&e))
    }

    fn kind(self, durability: Durability) -> confidant_sqlite::File {
        // A journal of 16 MB instead of 4: pages that every turn touches are then copied back a quarter as often.
        let pragmas: &[&str] = match durability {
            Durability::Power => &["secure_delete = ON", "wal_autocheckpoint = 4000", "synchronous = FULL"],
            Durability::Process => {
                &["secure_delete = ON", "wal_autocheckpoint = 4000", "synchronous = NORMAL"]
            }
        };
        // A folder that another owner shares, or one on a file system without owners, is used all the same.
        let privacy = Privacy::IfPossible;
        confidant_sqlite::File { steps: self.migrations, pragmas, statements: 64, privacy }
    }

    fn error(self, error: &rusqlite::Error) -> StoreError {
        let rusqlite::Error::SqliteFailure(cause, _) = error else {
            // A row of the wrong type: somebody put something there that we never write.
            return StoreError::Corrupt(self.name);
        };
        match cause.code {
            ErrorCode::DiskFull => StoreError::Full,
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => StoreError::ReadOnly,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt(self.name),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy,
            // The shared-memory file beside a WAL could not be made or grown.
            _ if cause.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => StoreError::Full,
            _ if cause.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMOPEN => StoreError::ReadOnly,
            // Only the code: a driver's message may quote a statement.
            _ => StoreError::Failed(format!("{} code {}", self.name, cause.extended_code)),
        }
    }

    /// Leaves nothing of deleted rows in the journal or in any page: for keys, which open what others may have copies of.
    fn rewrite(self, connection: &Connection) -> Result<()> {
        match rewrite(connection, PATIENCE).map_err(|e| self.error(&e))? {
            true => Ok(()),
            false => Err(StoreError::Busy),
        }
    }

    fn check(self, connection: &Connection) -> Result<()> {
        let verdict: String = connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|e| self.error(&e))?;
        if verdict == "ok" { Ok(()) } else { Err(StoreError::Corrupt(self.name)) }
    }

    /// Moves the WAL into the database and truncates it, so that no overwritten page outlives its erasure there. Whoever
    /// reads is waited for; an error says that they are still at it, and that there may still be something.
    fn scrub(self, connection: &Connection) -> Result<()> {
        match truncate_journal(connection, PATIENCE).map_err(|e| self.error(&e))? {
            true => Ok(()),
            false => Err(StoreError::Busy),
        }
    }
}

/// Connections for reading, made as needed and kept.
#[derive(Debug)]
struct Readers {
    file: File,
    path: std::path::PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    fn new(file: File, path: std::path::PathBuf) -> Arc<Self> {
        Arc::new(Self { file, path, idle: Mutex::default() })
    }

    /// Reads on a thread that may block.
    async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let readers = Arc::clone(self);
        blocking(move || readers.with(read)).await
    }

    async fn scrub(self: &Arc<Self>) -> Result<()> {
        let file = self.file;
        self.read(move |c| Ok(file.scrub(c))).await?
    }

    async fn rewrite(self: &Arc<Self>) -> Result<()> {
        let file = self.file;
        self.read(move |c| Ok(file.rewrite(c))).await?
    }

    async fn check(self: &Arc<Self>) -> Result<String> {
        let file = self.file;
        self.read(move |c| Ok(file.check(c))).await??;
        Ok(file.name.to_owned())
    }

    fn with<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let pooled = self.idle.lock().pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => self.file.join(&self.path)?,
        };
        let outcome = read(&connection).map_err(|e| self.file.error(&e));
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE_READERS {
            idle.push(connection);
        }
        outcome
    }
}

const MAX_IDLE_READERS: usize = 4;

/// Runs blocking work on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(StoreError::Failed("a store task was interrupted".to_owned())),
    }
}

/// Rows into types. A wrong length is a damaged row, never a panic.
fn tag_at(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<Tag> {
    Ok(Tag::from_bytes(row.get(index)?))
}

fn kid_at(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<Kid> {
    Ok(Kid::from_bytes(row.get(index)?))
}

fn sealed_at(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<Sealed> {
    // Text in place of bytes is somebody's plaintext row; it must be refused by the seal, not by the driver.
    let bytes = match row.get_ref(index)? {
        rusqlite::types::ValueRef::Blob(bytes) | rusqlite::types::ValueRef::Text(bytes) => bytes.to_vec(),
        _ => Vec::new(),
    };
    Ok(Sealed::from_bytes(bytes))
}

fn number_at(row: &rusqlite::Row<'_>, index: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(index).map(i64::cast_unsigned)
}

/// SQLite's integers are signed; ours never come near the sign.
fn number(value: u64) -> i64 {
    value.cast_signed()
}

fn many(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
