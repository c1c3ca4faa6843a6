//! One level of base64.
//!
//! A run of base64 that decodes to text is scanned as text; what is found there condemns the whole run. A run ends
//! with its padding, so a name that is given a value (`KEY=…`) is no part of it. Long runs are decoded piece by piece,
//! each with an end of the one before; of a megabyte of picture only the first bytes are looked at.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The runs of base64 in a text that decode to text, with what they decode to: long ones several times, each time with
/// another piece.
pub(crate) fn base64_texts(text: &[u8]) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + LEAST <= text.len() {
        // A run from here covers the next bytes, all of them: from their end, most words are skipped at one look.
        let gap = (at..at + LEAST).rev().find(|at| parts(text, *at));
        if let Some(gap) = gap {
            at = gap + 1;
            continue;
        }
        if !is_base64(text[at]) {
            at += 1;
            continue;
        }
        let end = run_end(text, at);
        // A window of a longer text may begin inside a run: at any sign of a group, in any byte of a character.
        let shifts = if at == 0 { 16 } else { 1 };
        let decoded = (0..shifts)
            .map(|shift| pieces(&text[(at + shift).min(end)..end]))
            .find(|pieces| !pieces.is_empty())
            .unwrap_or_default();
        found.extend(decoded.into_iter().map(|decoded| (at..end, decoded)));
        at = end;
    }
    found
}

/// Decodes text that may be base64 of either alphabet, with or without padding or line breaks.
pub(crate) fn decode(run: &[u8]) -> Option<String> {
    let mut packed = packed(run)?;
    if packed.len() % 4 == 1 {
        packed.pop();
    }
    readable(&decode_bytes(&packed)?).map(str::to_owned)
}

/// What a run decodes to, in pieces that overlap. None if its first piece is no text.
fn pieces(run: &[u8]) -> Vec<String> {
    let Some(mut packed) = packed(run) else { return Vec::new() };
    if packed.len() % 4 == 1 {
        packed.pop();
    }
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let end = packed.len().min(at + MOST);
        let bytes = decode_bytes(&packed[at..end]).map(|bytes| if at == 0 { bytes } else { begun(bytes) });
        match bytes.as_deref().and_then(readable) {
            Some(text) => found.push(text.to_owned()),
            None if at == 0 => return found,
            None => {}
        }
        if end == packed.len() {
            return found;
        }
        at += MOST - OVERLAP;
    }
}

/// The run without line breaks and padding, if it may be text: most are none, and their first bytes tell.
fn packed(run: &[u8]) -> Option<Vec<u8>> {
    let dense = || run.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
    let (mut start, mut length) = ([0; PROBE], 0);
    for (place, byte) in start.iter_mut().zip(dense()) {
        *place = byte;
        length += 1;
    }
    let mut decoded = [0; PROBE];
    let count = engine(&start[..length]).decode_slice(&start[..length], &mut decoded).ok()?;
    readable(&decoded[..count])?;
    let mut packed: Vec<u8> = dense().collect();
    let padding = packed.iter().rev().take_while(|byte| **byte == b'=').count();
    packed.truncate(packed.len() - padding);
    Some(packed)
}

/// The bytes without the rest of a character that was cut in two.
fn begun(mut bytes: Vec<u8>) -> Vec<u8> {
    let rest = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    bytes.drain(..rest);
    bytes
}

fn decode_bytes(packed: &[u8]) -> Option<Vec<u8>> {
    engine(packed).decode(packed).ok()
}

/// The alphabet that a run is of.
fn engine(packed: &[u8]) -> &'static GeneralPurpose {
    let url = packed.iter().any(|byte| matches!(byte, b'-' | b'_'));
    if url { &URL_SAFE } else { &STANDARD }
}

/// The text that these bytes are, if they are one. A character may be cut at the end of a bounded run.
fn readable(bytes: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if bytes.len() - error.valid_up_to() > 3 => return None,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
    };
    let odd = text.chars().any(|c| c.is_control() && !c.is_whitespace());
    (!odd && !text.is_empty()).then_some(text)
}

/// Whether no run goes on over this byte: it is of none, or it is a sign before a value, not the padding behind one.
fn parts(text: &[u8], at: usize) -> bool {
    match text[at] {
        b'=' => text.get(at + 1).is_some_and(|next| is_base64(*next)),
        byte => !is_base64(byte),
    }
}

/// The end of the run, over line breaks between full lines, with its padding.
fn run_end(text: &[u8], at: usize) -> usize {
    let mut end = at;
    let mut line = 0;
    while let Some(&byte) = text.get(end) {
        if is_base64(byte) {
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
    let padding = text[end..].iter().take_while(|byte| **byte == b'=').count();
    (end + padding).max(at + 1)
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

static STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
static URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);

/// Shorter ones hold nothing that the rules would know.
const LEAST: usize = 20;
/// How much is decoded at once, and how much of it with the next piece again: both whole groups of four.
const MOST: usize = 16 * 1024;
const OVERLAP: usize = 8 * 1024;
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

    #[test]
    fn a_run_is_what_a_name_is_given() {
        let decoded = "my mail is john@example.com";
        for (text, range) in [
            ("KEY_B64=bXkgbWFpbCBpcyBqb2huQGV4YW1wbGUuY29t", 8..44),
            ("a=b&c=bXkgbWFpbCBpcyBqb2huQGV4YW1wbGUuY29t&d=e", 6..42),
            ("k==bXkgbWFpbCBpcyBqb2huQGV4YW1wbGUuY29t", 3..39),
        ] {
            assert_eq!(base64_texts(text.as_bytes()), [(range, decoded.to_owned())], "{text}");
        }
        let twice = b"bXkgbWFpbCBpcyBqYW5lQGV4YW1wbGUuY29tLg==\nbXkgbWFpbCBpcyBqb2huQGV4YW1wbGUuY29t";
        assert_eq!(base64_texts(twice).len(), 2);
    }

    /// Every piece is decoded, whatever characters are cut, and the work is that of the length.
    #[test]
    fn a_long_run_is_decoded_to_its_end() {
        let text: String = (0..9000).map(|number| format!("{number} \u{20ac} ")).collect();
        let encoded = base64::engine::general_purpose::STANDARD.encode(&text);
        let lines: Vec<&str> =
            encoded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        for run in [encoded.clone(), lines.join("\r\n")] {
            let found = base64_texts(run.as_bytes());
            assert!(found.iter().all(|(range, _)| *range == (0..run.len())));
            for number in 0..9000 {
                let part = format!("{number} \u{20ac} ");
                assert!(found.iter().any(|(_, decoded)| decoded.contains(&part)), "{part}");
            }
            assert!(found.iter().map(|(_, decoded)| decoded.len()).sum::<usize>() <= 2 * text.len());
        }
        let picture: Vec<u8> = (0..60_000_u32).map(|number| (number * 7919).to_be_bytes()[2]).collect();
        assert_eq!(base64_texts(base64::engine::general_purpose::STANDARD.encode(picture).as_bytes()), []);
    }
}
