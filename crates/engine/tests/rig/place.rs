//! What all tests of the engine share: places to keep data, a model that records what it is told, and short words for both.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use confidant_engine::keys::{KeySource, KeySourceError, MasterKeys};
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt};
use confidant_engine::room::Audience;
use confidant_engine::storage::{Durability, PostgresAddress, PostgresSettings, RedisAddress, RedisSettings};
use confidant_engine::{
    Actor, Engine, MasterKey, Parts, Scope, Session, Settings, Storage, TenantId, TurnRequest,
};
use tokio::sync::Semaphore;

/// Where an engine keeps things; can be opened again and again, as by restarts.
pub(crate) struct Place {
    pub(crate) store: At,
    folder: tempfile::TempDir,
}

pub(crate) enum At {
    Memory(Storage),
    Sqlite,
    Redis(RedisSettings),
    Postgres(PostgresSettings),
}

impl Place {
    fn new(store: At) -> Self {
        Self { store, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn memory() -> Self {
        Self::new(At::Memory(Storage::memory()))
    }

    pub(crate) fn sqlite() -> Self {
        Self::new(At::Sqlite)
    }

    /// A namespace of its own on the server that a variable names.
    ///
    /// Without such a server nothing is tested, which is an error where all must be.
    pub(crate) fn redis_at(variable: &str) -> Option<Self> {
        server(variable).map(|url| Self::redis(&url))
    }

    /// The same for a schema.
    pub(crate) fn postgres_at(variable: &str) -> Option<Self> {
        server(variable).map(|url| Self::new(At::Postgres(postgres_settings(&url))))
    }

    pub(crate) fn redis(url: &str) -> Self {
        let mut settings = redis_settings(url);
        settings.prefix = format!("test{}:", uuid::Uuid::now_v7());
        Self::new(At::Redis(settings))
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Where it is, if that is a PostgreSQL.
    pub(crate) fn as_postgres(&self) -> Option<&PostgresSettings> {
        if let At::Postgres(settings) = &self.store { Some(settings) } else { None }
    }

    pub(crate) async fn storage(&self) -> Storage {
        self.storage_or_refusal().await.unwrap()
    }

    /// The same, unless the store does not open and is refused by its name.
    pub(crate) async fn storage_or_refusal(&self) -> Result<Storage, String> {
        let opened = match &self.store {
            At::Memory(storage) => Ok(storage.clone()),
            At::Sqlite => Storage::sqlite(self.path(), self.path(), Durability::Process),
            At::Redis(settings) => Storage::redis(settings).await,
            At::Postgres(settings) => Storage::postgres(settings).await,
        };
        opened.map_err(|error| error.to_string())
    }

    pub(crate) async fn engine(&self, model: &Arc<Recorder>) -> Engine {
        self.engine_with(model, Settings::default()).await
    }

    pub(crate) async fn engine_with(&self, model: &Arc<Recorder>, settings: Settings) -> Engine {
        let parts =
            Parts { settings, ..Parts::new(self.storage().await, keys(&[1]), Arc::clone(model) as _) };
        Engine::open(parts).await.unwrap()
    }

    /// Every byte that is in a file of this place.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    // A journal may go between the look and the read.
                    false => all.extend(std::fs::read(entry.path()).unwrap_or_default()),
                }
            }
        }
        all
    }
}

/// Where the server is that a variable names.
pub(crate) fn server(variable: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "a test, told by its environment where servers are")]
    let (url, required) = (std::env::var(variable), std::env::var_os("REQUIRE_ALL_STORES"));
    if url.is_err() {
        assert!(required.is_none_or(|value| value != "1"), "{variable} is not set");
        #[expect(clippy::print_stderr, reason = "a skip is never silent")]
        {
            eprintln!("skipped: {variable} is not set; hint: run it through tests/*_servers.py");
        }
    }
    url.ok()
}

/// Settings for a PostgreSQL, with a schema of their own.
pub(crate) fn postgres_settings(url: &str) -> PostgresSettings {
    let schema = format!("test_{}", uuid::Uuid::now_v7().simple());
    PostgresSettings { schema, connections: 4, ..PostgresSettings::new(PostgresAddress::parse(url).unwrap()) }
}

