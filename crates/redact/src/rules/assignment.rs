//! A name and what is given to it, in whatever language says so.
//!
//! Code, settings, markup, command lines and prose: `x = "v"`, `x: v`, `x := v`, `"x", "v"`, `var x string = "v"`,
//! `<x>v</x>`, `key="x" value="v"`, `x("v")`, `--x v`, `the x is v`. Written by hand, since a pattern for all of it is
//! larger than everything else together.

use std::ops::Range;

/// What stands behind a credential word.
#[derive(Debug)]
pub(super) struct Assignment {
    /// The rest of the name that the word is in.
    pub(super) name_end: usize,
    /// The value, without quotes.
    pub(super) value: Range<usize>,
    pub(super) quoted: bool,
}

/// Reads on from the end of a credential word.
pub(super) fn read(text: &[u8], word_end: usize) -> Option<Assignment> {
    if let Some(joined) = joined(text, word_end) {
        return Some(joined);
    }
    let mut at = word_end;
    at += run(text, at, LONGEST_NAME, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$')
    });
    let name_end = at;
    at += run(text, at, 4, |byte| matches!(byte, b'"' | b'\'' | b'`' | b']' | b')' | b'\\' | b'*'));
    at = paired(text, at).or_else(|| gap(text, at))?;
    // A call around the value: `Secret("…")`, `[]byte("…")`.
    let call = run(text, at, LONGEST_NAME, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'[' | b']' | b':')
    });
    if text.get(at + call) == Some(&b'(') && matches!(text.get(at + call + 1), Some(b'"' | b'\'' | b'`')) {
        at += call + 1;
    }
    let (value, quoted) = value(text, at)?;
    Some(Assignment { name_end, value, quoted })
}

/// A value that hangs on its name by a dash or a dot: `acmeTOKEN-0f3a9c5b7d1e2f4a`.
fn joined(text: &[u8], word_end: usize) -> Option<Assignment> {
    if !matches!(text.get(word_end)?, b'-' | b'.') {
        return None;
    }
    let start = word_end + 1;
    let length = run(text, start, LONGEST, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=' | b'+' | b'/')
    });
    let value = &text[start..start + length];
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let good = length >= 16 && digits >= 3 && !matches!(text.get(start + length), Some(b':' | b'(' | b'.'));
    good.then_some(Assignment { name_end: word_end, value: start..start + length, quoted: false })
}

/// To where the value of a pair begins whose two halves have names of their own: `name: X` and `value: v`, `<key>X</key>`
/// and `<string>v`, `variable "X" {` and `default = v`, `env.X || v`, `| X | v |`.
fn paired(text: &[u8], start: usize) -> Option<usize> {
    let blank = |at: usize| at + run(text, at, 40, |byte| byte.is_ascii_whitespace());
    let at = blank(start);
    let rest = text.get(at..)?;
    for (sign, next) in [("</key>", "<string>"), ("||", ""), ("??", "")] {
        if let Some(behind) = rest.strip_prefix(sign.as_bytes()) {
            let at = blank(text.len() - behind.len());
            return text[at..].starts_with(next.as_bytes()).then_some(at + next.len());
        }
    }
    let at = match rest.first()? {
        b'|' => return Some(blank(at + 1)),
        b',' | b'{' => blank(at + 1),
        _ => at,
    };
    let quote = |at: usize| at + usize::from(matches!(text.get(at), Some(b'"' | b'\'')));
    let word = quote(at);
    let end = word + run(text, word, 8, |byte| byte.is_ascii_alphabetic());
    let named = [&b"value"[..], b"default"].contains(&&text[word..end]);
    let sign = blank(quote(end));
    (named && matches!(text.get(sign), Some(b':' | b'='))).then(|| blank(sign + 1))
}

