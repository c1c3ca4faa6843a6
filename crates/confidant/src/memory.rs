//! From settings to a memory, and what ties it to the engine: a person's rights cover it, and the audit log knows of it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use confidant_display::Hinted as _;
use confidant_engine::audit::Action;
use confidant_engine::keys::KeySource as _;
use confidant_engine::model::{Model, Prompt, Sampling, fresh_fence};
use confidant_engine::rights::Derived;
use confidant_engine::{Actor, Engine, MasterKey, TenantId, UserId, WeakEngine};
use confidant_memory::queue::Queue;
use confidant_memory::{
    Act, Card, CardWriter, Error, Memory, Owner, Parts, Recovered, Redacted, Result, RootSource, Roots,
    Witness, card,
};
use secrecy::ExposeSecret as _;

use crate::config::{CardBy, Loaded, Secret};
use crate::damage::{self, Damage, Part};
use crate::files;
use crate::keys::Keys;

/// The engine that a memory reports to, once there is one. Weak, because the engine has the memory.
pub(crate) type Reporting = Arc<OnceLock<WeakEngine>>;

/// Opens the memory in the data folder; nothing if there is no folder.
///
/// Wrong settings are an error; files that cannot be opened are damage, which stops nothing but the memory itself.
pub(crate) fn open(
    loaded: &Loaded,
    keys: &Arc<Keys>,
    engine: &Reporting,
) -> anyhow::Result<Option<std::result::Result<Memory, Damage>>> {
    let config = &loaded.config;
    let Some((data, keyring)) = config.local_folders() else { return Ok(None) };
    let folder = data.join("memory");
    let roots = MemoryRoots {
        keys: Arc::clone(keys),
        own: loaded.secrets.memory.clone(),
        retired: loaded.secrets.retired_memory.clone(),
    };
    let parts = Parts {
        keys_folder: keyring,
        roots: Box::new(roots),
        gate: config.memory.gate()?,
        card_writer: card_writer(loaded)?,
        stores: config.memory.stores(&folder, &loaded.secrets)?,
        default_mode: config.memory.default_mode().to_owned(),
        sources: config.memory.sources(loaded.home.as_deref())?,
        clock: now,
        prices: config.memory.prices()?,
        index: config.memory.index,
        witness: Some(Arc::new(AuditLog(Arc::clone(engine)))),
        folder,
    };
    let opened = Memory::open(parts).map_err(|error| {
        damage::of(Part::Memory, &anyhow::Error::new(error).context("the memory cannot be opened"))
    });
    Ok(Some(opened))
}

/// The model, if cards are its job.
fn card_writer(loaded: &Loaded) -> anyhow::Result<Option<Arc<dyn CardWriter>>> {
    match loaded.config.memory.card {
        CardBy::Rules => Ok(None),
        CardBy::Model => {
            let model = loaded.config.default_model(&loaded.secrets)?;
            Ok(Some(Arc::new(ModelCards(model))))
        }
    }
}

/// Cards by a language model, which sees redacted text only.
#[derive(Debug)]
struct ModelCards(Arc<dyn Model>);

#[async_trait]
impl CardWriter for ModelCards {
    async fn write(&self, session: &Redacted) -> Option<Card> {
        let (system, query) = card::prompt(session, MOST_PROMPT, &fresh_fence());
        let sampling = Sampling { temperature: Some(0.0), ..Sampling::default() };
        let prompt = Prompt { system, query, sampling, ..Prompt::default() };
        match self.0.respond(&prompt, &|_| {}).await {
            Ok(answer) => Card::from_model(&answer.text, session),
            Err(error) => {
                tracing::warn!(error = %error, "the model wrote no card; falling back to the rules");
                None
            }
        }
    }
}

/// Characters of a session that a model is shown.
const MOST_PROMPT: usize = 24_000;

/// Does what was left undone for memories at the start, and now and then what waits for a store that was away.
pub(crate) async fn keep(memory: Memory) {
    let mut ticks = tokio::time::interval(ROUNDS);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match memory.recover().await {
            Ok(found) if found == Recovered::default() => {}
            Ok(found) => tracing::info!(
                memory.finished = found.finished,
                memory.dropped = found.dropped,
                memory.removed = found.removed,
                memory.waiting = found.waiting,
                "finished pending work on memories"
            ),
            Err(error) => tracing::warn!(error = error.code(), "pending work on memories failed"),
        }
    }
}

/// How often what was left undone is looked at.
const ROUNDS: Duration = Duration::from_secs(60);

