//! Whose memory a server serves, and what may be done with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_engine::rights::Administrator;
use confidant_engine::{Engine, TenantId, UserId};
use confidant_memory::cost::Prices;
use confidant_memory::{Memory, OwnMemory, Owner};
use tokio::sync::OnceCell;

use super::failure::Failure;

/// The memory, opened when it is first needed. Clones are the same.
#[derive(Clone, Debug)]
pub struct LazyMemory(Arc<Lazy>);

#[derive(Debug)]
enum Lazy {
    /// Somebody else opened it and keeps its engine.
    Ready(Memory),
    /// There is none where all data ends with the process.
    Missing,
    /// It cannot be opened, for this reason.
    Damaged(Failure),
    /// Opened with an engine of its own, which has the audit log.
    Later { opens: Box<dyn OpensMemory>, opened: OnceCell<(Engine, Memory)> },
}

/// Opens the memory when it is first needed.
#[async_trait]
pub trait OpensMemory: std::fmt::Debug + Send + Sync {
    /// The memory, with the engine that has its audit log.
    async fn open(&self) -> Result<(Engine, Memory), Failure>;
    /// What storage costs.
    fn prices(&self) -> Result<Prices, Failure>;
}

impl LazyMemory {
    /// One that somebody else opened.
    #[must_use]
    pub fn ready(memory: Memory) -> Self {
        Self(Arc::new(Lazy::Ready(memory)))
    }

    /// None, since all data ends with the process.
    #[must_use]
    pub fn missing() -> Self {
        Self(Arc::new(Lazy::Missing))
    }

    /// One that cannot be opened, for this reason.
    #[must_use]
    pub fn damaged(why: Failure) -> Self {
        Self(Arc::new(Lazy::Damaged(why)))
    }

    /// One that is opened when it is first needed.
    #[must_use]
    pub fn later(opens: Box<dyn OpensMemory>) -> Self {
        Self(Arc::new(Lazy::Later { opens, opened: OnceCell::new() }))
    }

    /// The memory. One that could not be opened is tried again the next time: a disk may have room by then.
    pub async fn open(&self) -> Result<&Memory, Failure> {
        match &*self.0 {
            Lazy::Ready(memory) => Ok(memory),
            Lazy::Missing => Err(Failure::no_memory()),
            Lazy::Damaged(failure) => Err(failure.clone()),
            Lazy::Later { opens, opened } => {
                let opened = opened.get_or_try_init(|| opens.open()).await;
                opened.map(|(_, memory)| memory)
            }
        }
    }

    /// What storage costs; the built-in tables where there is no memory. Tables that cannot be read are not passed over.
    pub(super) fn prices(&self) -> Result<Prices, Failure> {
        match &*self.0 {
            Lazy::Ready(memory) => Ok(memory.prices().clone()),
            Lazy::Missing | Lazy::Damaged(_) => Ok(Prices::default()),
            Lazy::Later { opens, .. } => opens.prices(),
        }
    }

    fn is_to_be_opened(&self) -> bool {
        matches!(&*self.0, Lazy::Later { opened, .. } if !opened.initialized())
    }

    /// Stops what was opened here.
    pub async fn close(&self) {
        if let Lazy::Later { opened, .. } = &*self.0
            && let Some((engine, _)) = opened.get()
        {
            engine.stop(GRACE).await;
        }
    }
}

/// How long what is still being written may take at the end.
const GRACE: Duration = Duration::from_secs(5);

/// One owner's memory, and what may be done with it.
#[derive(Debug)]
pub struct Access {
    /// The memory that is served.
    pub memory: LazyMemory,
    /// Whose part of it.
    pub owner: Owner,
    /// Who asks, in the audit log.
    pub actor: String,
    /// Whether memories may be forgotten.
    pub forgetting: Forgetting,
    /// Whether session files may be read.
    pub files: Files,
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
                "files on the server's machine cannot be read over the network",
                "send sessions with store_session_to_cascade, or run `confidant memory import` where the \
                 files are",
            )),
        }
    }

    /// Whether forgetting is allowed; a refusal goes into the audit log.
    pub(super) async fn may_forget(&self) -> Result<(), Failure> {
        let Forgetting::Refused { administrator, tenant, user } = &self.forgetting else { return Ok(()) };
        if let Err(error) = administrator.refuse_person(tenant, user).await {
            tracing::warn!(error = %error, "a refusal could not be recorded");
        }
        let hint = "use the person's own token or an administrator's; an agent token may store memories, but not \
             forget them";
        Err(Failure::new("not_allowed", "this token may not forget memories", hint))
    }
}

/// Whether memories may be forgotten through this access.
#[derive(Clone, Debug)]
pub enum Forgetting {
    /// By the person or on their machine.
    Allowed,
    /// Not by this token, and the audit log is told.
    Refused {
        /// Who writes that down.
        administrator: Administrator,
        /// Whose tenant.
        tenant: TenantId,
        /// Whose memory.
        user: UserId,
    },
}

/// Whether session files of this machine may be read through this access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// For whoever started us on this machine, and may be at home there.
    Readable {
        /// The home folder, if there is one.
        home: Option<PathBuf>,
    },
    /// Whoever comes over the network names no paths on it. The answer is the same whatever there is.
    Closed,
}
