//! A receipt is read or refused without a word of it in the refusal, and what was read reads the same again.

#![no_main]

use confidant::fuzzing::receipt;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match receipt(text) {
        Ok(read) => {
            let written = serde_json::to_string(&read).expect("a receipt is JSON");
            assert_eq!(receipt(&written).as_ref(), Ok(&read));
        }
        Err(words) => {
            let fixed = words.replace(|c: char| c.is_ascii_digit(), "");
            assert_eq!(
                fixed,
                "this is not a receipt (line ); hint: give the JSON that the erasure printed, unchanged"
            );
        }
    }
});
