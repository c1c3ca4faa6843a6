//! The most telling terms.

use std::collections::{BTreeMap, HashMap};

use super::lines::{Form, Statement};
use super::lists;
use super::source::Source;
use super::words::{is_opaque, is_spaceless, stem, words};

/// What a card already says, which makes words tell more.
#[derive(Debug)]
pub(super) struct Said<'c> {
    pub(super) title: &'c str,
    pub(super) decisions: &'c [String],
    pub(super) todos: &'c [String],
    pub(super) entities: &'c [String],
    pub(super) tags: &'c [&'c str],
}

/// At most `most` keywords in lower case, the most telling first.
pub(super) fn keywords(said: &[Statement], card: &Said<'_>, most: usize) -> Vec<String> {
    let mut terms = Terms::default();
    for statement in said.iter().filter(|one| one.form != Form::Code) {
        terms.add(&statement.text, weight(statement.source));
    }
    terms.add(card.title, 4.0);
    card.decisions.iter().for_each(|text| terms.add(text, 2.0));
    card.todos.iter().for_each(|text| terms.add(text, 1.5));
    card.entities.iter().for_each(|text| terms.add(text, 1.5));
    card.tags.iter().for_each(|tag| terms.add(tag, 3.0));
    terms.ranked(most)
}

fn weight(source: Source) -> f32 {
    match source {
        Source::Summary => 3.0,
        Source::Request | Source::Final => 1.5,
        Source::Talk => 1.0,
        Source::Error => 1.0,
        Source::Answer | Source::Other => 0.5,
        Source::Output => 0.0,
    }
}

#[derive(Default)]
struct Terms {
    /// By what its forms share.
    terms: HashMap<String, Term>,
    /// Runs of signs without blanks, with what they weigh.
    runs: Vec<(String, f32)>,
}

#[derive(Default)]
struct Term {
    weight: f32,
    order: usize,
    forms: BTreeMap<String, usize>,
}

impl Terms {
    fn add(&mut self, text: &str, weight: f32) {
        if weight <= 0.0 {
            return;
        }
        for word in words(text) {
            if word.chars().next().is_some_and(is_spaceless) {
                self.runs.extend(runs(word).map(|run| (run.to_owned(), weight)));
                continue;
            }
            // "read/write" is two words, "src/main.rs" is one.
            if word.contains('/') && !word.contains('.') {
                word.split('/').for_each(|part| self.put(part, weight));
            } else {
                self.put(word, weight);
            }
        }
    }

    fn put(&mut self, word: &str, weight: f32) {
        let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word);
        let lower = word.to_lowercase();
        let length = lower.chars().count();
        let said = lower.chars().any(char::is_alphabetic) && (length > 2 || SHORT.contains(&lower.as_str()));
        // In lower case a long name may look like a key.
        let long = length > LONGEST || (length >= LONGEST_CHANGED && lower != word);
        let counted = lower.starts_with(|first: char| first.is_ascii_digit())
            && lower.chars().filter(|letter| letter.is_alphabetic()).count() < 3;
        // `a::b`, but no piece of an address.
        let piece = lower.contains("::")
            && !lower
                .split("::")
                .all(|part| part.len() > 1 && !part.starts_with(|first: char| first.is_ascii_digit()));
        if !said
            || piece
            || long
            || counted
            || lists::STOP.has(&lower)
            || is_opaque(&lower)
            || lower.contains('@')
            || self.terms.len() > MOST_SEEN
        {
            return;
        }
        let order = self.terms.len();
        let term = self.terms.entry(stem(&lower).to_owned()).or_insert(Term { order, ..Term::default() });
        term.weight += weight;
        *term.forms.entry(lower).or_default() += 1;
    }

    fn ranked(mut self, most: usize) -> Vec<String> {
        self.settle_runs();
        let mut terms: Vec<Term> = self.terms.into_values().collect();
        terms.sort_by(|one, other| other.weight.total_cmp(&one.weight).then(one.order.cmp(&other.order)));
        // The commonest form, of those the shortest.
        let form = |term: Term| {
            term.forms
                .into_iter()
                .max_by_key(|(form, count)| (*count, std::cmp::Reverse(form.len())))
                .map(|(form, _)| form)
        };
        terms.into_iter().take(most).filter_map(form).collect()
    }

    /// Short runs are words; of long ones the pairs that come again are.
    fn settle_runs(&mut self) {
        let mut pairs: HashMap<String, usize> = HashMap::new();
        for (run, _) in &self.runs {
            let signs: Vec<char> = run.chars().collect();
            signs.windows(2).for_each(|pair| *pairs.entry(pair.iter().collect()).or_default() += 1);
        }
        for (run, weight) in std::mem::take(&mut self.runs) {
            let signs: Vec<char> = run.chars().collect();
            if signs.len() <= LONGEST_RUN || run.chars().all(is_katakana) {
                self.sign(run, weight);
                continue;
            }
            let mut at = 0;
            while at + 2 <= signs.len() {
                let pair: String = signs[at..at + 2].iter().collect();
                let again = pairs.get(&pair).is_some_and(|count| *count > 1);
                at += if again { 2 } else { 1 };
                if again {
                    self.sign(pair, weight);
                }
            }
        }
    }

    fn sign(&mut self, run: String, weight: f32) {
        if self.terms.len() <= MOST_SEEN && !lists::STOP.has(&run) {
            let order = self.terms.len();
            let term = self.terms.entry(run.clone()).or_insert(Term { order, ..Term::default() });
            term.weight += weight;
            *term.forms.entry(run).or_default() += 1;
        }
    }
}

