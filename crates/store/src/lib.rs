//! Where sealed things are kept. Only the engine depends on it: no channel, route or tool can reach a row except through a
//! `Session`.
//!
//! Data and keys are two halves, so that they can live apart: a [`Store`] has the data, a [`KeyStore`] the keys that open it.
//! Each is the sum of small traits, and code that needs one part takes that part.
//!
//! ```text
//!  Store     Logs  Claims  Audit  Tokens  Contexts  ContextUpkeep  Upkeep
//!  KeyStore  SystemKeys  DataKeys  Rotation  Anchors               Upkeep
//! ```
//!
//! Neither ever sees plaintext: scopes, people and tenants arrive as keyed tags, everything else as
//! [`Sealed`](confidant_seal::Sealed) bytes. A [`KeyName`] is the one exception, for stores that ask for it by
//! [`Logs::naming`]. The laws that every back end must keep are in `conformance.rs`.

#![expect(missing_docs, reason = "only the engine uses it; what is not plain by its name and type is said")]

mod audit;
mod claims;
pub mod clock;
pub mod contexts;
mod error;
mod keys;
mod lane;
#[cfg(any(feature = "redis", feature = "postgres"))]
mod lanes;
#[cfg(any(feature = "redis", feature = "postgres"))]
mod leases;
mod logs;
pub mod memory;
mod names;
#[cfg_attr(not(feature = "postgres"), path = "postgres/disabled.rs")]
pub mod postgres;
#[cfg_attr(not(feature = "redis"), path = "redis/disabled.rs")]
pub mod redis;
pub mod sqlite;
mod tokens;
pub mod volatile;

#[cfg(test)]
#[cfg(all(feature = "redis", feature = "postgres"))]
mod conformance;

use async_trait::async_trait;

pub use audit::{Audit, AuditHead, AuditLane, AuditPlace, PendingAudit};
pub use claims::{Claims, Instance, LEASE, Owner};
use contexts::{ContextUpkeep, Contexts};
pub use error::StoreError;
pub use keys::{Anchor, Anchors, Created, DataKeys, KeyRow, KeyStore, LaneAnchor, Rotation, SystemKeys};
pub use lane::Lane;
pub use logs::{Append, Appended, Find, Listed, Loaded, Logs};
pub use names::{KeyName, Known, NameSealer, Names, Naming};
pub use tokens::{TokenRow, Tokens};

pub type Result<T> = std::result::Result<T, StoreError>;

/// The data: sealed logs, open turns, audit records, tokens, and what is in scope of conversations.
pub trait Store: Logs + Claims + Audit + Tokens + Contexts + ContextUpkeep + Upkeep {}

impl<T: Logs + Claims + Audit + Tokens + Contexts + ContextUpkeep + Upkeep> Store for T {}

/// What keeps a store or a keyring in order.
#[async_trait]
pub trait Upkeep: Send + Sync + std::fmt::Debug {
    /// Does what writes have put off, such as removing what folds have replaced; nothing where nothing is put off.
    async fn tidy(&self) -> Result<()> {
        Ok(())
    }
    /// Leaves nothing of erased or destroyed rows behind in journals or free pages.
    async fn scrub(&self) -> Result<()>;
    /// Checks for damage, and for settings that would cause some; says what was looked at.
    async fn check(&self) -> Result<String>;
    /// Whether the last regular write of this process succeeded. Does not ask the store.
    fn writable(&self) -> Result<()> {
        Ok(())
    }
}

/// Sixteen random bytes, for unique names.
#[must_use]
pub fn random_id() -> [u8; 16] {
    let mut id = [0; 16];
    getrandom::fill(&mut id).expect("the operating system gives random bytes, or nothing here can be safe");
    id
}
