//! What stands in for Redis where it is not built in: no address can be had, so nothing of the rest can be called.

#[path = "settings.rs"]
mod settings;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use confidant_seal::{Tag, TenantId};

use super::Result;
use crate::memory::{MemoryKeys, MemoryStore};

pub use settings::{RedisNames, RedisSettings};

/// The address of a Redis, which this program was built without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisAddress(Infallible);

impl RedisAddress {
    /// Says that there is none.
    pub fn parse(_: &str) -> std::result::Result<Self, String> {
        Err("this program was built without Redis; hint: `scripts/run --all` or `cargo build --release -p confidant` builds it, \
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

    /// There is no such address.
    pub fn never(&self) -> ! {
        match self.0 {}
    }
}

pub async fn open(settings: &RedisSettings) -> Result<(MemoryStore, MemoryKeys)> {
    settings.address.never()
}

pub async fn open_keys(settings: &RedisSettings) -> Result<MemoryKeys> {
    settings.address.never()
}

pub async fn is_there(settings: &RedisSettings) -> Result<bool> {
    settings.address.never()
}

/// Checkpoints of the first system, which are on a Redis.
#[derive(Debug)]
pub struct Checkpoints(RedisAddress);

impl Checkpoints {
    pub async fn connect(settings: &RedisSettings) -> Result<Self> {
        settings.address.never()
    }

    pub async fn ids(&self) -> Result<Vec<String>> {
        self.0.never()
    }

    pub async fn others(&self) -> Result<Vec<(String, String)>> {
        self.0.never()
    }

    pub async fn row(&self, _: &str) -> Result<Option<Vec<u8>>> {
        self.0.never()
    }

    pub async fn set_aside(&self, _: &str) -> Result<()> {
        self.0.never()
    }

    pub async fn remove(&self, _: &str) -> Result<()> {
        self.0.never()
    }
}

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShelfLimits {
    /// How long it is kept after it was last added to.
    pub lives: Duration,
    /// Chats of one account.
    pub chats: usize,
    /// Bytes of one account.
    pub bytes: usize,
}

/// Client ciphertext that devices are about to load, on a Redis.
#[derive(Debug)]
pub struct SyncShelf(RedisAddress);

impl SyncShelf {
    /// There is none.
    pub fn open(settings: &RedisSettings, _: &TenantId, _: ShelfLimits) -> Result<Self> {
        settings.address.never()
    }

    /// There is none.
    pub async fn begin(&self, _: &str, _: &str) {
        self.0.never()
    }

    /// There is none.
    pub async fn put(&self, _: &str, _: &str, _: &[u8]) {
        self.0.never()
    }

    /// There is none.
    pub async fn get(&self, _: &str, _: &str) -> Option<Vec<u8>> {
        self.0.never()
    }

    /// There is none.
    pub async fn end(&self, _: &str, _: &str) {
        self.0.never()
    }

    /// There is none.
    pub async fn forget(&self, _: &str, _: Option<&str>) {
        self.0.never()
    }
}

/// The buffers of running turns, on a Redis.
#[derive(Debug)]
pub struct Buffers(RedisAddress);

/// What became of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is there.
    Done,
    /// The buffer was removed, or somebody else has begun it anew.
    NotOurs,
}

/// Hears when something is added to a buffer.
#[derive(Clone, Debug)]
pub struct Ear(RedisAddress);

impl Ear {
    /// There is none.
    pub async fn heard(&self) {
        self.0.never()
    }
}

impl Buffers {
    /// There are none.
    pub fn open(settings: &RedisSettings) -> Result<Arc<Self>> {
        settings.address.never()
    }

    /// There are none.
    pub async fn add(&self, _: Tag, _: &[u8], _: u64, _: &[Vec<u8>]) -> Result<Added> {
        self.0.never()
    }

    /// There are none.
    pub async fn read(&self, _: Tag, _: u64) -> Result<Option<(Vec<u8>, Vec<Vec<u8>>)>> {
        self.0.never()
    }

    /// There are none.
    pub async fn remove(&self, _: Tag) -> Result<()> {
        self.0.never()
    }

    /// There are none.
    pub fn ear(self: &Arc<Self>, _: Tag) -> Ear {
        self.0.never()
    }
}
