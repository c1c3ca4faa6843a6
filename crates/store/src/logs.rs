//! The logs of sessions: written on top of the version that was read, and read in one go.

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};

use super::{KeyName, Known, NameSealer, Names, Naming, Owner, PendingAudit, Result};
use crate::clock::Millis;

/// Sealed logs.
#[async_trait]
pub trait Logs: Send + Sync + std::fmt::Debug {
    /// A whole session, in one round trip if something is known of it.
    async fn load(&self, scope: Tag, known: Option<Known<'_>>) -> Result<Option<Loaded>>;
    /// Compare-and-set on the version and the key; refreshes the lifetime.
    async fn append(&self, append: Append) -> Result<Appended>;
    /// Removes every row of a session and says how many log records went. The audit records are written with it.
    async fn erase(&self, scope: Tag, known: Option<Known<'_>>, audit: Vec<PendingAudit>) -> Result<u64>;
    /// Sessions in the order of their tags, after `after`.
    async fn list(&self, find: Find, after: Option<Tag>, limit: usize) -> Result<Vec<Listed>>;
    /// Whether there is no session, known by name or not.
    async fn is_empty(&self) -> Result<bool> {
        Ok(self.list(Find::All, None, 1).await?.is_empty())
    }
    /// Sessions whose lifetime is over; none in a store that ends them by itself.
    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>>;
    /// How sessions are named.
    fn naming(&self) -> Naming {
        Naming::Tags
    }
    /// Gives a store that has names what seals them; before that it finds none by its tag.
    fn introduce(&self, _names: NameSealer) {}
}

/// A session as stored, read in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub version: u64,
    /// Which data key seals it; also tells one incarnation of a session from the next.
    pub kid: Kid,
    pub expires_at: Option<Millis>,
    /// Who is answering the turn that is open, or what the session waits for.
    pub owner: Option<Owner>,
    /// The folded beginning, with the sequence it covers.
    pub snapshot: Option<(u64, Sealed)>,
    /// The entries after it, by sequence.
    pub entries: Vec<(u64, Sealed)>,
}

/// One write to a session: all of it happens or none.
#[derive(Debug)]
pub struct Append {
    pub names: Names,
    /// What it is called, if the store wants to know.
    pub name: Option<KeyName>,
    pub kid: Kid,
    /// The version that the writer has seen; 0 says that there must be no such session.
    pub expected: u64,
    /// What follows, in order, from `expected + 1` on.
    pub entries: Vec<Sealed>,
    /// A new folded beginning that covers up to its sequence and replaces everything there.
    pub snapshot: Option<(u64, Sealed)>,
    pub expires_at: Option<Millis>,
    /// Who answers the turn that is open after this write, or what the session waits for.
    pub owner: Option<Owner>,
    pub audit: Vec<PendingAudit>,
}

/// What became of an [`Append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is stored.
    Done,
    /// Somebody else wrote, erased or re-created the session in between; nothing was stored.
    Conflict,
}

/// Which sessions to list.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// Everybody's: the system's own work.
    All,
    Tenant(Tag),
    /// Of one person, in the tenant that they are of.
    Person {
        tenant: Tag,
        person: Tag,
    },
}

/// A session in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub names: Names,
    pub kid: Kid,
    pub version: u64,
    pub expires_at: Option<Millis>,
    pub owner: Option<Owner>,
}
