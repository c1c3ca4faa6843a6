//! The user's own words: what is always replaced, and what never is.
//!
//! Words and texts are compared in one form: disguises folded away, in one case, accents apart from their letters. Easy
//! to get wrong: a find must begin and end between characters of the text, whose form may be longer or shorter.

use std::collections::HashSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::OpenError;
use crate::finding::{Hit, Tier};
use crate::normalise::View;
use crate::rules::TERM;

/// Words to replace always and values to leave alone, compared without regard to case.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    always: Option<AhoCorasick>,
    never: HashSet<Vec<u8>>,
}

impl Dictionary {
    pub(crate) fn open(always: &[String], never: &[String]) -> Result<Self, OpenError> {
        let formed = |words: &[String]| -> HashSet<Vec<u8>> {
            words.iter().map(|word| form_of(word.trim())).filter(|word| !word.is_empty()).collect()
        };
        let words = formed(always);
        let always = if words.is_empty() {
            None
        } else {
            let automaton = AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::Standard)
                .build(words)
                .map_err(|_| OpenError::TooManyWords)?;
            Some(automaton)
        };
        Ok(Self { always, never: formed(never) })
    }

    /// Whole words of the list. A script without spaces has no others.
    pub(crate) fn scan(&self, text: &[u8], hits: &mut Vec<Hit>) {
        let Some(always) = &self.always else { return };
        let form = if text.is_ascii() { None } else { Some(Form::of(text)) };
        for found in always.find_overlapping_iter(form.as_ref().map_or(text, |form| &form.text)) {
            let place = match &form {
                Some(form) => form.place(found.range()),
                None => Some(found.range()),
            };
            if let Some(place) = place
                && !goes_on(text, place.start)
                && !goes_on(text, place.end)
            {
                hits.push(Hit { start: place.start, end: place.end, rule: TERM });
            }
        }
    }

    /// Whether a find is on the list of what to leave alone. What is critical never is.
    pub(crate) fn spares(&self, hit: &Hit, text: &str) -> bool {
        !self.never.is_empty()
            && hit.rule.tier == Tier::Noncritical
            && text.get(hit.start..hit.end).is_some_and(|value| self.never.contains(&form_of(value)))
    }
}

/// The form of a whole word, its disguises folded away.
fn form_of(word: &str) -> Vec<u8> {
    Form::of(View::plain(word).bytes()).text
}

/// A text in the form in which words are compared.
#[derive(Debug, Default)]
struct Form {
    text: Vec<u8>,
    /// The characters whose form is several, or of another length: where they are in the form and where in the text.
    others: Vec<(Range<usize>, Range<usize>)>,
}

impl Form {
    fn of(text: &[u8]) -> Self {
        let mut form = Self { text: Vec::with_capacity(text.len()), others: Vec::new() };
        let mut at = 0;
        for chunk in text.utf8_chunks() {
            for c in chunk.valid().chars() {
                form.push(c, at);
                at += c.len_utf8();
            }
            form.text.extend_from_slice(chunk.invalid());
            at += chunk.invalid().len();
        }
        form
    }

    fn push(&mut self, c: char, at: usize) {
        if c.is_ascii() {
            self.text.push(c.to_ascii_lowercase() as u8);
            return;
        }
        let start = self.text.len();
        let mut many = 0;
        let mut put = |c: char| {
            many += 1;
            self.text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        };
        match c {
            // Of the scripts without case, and with nothing to take apart.
            '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => put(c),
            // Turkish, which others write without its dot.
            '\u{130}' => put('i'),
            '\u{1e9e}' => "ss".chars().for_each(put),
            // By way of capitals, so that `ß` is `ss` and both kinds of `σ` are one.
            _ => c.to_uppercase().flat_map(char::to_lowercase).nfd().for_each(put),
        }
        if many != 1 || self.text.len() - start != c.len_utf8() {
            self.others.push((start..self.text.len(), at..at + c.len_utf8()));
        }
    }

    /// Where in the text a range of the form is, unless it cuts a character.
    fn place(&self, range: Range<usize>) -> Option<Range<usize>> {
        let back = |at: usize| {
            let next = self.others.partition_point(|(form, _)| form.end <= at);
            if self.others.get(next).is_some_and(|(form, _)| form.start < at) {
                return None;
            }
            let (form, text) = next.checked_sub(1).map_or((0, 0), |last| {
                let (form, text) = &self.others[last];
                (form.end, text.end)
            });
            Some(text + at - form)
        };
        Some(back(range.start)?..back(range.end)?)
    }
}

/// Whether a word goes on over a place: a letter of a script with spaces stands on both sides of it, or a mark behind it
/// belongs to the letter before.
fn goes_on(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(LONGEST)..at];
    let before = (0..before.len()).find_map(|from| whole(&before[from..])?.chars().next_back());
    let behind = &text[at..text.len().min(at + LONGEST)];
    let behind = (1..=behind.len()).find_map(|to| whole(&behind[..to])?.chars().next());
    match (before, behind) {
        (Some(before), Some(behind)) => is_combining_mark(behind) || (is_spaced(before) && is_spaced(behind)),
        _ => false,
    }
}

