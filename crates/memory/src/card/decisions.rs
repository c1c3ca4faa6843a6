//! What was decided, and what became of it: the last word on a subject is the one that counts.

use std::collections::BTreeSet;

use super::clauses::{self, Cue, Found, Take};
use super::lines::{Form, Statement};
use super::small_talk::unopened;
use super::source::Source;
use super::talk;
use super::words::{alike, content};

/// At most `most` decisions, in the order in which they were made.
pub(super) fn decisions(said: &[Statement], most: usize) -> Vec<String> {
    let mut made: Vec<Decision> = Vec::new();
    for (at, statement) in said.iter().enumerate() {
        let Some(decision) = decision(statement, at) else { continue };
        made.retain(|earlier| !decision.replaces(earlier));
        made.push(decision);
        if made.len() > MOST_KNOWN {
            made.remove(0);
        }
    }
    made.sort_by_key(|decision| std::cmp::Reverse((decision.weight, decision.at)));
    made.truncate(most);
    made.sort_by_key(|decision| decision.at);
    made.into_iter().map(|decision| decision.text).collect()
}

struct Decision {
    text: String,
    about: BTreeSet<String>,
    /// `for the queue`: what it is a decision on.
    purpose: Option<BTreeSet<String>>,
    /// `instead of Redis`: what it does away with.
    gone: BTreeSet<String>,
    turns: bool,
    weight: u8,
    at: usize,
}

impl Decision {
    /// Whether this is a later word on the same subject.
    fn replaces(&self, earlier: &Self) -> bool {
        if alike(&self.about, &earlier.about) {
            return true;
        }
        if self.gone.iter().any(|word| earlier.about.contains(word) && !earlier.gone.contains(word)) {
            return true;
        }
        match (&self.purpose, &earlier.purpose) {
            (Some(one), Some(other)) => one == other,
            _ => {
                let shared = self.about.intersection(&earlier.about).count();
                let least = self.about.len().min(earlier.about.len());
                shared * 2 > least || (self.turns && shared > 0)
            }
        }
    }
}

fn decision(statement: &Statement, at: usize) -> Option<Decision> {
    let fits = matches!(statement.form, Form::Sentence | Form::Item) && statement.source != Source::Output;
    let found = found(statement).filter(|_| fits)?;
    let text = found.clause()?;
    let plain = statement.text.to_lowercase();
    let tail = |mark: &str| plain.rsplit_once(mark).map(|(_, tail)| content(first_part(tail)));
    let gone = tail(" instead of ")
        .or_else(|| tail(" rather than "))
        .or_else(|| tail(" away from "))
        .unwrap_or_default();
    let turns = TURNS.iter().any(|turn| plain.contains(turn));
    let mut about = content(&text);
    IDLE.iter().for_each(|word| _ = about.remove(*word));
    let purpose = tail(" for ").filter(|purpose| !purpose.is_empty());
    let strong = matches!(found.cue.take, Take::Skip(_)) || STRONG.iter().any(|word| plain.contains(word));
    let weight = match statement.source {
        Source::Summary => 6,
        Source::Request => 5,
        Source::Final | Source::Talk => 4,
        Source::Other | Source::Error => 3,
        Source::Answer | Source::Output => 2,
    } + if strong { 2 } else { 0 };
    Some(Decision { text, about, purpose, gone, turns, weight, at })
}

/// The phrase that gives a decision away; people have more of them than agents.
fn found(statement: &Statement) -> Option<Found<'_>> {
    if statement.source != Source::Talk {
        return clauses::find(&statement.text, CUES).filter(holds);
    }
    let text = unopened(&statement.text);
    clauses::find(text, CUES).filter(|found| holds(found) && !talk::is_loose(found)).or_else(|| {
        clauses::find(text, talk::DECISIONS).filter(|found| holds(found) && !talk::is_loose(found))
    })
}

/// Up to where another thought begins.
fn first_part(text: &str) -> &str {
    let ends = [",", ";", " because ", " since ", " until ", " as ", " and ", " so "];
    ends.iter().filter_map(|end| text.find(end)).min().map_or(text, |end| &text[..end])
}

