//! One level of base64.
//!
//! A run of base64 that decodes to text is scanned as text; what is found there condemns the whole run. Runs are
//! bounded, so that a megabyte of picture costs no more than a look at its first bytes.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The runs of base64 in a text that decode to text, with what they decode to.
pub(crate) fn base64_texts(text: &[u8]) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + LEAST <= text.len() {
        // A run from here covers the next bytes, all of them: from their end, most words are skipped at one look.
        let rest = &text[at..at + LEAST];
        if let Some(gap) = rest.iter().rposition(|byte| !(is_base64(*byte) || *byte == b'=')) {
            at += gap + 1;
            continue;
        }
        if !is_base64(text[at]) {
            at += 1;
            continue;
        }
        let end = run_end(text, at);
        if let Some(decoded) = decode(&text[at..end.min(at + MOST)]) {
            found.push((at..end, decoded));
        }
        at = end;
    }
    found
}

/// Decodes text that may be base64 of either alphabet, with or without padding or line breaks.
pub(crate) fn decode(run: &[u8]) -> Option<String> {
    let start: Vec<u8> = run.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(PROBE).collect();
    // Most runs are no text, and their first bytes tell.
    readable(decode_bytes(&start)?)?;
    let mut packed: Vec<u8> = run.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let padding = packed.iter().rev().take_while(|byte| **byte == b'=').count();
    packed.truncate(packed.len() - padding);
    if packed.len() % 4 == 1 {
        packed.pop();
    }
    readable(decode_bytes(&packed)?)
}

fn decode_bytes(packed: &[u8]) -> Option<Vec<u8>> {
    let url = packed.iter().any(|byte| matches!(byte, b'-' | b'_'));
    let alphabet = if url { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config).decode(packed).ok()
}

fn readable(bytes: Vec<u8>) -> Option<String> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            // A character may be cut at the end of a bounded run.
            let good = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            if bytes.len() - good > 3 {
                return None;
            }
            bytes.truncate(good);
            String::from_utf8(bytes).ok()?
        }
    };
    let odd = text.chars().filter(|c| c.is_control() && !c.is_whitespace()).count();
    (odd == 0 && !text.is_empty()).then_some(text)
}

/// The end of the run, over line breaks between full lines.
fn run_end(text: &[u8], at: usize) -> usize {
    let mut end = at;
    let mut line = 0;
    while let Some(&byte) = text.get(end) {
        if is_base64(byte) || byte == b'=' {
            line += 1;
            end += 1;
            continue;
        }
        let step = match text[end..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            _ => break,
        };
        if line < FULL_LINE || !text.get(end + step).is_some_and(|byte| is_base64(*byte)) {
            break;
        }
        line = 0;
        end += step;
    }
    end.max(at + 1)
}

fn is_base64(byte: u8) -> bool {
    BASE64[usize::from(byte)]
}

static BASE64: [bool; 256] = {
    let mut such = [false; 256];
    let mut byte = 0u8;
    while byte < 128 {
        such[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
        byte += 1;
    }
    such
};

/// Shorter ones hold nothing that the rules would know.
const LEAST: usize = 20;
const MOST: usize = 16 * 1024;
const PROBE: usize = 32;
const FULL_LINE: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_and_other_bytes_are_not() {
        let text = b"x: bXkgbWFpbCBpcyBqb2huQGV4YW1wbGUuY29t, /////////////////////////w==";
        let found = base64_texts(text);
        assert_eq!(found, [(3..39, "my mail is john@example.com".to_owned())]);
    }
}