fn whole(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// A letter or digit, or a mark on one, of a script that parts its words by spaces. Korean does, but hangs its particles
/// on them.
fn is_spaced(c: char) -> bool {
    let unspaced = matches!(c,
        '\u{e00}'..='\u{eff}' // Thai, Lao
        | '\u{f00}'..='\u{fff}' // Tibetan
        | '\u{1000}'..='\u{109f}' | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}' // Burmese
        | '\u{1780}'..='\u{17ff}' | '\u{1950}'..='\u{19df}' | '\u{1a20}'..='\u{1aaf}' // Khmer, Tai
        | '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' // Korean
        | '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{ff66}'..='\u{ffdc}' // Chinese, Japanese, Yi
        | '\u{16fe0}'..='\u{18cff}' | '\u{1aff0}'..='\u{1b2ff}' | '\u{20000}'..='\u{3ffff}'
    );
    !unspaced && (c.is_alphanumeric() || is_combining_mark(c))
}

/// Bytes of a character.
const LONGEST: usize = 4;

#[cfg(test)]
mod tests {
    use crate::{Options, Redactor};

    fn redacted(always: &str, text: &str) -> String {
        let options = Options { always: vec![always.to_owned()], ..Options::default() };
        Redactor::new(options).unwrap().redact_text(text).text
    }

    #[test]
    fn words_are_found_however_they_are_written() {
        let term = "<REDACTED:TERM>";
        for (word, text, expected) in [
            ("acme", "ACME, Acme_x and acmes", "<REDACTED:TERM>, <REDACTED:TERM>_x and acmes"),
            // Without spaces, and beside letters that have them.
            (
                "\u{5f20}\u{4f1f}",
                "\u{6211}\u{548c}\u{5f20}\u{4f1f}\u{8bf4}",
                "\u{6211}\u{548c}<REDACTED:TERM>\u{8bf4}",
            ),
            ("\u{c774}\u{c9c0}\u{c6b0}", "\u{c774}\u{c9c0}\u{c6b0}\u{b294}", "<REDACTED:TERM>\u{b294}"),
            (
                "\u{e2a}\u{e21}\u{e0a}\u{e32}\u{e22}",
                "\u{e04}\u{e38}\u{e13}\u{e2a}\u{e21}\u{e0a}\u{e32}\u{e22}",
                "\u{e04}\u{e38}\u{e13}<REDACTED:TERM>",
            ),
            ("Acme", "\u{7528}ACME\u{7684}", "\u{7528}<REDACTED:TERM>\u{7684}"),
            ("acme", "\u{ab}Acme\u{bb}", "\u{ab}<REDACTED:TERM>\u{bb}"),
            // Signs of typesetters, on either side.
            ("O\u{2019}Brien", "o'brien", term),
            ("O'Brien", "O\u{2019}Brien", term),
            ("Jean\u{2010}Luc", "Jean-Luc", term),
            ("Jean-Luc", "JEAN\u{2011}LUC", term),
            // Case beyond ASCII.
            ("\u{d6}zg\u{fc}r", "\u{f6}ZG\u{dc}R", term),
            (
                "\u{418}\u{432}\u{430}\u{43d}",
                "\u{418}\u{412}\u{410}\u{41d}\u{430} \u{438}\u{432}\u{430}\u{43d}",
                "\u{418}\u{412}\u{410}\u{41d}\u{430} <REDACTED:TERM>",
            ),
            ("Stra\u{df}e", "x STRASSE y stra\u{1e9e}e", "x <REDACTED:TERM> y <REDACTED:TERM>"),
            ("\u{39f}\u{394}\u{3a5}\u{3a3}", "\u{3bf}\u{3b4}\u{3c5}\u{3c2}", term),
            ("istanbul", "\u{130}stanbul", term),
            // Accents apart or not.
            ("M\u{fc}ller", "Mu\u{308}ller", term),
            ("Mu\u{308}ller", "M\u{dc}LLER", term),
            ("cafe", "caf\u{e9} cafe\u{301} cafe", "caf\u{e9} cafe\u{301} <REDACTED:TERM>"),
            ("gros", "gro\u{df}", "gro\u{df}"),
        ] {
            assert_eq!(redacted(word, text), expected, "{word}");
        }
    }

    #[test]
    fn a_longer_word_that_is_none_does_not_hide_a_shorter_one() {
        let always = ["acme", "acme corp", "\u{200b}"].map(str::to_owned).to_vec();
        let options = Options { always, ..Options::default() };
        let redactor = Redactor::new(options).unwrap();
        assert_eq!(redactor.redact_text("acme corporate").text, "<REDACTED:TERM> corporate");
        assert_eq!(redactor.redact_text("an ACME Corp.").text, "an <REDACTED:TERM>.");
    }

    #[test]
    fn values_to_leave_alone_are_compared_the_same_way() {
        let never =
            ["jane\u{2010}doe@example.org", "\u{d6}zg\u{fc}r@example.org"].map(str::to_owned).to_vec();
        let always = vec!["\u{f6}zg\u{fc}r@example.org".to_owned()];
        let options = Options { never, always, ..Options::default() };
        let redactor = Redactor::new(options).unwrap();
        for text in ["JANE-doe@example.org", "jane\u{2011}doe@EXAMPLE.org", "\u{d6}ZG\u{dc}R@example.org"] {
            assert_eq!(redactor.redact_text(text).findings, [], "{text}");
        }
    }
}
