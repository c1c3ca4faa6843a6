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
    /// Where the pieces of the copy come from, in order; None when the copy is the original.
    pieces: Option<Vec<Piece>>,
}

/// A stretch of the copy that reads as it does in the original, or one character that stands for others.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it begins in the copy.
    at: usize,
    /// Where it begins in the original.
    start: usize,
    /// Where it ends in the original, if it stands for others.
    end: Option<usize>,
}

impl<'t> View<'t> {
    /// The text with its disguises folded away.
    pub(crate) fn plain(text: &'t str) -> Self {
        if text.is_ascii() {
            return Self { text: Cow::Borrowed(text.as_bytes()), pieces: None };
        }
        let mut copy = Copy::with_capacity(text.len());
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let plain = rest.bytes().position(|byte| byte >= 0x80).unwrap_or(rest.len());
            copy.keep(&rest.as_bytes()[..plain], at);
            at += plain;
            if let Some(c) = rest[plain..].chars().next() {
                fold(c, &rest.as_bytes()[plain..plain + c.len_utf8()], at, &mut copy);
                at += c.len_utf8();
            }
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

    /// Where in the original a range of the copy is. It may cut a character in two, as the range does.
    pub(crate) fn place(&self, range: Range<usize>) -> Range<usize> {
        let Some(pieces) = &self.pieces else { return range };
        if range.is_empty() || range.end > self.text.len() {
            return 0..0;
        }
        let last = range.end - 1;
        let (first, second) = (piece_at(pieces, range.start), piece_at(pieces, last));
        let start = first.start + if first.end.is_some() { 0 } else { range.start - first.at };
        start..second.end.unwrap_or(second.start + last - second.at + 1)
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
            let until = if done == 0 { 0 } else { word_end(text, done + AFTER) };
            if from > until {
                self.copy(done..until.max(done), &mut copy);
                copy.put('\n', self.place(from..from + 1));
                done = from;
            }
            self.copy(done..range.start, &mut copy);
            if let Some(character) = character {
                copy.put(character, self.place(range.clone()));
            }
            done = range.end;
        }
        self.copy(last..word_end(text, last + AFTER), &mut copy);
        Some(copy.into_view())
    }

    /// Copies a range with the places of its pieces.
    fn copy(&self, range: Range<usize>, copy: &mut Copy) {
        let Some(pieces) = &self.pieces else {
            copy.keep(&self.text[range.clone()], range.start);
            return;
        };
        let first = pieces.partition_point(|piece| piece.at <= range.start).saturating_sub(1);
        for (index, piece) in
            pieces.iter().enumerate().skip(first).take_while(|(_, piece)| piece.at < range.end)
        {
            let end = pieces.get(index + 1).map_or(self.text.len(), |next| next.at);
            let (from, to) = (piece.at.max(range.start), end.min(range.end));
            match piece.end {
                Some(_) => copy.add(&self.text[from..to], *piece),
                None => copy.keep(&self.text[from..to], piece.start + from - piece.at),
            }
        }
    }
}

fn piece_at(pieces: &[Piece], at: usize) -> Piece {
    pieces[pieces.partition_point(|piece| piece.at <= at).saturating_sub(1)]
}

#[derive(Debug)]
struct Copy {
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Copy {
    fn with_capacity(capacity: usize) -> Self {
        Self { text: Vec::with_capacity(capacity), pieces: Vec::new() }
    }

    /// Adds bytes as they stand at a place of the original.
    fn keep(&mut self, bytes: &[u8], start: usize) {
        let at = self.text.len();
        let goes_on = matches!(self.pieces.last(), Some(piece) if piece.end.is_none() && piece.start + at - piece.at == start);
        if !goes_on && !bytes.is_empty() {
            self.pieces.push(Piece { at, start, end: None });
        }
        self.text.extend_from_slice(bytes);
    }

    /// Adds a character that stands for a range of the original.
    fn put(&mut self, c: char, place: Range<usize>) {
        let piece = Piece { at: 0, start: place.start, end: Some(place.end) };
        self.add(c.encode_utf8(&mut [0; 4]).as_bytes(), piece);
    }

    fn add(&mut self, bytes: &[u8], piece: Piece) {
        self.pieces.push(Piece { at: self.text.len(), ..piece });
        self.text.extend_from_slice(bytes);
    }

    fn into_view<'t>(self) -> View<'t> {
        View { text: Cow::Owned(self.text), pieces: Some(self.pieces) }
    }
}

/// Adds a character that is not ASCII, as what it stands for.
fn fold(c: char, bytes: &[u8], at: usize, copy: &mut Copy) {
    let place = at..at + bytes.len();
    match c {
        // Letters, signs and pictures that stand for nothing plainer: most of what there is.
        '\u{c0}'..='\u{131}'
        | '\u{391}'..='\u{3a9}'
        | '\u{3b1}'..='\u{3c9}'
        | '\u{400}'..='\u{4ff}'
        | '\u{2190}'..='\u{2211}'
        | '\u{2213}'..='\u{23ff}'
        | '\u{2500}'..='\u{27bf}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{1f300}'..='\u{1faff}' => copy.keep(bytes, at),
        _ if is_invisible(c) => {}
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            copy.put(' ', place);
        }
        '\u{2028}' | '\u{2029}' | '\u{85}' => copy.put('\n', place),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' | '\u{30fc}' => {
            copy.put('-', place);
        }
        '\u{2018}' | '\u{2019}' | '\u{2032}' => copy.put('\'', place),
        '\u{201c}' | '\u{201d}' | '\u{2033}' => copy.put('"', place),
        '\u{3002}' | '\u{ff61}' | '\u{2024}' => copy.put('.', place),
        _ => {
            if let Some(digit) = digit(c) {
                copy.put(digit, place);
                return;
            }
            let mut folded = std::iter::once(c).nfkc().take(4).peekable();
            if folded.peek() == Some(&c) || !std::iter::once(c).nfkc().take(4).all(|c| c.is_ascii()) {
                copy.keep(bytes, at);
            } else {
                folded.for_each(|c| copy.put(c, place.clone()));
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

/// The end of the word at a place, if it is near.
fn word_end(text: &[u8], at: usize) -> usize {
    let at = at.min(text.len());
    at + text[at..].iter().take(LONGEST_VALUE).take_while(|byte| !byte.is_ascii_whitespace()).count()
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
const BEFORE: usize = 192;
const AFTER: usize = 256;
const LONGEST_WORD: usize = 128;
const LONGEST_VALUE: usize = 1024;
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
