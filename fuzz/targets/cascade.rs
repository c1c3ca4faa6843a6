//! Whatever Cascade, its supernodes or a registrar answer: a name that goes into a path is a name, a fee is the one that
//! was said, how a task ended does not hang on how the answer came in pieces, and a note that was written is read again.

#![no_main]

use confidant_memory::fuzzing::cascade::{ended_well, fee, is_kept, note, registered, task_name};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const CANARY: &str = "zq7canary7qz";

fuzz_target!(|input: &[u8]| {
    let Some((&first, reply)) = input.split_first() else { return };
    pieces(reply, usize::from(first));
    answers(reply);
    notes(reply);
});

/// Ended well or badly only if the answer says so, and the same in any pieces.
fn pieces(reply: &[u8], size: usize) {
    let whole = ended_well([reply]);
    assert_eq!(ended_well(reply.chunks(size + 1)), whole);
    assert_eq!(ended_well(reply.chunks(1)), whole);
    let says = |word: &[u8]| reply.windows(word.len()).any(|window| window == word);
    match whole {
        // Letters may be written as escapes.
        Some(true) => assert!(says(b"completed") || says(b"\\u")),
        Some(false) => assert!(says(b"fail") || says(b"unavailable") || says(b"\\u")),
        None => {}
    }
}

fn answers(reply: &[u8]) {
    let value: Option<Value> = serde_json::from_slice(reply).ok();
    if let Some(fee) = fee(reply) {
        let said =
            value.as_ref().and_then(|value| value.get("amount")).expect("it said an amount").to_string();
        let digits = said.trim_matches('"').trim_end_matches("ulume").trim_start_matches(['+', '0']);
        assert_eq!(digits, if fee == 0 { String::new() } else { fee.to_string() });
    }
    if let Some(task) = task_name(reply) {
        assert!(is_name(&task) && value.is_some_and(|value| value.to_string().contains(&task)), "{task:?}");
    }
    let _ = is_kept(reply);
}

/// What is kept of a registration can be read, and reading changes nothing; what is refused is not repeated.
fn notes(reply: &[u8]) {
    let printed = String::from_utf8_lossy(reply).replace('?', CANARY);
    match registered(printed.as_bytes(), "0123456789abcdef.bin") {
        Ok(kept) => assert_eq!(note(&kept).as_ref(), Ok(&kept)),
        Err(error) => assert!(!error.to_string().contains(CANARY)),
    }
    match note(&printed) {
        Ok(kept) => {
            assert_eq!(note(&kept).as_ref(), Ok(&kept));
            let kept: Value = serde_json::from_str(&kept).expect("a note is JSON");
            assert!(kept["file_name"].as_str().is_some_and(is_name), "{kept}");
            assert!(
                kept.get("action").is_none_or(|action| action["action_id"].as_str().is_some_and(is_name))
            );
        }
        Err(error) => assert!(!error.to_string().contains(CANARY)),
    }
}

/// Whether it stays one piece of a path, and the piece that it was.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !text.is_empty() && text.len() <= 128 && text.chars().all(plain) && !text.starts_with('.')
}
