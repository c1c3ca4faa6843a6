//! Which sentences answer a question, and how well.
//!
//! Owns the scoring. What is easy to get wrong: a personal question must never see what others said of themselves,
//! so other voices are left out before anything is scored, not scored low.

use std::collections::{HashMap, HashSet};

use super::lists::{DECISIONS, List, NAMING, NUMBERS, REASONS, REVISIONS, TIMES, things_of};
use super::question::{About, Expects, Question, Subject, is_first_person, is_question};
use super::text::{Word, sentences, stem, words};

/// Where a sentence comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source<'a> {
    /// The asker's own words.
    Asker,
    /// Somebody else's, under this name.
    Other(&'a str),
    /// The agent's.
    Agent,
}

/// One sentence that somebody said.
#[derive(Debug)]
pub(super) struct Saying<'a> {
    /// Who said it.
    pub(super) source: Source<'a>,
    /// The sentence.
    pub(super) text: &'a str,
    /// Which message it stood in; later ones are higher.
    message: usize,
    asks: bool,
    words: Vec<Word<'a>>,
    stems: HashSet<String>,
}

/// A sentence that answers, and where in it the answer is.
#[derive(Debug)]
pub(super) struct Quote<'a> {
    /// Who said it.
    pub(super) source: Source<'a>,
    /// The sentence.
    pub(super) text: &'a str,
    /// The first byte that made it an answer.
    pub(super) focus: usize,
}

/// Adds the sentences of a message to what is known.
pub(super) fn add<'a>(sayings: &mut Vec<Saying<'a>>, source: Source<'a>, message: &'a str) {
    let number = sayings.last().map_or(0, |last| last.message + 1);
    for text in sentences(message) {
        let words = words(text);
        let mut stems: HashSet<String> = words.iter().map(|word| word.stem.clone()).collect();
        if let Source::Other(speaker) = source {
            stems.extend(super::text::words(speaker).into_iter().map(|word| word.stem));
        }
        let asks = is_question(text, &words);
        sayings.push(Saying { source, text, message: number, asks, words, stems });
    }
}

/// The sentences that answer, at most [`MOST_QUOTES`], oldest first.
pub(super) fn find<'a>(sayings: &[Saying<'a>], question: &Question) -> Vec<Quote<'a>> {
    let allowed = |saying: &Saying<'_>| question.about == About::Everyone || saying.source == Source::Asker;
    if question.subject == Subject::Name {
        return super::names::find(sayings.iter().filter(|saying| allowed(saying)));
    }
    let weights = weights(sayings, &question.terms);
    let cues: Vec<String> = question.subject.cues().iter().map(stem).collect();
    let scored: Vec<Scored> = sayings.iter().map(|saying| score(saying, question, &weights, &cues)).collect();
    let mut ranked: Vec<(f64, usize)> = Vec::new();
    for (at, saying) in sayings.iter().enumerate() {
        if saying.asks || !allowed(saying) {
            continue;
        }
        let replied = reply_bonus(sayings, &scored, at);
        let own = if scored[at].fits { scored[at].points } else { 0.0 };
        let impersonal = !scored[at].personal && replied == 0.0;
        let total = (own + replied) * if impersonal { 0.5 } else { 1.0 };
        if total >= LEAST_POINTS {
            ranked.push((total, at));
        }
    }
    drop_outdated(sayings, question, &mut ranked);
    // The better first, of equals the later.
    ranked.sort_by(|(one, early), (other, late)| other.total_cmp(one).then(late.cmp(early)));
    let best = ranked.first().map_or(0.0, |(points, _)| *points);
    let mut chosen: Vec<usize> = Vec::new();
    for (points, at) in ranked {
        let said = chosen.iter().any(|other| sayings[*other].text == sayings[at].text);
        if points >= best * SHARE_OF_BEST && !said && chosen.len() < MOST_QUOTES {
            chosen.push(at);
        }
    }
    chosen.sort_unstable();
    let quote =
        |at: usize| Quote { source: sayings[at].source, text: sayings[at].text, focus: scored[at].focus };
    chosen.into_iter().map(quote).collect()
}