/// Whether there is a memory already.
pub(crate) fn is_there(loaded: &Loaded) -> std::result::Result<bool, files::LookError> {
    files::is_in(loaded.config.local_folders().map(|(data, _)| data.join("memory")), "memory.db")
}

#[expect(clippy::disallowed_methods, reason = "this is where the program's clock enters the memory")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// `LUMERA_MEMORY_KEY` if it is given, else what the master key gives; the other still opens what it sealed.
#[derive(Debug)]
struct MemoryRoots {
    keys: Arc<Keys>,
    own: Option<Secret>,
    retired: Option<Secret>,
}

impl RootSource for MemoryRoots {
    fn roots(&self) -> Result<Roots> {
        let mut masters = Vec::new();
        if let Some(secret) = &self.own {
            masters.push(one(secret, read(secret)?.expose_secret())?);
        }
        let general = match self.keys.load() {
            Ok(keys) => std::iter::once(keys.current).chain(keys.retired).collect(),
            // A memory with a key of its own does not need the other.
            Err(_) if !masters.is_empty() => Vec::new(),
            Err(error) => return Err(Error::Unavailable { what: error.what, hint: error.hint }),
        };
        masters.extend(general);
        if let Some(secret) = &self.retired {
            for text in read(secret)?.expose_secret().split(',').filter(|text| !text.trim().is_empty()) {
                masters.push(one(secret, text)?);
            }
        }
        let mut roots = masters.iter().map(|master| master.root().derive("memory"));
        let current = roots.next().ok_or_else(|| Error::Unavailable {
            what: "there is no key for the memory".to_owned(),
            hint: "set LUMERA_MEMORY_KEY or CHECKPOINT_ENCRYPTION_KEY".to_owned(),
        })?;
        Ok(Roots::new(current, roots.collect()))
    }
}

fn read(secret: &Secret) -> Result<secrecy::SecretString> {
    secret.read().map_err(|error| {
        let (what, hint) = error.what_and_hint("check the path");
        Error::Unavailable { what, hint }
    })
}

fn one(secret: &Secret, text: &str) -> Result<MasterKey> {
    MasterKey::from_hex_or_base64(text).map_err(|error| {
        let message = error.to_string();
        let what = message.split(';').next().unwrap_or_default();
        Error::Unavailable {
            what: format!("{}: {what}", secret.source()),
            hint: "give 64 hexadecimal digits, or base64 of 32 bytes: `openssl rand -hex 32` makes one"
                .to_owned(),
        }
    })
}

/// What the audit log has of memories.
pub(crate) const ACTS: [Action; 6] = [
    Action::MemoryStored,
    Action::MemoryQueried,
    Action::MemoryRetrieved,
    Action::MemoryForgotten,
    Action::MemoryRecalled,
    Action::MemorySkipped,
];

/// The engine's audit log.
#[derive(Debug)]
struct AuditLog(Reporting);

#[async_trait]
impl Witness for AuditLog {
    async fn note(&self, actor: &str, owner: &Owner, act: Act, count: u64) -> Result<()> {
        let (action, reason) = match act {
            Act::Stored => (Action::MemoryStored, None),
            Act::Queried => (Action::MemoryQueried, None),
            Act::Retrieved => (Action::MemoryRetrieved, None),
            Act::Forgotten => (Action::MemoryForgotten, None),
            Act::Recalled => (Action::MemoryRecalled, None),
            Act::Skipped(reason) => (Action::MemorySkipped, Some(reason)),
        };
        let engine = engine(&self.0)?;
        let administrator = engine.dangerously_administer(Actor::named(actor));
        let (tenant, user) = (&owner.tenant, &owner.user);
        let noted = match reason {
            None => administrator.note_derived(action, tenant, user, count).await,
            Some(reason) => administrator.note_derived_because(action, tenant, user, count, reason).await,
        };
        noted.map_err(|error| {
            let (what, hint) = error.what_and_hint("run `confidant doctor`");
            Error::Unavailable { what, hint }
        })
    }
}

fn engine(reporting: &Reporting) -> Result<Engine> {
    reporting.get().and_then(WeakEngine::upgrade).ok_or_else(|| Error::Unavailable {
        what: "the audit log is not open".to_owned(),
        hint: "try again; the program may be stopping".to_owned(),
    })
}

/// Where sessions wait that hooks left to be stored; nowhere if data ends with the process.
pub(crate) fn hooks_folder(loaded: &Loaded) -> Option<PathBuf> {
    loaded.config.local_folders().map(|(data, _)| data.join("memory").join("hooks"))
}

