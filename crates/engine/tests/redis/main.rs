//! Redis as it fails and as it forgets, on servers that each test starts and breaks for itself.
//!
//! They need `redis-server`, which `CONFIDANT_TEST_REDIS_SERVER` names; `tests/redis_servers.py` sets it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod broken_links;
mod bus;
mod contexts;
mod failing_servers;
mod importing;
mod lifetimes;
mod proxy;
mod relay;
#[path = "../rig/place.rs"]
#[expect(dead_code, reason = "the promises use more of it")]
mod rig;
mod secrecy;
mod server;
#[path = "../behaviour/web.rs"]
#[expect(dead_code, reason = "the behaviour tests use more of it")]
mod web;
