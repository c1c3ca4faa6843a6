//! What stands in for PostgreSQL where it is not built in: no address can be had, so nothing of the rest can be called.

#[path = "settings.rs"]
mod settings;

use std::convert::Infallible;

use super::Result;
use crate::memory::{MemoryKeys, MemoryStore};

pub use settings::PostgresSettings;

/// The address of a database, which this program was built without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresAddress(Infallible);

impl PostgresAddress {
    /// Says that there is none.
    pub fn parse(_: &str) -> std::result::Result<Self, String> {
        Err("this program was built without PostgreSQL; hint: `scripts/run --all` or `cargo build --release -p confidant` builds it, \
             or use another address"
            .to_owned())
    }

    #[must_use]
    pub fn with_password(self, _: &str) -> Self {
        self
    }

    #[must_use]
    pub fn shown(&self) -> String {
        self.never()
    }

    fn never(&self) -> ! {
        match self.0 {}
    }
}

pub async fn open(settings: &PostgresSettings) -> Result<(MemoryStore, MemoryKeys)> {
    settings.address.never()
}

pub async fn open_keys(settings: &PostgresSettings) -> Result<MemoryKeys> {
    settings.address.never()
}

pub async fn is_there(settings: &PostgresSettings) -> Result<bool> {
    settings.address.never()
}
