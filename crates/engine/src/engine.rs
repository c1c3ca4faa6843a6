//! The engine: everything a running Confidant shares, behind one handle.

use std::any::Any;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use confidant_redact::{Options as RedactOptions, Redactor};
use confidant_seal::{Kid, Scope, TenantId};

use crate::anchors::{Anchors, keep_anchoring};
use crate::aspects::{Aspects, Instructions};
use crate::audit::{Action, Actor, AuditRecord};
use crate::bus::Gateway;
use crate::clock::{Clock, Millis, SystemClock};
use crate::concepts::Concepts;
use crate::counts::{Counters, Counts};
use crate::derived::Derived;
use crate::error::{Error, OpenError, StoreError};
use crate::keyring::{KeySource, Keyring, Rotated};
use crate::model::{Model, ModelError, Models};
use crate::notices::{Agenda, Notice, Notices};
use crate::retention::{self, Lifetimes};
use crate::rights::Administrator;
use crate::room::RoomLimits;
use crate::running::Running;
use crate::session::{Session, Slots};
use crate::store::memory::{MemoryKeys, MemoryStore};
use crate::store::postgres;
pub use crate::store::postgres::{PostgresAddress, PostgresSettings};
use crate::store::redis;
pub use crate::store::redis::{RedisAddress, RedisNames, RedisSettings};
pub use crate::store::sqlite::Durability;
use crate::store::sqlite::{SqliteKeys, SqliteStore};
use crate::store::{AuditHead, Instance, KeyStore, Naming, Store};
use crate::tokens;
use crate::tools::{NoTools, Tool, ToolLimits, ToolPolicy, Toolbox};
use crate::turn::{self, Cancels, LeftOpen, Safety, Turn, TurnRequest};

/// A running engine. Clones are the same engine.
#[derive(Clone, Debug)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// An engine that may have been let go of: what the engine itself holds on to can hold this without keeping it alive.
#[derive(Clone, Debug)]
pub struct WeakEngine {
    inner: Weak<Inner>,
}

impl WeakEngine {
    /// The engine, if somebody still has it.
    #[must_use]
    pub fn upgrade(&self) -> Option<Engine> {
        self.inner.upgrade().map(|inner| Engine { inner })
    }
}

/// Where data and keys are kept. Opaque: only an engine can look inside.
#[derive(Clone, Debug)]
pub struct Storage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: Arc<dyn KeyStore>,
}

impl Storage {
    /// In memory, for tests and for trying out. Clones share what they hold.
    #[must_use]
    pub fn memory() -> Self {
        Self { store: Arc::new(MemoryStore::default()), keys: Arc::new(MemoryKeys::default()) }
    }

    /// `confidant.db` in one folder and `keyring.db` in another, or the same.
    pub fn sqlite(data: &Path, keyring: &Path, durability: Durability) -> Result<Self, OpenError> {
        let store = SqliteStore::open(data, durability)?;
        Ok(Self { store: Arc::new(store), keys: Arc::new(SqliteKeys::open(keyring)?) })
    }

    /// Data and keyring on a Redis or Valkey. Must be called within a Tokio runtime.
    pub async fn redis(settings: &RedisSettings) -> Result<Self, OpenError> {
        let (store, keys) = redis::open(settings).await?;
        Ok(Self { store: Arc::new(store), keys: Arc::new(keys) })
    }

    /// Data and keyring in a PostgreSQL database. Must be called within a Tokio runtime.
    pub async fn postgres(settings: &PostgresSettings) -> Result<Self, OpenError> {
        let (store, keys) = postgres::open(settings).await?;
        Ok(Self { store: Arc::new(store), keys: Arc::new(keys) })
    }

    /// Data in one place and the keyring in another, or beside it. Must be called within a Tokio runtime.
    pub async fn open(data: &DataPlace, keyring: Option<&KeyringPlace>) -> Result<Self, OpenError> {
        let beside = match data {
            DataPlace::Memory => Self::memory(),
            DataPlace::Sqlite { folder, durability } => {
                let store = Arc::new(SqliteStore::open(folder, *durability)?);
                // Made only if it is wanted here: a keyring that is not used would be taken for the one that is.
                let keys: Arc<dyn KeyStore> = match keyring {
                    None => Arc::new(SqliteKeys::open(folder)?),
                    Some(_) => Arc::new(MemoryKeys::default()),
                };
                Self { store, keys }
            }
            DataPlace::Redis(settings) => Self::redis(settings).await?,
            DataPlace::Postgres(settings) => Self::postgres(settings).await?,
        };
        let keys: Arc<dyn KeyStore> = match keyring {
            None => return Ok(beside),
            Some(KeyringPlace::Sqlite(folder)) => Arc::new(SqliteKeys::open(folder)?),
            Some(KeyringPlace::Redis(settings)) => Arc::new(redis::open_keys(settings).await?),
            Some(KeyringPlace::Postgres(settings)) => Arc::new(postgres::open_keys(settings).await?),
        };
        Ok(Self { keys, ..beside })
    }
}

