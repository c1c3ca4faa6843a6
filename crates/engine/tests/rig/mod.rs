//! What the promises and the other tests of the engine share: where things are kept, models and tools that do as they are
//! told, and the list of stores.

pub(crate) mod concepts;
mod place;
pub(crate) mod processing;
pub(crate) mod tools;

pub(crate) use place::*;

/// One named test per function and back end, so that a failure reads `sqlite::promise_6_forgotten_is_gone`.
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
