//! Finding where somebody says what they are called.
//!
//! What is easy to get wrong: "I'm tired" is no introduction, and `Bob said "I'm Bob"` is Bob's, whoever repeats it.

use super::evidence::{Quote, Saying};
use super::lists::{CERTAIN, LIKELY, NOT_NAMES, REPORTS};
use super::text::Word;

/// The latest clear introduction among `sayings`, or the latest unclear one.
pub(super) fn find<'s, 'a: 's>(sayings: impl Iterator<Item = &'s Saying<'a>>) -> Vec<Quote<'a>> {
    let mut best: Option<(Clarity, Quote<'a>)> = None;
    for saying in sayings.filter(|saying| !saying.asks()) {
        let Some((clarity, focus)) = introduction(saying.words()) else {
            continue;
        };
        // A doubtful "i'm beat" does not take a name back, anything clear does.
        if best.as_ref().is_none_or(|(before, _)| clarity >= Clarity::Likely || *before < Clarity::Likely) {
            best = Some((clarity, saying.quote(focus)));
        }
    }
    best.into_iter().map(|(_, quote)| quote).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Clarity {
    /// "i'm beat"
    Doubtful,
    /// "I'm Alice"
    Likely,
    /// "my name is Alice"
    Certain,
}

/// How clearly the words introduce their speaker, and where.
fn introduction(words: &[Word<'_>]) -> Option<(Clarity, usize)> {
    let mut found: Option<(Clarity, usize)> = None;
    for start in 0..words.len() {
        let certain = CERTAIN.split(',').map(|phrase| (phrase, Clarity::Certain));
        let likely = LIKELY.split(',').map(|phrase| (phrase, Clarity::Likely));
        for (phrase, clarity) in certain.chain(likely) {
            let Some(name) = after(words, start, phrase) else {
                continue;
            };
            let clarity = match name_like(name) {
                Likeness::Name => clarity,
                Likeness::Perhaps => Clarity::Doubtful,
                Likeness::No => continue,
            };
            if !repeated_or_denied(words, start) && found.is_none_or(|(before, _)| before < clarity) {
                found = Some((clarity, words[start].at));
            }
        }
    }
    found
}

/// The word after `phrase`, if the phrase stands at `start`.
fn after<'w, 'a>(words: &'w [Word<'a>], start: usize, phrase: &str) -> Option<&'w Word<'a>> {
    let mut at = start;
    for part in phrase.split(' ') {
        if words.get(at)?.plain != part {
            return None;
        }
        at += 1;
    }
    words.get(at)
}

enum Likeness {
    Name,
    Perhaps,
    No,
}

fn name_like(word: &Word<'_>) -> Likeness {
    let plain = word.plain.as_str();
    if NOT_NAMES.has(plain) || word.raw.chars().next().is_some_and(char::is_numeric) {
        return Likeness::No;
    }
    let cased = word.raw.chars().next().is_some_and(|letter| letter.is_uppercase() || !letter.is_lowercase());
    let verbal = plain.ends_with("ing") || plain.ends_with("ed");
    match (cased, verbal || is_origin(plain)) {
        (true, false) => Likeness::Name,
        (false, true) => Likeness::No,
        _ => Likeness::Perhaps,
    }
}

/// "Norwegian", "Swedish", "Japanese"; but not "Ian" and "Adrian".
fn is_origin(plain: &str) -> bool {
    (plain.ends_with("ian") && (plain.len() > 6 || plain == "indian" || plain == "asian"))
        || plain.ends_with("ish")
        || (plain.ends_with("ese") && plain.len() > 6)
        || matches!(plain, "american" | "german" | "french" | "dutch" | "mexican" | "korean" | "african")
}

/// Whether the words before or around `start` make it somebody else's, or no name at all.
fn repeated_or_denied(words: &[Word<'_>], start: usize) -> bool {
    if words[start].quoted {
        return true;
    }
    let before = &words[..start];
    let denied = before.iter().rev().take(2).any(|word| {
        matches!(word.plain.as_str(), "not" | "don't" | "dont" | "never" | "if" | "nicht" | "ikke")
    });
    let reported = before.iter().enumerate().any(|(at, word)| {
        let self_told = at > 0 && matches!(before[at - 1].plain.as_str(), "i" | "i've");
        REPORTS.has(&word.plain) && !self_told
    });
    denied || reported
}