/// Where data is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataPlace {
    /// Nowhere.
    Memory,
    /// In `confidant.db`.
    Sqlite {
        /// The file's folder.
        folder: PathBuf,
        /// When a commit counts as done.
        durability: Durability,
    },
    /// On a Redis or Valkey.
    Redis(RedisSettings),
    /// In a PostgreSQL database.
    Postgres(PostgresSettings),
}

impl DataPlace {
    /// Whether an engine has kept data here before.
    pub async fn is_there(&self) -> Result<bool, OpenError> {
        match self {
            Self::Memory => Ok(false),
            Self::Sqlite { folder, .. } => Ok(folder.join("confidant.db").exists()),
            Self::Redis(settings) => Ok(redis::is_there(settings).await?),
            Self::Postgres(settings) => Ok(postgres::is_there(settings).await?),
        }
    }
}

/// Where keys are kept, if not beside the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyringPlace {
    /// In `keyring.db` in this folder.
    Sqlite(PathBuf),
    /// On a Redis or Valkey.
    Redis(RedisSettings),
    /// In a PostgreSQL database.
    Postgres(PostgresSettings),
}

/// What an engine is made of.
#[derive(Debug)]
pub struct Parts {
    /// Where data and keys are kept.
    pub storage: Storage,
    /// Where master keys come from.
    pub keys: Arc<dyn KeySource>,
    /// Who answers.
    pub models: Models,
    /// What the system prompt says.
    pub aspects: Aspects,
    /// The files that some of it comes from, for what they offer to choose from.
    pub instructions: Instructions,
    /// The present.
    pub clock: Arc<dyn Clock>,
    /// Tools that models may call.
    pub toolbox: Arc<dyn Toolbox>,
    /// Who may have them called.
    pub policy: ToolPolicy,
    /// What is done about harm.
    pub safety: Safety,
    /// Limits and lifetimes.
    pub settings: Settings,
    /// What else is kept of people, which their rights cover.
    pub derived: Vec<Arc<dyn Derived>>,
    /// The concepts in scope of conversations; off unless given.
    pub concepts: Concepts,
}

impl Parts {
    /// Parts with the machine's clock, no aspects and default settings.
    #[must_use]
    pub fn new(storage: Storage, keys: Arc<dyn KeySource>, model: Arc<dyn Model>) -> Self {
        let (clock, aspects, settings) = (Arc::new(SystemClock), Aspects::default(), Settings::default());
        let (models, instructions) = (Models::one(model), Instructions::default());
        let (toolbox, policy, safety) = (Arc::new(NoTools), ToolPolicy::default(), Safety::default());
        let (derived, concepts) = (Vec::new(), Concepts::default());
        Self {
            storage,
            keys,
            models,
            aspects,
            instructions,
            clock,
            toolbox,
            policy,
            safety,
            settings,
            derived,
            concepts,
        }
    }
}

/// Limits and lifetimes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// How much of a conversation is kept and recalled.
    pub history: HistoryLimits,
    /// How much of a room goes into a prompt.
    pub room: RoomLimits,
    /// How long sessions live.
    pub lifetimes: Lifetimes,
    /// How tools are used.
    pub tools: ToolLimits,
    /// What is done before and after the answer.
    pub processing: Processing,
    /// The longest that a model may take for an answer.
    pub answer_timeout: Duration,
    /// The longest that a turn waits for the session's previous one.
    pub wait_for_turn: Duration,
    /// What happens to turns that were cut off.
    pub recovery: Recovery,
    /// How many sessions are kept warm.
    pub warm_sessions: usize,
    /// How long an unused session stays warm.
    pub warm_for: Duration,
    /// The longest query, in bytes.
    pub max_query_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            history: HistoryLimits { max_messages: 100, token_budget: 6000 },
            room: RoomLimits { lines: 20, max_age_seconds: None },
            lifetimes: Lifetimes::default(),
            tools: ToolLimits::default(),
            processing: Processing::default(),
            answer_timeout: Duration::from_secs(120),
            wait_for_turn: Duration::from_secs(60),
            recovery: Recovery::Resume,
            warm_sessions: 1024,
            warm_for: Duration::from_secs(900),
            max_query_bytes: 64 * 1024,
        }
    }
}

