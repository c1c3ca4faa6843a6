//! What the gate took out, to be found by whoever knows it: hashes under the owner's key, never the value.
//!
//! A name is found by each of its words, since people say the first or the last alone. An address, a number or a word of the
//! owner's list is found by the whole of it, however it is written. A secret is found by exactly itself and by nothing shorter.
//! The forms live as long as the request that stores them; what is kept of them is a tag of 16 bytes each, in a sealed bag.

use std::collections::{BTreeMap, HashSet};

use confidant_display::debug_without_content;
use confidant_redact::{Taken, TakenKind};
use confidant_seal::Key;

use crate::index::{Hidden, MARK, fold};

/// The forms of what was taken out of one session, and how often.
#[derive(Clone, Default)]
pub(crate) struct Replaced {
    forms: BTreeMap<String, u32>,
    values: usize,
}

debug_without_content!(Replaced { values });

impl Replaced {
    /// Takes a value.
    pub(crate) fn add(&mut self, taken: Taken<'_>) {
        let value = taken.value.trim();
        if self.forms.len() >= MOST_FORMS || value.is_empty() || value.len() > LONGEST {
            return;
        }
        let mut forms: Vec<String> = Vec::new();
        match taken.kind {
            TakenKind::Name => {
                let words = plain_words(value);
                forms.extend(words.iter().filter(|word| word.chars().count() > 1).cloned());
                forms.push(words.join(" "));
            }
            TakenKind::Personal => {
                forms.extend(digits(value));
                forms.push(plain_words(value).join(" "));
            }
            // Of a secret, and of what kinds there may be one day, nothing but the whole.
            _ => forms.push(exact(value)),
        }
        // One that is shown twice is one.
        let whole = forms.last().filter(|form| !form.is_empty());
        self.values += usize::from(whole.is_some_and(|form| !self.forms.contains_key(form)));
        forms.sort();
        forms.dedup();
        for form in forms.into_iter().filter(|form| !form.is_empty()) {
            *self.forms.entry(form).or_default() += 1;
        }
    }

    /// How many different values there were.
    pub(crate) fn values(&self) -> usize {
        self.values
    }

    /// The terms under which they are found, and how often each was there.
    pub(crate) fn terms(&self, key: &Key) -> impl Iterator<Item = (String, u32)> {
        self.forms.iter().map(|(form, &count)| (term(key, form), count))
    }
}

/// What of a query may be something that was taken out, as terms.
pub(crate) fn asked(text: &str, key: &Key) -> Vec<Hidden> {
    let text = &text[..text.floor_char_boundary(QUERY_BYTES.min(text.len()))];
    let mut seen = HashSet::new();
    let mut hidden = Vec::new();
    let mut ask = |form: String, words: &[String]| {
        if !form.is_empty() && form.len() <= LONGEST && seen.insert(form.clone()) {
            hidden.push(Hidden { term: term(key, &form), words: words.to_vec() });
        }
    };
    let words: Vec<String> = plain_words(text).into_iter().take(QUERY_WORDS).collect();
    for length in 1..=TOGETHER {
        for some in words.windows(length) {
            ask(some.join(" "), some);
        }
    }
    // A number in any groups: neighbouring words of digits, as one.
    for some in words.split(|word| !word.bytes().all(|b| b.is_ascii_digit())) {
        for from in 0..some.len() {
            for to in from + 1..=some.len().min(from + GROUPS) {
                ask(digits(&some[from..to].concat()).unwrap_or_default(), &some[from..to]);
            }
        }
    }
    for token in text.split_whitespace().take(QUERY_WORDS) {
        let inside = token.trim_matches(|c: char| !c.is_alphanumeric());
        for token in [token, inside] {
            ask(exact(token), &plain_words(token));
        }
    }
    ask(exact(text.trim()), &words);
    hidden
}

fn term(key: &Key, form: &str) -> String {
    format!("{MARK}{}", key.tag("replaced", form.as_bytes()))
}

