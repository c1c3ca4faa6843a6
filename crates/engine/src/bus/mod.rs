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
//!  line.rs     plain requests of a session, in order    late.rs     ends that nobody waits for any more
//!  settings.rs how they meet                            relay.rs    words of running turns, for all processes
//! ```
//!
//! What is easy to get wrong: a gateway that gives up, or asks again, must first claim its own call, or a worker may still take
//! it.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod gateway;
mod late;
mod line;
mod link;
mod relay;
mod seals;
mod settings;
mod wire;
mod worker;

use std::time::Duration;

use futures_util::future::BoxFuture;

pub use link::BusAddress;
pub use relay::{Followed, Following};
pub use settings::{BusSettings, Speech};
pub(crate) use wire::error;
pub use worker::Worker;

use crate::engine::Engine;

impl Engine {
    /// Whether this process listens on the bus now; true without a bus.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.inner().bus_is_up.get().is_none_or(|up| *up.borrow())
    }

    /// For a gateway: whether a worker listens on the bus. True without a bus, or where this cannot be told.
    pub fn has_worker(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            match self.inner().gateway.get() {
                Some(gateway) => gateway.has_worker().await,
                None => true,
            }
        })
    }
}

/// How often a worker that has no room says that a request is in its queue.
const QUEUED: Duration = Duration::from_secs(1);
/// How often a worker says that a turn still runs.
const BEAT: Duration = Duration::from_secs(2);
/// How long the claim of one call stands: longer than any message is believed.
const CALL: Duration = Duration::from_secs(600);
/// How long the claim of a plain request stands after each beat. The request has no name of its own for each time that it is
/// made, so once nobody works on it any more it can be made again.
const RUNNING: Duration = Duration::from_secs(15);
/// How long it stands after the end: until every worker that heard the same words has seen that they were for another.
const ENDED: Duration = Duration::from_secs(2);
