//! Turns that this process may have left open.

use std::collections::HashSet;

use confidant_seal::Tag;
use parking_lot::Mutex;

/// Sessions of which a write of this process failed while it had a turn of theirs open. It may be open still, and nobody else
/// takes it up, since we are alive.
#[derive(Debug, Default)]
pub(crate) struct LeftOpen(Mutex<HashSet<Tag>>);

impl LeftOpen {
    pub(crate) fn note(&self, scope: Tag) {
        self.0.lock().insert(scope);
    }

    /// Takes those off the list that are due.
    pub(super) fn take(&self, is_due: impl Fn(Tag) -> bool) -> Vec<Tag> {
        let mut left = self.0.lock();
        let due: Vec<Tag> = left.iter().copied().filter(|scope| is_due(*scope)).collect();
        left.retain(|scope| !due.contains(scope));
        due
    }
}
