//! Whatever is said on the bus in plain words: a request is about the one tenant that plain requests are about and asks for
//! a turn or nothing, a refusal quotes nothing, and a response that was read and written is read as the same.

#![no_main]

use confidant_engine::{fuzzing::bus_request, fuzzing::bus_response};
use libfuzzer_sys::fuzz_target;

const CANARY: &str = "zq7canary7qz";

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input).replace('?', CANARY);
    match bus_request(text.as_bytes()) {
        Ok((session, query)) => {
            assert!(session.is_some());
            assert!(query.is_empty() || text.contains('"'));
        }
        Err(words) => assert!(!words.contains(CANARY), "{words}"),
    }
    if let Some((name, Some(json))) = bus_response(input) {
        let (again, json_again) = bus_response(&json).expect("what we wrote");
        assert_eq!((again, json_again), (name, Some(json)));
    }
});
