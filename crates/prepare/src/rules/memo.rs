//! What was found out about texts lately. Every message is the message of a turn once and an earlier one of the turns after
//! it, and what the patterns say of it stays the same.
//!
//! Kept are scores by a keyed hash of the text, never a text; the keys are of this process alone.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

use hashlink::LruCache;
use parking_lot::Mutex;

use super::Said;

/// What is looked at once for each text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Score {
    /// How near it comes to harm.
    Heat,
    /// How likely it tries to take the agent over.
    Injection,
}

/// A score of a text: the one that is known, or the one that `look` finds.
pub(super) fn score(said: &Said<'_>, score: Score, look: impl FnOnce() -> f32) -> f32 {
    let key = (said.raw.len(), KEYS.each_ref().map(|key| key.hash_one(said.raw)));
    if let Some(known) = known().get(&key).and_then(|scores| scores[score as usize]) {
        return known;
    }
    let found = look();
    let mut known = known();
    match known.get_mut(&key) {
        Some(scores) => scores[score as usize] = Some(found),
        None => {
            let mut scores = [None; 2];
            scores[score as usize] = Some(found);
            known.insert(key, scores);
        }
    }
    found
}

type Known = LruCache<(usize, [u64; 2]), [Option<f32>; 2]>;

fn known() -> parking_lot::MutexGuard<'static, Known> {
    KNOWN.lock()
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(|| Mutex::new(LruCache::new(MOST)));
static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// Some hundred conversations' worth.
const MOST: usize = 4096;
