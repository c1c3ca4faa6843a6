//! Growing delays after failed logins: arithmetic only.
//!
//! ```text
//! failures  1  2  3  4   5   6   …  13     14 …
//! wait      0  0  0  2 s 4 s 8 s …  17 min 30 min, no longer
//! ```
//!
//! Counted per (login, network), so that a stranger elsewhere does not lock the owner out. Failures are forgotten a day
//! after the last one.

use std::time::Duration;

use super::time::Millis;

/// Failures that cost no delay.
pub const FREE_ATTEMPTS: u32 = 3;
/// The longest delay.
pub const LONGEST_DELAY: Duration = Duration::from_secs(30 * 60);
/// After this long without a failure, those before it are forgotten.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Failed logins of one login from one network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// How many failed.
    pub failures: u32,
    /// When the last one did.
    pub last: Millis,
}

impl Attempts {
    /// When the next attempt is allowed.
    #[must_use]
    pub fn next_at(self) -> Millis {
        let Some(doublings) = self.failures.checked_sub(FREE_ATTEMPTS).filter(|past| *past > 0) else {
            return Millis(0);
        };
        let seconds = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
        self.last.plus(Duration::from_secs(seconds).min(LONGEST_DELAY))
    }

    /// With one more failure.
    #[must_use]
    pub fn failed(self, now: Millis) -> Self {
        let before = if self.is_forgotten(now) { 0 } else { self.failures };
        Self { failures: before.saturating_add(1), last: now }
    }

    /// Whether the failures are too long ago to count.
    #[must_use]
    pub fn is_forgotten(self, now: Millis) -> bool {
        self.last.plus(FORGOTTEN_AFTER) <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_half_an_hour_and_are_forgotten_after_a_day() {
        let mut attempts = Attempts::default();
        let mut waits = Vec::new();
        for _ in 0..16 {
            let now = attempts.next_at().max(Millis(1_000_000_000));
            attempts = attempts.failed(now);
            waits.push(attempts.next_at().0.saturating_sub(now.0) / 1000);
        }
        assert_eq!(waits, [0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1800, 1800, 1800]);
        assert_eq!(Attempts { failures: u32::MAX, last: Millis(5) }.failed(Millis(6)).failures, u32::MAX);
        let later = attempts.last.plus(FORGOTTEN_AFTER);
        assert_eq!(attempts.failed(Millis(later.0 - 1)).failures, 17);
        assert_eq!(attempts.failed(later).failures, 1);
    }
}
