//! Where data and keys are kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::{OpenError, StoreError};
pub use crate::ledger::copy::{Copied, copy, is_copied};
pub use crate::ledger::headroom::{Headroom, RoomLent};
pub use crate::ledger::legacy::{Imported, LeftBecause, LeftRow, Way, import_checkpoints};
use crate::store::memory::{MemoryKeys, MemoryStore};
use crate::store::postgres;
pub use crate::store::postgres::{PostgresAddress, PostgresSettings};
use crate::store::redis;
pub use crate::store::redis::{RedisAddress, RedisNames, RedisSettings, ShelfLimits, SyncShelf};
pub use crate::store::sqlite::Durability;
use crate::store::sqlite::{SqliteKeys, SqliteStore};
use crate::store::{KeyStore, Store};

/// Where data and keys are kept. Opaque: only an engine can look inside.
#[derive(Clone, Debug)]
pub struct Storage {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: Arc<dyn KeyStore>,
}

impl Storage {
    /// In memory, for tests and for trying out. Clones share what they hold.
    #[must_use]
    pub fn memory() -> Self {
        Self { store: Arc::new(MemoryStore::default()), keys: Arc::new(MemoryKeys::default()) }
    }

    /// `confidant.db` in one folder and `keyring.db` in another, or the same.
    pub fn sqlite(data: &Path, keyring: &Path, durability: Durability) -> Result<Self, OpenError> {
        let store = SqliteStore::open(data, durability)?;
        Ok(Self { store: Arc::new(store), keys: Arc::new(SqliteKeys::open(keyring)?) })
    }

    /// Data and keyring on a Redis or Valkey. Must be called within a Tokio runtime.
    pub fn redis(settings: &RedisSettings) -> BoxFuture<'_, Result<Self, OpenError>> {
        Box::pin(async move {
            let (store, keys) = redis::open(settings).await?;
            Ok(Self { store: Arc::new(store), keys: Arc::new(keys) })
        })
    }

    /// Data and keyring in a PostgreSQL database. Must be called within a Tokio runtime.
    pub fn postgres(settings: &PostgresSettings) -> BoxFuture<'_, Result<Self, OpenError>> {
        Box::pin(async move {
            let (store, keys) = postgres::open(settings).await?;
            Ok(Self { store: Arc::new(store), keys: Arc::new(keys) })
        })
    }

    /// Data in one place and the keyring in another, or beside it. Must be called within a Tokio runtime.
    pub fn open<'a>(
        data: &'a DataPlace,
        keyring: Option<&'a KeyringPlace>,
    ) -> BoxFuture<'a, Result<Self, OpenError>> {
        Box::pin(async move {
            let beside = match data {
                DataPlace::Memory => Self::memory(),
                DataPlace::Sqlite { folder, durability } => {
                    let store = Arc::new(SqliteStore::open(folder, *durability)?);
                    // Made only if it is wanted here: a keyring that is not used would be taken for the one that is.
                    let keys: Arc<dyn KeyStore> = match keyring {
                        None => Arc::new(SqliteKeys::open(folder)?),
                        Some(_) => Arc::new(MemoryKeys::default()),
                    };
                    Self { store, keys }
                }
                DataPlace::Redis(settings) => Self::redis(settings).await?,
                DataPlace::Postgres(settings) => Self::postgres(settings).await?,
            };
            let keys: Arc<dyn KeyStore> = match keyring {
                None => return Ok(beside),
                Some(KeyringPlace::Sqlite(folder)) => Arc::new(SqliteKeys::open(folder)?),
                Some(KeyringPlace::Redis(settings)) => Arc::new(redis::open_keys(settings).await?),
                Some(KeyringPlace::Postgres(settings)) => Arc::new(postgres::open_keys(settings).await?),
            };
            Ok(Self { keys, ..beside })
        })
    }
}

/// Where data is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataPlace {
    /// In memory only.
    Memory,
    /// In `confidant.db`.
    Sqlite {
        /// The file's folder.
        folder: PathBuf,
        /// When a commit counts as done.
        durability: Durability,
    },
    /// On a Redis or Valkey.
    Redis(RedisSettings),
    /// In a PostgreSQL database.
    Postgres(PostgresSettings),
}

impl DataPlace {
    /// Whether an engine has kept data here before.
    pub fn is_there(&self) -> BoxFuture<'_, Result<bool, OpenError>> {
        Box::pin(async move {
            match self {
                Self::Memory => Ok(false),
                Self::Sqlite { folder, .. } => {
                    // One that may not be looked at is no missing one.
                    let path = folder.join("confidant.db");
                    path.try_exists().map_err(|error| {
                        let what = format!("{} cannot be accessed ({})", path.display(), error.kind());
                        let hint = "check the owner and permissions of the folders above it";
                        StoreError::Mismatch(format!("{what}; hint: {hint}")).into()
                    })
                }
                Self::Redis(settings) => Ok(redis::is_there(settings).await?),
                Self::Postgres(settings) => Ok(postgres::is_there(settings).await?),
            }
        })
    }
}

/// Where keys are kept, if not beside the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyringPlace {
    /// In `keyring.db` in this folder.
    Sqlite(PathBuf),
    /// On a Redis or Valkey.
    Redis(RedisSettings),
    /// In a PostgreSQL database.
    Postgres(PostgresSettings),
}