impl<'a> Saying<'a> {
    /// The words of the sentence.
    pub(super) fn words(&self) -> &[Word<'a>] {
        &self.words
    }

    /// Whether the sentence asks something.
    pub(super) fn asks(&self) -> bool {
        self.asks
    }

    /// As a quote whose point is at `focus`.
    pub(super) fn quote(&self, focus: usize) -> Quote<'a> {
        Quote { source: self.source, text: self.text, focus }
    }
}

/// What one sentence is worth to one question.
struct Scored {
    points: f64,
    /// Whether the points alone are reason enough to quote it.
    fits: bool,
    /// Whether the speaker speaks of themselves, where that matters.
    personal: bool,
    focus: usize,
}

fn score(saying: &Saying<'_>, question: &Question, weights: &HashMap<&str, f64>, cues: &[String]) -> Scored {
    let whole: f64 = weights.values().sum();
    let met = |term: &str| saying.stems.contains(term) || is_kind_of(saying, term);
    let matched: f64 = weights.iter().filter(|(term, _)| met(term)).map(|(_, weight)| weight).sum();
    let coverage = if whole > 0.0 { matched / whole } else { 0.0 };
    let cue_word = saying.words.iter().find(|word| cues.contains(&word.stem));
    let cue = cue(saying, question.subject, cue_word.is_some());
    let expected = if meets(saying, question.expects) { 0.3 } else { 0.0 };
    let least = if expected > 0.0 { LEAST_COVERAGE / 2.0 } else { LEAST_COVERAGE };
    let fits = match question.subject {
        Subject::Summary => true,
        Subject::Other | Subject::Name => question.terms.is_empty() || coverage >= least,
        _ if question.terms.is_empty() => cue > 0.0,
        Subject::Choice => (cue > 0.0 && (coverage > 0.0 || names_something(saying))) || coverage >= 0.6,
        Subject::Liking | Subject::Home => (cue > 0.0 && coverage > 0.0) || coverage >= 0.6,
    };
    let bare = question.subject == Subject::Summary
        || (question.subject == Subject::Other && question.terms.is_empty());
    let agent = if saying.source == Source::Agent { 0.2 } else { 0.0 };
    let points = if bare { 1.0 + coverage } else { coverage + cue + expected - agent };
    let focus = saying.words.iter().find(|word| weights.contains_key(word.stem.as_str()));
    Scored {
        points,
        fits,
        personal: question.about == About::Everyone
            || saying.words.iter().any(|word| is_first_person(&word.plain)),
        focus: focus.or(cue_word).map_or(0, |word| word.at),
    }
}

/// How much each term says: rare ones more than common ones, and those that nobody used count once.
fn weights<'q>(sayings: &[Saying<'_>], terms: &'q [String]) -> HashMap<&'q str, f64> {
    let all = sayings.len() as f64;
    let weight = |term: &str| {
        let holding = sayings.iter().filter(|saying| saying.stems.contains(term)).count() as f64;
        if holding == 0.0 { 0.8 } else { ((all + 1.0) / (holding + 0.5)).ln().clamp(0.5, 2.0) }
    };
    terms.iter().map(|term| (term.as_str(), weight(term))).collect()
}

