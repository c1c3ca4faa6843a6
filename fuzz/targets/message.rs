//! A line of MCP that is JSON means what it meant; another is answered in JSON, to the id that it has, or not at all.

#![no_main]

use confidant::fuzzing::message;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|line: &[u8]| match message(line) {
    Ok(read) => {
        if let Ok(meant) = serde_json::from_slice::<Value>(line) {
            assert_eq!(serde_json::from_slice::<Value>(&read).ok(), Some(meant));
        }
        // What is mended needs no mending.
        assert_eq!(message(&read).as_ref(), Ok(&read));
    }
    Err(refusal) => {
        assert!(serde_json::from_slice::<Value>(line).is_err());
        let refusal: Value = serde_json::from_slice(&refusal).expect("an answer is JSON");
        assert_eq!(refusal["error"]["code"], -32700);
        assert!(refusal["id"].is_string() || refusal["id"].is_number());
    }
});
