//! Search over one owner's cards: local, sealed on disk, never the truth.
//!
//! Everything here can be thrown away and made again from a [`Source`]. User text is never query syntax.

use std::path::Path;

use confidant_seal::Key;

use crate::{Card, Result};

/// A card as search sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Its row in the truth; newer ones have higher ids.
    pub id: u64,
    /// Its text.
    pub card: Card,
    /// Exact tags.
    pub tags: Vec<String>,
    /// The session it is of.
    pub session_id: String,
    /// The tool that ran it.
    pub tool: String,
    /// When the session was, in milliseconds since 1970.
    pub created_at: i64,
    /// Its place in meaning, if an encoder made one: a unit vector, quantised.
    pub vector: Option<Vec<i8>>,
}

/// Where documents come from: the truth.
pub trait Source: Send + Sync {
    /// The highest id of any document, 0 without any.
    fn newest(&self) -> Result<u64>;
    /// Live documents with a higher id than `after`, in order of id.
    fn documents(&self, after: u64, limit: usize) -> Result<Vec<Document>>;
    /// Which of these ids are still live.
    fn live(&self, ids: &[u64]) -> Result<Vec<u64>>;
}

/// Where the keys of index files are kept: apart from the files, so that destroying one ends what it sealed.
pub trait FileKeys: Send + Sync + std::fmt::Debug {
    /// Makes and keeps a new key under this name.
    fn create(&self, name: &str) -> Result<Key>;
    /// The key of this name; nothing if there is none.
    fn get(&self, name: &str) -> Result<Option<Key>>;
    /// Destroys the keys of these names beyond recovery.
    fn destroy(&self, names: &[String]) -> Result<()>;
    /// All names there are.
    fn names(&self) -> Result<Vec<String>>;
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Words in any language; empty to list by time.
    pub text: String,
    /// All of these tags, exactly.
    pub tags: Vec<String>,
    /// Not before, in milliseconds since 1970.
    pub from: Option<i64>,
    /// Before.
    pub until: Option<i64>,
    /// At most so many.
    pub limit: usize,
    /// After so many.
    pub offset: usize,
    /// The present, for recency.
    pub now: i64,
}

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its id in the truth.
    pub id: u64,
    /// How well it fits; higher is better.
    pub score: f32,
}

/// The search index of one owner.
#[derive(Debug)]
pub struct Index {}

impl Index {
    /// Opens the index in this folder, or an empty one if it is missing, damaged or of another version. Does no slow
    /// work.
    pub fn open(folder: &Path, keys: std::sync::Arc<dyn FileKeys>) -> Result<Self> {
        let _ = (folder, keys);
        Ok(Self {})
    }

    /// Searches everything that `source` has, what is not indexed yet included.
    pub fn search(&self, query: &Query, source: &dyn Source) -> Result<Vec<Hit>> {
        let _ = (query, source);
        Ok(Vec::new())
    }

    /// Takes what is new in `source` into the files, if there is enough of it or `now` says so. Cheap when there is
    /// nothing to do; at most one process does it at a time.
    pub fn catch_up(&self, source: &dyn Source, now: bool) -> Result<u64> {
        let _ = (source, now);
        Ok(0)
    }

    /// Removes documents, and what sealed files still say of them. Returns when it is done.
    pub fn forget(&self, ids: &[u64]) -> Result<()> {
        let _ = ids;
        Ok(())
    }
}
