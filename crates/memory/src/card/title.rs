//! One line that tells a session from others.

use super::clauses::capital;
use super::lines::{Form, statements};
use super::source::{Material, Source};
use super::words::{clip, is_spaceless, one_line, without_placeholders, words};

/// The title: the session's own, the first sentence of its summary, or the first real request.
pub(super) fn title(material: &Material<'_>) -> String {
    let own = material.title.and_then(|text| clip(&one_line(text), LONGEST)).filter(|text| says(text, 1));
    let of = |source: Source, real: fn(&str) -> bool| {
        material
            .pieces
            .iter()
            .filter(|piece| piece.source == source && real(piece.text))
            .find_map(|piece| first(piece.text, source))
    };
    own.or_else(|| of(Source::Summary, |_| true))
        .or_else(|| of(Source::Request, is_request))
        .or_else(|| of(Source::Final, |_| true))
        .or_else(|| of(Source::Error, |_| true))
        .or_else(|| of(Source::Other, |_| true))
        .unwrap_or_else(|| fallback(material.tool))
}

fn fallback(tool: Option<&str>) -> String {
    let tool = tool
        .map(one_line)
        .filter(|tool| !tool.is_empty() && tool.chars().count() <= LONGEST - SESSION.len() - 2);
    tool.map_or_else(|| SESSION.to_owned(), |tool| format!("{tool}: {SESSION}"))
}

/// The first statement that says something, as a title.
fn first(text: &str, source: Source) -> Option<String> {
    let head = text.char_indices().nth(MOST_READ).map_or(text, |(end, _)| &text[..end]);
    let said = statements(head, source);
    let fits = |form: Form| !matches!(form, Form::Code | Form::Done);
    let said = said.iter().filter(|one| fits(one.form));
    said.filter_map(|one| {
        let text = polite(&one.text);
        says(text, 2).then(|| clip(&capital(text), LONGEST))?
    })
    .next()
}

/// What is asked, without the asking.
fn polite(text: &str) -> &str {
    let mut rest = text;
    while let Some(lead) =
        POLITE.iter().find(|lead| rest.get(..lead.len()).is_some_and(|head| head.eq_ignore_ascii_case(lead)))
    {
        rest = rest[lead.len()..].trim_start_matches([',', '!', ' ']);
    }
    if rest.len() < text.len() { rest.trim_end_matches('?') } else { text }
}

/// Whether a text has so many words beside placeholders.
fn says(text: &str, least: usize) -> bool {
    let text = without_placeholders(text);
    let many = words(&text).iter().filter(|word| word.chars().any(char::is_alphabetic)).count();
    many >= least || text.chars().filter(|letter| is_spaceless(*letter)).count() > 3
}

/// Whether a message of the user is a request, and no wrapper of a command, greeting or left-over of a compaction.
pub(super) fn is_request(text: &str) -> bool {
    let text = text.trim_start();
    let wrapped = text.starts_with('<') && !text.starts_with("<REDACTED:");
    let command =
        text.starts_with('/') && !text.split_whitespace().next().is_some_and(|word| word[1..].contains('/'));
    let left = [
        "Caveat:",
        "This session is being continued",
        "[Request interrupted",
        "Base directory for this skill",
    ];
    let plain = text.to_lowercase();
    let idle = IDLE.contains(&plain.trim_matches(|letter: char| !letter.is_alphanumeric()));
    !wrapped && !command && !idle && !left.iter().any(|lead| text.starts_with(lead)) && says(text, 2)
}

pub(super) const SESSION: &str = "session";
pub(super) const LONGEST: usize = 80;
const MOST_READ: usize = 2_000;
const POLITE: &[&str] = &[
    "hello ",
    "hello,",
    "hi ",
    "hi,",
    "hey ",
    "hey,",
    "please ",
    "can you ",
    "could you ",
    "would you ",
    "i want you to ",
    "i'd like you to ",
    "i would like you to ",
    "kannst du ",
    "bitte ",
];
const IDLE: &[&str] = &[
    "thank you",
    "good morning",
    "go on",
    "go ahead",
    "sounds good",
    "try again",
    "yes please",
    "do it",
    "looks good",
    "hi there",
    "hello there",
    "guten tag",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(session: &serde_json::Value) -> String {
        title(&Material::of(session))
    }

    #[test]
    fn a_title_is_one_short_line() {
        let user = |text: &str| json!({ "role": "user", "content": text });
        let long = "Investigate why the nightly export of <REDACTED:EMAIL:2> fails with <REDACTED:IPV4_ADDRESS> since Monday";
        let cases = [
            (json!({ "summary": "Fixed v2.3.1 of `auth`. More." }), "Fixed v2.3.1 of auth"),
            (
                json!({ "messages": [user("<command-name>/clear</command-name>"), user("hi"), user("please fix the login\nnow")] }),
                "Fix the login",
            ),
            (
                json!({ "messages": [user("/compact"), user("Can you add a test for foo_bar?")] }),
                "Add a test for foo_bar",
            ),
            (json!({ "tool_name": "bash" }), "bash: session"),
            (json!({}), "session"),
            (json!({ "summary": "# Report\n\nThe export works." }), "The export works"),
            (
                json!({ "summary": long }),
                "Investigate why the nightly export of <REDACTED:EMAIL:2> fails with…",
            ),
            (json!({ "summary": "令牌验证失败。已回滚。" }), "令牌验证失败"),
        ];
        for (session, expected) in cases {
            assert_eq!(of(&session), expected);
        }
    }
}
