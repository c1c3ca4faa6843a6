//! How gateways and workers meet.

use std::time::Duration;

use confidant_seal::TenantId;

use super::link::BusAddress;

/// How gateways and workers meet.
#[derive(Clone, Debug)]
pub struct BusSettings {
    /// Where the bus is.
    pub address: BusAddress,
    /// The format of messages.
    pub speech: Speech,
    /// Whose sessions plain requests are about: they carry no proof of their tenant.
    pub plain_tenant: TenantId,
    /// How many turns a worker runs at once; asked for more, it leaves them to others until it has room.
    pub turns: usize,
    /// How long a gateway looks for a worker that has room.
    pub patience: Duration,
    /// How long a gateway hears nothing of a turn before it asks again.
    pub silence: Duration,
}

/// What messages look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Sealed, for our own roles only.
    Sealed,
    /// The first system's plain JSON.
    Plain,
}

impl BusSettings {
    /// Settings for this address.
    #[must_use]
    pub fn new(address: BusAddress, plain_tenant: TenantId) -> Self {
        Self {
            address,
            speech: Speech::Sealed,
            plain_tenant,
            turns: 64,
            patience: Duration::from_secs(5),
            silence: Duration::from_secs(8),
        }
    }
}
