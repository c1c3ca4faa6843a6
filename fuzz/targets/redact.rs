//! Redacting never panics, says places that exist, and changes nothing the second time; a stream gives what the whole
//! gives, and JSON stays JSON. The same bytes in hexadecimal, plain and once more in hexadecimal, reach what reads keys and
//! layers.

#![no_main]

use std::sync::LazyLock;

use confidant_redact::{Options, Redactor, Stream};
use libfuzzer_sys::fuzz_target;

static REDACTOR: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::new(Options::default()).expect("no lists of words were given"));

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let redacted = REDACTOR.redact_text(&text);
    let length = text.chars().count();
    let mut end = 0;
    for finding in &redacted.findings {
        assert!(end <= finding.start && finding.start < finding.end && finding.end <= length, "{finding:?}");
        end = finding.end;
    }
    assert_eq!(REDACTOR.redact_text(&redacted.text).text, redacted.text);

    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let mut stream = Stream::new(&REDACTOR);
    let mut parts = stream.push(&text[..half]) + &stream.push(&text[half..]);
    parts += &stream.finish().text;
    assert_eq!(parts, redacted.text);

    let once = hex(input);
    for text in [format!("key: {once}\n"), hex(once.as_bytes())] {
        let redacted = REDACTOR.redact_text(&text);
        assert_eq!(REDACTOR.redact_text(&redacted.text).text, redacted.text);
    }

    if let Ok(value) = serde_json::from_str(&text) {
        let _ = REDACTOR.redact_json(&value);
    }
});

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
