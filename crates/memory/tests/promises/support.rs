//! An installation in a temporary folder, and a store of blobs that can be made to fail.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use confidant_memory::api::{QueryRequest, StoreRequest, Stored};
use confidant_memory::blobs::{Blobs, Locator, Pointer, Removed};
use confidant_memory::source::Sources;
use confidant_memory::{
    Error, Gate, IndexOf, Key, Memory, OwnMemory, Owner, Parts, Result, RootSource, Roots,
};
use confidant_seal::{TenantId, UserId};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// What the next calls of a store do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Weather {
    #[default]
    Fine,
    /// Nothing gets through.
    Down,
    /// It arrives, but the answer does not.
    LostAnswer,
    /// It never ends, as if the process died meanwhile.
    Hangs,
    /// What arrives waits at the gate until it is let in, one after the other.
    Held,
    /// It takes the money, says for what, and breaks off.
    Paid,
    /// It can be read, but it is full.
    Full,
}

/// Blobs in memory. Clones are the same store, as if it were elsewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf {
    pub(crate) blobs: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    pub(crate) weather: Arc<Mutex<Weather>>,
    pub(crate) puts: Arc<AtomicU64>,
    /// How often it was paid.
    pub(crate) paid: Arc<AtomicU64>,
    /// How many came to the gate.
    held: Arc<AtomicU64>,
    gate: Arc<tokio::sync::Notify>,
}

impl Shelf {
    pub(crate) fn set(&self, weather: Weather) {
        *self.weather.lock().unwrap() = weather;
    }

    /// Lets in one of those that wait.
    pub(crate) fn let_in(&self) {
        self.gate.notify_one();
    }

    fn weather(&self) -> Weather {
        *self.weather.lock().unwrap()
    }

    pub(crate) fn len(&self) -> usize {
        self.blobs.lock().unwrap().len()
    }
}

fn down() -> Error {
    Error::Unavailable { what: "the store does not answer".to_owned(), hint: "try again".to_owned() }
}

#[async_trait]
impl Blobs for Shelf {
    async fn put(
        &self,
        pointer: &Pointer,
        ciphertext: &[u8],
        resume: Option<&Locator>,
        noted: &(dyn for<'l> Fn(&'l Locator) + Send + Sync),
    ) -> Result<Locator> {
        match self.weather() {
            Weather::Down | Weather::Full => return Err(down()),
            Weather::Paid => {
                if resume.is_none() {
                    self.paid.fetch_add(1, Ordering::SeqCst);
                    noted(&Locator("receipt".to_owned()));
                }
                return Err(down());
            }
            Weather::Hangs => std::future::pending().await,
            Weather::Held => {
                let gate = self.gate.notified();
                self.held.fetch_add(1, Ordering::SeqCst);
                gate.await;
            }
            Weather::Fine | Weather::LostAnswer => {}
        }
        self.puts.fetch_add(1, Ordering::SeqCst);
        self.blobs.lock().unwrap().insert(pointer.hex(), ciphertext.to_vec());
        if self.weather() == Weather::LostAnswer { Err(down()) } else { Ok(Locator::default()) }
    }

    async fn get(&self, pointer: &Pointer, _: &Locator) -> Result<Vec<u8>> {
        if !matches!(self.weather(), Weather::Fine | Weather::Full) {
            return Err(down());
        }
        self.blobs.lock().unwrap().get(&pointer.hex()).cloned().ok_or_else(|| Error::NotFound {
            what: "the artifact is not in its store".to_owned(),
            hint: "restore it".to_owned(),
        })
    }

    async fn remove(&self, pointer: &Pointer, _: &Locator) -> Result<Removed> {
        if self.weather() != Weather::Fine {
            return Err(down());
        }
        self.blobs.lock().unwrap().remove(&pointer.hex());
        Ok(Removed::Gone)
    }

    async fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// The keys that an operator holds.
#[derive(Clone, Debug)]
pub(crate) struct Safe(pub(crate) Arc<Mutex<Vec<[u8; 32]>>>);

impl RootSource for Safe {
    fn roots(&self) -> Result<Roots> {
        let keys = self.0.lock().unwrap();
        let mut keys = keys.iter().map(|bytes| Key::from_bytes(*bytes));
        Ok(Roots::new(keys.next().unwrap(), keys.collect()))
    }
}

/// An installation.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) shelf: Shelf,
    pub(crate) safe: Safe,
}

impl Place {
    pub(crate) fn new() -> Self {
        let safe = Safe(Arc::new(Mutex::new(vec![[7; 32]])));
        Self { folder: TempDir::new().unwrap(), shelf: Shelf::default(), safe }
    }

    /// A process that opens it.
    pub(crate) fn open(&self) -> Memory {
        self.open_in(self.folder.path())
    }

