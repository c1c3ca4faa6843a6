//! Facts that later sessions overturned.
//!
//! Two memories state the same thing with different values: "The deadline is Friday" and, a week later, "The deadline is
//! Monday". The older one is superseded. It is looked for among the hits of one query only, by words alone: both sentences
//! begin alike and end alike, a word among them says that something *is* so (what happened once is not overturned by what
//! happened later), and what differs are values: numbers, versions, days, products, names. Pure, and bounded by
//! [`MOST_FACTS`]. It misses what is said in other words, and languages without blanks; it is made to be right where it speaks.

use std::collections::HashMap;

use crate::card::{is_german, is_value};

/// A sentence of a memory.
#[derive(Clone, Copy)]
pub(crate) struct Fact<'h> {
    /// Which hit it is of.
    pub(crate) memory: usize,
    /// When that session was, in milliseconds since 1970.
    pub(crate) at: i64,
    pub(crate) text: &'h str,
}

/// A fact, and the newest one that states the same thing with another value; both by their places in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superseded {
    pub(crate) older: usize,
    pub(crate) newer: usize,
}

/// Which of the facts are superseded by which, in the order of the older ones. What was changed back is not.
pub(crate) fn superseded(facts: &[Fact<'_>]) -> Vec<Superseded> {
    let said: Vec<Vec<Word>> = facts.iter().take(MOST_FACTS).map(|fact| words(fact.text)).collect();
    let mut alike: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, words) in said.iter().enumerate() {
        if let Some(first) = words.first() {
            alike.entry(first.plain.as_str()).or_default().push(at);
        }
    }
    let newest = |older: usize| {
        let first = said[older].first()?;
        let others = alike.get(first.plain.as_str())?;
        let later = |newer: &&usize| {
            facts[**newer].memory != facts[older].memory && facts[**newer].at > facts[older].at
        };
        let judged = others.iter().filter(later).filter_map(|newer| {
            let differs = compare(&said[older], &said[*newer])?;
            Some((*newer, differs))
        });
        // The last word counts, also if it is the first one again.
        let (newer, differs) = judged.max_by_key(|(newer, _)| facts[*newer].at)?;
        differs.then_some(Superseded { older, newer })
    };
    (0..said.len()).filter_map(newest).collect()
}

/// Whether two sentences about the same state different values; none when they are not about the same.
fn compare(one: &[Word], other: &[Word]) -> Option<bool> {
    let same = |(one, other): &(&Word, &Word)| one.plain == other.plain;
    let start = one.iter().zip(other).take_while(same).count();
    let (one_left, other_left) = (&one[start..], &other[start..]);
    if one_left.is_empty() && other_left.is_empty() {
        return Some(false);
    }
    let end = one_left.iter().rev().zip(other_left.iter().rev()).take_while(same).count();
    let (frame_start, frame_end) = (&one[..start], &one[one.len() - end..]);
    let values = [&one_left[..one_left.len() - end], &other_left[..other_left.len() - end]];
    let state = frame_start.iter().any(|word| STATES.contains(&word.plain.as_str()));
    let about = frame_start.iter().chain(frame_end).filter(|word| word.tells).count();
    let good =
        |value: &&[Word]| (1..=LONGEST_VALUE).contains(&value.len()) && value.iter().any(|word| word.value);
    (start > 0 && state && about > 0 && values.iter().all(good)).then_some(true)
}

/// A word of a sentence.
struct Word {
    /// In small letters.
    plain: String,
    /// Whether it can be what a fact says of its subject.
    value: bool,
    /// Whether it says what the fact is about.
    tells: bool,
}

fn words(text: &str) -> Vec<Word> {
    let parts = || {
        text.split(|letter: char| {
            letter.is_whitespace() || matches!(letter, ',' | ';' | '(' | ')' | '"' | '“' | '”' | '=')
        })
        .map(|word| word.trim_matches(['.', '!', '?', ':', '\'', '*', '`', '…']))
        .filter(|word| !word.is_empty())
    };
    // Where every noun has a capital, a capital tells nothing.
    let capitals = !parts().any(|word| is_german(&word.to_lowercase()));
    parts()
        .enumerate()
        .map(|(at, word)| {
            let plain = word.to_lowercase();
            let capital =
                at > 0 && capitals && word.starts_with(char::is_uppercase) && !word.starts_with("I'");
            let digit = word.bytes().any(|byte| byte.is_ascii_digit());
            let tells = plain.chars().count() > 2
                && !FILLERS.contains(&plain.as_str())
                && !STATES.contains(&plain.as_str());
            Word { value: digit || is_value(&plain) || (capital && plain != "i"), tells, plain }
        })
        .filter(|word| !DROPPED.contains(&word.plain.as_str()))
        .take(MOST_WORDS)
        .collect()
}

