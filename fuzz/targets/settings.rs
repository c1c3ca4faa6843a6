//! A settings file is understood or refused with a place and a hint, twice the same way; a refusal has no value in it.

#![no_main]

use confidant::fuzzing::settings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // A value that stands out, wherever the input has a question mark.
    let text = text.replace('?', CANARY);
    let outcome = settings(&text);
    assert_eq!(settings(&text), outcome);
    if let Err(words) = outcome {
        assert!(words.starts_with("confidant.toml") || words.starts_with("configuration"), "{words}");
        assert!(words.contains("; hint: "), "{words}");
        assert!(!words.contains(CANARY) || is_key(&text), "{words}");
    }
});

const CANARY: &str = "zq7canary7qz";

/// Names are repeated in errors, so that they can be found; only values are not.
fn is_key(text: &str) -> bool {
    text.lines().any(|line| {
        let name = line.split('=').next().unwrap_or_default();
        line.trim_start().starts_with('[') && line.contains(CANARY) || name.contains(CANARY)
    })
}