/// A reply inherits from the question right before it: "Which database?" "PostgreSQL."
fn reply_bonus(sayings: &[Saying<'_>], scored: &[Scored], at: usize) -> f64 {
    let saying = &sayings[at];
    let first_of_message = at == 0 || sayings[at - 1].message != saying.message;
    let Some(before) = at.checked_sub(1).filter(|_| first_of_message) else {
        return 0.0;
    };
    let asked = &sayings[before];
    let answers = asked.asks && asked.source != saying.source && asked.message + 1 == saying.message;
    if answers && scored[before].fits { scored[before].points * 0.7 } else { 0.0 }
}

/// Lets what somebody said later replace what the same person said before about the same thing.
fn drop_outdated(sayings: &[Saying<'_>], question: &Question, ranked: &mut Vec<(f64, usize)>) {
    let kept = ranked.clone();
    ranked.retain(|(points, at)| {
        let early = &sayings[*at];
        !kept.iter().any(|(other_points, other)| {
            let late = &sayings[*other];
            *other > *at
                && late.source == early.source
                && *other_points >= points * 0.6
                && (question.subject == Subject::Home || revises(late) || same_thing(early, late))
        })
    });
}

/// Whether a sentence takes something back.
fn revises(saying: &Saying<'_>) -> bool {
    saying.words.iter().any(|word| REVISIONS.has(&word.plain))
}

/// Whether both say what one thing is: "my favourite colour is …".
fn same_thing(early: &Saying<'_>, late: &Saying<'_>) -> bool {
    let thing = |saying: &Saying<'_>| -> Option<Vec<String>> {
        let at = saying.words.iter().position(|word| matches!(word.plain.as_str(), "my" | "our" | "the"))?;
        let is = saying
            .words
            .iter()
            .skip(at)
            .position(|word| matches!(word.plain.as_str(), "is" | "are" | "was"))?;
        Some(saying.words[at + 1..at + is].iter().map(|word| word.stem.clone()).collect())
    };
    matches!((thing(early), thing(late)), (Some(one), Some(other)) if !one.is_empty() && one == other)
}

/// How clearly a sentence speaks of the subject: 0 for not at all.
fn cue(saying: &Saying<'_>, subject: Subject, found: bool) -> f64 {
    let pair = |one: &str, two: &str| {
        saying.words.windows(2).any(|pair| pair[0].plain == one && pair[1].plain == two)
    };
    match subject {
        Subject::Choice if found || pair("go", "with") || pair("going", "with") || pair("went", "with") => {
            let firm = saying.words.iter().any(|word| DECISIONS.has(&word.plain));
            if firm { 1.0 } else { 0.8 }
        }
        Subject::Home if found || pair("i'm", "from") || pair("am", "from") => 1.0,
        Subject::Liking if found => 1.0,
        _ => 0.0,
    }
}

/// Whether a sentence has what the question word asks for.
fn meets(saying: &Saying<'_>, expects: Expects) -> bool {
    let any = |list: List| saying.words.iter().any(|word| list.has(&word.plain));
    let digits =
        || saying.words.iter().any(|word| word.plain.contains(|letter: char| letter.is_ascii_digit()));
    match expects {
        Expects::Time => digits() || any(TIMES),
        Expects::Amount => digits() || any(NUMBERS),
        Expects::Reason => any(REASONS),
        Expects::Name => names_something(saying) || any(NAMING),
        Expects::Anything => false,
    }
}

/// Whether something in the sentence is an instance of `term`: PostgreSQL is a database.
fn is_kind_of(saying: &Saying<'_>, term: &str) -> bool {
    let things = things_of(term);
    things.is_some_and(|things| saying.words.iter().any(|word| things.has(&word.plain)))
}

/// Whether the sentence names a thing: a capital inside it, or a digit.
fn names_something(saying: &Saying<'_>) -> bool {
    saying.words.iter().skip(1).any(|word| {
        let capital = word.raw.chars().next().is_some_and(char::is_uppercase);
        (capital && !is_first_person(&word.plain))
            || word.raw.contains(|letter: char| letter.is_ascii_digit())
    })
}

/// The most sentences an answer quotes.
const MOST_QUOTES: usize = 3;

/// Below this, silence is the better answer.
const LEAST_POINTS: f64 = 0.4;

/// How much of a question's meaning a sentence has to share.
const LEAST_COVERAGE: f64 = 0.4;

/// Sentences worth less than this share of the best one are left out.
const SHARE_OF_BEST: f64 = 0.55;
