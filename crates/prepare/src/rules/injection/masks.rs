//! Undoing what hides an order from a list of words: spaced letters, digits for letters, encodings, hidden markup.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::super::text::{Text, Word};

/// The text with spaced letters joined and digits turned back into the letters they stand for; nothing where that
/// changes nothing.
pub(super) fn undone(text: &Text<'_>) -> Option<String> {
    let words = text.words();
    let mut plain = String::new();
    let mut changed = 0;
    let mut at = 0;
    while at < words.len() {
        let run = words[at..].iter().take_while(|word| is_letter(text, word)).count();
        if run >= SHORTEST_SPACED {
            changed += run;
            joined(text, &words[at..at + run], &mut plain);
            at += run;
            continue;
        }
        let word = text.plain(&words[at]);
        let masked =
            word.contains(|c: char| c.is_ascii_digit()) && word.contains(|c: char| c.is_ascii_alphabetic());
        if masked && word.len() <= LONGEST_LEET {
            plain.extend(word.chars().map(letter));
            changed += 1;
        } else {
            plain.push_str(word);
        }
        plain.push(' ');
        at += 1;
    }
    (changed >= 2).then_some(plain)
}

fn is_letter(text: &Text<'_>, word: &Word) -> bool {
    let plain = text.plain(word);
    plain.len() == 1 && plain.as_bytes()[0].is_ascii_alphanumeric()
}

/// Joins letters of one word; a wider gap than before starts the next: `i g n o r e   a l l`.
fn joined(text: &Text<'_>, letters: &[Word], into: &mut String) {
    let usual = letters.windows(2).map(|pair| text.gap(&pair[0], &pair[1])).min().unwrap_or(1);
    for (place, word) in letters.iter().enumerate() {
        if place > 0 && text.gap(&letters[place - 1], word) > usual {
            into.push(' ');
        }
        into.extend(text.plain(word).chars().map(letter));
    }
    into.push(' ');
}

/// The letter that a digit stands for.
fn letter(c: char) -> char {
    match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' => 'a',
        '5' => 's',
        '7' => 't',
        '8' => 'b',
        _ => c,
    }
}

/// Texts that a person would not see: tag characters, base64, hexadecimal, reversed words, comments of a markup.
pub(super) fn hidden(text: &Text<'_>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if !text.hidden.is_empty() {
        found.push(text.hidden.clone());
    }
    let raw = text.raw();
    let mut left = LONGEST_DECODED;
    for run in runs(raw) {
        let Some(decoded) = decoded(run, left) else { continue };
        left = left.saturating_sub(decoded.len());
        found.push(decoded);
        if left == 0 || found.len() >= MOST_HIDDEN {
            break;
        }
    }
    found.extend(between(raw, "<!--", "-->").map(str::to_owned));
    if raw.len() <= LONGEST_REVERSED {
        found.push(raw.chars().rev().collect());
    }
    found
}

/// Runs of characters that an encoding is made of.
fn runs(raw: &str) -> impl Iterator<Item = &str> {
    let encodes = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_');
    raw.split(move |c: char| !encodes(c)).filter(|run| run.len() >= SHORTEST_ENCODED)
}

fn decoded(run: &str, most: usize) -> Option<String> {
    let run = &run[..run.len().min(most * 2)];
    let readable = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).ok()?;
        let letters = text.chars().filter(|c| c.is_alphabetic() || *c == ' ').count();
        (letters * 10 >= text.chars().count() * 8).then_some(text)
    };
    if run.bytes().all(|byte| byte.is_ascii_hexdigit()) && run.len().is_multiple_of(2) {
        let byte = |at: usize| u8::from_str_radix(&run[at..at + 2], 16).ok();
        let bytes: Option<Vec<u8>> = (0..run.len()).step_by(2).map(byte).collect();
        if let Some(text) = bytes.and_then(readable) {
            return Some(text);
        }
    }
    let standard = run.trim_end_matches('=').replace('-', "+").replace('_', "/");
    let whole = standard.len() - if standard.len() % 4 == 1 { 1 } else { 0 };
    BASE64.decode(&standard[..whole]).ok().and_then(readable)
}

fn between<'t>(raw: &'t str, open: &'t str, close: &'t str) -> impl Iterator<Item = &'t str> {
    raw.split(open).skip(1).take(MOST_HIDDEN).filter_map(move |rest| rest.split(close).next())
}

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Single letters in a row that are a word and not an enumeration.
const SHORTEST_SPACED: usize = 5;

/// In bytes: longer words with digits are keys.
const LONGEST_LEET: usize = 16;

/// In bytes: a short order in base64 has at least so many.
const SHORTEST_ENCODED: usize = 20;

/// Bounds of what is decoded and read again.
const LONGEST_DECODED: usize = 8 * 1024;
const LONGEST_REVERSED: usize = 2 * 1024;
const MOST_HIDDEN: usize = 16;
