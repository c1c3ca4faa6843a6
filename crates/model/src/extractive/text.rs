//! Cutting text into sentences and words, in any language and in linear time.
//!
//! Leaves all judgement to its callers. What is easy to get wrong: a full stop is rarely the end of a sentence in
//! `v2.3.1`, `e.g. this`, `example.org` or `foo.rs`, so it counts only before white space and never after a short
//! form.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::lists::{ELISIONS, SHORT_FORMS, irregular};

/// The sentences of `text`, trimmed and without empty ones.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut cut = |start: usize, end: usize| {
        let sentence = text[start..end].trim();
        if sentence.chars().any(char::is_alphanumeric) || sentence.chars().any(is_pictograph) {
            found.push(sentence);
        }
    };
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let mut end = at + letter.len_utf8();
        let over = match letter {
            '\n' | '\r' | '\u{2028}' | '\u{2029}' | '。' | '！' | '？' | '｡' | '؟' | '۔' | '।' => {
                true
            }
            '!' | '?' | '…' => stops(&mut letters, &mut end),
            '.' => stops(&mut letters, &mut end) && !is_short_form(&text[start..at]),
            _ => false,
        };
        if over {
            cut(start, end);
            start = end;
        }
    }
    cut(start, text.len());
    found
}

/// Takes closing marks that belong to a stop into the sentence; says whether white space or the end follows.
fn stops(letters: &mut std::iter::Peekable<std::str::CharIndices<'_>>, end: &mut usize) -> bool {
    while let Some((at, next)) = letters.peek().copied() {
        if !matches!(next, '.' | '!' | '?' | '…' | '"' | '\'' | ')' | ']' | '”' | '’' | '»') {
            return next.is_whitespace();
        }
        *end = at + next.len_utf8();
        letters.next();
    }
    true
}

/// Whether what stands before a full stop is an abbreviation or an initial.
fn is_short_form(before: &str) -> bool {
    let last =
        before.rsplit(|letter: char| letter.is_whitespace() || letter == '(').next().unwrap_or_default();
    let mut letters = last.chars();
    if let (Some(first), None) = (letters.next(), letters.next()) {
        // An initial, a numbered item or "i.e.", but not the pronoun: "so do I."
        return first.is_alphanumeric() && first != 'I';
    }
    if last.len() > LONGEST_SHORT_FORM {
        return false;
    }
    // "e.g", "z.B", "p.ex": a stop inside already.
    let inner_stop = last.contains('.')
        && last.split('.').all(|part| part.len() <= 2 && part.chars().all(char::is_alphabetic));
    inner_stop || SHORT_FORMS.has(&last.to_lowercase())
}

/// A word of a text: how it was written and what it is compared by.
#[derive(Clone, Debug)]
pub(super) struct Word<'a> {
    /// As it stands in the text.
    pub(super) raw: &'a str,
    /// Where it starts, in bytes.
    pub(super) at: usize,
    /// Lower case, without accents and English contractions' apostrophes.
    pub(super) plain: String,
    /// `plain` without common endings.
    pub(super) stem: String,
    /// Whether it stands inside quotation marks.
    pub(super) quoted: bool,
}

/// The words of `text`. Scripts without spaces give pairs of letters, which overlap.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    let mut start = None;
    let mut quoted = false;
    let mut pair: Option<(usize, char)> = None;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let spaceless = is_spaceless(letter);
        let inside = !spaceless
            && (letter.is_alphanumeric() || is_combining_mark(letter) || joins(letter, &letters, start));
        if inside {
            start.get_or_insert(at);
        } else if let Some(start) = start.take() {
            found.push(word(&text[start..at], start, quoted));
        }
        if spaceless {
            if let Some((before, _)) = pair {
                found.push(word(&text[before..at + letter.len_utf8()], before, quoted));
            }
            pair = Some((at, letter));
        } else {
            pair = None;
        }
        quoted = match letter {
            '"' | '„' => !quoted,
            '“' | '«' => true,
            '”' | '»' => false,
            _ => quoted,
        };
    }
    if let Some(start) = start {
        found.push(word(&text[start..], start, quoted));
    }
    found
}

/// Whether a mark holds two halves of one word together, as in `it's`, `e-mail`, `v2.3` and `me@host`.
fn joins(mark: char, rest: &std::iter::Peekable<std::str::CharIndices<'_>>, start: Option<usize>) -> bool {
    let followed =
        || rest.clone().next().is_some_and(|(_, next)| next.is_alphanumeric() && !is_spaceless(next));
    start.is_some()
        && matches!(mark, '\'' | '’' | '.' | '_' | '+' | '#')
        && (matches!(mark, '+' | '#') || followed())
}

fn word(raw: &str, at: usize, quoted: bool) -> Word<'_> {
    let plain = plain(raw);
    let stem = stem(&plain);
    Word { raw, at, plain, stem, quoted }
}

/// What two spellings of a word share: case, accents and apostrophes are gone.
pub(super) fn plain(word: &str) -> String {
    let short = word.char_indices().nth(LONGEST_WORD).map_or(word, |(end, _)| &word[..end]);
    if short.is_ascii() {
        return short.to_ascii_lowercase();
    }
    let folded = short.nfkd().filter(|letter| !is_combining_mark(*letter)).flat_map(char::to_lowercase);
    folded.map(|letter| if letter == '’' { '\'' } else { letter }).collect()
}

/// `plain` without the endings that English, and partly its neighbours, put on a word.
pub(super) fn stem(plain: &str) -> String {
    let word = plain.strip_suffix("'s").unwrap_or(plain);
    // "j'aime", "l'eau", "qu'il"
    let word = word
        .split_once('\'')
        .filter(|(head, tail)| ELISIONS.has(head) && tail.len() > 2)
        .map_or(word, |(_, tail)| tail);
    if let Some(root) = irregular(word) {
        return root.to_owned();
    }
    if !word.is_ascii() || word.len() < 4 || word.contains(|letter: char| letter.is_ascii_digit()) {
        return word.to_owned();
    }
    let cut = |ending: &str, least: usize| word.strip_suffix(ending).filter(|rest| rest.len() >= least);
    let rest = if let Some(rest) = cut("ies", 2) {
        return format!("{rest}y");
    } else if let Some(rest) = cut("sses", 2) {
        return format!("{rest}ss");
    } else if let Some(rest) = cut("ing", 3).or_else(|| cut("ed", 3)) {
        rest
    } else if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        word
    } else {
        cut("s", 3).unwrap_or(word)
    };
    // "running" and "runs", "deploy" and "deployed", "use" and "using".
    let bytes = rest.as_bytes();
    let doubled = rest.len() > 3 && rest.len() < word.len() && bytes[rest.len() - 1] == bytes[rest.len() - 2];
    let rest = if doubled && !rest.ends_with("ss") && !rest.ends_with("ll") {
        &rest[..rest.len() - 1]
    } else {
        rest
    };
    rest.strip_suffix('e').filter(|short| short.len() > 2).unwrap_or(rest).to_owned()
}

/// Whether a script writes words without spaces.
fn is_spaceless(letter: char) -> bool {
    matches!(letter, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{0e01}'..='\u{0e4e}' | '\u{20000}'..='\u{2fa1f}')
}

fn is_pictograph(letter: char) -> bool {
    matches!(letter, '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}')
}

/// Longer words are compared by their beginning.
const LONGEST_WORD: usize = 48;

/// Longer words are not abbreviations.
const LONGEST_SHORT_FORM: usize = 8;