/// What is done before and after the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processing {
    /// Whether turns are prepared: by the small model if there is one, else by local rules.
    pub prepare: bool,
    /// Whether the small model makes something of finished turns.
    pub enrich: bool,
    /// Whether an answer is begun beside the small model's call.
    pub beside: bool,
    /// The longest that the small model may take before a turn goes on without it.
    pub timeout: Duration,
    /// From which chance of an injection on the model is warned.
    pub injection_warning: f32,
    /// Whether a private conversation that begins is told of similar ones of the same person, in other sessions.
    pub past_chats: bool,
    /// From which `harmful_response` on an answer is made again; it is heard only after that was found out.
    pub reprocess_at: Option<f32>,
}

impl Default for Processing {
    fn default() -> Self {
        let timeout = Duration::from_secs(5);
        Self {
            prepare: true,
            enrich: true,
            beside: true,
            timeout,
            injection_warning: 6.0,
            past_chats: false,
            reprocess_at: None,
        }
    }
}

/// How much of a conversation is kept and recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// The most messages kept; older ones go when the log is folded.
    pub max_messages: usize,
    /// Tokens that a whole prompt may have.
    pub token_budget: u32,
}

/// What happens to turns that were cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// They are answered at the next start.
    Resume,
    /// They are closed as interrupted at the next start.
    Report,
}

/// What a start found of the run before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Turns that were answered now.
    pub resumed: u64,
    /// Turns that were closed without an answer.
    pub reported: u64,
    /// Turns that were closed because nobody decided in time what they waited for.
    pub expired: u64,
    /// Turns whose log could not be opened; they are left as they are.
    pub unreadable: u64,
}

/// How a stop went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Turns that were still running and are left for the next start.
    pub parked: u64,
}

impl Engine {
    /// Opens an engine. Must be called within a Tokio runtime.
    pub async fn open(parts: Parts) -> Result<Self, OpenError> {
        let Storage { store, keys } = parts.storage;
        let has_data = !store.is_empty().await?;
        let keyring = Keyring::open(keys, parts.keys, has_data).await?;
        store.introduce(keyring.name_sealer());
        // From its first start on, the age of a keyring is known.
        if keyring.rotated_at().await?.is_none() {
            let root = keyring.kids()[0];
            keyring.note_rotation(root, parts.clock.now()).await?;
        }
        let instance = Instance(random_id());
        let enlisted = store.enlist(instance).await?;
        let inner = Arc::new(Inner {
            slots: Slots::new(parts.settings.warm_sessions, parts.settings.warm_for),
            naming: store.naming(),
            store,
            keyring,
            model: Arc::clone(parts.models.default_model()),
            models: parts.models,
            aspects: parts.aspects,
            instructions: parts.instructions,
            clock: parts.clock,
            settings: parts.settings,
            derived: parts.derived,
            concepts: parts.concepts,
            toolbox: parts.toolbox,
            policy: parts.policy,
            safety: parts.safety,
            gate: Redactor::new(RedactOptions::default())
                .map_err(|_| StoreError::Failed("gate".to_owned()))?,
            tool_tokens: Mutex::default(),
            cancels: Cancels::default(),
            notices: Notices::default(),
            agenda: Agenda::default(),
            looked_for_contexts: Mutex::default(),
            unreadable: Agenda::default(),
            left_open: LeftOpen::default(),
            instance,
            enlisted: Mutex::new(Some(enlisted)),
            anchors: Arc::default(),
            counters: Counters::default(),
            running: Running::default(),
            system_tokens: Mutex::default(),
            gateway: OnceLock::new(),
            bus_is_up: OnceLock::new(),
        });
        tokio::spawn(keep_anchoring(Arc::clone(&inner.anchors), Arc::downgrade(&inner)));
        Ok(Self { inner })
    }

    /// Reads what the first turn would otherwise wait for (vocabulary, word lists, patterns), once, on a thread of its own.
    /// Not for a gateway, which runs no turns; and not before somebody speaks, since it takes memory.
    pub fn warm_up(&self) {
        static WARM: std::sync::Once = std::sync::Once::new();
        if self.inner.gateway.get().is_some() {
            return;
        }
        // A thread that nobody waits for, also not at the end of the program.
        WARM.call_once(|| {
            std::thread::spawn(|| {
                let _ = crate::tokens::count("warm");
                turn::prepare::warm_up();
            });
        });
    }

