//! The clocks, and what a turn costs by them.
//!
//! CPU time is the whole process's, all threads together. Means are over a whole block, so that what happens now and
//! then (a WAL checkpoint, a fold, a background write) is in them; medians are of single turns. Nothing but the two
//! clocks is read between turns: `/proc/self/io` would cost as much as a turn.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// What one turn costs, in the shape that `bench/peers` print.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cost {
    turns: usize,
    /// Mean over the block: the amortised figure.
    pub(crate) cpu_ms: f64,
    pub(crate) cpu_p50_ms: f64,
    /// Median.
    pub(crate) wall_ms: f64,
    wall_mean_ms: f64,
    /// Bytes passed to write calls, mean over the block.
    pub(crate) wchar: u64,
}

/// Measures turns one after another.
#[derive(Debug)]
pub(crate) struct Meter {
    block: Reading,
    wchar: u64,
    began: Reading,
    samples: Vec<Sample>,
}

/// The cost of a single turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    cpu: Duration,
    wall: Duration,
}

impl Meter {
    /// Begins a block.
    pub(crate) fn start() -> Result<Self> {
        let wchar = wchar()?;
        let now = Reading::now();
        Ok(Self { block: now, wchar, began: now, samples: Vec::with_capacity(4096) })
    }

    /// A turn begins.
    pub(crate) fn begin(&mut self) {
        self.began = Reading::now();
    }

    /// The turn that began last ends.
    pub(crate) fn end(&mut self) {
        self.samples.push(Reading::now().since(self.began));
    }

    /// Ends the block: the cost of one of its turns, and every turn by itself.
    pub(crate) fn finish(self) -> Result<(Cost, Vec<Sample>)> {
        let block = Reading::now().since(self.block);
        let written = wchar()? - self.wchar;
        let turns = self.samples.len().max(1);
        let each = |total: Duration| rounded(millis(total) / turns as f64);
        let cost = Cost {
            turns,
            cpu_ms: each(block.cpu),
            cpu_p50_ms: median(self.samples.iter().map(|sample| sample.cpu)),
            wall_ms: median(self.samples.iter().map(|sample| sample.wall)),
            wall_mean_ms: each(self.samples.iter().map(|sample| sample.wall).sum()),
            wchar: written / turns as u64,
        };
        Ok((cost, self.samples))
    }
}

/// CPU milliseconds of some of a block's turns: mean and median.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Share {
    turns: usize,
    cpu_ms: f64,
    cpu_p50_ms: f64,
}

impl Share {
    pub(crate) fn of(samples: &[Sample]) -> Self {
        let total: Duration = samples.iter().map(|sample| sample.cpu).sum();
        let turns = samples.len();
        let cpu_ms = rounded(millis(total) / turns.max(1) as f64);
        Self { turns, cpu_ms, cpu_p50_ms: median(samples.iter().map(|sample| sample.cpu)) }
    }
}

/// The round whose mean CPU time is the median one: a busy neighbour spoils a round, not the result.
pub(crate) fn middle<T>(mut rounds: Vec<T>, cost: impl Fn(&T) -> f64) -> Option<T> {
    rounds.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    let middle = rounds.len() / 2;
    rounds.into_iter().nth(middle)
}

/// Milliseconds to a tenth of a microsecond: finer would pretend.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The median, in milliseconds.
pub(crate) fn median(durations: impl Iterator<Item = Duration>) -> f64 {
    let mut all: Vec<Duration> = durations.collect();
    all.sort_unstable();
    all.get(all.len() / 2).map_or(0.0, |middle| rounded(millis(*middle)))
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    cpu: Duration,
    wall: Instant,
}

impl Reading {
    pub(crate) fn now() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = u64::try_from(cpu.tv_sec).unwrap_or_default();
        let nanos = u32::try_from(cpu.tv_nsec).unwrap_or_default();
        Self { cpu: Duration::new(seconds, nanos), wall: Instant::now() }
    }

    pub(crate) fn since(self, before: Self) -> Sample {
        Sample { cpu: self.cpu.saturating_sub(before.cpu), wall: self.wall - before.wall }
    }
}

impl Sample {
    pub(crate) fn cpu_ms(self) -> f64 {
        millis(self.cpu)
    }

    pub(crate) fn wall_ms(self) -> f64 {
        millis(self.wall)
    }
}

/// CPU milliseconds of a fixed piece of work (PBKDF2, 100 000 rounds): if it changes, the machine did.
pub(crate) fn calibrate() -> f64 {
    let before = Reading::now();
    std::hint::black_box(confidant_seal::MasterKey::random().root());
    rounded(Reading::now().since(before).cpu_ms())
}

/// Bytes that this process has passed to write calls. Pages of the WAL index, which are mapped, do not count.
pub(crate) fn wchar() -> Result<u64> {
    let io = std::fs::read_to_string("/proc/self/io").context("/proc/self/io")?;
    let line =
        io.lines().find_map(|line| line.strip_prefix("wchar: ")).context("no wchar in /proc/self/io")?;
    Ok(line.trim().parse()?)
}