/// More facts than the hits of one page have.
const MOST_FACTS: usize = 400;
const MOST_WORDS: usize = 40;
/// Words of a value.
const LONGEST_VALUE: usize = 3;
/// Words with which a sentence says how something is.
const STATES: &[&str] = &[
    "is",
    "are",
    "isn't",
    "aren't",
    "use",
    "uses",
    "using",
    "live",
    "lives",
    "work",
    "works",
    "run",
    "runs",
    "cost",
    "costs",
    "take",
    "takes",
    "start",
    "starts",
    "end",
    "ends",
    "begin",
    "begins",
    "meet",
    "meets",
    "prefer",
    "prefers",
    "need",
    "needs",
    "has",
    "have",
    "called",
    "named",
    "default",
    "defaults",
    "set",
    "expires",
    "ist",
    "sind",
    "heißt",
    "wohnt",
    "wohne",
    "arbeitet",
    "nutzt",
    "nutzen",
    "kostet",
    "dauert",
    "beginnt",
    "est",
    "sont",
    "habite",
    "travaille",
    "utilise",
    "utilisons",
    "coûte",
    "commence",
    "es",
    "son",
    "está",
    "vive",
    "vivo",
    "trabaja",
    "usa",
    "usamos",
    "cuesta",
    "empieza",
    "é",
    "são",
    "mora",
    "trabalha",
    "custa",
    "começa",
    "er",
    "bor",
    "jobber",
    "bruker",
    "koster",
    "begynner",
    "är",
    "använder",
    "kostar",
    "börjar",
    "è",
    "sono",
    "abita",
    "lavora",
    "usiamo",
    "costa",
    "inizia",
    "zijn",
    "woont",
    "werkt",
    "gebruikt",
    "gebruiken",
    "begint",
    "живёт",
    "живет",
    "работает",
    "используем",
    "стоит",
];
/// Words that change nothing.
const DROPPED: &[&str] = &[
    "the",
    "a",
    "an",
    "now",
    "currently",
    "actually",
    "again",
    "already",
    "just",
    "still",
    "jetzt",
    "nun",
    "maintenant",
    "ahora",
    "agora",
    "nå",
    "nu",
    "adesso",
    "теперь",
];
/// Words that no fact is about.
const FILLERS: &[&str] = &[
    "we", "our", "you", "your", "they", "their", "she", "her", "his", "this", "that", "these", "there",
    "for", "with", "from", "and", "but", "not", "was", "were", "will", "can", "wir", "sie", "und", "der",
    "die", "das", "den", "für", "mit", "nous", "les", "des", "pour", "nosotros", "los", "las", "para", "con",
    "nós", "vår", "och", "med", "per", "het", "een", "voor", "для",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// One sentence per session, the oldest first: which is superseded by which.
    fn of(texts: &[&str]) -> Vec<(usize, usize)> {
        let mut facts = Vec::new();
        for (at, text) in (0_i64..).zip(texts.iter().copied()) {
            facts.push(Fact { memory: facts.len(), at, text });
        }
        superseded(&facts).into_iter().map(|one| (one.older, one.newer)).collect()
    }

    #[test]
    fn the_same_thing_with_another_value_is_superseded() {
        for (older, newer) in [
            ("The deadline is Friday.", "The deadline is Monday"),
            ("We use Redis for the queue", "We now use NATS for the queue"),
            ("payments-api runs on port 8080", "payments-api runs on port 9090"),
            ("Nora lives in Lisbon", "Nora lives in Porto."),
            ("The export takes 9 seconds", "The export takes 3 seconds"),
            ("Die Frist ist Freitag", "Die Frist ist jetzt Montag"),
            ("La date limite est vendredi", "La date limite est lundi"),
            ("Møtet er på tirsdag", "Møtet er på onsdag"),
        ] {
            assert_eq!(of(&[older, newer]), [(0, 1)], "{older} | {newer}");
        }
    }

    #[test]
    fn what_only_looks_alike_is_not() {
        for (older, newer) in [
            ("The deadline is Friday", "The deadline is Friday."),
            ("Nora lives in Lisbon", "Theo lives in Lisbon"),
            ("We met Nora at the harbour", "We met Theo at the harbour"),
            ("We use Redis", "We use NATS"),
            ("We use flour for the cake", "We use sugar for the cake"),
            ("Redis runs on port 6379", "PostgreSQL runs on port 5432"),
            ("Wir nutzen die Datenbank für Rechnungen", "Wir nutzen die Datenbank für Kunden"),
            ("The deadline is Friday", "The deadline is hard and nobody in Lisbon can move it by 2 days"),
        ] {
            assert!(of(&[older, newer]).is_empty(), "{older} | {newer}");
        }
    }

    #[test]
    fn the_newest_counts_and_what_was_changed_back_stands() {
        let port = |number: u16| format!("payments-api runs on port {number}");
        let texts = [port(1000), port(2000), port(3000)];
        assert_eq!(of(&[&texts[0], &texts[1], &texts[2]]), [(0, 2), (1, 2)]);
        assert_eq!(of(&[&texts[0], &texts[1], &texts[0]]), [(1, 2)]);
    }

    #[test]
    fn one_session_and_one_time_overturn_nothing() {
        let fact = |memory, at, text| Fact { memory, at, text };
        let (old, new) = ("The deadline is Friday", "The deadline is Monday");
        assert!(superseded(&[fact(0, 1, old), fact(0, 2, new)]).is_empty());
        assert!(superseded(&[fact(0, 1, old), fact(1, 1, new)]).is_empty());
        // The order of the hits is that of their scores.
        assert_eq!(superseded(&[fact(0, 2, new), fact(1, 1, old)]), [Superseded { older: 1, newer: 0 }]);
        assert!(superseded(&[]).is_empty());
    }
}
