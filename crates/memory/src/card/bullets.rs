//! What happened, in a few sentences of the session itself.

use std::collections::BTreeSet;

use super::clauses::capital;
use super::lines::{Form, Statement};
use super::source::Source;
use super::title::is_request;
use super::todos::marked;
use super::words::{alike, clip, content, is_spaceless, words};

/// At most `most` bullets in the order of time: the agent's own summary, or what was asked, found and said last.
pub(super) fn bullets(said: &[Statement], title: &str, failed: bool, most: usize) -> Vec<String> {
    let (title, is_cut) = (content(title), title.ends_with('…'));
    let mut ranked: Vec<(i32, usize)> =
        said.iter().enumerate().filter_map(|(at, one)| Some((score(one)?, at))).collect();
    ranked.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
    let mut known: Vec<BTreeSet<String>> = Vec::new();
    let mut kept: Vec<(usize, String)> = Vec::new();
    let mut repeats = None;
    for (_, at) in ranked {
        let about = content(&said[at].text);
        let Some(text) = clip(&capital(&said[at].text), LONGEST) else { continue };
        // A title that was cut does not say what its sentence said.
        if alike(&about, &title) && !(is_cut && about.len() > title.len()) {
            repeats.get_or_insert((at, text));
        } else if !known.iter().any(|other| alike(other, &about)) {
            known.push(about);
            kept.push((at, text));
        }
        if kept.len() == most {
            break;
        }
    }
    // Better the title again than nothing.
    if kept.is_empty() {
        kept.extend(repeats);
    }
    if failed && kept.len() < most && !said.iter().any(|one| one.source == Source::Error) {
        kept.push((usize::MAX, FAILED.to_owned()));
    }
    // The summary stands last in time, and is told first.
    kept.sort_by_key(|(at, _)| (said.get(*at).is_none_or(|one| one.source != Source::Summary), *at));
    kept.into_iter().map(|(_, text)| text).collect()
}

/// How much a statement tells of what happened; none when it does not.
fn score(statement: &Statement) -> Option<i32> {
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
    let plain = text.to_lowercase();
    let source = match statement.source {
        Source::Summary => 20,
        Source::Error => 9,
        Source::Final => 6,
        Source::Request => 5,
        Source::Other => 2,
        Source::Answer => 1,
        Source::Output => return None,
    };
    let deed = DEEDS.iter().any(|deed| plain.contains(deed));
    let idle = IDLE.iter().any(|idle| plain.starts_with(idle));
    let length = i32::from(text.chars().count() > LONGEST) + i32::from(many < 5 && signs < 8);
    let score = source + form + if deed { 4 } else { 0 } - if idle { 8 } else { 0 } - 2 * length;
    (score > 0).then_some(score)
}

pub(super) const LONGEST: usize = 200;
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
}
