//! Where sealed things are kept. Private to the engine: no channel, route or tool can reach a row except through a
//! [`Session`](crate::Session).
//!
//! Two small traits: [`Store`] has the data (logs, audit records, token claims), [`KeyStore`] has the keys that open
//! it, so that they can live apart. Neither ever sees plaintext: scopes, people and tenants arrive as keyed tags,
//! everything else as [`Sealed`] bytes; a [`KeyName`] is the one exception, for stores that [`Store::naming`] asks for it. The laws that every back end must keep are in `conformance.rs`.

mod certificates;
pub(crate) mod contexts;
mod lanes;
mod leases;
pub(crate) mod memory;
pub(crate) mod postgres;
pub(crate) mod redis;
pub(crate) mod sqlite;

#[cfg(test)]
mod conformance;

use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::{Context, Key, Kid, Sealed, Suite, Tag, TenantId, open, seal};

use crate::audit::Lane;
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

/// How a store wants sessions to be called, beside their tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// Not at all.
    Tags,
    /// By readable names, which say the tenant for all but this one.
    Readable(TenantId),
    /// By names that have a keyed hash in place of every id.
    Opaque,
}

/// What a session is called in a store that has names. Readable ids are personal data, so `Debug` prints stars.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeyName(Arc<str>);

impl KeyName {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for KeyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyName(***)")
    }
}

/// What a caller knows of a session besides its tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    /// Whose it is: where a store keeps tenants apart, it looks among this one's only.
    pub(crate) tenant: Tag,
    /// What it is called, if the store wants to know.
    pub(crate) name: Option<&'a KeyName>,
}

/// Seals the names of sessions, so that a store that has names can find one by its tag and keeps no readable id for it.
#[derive(Debug)]
pub(crate) struct NameSealer(Key);

impl NameSealer {
    pub(crate) fn new(key: Key) -> Self {
        Self(key)
    }

    pub(crate) fn seal(&self, scope: Tag, name: &KeyName) -> Sealed {
        let tag = scope.to_string();
        seal(&self.0, Suite::ChaCha20Poly1305, &Self::context(&tag), 1, name.as_str().as_bytes())
    }

    pub(crate) fn open(&self, scope: Tag, sealed: &Sealed) -> Option<KeyName> {
        let opened = open(&self.0, &Self::context(&scope.to_string()), sealed).ok()?;
        std::str::from_utf8(&opened.data).ok().map(KeyName::new)
    }

    fn context(tag: &str) -> Context<'_> {
        Context { purpose: "name", owner: "", container: tag, object: "name", field: "" }
    }
}

/// A running engine, as the owner of open turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Instance(pub(crate) [u8; 16]);

/// The owner of a session in which a turn waits for a decision.
pub(crate) const PARKED: Instance = Instance(*b"awaits.decision.");
/// The owner of a session in which a decision waits to be carried out.
pub(crate) const DECIDED: Instance = Instance(*b"awaits.execution");
/// The owner of a session whose turns named concepts that are yet to come into scope.
pub(crate) const CAPTURED: Instance = Instance(*b"awaits.its.scope");
/// Owners that stand for no process. Never alive, so always looked at.
pub(crate) const NOBODY: [Instance; 3] = [PARKED, DECIDED, CAPTURED];

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
    /// What it is called, if the store wants to know.
    pub(crate) name: Option<KeyName>,
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

/// Where an audit record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AuditPlace {
    pub(crate) lane: Lane,
    pub(crate) seq: u64,
    /// The tag of the record before it in its lane; none for the first.
    pub(crate) previous: Option<[u8; 16]>,
}

impl AuditPlace {
    /// The first of a lane.
    pub(crate) fn first(lane: Lane) -> Self {
        Self { lane, seq: 1, previous: None }
    }
}

/// An audit record that is sealed when its place is known.
pub(crate) struct PendingAudit(Box<dyn Fn(AuditPlace) -> Sealed + Send + Sync>);

impl PendingAudit {
    pub(crate) fn new(seal: impl Fn(AuditPlace) -> Sealed + Send + Sync + 'static) -> Self {
        Self(Box::new(seal))
    }

    /// Seals the record for its place.
    pub(crate) fn link(&self, place: AuditPlace) -> Sealed {
        (self.0)(place)
    }
}

impl std::fmt::Debug for PendingAudit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PendingAudit(..)")
    }
}

/// The newest record of an audit lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AuditHead {
    pub(crate) lane: Lane,
    pub(crate) seq: u64,
    pub(crate) tag: [u8; 16],
}

impl AuditHead {
    /// The place after it.
    pub(crate) fn next(self) -> AuditPlace {
        AuditPlace { lane: self.lane, seq: self.seq + 1, previous: Some(self.tag) }
    }
}

