//! News of other gateways about client-sealed chats: no reader panics, and what is read and written again is read the same.

#![no_main]

use confidant_chats::news::fuzzing::heard;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(text) = std::str::from_utf8(input) {
        heard(text);
    }
});
