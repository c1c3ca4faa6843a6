//! What a message is about, in a few words of its own.

use confidant_redact::Redactor;

use super::Glance;
use super::text::{Text, Word};
use super::words::STOP_WORDS;
use crate::tidy::{MOST_TAGS, tag};

/// At most [`MOST_TAGS`] words that say what the message is about; earlier messages help a short one out.
/// The gate sees them first: written small and without marks, a secret is past knowing.
pub(super) fn tags(glance: &Glance<'_>, gate: &Redactor) -> Vec<String> {
    let mut found: Vec<Found> = Vec::new();
    for (said, weight) in glance.weighted() {
        // A message that says enough needs no help.
        if weight < 1.0 && found.len() >= ENOUGH {
            break;
        }
        let clean = said.clean(gate);
        if clean == said.raw {
            collect(said.text(), weight, &mut found);
        } else {
            collect(&Text::read(&without_placeholders(&clean)), weight, &mut found);
        }
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.at.cmp(&b.at)));
    found.truncate(MOST_TAGS);
    found.into_iter().filter_map(|found| tag(&found.tag)).collect()
}

/// The text without what stands in the place of secrets.
fn without_placeholders(text: &str) -> String {
    let mut parts = text.split(PLACEHOLDER);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + " " + part.split_once('>').map_or("", |(_, rest)| rest))
}

struct Found {
    key: String,
    tag: String,
    score: f32,
    /// How many were found before it.
    at: usize,
}

fn collect(text: &Text<'_>, weight: f32, found: &mut Vec<Found>) {
    let mut add = |key: &str, tag: String, score: f32| {
        if let Some(known) = found.iter_mut().find(|known| known.key == key) {
            known.score += score * AGAIN;
        } else if found.len() < MOST_CANDIDATES {
            let at = found.len();
            found.push(Found { key: key.to_owned(), tag, score, at });
        }
    };
    for word in text.words().iter().take(MOST_WORDS) {
        let plain = text.plain(word);
        if word.run {
            runs(text.written(word)).for_each(|run| add(run, run.to_owned(), weight));
        } else if tells(text, word) {
            let named = text.written(word).starts_with(char::is_uppercase) && !word.first;
            let score = weight * if named { NAMED } else { 1.0 };
            add(plain, text.written(word).to_lowercase(), score);
        }
    }
}

/// Whether a word says something about a subject, and nothing that looks like a key or a number of somebody.
fn tells(text: &Text<'_>, word: &Word) -> bool {
    let (plain, written) = (text.plain(word), text.written(word));
    let letters = plain.chars().filter(|c| c.is_alphabetic()).count();
    let digits = plain.chars().filter(char::is_ascii_digit).count();
    let short_name = letters == 2 && written.chars().all(char::is_uppercase);
    (letters >= 3 || short_name)
        && digits <= 2
        && plain.chars().count() <= LONGEST
        && !word.link
        && !word.address
        && !word.code
        && !STOP_WORDS.has(plain)
}

/// The parts of a run of Chinese or Japanese between the characters that only hold it together.
fn runs(run: &str) -> impl Iterator<Item = &str> {
    let joins = |c: char| PARTICLES.contains(c) || matches!(c, '\u{3041}'..='\u{309F}');
    run.split(joins).filter(|part| (2..=8).contains(&part.chars().count()))
}

/// How what the gate puts in the place of a secret begins; it ends with `>`.
const PLACEHOLDER: &str = "<REDACTED:";

const PARTICLES: &str = "的了是在我你他她它们吗呢吧和与或也都就有没不这那哪什么怎样如何为何请问能可以要把被给对从到个很更最还会想让做说";

/// A word that comes again counts this much more.
const AGAIN: f32 = 0.5;

/// A word that is written like a name.
const NAMED: f32 = 1.2;

/// With so many tags, earlier messages are not asked.
const ENOUGH: usize = 4;

/// Words of a message that are looked at, and candidates that are kept: both bound the work.
const MOST_WORDS: usize = 400;
const MOST_CANDIDATES: usize = 100;

/// Longer words are keys, hashes or jokes.
const LONGEST: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::View;
    use confidant_model::{PromptMessage, Role};

    fn given(query: &str, before: &[&str]) -> Vec<String> {
        let say = |text: &&str| PromptMessage { role: Role::Human, text: (*text).to_owned() };
        let history: Vec<PromptMessage> = before.iter().map(say).collect();
        let gate = Redactor::new(confidant_redact::Options::default()).unwrap();
        tags(&Glance::at(&View { history: &history, query, wants_title: false }), &gate)
    }

    #[test]
    fn tags_are_the_words_that_tell() {
        assert_eq!(
            given("How do I bake a sourdough bread with rye flour?", &[]),
            ["bake", "sourdough", "bread", "rye", "flour"]
        );
        assert_eq!(
            given("Wie lang ist die Kündigungsfrist für meine Wohnung?", &[]),
            ["kündigungsfrist", "wohnung"]
        );
        assert_eq!(given("and then?", &["Tell me about black holes"]), ["black", "holes"]);
        assert_eq!(given("東京の天気を教えてください", &[]), ["東京", "天気"]);
        assert!(given("what is it?", &[]).is_empty());
    }

    #[test]
    fn keys_and_addresses_are_no_tags() {
        let query =
            "my key sk-abc123def456ghi789 and bob@example.org, https://a.org/secret 0123456789 `inner`";
        assert_eq!(given(query, &[]), ["key"]);
    }

    #[test]
    fn there_are_at_most_ten() {
        let many: String = ('a'..='z').map(|c| format!("{c}alpha{c} ")).collect();
        assert_eq!(given(&many, &[]).len(), MOST_TAGS);
    }
}
