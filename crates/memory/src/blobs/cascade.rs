//! The Cascade network, over its HTTP API: paid once, kept for ever, seen by everybody.
//!
//! Written from the API's public description: the chain's REST service tells fees and what became of an action, a
//! supernode takes and gives the bytes. Between them stands a transaction that somebody must sign and pay, and that is
//! left to a [`Registrar`]. The SDK crate of the network, which could do it, is not linked: it brings two more HTTP
//! stacks and a TLS library that is no longer maintained. So the registrar is a [`command`] that the user configures.
//!
//! Name, size, owner and time of an upload are public on the chain. The name is random, and the size was padded when
//! the bytes were sealed. Nothing can be removed: [`Blobs::remove`] answers [`Removed::Permanent`], and forgetting
//! means destroying the key.
//!
//! Easy to get wrong: paying twice. The random name is noted before anything is paid, the action as soon as there is
//! one, and a put that is resumed asks the chain first. One pointer must not be put twice at the same time without a
//! note; the outbox sees to that.
//!
//! [`Removed::Permanent`]: super::Removed::Permanent
//!
//! Needs the feature `cascade`; without it [`open`] says so.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::Blobs;
use super::object::Transport;
use crate::Result;

/// Where the network is, and what may be spent.
#[derive(Clone, Debug)]
pub struct CascadeSettings {
    /// Address of the chain's REST service.
    pub chain_url: String,
    /// Address of a supernode's API.
    pub supernode_url: String,
    /// Whether TLS may be left out.
    pub transport: Transport,
    /// An artifact whose fee is higher is not registered.
    pub max_fee_ulume: u64,
    /// For one request, from connecting to the last byte.
    pub request_limit: Duration,
    /// For one upload or download, with all requests and pauses; registering has its own.
    pub total_limit: Duration,
}

impl CascadeSettings {
    /// TLS, the network's usual five minutes, and at most 1 LUME for an artifact.
    #[must_use]
    pub fn new(chain_url: impl Into<String>, supernode_url: impl Into<String>) -> Self {
        Self {
            chain_url: chain_url.into(),
            supernode_url: supernode_url.into(),
            transport: Transport::TlsOnly,
            max_fee_ulume: 1_000_000,
            request_limit: Duration::from_secs(30),
            total_limit: Duration::from_secs(300),
        }
    }
}

/// What is to be registered on the chain.
#[derive(Clone, Copy, Debug)]
pub struct Registration<'a> {
    /// BLAKE3 of the bytes, in base64.
    pub data_hash: &'a str,
    /// A random name. It stays the same when registering is tried again.
    pub file_name: &'a str,
    /// Size in KB, rounded up.
    pub size_kbs: u64,
    /// The sealed bytes: the transaction has a digest of their RaptorQ layout, which only they can give.
    pub data: &'a [u8],
}

/// An action on the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The chain's name for it.
    pub action_id: String,
    /// The owner's signature of `data_hash`, which a supernode asks for on upload.
    pub signature: String,
    /// The owner's signature of `action_id`, which a supernode asks for on download.
    pub download_signature: String,
}

/// Signs, pays and sends the transaction that registers an upload.
#[async_trait]
pub trait Registrar: Send + Sync + std::fmt::Debug {
    /// Registers an upload.
    ///
    /// It may be asked again for a `file_name` for which it has paid already, after a crash in between; then it should
    /// find that action (by its name on the chain) and return it.
    async fn register(&self, registration: &Registration<'_>) -> Result<Registered>;
}

/// Opens the network. No request is made: use [`Blobs::check`] for that.
pub fn open(settings: &CascadeSettings, registrar: Arc<dyn Registrar>) -> Result<Arc<dyn Blobs>> {
    implementation::open(settings, registrar)
}

/// A registrar that runs a program.
///
/// `argv` is the program and its arguments; no shell is involved. It reads one line of JSON,
/// `{"data_hash", "file_name", "size_kbs", "data"}` with the sealed bytes in base64 as `data`, and prints
/// `{"action_id", "signature", "download_signature"}`. What it writes to stderr is not read. It is ended after
/// `limit`, with whatever it started, which should be generous: it may have paid by then. It does not see the environment
/// variables that are `hidden`, such as those in which keys arrive.
pub fn command(argv: Vec<String>, hidden: Vec<String>, limit: Duration) -> Result<Arc<dyn Registrar>> {
    implementation::command(argv, hidden, limit)
}

/// Asks the chain what registering so many bytes costs today, in ulume.
pub async fn fee_ulume(settings: &CascadeSettings, bytes: u64) -> Result<u64> {
    implementation::fee_ulume(settings, bytes).await
}

#[cfg(all(feature = "cascade", feature = "fuzzing"))]
#[doc(hidden)]
pub use implementation::fuzzing;

#[cfg(feature = "cascade")]
#[path = "cascade/enabled.rs"]
mod implementation;
#[cfg(not(feature = "cascade"))]
mod implementation {
    use super::{Arc, Blobs, CascadeSettings, Duration, Registrar, Result};
    use crate::Error;

    pub(super) fn open(
        _settings: &CascadeSettings,
        _registrar: Arc<dyn Registrar>,
    ) -> Result<Arc<dyn Blobs>> {
        Err(disabled())
    }

    pub(super) fn command(
        _argv: Vec<String>,
        _hidden: Vec<String>,
        _limit: Duration,
    ) -> Result<Arc<dyn Registrar>> {
        Err(disabled())
    }

    pub(super) fn fee_ulume(_settings: &CascadeSettings, _bytes: u64) -> std::future::Ready<Result<u64>> {
        std::future::ready(Err(disabled()))
    }

    fn disabled() -> Error {
        Error::invalid(
            "this program was built without Cascade",
            "build it with the feature `cascade`, or keep artifacts elsewhere",
        )
    }
}
