//! Whose memory a server serves, and what may be done with it.

use std::sync::Arc;

use confidant_engine::{Administrator, TenantId, UserId};
use confidant_memory::{Memory, OwnMemory, Owner};
use tokio::sync::OnceCell;

use super::failure::Failure;
use crate::config::Loaded;

/// The memory, opened when it is first needed. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct LazyMemory(Arc<Lazy>);

#[derive(Debug)]
struct Lazy {
    loaded: Loaded,
    memory: OnceCell<Memory>,
}

impl LazyMemory {
    /// The memory that these settings describe; nothing is opened yet.
    pub(crate) fn new(loaded: Loaded) -> Self {
        Self(Arc::new(Lazy { loaded, memory: OnceCell::new() }))
    }

    /// The memory. One that could not be opened is tried again the next time: a disk may have room by then.
    pub(crate) async fn open(&self) -> Result<&Memory, Failure> {
        let opened = self.0.memory.get_or_try_init(|| crate::memory::open(&self.0.loaded)).await;
        opened.map_err(|error| {
            tracing::error!(error = format!("{error:#}"), "the memory cannot be opened");
            Failure::unopened(&error)
        })
    }
}

/// One owner's memory, and what may be done with it.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) memory: LazyMemory,
    pub(crate) owner: Owner,
    pub(crate) forgetting: Forgetting,
    pub(crate) files: Files,
}

impl Access {
    /// The owner's memory.
    pub(super) async fn own(&self) -> Result<OwnMemory, Failure> {
        Ok(self.memory.open().await?.of(self.owner.clone()))
    }

    /// Opens the memory beside whatever else is done.
    pub(super) fn prepare(&self) {
        let memory = self.memory.clone();
        tokio::spawn(async move { drop(memory.open().await) });
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// On the person's own machine, or by an administrator.
    Readable,
    /// A stranger to this machine names no paths on it.
    Closed,
}
