//! Who is told what was done with whose memories: the audit log, wherever that is.

use async_trait::async_trait;

use crate::{Owner, Result};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A session was made into a memory.
    Stored,
    /// Memories were searched or listed.
    Queried,
    /// A memory was read.
    Retrieved,
    /// Memories were forgotten.
    Forgotten,
    /// Memories were handed to an agent at the start of its session.
    Recalled,
    /// A session was not stored, for this reason: a word that says nothing of it.
    Skipped(&'static str),
}

/// Writes down what was done, without content.
#[async_trait]
pub trait Witness: Send + Sync + std::fmt::Debug {
    /// Notes an act of `actor` on `owner`'s memories. What is read is handed out only after this returned.
    async fn note(&self, actor: &str, owner: &Owner, act: Act, count: u64) -> Result<()>;
}
