use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn trimmed(framing: Framing, longest: usize, input: &[u8], chunk: usize) -> Result<Vec<u8>, Overrun> {
    let mut trim = Trim::new(framing, longest, Arc::default());
    let mut output = Vec::new();
    for chunk in input.chunks(chunk) {
        trim.take(chunk, &mut output)?;
    }
    Ok(output)
}

fn parsed(longest: usize, input: &str) -> Value {
    let output = trimmed(Framing::Lines, longest, format!("{input}\n").as_bytes(), 7).unwrap();
    serde_json::from_slice(&output)
        .unwrap_or_else(|_| panic!("{input} became {}", String::from_utf8_lossy(&output)))
}

#[test]
fn long_strings_are_cut_where_a_character_ends() {
    for (text, cut) in [
        (r#""abcdef""#, "abcd"),
        (r#""abcd""#, "abcd"),
        (r#""""#, ""),
        // A character is kept whole that began before the limit.
        ("\"abcéf\"", "abcé"),
        ("\"abc😀f\"", "abc😀"),
        (r#""abc\"de""#, "abc\""),
        (r#""abcd\"e""#, "abcd"),
        (r#""abcd\\""#, "abcd"),
        (r#""abc\\""#, "abc\\"),
        (r#""abc\u00e9f""#, "abcé"),
        (r#""abc\ud83d\ude00f""#, "abc😀"),
        (r#""abcde\u00e9\"\\f""#, "abcd"),
        (r#""\n\n\n\n\n\n""#, "\n\n\n\n"),
    ] {
        let message = format!(r#"{{"r":[{text},"b"],"id":7}}"#);
        assert_eq!(parsed(4, &message), json!({"r": [cut, "b"], "id": 7}), "{text}");
    }
}

#[test]
fn lists_of_large_messages_are_not_read_to_their_end() {
    let rows: Vec<Value> = (0..200_000).map(|n| json!({"n": n, "text": "row, \"]}"})).collect();
    let message =
        json!({"jsonrpc": "2.0", "result": {"structuredContent": {"rows": rows}, "isError": true}, "id": 7});
    let text = message.to_string();
    assert!(text.len() > 4 * LARGE);
    let output = trimmed(Framing::Lines, 1000, format!("{text}\n{{\"id\":8}}\n").as_bytes(), 4096).unwrap();
    assert!(output.len() < 2 * LARGE);
    let lines: Vec<Value> = output
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["id"], &lines[0]["result"]["isError"], &lines[1]),
        (&7.into(), &true.into(), &json!({"id": 8}))
    );
    let kept = lines[0]["result"]["structuredContent"]["rows"].as_array().unwrap();
    // The last may have been cut itself.
    let whole = kept.len() - 1;
    assert!(whole > 1000 && kept[..whole] == rows[..whole]);
}

#[test]
fn ten_megabytes_of_text_leave_little() {
    let message = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "x".repeat(10 << 20)}]}});
    let output = trimmed(Framing::Lines, 1000, format!("{message}\n").as_bytes(), 65536).unwrap();
    let value: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(value["result"]["content"][0]["text"].as_str().unwrap().len(), 1000);
}

#[test]
fn what_stays_too_long_is_an_error() {
    // No string is long and no list is deep enough to be cut.
    let flat = format!("{{{}\n", r#""a":1,"#.repeat(1 << 20));
    assert_eq!(trimmed(Framing::Lines, 10, flat.as_bytes(), 65536), Err(Overrun::TooLong));
    assert_eq!(trimmed(Framing::Whole, 10, flat.as_bytes(), 65536), Err(Overrun::TooLong));
    assert_eq!(trimmed(Framing::Events, 10, flat.as_bytes(), 65536), Err(Overrun::TooLong));
    // A string that never ends is not kept, but not read for ever, either.
    let wire = Arc::new(Wire::default());
    let mut trim = Trim::new(Framing::Lines, 10, Arc::clone(&wire));
    let (chunk, mut output) = (vec![b'x'; 1 << 20], vec![]);
    trim.take(b"\"", &mut output).unwrap();
    let ended = (0..65).map(|_| trim.take(&chunk, &mut output)).find(Result::is_err);
    assert_eq!((ended, output.len()), (Some(Err(Overrun::TooLong)), 11));
    assert_eq!(wire.overrun.get(), Some(&Overrun::TooLong));
}

#[test]
fn events_end_with_an_empty_line_however_lines_end() {
    let mut long = "data: [".to_owned();
    long.push_str(&"1,".repeat(3 << 18));
    for end in ["\n\n", "\r\n\r\n", "\r\r"] {
        let events = format!("{long}{end}").repeat(3);
        assert_eq!(trimmed(Framing::Events, 10, events.as_bytes(), 65536).unwrap().len(), events.len());
        let one = format!("{long}{}", &end[..end.len() / 2]).repeat(3);
        assert_eq!(trimmed(Framing::Events, 10, one.as_bytes(), 65536), Err(Overrun::TooLong));
    }
    let output =
        trimmed(Framing::Events, 3, b"event: it's \"\ndata: {\"a\":\ndata: \"abcdef\"}\n\n", 5).unwrap();
    assert_eq!(output, b"event: it's \"\ndata: {\"a\":\ndata: \"abc\"}\n\n");
}

#[test]
fn a_flood_of_messages_is_an_error() {
    let flood = "{}\n".repeat(3000);
    assert_eq!(trimmed(Framing::Lines, 10, flood.as_bytes(), 4096), Err(Overrun::TooMany));
    assert!(trimmed(Framing::Lines, 10, "{}\n".repeat(1000).as_bytes(), 4096).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_pace_is_kept_over_time() {
    let mut pace = Pace::new(3, 2);
    let mut allowed = |count: usize| (0..count).filter(|_| pace.allows(Instant::now())).count();
    assert_eq!(allowed(5), 3);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(allowed(5), 3);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[a-z\"\\\\,\\[\\]{}é😀\n]{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,3}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The same value with strings cut as they may be.
fn agrees(trimmed: &Value, whole: &Value, longest: usize) -> bool {
    match (trimmed, whole) {
        (Value::String(cut), Value::String(text)) => {
            text.starts_with(cut.as_str()) && (cut == text || cut.len() >= longest)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agrees(a, b, longest))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.values().zip(b.values()).all(|(a, b)| agrees(a, b, longest))
        }
        _ => trimmed == whole,
    }
}

/// JSON in which every character is an escape.
fn escaped(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
            format!("\"{}\"", units.collect::<String>())
        }
        Value::Array(all) => format!("[{}]", all.iter().map(escaped).collect::<Vec<_>>().join(",")),
        Value::Object(all) => {
            let all = all.iter().map(|(key, value)| format!("{}:{}", json!(key), escaped(value)));
            format!("{{{}}}", all.collect::<Vec<_>>().join(","))
        }
        _ => value.to_string(),
    }
}

proptest! {
    #[test]
    fn any_message_still_parses_and_has_its_id(value in any_json(), longest in 3usize..20, chunk in 1usize..9, escape: bool) {
        let text = if escape { escaped(&value) } else { value.to_string() };
        let input = format!("{{\"r\":{text},\"id\":7}}\n");
        let output = trimmed(Framing::Lines, longest, input.as_bytes(), chunk).unwrap();
        let parsed: Value = serde_json::from_slice(&output).unwrap();
        prop_assert_eq!(&parsed["id"], 7);
        prop_assert!(agrees(&parsed["r"], &value, longest), "{} {}", parsed, value);
    }

    #[test]
    fn what_is_short_is_not_touched(value in any_json()) {
        let input = format!("{value}\n");
        prop_assert_eq!(trimmed(Framing::Lines, 10_000, input.as_bytes(), 5).unwrap(), input.as_bytes());
    }

    #[test]
    fn anything_at_all_is_no_more_than_it_was(input in prop::collection::vec(any::<u8>(), 0..400), framing in 0..3) {
        let framing = [Framing::Lines, Framing::Events, Framing::Whole][framing as usize];
        let output = trimmed(framing, 5, &input, 3).unwrap();
        prop_assert!(output.len() <= input.len());
        let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(lines(&output), lines(&input));
    }
}
