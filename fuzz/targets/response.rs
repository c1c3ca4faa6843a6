//! What a client of `/v1/responses` sends is understood or refused, and a refusal has nothing in it that was said; what is understood
//! has no more items than were sent, and a query of theirs.

#![no_main]

use confidant::fuzzing::response;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let outcome = response(input);
    let Ok(mut value) = serde_json::from_slice::<Value>(input) else { return };
    if let Ok((query, before)) = &outcome {
        match value.get("input").expect("understood, so it has some") {
            Value::String(text) => assert!(text == query && *before == 0),
            Value::Array(items) => assert!(*before < items.len()),
            other => panic!("a query from {other}"),
        }
    }
    mark(&mut value, "");
    if let Err(words) = response(&serde_json::to_vec(&value).expect("a value is JSON")) {
        assert!(!words.contains(CANARY), "{words}");
    }
});

const CANARY: &str = "zq7canary7qz";

/// Makes everything that was said recognisable, less the words that decide what an item is.
fn mark(value: &mut Value, name: &str) {
    match value {
        Value::String(text) if !["role", "type"].contains(&name) => text.push_str(CANARY),
        Value::Array(items) => items.iter_mut().for_each(|item| mark(item, "")),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| mark(field, name)),
        _ => {}
    }
}
