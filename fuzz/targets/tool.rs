//! What a model gives to a tool is understood as it was said or refused, and a refusal has nothing in it that was given;
//! a dry run asked for anywhere is one, and a transcript needs both flags to the letter.

#![no_main]

use std::sync::LazyLock;

use confidant::fuzzing::{prompt, tool, tools};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

static TOOLS: LazyLock<Vec<(String, Vec<String>)>> = LazyLock::new(tools);

const CANARY: &str = "zq7canary7qz";

fuzz_target!(|input: &[u8]| {
    let Some((&choice, json)) = input.split_first() else { return };
    let Ok(mut arguments) = serde_json::from_slice::<Map<String, Value>>(json) else { return };
    let (name, takes) = &TOOLS[usize::from(choice) % TOOLS.len()];
    if let Ok(wish) = tool(name, &arguments) {
        assert!(arguments.keys().all(|name| takes.contains(name)), "{name}");
        agrees(&arguments, &wish);
        bounded(&wish);
        // Nothing and `null` are the same.
        let mut less = arguments.clone();
        less.retain(|_, value| !value.is_null());
        assert_eq!(tool(name, &less).as_ref(), Ok(&wish));
    }
    let task = arguments.get("task").and_then(Value::as_str).map(str::trim);
    if let Ok(prompt) = prompt("recall_before_you_start", &arguments) {
        let task = Value::from(task.expect("it is told what for")).to_string();
        assert!(prompt.contains(task.trim_matches('"')), "{prompt}");
    }
    arguments.values_mut().for_each(mark);
    arguments.insert(CANARY.to_owned(), Value::Null);
    for arguments in [&arguments, &without(&arguments)] {
        let refusals = [tool(name, arguments).err(), prompt(CANARY, arguments).err()];
        for words in refusals.into_iter().flatten() {
            assert!(!words.contains(CANARY), "{words}");
        }
    }
});

/// What was said is what was understood.
fn agrees(arguments: &Map<String, Value>, wish: &Value) {
    let given = |name: &str| arguments.get(name).filter(|value| !value.is_null());
    for name in ["query", "tags", "mode", "limit", "offset", "bytes", "redundancy", "provider"] {
        let (Some(given), Some(read)) = (given(name), wish.get(name)) else { continue };
        assert!(given == read || given.as_f64().is_some_and(|given| read.as_f64() == Some(given)), "{name}");
    }
    let metadata = given("metadata").and_then(object).unwrap_or_default();
    let session = given("session").and_then(object);
    if let Some(id) = wish.get("session_id") {
        let inner = session.as_ref().and_then(|session| session.get("session_id"));
        assert_eq!(Some(id), given("session_id").or(inner));
    }
    if let Some(read) = wish.get("session") {
        assert_eq!(read, &session.map_or(Value::Null, Value::Object));
    }
    if let Some(uri) = wish.get("cascade_uri").and_then(Value::as_str) {
        let given = given("cascade_uri").and_then(Value::as_str).unwrap_or_default().trim();
        assert!(uri == given || uri == given.replacen("memory://", "cascade://", 1), "{uri}");
    }
    let is_true = |value: Option<&Value>| value == Some(&Value::Bool(true));
    if is_true(given("dry_run")) || is_true(metadata.get("dry_run")) {
        assert!(is_true(wish.get("dry_run")));
    }
    if is_true(wish.get("raw")) {
        assert!(is_true(metadata.get("allow_raw_export")));
        assert_eq!(metadata.get("raw_export_ack"), Some(&Value::from("I understand the risk")));
    }
}

fn bounded(wish: &Value) {
    let within = |name: &str, least: u64, most: u64| {
        let count = wish.get(name).and_then(Value::as_u64);
        assert!(count.is_none_or(|count| (least..=most).contains(&count)), "{name}: {count:?}");
    };
    within("limit", 1, 100);
    within("offset", 0, 10_000);
    assert!(wish.get("tags").and_then(Value::as_array).is_none_or(|tags| tags.len() <= 256));
    let hash = wish.get("expect_sha256").and_then(Value::as_str);
    assert!(hash.is_none_or(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit())));
}

/// An object, or a text that is one.
fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

fn mark(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(CANARY),
        Value::Array(items) => items.iter_mut().for_each(mark),
        Value::Object(fields) => {
            fields.values_mut().for_each(mark);
            fields.insert(CANARY.to_owned(), Value::from(CANARY));
        }
        _ => {}
    }
}

fn without(arguments: &Map<String, Value>) -> Map<String, Value> {
    let mut less = arguments.clone();
    less.remove(CANARY);
    less
}
