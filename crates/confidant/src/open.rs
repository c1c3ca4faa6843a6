//! From settings to an engine.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use confidant_channel::Inbox;
use confidant_chats::service::Service;
use confidant_concepts::SqliteGraph;
use confidant_engine::aspects::Instructions;
use confidant_engine::model::{Extractive, Models};
use confidant_engine::rights::Derived;
use confidant_engine::storage::{DataPlace, KeyringPlace, RoomLent};
use confidant_engine::{Engine, Parts, Storage};
use confidant_mcp::tools::McpToolbox;
use confidant_memory::Memory;
use tempfile::TempDir;

use crate::chats::{self, Chats, Stored};
use crate::config::{ChatsPlace, KeyringUrl, Loaded, StoreKind};
use crate::damage::{self, Damage, Part, Unreachable};
use crate::files;
use crate::keys::{Keys, Prepared};
use crate::memory::{self, Memories};
use crate::space::Space;
use crate::tools;
use crate::{channels, concepts};

/// An engine, and where its keys come from.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) engine: Engine,
    pub(crate) keys: Arc<Keys>,
    /// Whether a master key was made just now.
    pub(crate) prepared: Prepared,
    /// Whether other machines may have a part in the store, each with a data folder of its own.
    pub(crate) shared: bool,
    /// The cards; none if data is kept in memory, or if there are none and this is only to look at data.
    pub(crate) memory: Option<Memory>,
    /// What channels have received; none if there are none.
    pub(crate) inbox: Option<Inbox>,
    /// The servers of tools, if there are any; to be stopped at the end.
    pub(crate) toolbox: Option<Arc<McpToolbox>>,
    /// Chats that only their owner can open; none if there are none yet, or they are off.
    pub(crate) chats: Option<Service>,
    /// What the engine knows of them.
    known: Option<Chats>,
    /// The embedded graph of concepts, unless concepts are off.
    pub(crate) graph: Option<SqliteGraph>,
    /// Parts that cannot be opened, which stop nothing but themselves.
    pub(crate) damaged: Vec<Damage>,
    /// The folder of a rehearsal, which goes with it.
    _aside: Option<TempDir>,
}

impl Opened {
    /// Says that a rotation passed the memories of this machine by, while the old key is still to be had.
    pub(crate) async fn tell_of_other_keys(&self) {
        let Some(memory) = &self.memory else { return };
        if memory.key_state().await.is_ok_and(|state| state.under_others > 0) {
            crate::output::note(
                "memories in this data folder are sealed under another master key; hint: run `confidant keys rotate` here, \
                 with that key in OLD_CHECKPOINT_ENCRYPTION_KEY, and keep it until that is done",
            );
        }
    }

    /// Says which parts cannot be used.
    pub(crate) fn tell_of_damage(&self) {
        for damage in &self.damaged {
            crate::output::note(&damage.trouble);
        }
    }

    /// Refuses to go on without a part that something needs.
    pub(crate) fn require(&self, part: Part) -> anyhow::Result<()> {
        match self.damaged.iter().find(|damage| damage.part == part) {
            Some(damage) => Err(damage::error(damage)),
            None => Ok(()),
        }
    }

    /// Makes the place of chats if there is none, and serves them from now on. One that cannot be opened stops nothing else.
    pub(crate) async fn serve_chats(&mut self, loaded: &Loaded) -> anyhow::Result<()> {
        if matches!(loaded.config.chats_place(), Some(ChatsPlace::Postgres(_))) {
            // Other servers may have the same chats.
            chats::relay(loaded, &self.engine)?;
        }
        let Some(known) = self.known.as_ref().filter(|_| self.chats.is_none()) else { return Ok(()) };
        if self.require(Part::Chats).is_err() {
            return Ok(());
        }
        match chats::open(loaded).await {
            Ok(None) => {}
            Ok(Some(stored)) => {
                let service = chats::serve(loaded, &self.engine, stored)?;
                known.attach(&service);
                self.chats = Some(service);
            }
            Err(error) => self.damaged.push(damage::of(Part::Chats, &error)),
        }
        Ok(())
    }

