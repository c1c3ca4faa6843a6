//! Which tools, focus modes and settings a message may need, by the words that both have.
//!
//! Words in several languages for the same thing meet in a concept (`data/concepts.txt`), so that "wie wird das Wetter"
//! finds a tool called `weather.forecast`. A word that many of the offered things have says little about each. Rather
//! one too many than one too few: what is chosen here is only offered to the model.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::Glance;
use super::category::Choice;
use super::text::{Text, folded_words};
use super::words::{ByWord, STOP_WORDS};

/// The words of a message, to be compared with what is offered.
pub(super) struct Wanted {
    terms: HashSet<Term>,
    aliases: HashSet<Term>,
}

/// Something offered: its name and what it says of itself.
pub(super) struct Candidate<'o> {
    pub(super) name: &'o str,
    pub(super) description: &'o str,
}

impl Wanted {
    /// What the message and the one before it ask for.
    pub(super) fn of(glance: &Glance<'_>, choice: &Choice) -> Self {
        let mut terms = HashSet::new();
        for (said, weight) in glance.weighted() {
            // The message before speaks only for one that says nothing itself.
            if weight < 1.0 && !terms.is_empty() {
                break;
            }
            let text = said.text();
            let words = text.words().iter().filter(|word| !word.link && !word.address).take(MOST_WORDS);
            terms.extend(words.filter_map(|word| Term::of(text.plain(word))));
        }
        let aliases = choice.aliases().iter().filter_map(|alias| Term::of(alias)).collect();
        Self { terms, aliases }
    }

    /// The places of the candidates that fit, best first, at most `most`.
    pub(super) fn choose(&self, candidates: &[Candidate<'_>], most: usize) -> Vec<usize> {
        let shared: Vec<Shared> = candidates.iter().map(|candidate| Shared::of(candidate, self)).collect();
        let mut having: HashMap<Term, u16> = HashMap::new();
        for term in shared.iter().flat_map(|shared| shared.name.iter().chain(&shared.description)) {
            *having.entry(*term).or_default() += 1;
        }
        let weight = |term: &Term| term.weight() / f32::from(having.get(term).copied().unwrap_or(1)).sqrt();
        let score = |shared: &Shared| -> f32 {
            let sum = |terms: &[Term]| terms.iter().map(weight).sum::<f32>();
            IN_NAME * sum(&shared.name)
                + sum(&shared.description)
                + if shared.category { SAME_CATEGORY } else { 0.0 }
        };
        let scored = shared.iter().map(score).enumerate();
        let mut fitting: Vec<(usize, f32)> = scored.filter(|(_, score)| *score >= ENOUGH).collect();
        fitting.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        fitting.into_iter().take(most).map(|(at, _)| at).collect()
    }
}

/// What a candidate has in common with a message, each term once.
struct Shared {
    name: Vec<Term>,
    description: Vec<Term>,
    /// Its name is one for the message's category.
    category: bool,
}

impl Shared {
    fn of(candidate: &Candidate<'_>, wanted: &Wanted) -> Self {
        let (mut name, mut description, mut category) = (Vec::new(), Vec::new(), false);
        let apart = apart(candidate.name);
        for term in Text::read(&apart).plain_words().filter_map(Term::of) {
            category |= wanted.aliases.contains(&term);
            if wanted.terms.contains(&term) && !name.contains(&term) {
                name.push(term);
            }
        }
        let end = candidate.description.floor_char_boundary(LONGEST_DESCRIPTION);
        for term in Text::read(&candidate.description[..end]).plain_words().filter_map(Term::of) {
            if wanted.terms.contains(&term) && !name.contains(&term) && !description.contains(&term) {
                description.push(term);
            }
        }
        Self { name, description, category }
    }
}

/// `getTranscript_of` in words.
fn apart(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut lower = false;
    for c in name.chars().take(LONGEST_NAME) {
        if lower && c.is_uppercase() {
            words.push(' ');
        }
        lower = c.is_lowercase();
        words.push(if c == '_' { ' ' } else { c });
    }
    words
}

/// What a word stands for: a concept, or itself without its ending.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Term(u64);

impl Term {
    fn of(word: &str) -> Option<Self> {
        if let Some(concept) = CONCEPTS.by_word.get(word).or_else(|| CONCEPTS.by_word.get(stem(word))) {
            return Some(Self(*concept));
        }
        (word.len() > 2 && !STOP_WORDS.has(word)).then(|| Self(hash(stem(word))))
    }

