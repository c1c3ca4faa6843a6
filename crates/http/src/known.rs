//! Tokens that were looked up a while ago, for turns while the store is out of reach.
//!
//! Tokens are in the store, so without this nobody could be answered when it is away, with or without memory (promise 8). What
//! is remembered is used only when a look-up cannot be made, and only for turns, which then have no memory to give away. A
//! look-up that works always decides. Tokens are remembered as keyed hashes, under a key that ends with the process.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use confidant_display::debug_without_content;
use confidant_engine::access::Bearer;
use parking_lot::{Mutex, MutexGuard};
use ring::hmac;

/// The tokens that a server has seen.
pub(super) struct Known {
    key: hmac::Key,
    seen: Mutex<HashMap<[u8; 32], (Bearer, Instant)>>,
}

impl Known {
    pub(super) fn new() -> Self {
        let mut secret = zeroize::Zeroizing::new([0; 32]);
        // Without randomness there would be no tokens to begin with.
        let _ = getrandom::fill(&mut *secret);
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &*secret), seen: Mutex::default() }
    }

    /// The store knows this token now.
    pub(super) fn remember(&self, token: &str, bearer: &Bearer, now: Instant) {
        let name = self.name(token);
        let mut seen = self.lock();
        if seen.len() >= MOST && !seen.contains_key(&name) {
            seen.retain(|_, (_, at)| now.duration_since(*at) < STANDS);
            let oldest = seen.iter().min_by_key(|(_, (_, at))| *at).map(|(name, _)| *name);
            if let Some(oldest) = oldest.filter(|_| seen.len() >= MOST) {
                seen.remove(&oldest);
            }
        }
        seen.insert(name, (bearer.clone(), now));
    }

    /// The store does not know it any more.
    pub(super) fn forget(&self, token: &str) {
        self.lock().remove(&self.name(token));
    }

    /// Whose it was when it was looked up last, if that is not long ago.
    pub(super) fn recall(&self, token: &str, now: Instant) -> Option<Bearer> {
        let (bearer, at) = self.lock().get(&self.name(token)).cloned()?;
        (now.duration_since(at) < STANDS).then_some(bearer)
    }

    fn name(&self, token: &str) -> [u8; 32] {
        let mut name = [0; 32];
        name.copy_from_slice(hmac::sign(&self.key, token.as_bytes()).as_ref());
        name
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], (Bearer, Instant)>> {
        self.seen.lock()
    }
}

debug_without_content!(Known);

/// How long after its last look-up a token is good for turns without one. docs/OPERATIONS.md says so.
const STANDS: Duration = Duration::from_secs(300);
const MOST: usize = 4096;

#[cfg(test)]
mod tests {
    use confidant_engine::TenantId;
    use confidant_engine::access::Role;
    use confidant_engine::clock::Millis;

    use super::*;

    #[test]
    fn a_token_is_remembered_for_a_while_and_only_as_long_as_the_store_knew_it() {
        let (known, now) = (Known::new(), Instant::now());
        let tenant = TenantId::new("acme").unwrap();
        let bearer = |n: usize| Bearer {
            token_id: n.to_string(),
            tenant: tenant.clone(),
            role: Role::Agent,
            created_at: Millis(0),
        };
        known.remember("a", &bearer(1), now);
        assert_eq!(known.recall("a", now), Some(bearer(1)));
        assert_eq!((known.recall("b", now), known.recall("a", now + STANDS)), (None, None));
        known.forget("a");
        assert_eq!(known.recall("a", now), None);
        for n in 0..=MOST {
            known.remember(&n.to_string(), &bearer(n), now + Duration::from_millis(n as u64));
        }
        assert_eq!(known.lock().len(), MOST);
        assert_eq!((known.recall("0", now), known.recall("1", now)), (None, Some(bearer(1))));
        assert!(!format!("{known:?}").contains("acme"));
    }
}
