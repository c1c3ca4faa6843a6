//! How gateways hear of each other, as the service asks for it.

use async_trait::async_trait;
use confidant_chat_format::AccountId;

use super::WeakService;
use super::hub::AccountEvent;

/// Hears of every change that this process made, and says what others made.
#[async_trait]
pub trait News: Send + Sync + std::fmt::Debug {
    /// Something happened to an account. Does not wait: it is called while others wait for their turn.
    fn happened(&self, account: &AccountId, happened: &AccountEvent);

    /// Tells others what happened here, and this service what happened there ([`super::Service::hear`]), for as long as the
    /// service lives. After news may have been lost, it asks for [`super::Service::catch_up`].
    async fn listen(&self, _service: WeakService) {}

    /// How it goes, for whoever watches.
    fn counts(&self) -> NewsCounts {
        NewsCounts::default()
    }
}

/// How news travel between gateways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewsCounts {
    /// Whether others are heard now.
    pub is_connected: bool,
    /// News that were told to others.
    pub told: u64,
    /// News of others.
    pub heard: u64,
    /// What was heard and is not ours, or cannot be read.
    pub malformed: u64,
    /// How often news may have been lost, so that sockets had to be checked against the store.
    pub lost: u64,
}
