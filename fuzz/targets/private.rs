//! Private parts are gone after one look, whatever stands around them; a text without marks stays as it is.

#![no_main]

use confidant_memory::private::without;
use libfuzzer_sys::fuzz_target;

const CANARY: &str = "zq7canary7qz";

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let left = without(text);
    assert_eq!(without(&left), left);
    assert!(left.len() <= text.len());
    if !text.to_ascii_lowercase().contains("private") {
        assert_eq!(left, text);
    }
    // What comes behind a mark that is never closed is gone, unless the text before has it too.
    let before = text.replace('<', "");
    if !before.contains(CANARY) {
        assert!(!without(&format!("{before}<private>{CANARY}")).contains(CANARY));
    }
});
