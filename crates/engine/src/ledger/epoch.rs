//! The order of erasures, as a number.

use serde::{Deserialize, Serialize};

/// How many erasures there had been when something was asked for. Any later erasure of its session or person ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub(crate) u64);

impl Epoch {
    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}
