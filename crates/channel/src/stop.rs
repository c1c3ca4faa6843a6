//! When to stop.

use tokio::sync::watch;

/// Says when to stop. Clones hear the same.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// A stop and the way to say it.
    #[must_use]
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Waits until it is said.
    pub async fn said(&mut self) {
        // A sender that is gone says it, too.
        let _ = self.0.wait_for(|stop| *stop).await;
    }

    /// Whether it was said.
    #[must_use]
    pub fn is_said(&self) -> bool {
        *self.0.borrow()
    }
}
