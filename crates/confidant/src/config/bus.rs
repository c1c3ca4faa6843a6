//! `[bus]`: where gateways and workers meet, when turns are not run where they are asked for.

use std::time::Duration;

use anyhow::anyhow;
use confidant_engine::TenantId;
use confidant_engine::bus::{BusSettings, Speech};
use confidant_engine::storage::{RedisAddress, RedisSettings};
use serde::Deserialize;

use super::{Loaded, StoreKind, seconds};
use crate::config::DEFAULT_TENANT;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BusSection {
    /// Without one, the store's.
    url: Option<BusUrl>,
    mode: Mode,
    turns: usize,
    #[serde(rename = "patience_seconds", deserialize_with = "seconds::some")]
    patience: Duration,
    #[serde(rename = "silence_seconds", deserialize_with = "seconds::some")]
    silence: Duration,
}

impl Default for BusSection {
    fn default() -> Self {
        let (patience, silence) = (Duration::from_secs(5), Duration::from_secs(8));
        Self { url: None, mode: Mode::Sealed, turns: 64, patience, silence }
    }
}

/// How messages look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// Sealed, between our own roles.
    Sealed,
    /// Plain JSON, with foreign bots and workers.
    Compat,
}

/// What `bus.url` names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct BusUrl(RedisAddress);

impl TryFrom<String> for BusUrl {
    type Error = String;

    // What is not understood is not quoted: an address may hold a password.
    fn try_from(url: String) -> Result<Self, String> {
        if url.starts_with("redis") {
            return RedisAddress::parse(&url).map(Self);
        }
        Err("this is not a Redis address; hint: use redis://host, or leave it out to use the store's"
            .to_owned())
    }
}

impl Loaded {
    /// The Redis that the processes of this installation share: the bus's, else the store's; nothing if there is none.
    pub(crate) fn redis(&self) -> anyhow::Result<Option<RedisSettings>> {
        let config = &self.config;
        let ((Some(BusUrl(address)), _) | (None, StoreKind::Redis(address))) =
            (&config.bus.url, &config.store.url)
        else {
            return Ok(None);
        };
        config.store.redis(address, self.secrets.redis_password.as_ref()).map(Some)
    }

    /// How this process meets gateways or workers.
    pub(crate) fn bus(&self) -> anyhow::Result<BusSettings> {
        let config = &self.config;
        let section = &config.bus;
        let Some(redis) = self.redis()? else {
            return Err(anyhow!(
                "gateways and workers need a Redis, and none is configured; hint: set store.url (or \
                 REDIS_URL) to redis://host, or bus.url beside another store"
            ));
        };
        if config.store.url == StoreKind::Memory {
            return Err(anyhow!(
                "gateways and workers need a shared store, but store.url is memory:; hint: use redis:// or \
                 postgres://"
            ));
        }
        Ok(BusSettings {
            speech: match section.mode {
                Mode::Sealed => Speech::Sealed,
                Mode::Compat => Speech::Plain,
            },
            turns: section.turns.max(1),
            patience: section.patience,
            silence: section.silence,
            ..BusSettings::new(redis.into(), TenantId::new(DEFAULT_TENANT)?)
        })
    }
}
