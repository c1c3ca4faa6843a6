//! What the operator decides, and how long is waited.

use std::time::Duration;

use confidant_chat_format::Origin;

use crate::network::Proxy;

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The origins that this server has, as browsers spell them; the same as the service's.
    pub origins: Vec<Origin>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub proxies: Vec<Proxy>,
    /// The release of the page that this server hands out. A page that says it is another one is refused.
    pub page: Option<String>,
    /// How long is waited.
    pub patience: Patience,
}

impl Settings {
    /// For these origins, without a proxy.
    #[must_use]
    pub fn new(origins: Vec<Origin>) -> Self {
        Self { origins, proxies: Vec::new(), page: None, patience: Patience::default() }
    }
}

/// How long is waited, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a whole body.
    pub body: Duration,
    /// How long a socket is quiet before it is pinged.
    pub ping: Duration,
    /// How long nothing whole may come on a socket, not even an answer to a ping, before it is cut off. The largest frame has
    /// to arrive within this.
    pub idle: Duration,
    /// How long a socket may take nothing of what is sent to it before it is cut off.
    pub send: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            body: Duration::from_secs(120),
            ping: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            send: Duration::from_secs(20),
        }
    }
}
