//! Redis (6 or newer) or Valkey, without modules: for several processes on one store.
//!
//! A session is one hash under the name that the first systems gave it, `checkpoint:{session_id}:latest` or
//! `{channel}_conv:{user}`, and its lifetime is the key's: Redis ends it by itself. A write is one script (`scripts`), so it
//! happens as a whole or not at all, and costs one round trip.
//!
//! ```text
//!  names.rs    what every key is called, and which of them never expire
//!  link.rs     the connection: made again when it breaks, errors in our words
//!  data.rs     sessions                index.rs   finding sessions by tag, person, tenant
//!  tokens.rs   access tokens
//!  lanes.rs    the audit log           leases.rs  who is alive
//!  keys.rs     the keyring             open_turns.rs  whose turns are open
//!  contexts.rs what is in scope of conversations
//!  shelf.rs    client ciphertext that devices are about to load
//!  buffers.rs  what running turns say, for other processes to follow
//! ```
//!
//! In a Cluster a script reaches keys of one slot only. A session is one key, so its own write is one script there, too; what
//! lies elsewhere is written before it (indexes: they may name what is not there, never miss what is) or after it (its audit
//! records). Braces in a session's id are part of the id, and Redis then takes the slot from what they enclose: any slot will
//! do. What is easy to get wrong: an index entry must be there before what it indexes, and outlive it.

mod address;
mod buffers;
mod contexts;
mod data;
mod index;
mod keys;
mod lanes;
mod leases;
mod legacy;
mod link;
mod names;
mod open_turns;
mod scripts;
mod settings;
mod shelf;
mod tokens;

#[cfg(test)]
pub(super) mod tests;

use std::sync::Arc;

use super::Result;
use crate::error::StoreError;

pub use address::RedisAddress;
pub use buffers::{Added, Buffers, Ear};
pub use data::RedisStore;
pub use keys::RedisKeys;
pub use legacy::Checkpoints;
pub use link::{For, Link};
use names::KeySpace;
pub use settings::{RedisNames, RedisSettings};
pub use shelf::{ShelfLimits, SyncShelf};

/// The data half and the key half on one server.
pub async fn open(settings: &RedisSettings) -> Result<(RedisStore, RedisKeys)> {
    let link = connect(settings).await?;
    Ok((RedisStore::open(Arc::clone(&link), settings).await?, RedisKeys::new(link, settings)))
}

/// The key half alone.
pub async fn open_keys(settings: &RedisSettings) -> Result<RedisKeys> {
    Ok(RedisKeys::new(connect(settings).await?, settings))
}

/// Whether somebody has kept data here before.
pub async fn is_there(settings: &RedisSettings) -> Result<bool> {
    let link = connect(settings).await?;
    let mut cmd = redis::cmd("EXISTS");
    cmd.arg(KeySpace::new(&settings.prefix).format());
    link.run(For::Reading, cmd).await
}

pub async fn connect(settings: &RedisSettings) -> Result<Arc<Link>> {
    if settings.prefix.contains(['{', '}']) {
        return Err(StoreError::Mismatch(
            "store.prefix contains a brace, which has a special meaning in Redis; hint: use letters and colons"
                .to_owned(),
        ));
    }
    let link = Arc::new(Link::new(&settings.address, settings.ca.as_deref())?);
    for info in link.info("server").await? {
        fits(settings, &info)?;
    }
    Ok(link)
}

/// Whether a server is of a kind and age that we can use at this address.
fn fits(settings: &RedisSettings, info: &str) -> Result<()> {
    let refuse = |what: &str| Err(StoreError::Mismatch(what.to_owned()));
    let version =
        field(info, "redis_version").and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    if version.is_some_and(|major| major < 6) {
        return refuse("the Redis server is older than version 6; hint: upgrade it, or use Valkey");
    }
    // Valkey says its mode under a name of its own, and under the old one as well.
    match (field(info, "redis_mode"), settings.address.is_cluster()) {
        (Some("cluster"), false) => refuse(
            "the Redis server is part of a Cluster; hint: write redis+cluster:// (rediss+cluster:// for TLS) in store.url",
        ),
        (Some("standalone"), true) => refuse(
            "the Redis server is not part of a Cluster; hint: write redis:// or rediss:// in store.url",
        ),
        (Some("sentinel"), _) => refuse(
            "this is a Sentinel, not a Redis server; hint: write redis+sentinel://host:port/SERVICE in store.url",
        ),
        _ => Ok(()),
    }
}

/// A field of what `INFO` says.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Whether the servers keep what they are given: one that throws keys away when it is full loses logs. Says what they are.
async fn health(link: &Link) -> Result<String> {
    for memory in link.info("memory").await? {
        let limited = field(&memory, "maxmemory").is_some_and(|most| most != "0");
        match field(&memory, "maxmemory_policy") {
            Some(policy) if limited && policy != "noeviction" => {
                return Err(StoreError::Mismatch(format!(
                    "the Redis server evicts keys when it is full (maxmemory-policy {policy}), which destroys \
                     conversations; hint: set maxmemory-policy noeviction"
                )));
            }
            _ => {}
        }
    }
    let servers = link.info("server").await?;
    let first = servers.first().map_or("", String::as_str);
    let (name, version) = match field(first, "valkey_version") {
        Some(version) => ("Valkey", version),
        None => ("Redis", field(first, "redis_version").unwrap_or("of unknown version")),
    };
    let of = if servers.len() > 1 { format!(", {} servers", servers.len()) } else { String::new() };
    Ok(format!("{name} {version}{of}"))
}
