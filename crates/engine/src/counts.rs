//! What the engine counts of itself, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

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
}

/// One count.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
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
            running,
        }
    }
}
