//! `[server]`: where it listens, where it keeps things, and what it takes.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use confidant_http::{HttpSettings, PlaceLimits};
use confidant_mcp::Hosts;
use serde::Deserialize;

use super::seconds;

/// A client that means it sends its request at once.
const FIRST_HEAD: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerSection {
    pub(crate) listen: SocketAddr,
    pub(crate) data_dir: PathBuf,
    /// Names besides those of this machine.
    hosts: Vec<String>,
    max_body_bytes: NonZeroUsize,
    #[serde(rename = "request_timeout_seconds", deserialize_with = "seconds::some")]
    request_timeout: Duration,
    /// Of one token; 0 is no limit.
    requests_per_minute: u32,
    /// At a time.
    max_connections: NonZeroUsize,
    /// At a time, from one address; 0 is no limit.
    connections_per_peer: usize,
    #[serde(rename = "shutdown_grace_seconds", deserialize_with = "seconds::some")]
    pub(crate) shutdown_grace: Duration,
}

impl ServerSection {
    /// What the HTTP surface needs to know.
    pub(crate) fn http(&self) -> HttpSettings {
        HttpSettings {
            max_body_bytes: self.max_body_bytes.get(),
            request_timeout: self.request_timeout,
            requests_per_minute: self.requests_per_minute,
            places: PlaceLimits {
                most: crate::process::connections(self.max_connections.get()),
                per_peer: self.connections_per_peer,
                first_head: FIRST_HEAD,
            },
        }
    }
}

impl ServerSection {
    /// By which names MCP clients may ask. A server that listens to the world without saying its names is asked by any:
    /// it cannot know them, and wants a token in any case.
    pub(crate) fn hosts(&self) -> Hosts {
        if self.hosts.is_empty() && !self.listen.ip().is_loopback() {
            Hosts::Any
        } else {
            Hosts::Known(self.hosts.clone())
        }
    }
}

impl Default for ServerSection {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7367)),
            data_dir: PathBuf::from("./confidant-data"),
            hosts: Vec::new(),
            max_body_bytes: NonZeroUsize::new(1024 * 1024).expect("1 MiB is not zero"),
            request_timeout: Duration::from_secs(150),
            requests_per_minute: 600,
            max_connections: NonZeroUsize::new(4096).expect("4096 is not zero"),
            connections_per_peer: 512,
            shutdown_grace: Duration::from_secs(20),
        }
    }
}