/// Whether the phrase says that it is so, and not that it is not, may be, or was when.
fn holds(found: &Found<'_>) -> bool {
    let after = found.after.trim_start().to_ascii_lowercase();
    // What git says of itself.
    let branch = after.starts_with("branch") || after.starts_with("a new branch");
    let asks = ["should we", "shall we", "can we", "do we", "how about", "what if"];
    let opens = found.before.trim_start().to_ascii_lowercase();
    let own =
        !matches!(found.cue.phrase, "picked" | "selected" | "chose" | "chosen" | "accepted" | "migrated to")
            || found.before.trim().is_empty()
            || found.follows(
                &["we", "i", "team", "they", "user", "have", "has", "was", "were", "finally", "and"],
                2,
            );
    !branch
        && own
        && !found.follows(NOT, 4)
        && !found.follows(WHEN, 3)
        && !asks.iter().any(|ask| opens.starts_with(ask))
}

/// More are not compared: time stays linear, and the last ones count.
const MOST_KNOWN: usize = 100;

const fn cue(phrase: &'static str, take: Take) -> Cue {
    Cue { phrase, take }
}

const fn whole(phrase: &'static str) -> Cue {
    cue(phrase, Take::Whole)
}

const CUES: &[Cue] = &[
    cue("decided to", Take::Skip(2)),
    cue("decided that", Take::Skip(2)),
    cue("decided not to", Take::Skip(0)),
    cue("decided against", Take::Skip(0)),
    cue("decided on", Take::Skip(0)),
    whole("decided"),
    cue("decision:", Take::Skip(1)),
    cue("decision is to", Take::Skip(3)),
    cue("decision was to", Take::Skip(3)),
    cue("chose to", Take::Skip(2)),
    cue("opted to", Take::Skip(2)),
    cue("opted for", Take::Skip(0)),
    cue("agreed to", Take::Skip(2)),
    cue("agreed that", Take::Skip(2)),
    cue("agreed on", Take::Skip(0)),
    cue("chose", Take::Skip(0)),
    whole("chosen"),
    cue("picked", Take::Skip(0)),
    cue("selected", Take::Skip(0)),
    cue("settled on", Take::Skip(0)),
    cue("going with", Take::Skip(0)),
    cue("we go with", Take::Skip(1)),
    cue("we'll go with", Take::Skip(1)),
    cue("we will go with", Take::Skip(2)),
    cue("we will use", Take::Skip(2)),
    cue("we'll use", Take::Skip(1)),
    cue("let's use", Take::Skip(1)),
    cue("let's go with", Take::Skip(1)),
    cue("let's switch to", Take::Skip(1)),
    cue("let's stick with", Take::Skip(1)),
    cue("let's keep", Take::Skip(1)),
    cue("let's drop", Take::Skip(1)),
    cue("let's go back to", Take::Skip(1)),
    cue("lets use", Take::Skip(1)),
    cue("lets go with", Take::Skip(1)),
    cue("switched to", Take::Skip(0)),
    cue("switched from", Take::Skip(0)),
    cue("switched back to", Take::Skip(0)),
    cue("switching to", Take::Skip(0)),
    cue("migrated to", Take::Skip(0)),
    cue("rolled back to", Take::Skip(0)),
    cue("rolling back to", Take::Skip(0)),
    cue("reverted to", Take::Skip(0)),
    whole("approved"),
    whole("rejected"),
    whole("accepted"),
    whole("the fix is"),
    whole("the fix was"),
    whole("the solution is"),
    whole("the solution was"),
    whole("beschlossen"),
    whole("entschieden"),
    whole("wir nehmen"),
    whole("wir verwenden jetzt"),
    whole("umgestellt auf"),
    whole("décidé"),
    whole("on a choisi"),
    whole("nous avons choisi"),
    whole("on part sur"),
    whole("decidimos"),
    whole("decidido"),
    whole("hemos elegido"),
    whole("vamos con"),
    whole("vamos usar"),
    whole("besluttet"),
    whole("bestemte oss"),
    whole("vi velger"),
    whole("vi går for"),
    whole("bestämde"),
    whole("решили"),
    whole("решено"),
    whole("决定"),
    whole("決定"),
    whole("改用"),
    whole("回滚到"),
    whole("ことにした"),
    whole("ことにしました"),
    whole("に決めました"),
];

