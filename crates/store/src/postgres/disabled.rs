//! What stands in for PostgreSQL where it is not built in: no address can be had, so nothing of the rest can be called.

#[path = "settings.rs"]
mod settings;

use super::Result;
use crate::memory::{MemoryKeys, MemoryStore};

pub use confidant_postgres::PostgresAddress;
pub use settings::PostgresSettings;

pub async fn open(settings: &PostgresSettings) -> Result<(MemoryStore, MemoryKeys)> {
    settings.address.never()
}

pub async fn open_keys(settings: &PostgresSettings) -> Result<MemoryKeys> {
    settings.address.never()
}

pub async fn is_there(settings: &PostgresSettings) -> Result<bool> {
    settings.address.never()
}
