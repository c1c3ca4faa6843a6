//! When a growing answer is shown: soon for the first time, then seldom enough for the platform's limits. Pure: the
//! present is passed in.

use std::time::Duration;

use confidant_engine::clock::Millis;

/// How an answer grows on a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long an answer may take before something of it is shown.
    pub first: Duration,
    /// The least time between two showings; it doubles with each, so that long answers do not flood a room.
    pub gap: Duration,
    /// The most that the gap grows to.
    pub longest_gap: Duration,
}

/// The pace of one answer.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    pace: Pace,
    next: Millis,
    gap: Duration,
}

impl Pacer {
    /// An answer that begins now.
    #[must_use]
    pub fn new(pace: Pace, now: Millis) -> Self {
        Self { pace, next: now.plus(pace.first), gap: pace.gap }
    }

    /// How long until something may be shown; nothing if it may be now.
    #[must_use]
    pub fn wait(&self, now: Millis) -> Duration {
        Duration::from_millis(u64::try_from(self.next.0.saturating_sub(now.0)).unwrap_or(0))
    }

    /// Something was shown.
    pub fn shown(&mut self, now: Millis) {
        self.next = now.plus(self.gap);
        self.gap = (self.gap * 2).min(self.pace.longest_gap.max(self.pace.gap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_showing_comes_soon_and_the_others_ever_later() {
        let seconds = Duration::from_secs;
        let pace = Pace { first: seconds(2), gap: seconds(5), longest_gap: seconds(20) };
        let mut now = Millis(1_000);
        let mut pacer = Pacer::new(pace, now);
        let mut waits = Vec::new();
        for _ in 0..5 {
            let wait = pacer.wait(now);
            waits.push(wait.as_secs());
            now = now.plus(wait);
            assert_eq!(pacer.wait(now), Duration::ZERO);
            pacer.shown(now);
        }
        assert_eq!(waits, [2, 5, 10, 20, 20]);
    }
}
