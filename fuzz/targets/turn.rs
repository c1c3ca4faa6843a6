//! The body of a turn is understood or refused, and a refusal has nothing in it that was said.

#![no_main]

use confidant::fuzzing::turn;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = turn(input);
    // The same with everything that was said made recognisable: strings of values, not names of fields.
    if let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(input) {
        mark(&mut value);
        if let Err(words) = turn(&serde_json::to_vec(&value).expect("a value is JSON")) {
            assert!(!words.contains(CANARY), "{words}");
        }
    }
});

const CANARY: &str = "zq7canary7qz";

fn mark(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => text.push_str(CANARY),
        serde_json::Value::Array(items) => items.iter_mut().for_each(mark),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(mark),
        _ => {}
    }
}
