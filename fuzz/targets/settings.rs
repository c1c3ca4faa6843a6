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
    // Also one inside of a value that is a table.
    let is_name = |c: char| c.is_alphanumeric() || " \t.-_'\"".contains(c);
    let named = text.split(CANARY).skip(1).any(|rest| rest.trim_start_matches(is_name).starts_with('='));
    named || text.lines().any(|line| line.trim_start().starts_with('[') && line.contains(CANARY))
}
