//! An agent's settings get our hooks or are refused with a hint; with the hooks taken out again, they are what they were.

#![no_main]

use confidant::fuzzing::hooks;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for agent in ["claude-code", "codex", "gemini"] {
        match hooks(agent, text) {
            Ok((with, without)) => {
                assert!(with.contains("memory hook"), "{agent}");
                // Once is enough.
                assert_eq!(hooks(agent, &with).map(|(again, _)| again).as_ref(), Ok(&with), "{agent}");
                // What is empty is nothing, and a last line may get its end.
                let (same, blank) = (without.trim_end() == text.trim_end(), text.trim().is_empty());
                assert!(same || blank || is_ours_or_empty(text), "{agent}: {without}");
            }
            Err(words) => assert!(words.contains("; hint: "), "{words}"),
        }
    }
});

/// Whether our hooks may have been there, or groups without any, which go with them.
fn is_ours_or_empty(text: &str) -> bool {
    let packed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    text.contains("memory hook") || packed.contains("{}") || packed.contains("[]") || packed.contains('/')
}