const NOT: &[&str] = &[
    "not", "never", "no", "nobody", "none", "without", "haven't", "hasn't", "didn't", "don't", "doesn't",
    "isn't", "wasn't", "weren't", "can't", "couldn't", "won't", "hadn't", "yet", "should", "could", "would",
    "might", "may", "be", "whether", "nicht", "pas", "ikke", "inte", "не",
];
const WHEN: &[&str] = &[
    "if", "unless", "until", "once", "when", "whenever", "before", "after", "since", "while", "as", "wenn",
    "si",
];
/// Words with which people take something back.
const TURNS: &[&str] = &[
    "actually",
    "instead",
    "scrap that",
    "second thought",
    "no longer",
    "back to",
    "changed our mind",
    "changed my mind",
    "rather than",
    "doch ",
    "statt",
    "finalement",
    "改用",
    "回滚",
];
const STRONG: &[&str] =
    &["decided", "chose", "agreed", "going with", "rolled back", "let's", "approved", "rejected"];
/// What decisions have in common and none is about.
const IDLE: &[&str] = &[
    "roll", "switch", "us", "go", "keep", "move", "adopt", "stick", "drop", "revert", "decid", "actually",
    "approv", "reject", "settl", "agre", "pick", "select", "migrat", "use", "choos", "chose", "solution",
    "going",
];

#[cfg(test)]
mod tests {
    use super::super::lines::statements;
    use super::*;

    fn of(text: &str) -> Vec<String> {
        decisions(&statements(text, Source::Summary), 5)
    }

    #[test]
    fn decisions_are_clauses() {
        let cases: &[(&str, &[&str])] = &[
            ("Decided to roll back to v2.3.1.", &["Roll back to v2.3.1"]),
            ("We chose PostgreSQL because of JSONB.", &["Chose PostgreSQL because of JSONB"]),
            ("I'm going with tokio.", &["Going with tokio"]),
            ("Let's use Redis instead of Kafka.", &["Use Redis instead of Kafka"]),
            ("let’s use Redis", &["Use Redis"]),
            ("We rolled back to v1.2.", &["Rolled back to v1.2"]),
            ("The team agreed that tests come first", &["Tests come first"]),
            ("The proposal was rejected by review", &["The proposal was rejected by review"]),
            ("The fix is to pin serde to 1.0.", &["The fix is to pin serde to 1.0"]),
            ("So we decided against sharding", &["Decided against sharding"]),
            ("我们决定使用 PostgreSQL。", &["我们决定使用 PostgreSQL"]),
            ("Wir haben uns für Redis entschieden.", &["Wir haben uns für Redis entschieden"]),
            ("Decided.", &[]),
            ("We did not decide to ship.", &[]),
            ("We have not decided to ship.", &[]),
            ("Should we switch to tokio? Have we decided to ship?", &[]),
            ("If approved by legal, ship it.", &[]),
            ("It needs to be approved by Ann.", &[]),
            ("When we switched to tokio it broke.", &[]),
            ("Switched to branch 'main'", &[]),
            ("We will never go with that.", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(&of(text), expected, "{text}");
        }
    }

    #[test]
    fn the_last_word_on_a_subject_counts() {
        let cases: &[(&str, &[&str])] = &[
            (
                "Decided to use Redis for the queue. We switched to NATS for the queue.",
                &["Switched to NATS for the queue"],
            ),
            ("Let's use Redis. Let's use Kafka instead of Redis.", &["Use Kafka instead of Redis"]),
            (
                "Decided to use Rust for the server. Decided to use Rust for the web client.",
                &["Use Rust for the server", "Use Rust for the web client"],
            ),
            ("Decided to ship v2 on Friday. Decided to ship v2 on Monday.", &["Ship v2 on Monday"]),
            ("Decided to roll back to v2.3.1. Decided to roll back to v2.3.1.", &["Roll back to v2.3.1"]),
            ("We chose SQLite. We agreed to write tests.", &["Chose SQLite", "Write tests"]),
        ];
        for (text, expected) in cases {
            assert_eq!(&of(text), expected, "{text}");
        }
    }
}
