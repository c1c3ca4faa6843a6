//! A lane of the audit log.

use serde::{Deserialize, Serialize};

/// One chain of the audit log, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Lane(u32);

impl Lane {
    /// The only one of a store that has one writer at a time anyway.
    pub const ZERO: Self = Self(0);

    /// The lane of this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether it is lane 0, which receipts and lists do not mention.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}
