//! Cue phrases, and the clause that one leads to.

use super::lists;
use super::words::{is_spaceless, words};

/// A phrase that gives a clause away, and what of the sentence the clause is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cue {
    pub(super) phrase: &'static str,
    pub(super) take: Take,
}

/// What of the sentence is the clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// All of it.
    Whole,
    /// From so many words into the phrase: 0 for the phrase itself, its number of words for what follows it.
    Skip(usize),
}

/// A phrase found in a sentence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'t> {
    pub(super) cue: Cue,
    pub(super) before: &'t str,
    pub(super) from: &'t str,
    pub(super) after: &'t str,
}

/// The first of the phrases in a sentence; of those at one place, the longest.
pub(super) fn find<'t>(text: &'t str, cues: &[Cue]) -> Option<Found<'t>> {
    let mut starts = vec![0];
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let opens = !before.is_alphanumeric() && !matches!(before, '\'' | '’' | '-' | '_' | '.' | '/');
        if at > 0 && letter.is_alphanumeric() && (opens || is_spaceless(letter)) {
            starts.push(at);
        }
        before = letter;
    }
    starts.into_iter().find_map(|at| {
        let found = cues.iter().filter_map(|cue| Some((length_at(&text[at..], cue.phrase)?, cue)));
        let (length, cue) = found.max_by_key(|(length, _)| *length)?;
        Some(Found { cue: *cue, before: &text[..at], from: &text[at..], after: &text[at + length..] })
    })
}

/// How long a phrase is at the start of a text, in any case and with any apostrophe.
pub(super) fn length_at(text: &str, phrase: &str) -> Option<usize> {
    let mut letters = text.chars();
    let mut length = 0;
    let mut last = ' ';
    for wanted in phrase.chars() {
        let letter = letters.next()?;
        let same =
            letter == wanted || letter.to_ascii_lowercase() == wanted || (letter == '’' && wanted == '\'');
        if !same && letter.to_lowercase().next() != Some(wanted) {
            return None;
        }
        length += letter.len_utf8();
        last = letter;
    }
    let ends =
        letters.next().is_none_or(|next| !(next.is_alphanumeric() || matches!(next, '\'' | '’' | '_' | '-')));
    (ends || !last.is_alphanumeric() || is_spaceless(last)).then_some(length)
}

impl<'t> Found<'t> {
    /// The clause, as far as it is one.
    pub(super) fn clause(&self) -> Option<String> {
        match self.cue.take {
            Take::Whole => tidy_whole(self.before, self.from),
            Take::Skip(words) => {
                tidy(skip_words(self.from, words)).or_else(|| tidy_whole(self.before, self.from))
            }
        }
    }

    /// Whether one of the words is among the last so many before the phrase.
    pub(super) fn follows(&self, words: &[&str], near: usize) -> bool {
        last_words(self.before, near).iter().any(|word| words.contains(&word.as_str()))
    }
}

fn last_words(text: &str, most: usize) -> Vec<String> {
    let clause = text.rsplit([';', ':', '—']).next().unwrap_or(text);
    words(clause).into_iter().rev().take(most).map(|word| word.to_lowercase().replace('’', "'")).collect()
}

fn skip_words(text: &str, words: usize) -> &str {
    (0..words).fold(text.trim_start(), |rest, _| {
        rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start())
    })
}

/// The whole sentence; the parts are of one piece.
fn tidy_whole(before: &str, from: &str) -> Option<String> {
    let mut whole = before.to_owned();
    whole.push_str(from);
    let whole = whole.trim_start();
    let lead = ["and ", "so ", "but ", "then ", "ok, ", "okay, ", "ok ", "also "];
    let start =
        lead.iter().find(|lead| whole.get(..lead.len()).is_some_and(|head| head.eq_ignore_ascii_case(lead)));
    tidy(start.map_or(whole, |start| &whole[start.len()..]))
}

/// A clause that stands alone: at least two words, begun with a capital and ended without a stop.
pub(super) fn tidy(text: &str) -> Option<String> {
    let end = text.find("; ").unwrap_or(text.len());
    let text = text[..end].trim_matches(|letter: char| {
        letter.is_whitespace() || matches!(letter, ',' | ':' | ';' | '-' | '–' | '—' | '.' | '。')
    });
    let text = text.trim_end_matches(['!', '！']);
    let many = words(text).len() > 1 || text.chars().filter(|letter| is_spaceless(*letter)).count() > 3;
    many.then(|| capital(text))
}

/// Capitalised, unless the first word is a name in code, or would look like a person's.
pub(super) fn capital(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    let bare = word.trim_end_matches([',', ':', '.']);
    let plain = bare.chars().all(char::is_lowercase) && !lists::ALSO_NAMES.has(bare);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if plain => first.to_uppercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cue_is_a_phrase_and_no_piece_of_a_word() {
        let cues =
            [Cue { phrase: "let's use", take: Take::Skip(1) }, Cue { phrase: "use", take: Take::Whole }];
        let clause = |text| find(text, &cues).and_then(|found| found.clause());
        assert_eq!(clause("Ok, let’s use Redis.").as_deref(), Some("Use Redis"));
        assert_eq!(clause("So we use Redis").as_deref(), Some("We use Redis"));
        assert_eq!(clause("No user, re-use or used"), None);
        assert_eq!(clause("use"), None);
    }

    #[test]
    fn names_in_code_and_of_people_stay_as_they_are() {
        for (text, expected) in [
            ("fix it", "Fix it"),
            ("foo_bar is", "foo_bar is"),
            ("mark it", "mark it"),
            ("älter ist", "Älter ist"),
        ] {
            assert_eq!(capital(text), expected);
        }
    }
}
