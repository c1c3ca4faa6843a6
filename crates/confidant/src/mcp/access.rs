//! Whose memory a server serves, and what may be done with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use confidant_engine::{Administrator, Engine, TenantId, UserId};
use confidant_memory::cost::Prices;
use confidant_memory::{Memory, OwnMemory, Owner};
use tokio::sync::OnceCell;

use super::failure::Failure;
use crate::config::Loaded;
use crate::open::{self, Purpose};

/// The memory, opened when it is first needed. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct LazyMemory(Arc<Lazy>);

#[derive(Debug)]
enum Lazy {
    /// Somebody else opened it and keeps its engine.
    Ready(Memory),
    /// There is none where all data ends with the process.
    Missing,
    /// Opened with an engine of its own, which has the audit log.
    Later { loaded: Box<Loaded>, opened: OnceCell<(Engine, Memory)> },
}

impl LazyMemory {
    /// One that was opened with an engine.
    pub(crate) fn ready(memory: Option<Memory>) -> Self {
        Self(Arc::new(memory.map_or(Lazy::Missing, Lazy::Ready)))
    }

    /// The memory that these settings describe; nothing is opened yet.
    pub(crate) fn later(loaded: Loaded) -> Self {
        Self(Arc::new(Lazy::Later { loaded: Box::new(loaded), opened: OnceCell::new() }))
    }

    /// The memory. One that could not be opened is tried again the next time: a disk may have room by then.
    pub(crate) async fn open(&self) -> Result<&Memory, Failure> {
        match &*self.0 {
            Lazy::Ready(memory) => Ok(memory),
            Lazy::Missing => Err(missing()),
            Lazy::Later { loaded, opened } => {
                let opened = opened.get_or_try_init(|| open(loaded)).await;
                opened.map(|(_, memory)| memory)
            }
        }
    }

    /// What storage costs; the built-in tables where there is no memory. Tables that cannot be read are not passed over.
    pub(super) fn prices(&self) -> Result<Prices, Failure> {
        match &*self.0 {
            Lazy::Ready(memory) => Ok(memory.prices().clone()),
            Lazy::Missing => Ok(Prices::default()),
            Lazy::Later { loaded, .. } => {
                loaded.config.memory.prices().map_err(|error| Failure::unopened(&error))
            }
        }
    }

    fn is_to_be_opened(&self) -> bool {
        matches!(&*self.0, Lazy::Later { opened, .. } if !opened.initialized())
    }

    /// Stops what was opened here.
    pub(crate) async fn close(&self) {
        if let Lazy::Later { opened, .. } = &*self.0
            && let Some((engine, _)) = opened.get()
        {
            engine.stop(GRACE).await;
        }
    }
}

/// How long what is still being written may take at the end.
const GRACE: Duration = Duration::from_secs(5);

async fn open(loaded: &Loaded) -> Result<(Engine, Memory), Failure> {
    let opened = open::open(loaded, Purpose::SetUp).await.map_err(|error| {
        tracing::error!(error = format!("{error:#}"), "the memory cannot be opened");
        Failure::unopened(&error)
    })?;
    crate::cli::tell_of_new_key(&opened.prepared);
    let memory = opened.memory.ok_or_else(missing)?;
    tokio::spawn(crate::memory::keep(memory.clone()));
    Ok((opened.engine, memory))
}

fn missing() -> Failure {
    let message = "there is no memory: store.url is memory:, which ends with its process";
    Failure::new("unavailable", message, "use sqlite: to keep data")
}

/// One owner's memory, and what may be done with it.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) memory: LazyMemory,
    pub(crate) owner: Owner,
    /// Who asks, in the audit log.
    pub(crate) actor: String,
    pub(crate) forgetting: Forgetting,
    pub(crate) files: Files,
}

impl Access {
    /// The owner's memory.
    pub(super) async fn own(&self) -> Result<OwnMemory, Failure> {
        let own = self.memory.open().await?.of(self.owner.clone(), &self.actor);
        Ok(if matches!(self.files, Files::Readable { .. }) { own.reading_files() } else { own })
    }

    /// Opens the memory beside whatever else is done, if it is not open yet.
    pub(super) fn prepare(&self) {
        if self.memory.is_to_be_opened() {
            let memory = self.memory.clone();
            tokio::spawn(async move { drop(memory.open().await) });
        }
    }

    /// The home folder, if files of this machine may be read at all.
    pub(super) fn home(&self) -> Result<Option<PathBuf>, Failure> {
        match &self.files {
            Files::Readable { home } => Ok(home.clone()),
            Files::Closed => Err(Failure::new(
                "not_allowed",
                "this token may not read files of the server's machine",
                "hand sessions over with store_session_to_cascade, or run `confidant memory import` where the files are",
            )),
        }
    }

    /// Whether forgetting is allowed; a refusal goes into the audit log.
    pub(super) async fn may_forget(&self) -> Result<(), Failure> {
        let Forgetting::Refused { administrator, tenant, user } = &self.forgetting else { return Ok(()) };
        if let Err(error) = administrator.refuse_person(tenant, user).await {
            tracing::warn!(error = %error, "a refusal could not be recorded");
        }
        let hint =
            "use the person's own token or an administrator's; an agent's may remember, but not forget";
        Err(Failure::new("not_allowed", "this token may not forget memories", hint))
    }
}

/// Whether memories may be forgotten through this access.
#[derive(Clone, Debug)]
pub(crate) enum Forgetting {
    /// By the person or on their machine.
    Allowed,
    /// Not by this token, and the audit log is told.
    Refused { administrator: Administrator, tenant: TenantId, user: UserId },
}

/// Whether session files of this machine may be read through this access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// On the person's own machine, who may be at home there; or by an administrator, who is not.
    Readable { home: Option<PathBuf> },
    /// A stranger to this machine names no paths on it.
    Closed,
}
