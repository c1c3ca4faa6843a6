//! What an OpenAI client sends, tools and their results included, is understood or refused, and a refusal has nothing in it that
//! was said; a query that is understood stands in the body.

#![no_main]

use confidant::fuzzing::chat;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let outcome = chat(input);
    let Ok(mut value) = serde_json::from_slice::<Value>(input) else { return };
    if let Ok((query, before)) = &outcome {
        let messages = value.get("messages").and_then(Value::as_array).expect("understood, so it has some");
        assert!(*before < messages.len());
        let role = |message: &Value| message.get("role").and_then(Value::as_str).map(str::to_owned);
        let last = messages.last().and_then(role).expect("it has a role");
        assert!(last == "user" || last == "tool", "{last}");
        let of_user = messages.iter().rev().find(|message| role(message).is_some_and(|role| role == "user"));
        match of_user.map(|message| message.get("content").expect("it has a content")) {
            // Only results: they say by themselves where they belong.
            None => assert!(query.is_empty()),
            Some(Value::String(text)) => assert_eq!(text, query),
            Some(Value::Array(parts)) => {
                let is_text = |part: &&Value| part.get("type").and_then(Value::as_str) == Some("text");
                let texts = parts.iter().filter(is_text).filter_map(|part| part.get("text")?.as_str());
                let texts: Vec<&str> = texts.collect();
                // An image or a file has a line of its own.
                match texts.len() == parts.len() {
                    true => assert_eq!(&texts.join("\n"), query),
                    false => assert!(texts.iter().all(|text| query.contains(text))),
                }
            }
            Some(other) => panic!("a query from {other}"),
        }
    }
    mark(&mut value, "");
    if let Err(words) = chat(&serde_json::to_vec(&value).expect("a value is JSON")) {
        assert!(!words.contains(CANARY), "{words}");
    }
});

const CANARY: &str = "zq7canary7qz";

/// Makes everything that was said recognisable, less the words that decide what a message is.
fn mark(value: &mut Value, name: &str) {
    match value {
        Value::String(text) if !["role", "type"].contains(&name) => text.push_str(CANARY),
        Value::Array(items) => items.iter_mut().for_each(|item| mark(item, "")),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| mark(field, name)),
        _ => {}
    }
}
