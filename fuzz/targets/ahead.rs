//! What is read ahead for devices, from a Redis that anybody may have written to: no reader panics, and a list has one form.

#![no_main]

use confidant::fuzzing::ahead;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some(written) = ahead(input) else { return };
    assert_eq!(written, input, "what is read is what was written, whole");
    // Cut anywhere, it is a shorter list or nothing.
    for end in 0..input.len().min(256) {
        if let Some(shorter) = ahead(&input[..end]) {
            assert_eq!(shorter, input[..end]);
        }
    }
});
