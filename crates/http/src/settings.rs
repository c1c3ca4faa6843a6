//! What the operator chose for HTTP.

use std::time::Duration;

use confidant_listener::PlaceLimits;

/// What the operator chose for HTTP.
#[derive(Clone, Copy, Debug)]
pub struct HttpSettings {
    /// The largest body that is read.
    pub max_body_bytes: usize,
    /// The longest that a body or an answer may take, unless the answer is streamed.
    pub request_timeout: Duration,
    /// Requests that a token may make in a minute; 0 for no limit.
    pub requests_per_minute: u32,
    /// How many connections there may be.
    pub places: PlaceLimits,
}