    /// Ends the servers of tools.
    pub(crate) async fn stop_tools(&self) {
        if let Some(toolbox) = &self.toolbox {
            toolbox.stop().await;
        }
    }
}

/// What an engine is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To run turns: folder, key and databases are made if they are not there.
    Answer,
    /// To have turns run by others: the same, but tools are theirs.
    Relay,
    /// To prepare for that. No model is needed, so one that is set up badly does not matter.
    SetUp,
    /// To show what would become of something. Where nothing is there yet, nothing is made: it is shown in a folder that is
    /// gone afterwards.
    Rehearse,
    /// To look at what is there, which must not make it; without a model, too.
    LookAtData,
}

/// Opens the engine that the settings describe.
pub(crate) async fn open(loaded: &Loaded, purpose: Purpose) -> anyhow::Result<Opened> {
    if purpose != Purpose::Rehearse || !is_new(loaded)? {
        return open_there(loaded, purpose).await;
    }
    let aside = TempDir::new().context("a folder for the dry run cannot be created")?;
    let mut loaded = loaded.clone();
    loaded.config.server.data_dir = aside.path().to_path_buf();
    loaded.config.store.url = StoreKind::Sqlite(None);
    loaded.config.keys = Default::default();
    loaded.config.keyring = Default::default();
    loaded.config.web.turn_off();
    loaded.secrets.master = None;
    let opened = open_there(&loaded, purpose).await?;
    Ok(Opened { prepared: Prepared::Found, _aside: Some(aside), ..opened })
}

/// Whether no local data has been made yet. What is on a server was set up by somebody.
fn is_new(loaded: &Loaded) -> anyhow::Result<bool> {
    let config = &loaded.config;
    Ok(matches!(config.store.url, StoreKind::Sqlite(_))
        && !files::is_in(config.data_folder(), "confidant.db")?
        && !files::is_in(config.keyring_folder(), "keyring.db")?
        && !memory::is_there(loaded)?)
}

async fn open_there(loaded: &Loaded, purpose: Purpose) -> anyhow::Result<Opened> {
    let config = &loaded.config;
    if purpose == Purpose::LookAtData {
        require_data(loaded).await?;
    }
    let keys = Arc::new(Keys::choose(loaded).context(NO_KEY)?);
    // Opening a database needs some room, even to read it.
    let space = Arc::new(Space::of(config));
    let _room = RoomLent::of(Arc::clone(&space) as _);
    let (models, instructions) = models(loaded, purpose)?;
    let (storage, prepared) = storage(loaded, &keys).await?;
    let reporting = memory::Reporting::default();
    let memory = if purpose != Purpose::LookAtData || memory::is_there(loaded)? {
        memory::open(loaded, &keys, &reporting)?
    } else {
        None
    };
    let mut damaged = Vec::new();
    let memory = memory.and_then(|memory| memory.map_err(|damage| damaged.push(damage)).ok());
    let inbox = channels::inbox(loaded, purpose != Purpose::LookAtData);
    let inbox = inbox.unwrap_or_else(|error| {
        damaged.push(damage::of(Part::Channels, &error));
        None
    });
    let known = known_chats(loaded, purpose)?;
    let chats = stored_chats(loaded, &mut damaged).await?;
    let memories = Memories::new(loaded, &keys, &reporting, memory.as_ref());
    let mut derived = derived(memories, inbox.as_ref(), &damaged);
    derived.extend(known.iter().map(|known| Arc::new(known.clone()) as Arc<dyn Derived>));
    let parts = Parts::new(storage, Arc::clone(&keys) as _, Arc::clone(models.default_model()));
    let toolbox = toolbox(loaded, purpose)?;
    let graph = concepts::open(loaded, purpose)?;
    damaged.extend(graph.damage);
    let parts = Parts {
        concepts: graph.concepts,
        toolbox: toolbox.clone().map_or(parts.toolbox, |toolbox| toolbox as _),
        policy: config.tools.policy(),
        safety: config.processing.safety(),
        models,
        aspects: config.aspects(&instructions),
        instructions: instructions.clone(),
        settings: config.settings(),
        channel_lifetimes: config.checkpoint.channel_ttl.clone(),
        derived,
        headroom: Some(Arc::clone(&space) as _),
        ..parts
    };
    if purpose == Purpose::Answer {
        instructions.watch();
    }
    let engine = Engine::open(parts).await?;
    let _ = reporting.set(engine.downgrade());
    if let Some(inbox) = &inbox {
        inbox.attach(&engine);
    }
    let chats = chats.map(|stored| chats::serve(loaded, &engine, stored)).transpose()?;
    if let (Some(known), Some(service)) = (&known, &chats) {
        known.attach(service);
    }
    if matches!(purpose, Purpose::Answer | Purpose::Relay | Purpose::SetUp) {
        space.hold();
    }
    let shared = matches!(config.store.url, StoreKind::Redis(_) | StoreKind::Postgres(_));
    Ok(Opened {
        engine,
        keys,
        prepared,
        shared,
        memory,
        inbox,
        toolbox,
        chats,
        known,
        graph: graph.embedded,
        damaged,
        _aside: None,
    })
}

