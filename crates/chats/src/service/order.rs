//! The order of an account's news where several gateways make them.
//!
//! ```text
//! next = 7:   8 comes ─▶ held      7 comes ─▶ 7, then 8 are told      9 is known of and does not come ─▶ missing: 9..=9
//! ```
//!
//! A change is told by the gateway that made it, so that a later one may be heard of first. It waits here until those before it
//! are there. What does not come is found out about elsewhere (`gaps`). What comes after its turn is told at once: nothing
//! is lost, and devices know what they have.
//!
//! Easy to get wrong: where to begin. Until somebody has read from the store how far the account is, everything is held.

use std::collections::BTreeMap;

/// News that wait for those before them.
#[derive(Debug)]
pub(super) struct Order<T> {
    /// The number of the next change; unknown until a socket is ready.
    next: Option<u64>,
    /// What came too early, by number.
    held: BTreeMap<u64, Vec<T>>,
    count: usize,
    /// There are changes up to here.
    known: u64,
    /// Whether somebody looks after what is missing.
    pub(super) is_tended: bool,
}

// Derived, it would ask for a default of what is held.
impl<T> Default for Order<T> {
    fn default() -> Self {
        Self { next: None, held: BTreeMap::new(), count: 0, known: 0, is_tended: false }
    }
}

impl<T> Order<T> {
    /// Takes in a change; gives what can be told now.
    pub(super) fn take(&mut self, seq: u64, news: T) -> Vec<T> {
        if self.next.is_some_and(|next| seq < next) {
            return vec![news];
        }
        self.held.entry(seq).or_default().push(news);
        self.count += 1;
        self.follow()
    }

    /// A socket is ready, and its device will load everything up to this change. Gives what can be told now.
    pub(super) fn begin(&mut self, seq: u64) -> Vec<T> {
        if self.next.is_some() {
            return Vec::new();
        }
        // Those up to here may be news to a socket that got ready earlier and says so later.
        let later = self.held.split_off(&seq.saturating_add(1));
        let mut ready: Vec<T> = std::mem::replace(&mut self.held, later).into_values().flatten().collect();
        self.count -= ready.len();
        self.next = Some(seq.saturating_add(1));
        ready.extend(self.follow());
        ready
    }

    /// There are changes up to this one.
    pub(super) fn expect(&mut self, seq: u64) {
        self.known = self.known.max(seq);
    }

    /// The first changes that are missing: from, to.
    pub(super) fn missing(&self) -> Option<(u64, u64)> {
        let next = self.next?;
        let until = self.held.first_key_value().map_or(self.known, |(seq, _)| seq - 1);
        (next <= until).then_some((next, until))
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// What follows without a gap.
    fn follow(&mut self) -> Vec<T> {
        let mut ready = Vec::new();
        while let Some(next) = self.next
            && let Some(news) = self.held.remove(&next)
        {
            self.count -= news.len();
            ready.extend(news);
            self.next = Some(next.saturating_add(1));
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_comes_early_waits_for_those_before_it() {
        let mut order = Order::default();
        assert_eq!(order.take(5, "five"), [""; 0], "nobody knows yet whether it is the next");
        assert_eq!(order.missing(), None);
        assert_eq!(order.begin(3), [""; 0]);
        assert_eq!((order.missing(), order.count()), (Some((4, 4)), 1));
        assert_eq!(order.take(7, "seven"), [""; 0]);
        assert_eq!(order.take(4, "four"), ["four", "five"]);
        assert_eq!(order.missing(), Some((6, 6)));
        assert_eq!(order.take(6, "six"), ["six", "seven"]);
        assert_eq!((order.missing(), order.count()), (None, 0));
        assert_eq!(order.take(4, "four again"), ["four again"], "what is late is told at once");
        order.expect(9);
        assert_eq!(order.missing(), Some((8, 9)));
    }

    #[test]
    fn what_a_ready_socket_will_load_is_told_to_those_that_were_ready_before() {
        let mut order = Order::default();
        assert_eq!(order.take(4, 4), [0; 0]);
        assert_eq!(order.take(6, 6), [0; 0]);
        assert_eq!(order.begin(5), [4, 6]);
        assert_eq!(order.begin(2), [0; 0], "only the first says where to begin");
        assert_eq!(order.take(7, 7), [7]);
        assert_eq!(order.missing(), None);
    }

    #[test]
    fn numbers_at_the_end_of_time_are_numbers() {
        let mut order = Order::default();
        assert_eq!(order.begin(u64::MAX), [0; 0]);
        assert_eq!(order.take(0, 1), [1]);
        assert_eq!(order.take(u64::MAX, 2), [2]);
        let mut order = Order::default();
        assert_eq!(order.begin(1), [0; 0]);
        assert_eq!(order.take(u64::MAX, 1), [0; 0]);
        assert_eq!(order.missing(), Some((2, u64::MAX - 1)));
    }

    proptest! {
        #[test]
        fn everything_is_told_once_and_in_order(
            first in 0_u64..5,
            seqs in Just((1..=40_u64).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut order = Order::default();
            let mut told = order.begin(first);
            for seq in seqs {
                told.extend(order.take(first + seq, first + seq));
            }
            prop_assert_eq!(told, (first + 1..=first + 40).collect::<Vec<_>>());
            prop_assert_eq!((order.missing(), order.count()), (None, 0));
        }
    }
}
