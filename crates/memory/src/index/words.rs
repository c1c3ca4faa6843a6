//! Text to terms: the one analysis that indexing, the tail and queries share.
//!
//! A term is a stem (`decided` and `decide` meet), a whole identifier (`auth-service`, `c++`, `user@x.com`, `v2.3.1`) beside
//! its parts, or a pair of neighbouring characters where a script has no spaces. Case and diacritics are folded. There is
//! no syntax: every character is either part of a term or parts terms. Easy to get wrong: any change here changes what is
//! in the files, so [`super::manifest::VERSION`] must change with it.

use std::sync::OnceLock;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;

/// What kind of term it is, which says whether a misspelling of it is worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TermKind {
    /// The stem of a word.
    Word,
    /// An identifier, as it was written.
    Whole,
    /// One or two characters of a script without spaces.
    Gram,
}

/// Terms of a document's text, in order, repetitions included.
pub(super) fn document_terms(text: &str, each: &mut dyn FnMut(&str)) {
    Analysis { singles: true, each: &mut |term, _| each(term) }.text(text);
}

/// Words of a text as they are, folded: parts of identifiers apart, without those that are in every text.
pub(super) fn plain_words(text: &str, each: &mut dyn FnMut(&str)) {
    for part in text.split(|c: char| !c.is_alphanumeric() && !is_mark(c)).filter(|part| !part.is_empty()) {
        let mut start = 0;
        for end in humps(part).into_iter().chain([part.len()]) {
            let word = fold(cut(&part[start..end], TERM_BYTES));
            start = end;
            if !is_stop_word(&word) {
                each(&word);
            }
        }
    }
}

/// Distinct terms of a query, in order, as many as are worth a look.
pub(super) fn query_terms(text: &str) -> Vec<(String, TermKind)> {
    let mut terms: Vec<(String, TermKind)> = Vec::new();
    let mut each = |term: &str, kind| {
        if terms.len() < QUERY_TERMS && !terms.iter().any(|(seen, _)| seen == term) {
            terms.push((term.to_owned(), kind));
        }
    };
    Analysis { singles: false, each: &mut each }.text(cut(text, QUERY_BYTES));
    terms
}

/// A tag as one exact term. Long ones and those with a line break go by their hash, because a term is a line.
pub(super) fn tag_term(tag: &str) -> String {
    if tag.len() <= TAG_BYTES && !tag.contains(['\n', HASHED]) {
        return tag.to_owned();
    }
    let hash = ring::digest::digest(&ring::digest::SHA256, tag.as_bytes());
    let mut term = String::from(HASHED);
    for byte in hash.as_ref() {
        term.push_str(&format!("{byte:02x}"));
    }
    term
}

struct Analysis<'a> {
    /// Whether single characters of scripts without spaces are terms even where they have neighbours.
    singles: bool,
    each: &'a mut dyn FnMut(&str, TermKind),
}

impl Analysis<'_> {
    fn text(&mut self, text: &str) {
        for chunk in text.split(|c: char| !(c.is_alphanumeric() || is_mark(c) || CONNECTORS.contains(c))) {
            self.chunk(chunk);
        }
    }

    /// Folding can leave nothing of a character, or make many of one.
    fn emit(&mut self, term: &str, kind: TermKind) {
        let term = cut(term.trim(), TERM_BYTES).trim_end();
        if !term.is_empty() {
            (self.each)(term, kind);
        }
    }

    /// A run of letters, digits and what holds identifiers together.
    fn chunk(&mut self, chunk: &str) {
        if chunk.is_ascii() {
            return self.spaced(chunk);
        }
        let mut rest = chunk;
        while let Some(first) = rest.chars().next() {
            let dense = is_dense(first);
            let end = rest.find(|c: char| is_dense(c) != dense && !is_mark(c)).unwrap_or(rest.len());
            let (run, later) = rest.split_at(end);
            rest = later;
            if dense { self.dense(run) } else { self.spaced(run) }
        }
    }

    /// Pairs of neighbouring characters.
    fn dense(&mut self, run: &str) {
        let folded: Vec<char> = run.nfkc().flat_map(char::to_lowercase).collect();
        let mut term = String::new();
        for (i, &c) in folded.iter().enumerate() {
            if self.singles || folded.len() == 1 {
                term.clear();
                term.push(c);
                self.emit(&term, TermKind::Gram);
            }
            if let Some(&next) = folded.get(i + 1) {
                term.clear();
                term.extend([c, next]);
                self.emit(&term, TermKind::Gram);
            }
        }
    }

    /// Words and identifiers.
    fn spaced(&mut self, chunk: &str) {
        let chunk = chunk.trim_start_matches(|c: char| !c.is_alphanumeric());
        let chunk =
            chunk.trim_end_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '+' | '#') && !is_mark(c));
        if chunk.is_empty() {
            return;
        }
        let joined =
            chunk.contains(|c: char| !c.is_alphanumeric() && !APOSTROPHES.contains(&c) && !is_mark(c));
        if joined && chunk.len() <= TERM_BYTES {
            self.emit(&fold(chunk), TermKind::Whole);
        }
        for part in chunk.split(|c: char| !c.is_alphanumeric() && !is_mark(c)) {
            self.part(part, joined);
        }
    }

    /// Letters and digits only; `joined` if an identifier that is already a term has it inside.
    fn part(&mut self, part: &str, joined: bool) {
        if part.is_empty() {
            return;
        }
        let mut start = 0;
        for end in humps(part) {
            self.word(&part[start..end], true);
            start = end;
        }
        if start > 0 {
            self.word(&part[start..], true);
            self.emit(&fold(cut(part, TERM_BYTES)), TermKind::Whole);
        } else {
            self.word(part, joined);
        }
    }

    /// One word. Single letters and digits inside something larger say nothing.
    fn word(&mut self, word: &str, inside: bool) {
        let word = fold(cut(word, TERM_BYTES));
        if (inside && word.len() == 1) || is_stop_word(&word) {
            return;
        }
        if word.bytes().all(|b| b.is_ascii_lowercase()) {
            self.emit(&Stemmer::new(Algorithm::English).stem(&word), TermKind::Word);
        } else {
            self.emit(&word, TermKind::Word);
        }
    }
}