/// From the end of a name to where its value begins.
fn gap(text: &[u8], start: usize) -> Option<usize> {
    let blank = |at: usize, most: usize| run(text, at, most, |byte| byte.is_ascii_whitespace());
    let spaces = blank(start, 10);
    let at = start + spaces;
    let rest = text.get(at..)?;
    // A path of Rust or C++: `syn::token::Dot`.
    if matches!(rest, [b':', b':', next, ..] if !matches!(next, b'=' | b':')) {
        return None;
    }
    if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) {
        let at = at + sign.len();
        let at = at + blank(at, 16);
        return Some(typed(text, at).unwrap_or(at));
    }
    match rest.first()? {
        b'>' => return Some(at + 1 + blank(at + 1, 24)),
        b'(' => return Some(at + 1 + blank(at + 1, 2)),
        _ => {}
    }
    if spaces == 0 {
        return None;
    }
    if let Some(at) = typed(text, at) {
        return Some(at);
    }
    let word = run(text, at, 12, |byte| byte.is_ascii_alphabetic());
    let behind = at + word;
    let linked = LINKS.iter().any(|link| rest[..word].eq_ignore_ascii_case(link.as_bytes()));
    if linked {
        let spaces = blank(behind, 4);
        let colon = usize::from(text.get(behind + spaces) == Some(&b':'));
        return (spaces > 0 || colon > 0)
            .then(|| behind + spaces + colon + blank(behind + spaces + colon, 2));
    }
    Some(at)
}

/// The type before the sign, or the attribute that has the value: `string = `, `value=`.
fn typed(text: &[u8], at: usize) -> Option<usize> {
    let word = run(text, at, 20, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'&' | b'[' | b']' | b'?' | b'*' | b'<' | b'>' | b'_')
    });
    let spaces = run(text, at + word, 2, |byte| byte == b' ');
    let sign = at + word + spaces;
    let right = word > 0 && text.get(sign) == Some(&b'=') && !matches!(text.get(sign + 1), Some(b'=' | b'>'));
    // `a = b=c` is no type: a type is followed by a space, the attribute is `value`.
    let good = right && (spaces > 0 || text[at..at + word].eq_ignore_ascii_case(b"value"));
    good.then(|| sign + 1 + run(text, sign + 1, 4, |byte| byte == b' '))
}

fn value(text: &[u8], mut at: usize) -> Option<(Range<usize>, bool)> {
    // Markdown: `password: **v**`, `**Password:** v`.
    if matches!(text.get(at..), Some([b'*', b'*', next, ..]) if *next != b'*') {
        at += 2 + run(text, at + 2, 2, |byte| byte == b' ');
    }
    at += run(text, at, 1, |byte| matches!(byte, b'[' | b'('));
    let slashes = run(text, at, 3, |byte| byte == b'\\');
    let prefix = usize::from(matches!(text.get(at), Some(b'b' | b'r' | b'u' | b'f' | b'@')));
    for entity in [&b"&#39;"[..], b"&quot;", b"&#34;"] {
        if text.get(at..).is_some_and(|rest| rest.starts_with(entity)) {
            let start = at + entity.len();
            let length = run(text, start, LONGEST, |byte| byte != b'&' && byte != b'\n');
            return Some((start..start + length, true));
        }
    }
    for open in [at + slashes, at + prefix] {
        if let Some(&quote @ (b'"' | b'\'' | b'`')) = text.get(open) {
            let start = open + run(text, open, 3, |byte| byte == quote);
            let length = run(text, start, LONGEST, |byte| byte != quote && byte != b'\n' && byte != b'\\');
            return (length > 0).then_some((start..start + length, true));
        }
    }
    let plain = |byte: u8| {
        !byte.is_ascii_whitespace()
            && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'<' | b'>' | b'\\' | b'&' | b'|')
    };
    let mut length = run(text, at, LONGEST, plain);
    // `&` begins the next of several, unless nothing is given to what follows.
    if length > 0 && text.get(at + length) == Some(&b'&') {
        let next = run(text, at + length + 1, LONGEST_NAME, plain);
        let rest = &text[at + length + 1..at + length + 1 + next];
        let ends = !matches!(text.get(at + length + 1 + next), Some(b'&' | b';'));
        if next > 0 && ends && !rest.contains(&b'=') {
            length += 1 + next;
        }
    }
    (length > 0).then_some((at..at + length, false))
}

/// How many bytes from a place on are such, at most.
fn run(text: &[u8], at: usize, most: usize, such: impl Fn(u8) -> bool) -> usize {
    text.get(at..).map_or(0, |rest| rest.iter().take(most).take_while(|byte| such(**byte)).count())
}

const LONGEST_NAME: usize = 48;
/// As much of a value as is read.
pub(super) const LONGEST: usize = 512;
/// The longer before its beginning.
const SIGNS: &[&str] =
    &[":::=", "::=", "||=", "===", ":=", "=>", "->", "?=", ".=", "+=", "==", "=", ":", ","];
const LINKS: &[&str] = &["is", "was", "are", "to", "as", "with"];
