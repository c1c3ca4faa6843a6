//! What a fuzzer calls: everything that reads bytes of others.

use crate::heard::Heard;
use crate::html;

/// Reads an event as a server might send it, and makes HTML of what it says. Must return for any bytes.
pub fn fuzz_event(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Heard::read(text);
    let _ = html::of(text);
}