    /// A handle that does not keep the engine alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine { inner: Arc::downgrade(&self.inner) }
    }

    /// The session of a scope, on behalf of `actor`.
    #[must_use]
    pub fn session(&self, scope: Scope, actor: Actor) -> Session {
        Session::new(Arc::clone(&self.inner), scope, actor)
    }

    /// A turn that neither recalls nor keeps anything, of somebody of this tenant. It calls no tool that changes something
    /// more than once; where the tenant is not known, every rule that forbids something to one counts.
    #[must_use]
    pub fn turn_without_memory(&self, tenant: Option<TenantId>, request: TurnRequest) -> Turn {
        turn::start_without_memory(&self.inner, tenant, request)
    }

    /// The handle that can see and erase what is not its own. Everything it does is audited.
    #[must_use]
    pub fn dangerously_administer(&self, actor: Actor) -> Administrator {
        Administrator::new(Arc::clone(&self.inner), actor)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Waits until what is done beside turns and after them is done.
    pub async fn settle(&self) {
        self.inner.running.asides_done().await;
    }

    /// What ends from now on while nobody waits for it.
    #[must_use]
    pub fn notices(&self) -> tokio::sync::broadcast::Receiver<Arc<Notice>> {
        self.inner.notices.listen()
    }

    /// Takes up the turns that a dead process left open, each once; carries out decisions that were left to this process;
    /// and closes turns whose approval ran out. To be called at the start and every few seconds.
    pub async fn recover(&self) -> Result<Recovered, Error> {
        turn::recover(&self.inner).await
    }

    /// Erases the sessions whose lifetime is over; says how many.
    pub async fn sweep(&self) -> Result<u64, Error> {
        self.inner.slots.cool(self.inner.now());
        retention::sweep(&self.inner).await
    }

    /// Re-seals every key under the key source's current root, beside running turns. `progress` gets keys done and
    /// in all.
    pub async fn rotate_keys(
        &self,
        actor: &Actor,
        progress: &(dyn Fn(u64, u64) + Send + Sync),
    ) -> Result<Rotated, Error> {
        let rotated = self.inner.keyring.rotate(progress).await?;
        let now = self.inner.now();
        let note = AuditRecord::new(now, actor, Action::KeysRotated).counting(rotated.rewrapped);
        self.inner.record(note).await?;
        if rotated.refused.is_empty() {
            self.inner.keyring.note_rotation(rotated.root, now).await?;
        }
        Ok(rotated)
    }

    /// Which roots are held and how many session keys each state has.
    pub async fn key_status(&self) -> Result<KeyStatus, Error> {
        let keyring = &self.inner.keyring;
        let held = keyring.kids();
        let current = keyring.store().root().await?.unwrap_or(held[0]);
        let (keys, under_others) = keyring.store().count(current).await?;
        let rotated_at = keyring.rotated_at().await?;
        Ok(KeyStatus { current, held, keys, under_others, rotated_at })
    }

    /// Whether data and keys can be read now, one small look at each, and data be written a moment ago.
    pub async fn ping(&self) -> Result<(), Error> {
        self.inner.store.token([0; 32]).await?;
        self.inner.store.writable()?;
        self.inner.keyring.store().root().await?;
        Ok(())
    }

    /// Whether the model can be reached.
    pub async fn check_model(&self) -> Result<(), ModelError> {
        self.inner.model.check().await
    }

    /// The model's name.
    #[must_use]
    pub fn model_name(&self) -> &str {
        self.inner.model.name()
    }

    /// The models that may answer, and the small one.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.inner.models
    }

    /// What the engine knows of concepts.
    #[must_use]
    pub fn concepts(&self) -> &Concepts {
        &self.inner.concepts
    }

    /// The instruction files, as they are now.
    #[must_use]
    pub fn instructions(&self) -> &Instructions {
        &self.inner.instructions
    }

    /// Checks the store for damage and for settings that would cause some; says what data and keys are in.
    pub async fn check_storage(&self) -> Result<(String, String), Error> {
        Ok((self.inner.store.check().await?, self.inner.keyring.store().check().await?))
    }

    /// What was counted since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.inner.counters.read(self.inner.running.count())
    }

    /// Stops taking turns, waits up to `grace` for those that run, and leaves the rest for the next start.
    pub async fn stop(&self, grace: Duration) -> Stopped {
        let inner = &self.inner;
        inner.running.stop();
        let _ = tokio::time::timeout(grace, inner.running.idle()).await;
        // What is made of turns can be done without; nobody waits long for it.
        let _ = tokio::time::timeout(grace.min(ASIDES_GRACE), inner.running.asides_done()).await;
        let parked = inner.running.abort_all();
        if let Err(error) = inner.flush_anchors().await {
            tracing::warn!(error = %error, "anchors could not be written at the stop");
        }
        inner.slots.clear();
        if let Err(error) = inner.store.resign(inner.instance).await {
            tracing::warn!(error = %error, "the store could not be told of the stop; others find out by themselves");
        }
        drop(inner.enlisted.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take());
        Stopped { parked }
    }
}

