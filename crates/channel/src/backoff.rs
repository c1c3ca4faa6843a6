//! How long to wait before trying again: longer each time, never for ever, and not all at the same moment.

use std::time::Duration;

/// A wait that doubles.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    tries: u32,
}

impl Backoff {
    /// Waits that begin with `first` and grow to `most`.
    #[must_use]
    pub fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, tries: 0 }
    }

    /// The next wait: between half of it and all of it.
    pub fn wait(&mut self) -> Duration {
        let whole = self.first.saturating_mul(1 << self.tries.min(20)).min(self.most);
        self.tries = self.tries.saturating_add(1);
        let mut byte = [0];
        // Without randomness everybody waits for the same time, which is still a wait.
        let _ = getrandom::fill(&mut byte);
        whole / 2 + whole.mul_f64(f64::from(byte[0]) / 512.0)
    }

    /// It worked: the next failure is a first one again.
    pub fn reset(&mut self) {
        self.tries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_most_and_begin_anew() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        for whole in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            let wait = backoff.wait();
            let whole = Duration::from_secs(whole);
            assert!(whole / 2 <= wait && wait <= whole, "{wait:?} of {whole:?}");
        }
        backoff.reset();
        assert!(backoff.wait() <= Duration::from_secs(1));
    }
}
