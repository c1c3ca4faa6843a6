//! A truth in memory, keys in memory and on disk, and cards to fill them with.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use super::super::*;

/// A truth in memory.
#[derive(Debug, Default)]
pub(super) struct Truth(pub(super) Mutex<BTreeMap<u64, Document>>);

impl Truth {
    pub(super) fn of(documents: impl IntoIterator<Item = Document>) -> Self {
        Self(Mutex::new(documents.into_iter().map(|document| (document.id, document)).collect()))
    }

    pub(super) fn add(&self, document: Document) {
        self.0.lock().unwrap().insert(document.id, document);
    }

    pub(super) fn delete(&self, id: u64) {
        self.0.lock().unwrap().remove(&id);
    }
}

impl Source for Truth {
    fn newest(&self) -> Result<u64> {
        Ok(self.0.lock().unwrap().keys().next_back().copied().unwrap_or(0))
    }

    fn documents(&self, after: u64, limit: usize) -> Result<Vec<Document>> {
        Ok(self
            .0
            .lock()
            .unwrap()
            .range(after + 1..)
            .take(limit)
            .map(|(_, document)| document.clone())
            .collect())
    }

    fn live(&self, ids: &[u64]) -> Result<Vec<u64>> {
        let documents = self.0.lock().unwrap();
        Ok(ids.iter().copied().filter(|id| documents.contains_key(id)).collect())
    }
}

/// Keys in memory, which fail when told to.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) keys: Mutex<HashMap<String, Key>>,
    /// Calls that still work; negative for all.
    pub(super) left: AtomicI64,
}

impl Keys {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { keys: Mutex::default(), left: AtomicI64::new(-1) })
    }

    fn call(&self) -> Result<()> {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            0 => {
                self.left.store(0, Ordering::SeqCst);
                Err(Error::unavailable("no keys today", "try again"))
            }
            left if left < 0 => {
                self.left.store(-1, Ordering::SeqCst);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl FileKeys for Keys {
    fn create(&self, name: &str) -> Result<Key> {
        self.call()?;
        let key = Key::random();
        self.keys.lock().unwrap().insert(name.to_owned(), key.clone());
        Ok(key)
    }

    fn get(&self, name: &str) -> Result<Option<Key>> {
        self.call()?;
        Ok(self.keys.lock().unwrap().get(name).cloned())
    }

    fn destroy(&self, names: &[String]) -> Result<()> {
        self.call()?;
        self.keys.lock().unwrap().retain(|name, _| !names.contains(name));
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>> {
        self.call()?;
        Ok(self.keys.lock().unwrap().keys().cloned().collect())
    }
}

/// Keys as files of their own, for several processes. Good enough for a test.
#[derive(Debug)]
pub(super) struct DiskKeys(pub(super) PathBuf);

impl FileKeys for DiskKeys {
    fn create(&self, name: &str) -> Result<Key> {
        let key = Key::random();
        std::fs::write(self.0.join(format!("{name}.new")), key.dangerously_expose_bytes()).unwrap();
        std::fs::rename(self.0.join(format!("{name}.new")), self.0.join(name)).unwrap();
        Ok(key)
    }

    fn get(&self, name: &str) -> Result<Option<Key>> {
        let bytes = std::fs::read(self.0.join(name)).ok();
        Ok(bytes.map(|bytes| Key::from_bytes(bytes.try_into().unwrap())))
    }

    fn destroy(&self, names: &[String]) -> Result<()> {
        for name in names {
            let _ = std::fs::remove_file(self.0.join(name));
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        Ok(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
    }
}

/// A card with this title.
pub(super) fn titled(id: u64, title: &str) -> Document {
    let card = Card { title: title.to_owned(), ..Card::default() };
    Document { id, card, session_id: format!("s{id}"), created_at: id as i64 * 1000, ..Document::default() }
}

/// A card of words that follow from its id.
pub(super) fn generated(id: u64) -> Document {
    let mut state = id.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let rank = (state % 1000) * (state >> 32 & 0xff) / 256;
        format!("w{rank}")
    };
    let mut text = |n: usize| (0..n).map(|_| word()).collect::<Vec<_>>().join(" ");
    let card = Card {
        title: text(4),
        summary_bullets: vec![text(10), text(8)],
        decisions: vec![text(5)],
        todos: vec![text(3)],
        entities: vec![text(1), text(1)],
        keywords: vec![text(1), text(1)],
        notable_quotes: vec![text(6)],
    };
    // Some are of before sessions were indexed.
    let bag = (!id.is_multiple_of(3)).then(|| Bag::of(&serde_json::json!({ "content": text(60) })));
    Document {
        id,
        card,
        bag,
        tags: vec![format!("tag{}", id % 7), format!("rare{}", id % 101)],
        session_id: format!("session-{}", id / 3),
        tool: "tool".to_owned(),
        created_at: id as i64 * 60_000,
    }
}

pub(super) fn query(text: &str) -> Query {
    Query { text: text.to_owned(), limit: 10, now: 1_000_000_000, ..Query::default() }
}

pub(super) fn ids(hits: &[Hit]) -> Vec<u64> {
    hits.iter().map(|hit| hit.id).collect()
}

/// An index in a folder of its own.
pub(super) struct Rig {
    pub(super) folder: tempfile::TempDir,
    pub(super) keys: Arc<Keys>,
    pub(super) index: Index,
}

impl Rig {
    pub(super) fn new() -> Self {
        let (folder, keys) = (tempfile::tempdir().unwrap(), Keys::new());
        let index = Index::open(&folder.path().join("index"), keys.clone()).unwrap();
        Self { folder, keys, index }
    }

    /// The same folder and keys, as another process sees them.
    pub(super) fn again(&self) -> Index {
        Index::open(&self.path(), self.keys.clone()).unwrap()
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    /// Files of segments.
    pub(super) fn segments(&self) -> Vec<PathBuf> {
        segments(&self.path())
    }
}

pub(super) fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.file_name().unwrap().len() == 32).collect();
    found.sort();
    found
}
