//! One layer of base64 or hexadecimal.
//!
//! A run that decodes to text, of UTF-8 or UTF-16, is scanned as text, layer by layer; what is found there condemns the
//! whole run. One that decodes to a private key is condemned at once. A run ends with its padding, so a name that is given
//! a value (`KEY=…`) is no part of it; it goes on over the ends of lines of one length, whatever they are quoted, indented
//! or commented with. Long runs are decoded piece by piece, each with an end of the one before; of a megabyte of picture
//! only the first bytes are looked at.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::keys;

/// What a run decodes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// Some text: of a long run, one of several pieces.
    Text(String),
    /// The bytes of a private key.
    Key,
}

/// The runs of base64 and hexadecimal in a text that decode to text or to a private key: long ones several times, each time
/// with another piece. Only runs that are wanted are decoded.
pub(crate) fn runs(text: &[u8], wanted: impl Fn(Range<usize>) -> bool) -> Vec<(Range<usize>, Decoded)> {
    let mut found = Vec::new();
    let mut at = 0;
    // Where the lines before this run were tried together with it.
    let mut tried = 0;
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
        let run = run_at(text, at);
        if !wanted(at..run.end) {
            at = run.end;
            continue;
        }
        // A window of a longer text may begin inside a run: at any sign of a group, in any byte of a character.
        let shifts = if at == 0 { 16 } else { 1 };
        let decoded = (0..shifts)
            .map(|shift| pieces(&text[(at + shift).min(run.end)..run.end]))
            .find(|pieces| !pieces.is_empty())
            .unwrap_or_default();
        // A long word may stand on the line before a run: once, the run is tried without its first line.
        if decoded.is_empty() && run.second > at && at >= tried {
            tried = run.end;
            at = run.second;
            continue;
        }
        found.extend(decoded.into_iter().map(|decoded| (at..run.end, decoded)));
        at = run.end;
    }
    found
}

/// Decodes text that may be base64 of either alphabet, with or without padding or line breaks.
pub(crate) fn decode(run: &[u8]) -> Option<String> {
    let packed = packed(run);
    let bytes = Coding::Base64.decode(&packed)?;
    readable(&bytes).filter(|text| is_cut_character(&bytes[text.len()..])).map(str::to_owned)
}

/// Whether a private key begins with these letters of base64, wherever they end.
pub(crate) fn begins_key(run: &[u8]) -> bool {
    let start: Vec<u8> = dense(run).take(keys::ENOUGH).collect();
    Coding::Base64.decode(whole_groups(&start)).is_some_and(|bytes| keys::is_private_key(&bytes))
}

/// Whether a private key begins with these hexadecimal digits, whatever stands between them.
pub(crate) fn begins_key_in_hex(run: &[u8]) -> bool {
    let digits: Vec<u8> = run.iter().copied().filter(u8::is_ascii_hexdigit).take(2 * keys::ENOUGH).collect();
    keys::is_private_key(&from_hex(&digits))
}

/// How a run is written.
#[derive(Clone, Copy, Debug)]
enum Coding {
    Base64,
    Hex,
}

impl Coding {
    fn decode(self, packed: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Base64 => engine(packed).decode(whole_groups(packed)).ok(),
            Self::Hex => Some(from_hex(packed)),
        }
    }
}

/// What the bytes of a run are.
#[derive(Clone, Copy, Debug)]
enum BytesKind {
    Utf8,
    /// UTF-16, with the place of the high byte in a pair.
    Utf16(usize),
    Key,
}

/// What a run decodes to, in pieces that overlap. None if its first piece is no text.
fn pieces(run: &[u8]) -> Vec<Decoded> {
    let hex = is_hex(run).then_some((Coding::Hex, &run[prefix(run)..]));
    for (coding, run) in hex.into_iter().chain([(Coding::Base64, run)]) {
        match kind(run, coding) {
            Some(BytesKind::Key) => return vec![Decoded::Key],
            Some(kind) => return texts(&packed(run), coding, kind),
            None => {}
        }
    }
    Vec::new()
}

