//! Room on a full disk for what must work there.
//!
//! The engine knows neither disks nor files. Whoever runs it on one may keep some space back, and is asked for it while
//! something is erased, or a look at data is written into the audit log.

use std::sync::Arc;

/// Space that is kept back for what must work on a full disk.
pub trait Headroom: Send + Sync + std::fmt::Debug {
    /// Something needs room: the space is let go of if there is no other. Every call is followed by one of `take_back`.
    fn make(&self);
    /// It needs none any more.
    fn take_back(&self);
}

/// Room that is taken back when this is dropped.
#[derive(Debug)]
pub struct RoomLent(Arc<dyn Headroom>);

impl RoomLent {
    /// Room that is needed now.
    #[must_use]
    pub fn of(headroom: Arc<dyn Headroom>) -> Self {
        headroom.make();
        Self(headroom)
    }
}

impl Drop for RoomLent {
    fn drop(&mut self) {
        self.0.take_back();
    }
}
