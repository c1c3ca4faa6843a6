//! Erasures that a message asked for. A client that lost the reply sends the message again, and by then something new may
//! have been said, which it did not ask to erase.

use std::sync::Mutex;

use confidant_seal::Tag;
use hashlink::LruCache;

use crate::rights::Receipt;

/// The newest of them in this process: the log that could have remembered is what was erased.
#[derive(Debug)]
pub(crate) struct Forgotten(Mutex<LruCache<(Tag, String), Receipt>>);

impl Default for Forgotten {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(KEPT)))
    }
}

const KEPT: usize = 1024;

impl Forgotten {
    /// What came of a message, if it erased something before.
    pub(super) fn receipt(&self, scope: Tag, request_id: &str) -> Option<Receipt> {
        let mut known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.get(&(scope, request_id.to_owned())).cloned()
    }

    pub(super) fn keep(&self, scope: Tag, request_id: &str, receipt: &Receipt) {
        let mut known = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.insert((scope, request_id.to_owned()), receipt.clone());
    }
}