/// The memory as something that an engine's exports and erasures cover, with the sessions that wait to become a part of it.
#[derive(Debug)]
pub(crate) struct Memories {
    /// Nothing where there is none yet, or none that opens.
    memory: Option<Memory>,
    waiting: Option<Waits>,
}

impl Memories {
    /// Nothing if there is neither a memory nor anything that waits.
    pub(crate) fn new(
        loaded: &Loaded,
        keys: &Arc<Keys>,
        engine: &Reporting,
        memory: Option<&Memory>,
    ) -> Option<Self> {
        let folder = hooks_folder(loaded);
        if memory.is_none() && folder.as_ref().is_none_or(|folder| Queue::is_idle(folder)) {
            return None;
        }
        let waits = |folder| Waits { folder, keys: Arc::clone(keys), engine: Arc::clone(engine) };
        Some(Self { memory: memory.cloned(), waiting: folder.map(waits) })
    }

    fn owner(tenant: &TenantId, user: &UserId) -> Owner {
        Owner { tenant: tenant.clone(), user: user.clone() }
    }
}

/// The queue behind the hooks of agents in this data folder.
#[derive(Clone, Debug)]
struct Waits {
    folder: PathBuf,
    keys: Arc<Keys>,
    engine: Reporting,
}

impl Waits {
    /// The queue, and nothing if no hook ever put anything there. The keys are asked for only then.
    fn queue(&self) -> Result<Option<Queue>> {
        if !self.folder.exists() {
            return Ok(None);
        }
        let keys =
            self.keys.load().map_err(|error| Error::Unavailable { what: error.what, hint: error.hint })?;
        Ok(Some(Queue::new(&self.folder, &keys.current, &keys.retired)))
    }

    async fn count(&self, owner: Owner) -> Result<u64> {
        let waits = self.clone();
        blocking(move || waits.queue()?.map_or(Ok(0), |queue| queue.count(&owner))).await
    }

    /// Ends what waits for somebody. What is put here from now on is known to be newer than this.
    async fn clear(&self, owner: Owner) -> Result<u64> {
        let erasures = engine(&self.engine)?.dangerously_administer(Actor::system()).erasures().await;
        let erasures = erasures.map_err(|error| {
            let (what, hint) = error.what_and_hint("run `confidant doctor`");
            Error::Unavailable { what, hint }
        })?;
        let waits = self.clone();
        blocking(move || {
            let Some(queue) = waits.queue()? else { return Ok(0) };
            let gone = queue.clear(&owner)?;
            queue.note_erasures(erasures.number())?;
            Ok(gone)
        })
        .await
    }
}

/// Runs work on files, and keys that a program may have to give, where it may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(Error::Unavailable { what: "the work was interrupted".to_owned(), hint: "try again".to_owned() })
    })
}

#[async_trait]
impl Derived for Memories {
    fn name(&self) -> &'static str {
        "memories"
    }

    async fn count(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> std::result::Result<u64, confidant_engine::Error> {
        let owner = Self::owner(tenant, user);
        let waiting = match &self.waiting {
            Some(waiting) => waiting.count(owner.clone()).await.map_err(failed)?,
            None => 0,
        };
        let there = match &self.memory {
            Some(memory) => memory.of(owner, SYSTEM).count().await.map_err(failed)?,
            None => 0,
        };
        Ok(there + waiting)
    }

    async fn export(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> std::result::Result<Vec<serde_json::Value>, confidant_engine::Error> {
        match &self.memory {
            Some(memory) => memory.of(Self::owner(tenant, user), SYSTEM).export().await.map_err(failed),
            None => Ok(Vec::new()),
        }
    }

    async fn erase(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> std::result::Result<u64, confidant_engine::Error> {
        let owner = Self::owner(tenant, user);
        // What waits goes first, so that it does not become a memory meanwhile. If it cannot be cleared, memories still go.
        let waiting = match &self.waiting {
            Some(waiting) => waiting.clear(owner.clone()).await,
            None => Ok(0),
        };
        let there = match &self.memory {
            Some(memory) => memory.erase(&owner).await.map(|erased| erased.memories),
            None => Ok(0),
        };
        Ok(there.map_err(failed)? + waiting.map_err(failed)?)
    }
}

fn failed(error: Error) -> confidant_engine::Error {
    let (what, hint) = error.parted();
    confidant_engine::Error::Derived { what, hint }
}

const SYSTEM: &str = "system";