    fn weight(self) -> f32 {
        let known = usize::try_from(self.0).ok().and_then(|at| CONCEPTS.weak.get(at));
        if known == Some(&true) { WEAK } else { 1.0 }
    }
}

/// A word without the endings that English puts on it.
fn stem(word: &str) -> &str {
    let cut = |ending: &str| word.strip_suffix(ending).filter(|rest| rest.len() >= 4 && rest.is_ascii());
    cut("ing").or_else(|| cut("ed")).or_else(|| cut("s")).unwrap_or(word)
}

/// FNV-1a, above the numbers of the concepts: nothing hangs on a collision.
fn hash(word: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    word.bytes().fold(0xcbf2_9ce4_8422_2325, step) | 1 << 63
}

struct Concepts {
    by_word: ByWord<String, u64>,
    weak: Vec<bool>,
}

static CONCEPTS: LazyLock<Concepts> = LazyLock::new(|| {
    let mut concepts = Concepts { by_word: ByWord::default(), weak: Vec::new() };
    let lines = include_str!("../data/concepts.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let (line, weak) = line.strip_prefix('?').map_or((line, false), |line| (line, true));
        let id = concepts.weak.len() as u64;
        concepts.weak.push(weak);
        for word in folded_words(line) {
            // The first concept of a word is its own.
            concepts.by_word.entry(word).or_insert(id);
        }
    }
    concepts
});

/// A word in a name counts this many times one in a description.
const IN_NAME: f32 = 2.0;

/// A name of the message's category, such as `code.review` for software.
const SAME_CATEGORY: f32 = 0.7;

/// A concept such as "write" that half of all requests have.
const WEAK: f32 = 0.45;

/// One word in a description that nothing else has, or a little more in a name.
const ENOUGH: f32 = 1.0;

/// Words of a message, bytes of a description and characters of a name that are looked at.
const MOST_WORDS: usize = 300;
const LONGEST_DESCRIPTION: usize = 240;
const LONGEST_NAME: usize = 100;

#[cfg(test)]
mod tests {
    use super::super::category;
    use super::*;
    use crate::View;

    const TOOLS: &[(&str, &str)] = &[
        ("web.search", "Search the web for pages"),
        ("web.read", "Read a web page and return its text"),
        ("images.generate", "Generate an image from a description"),
        ("videos.get_transcript", "Get the transcript of a YouTube video"),
        ("code.write_file", "Write a file in the project"),
        ("travel.search_connections", "Search train and flight connections"),
        ("weather.forecast", "Weather forecast for a place"),
        ("calendar.createEvent", "Add an event to the calendar"),
        ("memory.search", "Search earlier conversations"),
    ];

    fn chosen(query: &str) -> Vec<&'static str> {
        let glance = Glance::at(&View { history: &[], query, wants_title: false });
        let choice = category::choose(&glance, &["general".to_owned()]);
        let candidates: Vec<Candidate<'_>> =
            TOOLS.iter().map(|(name, description)| Candidate { name, description }).collect();
        let places = Wanted::of(&glance, &choice).choose(&candidates, 4);
        places.into_iter().map(|at| TOOLS[at].0).collect()
    }

    #[test]
    fn tools_are_found_by_their_words() {
        for (query, expected) in [
            ("search the web for rust crates", "web.search"),
            ("Wie wird das Wetter morgen in Berlin?", "weather.forecast"),
            ("Quel temps fait-il ? La météo à Lyon", "weather.forecast"),
            ("Draw a picture of a fox", "images.generate"),
            ("Summarise this YouTube video", "videos.get_transcript"),
            ("Find a train from Lisbon to Porto", "travel.search_connections"),
            ("Trag einen Termin in den Kalender ein", "calendar.createEvent"),
            ("Do you remember what I said earlier?", "memory.search"),
        ] {
            assert_eq!(chosen(query).first().copied(), Some(expected), "{query}: {:?}", chosen(query));
        }
    }

    #[test]
    fn nothing_is_found_without_a_common_word() {
        for query in ["Hello!", "What is 2 + 2?", "Who are you?", "danke dir"] {
            assert!(chosen(query).is_empty(), "{query}: {:?}", chosen(query));
        }
    }

    #[test]
    fn names_fall_apart_into_words() {
        assert_eq!(apart("getTranscript_of.URL"), "get Transcript of.URL");
    }
}
