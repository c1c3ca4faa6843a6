//! Where the concepts in scope of a conversation are kept, and the log that they can be recomputed from.
//!
//! What is easy to get wrong: a context is written only on top of the version that was read, together with the record of why,
//! so that neither is ever there without the other.

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};

use super::{PendingAudit, Result};
use crate::clock::Millis;

/// The names of a conversation, as a store knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationName {
    pub tenant: Tag,
    pub conversation: Tag,
}

/// A conversation's context as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextRow {
    pub version: u64,
    pub kid: Kid,
    /// Sealed JSON, or JSON where the operator chose so.
    pub content: Vec<u8>,
    pub updated_at: Millis,
    /// Since when it is out of use.
    pub archived_at: Option<Millis>,
}

/// Why something came into scope: one record of the capture log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureRow {
    pub name: ConversationName,
    /// The turn that it is of: each has one record.
    pub request: Tag,
    pub scope: Tag,
    pub person: Tag,
    pub at: Millis,
    pub sealed: Sealed,
}

/// One write of a context: all of it happens or none.
#[derive(Debug)]
pub struct PutContext {
    pub name: ConversationName,
    pub kid: Kid,
    /// The version that the writer has seen; 0 says that there must be none.
    pub expected: u64,
    pub content: Vec<u8>,
    pub updated_at: Millis,
    pub archived_at: Option<Millis>,
    /// When it is over if nothing more is said, for a store that ends things by itself.
    pub expires_at: Option<Millis>,
    /// What is the reason.
    pub capture: Option<CaptureRow>,
    /// The session, or the one turn, whose records go with it: no tag is both.
    pub forget: Option<Tag>,
    pub audit: Vec<PendingAudit>,
}

/// What became of a [`PutContext`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is stored.
    Done,
    /// Somebody else wrote or erased the context in between; nothing was stored.
    Conflict,
    /// The turn that is its reason is in it already; nothing was stored.
    Known,
}

/// Which records of the capture log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturesOf {
    Conversation(ConversationName),
    /// Whose session it is, is not known: the system's own work.
    Session(Tag),
    /// The same for a tenant, of which it sees no other's.
    SessionOf {
        tenant: Tag,
        scope: Tag,
    },
    Tenant(Tag),
}

/// A context with all its records, as it is in another store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeContext {
    pub row: ContextRow,
    /// Oldest first.
    pub captures: Vec<CaptureRow>,
}

/// Contexts and the capture log.
#[async_trait]
pub trait Contexts: Send + Sync + std::fmt::Debug {
    /// A conversation's context.
    async fn context(&self, name: ConversationName) -> Result<Option<ContextRow>>;
    /// Compare-and-set on the version and the key.
    async fn put_context(&self, put: PutContext) -> Result<Put>;
    /// Records of the capture log, oldest first.
    async fn captures(&self, of: CapturesOf) -> Result<Vec<CaptureRow>>;
    /// Removes a context with all its records; says how many records those were.
    async fn erase_context(&self, name: ConversationName, audit: Vec<PendingAudit>) -> Result<u64>;
    /// Contexts in use that were last written before `before`, those that waited longest first.
    async fn idle_contexts(&self, before: Millis, limit: usize) -> Result<Vec<ConversationName>>;
    /// Puts a context in place of whatever is there, at the version that it has elsewhere.
    ///
    /// Only for a store in which nobody else works.
    async fn adopt_context(
        &self,
        name: ConversationName,
        whole: WholeContext,
        expires_at: Option<Millis>,
    ) -> Result<()>;
}

/// What a store has to see to that ends contexts by itself, or writes apart from them what finds them. Others have nothing to do.
#[async_trait]
pub trait ContextUpkeep: Send + Sync + std::fmt::Debug {
    /// Lets a store that ends contexts by itself keep one for longer.
    async fn prolong_context(&self, _name: ConversationName, _expires_at: Option<Millis>) -> Result<()> {
        Ok(())
    }
    /// Whether what finds a context is written apart from it, and so may be missing after a crash.
    fn may_lose_contexts(&self) -> bool {
        false
    }
    /// Puts right what finds a context.
    async fn find_again(&self, _name: ConversationName) -> Result<()> {
        Ok(())
    }
}