/// The models, and the instruction files that they are given.
fn models(loaded: &Loaded, purpose: Purpose) -> anyhow::Result<(Models, Instructions)> {
    let config = &loaded.config;
    Ok(match purpose {
        Purpose::Answer | Purpose::Relay => {
            if purpose == Purpose::Answer {
                config.missing_keys(&loaded.secrets).iter().for_each(|missing| crate::output::note(missing));
            }
            (config.models(&loaded.secrets)?, Instructions::open(config.instructions_folder()))
        }
        Purpose::SetUp | Purpose::Rehearse | Purpose::LookAtData => {
            (Models::one(Arc::new(Extractive)), Instructions::default())
        }
    })
}

/// The store of chats, if there is one already.
async fn stored_chats(loaded: &Loaded, damaged: &mut Vec<Damage>) -> anyhow::Result<Option<Stored>> {
    if !chats::is_there(loaded)? {
        return Ok(None);
    }
    Ok(chats::open(loaded).await.unwrap_or_else(|error| {
        damaged.push(damage::of(Part::Chats, &error));
        None
    }))
}

/// What the engine will know of chats: where there are or will be some.
fn known_chats(loaded: &Loaded, purpose: Purpose) -> anyhow::Result<Option<Chats>> {
    let may_be_made = matches!(purpose, Purpose::Answer | Purpose::Relay);
    let any = loaded.config.chats_place().is_some() && (may_be_made || chats::is_there(loaded)?);
    any.then(|| loaded.config.web.tenant().map(Chats::of)).transpose()
}

/// What holds words of people beside the logs, so that it can be told of an erasure.
fn derived(memories: Option<Memories>, inbox: Option<&Inbox>, damaged: &[Damage]) -> Vec<Arc<dyn Derived>> {
    let memories = memories.map(|memories| Arc::new(memories) as Arc<dyn Derived>);
    let inbox = inbox.map(|inbox| Arc::new(inbox.clone()) as _);
    // What is out of reach is not gone: an erasure says so.
    let unreachable = damaged.iter().map(|damage| Arc::new(Unreachable(damage.clone())) as _);
    memories.into_iter().chain(inbox).chain(unreachable).collect()
}

/// The tools that models may call. With nothing configured there is nothing to look after, and no
/// program to do it.
fn toolbox(loaded: &Loaded, purpose: Purpose) -> anyhow::Result<Option<Arc<McpToolbox>>> {
    if purpose != Purpose::Answer || loaded.config.tools.servers.is_empty() {
        return Ok(None);
    }
    let (toolbox, refused) = tools::start(loaded, |_| true)?;
    for error in refused {
        crate::output::note(&error.to_string());
    }
    Ok(Some(Arc::new(toolbox)))
}

