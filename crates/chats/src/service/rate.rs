//! Token buckets: so many at once, then so many a second.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use super::Network;
use crate::store::Millis;

/// How many, and how fast they come back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) burst: u32,
    pub(crate) per_second: u32,
}

/// A bucket, in thousandths of a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    left: u64,
    at: Millis,
}

impl Bucket {
    pub(crate) fn full(rate: Rate, now: Millis) -> Self {
        Self { left: u64::from(rate.burst) * 1000, at: now }
    }

    /// Takes a token; else says after how many milliseconds there is one.
    pub(crate) fn take(&mut self, rate: Rate, now: Millis) -> Result<(), u64> {
        let passed = now.0.saturating_sub(self.at.0);
        let back = passed.saturating_mul(rate.per_second.into());
        self.left = self.left.saturating_add(back).min(u64::from(rate.burst) * 1000);
        self.at = now;
        match self.left.checked_sub(1000) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err((1000 - self.left).div_ceil(rate.per_second.max(1).into())),
        }
    }
}

/// A bucket for each network. Bounded: when there are too many, one more network shares the bucket of all that came late.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    networks: Mutex<HashMap<Option<Network>, Bucket>>,
}

impl Rates {
    pub(crate) fn take(&self, network: Network, rate: Rate, now: Millis) -> Result<(), u64> {
        let mut networks = self.networks.lock();
        let known = networks.len() < MOST || networks.contains_key(&Some(network));
        let bucket = networks.entry(known.then_some(network)).or_insert_with(|| Bucket::full(rate, now));
        bucket.take(rate, now)
    }

    /// Forgets those that have been quiet for a while: their buckets are full again.
    pub(crate) fn forget(&self, now: Millis) {
        self.networks.lock().retain(|_, bucket| bucket.at.plus(QUIET) > now);
    }
}

const MOST: usize = 100_000;
const QUIET: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_run_out_and_come_back() {
        let rate = Rate { burst: 2, per_second: 4 };
        let mut bucket = Bucket::full(rate, Millis(0));
        assert_eq!([0, 0, 0].map(|at| bucket.take(rate, Millis(at))), [Ok(()), Ok(()), Err(250)]);
        assert_eq!(bucket.take(rate, Millis(100)), Err(150));
        assert_eq!(bucket.take(rate, Millis(250)), Ok(()));
        assert_eq!(bucket.take(rate, Millis(251)), Err(249));
        // A clock that goes back gives nothing.
        assert!(bucket.take(rate, Millis(0)).is_err());
    }

    #[test]
    fn networks_do_not_share_and_are_forgotten() {
        let (rate, rates) = (Rate { burst: 1, per_second: 1 }, Rates::default());
        let network = |text: &str| Network::of(text.parse().unwrap());
        assert_eq!(rates.take(network("192.0.2.1"), rate, Millis(0)), Ok(()));
        assert!(rates.take(network("192.0.2.1"), rate, Millis(0)).is_err());
        assert_eq!(rates.take(network("192.0.2.2"), rate, Millis(0)), Ok(()));
        rates.forget(Millis(600_000));
        assert!(rates.networks.lock().is_empty());
    }
}
