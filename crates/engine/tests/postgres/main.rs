//! PostgreSQL: whose rows a connection sees, what its files hold, and how it fails.
//!
//! They need the servers that `tests/postgres_servers.py` starts; one of them is there to be broken.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod faults;
#[path = "../redis/proxy.rs"]
#[expect(dead_code, reason = "the tests of Redis use more of it")]
mod proxy;
mod refusals;
mod retention;
#[path = "../rig/place.rs"]
#[expect(dead_code, reason = "the promises use more of it")]
mod rig;
mod rotation;
mod secrecy;
mod server;
mod tenants;
