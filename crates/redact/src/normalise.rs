//! A copy of the text that rules can read, and the way back.
//!
//! Zero-width and format characters are dropped; full-width letters, styled digits, digits of other scripts, dashes
//! and spaces become the plain ones (NFKC, character by character, so that every byte of the copy knows where it
//! came from). Text that is plain already is borrowed, with no map at all. Further views undo one kind of wrapping
//! each: backslash escapes, percent escapes, and lines broken inside a token. Easy to get wrong: a match in the copy
//! must map back to everything between its first and last character, dropped ones included.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

/// A readable copy of a text, with the place in the original of each byte.
#[derive(Debug)]
pub(crate) struct View<'t> {
    text: Cow<'t, [u8]>,
    /// For each byte of the copy where its character begins and ends in the original; None when they are the same.
    places: Option<Vec<(u32, u32)>>,
}

impl<'t> View<'t> {
    /// The text with its disguises folded away.
    pub(crate) fn plain(text: &'t str) -> Self {
        if text.is_ascii() {
            return Self { text: Cow::Borrowed(text.as_bytes()), places: None };
        }
        let mut copy = Copy::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            fold(c, at, &mut copy);
        }
        copy.into_view()
    }

    /// The view with backslash escapes undone, if it has any: `\n`, `\"`, `\/`, `\x41`, `\u0041`.
    pub(crate) fn unescaped(&self) -> Option<View<'static>> {
        if !self.text.contains(&b'\\') {
            return None;
        }
        self.rewritten(|text, at| {
            if text[at] != b'\\' {
                return None;
            }
            let next = *text.get(at + 1)?;
            let hex = |digits: usize| {
                let digits = text.get(at + 2..at + 2 + digits)?;
                u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
            };
            Some(match next {
                b'n' | b'r' => (2, Some('\n')),
                b't' => (2, Some('\t')),
                b'"' | b'\'' | b'\\' | b'/' | b'`' => (2, Some(char::from(next))),
                b'x' => (4, Some(char::from(u8::try_from(hex(2)?).ok()?))),
                b'u' => (6, char::from_u32(hex(4)?)),
                _ => return None,
            })
        })
    }

    /// The view with percent escapes undone, if it has any.
    pub(crate) fn unpercented(&self) -> Option<View<'static>> {
        if !self.text.contains(&b'%') {
            return None;
        }
        self.rewritten(|text, at| {
            if text[at] != b'%' {
                return None;
            }
            let digits = std::str::from_utf8(text.get(at + 1..at + 3)?).ok()?;
            let byte = u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii)?;
            Some((3, Some(char::from(byte))))
        })
    }

    /// The view with breaks inside long tokens taken out, if it has any: a backslash or `=` at the end of a line, or
    /// a line that ends, and a next one that begins, in the middle of a token.
    pub(crate) fn unwrapped(&self) -> Option<View<'static>> {
        if !self.text.contains(&b'\n') {
            return None;
        }
        let mut run = 0;
        self.rewritten(|text, at| {
            let byte = text[at];
            let broken = match byte {
                b'\\' | b'=' => 1 + line_break(text, at + 1)?,
                b'\r' | b'\n' if run >= LEAST_WRAPPED => line_break(text, at)?,
                _ => {
                    run = if is_token(byte) { run + 1 } else { 0 };
                    return None;
                }
            };
            text.get(at + broken).copied().filter(|next| is_token(*next))?;
            Some((broken, None))
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// Where in the original a range of the copy is.
    pub(crate) fn place(&self, range: Range<usize>) -> Range<usize> {
        let Some(places) = &self.places else { return range };
        if range.is_empty() {
            return 0..0;
        }
        match (places.get(range.start), places.get(range.end - 1)) {
            (Some(first), Some(last)) => first.0 as usize..last.1 as usize,
            _ => 0..0,
        }
    }

    /// What `change` says replaced, so many bytes by a character or by nothing, with the text around each change: the
    /// rest reads the same in the view it comes from. None if nothing was.
    fn rewritten(
        &self,
        mut change: impl FnMut(&[u8], usize) -> Option<(usize, Option<char>)>,
    ) -> Option<View<'static>> {
        let text = self.bytes();
        let mut changes = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let Some((length, character)) = change(text, at) else {
                at += 1;
                continue;
            };
            let end = (at + length).min(text.len());
            changes.push((at..end, character));
            at = end;
        }
        let last = changes.last()?.0.end;
        let mut copy = Copy::with_capacity(text.len().min(changes.len() * (BEFORE + AFTER)));
        let mut done = 0;
        for (range, character) in changes {
            let from = word_start(text, range.start.saturating_sub(BEFORE));
            if from > done + AFTER {
                self.copy(done..done + if done == 0 { 0 } else { AFTER }, &mut copy);
                copy.push('\n', self.place(from..from + 1));
                done = from;
            }
            self.copy(done..range.start, &mut copy);
            if let Some(character) = character {
                copy.push(character, self.place(range.clone()));
            }
            done = range.end;
        }
        self.copy(last..text.len().min(last + AFTER), &mut copy);
        Some(copy.into_view())
    }

    fn copy(&self, range: Range<usize>, copy: &mut Copy) {
        for at in range {
            let place = self.place(at..at + 1);
            copy.text.push(self.text[at]);
            copy.places.push((narrow(place.start), narrow(place.end)));
        }
    }
}