    pub(crate) fn open_in(&self, folder: &Path) -> Memory {
        self.try_open_in(folder).unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<Memory> {
        self.try_open_in(self.folder.path())
    }

    /// A process that opens it with something else than usual.
    pub(crate) fn open_with(&self, change: impl FnOnce(&mut Parts)) -> Memory {
        let mut parts = self.parts(self.folder.path());
        change(&mut parts);
        Memory::open(parts).unwrap()
    }

    /// The same, where it may be refused.
    pub(crate) fn try_open_with(&self, change: impl FnOnce(&mut Parts)) -> Result<Memory> {
        let mut parts = self.parts(self.folder.path());
        change(&mut parts);
        Memory::open(parts)
    }

    fn try_open_in(&self, folder: &Path) -> Result<Memory> {
        Memory::open(self.parts(folder))
    }

    fn parts(&self, folder: &Path) -> Parts {
        let mut options = confidant_redact::Options::default();
        options.names = true;
        let stores: BTreeMap<String, Arc<dyn Blobs>> =
            BTreeMap::from([("mock".to_owned(), Arc::new(self.shelf.clone()) as Arc<dyn Blobs>)]);
        Parts {
            folder: folder.join("memory"),
            keys_folder: folder.join("keys"),
            roots: Box::new(self.safe.clone()),
            gate: Gate::new(options).unwrap(),
            card_writer: None,
            index: IndexOf::default(),
            stores,
            default_mode: "mock".to_owned(),
            sources: Sources::default(),
            clock: || 1_766_318_400_000,
            prices: confidant_memory::cost::Prices::default(),
            witness: None,
        }
    }

    /// What is still to be done outside the file.
    pub(crate) fn outbox(&self, kind: &str) -> i64 {
        let Ok(db) = rusqlite::Connection::open(self.folder.path().join("memory/memory.db")) else {
            return 0;
        };
        let sql = "SELECT count(*) FROM outbox WHERE kind = ?1";
        db.query_row(sql, [kind], |row| row.get(0)).unwrap_or(0)
    }

    /// Every byte that is kept, here or on the shelf.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        read_all(self.folder.path(), &mut all);
        for blob in self.shelf.blobs.lock().unwrap().values() {
            all.extend_from_slice(blob);
        }
        all
    }

    pub(crate) fn holds(&self, text: &str) -> bool {
        let bytes = self.bytes();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

fn read_all(folder: &Path, all: &mut Vec<u8>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Locks and marks of readers, not content; SQLite makes it anew.
        if path.to_string_lossy().ends_with("-shm") {
            continue;
        }
        all.extend_from_slice(path.file_name().unwrap().as_encoded_bytes());
        if path.is_dir() {
            read_all(&path, all);
        } else {
            all.extend_from_slice(&std::fs::read(&path).unwrap());
        }
    }
}

/// Copies a folder as a backup would. Who closed it a moment ago may still be clearing away (the log of a database, a lock,
/// pieces of the index): then it is copied again, from the start.
pub(crate) fn copy(from: &Path, to: &Path) {
    while let Err(gone) = try_copy(from, to) {
        assert_eq!(gone.kind(), std::io::ErrorKind::NotFound, "{gone}");
        std::fs::remove_dir_all(to).unwrap();
    }
}

fn try_copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            try_copy(&path, &target)?;
        } else {
            std::fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

pub(crate) fn owner(user: &str) -> Owner {
    Owner { tenant: TenantId::new("acme").unwrap(), user: UserId::new(user).unwrap() }
}

pub(crate) fn of(memory: &Memory, user: &str) -> OwnMemory {
    memory.of(owner(user), "test")
}

pub(crate) fn bug_report() -> Value {
    json!({
        "timestamp": "2025-12-21T12:00:00Z",
        "tool_name": "bug-tracker",
        "success": false,
        "summary": "Investigated a production bug in auth-service. JWT validation failed with \"Invalid token format\". \
                    Decided to roll back to v2.3.1. TODO: fix JWT validation before the next deploy.",
        "tags": ["bug-fix"],
    })
}

pub(crate) fn request(id: &str, session: &Value) -> StoreRequest {
    StoreRequest {
        session_id: id.to_owned(),
        session: session.as_object().cloned(),
        tags: vec!["production".to_owned()],
        ..StoreRequest::default()
    }
}

pub(crate) fn query(text: &str) -> QueryRequest {
    QueryRequest { query: text.to_owned(), limit: 5, ..QueryRequest::default() }
}

/// A store that waits at the gate until it is let in.
pub(crate) async fn held(place: &Place, own: &OwnMemory, wish: &StoreRequest) -> JoinHandle<Result<Stored>> {
    let before = place.shelf.held.load(Ordering::SeqCst);
    place.shelf.set(Weather::Held);
    let (own, wish) = (own.clone(), wish.clone());
    let storing = tokio::spawn(async move { own.store(&wish).await });
    while place.shelf.held.load(Ordering::SeqCst) == before {
        tokio::task::yield_now().await;
    }
    place.shelf.set(Weather::Fine);
    storing
}