/// A run of signs in words, as far as signs that only bind words tell: two signs or more each.
fn runs(word: &str) -> impl Iterator<Item = &str> {
    let empty = |letter: char| is_hiragana(letter) || lists::EMPTY_SIGNS.has(letter.encode_utf8(&mut [0; 4]));
    let mut parts = Vec::new();
    for part in word.split(empty) {
        // Katakana beside Han is another word.
        let mut start = 0;
        let mut before = None;
        for (at, letter) in part.char_indices() {
            let kana = is_katakana(letter);
            if before.is_some_and(|before| before != kana) {
                parts.push(&part[start..at]);
                start = at;
            }
            before = Some(kana);
        }
        parts.push(&part[start..]);
    }
    parts.into_iter().filter(|part| part.chars().count() > 1)
}

fn is_hiragana(letter: char) -> bool {
    matches!(letter, '\u{3041}'..='\u{309f}')
}

fn is_katakana(letter: char) -> bool {
    matches!(letter, '\u{30a0}'..='\u{30ff}')
}

/// Short words that do say something.
const SHORT: &[&str] = &[
    "ai", "ui", "ux", "db", "ci", "cd", "go", "c#", "c++", "r", "js", "ts", "qa", "pr", "os", "ip", "vm",
    "s3", "k8s", "io", "id", "ml",
];
const LONGEST: usize = 40;
/// In lower case, longer names may look like keys.
pub(super) const LONGEST_CHANGED: usize = 20;
const LONGEST_RUN: usize = 4;
const MOST_SEEN: usize = 50_000;

#[cfg(test)]
mod tests {
    use super::super::lines::statements;
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let card = Said { title: "", decisions: &[], todos: &[], entities: &[], tags: &[] };
        keywords(&statements(text, Source::Summary), &card, 20)
    }

    #[test]
    fn keywords_tell() {
        let cases: &[(&str, &[&str])] = &[
            ("The JWT validation failed. Validation of a jwt.", &["jwt", "validation", "failed"]),
            (
                "auth-service in src/main.rs calls foo_bar in C++",
                &["auth-service", "src/main.rs", "calls", "foo_bar", "c++"],
            ),
            ("On 2024-01-02 at 10:30 we had 500 <REDACTED:EMAIL>", &[]),
            ("tokens token tokens", &["tokens"]),
            ("认证服务的令牌验证失败", &["认证服务"]),
            ("データベースの接続が失敗", &["データベース", "接続", "失敗"]),
            ("Die Datenbank ist nicht erreichbar", &["datenbank", "erreichbar"]),
            ("commit 0f3a9c5b7d1e", &["commit"]),
        ];
        for (text, expected) in cases {
            assert_eq!(&of(text), expected, "{text}");
        }
    }
}
