//! What happened, in a few sentences of the session itself.
//!
//! A sentence is worth what its source and its form say ([`score`]), and what it tells that no chosen one has told: words
//! that come up again, names, numbers and dates weigh more than others, and each counts once. So the next bullet is always
//! the one that adds most, whether it was said early or late. The work is linear in the session: each of the few rounds
//! looks at each sentence once.

use std::collections::{BTreeSet, HashMap};

use super::clauses::capital;
use super::lines::{Form, Statement};
use super::small_talk::{is_small_talk, unopened};
use super::source::Source;
use super::title::is_request;
use super::todos::marked;
use super::words::{alike, clip, content, is_spaceless, words};

/// At most `most` bullets in the order of time: the agent's own summary, or what was asked, found and said last.
pub(super) fn bullets(said: &[Statement], title: &str, failed: bool, most: usize) -> Vec<String> {
    let title = content(title);
    let mut seen = Seen::default();
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut repeats: Option<(f32, usize)> = None;
    for (at, one) in said.iter().enumerate() {
        let Some(score) = score(one) else { continue };
        let about = content(&one.text);
        // A title that was cut does not say what its sentence said.
        if alike(&about, &title) && about.len() <= title.len() + 1 {
            if repeats.is_none_or(|(most, _)| score > most) {
                repeats = Some((score, at));
            }
            continue;
        }
        let Some(text) = shown(one) else { continue };
        let words = seen.learn(&one.text, &about);
        candidates.push(Candidate { at, text, score, about, words });
    }
    let mut kept = chosen(candidates, &seen, said.len(), most);
    // Better the title again than nothing.
    if kept.is_empty() {
        kept.extend(repeats.and_then(|(_, at)| Some((at, shown(&said[at])?))));
    }
    if failed && kept.len() < most && !said.iter().any(|one| one.source == Source::Error) {
        kept.push((usize::MAX, FAILED.to_owned()));
    }
    // The summary stands last in time, and is told first.
    kept.sort_by_key(|(at, _)| (said.get(*at).is_none_or(|one| one.source != Source::Summary), *at));
    kept.into_iter().map(|(_, text)| text).collect()
}

/// A sentence that may be a bullet.
struct Candidate {
    at: usize,
    text: String,
    score: f32,
    about: BTreeSet<String>,
    /// What it tells, by number, each once.
    words: Vec<usize>,
}

/// The words of all candidates, by number.
#[derive(Default)]
struct Seen {
    numbers: HashMap<String, usize>,
    /// In how many candidates each is.
    counts: Vec<u16>,
    /// What each weighs for itself.
    weights: Vec<f32>,
}

impl Seen {
    /// The numbers of what a sentence tells.
    fn learn(&mut self, text: &str, about: &BTreeSet<String>) -> Vec<usize> {
        let named: BTreeSet<String> =
            words(text).into_iter().skip(1).filter(|word| is_concrete(word)).flat_map(content).collect();
        let mut numbers = Vec::with_capacity(about.len());
        for word in about.iter().take(MOST_WORDS) {
            let next = self.counts.len();
            let number = *self.numbers.entry(word.clone()).or_insert(next);
            if number == next {
                let spaceless = word.chars().next().is_some_and(is_spaceless);
                self.counts.push(0);
                self.weights.push(if spaceless { 0.3 } else { 1.0 });
            }
            self.counts[number] = self.counts[number].saturating_add(1);
            if named.contains(word) || word.bytes().any(|byte| byte.is_ascii_digit()) {
                self.weights[number] = 1.8;
            }
            numbers.push(number);
        }
        numbers
    }

    /// What a word adds: more if the session comes back to it, and less if nearly every sentence has it.
    fn weight(&self, number: usize, candidates: f32) -> f32 {
        let count = f32::from(self.counts[number]);
        let common = if count * 3.0 > candidates && candidates > 6.0 { 0.4 } else { 1.0 };
        self.weights[number] * (1.0 + 0.4 * count.min(6.0).ln()) * common
    }
}

