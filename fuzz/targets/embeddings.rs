//! What a client wants embedded is understood or refused, and a refusal has nothing in it that was sent; texts that are
//! understood are as many as stand in the body.

#![no_main]

use confidant::fuzzing::embeddings;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let outcome = embeddings(input);
    let Ok(mut value) = serde_json::from_slice::<Value>(input) else { return };
    if let Ok((count, _)) = outcome {
        let expected = match &value["input"] {
            Value::Array(items) if items.iter().any(|item| !item.is_number()) => items.len(),
            _ => 1,
        };
        assert_eq!(count, expected);
    }
    mark(&mut value);
    if let Err(words) = embeddings(&serde_json::to_vec(&value).expect("a value is JSON")) {
        assert!(!words.contains(CANARY), "{words}");
    }
});

const CANARY: &str = "zq7canary7qz";

fn mark(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(CANARY),
        Value::Array(items) => items.iter_mut().for_each(mark),
        Value::Object(fields) => fields.values_mut().for_each(mark),
        _ => {}
    }
}
