//! How much one bearer, or one stranger, may ask.
//!
//! Requests are limited per token. Failed authentications are limited per peer network, and a token that is known is
//! never refused for somebody else's failures: behind a proxy all callers share an address, and a stranger must not be
//! able to lock them out. Guessing 32 random bytes is hopeless anyway; the limit keeps the noise down.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;

use confidant_display::debug_without_content;
use governor::clock::{Clock as _, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::error::ApiError;

type Keyed<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

/// The limits of one server.
pub(super) struct Limits {
    /// Per token id; `None` for no limit.
    tokens: Option<Keyed<String>>,
    /// Per network of a peer that could not authenticate.
    failures: Keyed<IpAddr>,
    clock: DefaultClock,
}

impl Limits {
    pub(super) fn new(requests_per_minute: u32) -> Self {
        let tokens = NonZeroU32::new(requests_per_minute).map(|n| RateLimiter::hashmap(Quota::per_minute(n)));
        Self {
            tokens,
            failures: RateLimiter::hashmap(Quota::per_minute(FAILURES)),
            clock: DefaultClock::default(),
        }
    }

    /// Counts a request of a known token.
    pub(super) fn admit(&self, token_id: &str) -> Result<(), ApiError> {
        let Some(tokens) = &self.tokens else { return Ok(()) };
        let remedy = "raise server.requests_per_minute";
        self.count(tokens, &token_id.to_owned(), "too many requests with this token", remedy)
    }

    /// Counts a failed authentication.
    pub(super) fn strike(&self, peer: Option<SocketAddr>) -> Result<(), ApiError> {
        let remedy = "use a valid token; the administrator's is in confidant-data/admin.token";
        self.count(&self.failures, &network(peer), "too many failed attempts from your address", remedy)
    }

    fn count<K: Clone + Eq + std::hash::Hash>(
        &self,
        limiter: &Keyed<K>,
        key: &K,
        message: &'static str,
        remedy: &str,
    ) -> Result<(), ApiError> {
        if limiter.len() > REMEMBERED {
            limiter.retain_recent();
        }
        limiter.check_key(key).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            ApiError::too_many(message, wait.as_secs() + 1, remedy)
        })
    }
}

/// Failed authentications a minute.
const FAILURES: NonZeroU32 = NonZeroU32::new(30).expect("thirty is not zero");
/// How many keys are kept before those that are at rest are let go.
const REMEMBERED: usize = 4096;

/// The peer's address, or for IPv6 its network: whoever has one address there has 2^64 of them.
fn network(peer: Option<SocketAddr>) -> IpAddr {
    match peer.map(|peer| peer.ip().to_canonical()) {
        Some(IpAddr::V6(ip)) => IpAddr::V6(Ipv6Addr::from(u128::from(ip) & !u128::from(u64::MAX))),
        Some(ip) => ip,
        None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

debug_without_content!(Limits);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_own_limit_and_zero_means_none() {
        let limits = Limits::new(2);
        assert!(limits.admit("a").is_ok() && limits.admit("a").is_ok());
        let error = limits.admit("a").unwrap_err();
        assert_eq!((error.status.as_u16(), error.code), (429, "rate_limited"));
        assert!(error.retry_after.is_some_and(|seconds| (1..=31).contains(&seconds)));
        assert!(limits.admit("b").is_ok());
        let unlimited = Limits::new(0);
        assert!((0..10_000).all(|_| unlimited.admit("a").is_ok()));
    }

    #[test]
    fn failures_are_counted_per_network() {
        let limits = Limits::new(0);
        let peer = |text: &str| Some(SocketAddr::new(text.parse().unwrap(), 1));
        for i in 0..FAILURES.get() {
            assert!(limits.strike(peer(&format!("2001:db8::{i:x}"))).is_ok());
        }
        assert!(limits.strike(peer("2001:db8::ffff")).is_err());
        assert!(limits.strike(peer("2001:db8:0:1::1")).is_ok());
        assert!(limits.strike(peer("192.0.2.1")).is_ok());
    }
}
