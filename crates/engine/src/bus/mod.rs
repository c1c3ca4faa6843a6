//! Gateways and workers: turns that one process is asked for and another runs.
//!
//! ```text
//!  gateway ──▶ vagent:requests ──▶ every worker; the one that claims it runs the turn
//!     ▲                                        │ accepted · alive · progress · delta · final_response · …
//!     └────── vagent:responses:{gateway} ◀─────┘
//! ```
//!
//! They meet on a Redis, over publish and subscribe, which keeps nothing. So nothing rides on it alone: a worker accepts a
//! turn by writing it into the session's sealed log, as a process on its own does, and a gateway that hears nothing more
//! asks again under the same `request_id`. Whoever then takes it finds the turn in the log: answered, running elsewhere, or
//! left by a dead worker, and answers, waits, or takes over.
//!
//! Between our own roles every message is sealed; `compat` speaks the first system's plain JSON with foreign bots and workers.
//!
//! ```text
//!  wire.rs     the JSON of requests and responses       seals.rs    from JSON to sealed bytes and back
//!  link.rs     publish, subscribe, claim                gateway.rs  asks      worker.rs  answers
//!  line.rs     plain requests of a session, in order
//! ```
//!
//! What is easy to get wrong: a gateway that gives up, or asks again, must first claim its own call, or a worker may still take
//! it.

pub(crate) mod fuzzing;
mod gateway;
mod line;
mod link;
mod seals;
mod wire;
mod worker;

use std::time::Duration;

use confidant_seal::TenantId;

pub(crate) use gateway::Gateway;
pub use link::BusAddress;
pub(crate) use wire::{Errand, error};
pub use worker::Worker;

use crate::engine::Engine;

impl Engine {
    /// Whether what is said on the bus is heard now; true where there is none.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.inner().bus_is_up.get().is_none_or(|up| *up.borrow())
    }
}

/// How gateways and workers meet.
#[derive(Clone, Debug)]
pub struct BusSettings {
    /// Where.
    pub address: BusAddress,
    /// In which language.
    pub speech: Speech,
    /// Whose sessions plain requests are about: they carry no proof of their tenant.
    pub plain_tenant: TenantId,
    /// How many turns a worker runs at once; asked for more, it leaves them to others.
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

/// How often a worker says that a turn still runs.
const BEAT: Duration = Duration::from_secs(2);
/// How long the claim of one call stands: longer than any message is believed.
const CALL: Duration = Duration::from_secs(600);
/// How long the claim of a plain request stands after each beat. The request has no name of its own for each time that it is
/// made, so once nobody works on it any more it can be made again.
const RUNNING: Duration = Duration::from_secs(15);
/// How long it stands after the end: until every worker that heard the same words has seen that they were for another.
const ENDED: Duration = Duration::from_secs(2);
