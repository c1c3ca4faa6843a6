//! The client against the real service, in one process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod asks;
mod away;
mod back;
mod beside;
mod convergence;
mod devices;
mod erasure;
mod gateways;
mod isolation;
mod malicious;
mod offline;
mod over_http;
mod place;
mod remembered;
mod restore;
mod rows;
mod snapshots;
mod stolen;
mod strangers;
mod temporary;
mod world;

/// One named test per function and back end that chats have.
macro_rules! on_both_stores {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test($crate::place::Place::sqlite()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                if let Some(place) = $crate::place::Place::postgres_at("CONFIDANT_TEST_POSTGRES") {
                    super::$test(place).await;
                }
            })*
        }
    };
}
pub(crate) use on_both_stores;

/// One named test on one server over `SQLite`, and one on two gateways over `PostgreSQL`.
macro_rules! at_both {
    ($($test:ident),* $(,)?) => {
        mod one_server {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::world::At::OneServer).await;
            })*
        }
        mod two_gateways {
            $(#[tokio::test]
            async fn $test() {
                if $crate::world::At::TwoGateways.is_there() {
                    super::$test($crate::world::At::TwoGateways).await;
                }
            })*
        }
    };
}
pub(crate) use at_both;
