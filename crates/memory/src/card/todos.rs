//! What is left to do.

use super::clauses::{self, Cue, Found, Take};
use super::lines::{Form, Statement, inline};
use super::small_talk::unopened;
use super::source::Source;
use super::talk;
use super::words::{alike, content, words};

/// At most `most` things to do: those of the session's own list first, then as they were said.
pub(super) fn todos(listed: &[&str], said: &[Statement], most: usize) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut known = Vec::new();
    let mut add = |text: Option<String>| {
        let Some(text) = text else { return };
        let about = content(&text);
        if known.len() < MOST_KNOWN && !about.is_empty() && !known.iter().any(|other| alike(other, &about)) {
            known.push(about);
            found.push(text);
        }
    };
    listed.iter().for_each(|item| add(clauses::tidy(&inline(item))));
    let done: Vec<_> = said
        .iter()
        .filter(|one| one.form == Form::Done)
        .map(|one| content(&one.text))
        .take(MOST_KNOWN)
        .collect();
    let plain = said.iter().filter(|one| one.source != Source::Output);
    for statement in plain.clone().filter(|one| one.form != Form::Code) {
        let text = match statement.form {
            Form::Open => marked(&statement.text).or_else(|| clauses::tidy(&statement.text)),
            Form::Sentence | Form::Item => marked(&statement.text).or_else(|| asked(statement)),
            _ => None,
        };
        add(text.filter(|text| !done.iter().any(|done| alike(done, &content(text)))));
    }
    found.truncate(most);
    found
}

/// What follows `TODO:` and its like.
pub(super) fn marked(text: &str) -> Option<String> {
    if let Some(found) = clauses::find(text, MARKS) {
        let rest = found.after.trim_start();
        // TODO(jane): …
        let rest =
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
        let shouted = found.from.starts_with("TODO") || found.from.starts_with("FIXME");
        let opens = found.before.trim().is_empty();
        if rest.starts_with(':') || (shouted && opens) || (opens && rest.starts_with(['-', '–'])) {
            return clauses::tidy(rest);
        }
    }
    None
}

/// What someone needs to, must or should do.
fn asked(statement: &Statement) -> Option<String> {
    let later = || LATER.iter().any(|word| statement.text.to_ascii_lowercase().contains(word));
    if statement.source == Source::Talk {
        return promised(statement);
    }
    let counts = match statement.source {
        Source::Summary | Source::Final | Source::Other => true,
        // What the user wants is what the session is about, and what the agent must do on its way is soon done.
        Source::Request => later(),
        Source::Answer | Source::Error | Source::Output | Source::Talk => false,
    };
    let found = clauses::find(&statement.text, CUES).filter(|found| counts && holds(found))?;
    let personal = found.before.trim().is_empty() || found.follows(PEOPLE, 1);
    match found.cue.take {
        Take::Skip(_) if !personal && found.cue.phrase.len() < 8 => {
            Found { cue: Cue { take: Take::Whole, ..found.cue }, ..found }.clause()
        }
        _ => found.clause(),
    }
}

/// What someone says to another that they will do, or that the other should not forget.
fn promised(statement: &Statement) -> Option<String> {
    let text = unopened(&statement.text);
    let found = clauses::find(text, talk::PROMISES)?;
    let plain = text.to_lowercase();
    let past = talk::PAST.iter().any(|word| plain.contains(word));
    if past || found.follows(NOT, 3) || talk::is_loose(&found) {
        return None;
    }
    // "Let's meet there, I'll bring the cake" is two things.
    let apart = found.before.trim_end().ends_with([',', ';', '，']);
    if apart { clauses::tidy(found.from) } else { found.clause() }
}

fn holds(found: &Found<'_>) -> bool {
    if found.follows(NOT, 3) {
        return false;
    }
    let after = words(found.after);
    let next = after.first().map(|word| word.to_lowercase()).unwrap_or_default();
    if !matches!(found.cue.phrase, "must" | "should") {
        return !matches!(next.as_str(), "" | "worry");
    }
    match next.as_str() {
        "be" => after.get(1).is_some_and(|word| is_participle(&word.to_lowercase())),
        other => !other.is_empty() && !STATES.contains(&other),
    }
}

fn is_participle(word: &str) -> bool {
    let known = [
        "done",
        "run",
        "set",
        "kept",
        "made",
        "sent",
        "built",
        "rewritten",
        "written",
        "split",
        "rebuilt",
        "hidden",
        "taken",
    ];
    (word.ends_with("ed")
        && !["expected", "needed", "noted", "limited", "unaffected", "interested"].contains(&word))
        || known.contains(&word)
}

/// More are not told apart: time stays linear.
const MOST_KNOWN: usize = 100;

const fn cue(phrase: &'static str, take: Take) -> Cue {
    Cue { phrase, take }
}