/// What a run is, by its first bytes: most are nothing, and those tell.
fn kind(run: &[u8], coding: Coding) -> Option<BytesKind> {
    let (mut start, mut length) = ([0; PROBE], 0);
    for (place, byte) in start.iter_mut().zip(dense(run)) {
        *place = byte;
        length += 1;
    }
    let (mut decoded, start) = ([0; PROBE], &start[..length]);
    let count = match coding {
        Coding::Base64 => engine(start).decode_slice(whole_groups(start), &mut decoded).ok()?,
        Coding::Hex => {
            decoded[..length / 2].copy_from_slice(&from_hex(start));
            length / 2
        }
    };
    let decoded = &decoded[..count];
    let key = |run: &[u8]| match coding {
        Coding::Base64 => begins_key(run),
        Coding::Hex => begins_key_in_hex(run),
    };
    if keys::may_begin(*decoded.first()?) && key(run) {
        return Some(BytesKind::Key);
    }
    if readable(decoded).is_some_and(|text| is_cut_character(&decoded[text.len()..])) {
        return Some(BytesKind::Utf8);
    }
    let marked = matches!(decoded, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
    let units = &decoded[if marked { 2 } else { 0 }..];
    let high = (0..2).find(|high| units.iter().skip(*high).step_by(2).all(|byte| *byte == 0));
    high.filter(|_| units.len() >= LEAST_UNITS).map(BytesKind::Utf16)
}

/// The text of a run, piece by piece.
fn texts(packed: &[u8], coding: Coding, kind: BytesKind) -> Vec<Decoded> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let end = packed.len().min(at + MOST);
        let bytes = coding.decode(&packed[at..end]).unwrap_or_default();
        let text = match kind {
            BytesKind::Utf16(high) => Some(wide(&bytes, high)),
            _ if at == 0 => readable(&bytes).map(str::to_owned),
            _ => readable(begun(&bytes)).map(str::to_owned),
        };
        found.extend(text.filter(|text| !text.is_empty()).map(Decoded::Text));
        if end == packed.len() {
            return found;
        }
        at += MOST - OVERLAP;
    }
}

/// The signs of a run without what stands between its lines, and without its padding.
fn packed(run: &[u8]) -> Vec<u8> {
    dense(run).collect()
}

fn dense(run: &[u8]) -> impl Iterator<Item = u8> {
    run.iter().copied().filter(|byte| is_base64(*byte))
}

/// The signs without a last one that means nothing alone.
fn whole_groups(packed: &[u8]) -> &[u8] {
    &packed[..packed.len() - usize::from(packed.len() % 4 == 1)]
}

/// The bytes without the rest of a character that was cut in two.
fn begun(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    &bytes[rest..]
}

/// The alphabet that a run is of.
fn engine(packed: &[u8]) -> &'static GeneralPurpose {
    let url = packed.iter().any(|byte| matches!(byte, b'-' | b'_'));
    if url { &URL_SAFE } else { &STANDARD }
}

fn from_hex(digits: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map_or(0, |digit| digit as u8);
    digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Whether a run is of hexadecimal digits, and long enough to hold a key. Behind a full line, a word may end it.
fn is_hex(run: &[u8]) -> bool {
    let digits = &run[prefix(run)..];
    let hex = digits.iter().take_while(|byte| byte.is_ascii_hexdigit() || !is_base64(**byte)).count();
    hex >= LEAST_HEX && digits.len() - hex < LEAST
}

/// `0x3082…`, and PostgreSQL's `\x3082…`.
fn prefix(run: &[u8]) -> usize {
    match run {
        [b'0', b'x' | b'X', ..] => 2,
        [b'x' | b'X', ..] => 1,
        _ => 0,
    }
}

/// The text that these bytes begin with, as far as they are text.
fn readable(bytes: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
    };
    let text = &text[..text.find(is_odd).unwrap_or(text.len())];
    (!text.is_empty()).then_some(text)
}

