//! Labelled texts in disguise.

use base64::Engine as _;
use confidant_redact::Redacted;

use super::Case;

/// One way to write a text such that a reader, or a program, still gets it.
pub(crate) struct Disguise {
    pub(crate) name: &'static str,
    pub(crate) of: fn(&str) -> String,
    /// Whether each part of a text is disguised by itself, so that a value can be looked for in what is left.
    by_parts: bool,
}

pub(crate) const ALL: &[Disguise] = &[
    Disguise { name: "disguise: zero width", of: zero_width, by_parts: true },
    Disguise { name: "disguise: full width", of: full_width, by_parts: true },
    Disguise { name: "disguise: no break", of: no_break, by_parts: true },
    Disguise { name: "disguise: escaped", of: escaped, by_parts: false },
    Disguise { name: "disguise: percent", of: percent, by_parts: true },
    Disguise { name: "disguise: base64", of: base64, by_parts: false },
];

impl Disguise {
    /// Whether nothing of the labelled values is left; where none is labelled, whether anything was found.
    pub(crate) fn hides(&self, case: &Case, redacted: &Redacted) -> bool {
        let value = |span: &(usize, usize)| -> String {
            case.text.chars().skip(span.0).take(span.1 - span.0).collect()
        };
        let left = |span: &(usize, usize)| redacted.text.contains(&(self.of)(&value(span)));
        let seen = self.by_parts && case.spans.iter().any(left);
        !redacted.findings.is_empty() && !seen
    }
}

fn zero_width(text: &str) -> String {
    text.chars().flat_map(|c| [c, '\u{200b}']).collect()
}

fn full_width(text: &str) -> String {
    let wide =
        |c: char| if c.is_ascii_graphic() { char::from_u32(c as u32 + 0xfee0).unwrap_or(c) } else { c };
    text.chars().map(wide).collect()
}

fn no_break(text: &str) -> String {
    text.replace(' ', "\u{a0}").replace('-', "\u{2011}")
}

/// JSON in JSON, as a string of a log.
fn escaped(text: &str) -> String {
    serde_json::json!({ "message": serde_json::json!({ "text": text }).to_string() }).to_string()
}

fn percent(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(byte).collect()
}

pub(crate) fn base64(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}
