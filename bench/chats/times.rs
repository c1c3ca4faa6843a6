//! Percentiles, and the CPU time of this process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// How long something took, over many tries.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Times {
    count: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    most_ms: f64,
}

impl Times {
    pub(crate) fn of(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        let at = |share: f64| {
            // The smallest that so many are not above.
            let rank = (share * all.len() as f64).ceil() as usize;
            all.get(rank.saturating_sub(1)).map_or(0.0, |time| millis(*time))
        };
        Self { count: all.len(), p50_ms: at(0.5), p99_ms: at(0.99), most_ms: at(1.0) }
    }
}

/// Milliseconds, to a microsecond.
pub(crate) fn millis(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3)
}

pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// How much CPU this process has had.
pub(crate) fn own_cpu() -> Duration {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(cpu.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(cpu.tv_nsec).unwrap_or_default())
}
