//! A copy of the text that rules can read, and the way back.
//!
//! Zero-width and format characters are dropped; full-width letters, styled digits, digits of other scripts, dashes
//! and spaces become the plain ones (NFKC, character by character, so that every byte of the copy knows where it
//! came from), and so do Cyrillic and Greek letters that pass for Latin ones. Text that is plain already is borrowed, with
//! no map at all. Further views undo one kind of wrapping each, see `readings`. Easy to get wrong: a match in the copy
//! must map back to everything between its first and last character, dropped ones included.

mod lookalikes;
mod readings;

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;

pub(crate) use readings::{Escapes, Those};

/// A readable copy of a text, with the place in the original of each byte.
#[derive(Debug)]
pub(crate) struct View<'t> {
    text: Cow<'t, [u8]>,
    /// Where the pieces of the copy come from, in order; None when the copy is the original.
    pieces: Option<Vec<Piece>>,
    reading: bool,
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
        if text.is_ascii() && memchr::memchr(NUL, text.as_bytes()).is_none() {
            return Self { text: Cow::Borrowed(text.as_bytes()), pieces: None, reading: false };
        }
        let mut copy = Copy::with_capacity(text.len());
        let mut at = 0;
        let mut word = lookalikes::Word::default();
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let plain = rest.bytes().position(|byte| byte >= 0x80 || byte == NUL).unwrap_or(rest.len());
            copy.keep(&rest.as_bytes()[..plain], at);
            at += plain;
            if let Some(c) = rest[plain..].chars().next() {
                match word.latin(c, text, at) {
                    Some(latin) => copy.put(latin, at..at + c.len_utf8()),
                    None => fold(c, &rest.as_bytes()[plain..plain + c.len_utf8()], at, &mut copy),
                }
                at += c.len_utf8();
            }
        }
        copy.into_view()
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

    /// Whether it is a reading of another view, of which it holds a part.
    pub(crate) fn is_reading(&self) -> bool {
        self.reading
    }

    /// Whether something in a range of the copy does not read so in the original.
    pub(crate) fn is_changed(&self, range: Range<usize>) -> bool {
        let Some(pieces) = &self.pieces else { return false };
        let first = pieces.partition_point(|piece| piece.at <= range.start).saturating_sub(1);
        // Behind a character that was taken out, another piece begins.
        pieces[first..]
            .iter()
            .take_while(|piece| piece.at < range.end)
            .any(|piece| piece.end.is_some() || piece.at > range.start)
    }

    /// What `change` says of the places with this sign replaced, so many bytes by a character or by nothing, with the text
    /// around each change: the rest reads the same in the view it comes from. None if nothing was.
    fn rewritten(
        &self,
        sign: u8,
        which: Those,
        mut change: impl FnMut(&[u8], usize) -> Option<(usize, Option<char>)>,
    ) -> Option<View<'static>> {
        let text = self.bytes();
        let mut changes = Vec::new();
        let mut at = 0;
        while let Some(found) = memchr::memchr(sign, &text[at..]).map(|offset| at + offset) {
            let Some((length, character)) = change(text, found) else {
                at = found + 1;
                continue;
            };
            at = (found + length).min(text.len());
            if which == Those::All || self.is_changed(found..at) {
                changes.push((found..at, character, Reach::Far));
            }
        }
        self.changed(changes)
    }

    /// These ranges, in order, replaced by a character or by nothing, with as much of the text as can feel it.
    fn changed(&self, changes: Vec<(Range<usize>, Option<char>, Reach)>) -> Option<View<'static>> {
        let text = self.bytes();
        let (last, reach) = changes.last().map(|(range, _, reach)| (range.end, *reach))?;
        let mut copy = Copy::with_capacity(text.len().min(changes.len() * (BEFORE + AFTER)));
        let (mut done, mut felt) = (0, 0);
        for (range, character, reach) in changes {
            let from = reach.start(text, range.start);
            if from > felt {
                self.copy(done..felt.max(done), &mut copy);
                copy.put('\n', self.place(from..from + 1));
                done = from;
            }
            self.copy(done..range.start, &mut copy);
            if let Some(character) = character {
                copy.put(character, self.place(range.clone()));
            }
            done = range.end;
            felt = reach.end(text, done);
        }
        self.copy(last..reach.end(text, last), &mut copy);
        Some(View { reading: true, ..copy.into_view() })
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

/// How much of the text around a change is read again.
#[derive(Clone, Copy, Debug)]
enum Reach {
    /// As far as a rule sees.
    Far,
    /// The token or number that was cut, and what names it.
    Near,
}

impl Reach {
    fn start(self, text: &[u8], at: usize) -> usize {
        match self {
            Self::Far => word_start(text, at.saturating_sub(BEFORE)),
            Self::Near => word_start(text, word_start(text, at).saturating_sub(BEFORE_NEAR)),
        }
    }

    fn end(self, text: &[u8], at: usize) -> usize {
        match self {
            Self::Far => word_end(text, at + AFTER),
            Self::Near => word_end(text, at + AFTER_NEAR),
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
        View { text: Cow::Owned(self.text), pieces: Some(self.pieces), reading: false }
    }
}

/// Adds a character that is not ASCII (or none at all), as what it stands for.
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
        // UTF-16 that was read byte by byte has one between any two letters.
        '\0' => {}
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

/// Whether a character shows nothing and separates nothing: soft hyphen, joiners and other zero-width ones, controls
/// of direction, variation selectors, tags, fillers. The one list of them for whoever must not be fooled by such
/// characters: Unicode's `Default_Ignorable_Code_Point` and the marks of interlinear annotation.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
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

const NUL: u8 = 0;
const BEFORE: usize = 192;
const AFTER: usize = 256;
const BEFORE_NEAR: usize = 40;
const AFTER_NEAR: usize = 32;
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
    fn invisible_characters_are_one_list() {
        let hidden = "\u{ad}\u{200b}\u{200d}\u{200e}\u{202e}\u{2060}\u{2066}\u{fe00}\u{fe0f}\u{feff}\u{fff0}\u{e0041}\u{e0100}\u{e01ef}";
        assert!(hidden.chars().all(is_invisible));
        assert!(!"a -\n\t\u{a0}\u{e9}\u{301}\u{540d}\u{1f600}\u{fffd}".chars().any(is_invisible));
    }

    #[test]
    fn disguises_fold_and_map_back() {
        let cases = [
            ("a\u{200b}b@c.de", "ab@c.de"),
            ("a\0b\0@\0c", "ab@c"),
            ("\u{ff41}\u{ff20}\u{ff11}", "a@1"),
            ("4111\u{a0}1111\u{2011}1111", "4111 1111-1111"),
            ("\u{660}\u{661}\u{966}", "010"),
            ("h\u{e9}llo \u{540d}", "h\u{e9}llo \u{540d}"),
            ("B\u{435}\u{430}rer", "Bearer"),
            ("\u{3a1}RIVATE \u{41a}\u{415}\u{423}-----", "PRIVATE KEY-----"),
            ("\u{41a}\u{415}\u{423} \u{441}\u{435}\u{43e}", "\u{41a}\u{415}\u{423} \u{441}\u{435}\u{43e}"),
        ];
        for (text, folded) in cases {
            let view = View::plain(text);
            assert_eq!(std::str::from_utf8(view.bytes()), Ok(folded));
            assert_eq!(view.place(0..view.bytes().len()), 0..text.len());
        }
    }
}