/// A name, a day, a number: what begins with a capital or holds a digit.
fn is_concrete(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase) || word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The best of the candidates, one after the other, by what each adds to those before it; with their places among so
/// many statements.
fn chosen(mut left: Vec<Candidate>, seen: &Seen, all: usize, most: usize) -> Vec<(usize, String)> {
    let candidates = u16::try_from(left.len()).map_or(f32::MAX, f32::from);
    let mut told = vec![false; seen.counts.len()];
    let mut parts = vec![false; most];
    let part = |at: usize| at * most / all.max(1);
    let mut kept = Vec::new();
    while kept.len() < most {
        let mut best: Option<(f32, usize)> = None;
        for (index, one) in left.iter().enumerate() {
            let new = one.words.iter().filter(|word| !told[**word]);
            let new: f32 = new.map(|word| seen.weight(*word, candidates)).sum();
            let size = u16::try_from(one.words.len().max(LEAST_SIZE)).map_or(f32::MAX, f32::from);
            let apart = if parts[part(one.at)] { 0.0 } else { APART };
            let worth = one.score + MOST_GAIN.min(GAIN * new / size.sqrt()) + apart;
            if best.is_none_or(|(most, _)| worth > most) {
                best = Some((worth, index));
            }
        }
        let Some((_, index)) = best else { break };
        let one = left.remove(index);
        one.words.iter().for_each(|word| told[*word] = true);
        parts[part(one.at)] = true;
        // What says nearly the same is no bullet of its own.
        left.retain(|other| other.text != one.text && !alike(&other.about, &one.about));
        kept.push((one.at, one.text));
    }
    kept
}

/// A statement as a bullet.
fn shown(statement: &Statement) -> Option<String> {
    let text = statement.text.as_str();
    clip(&capital(if statement.source == Source::Talk { unopened(text) } else { text }), LONGEST)
}

/// How much a statement tells of what happened; none when it does not.
fn score(statement: &Statement) -> Option<f32> {
    let text = &statement.text;
    let signs = text.chars().filter(|letter| is_spaceless(*letter)).count();
    let many = words(text).len();
    let told = many >= 3 || signs >= 6;
    let form = match statement.form {
        Form::Code | Form::Heading | Form::Open => return None,
        Form::Question if statement.source != Source::Request => return None,
        Form::Done => 2,
        Form::Item => 1,
        Form::Question | Form::Sentence => 0,
    };
    if !told || marked(text).is_some() || (statement.source == Source::Request && !is_request(text)) {
        return None;
    }
    if statement.source == Source::Talk && (is_small_talk(text) || content(text).len() < LEAST_TOLD) {
        return None;
    }
    let plain = text.to_lowercase();
    let source = match statement.source {
        Source::Summary => 30,
        Source::Error => 9,
        Source::Final => 6,
        Source::Request | Source::Talk => 5,
        Source::Other => 2,
        Source::Answer => 1,
        Source::Output => return None,
    };
    let deed = DEEDS.iter().any(|deed| plain.contains(deed));
    // What agents need not say, people do: "I'll bring the cake".
    let idle = statement.source != Source::Talk && IDLE.iter().any(|idle| plain.starts_with(idle));
    let length = i16::from(text.chars().count() > LONGEST) + i16::from(many < 5 && signs < 8);
    let score: i16 = source + form + if deed { 4 } else { 0 } - if idle { 8 } else { 0 } - 2 * length;
    (score > 0).then(|| f32::from(score))
}

pub(super) const LONGEST: usize = 200;
/// Words of their own that people's sentences must have.
const LEAST_TOLD: usize = 2;
/// Words of a sentence that are weighed.
const MOST_WORDS: usize = 60;
/// Shorter sentences are no better for being short.
const LEAST_SIZE: usize = 6;
/// How much what is new counts beside where it was said.
const GAIN: f32 = 1.2;
/// The summary is worth more than all else by more than this.
const MOST_GAIN: f32 = 6.0;
/// What a part of the session is worth that no bullet is from yet.
const APART: f32 = 1.0;
const FAILED: &str = "Ended without success";
/// Words of sentences in which something came about.
const DEEDS: &[&str] = &[
    "fixed",
    "added",
    "implemented",
    "changed",
    "found",
    "root cause",
    "because",
    "updated",
    "removed",
    "deployed",
    "rolled back",
    "passed",
    "pass ",
    "failed",
    "fails",
    "refactored",
    "renamed",
    "created",
    "replaced",
    "moved",
    "migrated",
    "reverted",
    "released",
    "merged",
    "caused",
    "turned out",
    "resolved",
    "configured",
    "installed",
    "upgraded",
    "decided",
    "chose",
    "switched",
    "wrote",
    "behoben",
    "gefunden",
    "corrigé",
    "corregido",
    "fikset",
    "修复",
    "回滚",
    "原因",
    "修正",
    "исправ",
];
/// How agents begin what they need not say.
const IDLE: &[&str] = &[
    "let me",
    "i'll",
    "i will",
    "now i",
    "now let",
    "sure",
    "great",
    "perfect",
    "here's",
    "here is",
    "looking at",
    "i see",
    "okay",
    "ok,",
    "of course",
    "certainly",
    "thanks",
    "thank you",
    "let's look",
    "i'm going to",
    "i am going to",
    "first, i",
    "next, i",
    "feel free",
    "if you",
    "would you",
    "happy to",
    "you're right",
    "you are right",
    "good question",
    "absolutely",
    "i need to",
    "hope this",
    "all done",
    "done!",
    "i can help",
    "that should",
    "this should",
    "it should",
    "yes",
    "no,",
];

