//! The bus itself: publish, subscribe and claim on a Redis.

#[cfg(not(feature = "redis"))]
mod disabled;
#[cfg(feature = "redis")]
mod enabled;

use tokio::sync::{mpsc, watch};

use crate::ledger::storage::RedisSettings;

#[cfg(not(feature = "redis"))]
pub(super) use disabled::BusLink;
#[cfg(feature = "redis")]
pub(super) use enabled::BusLink;

/// Where gateways and workers meet: a Redis, with the prefix that this installation's names have there.
#[derive(Clone, Debug)]
pub struct BusAddress(RedisSettings);

impl From<RedisSettings> for BusAddress {
    fn from(settings: RedisSettings) -> Self {
        Self(settings)
    }
}

/// A channel of the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Requests,
    /// To every gateway: the first system's.
    Responses,
    /// To one gateway.
    ResponsesTo(String),
}

impl Way {
    /// Its name in seals.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Requests => "requests".to_owned(),
            Self::Responses => "responses".to_owned(),
            Self::ResponsesTo(gateway) => format!("responses:{gateway}"),
        }
    }
}

/// Who received a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nobody, for certain.
    Nobody,
    /// Somebody, or nobody can tell.
    Perhaps,
}

/// The messages of one channel.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) messages: mpsc::UnboundedReceiver<Vec<u8>>,
    /// Whether the subscription stands now.
    pub(super) up: watch::Receiver<bool>,
}