/// A whole audit lane, as a store knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AuditLane {
    pub(crate) head: AuditHead,
    /// The last record before those that are still there; nothing if all are.
    pub(crate) floor: Option<AuditHead>,
    /// When the store may let go of what is there now; nothing if it never does.
    pub(crate) until: Option<Millis>,
}

/// Which sessions to list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Find {
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
    /// How sessions are to be called.
    fn naming(&self) -> Naming {
        Naming::Tags
    }
    /// Gives a store that has names what seals them; before that it finds none by its tag.
    fn introduce(&self, _names: NameSealer) {}
    /// A whole session, in one round trip if something is known of it.
    async fn load(&self, scope: Tag, known: Option<Known<'_>>) -> Result<Option<Loaded>>;
    /// Compare-and-set on the version and the key; refreshes the lifetime.
    async fn append(&self, append: Append) -> Result<Appended>;
    /// Removes every row of a session and says how many log records went. The audit records are written with it.
    async fn erase(&self, scope: Tag, known: Option<Known<'_>>, audit: Vec<PendingAudit>) -> Result<u64>;
    /// Whether there is no session, known by name or not.
    async fn is_empty(&self) -> Result<bool> {
        Ok(self.list(Find::All, None, 1).await?.is_empty())
    }
    /// Sessions in the order of their tags, after `after`.
    async fn list(&self, find: Find, after: Option<Tag>, limit: usize) -> Result<Vec<Listed>>;
    /// Sessions whose lifetime is over; none in a store that ends them by itself.
    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>>;
    /// Sessions with an open turn whose owner is not alive.
    async fn orphans(&self) -> Result<Vec<(Tag, Instance)>>;
    /// Makes `to` the owner of an open turn that `from` had; false if it no longer has it.
    async fn claim(&self, scope: Tag, from: Instance, to: Instance) -> Result<bool>;
    /// Marks an instance as alive for as long as the returned guard lives.
    async fn enlist(&self, instance: Instance) -> Result<Box<dyn std::any::Any + Send + Sync>>;
    /// Says that an instance is about to end, so that nobody need wait to find out.
    async fn resign(&self, instance: Instance) -> Result<()>;
    /// Whether an instance is alive.
    async fn is_alive(&self, instance: Instance) -> Result<bool>;
    /// Whether any other than this one is.
    async fn others_alive(&self, than: Instance) -> Result<bool>;
    /// Appends audit records to a lane and returns where it stands then; nothing if there were none.
    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>>;
    /// Every lane of the audit log.
    async fn lanes(&self) -> Result<Vec<AuditLane>>;
    /// Appends records as another store has sealed them to a lane that stands at `before`, or begins there.
    ///
    /// Only for a store in which nothing is recorded yet, and nobody else works.
    async fn adopt(&self, lane: Lane, before: Option<AuditHead>, records: Vec<Sealed>) -> Result<()>;
    /// The audit records of a lane after a sequence.
    async fn audit(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>>;
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
    /// Checks for damage, and for settings that would cause some; says what was looked at.
    async fn check(&self) -> Result<String>;
    /// Whether what this process writes now and then was taken the last time. Asks the store nothing.
    fn writable(&self) -> Result<()> {
        Ok(())
    }
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
    /// When the log's lifetime is over, as of the anchor.
    pub(crate) expires_at: Option<Millis>,
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
    /// When the log's lifetime is over, as of this version.
    pub(crate) expires_at: Option<Millis>,
}

/// An audit sequence to remember as seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneAnchor {
    pub(crate) lane: Lane,
    /// From when on records up to `seq` may be missing. A lane has an anchor for each, and each only rises.
    pub(crate) until: Option<Millis>,
    pub(crate) seq: u64,
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
    /// Rows whose logs' lifetime was over by then, as far as the keyring knows.
    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>>;
    /// Rows that another root sealed.
    async fn not_under(&self, root: Kid, limit: usize) -> Result<Vec<KeyRow>>;
    /// Rows in all, and those that another root than this sealed.
    async fn count(&self, root: Kid) -> Result<(u64, u64)>;
    /// Replaces what is sealed in rows by what was re-sealed; a row that changed in between is left for the next round.
    async fn rewrap(&self, rows: Vec<(KeyRow, KeyRow)>) -> Result<u64>;
    /// Raises the anchors of logs, with their expiry, and of audit lanes; never lowers one.
    async fn anchor(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()>;
    /// Sets the anchors as given, without their expiry, for accepting a restored backup; those of lanes that are not given are gone.
    async fn reset_anchors(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()>;
    /// The anchors of all lanes, by lane and `until`.
    async fn lane_anchors(&self) -> Result<Vec<LaneAnchor>>;
    /// Leaves nothing of destroyed rows behind in journals or free pages.
    async fn scrub(&self) -> Result<()>;
    /// Checks for damage, and for settings that would cause some; says what was looked at.
    async fn check(&self) -> Result<String>;
}
