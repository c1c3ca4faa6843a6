//! The keyring.

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};

use super::{Lane, Result, Upkeep};
use crate::clock::Millis;

/// The keys: what must be destroyed for erasure, kept apart from what it opens.
pub trait KeyStore: SystemKeys + DataKeys + Rotation + Anchors + Upkeep {}

impl<T: SystemKeys + DataKeys + Rotation + Anchors + Upkeep> KeyStore for T {}

/// The root and the keys that it seals by name.
#[async_trait]
pub trait SystemKeys: Send + Sync + std::fmt::Debug {
    /// The root under which new rows are sealed.
    async fn root(&self) -> Result<Option<Kid>>;
    /// Changes it, if it is still `from`.
    async fn set_root(&self, from: Option<Kid>, to: Kid) -> Result<bool>;
    /// A named system key, with the root that sealed it.
    async fn named(&self, name: &str) -> Result<Option<(Kid, Sealed)>>;
    /// Replaces a named key, if it is still `from`.
    async fn put_named(&self, name: &str, from: Option<&Sealed>, root: Kid, to: &Sealed) -> Result<bool>;
}

/// The data keys of sessions.
#[async_trait]
pub trait DataKeys: Send + Sync + std::fmt::Debug {
    /// A session's row.
    async fn get(&self, scope: Tag) -> Result<Option<KeyRow>>;
    /// Adds a session's row, if it has none and the root is still the row's.
    async fn create(&self, row: KeyRow) -> Result<Created>;
    /// Destroys rows beyond recovery; says how many there were.
    async fn destroy(&self, scopes: &[Tag]) -> Result<u64>;
    /// Rows in the order of their tags, after `after`.
    async fn list(&self, after: Option<Tag>, limit: usize) -> Result<Vec<KeyRow>>;
    /// Rows that [`DataKeys::list`] does not give, because what finds them was taken out. Looks at everything that there is.
    async fn unlisted(&self) -> Result<Vec<KeyRow>> {
        Ok(Vec::new())
    }
    /// Rows whose logs' lifetime was over by then, as far as the keyring knows.
    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>>;
}

/// Data keys that move to another root.
#[async_trait]
pub trait Rotation: Send + Sync + std::fmt::Debug {
    /// Rows that another root sealed.
    async fn not_under(&self, root: Kid, limit: usize) -> Result<Vec<KeyRow>>;
    /// Rows in all, and those that another root than this sealed.
    async fn count(&self, root: Kid) -> Result<(u64, u64)>;
    /// Replaces what is sealed in rows by what was re-sealed; a row that changed in between is left for the next round.
    async fn rewrap(&self, rows: Vec<(KeyRow, KeyRow)>) -> Result<u64>;
}

/// What was seen of logs and audit lanes, so that a rollback is noticed.
#[async_trait]
pub trait Anchors: Send + Sync + std::fmt::Debug {
    /// Raises the anchors of logs, with their expiry, and of audit lanes; never lowers one.
    async fn anchor(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()>;
    /// Sets the anchors as given, without their expiry, for accepting a restored backup; those of lanes that are not given are gone.
    async fn reset_anchors(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()>;
    /// The anchors of all lanes, by lane and `until`.
    async fn lane_anchors(&self) -> Result<Vec<LaneAnchor>>;
}

/// One session's keys as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    pub scope: Tag,
    pub generation: u32,
    /// Which root sealed this row.
    pub root: Kid,
    /// Which data key is inside.
    pub kid: Kid,
    pub sealed_key: Sealed,
    /// The readable scope, for whoever holds the root.
    pub sealed_scope: Sealed,
    /// The highest log version that was ever seen: a log below it was rolled back.
    pub anchor: u64,
    /// When the log's lifetime is over, as of the anchor.
    pub expires_at: Option<Millis>,
}

/// What became of a new key row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    New,
    /// Somebody else made one first.
    Existing(KeyRow),
    /// The root changed in between: seal again under this one.
    RootChanged(Kid),
}

/// A log version to remember as seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    pub scope: Tag,
    pub kid: Kid,
    pub version: u64,
    /// When the log's lifetime is over, as of this version.
    pub expires_at: Option<Millis>,
}

/// An audit sequence to remember as seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneAnchor {
    pub lane: Lane,
    /// From when on records up to `seq` may be missing. A lane has an anchor for each, and each only rises.
    pub until: Option<Millis>,
    pub seq: u64,
}
