//! Where sealed things are kept. Private to the engine: no channel, route or tool can reach a row except through a
//! [`Session`](crate::Session).
//!
//! Two small traits: [`Store`] has the data (logs, audit records, token claims), [`KeyStore`] has the keys that open
//! it, so that they can live apart. Neither ever sees plaintext: scopes, people and tenants arrive as keyed tags,
//! everything else as [`Sealed`] bytes. The laws that every back end must keep are in `conformance.rs`.

pub(crate) mod contexts;
pub(crate) mod memory;
pub(crate) mod sqlite;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};

use crate::clock::Millis;
use crate::error::StoreError;

pub(crate) type Result<T> = std::result::Result<T, StoreError>;

/// The names of one session, as a store knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// The session itself.
    pub(crate) scope: Tag,
    /// The person whose memory it is, for finding all of theirs.
    pub(crate) person: Tag,
    /// The tenant it belongs to.
    pub(crate) tenant: Tag,
}

/// A running engine, as the owner of open turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Instance(pub(crate) [u8; 16]);

/// A session as stored, read in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) version: u64,
    /// Which data key seals it; also tells one incarnation of a session from the next.
    pub(crate) kid: Kid,
    pub(crate) expires_at: Option<Millis>,
    /// Who is answering the turn that is open, if one is.
    pub(crate) owner: Option<Instance>,
    /// The folded beginning, with the sequence it covers.
    pub(crate) snapshot: Option<(u64, Sealed)>,
    /// The entries after it, by sequence.
    pub(crate) entries: Vec<(u64, Sealed)>,
}

/// One write to a session: all of it happens or none.
#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) names: Names,
    pub(crate) kid: Kid,
    /// The version that the writer has seen; 0 says that there must be no such session.
    pub(crate) expected: u64,
    /// What follows, in order, from `expected + 1` on.
    pub(crate) entries: Vec<Sealed>,
    /// A new folded beginning that covers up to its sequence and replaces everything there.
    pub(crate) snapshot: Option<(u64, Sealed)>,
    pub(crate) expires_at: Option<Millis>,
    /// Who answers the turn that is open after this write.
    pub(crate) owner: Option<Instance>,
    pub(crate) audit: Vec<PendingAudit>,
}

/// What became of an [`Append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Appended {
    /// It is stored.
    Done,
    /// Somebody else wrote, erased or re-created the session in between; nothing was stored.
    Conflict,
}

/// An audit record that is sealed when its place in the chain is known.
pub(crate) struct PendingAudit(Box<dyn Fn(u64, Option<[u8; 16]>) -> Sealed + Send + Sync>);

impl PendingAudit {
    pub(crate) fn new(seal: impl Fn(u64, Option<[u8; 16]>) -> Sealed + Send + Sync + 'static) -> Self {
        Self(Box::new(seal))
    }

    /// Seals the record for sequence `seq`, after the record whose tag is `previous`.
    pub(crate) fn link(&self, seq: u64, previous: Option<[u8; 16]>) -> Sealed {
        (self.0)(seq, previous)
    }
}

impl std::fmt::Debug for PendingAudit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PendingAudit(..)")
    }
}

/// Where the audit chain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AuditHead {
    pub(crate) seq: u64,
    pub(crate) tag: [u8; 16],
}

/// Which sessions to list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Find {
    All,
    Tenant(Tag),
    Person(Tag),
}

/// A session in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) names: Names,
    pub(crate) kid: Kid,
    pub(crate) version: u64,
    pub(crate) expires_at: Option<Millis>,
    pub(crate) owner: Option<Instance>,
}

/// A bearer token as stored: its hash and its sealed claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenRow {
    pub(crate) id: String,
    pub(crate) hash: [u8; 32],
    /// Set when the token stands for one person, so that erasing the person erases it.
    pub(crate) person: Option<Tag>,
    pub(crate) sealed: Sealed,
}

