//! What the engine counts of itself, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Things counted since the start, by the engine itself.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: Counter,
    pub(crate) answered: Counter,
    pub(crate) failed: Counter,
    pub(crate) paused: Counter,
    pub(crate) cancelled: Counter,
    pub(crate) tool_calls: Counter,
    pub(crate) flagged: Counter,
    pub(crate) replayed: Counter,
    pub(crate) resumed: Counter,
    pub(crate) degraded: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) erased: Counter,
    pub(crate) concepts_captured: Counter,
    pub(crate) contexts_failed: Counter,
    pub(crate) warm: Counter,
    pub(crate) cold: Counter,
    pub(crate) history_known: Counter,
    pub(crate) history_asked: Counter,
    pub(crate) unopened: Counter,
    pub(crate) took: Took,
}

/// One count.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// How long turns ran.
#[derive(Debug, Default)]
pub(crate) struct Took {
    counts: [Counter; TurnTimes::BOUNDS_MS.len() + 1],
    total_ms: AtomicU64,
}

impl Took {
    pub(crate) fn add(&self, took: Duration) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let at = TurnTimes::BOUNDS_MS.partition_point(|bound| *bound < ms);
        if let Some(count) = self.counts.get(at) {
            count.add();
        }
        self.total_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn read(&self) -> TurnTimes {
        let mut counts = [0; TurnTimes::BOUNDS_MS.len() + 1];
        for (read, count) in counts.iter_mut().zip(&self.counts) {
            *read = count.0.load(Ordering::Relaxed);
        }
        TurnTimes { counts, total_ms: self.total_ms.load(Ordering::Relaxed) }
    }
}

/// How long turns ran, from when they were taken on to their end, an answer or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnTimes {
    /// How many took up to each of [`TurnTimes::BOUNDS_MS`], and longer than the one before it; the last, longer than all.
    pub counts: [u64; Self::BOUNDS_MS.len() + 1],
    /// All of them together, in milliseconds.
    pub total_ms: u64,
}

impl TurnTimes {
    /// Upper bounds, in milliseconds.
    pub const BOUNDS_MS: [u64; 14] =
        [50, 100, 250, 500, 1000, 2000, 3000, 5000, 8000, 12_000, 20_000, 30_000, 60_000, 120_000];
}

/// What was counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Turns accepted.
    pub accepted: u64,
    /// Turns answered.
    pub answered: u64,
    /// Turns that ended without an answer.
    pub failed: u64,
    /// Times that a turn stopped to wait for an approval.
    pub paused: u64,
    /// Turns that were cancelled.
    pub cancelled: u64,
    /// Tools called.
    pub tool_calls: u64,
    /// Conversations marked for somebody to look at.
    pub flagged: u64,
    /// Turns that were answered from the log, since they had been answered before.
    pub replayed: u64,
    /// Turns that were cut off and taken up again.
    pub resumed: u64,
    /// Turns answered without memory, since it could not be opened.
    pub degraded: u64,
    /// Writes that lost to another process and were tried again.
    pub conflicts: u64,
    /// Sessions erased.
    pub erased: u64,
    /// Turns whose concepts came into scope.
    pub concepts_captured: u64,
    /// Times that concepts in scope could not be loaded, described or saved.
    pub contexts_failed: u64,
    /// Turns that found the log of their session in memory.
    pub warm: u64,
    /// Turns that had to open the log of their session from the store.
    pub cold: u64,
    /// Turns of sealed chats for which the server still had the history that the device has.
    pub history_known: u64,
    /// Times that a device was asked for the history of a sealed chat, since the server had none, or another.
    pub history_asked: u64,
    /// Times that the key or the log of a session did not open.
    pub unopened: u64,
    /// How long turns ran.
    pub took: TurnTimes,
    /// Turns running now.
    pub running: u64,
}

impl Counters {
    pub(crate) fn read(&self, running: u64) -> Counts {
        let get = |counter: &Counter| counter.0.load(Ordering::Relaxed);
        Counts {
            accepted: get(&self.accepted),
            answered: get(&self.answered),
            failed: get(&self.failed),
            paused: get(&self.paused),
            cancelled: get(&self.cancelled),
            tool_calls: get(&self.tool_calls),
            flagged: get(&self.flagged),
            replayed: get(&self.replayed),
            resumed: get(&self.resumed),
            degraded: get(&self.degraded),
            conflicts: get(&self.conflicts),
            erased: get(&self.erased),
            concepts_captured: get(&self.concepts_captured),
            contexts_failed: get(&self.contexts_failed),
            warm: get(&self.warm),
            cold: get(&self.cold),
            history_known: get(&self.history_known),
            history_asked: get(&self.history_asked),
            unopened: get(&self.unopened),
            took: self.took.read(),
            running,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_under_the_first_bound_that_it_does_not_pass() {
        let took = Took::default();
        for ms in [0, 50, 51, 120_000, 120_001] {
            took.add(Duration::from_millis(ms));
        }
        let read = took.read();
        assert_eq!((read.counts[0], read.counts[1], read.counts[13], read.counts[14]), (2, 1, 1, 1));
        assert_eq!((read.counts.iter().sum::<u64>(), read.total_ms), (5, 240_102));
    }
}
