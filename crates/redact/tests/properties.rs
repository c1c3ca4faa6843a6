//! What holds for every input.

use confidant_redact::{Numbering, Options, Redactor};
use proptest::prelude::*;
use serde_json::json;

fn redactor() -> Redactor {
    Redactor::new(Options::default()).expect("no lists of words were given")
}

proptest! {
    #[test]
    fn places_exist_and_twice_is_once(text in "(password|token|key|Bearer|@|=|: |\"|\n|\\\\n|%40|[a-zA-Z0-9]{1,24}|[0-9 .-]{1,14}|\u{200b}|\u{e9}){0,24}") {
        let redactor = redactor();
        let redacted = redactor.redact_text(&text);
        let mut end = 0;
        for finding in &redacted.findings {
            prop_assert!(end <= finding.start && finding.start < finding.end && finding.end <= text.chars().count());
            end = finding.end;
        }
        prop_assert_eq!(&redactor.redact_text(&redacted.text).text, &redacted.text);
    }
}

#[test]
fn json_is_redacted_in_every_leaf_and_key() {
    let nested = json!({ "log": ["Authorization: Basic amFuZTpodW50ZXIy"] }).to_string();
    let value = json!({
        "jane@example.org": 1,
        "john@example.org": 2,
        "card": 4_111_111_111_111_111_u64,
        "env": [{ "name": "DB_PASSWORD", "value": "tr0ub4dor&3" }],
        "body": nested,
    });
    let redacted = redactor().redact_json(&value);
    let text = redacted.value.to_string();
    for secret in ["jane", "john", "4111", "tr0ub4dor", "amFuZTp"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert!(redacted.blocked);
    assert_eq!(redacted.value.as_object().unwrap().len(), 5);
    assert!(redacted.findings.iter().all(|finding| !finding.path.as_ref().unwrap().contains("jane")));
}

#[test]
fn numbers_are_of_the_document() {
    let mut options = Options::default();
    options.numbering = Numbering::PerDocument;
    let redacted = Redactor::new(options).unwrap().redact_json(&json!(["a@x.org", "b@x.org", "a@x.org"]));
    assert_eq!(redacted.value, json!(["<REDACTED:EMAIL:1>", "<REDACTED:EMAIL:2>", "<REDACTED:EMAIL:1>"]));
}

#[test]
fn disguises_and_wrappings_do_not_help() {
    let cases = [
        "j\u{200b}ane@exam\u{ad}ple.org",
        "\u{ff4a}\u{ff41}\u{ff4e}\u{ff45}\u{ff20}example.org",
        "jane%40example.org",
        "{\\\"to\\\":\\\"jane\\u0040example.org\\\"}",
        "bWFpbCBpcyBqYW5lQGV4YW1wbGUub3JnIHllcw==",
        "4111\u{a0}1111\u{a0}1111\u{a0}1111",
        "curl \\\n  -H 'Authorization: Basic amFuZTpodW50ZXIy'",
    ];
    for case in cases {
        assert!(!redactor().redact_text(case).findings.is_empty(), "{case:?}");
    }
}

/// Inputs made to be slow take time in proportion to their length.
#[test]
fn long_repetitions_are_scanned() {
    let redactor = redactor();
    for unit in [
        "key=",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "a@",
        "kty:\"EC\" ",
        "0 ",
        "eyJ",
        "Authorization: ",
        "::",
        "1-",
    ] {
        // Quadratic work would take hours here.
        let _ = redactor.redact_text(&unit.repeat(400_000 / unit.len()));
    }
}