/// Letters and digits only, folded; a genitive without its s.
fn plain_words(text: &str) -> Vec<String> {
    let text = text.replace("'s ", " ").replace("’s ", " ");
    let text = text.strip_suffix("'s").or_else(|| text.strip_suffix("’s")).unwrap_or(&text);
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.map(fold).filter(|word| !word.is_empty()).collect()
}

/// A number that is written in groups, as one; nothing if there are letters in it, or too few digits to be anybody's.
fn digits(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    (digits.len() >= FEWEST_DIGITS && !text.chars().any(char::is_alphabetic)).then(|| format!("#{digits}"))
}

/// A secret as it is: no other form may find it.
fn exact(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("!{text}") }
}

/// Forms of one session.
const MOST_FORMS: usize = 1000;
/// The longest value that is looked for, in bytes.
const LONGEST: usize = 512;
const FEWEST_DIGITS: usize = 6;
/// As much of a query as may be something that was taken out.
const QUERY_BYTES: usize = 4096;
const QUERY_WORDS: usize = 48;
/// Words of one value.
const TOGETHER: usize = 6;
/// Groups of one number.
const GROUPS: usize = 6;

#[cfg(test)]
mod tests {
    use confidant_redact::{Options, Redactor};
    use serde_json::json;

    use super::*;

    fn key() -> Key {
        Key::from_bytes([7; 32])
    }

    fn taken(text: &str) -> Replaced {
        let mut options = Options::default();
        options.names = true;
        let mut replaced = Replaced::default();
        let redactor = Redactor::new(options).unwrap();
        let _ = redactor.redact_json_telling(&json!({ "content": text }), &mut |taken| replaced.add(taken));
        replaced
    }

    fn finds(query: &str, text: &str) -> bool {
        let asked = asked(query, &key());
        taken(text).terms(&key()).any(|(term, _)| asked.iter().any(|hidden| hidden.term == term))
    }

    #[test]
    fn what_was_taken_out_is_found_by_whoever_knows_it() {
        let text = "My colleague Jane Miller said: mail jane.miller@example.org or call +1 (212) 555-0148.";
        for query in [
            "what did Jane Miller decide?",
            "Miller's decision",
            "jane",
            "\"jane.miller@example.org\"",
            "who is JANE.MILLER@example.org?",
            "call +1 212 555 0148",
            "12125550148",
        ] {
            assert!(finds(query, text), "{query}");
        }
        for query in ["what did John Mueller decide?", "example.org", "555", "2125550", "redacted", "name"] {
            assert!(!finds(query, text), "{query}");
        }
    }

    #[test]
    fn a_secret_is_found_by_nothing_shorter_than_itself() {
        let text = "the password: \"Tr0ub4dor&3-x\" is set, key ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6";
        assert!(finds("Tr0ub4dor&3-x", text));
        for length in 1.."Tr0ub4dor&3-x".len() {
            assert!(!finds(&"Tr0ub4dor&3-x"[..length], text), "{length}");
            assert!(!finds(&"Tr0ub4dor&3-x"[length..], text), "{length}");
        }
        for query in ["Tr0ub4dor 3 x", "tr0ub4dor&3-x", "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH", "ghp"] {
            assert!(!finds(query, text), "{query}");
        }
    }

    #[test]
    fn without_the_key_nothing_is_told() {
        let replaced = taken("My colleague Jane Miller said so.");
        let ours: Vec<String> = replaced.terms(&key()).map(|(term, _)| term).collect();
        let theirs: Vec<String> = replaced.terms(&Key::from_bytes([8; 32])).map(|(term, _)| term).collect();
        assert!(!ours.is_empty() && ours.iter().all(|term| !theirs.contains(term)));
        assert!(ours.iter().all(|term| !term.to_lowercase().contains("jane")));
        assert!(!format!("{replaced:?}").to_lowercase().contains("jane"));
    }

    #[test]
    fn a_query_makes_bounded_work() {
        assert!(asked(&"a1 ".repeat(100_000), &key()).len() < 1000);
        let many: String = (0..10_000).map(|n| format!("{n} ")).collect();
        assert!(asked(&many, &key()).len() < 1500);
        assert!(asked("", &key()).is_empty());
    }
}