#[cfg(test)]
mod tests {
    use super::super::lines::statements;
    use super::*;

    #[test]
    fn bullets_tell_what_happened() {
        let cases: &[(&str, Source, bool, &[&str])] = &[
            (
                "Fixed the login. The cache was stale for hours.",
                Source::Summary,
                false,
                &["The cache was stale for hours"],
            ),
            ("Fixed the login.", Source::Summary, false, &["Fixed the login"]),
            ("Fixed the login.", Source::Summary, true, &["Fixed the login", FAILED]),
            ("TODO: add a test. Let me look at the file now.", Source::Answer, false, &[]),
            (
                "# Head\nfixed the parser of dates\n```\nlet x = 1;\n```",
                Source::Final,
                false,
                &["Fixed the parser of dates"],
            ),
            ("Shall I go on with that?", Source::Final, false, &[]),
        ];
        for (text, source, failed, expected) in cases {
            assert_eq!(
                &bullets(&statements(text, *source), "Fixed the login", *failed, 7),
                expected,
                "{text}"
            );
        }
    }
    fn session(lines: &[(Source, &str)]) -> Vec<Statement> {
        lines.iter().flat_map(|(source, text)| statements(text, *source)).collect()
    }

    /// The first sentences say little, and what is new and specific stands late.
    #[test]
    fn bullets_are_what_is_new_and_specific_and_not_what_is_first() {
        let mut lines = vec![
            (Source::Talk, "It is really a good day for us all today."),
            (Source::Talk, "That film was so good, and the other film was good, too."),
        ];
        lines.extend([(Source::Talk, "We watched a film at home with popcorn.")].repeat(6));
        lines.extend([
            (Source::Talk, "We watched the film at home, with popcorn."),
            (Source::Talk, "Our flight to Lisbon leaves on 7 May at 10:30."),
            (Source::Talk, "My sister Nora opened a bakery in Porto."),
            (Source::Talk, "The vet says that Biscuit needs 20 mg of Apoquel."),
        ]);
        let found = bullets(&session(&lines), "A day", false, 4);
        for wanted in ["Lisbon", "Porto", "Apoquel", "popcorn"] {
            let times = found.iter().filter(|bullet| bullet.contains(wanted)).count();
            assert_eq!(times, 1, "{wanted}: {found:?}");
        }
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn an_agents_session_keeps_its_order_and_the_summary_leads() {
        let lines = [
            (Source::Request, "The export of invoices times out for tenant Orchard."),
            (Source::Answer, "I'll look at the exporter."),
            (
                Source::Answer,
                "The query has no index on invoices.created_at, so PostgreSQL reads 4 million rows.",
            ),
            (Source::Final, "Added an index on invoices.created_at in migration 0042."),
            (Source::Final, "The export takes 3 seconds now."),
            (Source::Summary, "Indexed invoices.created_at for tenant Orchard."),
        ];
        let expected = [
            "Indexed invoices.created_at for tenant Orchard",
            "The export of invoices times out for tenant Orchard",
            "The query has no index on invoices.created_at, so PostgreSQL reads 4 million rows",
            "Added an index on invoices.created_at in migration 0042",
            "The export takes 3 seconds now",
        ];
        assert_eq!(bullets(&session(&lines), "Invoices", false, 7), expected);
        let two = bullets(&session(&lines), "Invoices", false, 2);
        assert_eq!(two, [expected[0], expected[3]]);
    }

    #[test]
    fn greetings_of_people_are_no_bullets() {
        let lines = [
            (Source::Talk, "Hey Mel! Good to see you! Thanks so much for asking!"),
            (Source::Talk, "Hey Ann, we adopted a puppy from the shelter."),
            (Source::Talk, "What about you?"),
            (Source::Talk, "I'll bring the lemon cake to the party."),
        ];
        let expected = ["We adopted a puppy from the shelter", "I'll bring the lemon cake to the party"];
        assert_eq!(bullets(&session(&lines), "Title", false, 7), expected);
    }
}
