//! The bot against a Discord of our own that speaks Discord's protocol: REST with its errors and limits, and a gateway with
//! heartbeats, resuming, replay and its closing codes. The client library is the real one.
#![expect(clippy::unwrap_used, reason = "tests say what went wrong by panicking")]

mod campaign;
mod connection;
mod fake;
mod rig;
mod seed_002;
mod shards;
mod talking;
mod trouble;