/// Settings for a Redis with the tests' tenant as the one that has bare names.
pub(crate) fn redis_settings(url: &str) -> RedisSettings {
    RedisSettings::new(RedisAddress::parse(url).unwrap(), TenantId::new("acme").unwrap())
}

/// Master keys made of one byte each, the first of them current.
pub(crate) fn keys(bytes: &[u8]) -> Arc<TestKeys> {
    let keys = TestKeys(Mutex::default());
    keys.set(bytes);
    Arc::new(keys)
}

/// A key source that a test can change under a running engine.
#[derive(Debug)]
pub(crate) struct TestKeys(Mutex<Vec<u8>>);

impl TestKeys {
    pub(crate) fn set(&self, bytes: &[u8]) {
        *self.0.lock().unwrap() = bytes.to_vec();
    }
}

impl KeySource for TestKeys {
    fn load(&self) -> Result<MasterKeys, KeySourceError> {
        let mut keys = self.0.lock().unwrap().clone().into_iter().map(|byte| {
            use base64::Engine as _;
            MasterKey::from_base64(&base64::engine::general_purpose::STANDARD.encode([byte; 32])).unwrap()
        });
        Ok(MasterKeys { current: keys.next().unwrap(), retired: keys.collect() })
    }
}

/// A model that keeps every prompt it gets, and answers "noted: <query>".
#[derive(Debug)]
pub(crate) struct Recorder {
    prompts: Mutex<Vec<String>>,
    /// Permits to answer; a test that takes them all has every turn hanging.
    pub(crate) gate: Semaphore,
    pub(crate) broken: std::sync::atomic::AtomicBool,
}

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { prompts: Mutex::default(), gate: Semaphore::new(1_000_000), broken: false.into() })
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.prompts.lock().unwrap())
    }

    pub(crate) fn last(&self) -> String {
        self.prompts.lock().unwrap().last().cloned().unwrap_or_default()
    }

    /// Makes every turn hang until `open` is called.
    pub(crate) fn shut(&self) {
        self.gate.forget_permits(1_000_000);
    }

    pub(crate) fn open(&self) {
        self.gate.add_permits(1_000_000);
    }

    /// Waits until that many prompts have come in.
    pub(crate) async fn until(&self, prompts: usize) {
        while self.prompts.lock().unwrap().len() < prompts {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl Model for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        let mut whole = format!("{}\n", prompt.system);
        for block in &prompt.blocks {
            whole.push_str(&block.render(&prompt.fence));
        }
        for message in &prompt.history {
            whole.push_str(&format!("{:?}: {}\n", message.role, message.text));
        }
        whole.push_str(&prompt.query);
        self.prompts.lock().unwrap().push(whole);
        let _permit = self.gate.acquire().await.unwrap();
        if self.broken.load(std::sync::atomic::Ordering::SeqCst) {
            return Err(ModelError::Unreachable);
        }
        let text = format!("noted: {}", prompt.query);
        deltas(&text);
        Ok(Answer { text, calls: Vec::new(), model: "recorder".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

pub(crate) fn scope(id: &str) -> Scope {
    Scope::parse(TenantId::new("acme").unwrap(), id).unwrap()
}

pub(crate) fn session(engine: &Engine, id: &str) -> Session {
    engine.session(scope(id), Actor::cli())
}

pub(crate) fn says(query: &str) -> TurnRequest {
    TurnRequest { query: query.to_owned(), ..TurnRequest::default() }
}

pub(crate) fn says_as(id: &str, query: &str) -> TurnRequest {
    TurnRequest { request_id: Some(id.to_owned()), ..says(query) }
}

pub(crate) fn private(query: &str) -> TurnRequest {
    TurnRequest { audience: Some(Audience::Private), ..says(query) }
}

/// What a session holds, as `type:content` in order; empty if there is none.
pub(crate) async fn transcript(engine: &Engine, id: &str) -> Vec<String> {
    let export = session(engine, id).export().await.unwrap();
    let messages = export.map_or_else(Vec::new, |export| export.messages);
    messages.iter().map(|m| format!("{:?}:{}", m.kind, m.content).to_lowercase()).collect()
}

/// Ends an engine the way a stopped process does.
pub(crate) async fn stop(engine: Engine) {
    engine.stop(Duration::from_secs(5)).await;
}

pub(crate) fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}
