//! Chats in one SQLite file, `chats.db`: in WAL mode, private, holding tags and sealed bytes.
//!
//! ```text
//! write ──▶ async mutex ──▶ blocking thread: BEGIN IMMEDIATE … COMMIT      one connection
//! read ───▶ semaphore ────▶ blocking thread: BEGIN … COMMIT                up to four connections
//! ```
//!
//! Waiting is done by tasks, not by threads: a thread is taken only once a connection is free. There is no queue that shares
//! commits, as the engine's store has: a person writes a chat every few seconds, and each write has its own answer. A caller
//! that goes away does not stop its transaction, which then ends as a whole.
//!
//! Easy to get wrong: believing that `secure_delete` clears everything. Erased bytes live on in the journal, and in unused
//! parts of pages, until `scrub` has rewritten the file.

mod accounts;
mod chats;
mod codes;
mod copy;
mod feed;
mod letters;
mod lists;
mod marks;
mod restore;
mod rings;
mod rotation;
mod rows;
mod safety;
mod schema;
mod sessions;
mod snapshots;
mod upkeep;
mod write;

#[cfg(test)]
mod kills;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use confidant_chat_format::Refused;
use confidant_sqlite::{File, OpenError, Privacy};
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::Semaphore;

use super::{Result, StoreError};

/// Chats in an SQLite file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SqliteChats {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// The connection that writes, one task at a time.
    writer: Arc<tokio::sync::Mutex<Connection>>,
    /// How many may read at once.
    reading: Arc<Semaphore>,
    /// Connections for reading, made as needed and kept.
    idle: Mutex<Vec<Connection>>,
}

impl SqliteChats {
    /// Opens `chats.db` in this folder, made or brought up to date.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(NAME);
        let connection = FILE.open(&path).map_err(|error| match error {
            OpenError::Newer => StoreError::Newer,
            OpenError::Private(_) => StoreError::ReadOnly(NAME),
            OpenError::Sqlite(error) => failed(&error),
        })?;
        let writer = Arc::new(tokio::sync::Mutex::new(connection));
        let reading = Arc::new(Semaphore::new(READERS));
        Ok(Self { inner: Arc::new(Inner { path, writer, reading, idle: Mutex::default() }) })
    }

    /// Runs `work` in a transaction that is committed if it succeeds, and undone otherwise.
    async fn write_with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Work<T> + Send + 'static,
    ) -> Result<T> {
        let mut connection = Arc::clone(&self.inner.writer).lock_owned().await;
        blocking(move || {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&tx)?;
            tx.commit()?;
            Ok(done)
        })
        .await
    }

    /// Runs `work` in a transaction that only reads: all of it sees one state.
    async fn read_with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Work<T> + Send + 'static,
    ) -> Result<T> {
        let permit = Arc::clone(&self.inner.reading).acquire_owned().await;
        let permit = permit.map_err(|_| StoreError::Failed("the store is closed".to_owned()))?;
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            let _permit = permit;
            let pooled = inner.idle.lock().pop();
            let mut connection = match pooled {
                Some(connection) => connection,
                None => FILE.join(&inner.path)?,
            };
            let done = {
                let tx = connection.transaction()?;
                work(&tx)?
            };
            inner.idle.lock().push(connection);
            Ok(done)
        })
        .await
    }
}

/// What runs inside a transaction: it fails by a refusal, or by SQLite.
type Work<T> = std::result::Result<T, Halt>;

/// Why a transaction was undone.
#[derive(Debug)]
enum Halt {
    Refused(StoreError),
    Sqlite(rusqlite::Error),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<Refused> for Halt {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused.into())
    }
}

impl From<rusqlite::Error> for Halt {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Runs blocking work on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Work<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(Halt::Refused(error))) => Err(error),
        Ok(Err(Halt::Sqlite(error))) => Err(failed(&error)),
        Err(_) => Err(StoreError::Failed("a store task was interrupted".to_owned())),
    }
}

fn failed(error: &rusqlite::Error) -> StoreError {
    let rusqlite::Error::SqliteFailure(cause, _) = error else {
        // A row of the wrong type: somebody put something there that we never write.
        return StoreError::Corrupt(NAME);
    };
    match cause.code {
        ErrorCode::DiskFull => StoreError::Full,
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
            StoreError::ReadOnly(NAME)
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt(NAME),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy,
        // Only the code: a driver's message may quote a statement.
        _ => StoreError::Failed(format!("{NAME} code {}", cause.extended_code)),
    }
}

const NAME: &str = "chats.db";
const READERS: usize = 4;
const FILE: File = File {
    steps: schema::STEPS,
    pragmas: &["secure_delete = ON", "foreign_keys = ON", "synchronous = FULL"],
    statements: 128,
    privacy: Privacy::Required,
};
