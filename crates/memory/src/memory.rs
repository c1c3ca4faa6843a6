//! The memory of everyone, and the door to one owner's.

use std::sync::Arc;

use crate::api::{DryRun, Forget, Forgotten, Hits, QueryRequest, Retrieved, StoreRequest, Stored};
use crate::{Error, Owner, Result};

/// The memories of an installation. Clones are the same.
#[derive(Clone, Debug)]
pub struct Memory {
    inner: Arc<Inner>,
}

/// One owner's memories: nothing here reaches another's.
#[derive(Clone, Debug)]
pub struct OwnMemory {
    inner: Arc<Inner>,
    owner: Owner,
}

#[derive(Debug)]
struct Inner {}

impl Memory {
    /// One owner's memories.
    #[must_use]
    pub fn of(&self, owner: Owner) -> OwnMemory {
        OwnMemory { inner: Arc::clone(&self.inner), owner }
    }
}

impl OwnMemory {
    /// What storing would store.
    pub async fn preview(&self, request: &StoreRequest) -> Result<DryRun> {
        let _ = (&self.inner, &self.owner, request);
        Err(Error::invalid("not yet", "wait"))
    }

    /// Redacts, derives, scans again, seals, stores and indexes.
    pub async fn store(&self, request: &StoreRequest) -> Result<Stored> {
        let _ = request;
        Err(Error::invalid("not yet", "wait"))
    }

    /// Searches; local, without any network.
    pub async fn query(&self, request: &QueryRequest) -> Result<Hits> {
        let _ = request;
        Err(Error::invalid("not yet", "wait"))
    }

    /// The newest first.
    pub async fn list(&self, request: &QueryRequest) -> Result<Hits> {
        let _ = request;
        Err(Error::invalid("not yet", "wait"))
    }

    /// Fetches an artifact, checks and opens it.
    pub async fn retrieve(&self, uri: &str, mode: Option<&str>) -> Result<Retrieved> {
        let _ = (uri, mode);
        Err(Error::invalid("not yet", "wait"))
    }

    /// Destroys keys, rows, index entries and blobs.
    pub async fn forget(&self, what: &Forget, dry_run: bool) -> Result<Forgotten> {
        let _ = (what, dry_run);
        Err(Error::invalid("not yet", "wait"))
    }
}