/// Whether bytes are nothing, or a character that was cut.
fn is_cut_character(bytes: &[u8]) -> bool {
    bytes.is_empty() || (bytes.len() <= CUT && bytes[0] >= 0xc0)
}

/// The text that these bytes of UTF-16 begin with.
fn wide(bytes: &[u8], high: usize) -> String {
    let units = bytes.chunks_exact(2).map(|pair| match high {
        0 => u16::from_be_bytes([pair[0], pair[1]]),
        _ => u16::from_le_bytes([pair[0], pair[1]]),
    });
    char::decode_utf16(units).map_while(Result::ok).take_while(|c| !is_odd(*c)).collect()
}

fn is_odd(c: char) -> bool {
    c.is_control() && !c.is_whitespace()
}

/// Whether no run goes on over this byte: it is of none, or it is a sign before a value, not the padding behind one.
fn parts(text: &[u8], at: usize) -> bool {
    match text[at] {
        b'=' => text.get(at + 1).is_some_and(|next| is_base64(*next)),
        byte => !is_base64(byte),
    }
}

/// A run of one line or several.
struct Run {
    end: usize,
    /// Where its second line begins, or where it begins itself.
    second: usize,
}

/// The run at a place, over line breaks between full lines, with its padding.
fn run_at(text: &[u8], at: usize) -> Run {
    let line = |at: usize| at + text[at..].iter().take_while(|byte| is_base64(**byte)).count();
    let mut run = Run { end: line(at), second: at };
    let mut width = run.end - at;
    let mut last = width;
    while last >= LEAST
        && let Some(next) = next_line(text, run.end)
    {
        let end = line(next);
        let length = end - next;
        let first = run.second == at;
        // The first line may stand behind a name; of the others, only the last is shorter, unless they are long.
        let fits = length <= width || first || last >= FULL_LINE;
        let whole = text.get(end).is_none_or(|byte| BETWEEN.contains(byte) || *byte == b'=');
        if length == 0 || !fits || !(whole || length >= LEAST) {
            break;
        }
        if first {
            run.second = next;
            width = length.max(width);
        }
        run.end = end;
        last = if length < width && !first && length < FULL_LINE { 0 } else { length };
    }
    let padding = text[run.end..].iter().take_while(|byte| **byte == b'=').count();
    run.end = (run.end + padding).max(at + 1);
    run
}

