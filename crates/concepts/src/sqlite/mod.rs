//! The embedded graph: SKOS concepts in one SQLite file, `concepts.db`, with a full-text index of their labels.
//!
//! Public knowledge, so nothing in it is sealed. Reads take a connection from a small pool and are short; writes go
//! through one connection. [`read`] has the queries, [`mod@write`] what an import and an approval do.

mod read;
mod write;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use confidant_sqlite::{File, OpenError, Privacy};
use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;

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
        Ok(Self::with(Place::File(path.to_owned()), FILE.open(path).map_err(refused)?))
    }

    /// A graph that ends with its handles.
    pub fn in_memory() -> Result<Self> {
        Ok(Self::with(Place::Memory, FILE.in_memory().map_err(refused)?))
    }

    fn with(place: Place, writer: Connection) -> Self {
        writer.set_prepared_statement_cache_capacity(64);
        Self { inner: Arc::new(Inner { place, writer: Mutex::new(writer), readers: Mutex::default() }) }
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.inner.writer.lock()
    }

    /// Reads with a connection of its own, where there can be one.
    fn with_reader<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let Place::File(path) = &self.inner.place else {
            return read(&self.writer()).map_err(|e| failed(&e));
        };
        let pooled = self.inner.readers.lock().pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => FILE.join(path).map_err(|e| failed(&e))?,
        };
        let outcome = read(&connection).map_err(|e| failed(&e));
        let mut readers = self.inner.readers.lock();
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

/// Read far more than written, so its pages are mapped and kept; public, so what is deleted need not be overwritten.
const FILE: File = File {
    steps: &[include_str!("schema.sql")],
    pragmas: &["synchronous = NORMAL", "mmap_size = 268435456", "cache_size = -16384"],
    statements: 32,
    privacy: Privacy::IfPossible,
};

fn refused(error: OpenError) -> GraphError {
    match error {
        OpenError::Newer => GraphError::Newer,
        OpenError::Private(error) => GraphError::Unavailable(format!("concepts.db, {}", error.kind())),
        OpenError::Sqlite(error) => failed(&error),
    }
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
