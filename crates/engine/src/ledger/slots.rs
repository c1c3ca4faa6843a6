//! Sessions that are kept warm.

use std::sync::Arc;
use std::time::Duration;

use confidant_seal::{Kid, Tag};
use hashlink::LruCache;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use crate::clock::Millis;
use crate::ledger::log::Log;
use crate::ledger::owed::Owed;
use crate::store::Owner;

/// What is kept warm of a session.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The log at the version that this process last saw.
    pub(crate) log: Option<Log>,
    /// The key of the log that was warm before, for what can only be told later.
    pub(crate) before: Option<Kid>,
    /// Who is answering its open turn, as of then.
    pub(crate) owner: Option<Owner>,
    /// Turns whose concepts are in scope by now, which the log has yet to hear.
    pub(crate) merged: Vec<String>,
}

/// The warm sessions of a process: bounded in number and in time, since each holds a key and plaintext.
#[derive(Debug)]
pub(crate) struct Slots {
    inner: Mutex<LruCache<Tag, Warm>>,
    most: usize,
    idle: Duration,
    /// What the logs of some have yet to hear.
    owed: Owed,
}

#[derive(Debug)]
struct Warm {
    slot: Arc<AsyncMutex<Slot>>,
    used: Millis,
}

impl Slots {
    pub(crate) fn new(most: usize, idle: Duration) -> Self {
        Self { inner: Mutex::new(LruCache::new_unbounded()), most: most.max(1), idle, owed: Owed::default() }
    }

    /// What the logs of sessions have yet to hear.
    pub(crate) fn owed(&self) -> &Owed {
        &self.owed
    }

    /// Lets go of what has been idle for too long.
    pub(crate) fn cool(&self, now: Millis) {
        let mut slots = self.inner.lock();
        let mut gone = Vec::new();
        for (scope, warm) in slots.iter() {
            if warm.used.plus(self.idle) > now && slots.len() - gone.len() <= self.most {
                break;
            }
            // One that is in use stays: dropping it would let a second turn of the session run beside it.
            if Arc::strong_count(&warm.slot) == 1 {
                gone.push(*scope);
            }
        }
        for scope in gone {
            slots.remove(&scope);
        }
    }

    /// Whether a session is warm.
    pub(crate) fn has(&self, scope: Tag) -> bool {
        let slots = self.inner.lock();
        slots.peek(&scope).is_some()
    }

    /// Lets go of one session, as when it was erased.
    pub(crate) fn forget(&self, scope: Tag) {
        self.owed.forget(scope);
        self.inner.lock().remove(&scope);
    }

    /// Lets go of everything.
    pub(crate) fn clear(&self) {
        self.owed.clear();
        self.inner.lock().clear();
    }

    pub(crate) fn slot(&self, scope: Tag, now: Millis) -> Arc<AsyncMutex<Slot>> {
        let slot = {
            let mut slots = self.inner.lock();
            if let Some(warm) = slots.get_mut(&scope) {
                warm.used = now;
                Arc::clone(&warm.slot)
            } else {
                let slot = Arc::new(AsyncMutex::default());
                slots.insert(scope, Warm { slot: Arc::clone(&slot), used: now });
                slot
            }
        };
        self.cool(now);
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(n: u8) -> Tag {
        Tag::from_bytes([n; 16])
    }

    #[test]
    fn one_that_is_in_use_does_not_keep_others_warm() {
        let slots = Slots::new(2, Duration::from_secs(60));
        let in_use = slots.slot(tag(0), Millis(0));
        for n in 1..6 {
            drop(slots.slot(tag(n), Millis(i64::from(n))));
        }
        let warm = |slots: &Slots| (0..6).filter(|n| slots.has(tag(*n))).collect::<Vec<u8>>();
        assert_eq!(warm(&slots), [0, 5]);
        slots.cool(Millis(100_000));
        assert_eq!(warm(&slots), [0]);
        drop(in_use);
        slots.cool(Millis(100_000));
        assert!(warm(&slots).is_empty());
    }

    #[test]
    fn asking_whether_a_session_is_warm_does_not_make_it_newer() {
        let slots = Slots::new(2, Duration::from_secs(60));
        for n in 0..2 {
            drop(slots.slot(tag(n), Millis(0)));
        }
        assert!(slots.has(tag(0)));
        drop(slots.slot(tag(2), Millis(0)));
        assert_eq!([0, 1, 2].map(|n| slots.has(tag(n))), [false, true, true]);
    }
}
