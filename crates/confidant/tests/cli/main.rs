//! The program as people run it: one process per command, offline, on a folder of its own.
//!
//! Every test looks at three things: the exit status, what stands where (data on stdout, words on stderr, a hint with
//! every error), and that neither has anything that it must not have.

#![expect(clippy::unwrap_used, reason = "what cannot be set up is a failed test")]

mod approvals;
mod chat;
mod chats;
mod doctor;
mod erasure;
mod first_hour;
mod home;
mod instructions;
mod keys;
mod memory;
mod moving;
#[cfg(all(feature = "postgres", feature = "redis"))]
mod promises;
mod redact;
mod redis;
mod rights;
#[cfg(all(feature = "postgres", feature = "redis"))]
#[expect(dead_code, reason = "shared with the tests of the client, which use the rest of it")]
#[path = "../../../client/tests/main/rows.rs"]
mod rows;
mod server;
#[expect(dead_code, reason = "shared with the unit tests, which use the rest of it")]
#[path = "../../../http/src/testing.rs"]
mod testing;
mod trouble;
