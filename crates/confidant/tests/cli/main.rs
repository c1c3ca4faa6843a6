//! The program as people run it: one process per command, offline, on a folder of its own.
//!
//! Every test looks at three things: the exit status, what stands where (data on stdout, words on stderr, a hint with
//! every error), and that neither has anything that it must not have.

#![expect(clippy::unwrap_used, reason = "what cannot be set up is a failed test")]

mod approvals;
mod chat;
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

/// One named test per function and back end, so that a failure reads `sqlite::promise_6_…`. Chats of the program that keeps
/// conversations and keys in Redis are in a file.
#[cfg(all(feature = "postgres", feature = "redis"))]
macro_rules! on_each_store {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test($crate::promises::Place::sqlite()).await;
            })*
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(place) = $crate::promises::Place::redis_of_tests() {
                    super::$test(place).await;
                }
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(place) = $crate::promises::Place::postgres_of_tests() {
                    super::$test(place).await;
                }
            })*
        }
    };
}
#[cfg(all(feature = "postgres", feature = "redis"))]
pub(crate) use on_each_store;