#[derive(Debug)]
struct Copy {
    text: Vec<u8>,
    places: Vec<(u32, u32)>,
}

impl Copy {
    fn with_capacity(capacity: usize) -> Self {
        Self { text: Vec::with_capacity(capacity), places: Vec::with_capacity(capacity) }
    }

    fn push(&mut self, c: char, place: Range<usize>) {
        let mut buffer = [0; 4];
        for byte in c.encode_utf8(&mut buffer).bytes() {
            self.text.push(byte);
            self.places.push((narrow(place.start), narrow(place.end)));
        }
    }

    fn into_view<'t>(self) -> View<'t> {
        View { text: Cow::Owned(self.text), places: Some(self.places) }
    }
}

/// A window is far smaller than this; see `stream`.
fn narrow(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

fn fold(c: char, at: usize, copy: &mut Copy) {
    let place = at..at + c.len_utf8();
    match c {
        '\0'..='\u{7f}' => copy.push(c, place),
        _ if is_invisible(c) => {}
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            copy.push(' ', place);
        }
        '\u{2028}' | '\u{2029}' | '\u{85}' => copy.push('\n', place),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' | '\u{30fc}' => {
            copy.push('-', place);
        }
        '\u{2018}' | '\u{2019}' | '\u{2032}' => copy.push('\'', place),
        '\u{201c}' | '\u{201d}' | '\u{2033}' => copy.push('"', place),
        '\u{3002}' | '\u{ff61}' | '\u{2024}' => copy.push('.', place),
        _ => {
            if let Some(digit) = digit(c) {
                copy.push(digit, place);
                return;
            }
            let folded: Vec<char> = std::iter::once(c).nfkc().take(4).collect();
            if folded.iter().all(char::is_ascii) {
                folded.into_iter().for_each(|c| copy.push(c, place.clone()));
            } else {
                copy.push(c, place);
            }
        }
    }
}

/// Characters that show nothing and separate nothing.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Digits of other scripts, of which NFKC knows only the styled Latin ones.
fn digit(c: char) -> Option<char> {
    let zero = ZEROS.iter().rev().find(|zero| **zero <= c)?;
    let value = u32::from(c) - u32::from(*zero);
    char::from_digit(value, 10)
}

/// The start of the word at a place, if it is near.
fn word_start(text: &[u8], at: usize) -> usize {
    let back =
        text[..at].iter().rev().take(LONGEST_WORD).take_while(|byte| !byte.is_ascii_whitespace()).count();
    at - back
}

fn line_break(text: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    if text.get(end) == Some(&b'\r') {
        end += 1;
    }
    if text.get(end) != Some(&b'\n') {
        return None;
    }
    end += 1;
    let indent = text[end..].iter().take(MOST_INDENT).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some(end + indent - at)
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'+' | b'=' | b'@')
}

/// A shorter run before a line's end is a word, not a token that was cut.
const LEAST_WRAPPED: usize = 24;
const MOST_INDENT: usize = 16;
/// How much of the text around a change is read again: as far as a rule sees.
const BEFORE: usize = 320;
const AFTER: usize = 1024;
const LONGEST_WORD: usize = 128;
/// The zero of each script whose ten digits follow one another.
const ZEROS: [char; 22] = [
    '\u{660}',
    '\u{6f0}',
    '\u{7c0}',
    '\u{966}',
    '\u{9e6}',
    '\u{a66}',
    '\u{ae6}',
    '\u{b66}',
    '\u{be6}',
    '\u{c66}',
    '\u{ce6}',
    '\u{d66}',
    '\u{e50}',
    '\u{ed0}',
    '\u{f20}',
    '\u{1040}',
    '\u{17e0}',
    '\u{1810}',
    '\u{ff10}',
    '\u{104a0}',
    '\u{1d7ce}',
    '\u{1fbf0}',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disguises_fold_and_map_back() {
        let cases = [
            ("a\u{200b}b@c.de", "ab@c.de"),
            ("\u{ff41}\u{ff20}\u{ff11}", "a@1"),
            ("4111\u{a0}1111\u{2011}1111", "4111 1111-1111"),
            ("\u{660}\u{661}\u{966}", "010"),
            ("h\u{e9}llo \u{540d}", "h\u{e9}llo \u{540d}"),
        ];
        for (text, folded) in cases {
            let view = View::plain(text);
            assert_eq!(std::str::from_utf8(view.bytes()), Ok(folded));
            assert_eq!(view.place(0..view.bytes().len()), 0..text.len());
        }
    }

    #[test]
    fn each_wrapping_is_undone() {
        let plain = |text: &'static str| View::plain(text);
        let text =
            |view: Option<View<'_>>| view.map(|view| String::from_utf8(view.bytes().to_vec()).unwrap());
        assert_eq!(text(plain(r#"a\n\"b\u0041\x42\"#).unescaped()).as_deref(), Some("a\n\"bAB\\"));
        assert_eq!(text(plain("a%40b%zz%4").unpercented()).as_deref(), Some("a@b%zz%4"));
        assert_eq!(text(plain("curl \\\n  -H").unwrapped()).as_deref(), Some("curl -H"));
        let long = "abcdefghijklmnopqrstuvwxyz0123\n456 x\ny";
        assert_eq!(text(plain(long).unwrapped()).as_deref(), Some("abcdefghijklmnopqrstuvwxyz0123456 x\ny"));
        assert_eq!(text(plain("plain").unescaped()), None);
    }
}