/// Where the next line goes on, behind a line's end with what lines are quoted, indented and commented with.
fn next_line(text: &[u8], end: usize) -> Option<usize> {
    let gap = text[end..].iter().take(LONGEST_GAP).take_while(|byte| BETWEEN.contains(byte)).count();
    let next = end + gap;
    let breaks = text[end..next].iter().filter(|byte| **byte == b'\n').count();
    (breaks == 1 && text.get(next).is_some_and(|byte| is_base64(*byte))).then_some(next)
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
/// Shorter ones are hashes.
const LEAST_HEX: usize = 56;
/// How much is decoded at once, and how much of it with the next piece again: both whole groups of four.
const MOST: usize = 16 * 1024;
const OVERLAP: usize = 8 * 1024;
const PROBE: usize = 32;
/// As much of a character as can be cut off at the end of what was decoded.
const CUT: usize = 3;
const LEAST_UNITS: usize = 12;
/// A line so long is wrapped, whatever the next one has.
const FULL_LINE: usize = 60;
/// What may stand between two lines of a run.
const BETWEEN: &[u8] = b" \t\r\n\"'`,\\>#*|";
const LONGEST_GAP: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn any(_: Range<usize>) -> bool {
        true
    }

    fn text_of((range, decoded): (Range<usize>, Decoded)) -> (Range<usize>, String) {
        match decoded {
            Decoded::Text(text) => (range, text),
            Decoded::Key => (range, String::new()),
        }
    }

    /// However it is written and wrapped, with a word on the line before it and another behind.
    #[test]
    fn text_is_decoded_from_every_width_and_coding() {
        let text =
            "the mail of the one who wrote this is john@example.com, and so on and so forth; nothing else";
        let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> =
            std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        let all = [
            base64(text.as_bytes()),
            base64(&little),
            base64(&big),
            hex.to_uppercase(),
            format!("0x{hex}"),
            hex,
        ];
        for encoded in &all {
            for width in [20, 30, 48, 64, 76, 1000] {
                for (lead, between, end) in [
                    ("", "\n", "\n"),
                    ("data: |\n  ", "\n  ", "\nnext: 1"),
                    ("x = [\"", "\",\r\n  \"", "\"]"),
                    ("internationalisation\n", "\n", "\nEOF\n"),
                    ("<<EOF\n", "\n", "\nEOF\n"),
                    ("> ", "\n> ", "\n> and"),
                ] {
                    let lines: Vec<&str> = encoded
                        .as_bytes()
                        .chunks(width)
                        .map(|line| std::str::from_utf8(line).expect("it is ASCII"))
                        .collect();
                    let wrapped = format!("{lead}{}{end}", lines.join(between));
                    let found = runs(wrapped.as_bytes(), any);
                    let told =
                        found.into_iter().map(text_of).any(|(_, found)| found.contains("john@example.com"));
                    assert!(told, "{wrapped}");
                }
            }
        }
    }

    #[test]
    fn text_is_decoded_and_other_bytes_are_not() {
        let text = b"x: bXkgbWFpbCBpcyBqb2huQGV4YW1wbGUuY29t, /////////////////////////w==";
        let found = runs(text, any);
        assert_eq!(found, [(3..39, Decoded::Text("my mail is john@example.com".to_owned()))]);
    }

    #[test]
    fn a_run_is_what_a_name_is_given() {
        let decoded = || Decoded::Text("my mail is john@example.com".to_owned());
        for (text, range) in [
            ("KEY_B64=bXkgbWFpbCBpcyBqb2huQGV4YW1wbGUuY29t", 8..44),
            ("a=b&c=bXkgbWFpbCBpcyBqb2huQGV4YW1wbGUuY29t&d=e", 6..42),
            ("k==bXkgbWFpbCBpcyBqb2huQGV4YW1wbGUuY29t", 3..39),
        ] {
            assert_eq!(runs(text.as_bytes(), any), [(range, decoded())], "{text}");
        }
        let twice = b"bXkgbWFpbCBpcyBqYW5lQGV4YW1wbGUuY29tLg==\nbXkgbWFpbCBpcyBqb2huQGV4YW1wbGUuY29t";
        assert_eq!(runs(twice, any).len(), 2);
    }

    /// Every piece is decoded, whatever characters are cut, and the work is that of the length.
    #[test]
    fn a_long_run_is_decoded_to_its_end() {
        let text: String = (0..9000).map(|number| format!("{number} \u{20ac} ")).collect();
        let encoded = base64::engine::general_purpose::STANDARD.encode(&text);
        let lines: Vec<&str> =
            encoded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        for run in [encoded.clone(), lines.join("\r\n")] {
            let found: Vec<(Range<usize>, String)> =
                runs(run.as_bytes(), any).into_iter().map(text_of).collect();
            assert!(found.iter().all(|(range, _)| *range == (0..run.len())));
            for number in 0..9000 {
                let part = format!("{number} \u{20ac} ");
                assert!(found.iter().any(|(_, decoded)| decoded.contains(&part)), "{part}");
            }
            assert!(found.iter().map(|(_, decoded)| decoded.len()).sum::<usize>() <= 2 * text.len());
        }
        let picture: Vec<u8> = (0..60_000_u32).map(|number| (number * 7919).to_be_bytes()[2]).collect();
        assert_eq!(runs(base64::engine::general_purpose::STANDARD.encode(picture).as_bytes(), any), []);
    }
}