const MARKS: &[Cue] = &[
    cue("todo", Take::Whole),
    cue("to do", Take::Whole),
    cue("to-do", Take::Whole),
    cue("fixme", Take::Whole),
    cue("action", Take::Whole),
    cue("action item", Take::Whole),
    cue("action items", Take::Whole),
    cue("next step", Take::Whole),
    cue("next steps", Take::Whole),
    cue("next", Take::Whole),
    cue("remaining", Take::Whole),
    cue("follow-up", Take::Whole),
    cue("follow up", Take::Whole),
    cue("still open", Take::Whole),
    cue("still to do", Take::Whole),
    cue("pending", Take::Whole),
    cue("offen", Take::Whole),
    cue("noch offen", Take::Whole),
    cue("à faire", Take::Whole),
    cue("pendiente", Take::Whole),
    cue("gjenstår", Take::Whole),
];

const CUES: &[Cue] = &[
    cue("need to", Take::Skip(2)),
    cue("needs to", Take::Whole),
    cue("have to", Take::Skip(2)),
    cue("must", Take::Skip(1)),
    cue("should", Take::Skip(1)),
    cue("next step is to", Take::Skip(4)),
    cue("next steps are to", Take::Skip(4)),
    cue("remains to", Take::Whole),
    cue("remaining work is to", Take::Skip(4)),
    cue("left to do", Take::Whole),
    cue("follow up on", Take::Skip(0)),
    cue("follow up with", Take::Skip(0)),
    cue("don't forget to", Take::Skip(3)),
    cue("remember to", Take::Skip(2)),
    cue("still missing", Take::Whole),
    cue("müssen noch", Take::Whole),
    cue("muss noch", Take::Whole),
    cue("il faut", Take::Whole),
    cue("il reste à", Take::Whole),
    cue("reste à", Take::Whole),
    cue("hay que", Take::Whole),
    cue("falta", Take::Whole),
    cue("tenemos que", Take::Whole),
    cue("precisamos", Take::Whole),
    cue("vi må", Take::Whole),
    cue("gjenstår", Take::Whole),
    cue("vi måste", Take::Whole),
    cue("нужно", Take::Whole),
    cue("осталось", Take::Whole),
    cue("需要", Take::Whole),
    cue("还要", Take::Whole),
    cue("必須", Take::Whole),
    cue("する必要があ", Take::Whole),
];

const PEOPLE: &[&str] = &[
    "we", "i", "you", "they", "someone", "somebody", "still", "also", "then", "and", "now", "just", "team",
    "will", "we'll", "you'll",
];
const NOT: &[&str] = &[
    "no", "not", "don't", "doesn't", "didn't", "never", "if", "when", "whenever", "may", "might", "would",
    "could", "longer", "nothing", "why", "case", "won't", "without", "nicht", "pas", "不", "ikke", "не",
    "unless", "which", "that",
];
/// What a thing should do is what it does, not what is to do.
const STATES: &[&str] = &[
    "not", "never", "now", "work", "have", "see", "return", "already", "only", "pass", "show", "print",
    "give", "contain", "match", "equal", "look", "get", "help", "suffice", "produce", "always", "fit",
    "hold", "exist", "stay", "succeed", "output", "of", "know", "notice", "find", "appear",
];
const LATER: &[&str] = &[
    "later",
    "tomorrow",
    "next",
    "still",
    "afterwards",
    "follow up",
    "before the",
    "before next",
    "eventually",
    "monday",
    "后",
    "noch",
];

#[cfg(test)]
mod tests {
    use super::super::lines::statements;
    use super::*;

    fn of(text: &str) -> Vec<String> {
        todos(&[], &statements(text, Source::Summary), 7)
    }

    #[test]
    fn todos_are_what_is_left() {
        let cases: &[(&str, &[&str])] = &[
            ("TODO: fix JWT validation before next deploy.", &["Fix JWT validation before next deploy"]),
            ("TODO(ann): fix the parser", &["Fix the parser"]),
            ("FIXME rename foo_bar", &["Rename foo_bar"]),
            ("We need to add tests.", &["Add tests"]),
            ("We still need to add tests.", &["Add tests"]),
            ("The cache must be cleared before release", &["The cache must be cleared before release"]),
            ("You should rotate the logs", &["Rotate the logs"]),
            ("Next step: write the docs", &["Write the docs"]),
            ("Follow up with the vendor", &["Follow up with the vendor"]),
            ("- [ ] write docs\n- [x] ship it all", &["Write docs"]),
            ("- [ ] write docs\n- [x] write docs", &[]),
            ("## Next steps\n1. Add metrics\n2. Write a runbook", &["Add metrics", "Write a runbook"]),
            ("Remaining:\n- add metrics", &["Add metrics"]),
            ("还需要修复验证逻辑。", &["还需要修复验证逻辑"]),
            ("Wir müssen noch Tests schreiben.", &["Wir müssen noch Tests schreiben"]),
            ("There is no need to worry.", &[]),
            ("We don't need to change it.", &[]),
            ("That should not be a problem.", &[]),
            ("It should work now. Tests should be fine.", &[]),
            ("Do we need to change it?", &[]),
            ("If you need to change it, do.", &[]),
            ("You should see two lines.", &[]),
            ("```\n// TODO: not mine\n```", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(&of(text), expected, "{text}");
        }
    }

    #[test]
    fn what_an_agent_needs_on_its_way_is_not_left() {
        let said = statements("I need to read the file first. TODO: add a test", Source::Answer);
        assert_eq!(todos(&["**Ship** it"], &said, 7), ["Ship it", "Add a test"]);
    }
}