/// Opens what the settings describe, and makes it if it is not there.
async fn storage(loaded: &Loaded, keys: &Keys) -> anyhow::Result<(Storage, Prepared)> {
    let config = &loaded.config;
    if let Some((data, keyring)) = config.local_folders() {
        for folder in [config.server.data_dir.as_path(), &data, &keyring] {
            make_folder(folder)?;
        }
    }
    let prepared = keys.prepare(loaded).context(NO_KEY)?;
    Ok((Storage::open(&data_place(loaded)?, keyring_place(loaded)?.as_ref()).await?, prepared))
}

/// Where data is kept.
pub(crate) fn data_place(loaded: &Loaded) -> anyhow::Result<DataPlace> {
    place_of(loaded, &loaded.config.store.url)
}

/// Where an address leads, with what the settings say of such stores.
pub(crate) fn place_of(loaded: &Loaded, kind: &StoreKind) -> anyhow::Result<DataPlace> {
    let config = &loaded.config;
    Ok(match kind {
        StoreKind::Memory => DataPlace::Memory,
        StoreKind::Redis(address) => {
            DataPlace::Redis(config.store.redis(address, loaded.secrets.redis_password.as_ref())?)
        }
        StoreKind::Postgres(address) => {
            DataPlace::Postgres(config.store.postgres(address, loaded.secrets.postgres_password.as_ref())?)
        }
        StoreKind::Sqlite(folder) => DataPlace::Sqlite {
            folder: folder.clone().unwrap_or_else(|| config.server.data_dir.clone()),
            durability: config.store.durability(),
        },
    })
}

/// Where keys are kept, if not beside the data.
fn keyring_place(loaded: &Loaded) -> anyhow::Result<Option<KeyringPlace>> {
    match loaded.config.store.url {
        StoreKind::Memory => Ok(None),
        _ => keyring_at(loaded, loaded.config.keyring.url.as_ref()),
    }
}

/// Where the address of a keyring leads.
pub(crate) fn keyring_at(loaded: &Loaded, url: Option<&KeyringUrl>) -> anyhow::Result<Option<KeyringPlace>> {
    let config = &loaded.config;
    Ok(match url {
        None => None,
        Some(KeyringUrl::Sqlite(folder)) => Some(KeyringPlace::Sqlite(folder.clone())),
        Some(KeyringUrl::Redis(address)) => {
            Some(KeyringPlace::Redis(config.store.redis(address, loaded.secrets.redis_password.as_ref())?))
        }
        Some(KeyringUrl::Postgres(address)) => {
            let password = loaded.secrets.postgres_password.as_ref();
            Some(KeyringPlace::Postgres(config.store.postgres(address, password)?))
        }
    })
}

/// Makes a folder that only its owner can enter.
pub(crate) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    files::make_folder(folder).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                "a file is in the way; choose another folder with server.data_dir or --data-dir"
            }
            _ => "check the permissions above it, or choose another with server.data_dir or --data-dir",
        };
        anyhow!("the folder {} cannot be created ({}); hint: {hint}", folder.display(), error.kind())
    })
}

async fn require_data(loaded: &Loaded) -> anyhow::Result<()> {
    let config = &loaded.config;
    let keyring = files::is_in(config.keyring_folder(), "keyring.db")?;
    let place = data_place(loaded)?;
    let shown = match &place {
        DataPlace::Memory => {
            return Err(anyhow!(
                "store.url is memory:, whose data ends with its process; hint: use sqlite: to keep data"
            ));
        }
        DataPlace::Sqlite { folder, .. } => folder.display().to_string(),
        DataPlace::Redis(settings) => settings.address.shown(),
        DataPlace::Postgres(settings) => settings.address.shown(),
    };
    if place.is_there().await? || (keyring && config.data_folder().is_some()) {
        return Ok(());
    }
    Err(anyhow!(
        "there is no data in {shown}; hint: start with `confidant serve` or `confidant chat`, or check --data-dir and --config"
    ))
}

const NO_KEY: &str = "no usable master key";