/// How long a stop waits for what is done beside turns.
const ASIDES_GRACE: Duration = Duration::from_secs(2);

/// The state of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStatus {
    /// The root that seals.
    pub current: Kid,
    /// The roots that this process can open with.
    pub held: Vec<Kid>,
    /// Session keys in all.
    pub keys: u64,
    /// Session keys that another root seals: a rotation is not done while there are any.
    pub under_others: u64,
    /// When they were last sealed anew, or the keyring was first seen.
    pub rotated_at: Option<Millis>,
}

/// What all handles of an engine share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    /// What the store wants sessions to be called.
    pub(crate) naming: Naming,
    pub(crate) keyring: Keyring,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) models: Models,
    pub(crate) aspects: Aspects,
    pub(crate) instructions: Instructions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) derived: Vec<Arc<dyn Derived>>,
    pub(crate) concepts: Concepts,
    pub(crate) toolbox: Arc<dyn Toolbox>,
    pub(crate) policy: ToolPolicy,
    pub(crate) safety: Safety,
    /// What everything derived from a conversation goes through.
    pub(crate) gate: Redactor,
    /// Tokens of tools by their names; cleared when it grows.
    tool_tokens: Mutex<HashMap<String, (usize, u32)>>,
    pub(crate) cancels: Cancels,
    pub(crate) notices: Notices,
    pub(crate) agenda: Agenda,
    /// Up to which key it was looked whether contexts can be found.
    pub(crate) looked_for_contexts: Mutex<Option<confidant_seal::Tag>>,
    /// When what could not be taken up is tried again.
    pub(crate) unreadable: Agenda,
    pub(crate) left_open: LeftOpen,
    /// This engine among those on the same store.
    pub(crate) instance: Instance,
    /// Keeps the instance alive in the eyes of others; let go of at the stop.
    enlisted: Mutex<Option<Box<dyn Any + Send + Sync>>>,
    pub(crate) slots: Slots,
    pub(crate) anchors: Arc<Anchors>,
    pub(crate) counters: Counters,
    pub(crate) running: Running,
    /// The last system text and its tokens: it seldom changes from turn to turn.
    system_tokens: Mutex<(String, u32)>,
    /// Who has turns run elsewhere, if this process does not run them itself.
    pub(crate) gateway: OnceLock<Arc<Gateway>>,
    /// Whether the bus is heard, if this process meets others there.
    pub(crate) bus_is_up: OnceLock<tokio::sync::watch::Receiver<bool>>,
}

impl Inner {
    pub(crate) fn count_system(&self, text: &str) -> u32 {
        let mut known = self.system_tokens.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if known.0 != text {
            *known = (text.to_owned(), tokens::count(text));
        }
        known.1
    }

    /// About what a tool costs in a prompt; counted again when its description or schema changes length.
    pub(crate) fn count_tool(&self, tool: &Tool) -> u32 {
        let schema = tool.spec.schema.to_string();
        let length = tool.spec.description.len() + schema.len();
        let mut known = self.tool_tokens.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((known_length, tokens)) = known.get(&tool.spec.name)
            && *known_length == length
        {
            return *tokens;
        }
        if known.len() > 4096 {
            known.clear();
        }
        let tokens =
            tokens::count(&tool.spec.name) + tokens::count(&tool.spec.description) + tokens::count(&schema);
        known.insert(tool.spec.name.clone(), (length, tokens));
        tokens
    }

    pub(crate) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Puts a record of its own into the audit log; says where it stands.
    pub(crate) async fn record(&self, note: AuditRecord) -> Result<AuditHead, Error> {
        let head = self.store.record(vec![note.pending(&self.keyring)]).await?;
        self.anchors.mark_audit();
        head.ok_or(Error::Internal)
    }
}

pub(crate) fn random_id() -> [u8; 16] {
    let mut id = [0; 16];
    getrandom::fill(&mut id).expect("the operating system gives random bytes, or nothing here can be safe");
    id
}
