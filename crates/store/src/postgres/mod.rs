//! PostgreSQL: durable, for several processes and many tenants.
//!
//! Tables as in SQLite, one function call per write (`migrations/`), so that a write is one transaction and one round trip.
//! Row-level security binds what is done for a session or a tenant, lists among it, to that tenant: even a wrong query cannot
//! see another's rows. The audit log has lanes, one writer each, so that commits do not wait for each other.
//!
//! ```text
//!  migrations/  the tables and functions, in the order they came
//!  pool.rs      connections, from crates/postgres, with errors of this store
//!  data.rs      sessions     tokens.rs  access tokens     leases.rs  whose turns are open, and who is alive
//!  lanes.rs     the audit log     keys.rs  the keyring     contexts.rs  what is in scope of conversations
//! ```
//!
//! What is easy to get wrong: connections of the pool work for the system unless told otherwise; a function that is called for
//! a session narrows its own transaction to the session's tenant before it looks at anything.

mod contexts;
mod data;
mod keys;
mod lanes;
mod leases;
mod migrations;
mod pool;
mod settings;
mod tokens;

#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use super::Result;
pub use confidant_postgres::PostgresAddress;
pub use data::PostgresStore;
pub use keys::PostgresKeys;
use pool::Pool;
pub use settings::PostgresSettings;

/// The data half and the key half in one database.
pub async fn open(settings: &PostgresSettings) -> Result<(PostgresStore, PostgresKeys)> {
    let pool = Arc::new(Pool::new(settings)?);
    pool.migrate().await?;
    Ok((PostgresStore::open(Arc::clone(&pool), settings.keep_audit).await?, PostgresKeys::new(pool)))
}

/// The key half alone.
pub async fn open_keys(settings: &PostgresSettings) -> Result<PostgresKeys> {
    let pool = Arc::new(Pool::new(settings)?);
    pool.migrate().await?;
    Ok(PostgresKeys::new(pool))
}

/// Whether somebody has kept data here before.
pub async fn is_there(settings: &PostgresSettings) -> Result<bool> {
    Pool::new(settings)?.is_there().await
}
