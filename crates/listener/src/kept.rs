//! A connection that stops being HTTP: it keeps its place, and hears of a stop.

use std::sync::Arc;

use tokio::sync::watch;

use crate::places::{Busy, Place};

/// The connection that a request came on. It is among the request's extensions.
#[derive(Clone, Debug)]
pub struct Connection {
    place: Arc<Place>,
    stopping: watch::Receiver<bool>,
}

impl Connection {
    pub(crate) fn new(place: Arc<Place>, stopping: watch::Receiver<bool>) -> Self {
        Self { place, stopping }
    }

    /// Keeps the place for whatever the connection is upgraded to.
    #[must_use]
    pub fn keep(&self) -> Kept {
        Kept { _busy: self.place.busy(), stopping: self.stopping.clone() }
    }

    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.place
    }
}

/// The place of an upgraded connection; let go of when dropped. A stop waits for that.
#[derive(Debug)]
pub struct Kept {
    _busy: Busy,
    stopping: watch::Receiver<bool>,
}

impl Kept {
    /// Resolves when the server stops. May be dropped and asked again.
    pub async fn stopping(&mut self) {
        stopped(&mut self.stopping).await;
    }
}

/// Resolves when the server stops.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // A listener that is gone has stopped as well.
    drop(stopping.wait_for(|is_stopping| *is_stopping).await);
}
