//! A truth that makes its cards when asked, and keys in memory: nothing but the index is measured.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use confidant_memory::index::{Document, FileKeys, Source};
use confidant_seal::Key;

use crate::cards;

/// Cards 1 to `count`.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) count: AtomicU64,
}

impl Source for Generated {
    fn newest(&self) -> confidant_memory::Result<u64> {
        Ok(self.count.load(Ordering::Relaxed))
    }

    fn documents(&self, after: u64, limit: usize) -> confidant_memory::Result<Vec<Document>> {
        let ids = after + 1..=self.count.load(Ordering::Relaxed);
        Ok(ids.take(limit).map(cards::card).collect())
    }

    fn live(&self, ids: &[u64]) -> confidant_memory::Result<Vec<u64>> {
        Ok(ids.to_vec())
    }
}

/// These cards.
#[derive(Debug, Default)]
pub(crate) struct Listed(pub(crate) Vec<Document>);

impl Source for Listed {
    fn newest(&self) -> confidant_memory::Result<u64> {
        Ok(self.0.last().map_or(0, |document| document.id))
    }

    fn documents(&self, after: u64, limit: usize) -> confidant_memory::Result<Vec<Document>> {
        Ok(self.0.iter().filter(|document| document.id > after).take(limit).cloned().collect())
    }

    fn live(&self, ids: &[u64]) -> confidant_memory::Result<Vec<u64>> {
        Ok(ids.to_vec())
    }
}

/// Keys in memory.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<HashMap<String, Key>>);

impl Keys {
    fn keys(&self) -> std::sync::MutexGuard<'_, HashMap<String, Key>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileKeys for Keys {
    fn create(&self, name: &str) -> confidant_memory::Result<Key> {
        let key = Key::random();
        self.keys().insert(name.to_owned(), key.clone());
        Ok(key)
    }

    fn get(&self, name: &str) -> confidant_memory::Result<Option<Key>> {
        Ok(self.keys().get(name).cloned())
    }

    fn destroy(&self, names: &[String]) -> confidant_memory::Result<()> {
        self.keys().retain(|name, _| !names.contains(name));
        Ok(())
    }

    fn names(&self) -> confidant_memory::Result<Vec<String>> {
        Ok(self.keys().keys().cloned().collect())
    }
}
