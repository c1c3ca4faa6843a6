//! The promises, each a named test on every store that it concerns.
//!
//! Promise 7 (secrets do not leave) is about what is derived and has its tests in the memory crate, which has its own for
//! 1, 2, 4, 5 and 6 as well.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approvals;
mod calls;
mod concepts;
mod erasure;
mod focus;
mod interruption;
mod isolation;
mod long_conversations;
mod moving;
mod processing;
mod revision;
mod rig;
mod rotation;
mod secrecy;
mod tampering;
mod tools;

/// One named test per promise and back end, so that a failure reads `sqlite::promise_6_forgotten_is_gone`.
macro_rules! on_every_store {
    ($($test:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test($crate::rig::Place::memory()).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test($crate::rig::Place::sqlite()).await;
            })*
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(place) = $crate::rig::Place::redis_at("CONFIDANT_TEST_REDIS") {
                    super::$test(place).await;
                }
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(place) = $crate::rig::Place::postgres_at("CONFIDANT_TEST_POSTGRES") {
                    super::$test(place).await;
                }
            })*
        }
        mod redis_cluster {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(place) = $crate::rig::Place::redis_at("CONFIDANT_TEST_REDIS_CLUSTER") {
                    super::$test(place).await;
                }
            })*
        }
    };
}
pub(crate) use on_every_store;
