//! Opened pages, up to a bound.
//!
//! Two generations: what is used lands in the young one; when that is full it becomes the old one, and the old one is
//! dropped. That keeps what is used often at the cost of one map look-up, without a list to maintain.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::container::PAGE;

type Generation = HashMap<(u64, u64), Arc<[u8]>>;

/// A cache of opened pages, by container and number.
#[derive(Debug)]
pub(super) struct Pages {
    generations: Mutex<(Generation, Generation)>,
    /// Pages that one generation may hold.
    most: usize,
}

impl Pages {
    /// A cache that holds at most about this many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { generations: Mutex::default(), most: (bytes / PAGE / 2).max(1) }
    }

    pub(super) fn get(&self, container: u64, number: u64) -> Option<Arc<[u8]>> {
        let mut generations = self.generations.lock();
        let (young, old) = &mut *generations;
        if let Some(page) = young.get(&(container, number)) {
            return Some(Arc::clone(page));
        }
        let page = old.remove(&(container, number))?;
        self.insert(young, old, (container, number), Arc::clone(&page));
        Some(page)
    }

    pub(super) fn put(&self, container: u64, number: u64, page: Arc<[u8]>) {
        let mut generations = self.generations.lock();
        let (young, old) = &mut *generations;
        self.insert(young, old, (container, number), page);
    }

    /// Drops all pages of a container.
    pub(super) fn remove(&self, container: u64) {
        let mut generations = self.generations.lock();
        generations.0.retain(|&(of, _), _| of != container);
        generations.1.retain(|&(of, _), _| of != container);
    }

    fn insert(&self, young: &mut Generation, old: &mut Generation, key: (u64, u64), page: Arc<[u8]>) {
        if young.len() >= self.most {
            *old = std::mem::take(young);
        }
        young.insert(key, page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_bounded_and_keeps_what_is_used() {
        let pages = Pages::new(20 * PAGE);
        pages.put(0, 0, Arc::from([7_u8].as_slice()));
        for number in 1..1000 {
            pages.put(1, number, Arc::from([0_u8].as_slice()));
            assert_eq!(pages.get(0, 0).as_deref(), Some([7].as_slice()));
            let generations = pages.generations.lock();
            assert!(generations.0.len() + generations.1.len() <= 20);
        }
        assert_eq!(pages.get(1, 1), None);
        assert!(pages.get(1, 999).is_some());
        pages.remove(1);
        assert_eq!(pages.get(1, 999), None);
        assert!(pages.get(0, 0).is_some());
    }
}