/// Where `camelCase` and `HTTPServer` begin a new word.
fn humps(part: &str) -> Vec<usize> {
    let chars: Vec<(usize, char)> = part.char_indices().collect();
    let mut found = Vec::new();
    for window in chars.windows(2) {
        let [(_, before), (at, c)] = [window[0], window[1]];
        let next = part[at..].chars().nth(1);
        let after_small = (before.is_lowercase() || before.is_numeric()) && c.is_uppercase();
        let last_capital = before.is_uppercase() && c.is_uppercase() && next.is_some_and(char::is_lowercase);
        if after_small || last_capital {
            found.push(at);
        }
    }
    found
}

/// Lower case without diacritics.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    for c in text.nfkd().filter(|&c| !is_diacritic(c)).flat_map(char::to_lowercase).nfc() {
        match c {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'ø' => folded.push('o'),
            'đ' | 'ð' => folded.push('d'),
            'ł' => folded.push('l'),
            'ı' => folded.push('i'),
            'þ' => folded.push_str("th"),
            c if is_diacritic(c) => {}
            c => folded.push(c),
        }
    }
    folded
}

/// The start of a text, of at most so many bytes.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes.min(text.len()))]
}

/// Combining marks of the scripts that are read without them, too.
fn is_diacritic(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Marks that belong to the letter before them.
fn is_mark(c: char) -> bool {
    is_diacritic(c) || unicode_normalization::char::is_combining_mark(c)
}

/// Whether the script is written without spaces between words.
fn is_dense(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff   // Thai, Lao, Myanmar, Khmer
        | 0x1100..=0x11ff | 0xac00..=0xd7ff                   // Hangul
        | 0x3005..=0x3007 | 0x3040..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9f // kana
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff) // Han
}

fn is_stop_word(word: &str) -> bool {
    static SORTED: OnceLock<Vec<&str>> = OnceLock::new();
    let sorted = SORTED.get_or_init(|| {
        let mut words: Vec<&str> = STOP_WORDS.split_ascii_whitespace().collect();
        words.sort_unstable();
        words
    });
    word.len() <= 10 && sorted.binary_search(&word).is_ok()
}

/// What identifiers are held together with; anything else ends them.
const CONNECTORS: &str = "-_./\\:@+#'’&";
const APOSTROPHES: [char; 2] = ['\'', '’'];
/// Begins a tag that goes by its hash.
const HASHED: char = '\u{1}';
const TAG_BYTES: usize = 256;
/// The longest term; more of a word than this tells nothing apart.
const TERM_BYTES: usize = 64;
/// As much of a query as is read.
const QUERY_BYTES: usize = 16 * 1024;
/// Distinct terms of a query that are looked up.
const QUERY_TERMS: usize = 64;

/// English words that are in every text, and what an apostrophe leaves behind. `not`, `go`, `it` as a name and the like
/// stay out of the files as well: they would be the longest lists and decide nothing.
const STOP_WORDS: &str = "a an and are as at be been being but by did do does doing for from had has have having he her \
    here hers him his how i if in into is it its itself just ll me mine my of on or our ours re s she should so some such \
    t than that the their theirs them then there these they this those to too us ve very was we were what when where which \
    while who whom whose why will with would you your yours d m don didn doesn isn wasn couldn wouldn shouldn about am can \
    could any";

#[cfg(test)]
mod tests;
