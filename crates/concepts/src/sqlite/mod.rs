//! The embedded graph: SKOS concepts in one SQLite file, `concepts.db`, with a full-text index of their labels.
//!
//! Public knowledge, so nothing in it is sealed. Reads take a connection from a small pool and are short; writes go
//! through one connection. [`read`] has the queries, [`mod@write`] what an import and an approval do.

mod read;
mod write;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags};

use crate::concept::Node;
use crate::graph::{Graph, GraphError, Look};
use crate::guard::Cleared;

pub use read::ConceptList;
pub(crate) use read::FullRow;
pub use write::Pending;
pub(crate) use write::Said;

pub(crate) type Result<T> = std::result::Result<T, GraphError>;

/// Concepts in one SQLite file. Clones are the same graph.
#[derive(Clone, Debug)]
pub struct SqliteGraph {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    place: Place,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    /// Where every connection would be a graph of its own, all go through one.
    Memory,
}

impl SqliteGraph {
    /// Opens or makes the file.
    pub fn open(path: &Path) -> Result<Self> {
        let writer = connect(path)?;
        Self::with(Place::File(path.to_owned()), writer)
    }

    /// A graph that ends with its handles.
    pub fn in_memory() -> Result<Self> {
        Self::with(Place::Memory, Connection::open_in_memory().map_err(|e| failed(&e))?)
    }

    fn with(place: Place, mut writer: Connection) -> Result<Self> {
        migrate(&mut writer).map_err(|e| failed(&e))?;
        writer.set_prepared_statement_cache_capacity(64);
        Ok(Self { inner: Arc::new(Inner { place, writer: Mutex::new(writer), readers: Mutex::default() }) })
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads with a connection of its own, where there can be one.
    fn with_reader<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let Place::File(path) = &self.inner.place else {
            return read(&self.writer()).map_err(|e| failed(&e));
        };
        let pooled = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => connect(path)?,
        };
        let outcome = read(&connection).map_err(|e| failed(&e));
        let mut readers = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < MOST_READERS {
            readers.push(connection);
        }
        outcome
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let graph = self.clone();
        let outcome = tokio::task::spawn_blocking(move || work(&graph)).await;
        outcome.unwrap_or_else(|_| Err(GraphError::Unavailable("a task was cut off".to_owned())))
    }
}

#[async_trait]
impl Graph for SqliteGraph {
    async fn nodes(&self, ids: &[String], language: &str) -> Result<Vec<Option<Node>>> {
        // On a thread that may block: a file that is slow must not keep whoever asks from giving up.
        let (ids, language) = (ids.to_vec(), language.to_owned());
        self.blocking(move |graph| graph.with_reader(|c| read::nodes(c, &ids, &language))).await
    }

    async fn find(&self, look: Look<'_>, language: &str, limit: usize) -> Result<Vec<Node>> {
        let (look, language) = (read::Owned::from(look), language.to_owned());
        self.blocking(move |graph| graph.with_reader(|c| read::find(c, look.look(), &language, limit))).await
    }

    async fn approve(&self, concept: Cleared) -> Result<String> {
        self.blocking(move |graph| {
            write::approve(&mut graph.writer(), concept.concept()).map_err(|e| failed(&e))
        })
        .await
    }

    async fn count(&self) -> Result<u64> {
        self.blocking(|graph| graph.with_reader(read::count)).await
    }
}

fn connect(path: &Path) -> Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(confidant_sqlite::PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(32);
        confidant_sqlite::write_ahead(&connection)?;
        connection.execute_batch(
            "PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 268435456; PRAGMA cache_size = -16384;",
        )?;
        Ok(connection)
    };
    open().map_err(|e| failed(&e))
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == 0 {
        tx.execute_batch(include_str!("schema.sql"))?;
        tx.pragma_update(None, "user_version", 1)?;
    }
    tx.commit()
}

/// What a failure of SQLite means, without a word of what it was working on.
fn failed(error: &rusqlite::Error) -> GraphError {
    match error {
        rusqlite::Error::SqliteFailure(cause, _) => {
            GraphError::Unavailable(format!("concepts.db, code {}", cause.extended_code))
        }
        _ => GraphError::Malformed("concepts.db"),
    }
}

const MOST_READERS: usize = 4;
