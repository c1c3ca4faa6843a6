//! From settings to an engine.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use confidant_concepts::SqliteGraph;
use confidant_engine::{Derived, Engine, Extractive, Instructions, Models, Parts, Storage};
use confidant_memory::Memory;

use crate::concepts;
use crate::config::Loaded;
use crate::files;
use crate::keys::{Keys, Prepared};
use crate::memory::{self, Memories};
use crate::tools::{self, McpToolbox};

/// An engine, and where its keys come from.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) engine: Engine,
    pub(crate) keys: Arc<Keys>,
    /// Whether a master key was made just now.
    pub(crate) prepared: Prepared,
    /// The cards; none if data is kept in memory, or if there are none and this is only to look at data.
    pub(crate) memory: Option<Memory>,
    /// The servers of tools, if there are any; to be stopped at the end.
    pub(crate) toolbox: Option<Arc<McpToolbox>>,
    /// The embedded graph of concepts, unless concepts are off.
    pub(crate) graph: Option<SqliteGraph>,
}

impl Opened {
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
    /// To prepare for that. No model is needed, so one that is set up badly does not matter.
    SetUp,
    /// To look at what is there, which must not make it; without a model, too.
    LookAtData,
}

/// Opens the engine that the settings describe.
pub(crate) async fn open(loaded: &Loaded, purpose: Purpose) -> anyhow::Result<Opened> {
    let config = &loaded.config;
    if purpose == Purpose::LookAtData {
        require_data(loaded)?;
    }
    let keys = Arc::new(Keys::choose(loaded).context(NO_KEY)?);
    let (models, instructions) = match purpose {
        Purpose::Answer => {
            (config.models(&loaded.secrets)?, Instructions::open(config.instructions_folder()))
        }
        Purpose::SetUp | Purpose::LookAtData => (Models::one(Arc::new(Extractive)), Instructions::default()),
    };
    let (storage, prepared) = match (config.data_folder(), config.keyring_folder()) {
        (Some(data), Some(keyring)) => {
            for folder in [config.server.data_dir.as_path(), &data, &keyring] {
                make_folder(folder)?;
            }
            let prepared = keys.prepare(loaded).context(NO_KEY)?;
            // If this does not work, opening says why.
            let _ = files::touch(&data.join("confidant.db"))
                .and_then(|()| files::touch(&keyring.join("keyring.db")));
            (Storage::sqlite(&data, &keyring, config.store.durability())?, prepared)
        }
        _ => (Storage::memory(), Prepared::Found),
    };
    let reporting = memory::Reporting::default();
    let memory = if purpose != Purpose::LookAtData || memory::is_there(loaded) {
        memory::open(loaded, &keys, &reporting)?
    } else {
        None
    };
    let derived = memory.iter().map(|memory| Arc::new(Memories(memory.clone())) as Arc<dyn Derived>);
    let parts = Parts::new(storage, Arc::clone(&keys) as _, Arc::clone(models.default_model()));
    // With nothing configured there is nothing to look after, and no program to do it.
    let toolbox: Option<Arc<McpToolbox>> = if purpose == Purpose::Answer && !config.tools.servers.is_empty() {
        let (toolbox, refused) = tools::start(loaded, |_| true)?;
        for error in refused {
            crate::cli::note(&error.to_string());
        }
        Some(Arc::new(toolbox))
    } else {
        None
    };
    let graph = concepts::open(loaded, purpose)?;
    let parts = Parts {
        concepts: graph.concepts,
        toolbox: toolbox.clone().map_or(parts.toolbox, |toolbox| toolbox as _),
        policy: config.tools.policy(),
        safety: config.processing.safety(),
        models,
        aspects: config.aspects(&instructions),
        instructions: instructions.clone(),
        settings: config.settings(),
        derived: derived.collect(),
        ..parts
    };
    if purpose == Purpose::Answer {
        instructions.watch();
    }
    let engine = Engine::open(parts).await?;
    let _ = reporting.set(engine.downgrade());
    Ok(Opened { engine, keys, prepared, memory, toolbox, graph: graph.embedded })
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
        anyhow!("the folder {} cannot be made ({}); hint: {hint}", folder.display(), error.kind())
    })
}

fn require_data(loaded: &Loaded) -> anyhow::Result<()> {
    let config = &loaded.config;
    let Some(data) = config.data_folder() else {
        return Err(anyhow!(
            "store.url is memory:, which ends with its process; hint: use sqlite: to keep data"
        ));
    };
    let keyring = config.keyring_folder().unwrap_or_else(|| data.clone());
    if data.join("confidant.db").exists() || keyring.join("keyring.db").exists() {
        return Ok(());
    }
    Err(anyhow!(
        "there is no data in {}; hint: start with `confidant serve` or `confidant chat`, or check --data-dir and --config",
        data.display()
    ))
}

const NO_KEY: &str = "no usable master key";
