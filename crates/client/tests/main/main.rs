//! The client against the real service, in one process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod convergence;
mod devices;
mod malicious;
mod offline;
mod over_http;
mod restore;
mod world;
