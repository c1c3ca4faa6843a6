//! Points in time, which the caller passes in.

use std::time::Duration;

/// Milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

impl Millis {
    /// This much later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The day it is in: days since 1970. Devices and sessions say no more about when they were seen.
    #[must_use]
    pub fn day(self) -> u32 {
        u32::try_from(self.0 / 86_400_000).unwrap_or(u32::MAX)
    }
}