/// The data: sealed logs, audit records and token claims.
#[async_trait]
pub(crate) trait Store: contexts::Contexts + Send + Sync + std::fmt::Debug {
    /// A whole session, in one round trip.
    async fn load(&self, scope: Tag) -> Result<Option<Loaded>>;
    /// Compare-and-set on the version and the key; refreshes the lifetime.
    async fn append(&self, append: Append) -> Result<Appended>;
    /// Removes every row of a session and says how many log records went. The audit records are written with it.
    async fn erase(&self, scope: Tag, audit: Vec<PendingAudit>) -> Result<u64>;
    /// Sessions in the order of their tags, after `after`.
    async fn list(&self, find: Find, after: Option<Tag>, limit: usize) -> Result<Vec<Listed>>;
    /// Sessions whose lifetime is over.
    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>>;
    /// Sessions with an open turn whose owner is not alive.
    async fn orphans(&self) -> Result<Vec<(Tag, Instance)>>;
    /// Makes `to` the owner of an open turn that `from` had; false if it no longer has it.
    async fn claim(&self, scope: Tag, from: Instance, to: Instance) -> Result<bool>;
    /// Marks an instance as alive for as long as the returned guard lives.
    async fn enlist(&self, instance: Instance) -> Result<Box<dyn std::any::Any + Send + Sync>>;
    /// Whether an instance is alive.
    async fn is_alive(&self, instance: Instance) -> Result<bool>;
    /// Whether any other than this one is.
    async fn others_alive(&self, than: Instance) -> Result<bool>;
    /// Appends audit records and returns where the chain stands then.
    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>>;
    /// Audit records after a sequence.
    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>>;
    /// Adds a token.
    async fn add_token(&self, row: TokenRow, audit: Vec<PendingAudit>) -> Result<()>;
    /// All tokens.
    async fn tokens(&self) -> Result<Vec<TokenRow>>;
    /// The token with this hash.
    async fn token(&self, hash: [u8; 32]) -> Result<Option<TokenRow>>;
    /// Removes the tokens with this id, or of this person; says how many.
    async fn remove_tokens(&self, which: TokenSelector, audit: Vec<PendingAudit>) -> Result<u64>;
    /// Removes what folds have replaced, as far as that was put off.
    async fn tidy(&self) -> Result<()>;
    /// Leaves nothing of erased rows behind in journals or free pages.
    async fn scrub(&self) -> Result<()>;
    /// Checks the files for damage.
    async fn check(&self) -> Result<()>;
}

/// Which tokens to remove.
#[derive(Clone, Debug)]
pub(crate) enum TokenSelector {
    Id(String),
    Person(Tag),
}

/// One session's keys as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRow {
    pub(crate) scope: Tag,
    pub(crate) generation: u32,
    /// Which root sealed this row.
    pub(crate) root: Kid,
    /// Which data key is inside.
    pub(crate) kid: Kid,
    pub(crate) sealed_key: Sealed,
    /// The readable scope, for whoever holds the root.
    pub(crate) sealed_scope: Sealed,
    /// The highest log version that was ever seen: a log below it was rolled back.
    pub(crate) anchor: u64,
}

/// What became of a new key row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Created {
    New,
    /// Somebody else made one first.
    Existing(KeyRow),
    /// The root changed in between: seal again under this one.
    RootChanged(Kid),
}

/// A log version to remember as seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) scope: Tag,
    pub(crate) kid: Kid,
    pub(crate) version: u64,
}

/// The keys: what must be destroyed for erasure, kept apart from what it opens.
#[async_trait]
pub(crate) trait KeyStore: Send + Sync + std::fmt::Debug {
    /// The root under which new rows are sealed.
    async fn root(&self) -> Result<Option<Kid>>;
    /// Changes it, if it is still `from`.
    async fn set_root(&self, from: Option<Kid>, to: Kid) -> Result<bool>;
    /// A named system key, with the root that sealed it.
    async fn named(&self, name: &str) -> Result<Option<(Kid, Sealed)>>;
    /// Replaces a named key, if it is still `from`.
    async fn put_named(&self, name: &str, from: Option<&Sealed>, root: Kid, to: &Sealed) -> Result<bool>;
    /// A session's row.
    async fn get(&self, scope: Tag) -> Result<Option<KeyRow>>;
    /// Adds a session's row, if it has none and the root is still the row's.
    async fn create(&self, row: KeyRow) -> Result<Created>;
    /// Destroys rows beyond recovery; says how many there were.
    async fn destroy(&self, scopes: &[Tag]) -> Result<u64>;
    /// Rows in the order of their tags, after `after`.
    async fn list(&self, after: Option<Tag>, limit: usize) -> Result<Vec<KeyRow>>;
    /// Rows that another root sealed.
    async fn not_under(&self, root: Kid, limit: usize) -> Result<Vec<KeyRow>>;
    /// Rows in all, and those that another root than this sealed.
    async fn count(&self, root: Kid) -> Result<(u64, u64)>;
    /// Replaces sealed rows by re-sealed ones; a row that changed in between is left for the next round.
    async fn rewrap(&self, rows: Vec<(KeyRow, KeyRow)>) -> Result<u64>;
    /// Raises the anchors of logs and of the audit chain; never lowers one.
    async fn anchor(&self, logs: &[Anchor], audit: Option<u64>) -> Result<()>;
    /// Sets the anchors as given, for accepting a restored backup.
    async fn reset_anchors(&self, logs: &[Anchor], audit: u64) -> Result<()>;
    /// The highest audit sequence ever seen.
    async fn audit_anchor(&self) -> Result<u64>;
    /// Leaves nothing of destroyed rows behind in journals or free pages.
    async fn scrub(&self) -> Result<()>;
    /// Checks the files for damage.
    async fn check(&self) -> Result<()>;
}
