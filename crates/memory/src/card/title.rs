//! One line that tells a session from others.

use std::collections::HashMap;

use super::clauses::capital;
use super::lines::{Form, Statement, statements};
use super::lists;
use super::small_talk::{
    HALF_ENDS, HALF_STARTS, POLITE, is_asked_back, is_only_small_talk, is_small_talk, longest, unopened,
};
use super::source::{Material, Source};
use super::words::{clip, content, is_spaceless, one_line, without_placeholders, words};

/// The title: the session's own, the first sentence of its summary, what people talked about most, or the first real
/// request. Never a greeting; a question back or half a sentence only where nothing else was said.
pub(super) fn title(material: &Material<'_>, said: &[Statement]) -> String {
    let own = material.title.and_then(|text| clip(&one_line(text), LONGEST));
    let own = own.filter(|text| says(text, 1) && !is_small_talk(text));
    let of = |source: Source, real: fn(&str) -> bool, fits: fn(&Statement) -> bool| {
        material
            .pieces
            .iter()
            .filter(|piece| piece.source == source && real(piece.text))
            .find_map(|piece| first(piece.text, source, fits))
    };
    let any = |fits: fn(&Statement) -> bool| {
        of(Source::Summary, |_| true, fits)
            .or_else(|| of(Source::Request, is_request, fits))
            .or_else(|| of(Source::Talk, |_| true, fits))
            .or_else(|| of(Source::Final, |_| true, fits))
            .or_else(|| of(Source::Error, |_| true, fits))
            .or_else(|| of(Source::Other, |_| true, fits))
    };
    own.or_else(|| of(Source::Summary, |_| true, is_whole))
        .or_else(|| central(said))
        .or_else(|| any(is_whole))
        .or_else(|| any(is_told))
        .or_else(|| any(|one| !is_small_talk(&one.text)))
        .unwrap_or_else(|| fallback(material.tool))
}

/// Whether a statement can stand alone: no greeting, no question back, and not half of a sentence.
fn is_whole(statement: &Statement) -> bool {
    is_told(statement) && !is_half(&statement.text)
}

/// Whether a statement is no greeting and no question back.
fn is_told(statement: &Statement) -> bool {
    let back = statement.form == Form::Question && is_asked_back(&statement.text);
    !back && !is_small_talk(&statement.text)
}

/// Whether a text announces something, goes on from what was said before, or stops in its middle.
fn is_half(text: &str) -> bool {
    let last = words(text).last().map(|word| word.to_lowercase()).unwrap_or_default();
    let ends = HALF_ENDS.iter().any(|word| *word == last) || text.ends_with("...");
    ends || longest(text, &HALF_STARTS).is_some()
}

/// Of what people told each other, the sentence that has most of what they came back to.
fn central(said: &[Statement]) -> Option<String> {
    let talk: Vec<&str> = said
        .iter()
        .filter(|one| one.source == Source::Talk && matches!(one.form, Form::Sentence | Form::Item))
        .filter(|one| is_whole(one))
        .map(|one| polite(unopened(&one.text)))
        .collect();
    let about: Vec<_> = talk.iter().map(|text| content(text)).collect();
    let mut often: HashMap<&str, u16> = HashMap::new();
    for word in about.iter().flatten() {
        let count = often.entry(word.as_str()).or_default();
        *count = count.saturating_add(1);
    }
    let mut best: Option<(f32, &str)> = None;
    for (at, (text, about)) in talk.iter().copied().zip(&about).enumerate() {
        let many = words(text).len();
        let signs = text.chars().filter(|letter| is_spaceless(*letter)).count();
        if is_half(text) || (many < LEAST_WORDS && signs < 2 * LEAST_WORDS) {
            continue;
        }
        let weigh = |word: &String| f32::from(often.get(word.as_str()).copied().unwrap_or(1)).ln();
        let told: f32 = about.iter().map(weigh).sum::<f32>() + concrete(text);
        let size = u16::try_from(about.len().max(LEAST_WORDS)).map_or(f32::MAX, f32::from);
        // What is cut says less, and who talks says early what it is about.
        let long = if text.chars().count() > LONGEST { 0.6 } else { 1.0 };
        let early = if at * 3 < talk.len() { 1.2 } else { 1.0 };
        let score = told / size.sqrt() * long * early;
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, text));
        }
    }
    best.and_then(|(_, text)| short(&capital(text)))
}

/// How much of names, numbers and places a sentence has: capitals inside it, and digits.
fn concrete(text: &str) -> f32 {
    let named = |word: &&str| {
        let first = word.chars().next();
        first.is_some_and(|first| first.is_uppercase() || first.is_ascii_digit())
            && word.len() > 1
            && !lists::STOP.has(&word.to_lowercase().replace('’', "'"))
    };
    let count = words(text).into_iter().skip(1).filter(named).take(MOST_NAMES).count();
    u16::try_from(count).map_or(0.0, f32::from) * 0.7
}

/// At most [`LONGEST`] characters: up to where a thought of the sentence ends, if it is long enough to tell.
fn short(text: &str) -> Option<String> {
    let Some((end, _)) = text.char_indices().nth(LONGEST) else { return clip(text, LONGEST) };
    let head = &text[..end];
    let ends = [", ", "; ", " – ", " — ", " (", "，", "；", "、"];
    let whole = ends.iter().filter_map(|end| head.rfind(end)).max().map(|at| &head[..at]);
    let whole = whole.filter(|part| {
        let signs = part.chars().filter(|letter| is_spaceless(*letter)).count();
        (words(part).len() >= LEAST_WHOLE || signs >= 2 * LEAST_WHOLE) && !is_half(part)
    });
    whole.map(str::to_owned).or_else(|| clip(text, LONGEST))
}

fn fallback(tool: Option<&str>) -> String {
    let tool = tool
        .map(one_line)
        .filter(|tool| !tool.is_empty() && tool.chars().count() <= LONGEST - SESSION.len() - 2);
    tool.map_or_else(|| SESSION.to_owned(), |tool| format!("{tool}: {SESSION}"))
}

/// The first statement that says something, as a title.
fn first(text: &str, source: Source, fits: fn(&Statement) -> bool) -> Option<String> {
    let head = text.char_indices().nth(MOST_READ).map_or(text, |(end, _)| &text[..end]);
    let said = statements(head, source);
    let told = |one: &&Statement| !matches!(one.form, Form::Code | Form::Done) && fits(one);
    said.iter().filter(told).find_map(|one| {
        let text = polite(unopened(&one.text));
        says(text, 2).then(|| short(&capital(text)))?
    })
}

/// What is asked, without the asking.
fn polite(text: &str) -> &str {
    let mut rest = text;
    while let Some(length) = longest(rest, &POLITE) {
        let after = &rest[length..];
        let next = after.trim_start_matches([',', '，', '!', ' ']);
        let apart = next.len() < after.len() || after.starts_with(is_spaceless);
        if next.is_empty() || !apart {
            break;
        }
        rest = next;
    }
    if rest.len() < text.len() { rest.trim_end_matches(['?', '？', ' ']) } else { text }
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
    let idle = text.len() <= LONGEST_IDLE && is_only_small_talk(text);
    !wrapped && !command && !idle && !left.iter().any(|lead| text.starts_with(lead)) && says(text, 2)
}

pub(super) const SESSION: &str = "session";
pub(super) const LONGEST: usize = 80;
const MOST_READ: usize = 2_000;
/// Longer messages say more than hello.
const LONGEST_IDLE: usize = 400;
/// Words, or half as many signs, of a sentence that can be a title.
const LEAST_WORDS: usize = 4;
/// Words of the part of a sentence that can.
const LEAST_WHOLE: usize = 5;
const MOST_NAMES: usize = 4;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(session: &serde_json::Value) -> String {
        let material = Material::of(session);
        let said = material.statements();
        title(&material, &said)
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

    #[test]
    fn a_title_is_no_greeting_no_question_back_and_no_half_sentence() {
        let user = |text: &str| json!({ "role": "user", "content": text });
        let agent = |text: &str| json!({ "role": "assistant", "content": text });
        let cases = [
            (
                json!({ "messages": [user("Good morning! Thanks for yesterday."), user("Hi Sam, why do exports of invoices fail?")] }),
                "Why do exports of invoices fail?",
            ),
            (
                json!({ "messages": [user("Here is the error:\n\nThe build of the parser stops on Windows.")] }),
                "The build of the parser stops on Windows",
            ),
            (
                json!({ "messages": [user("What do you mean?"), user("And the cache?"), user("Rename the crate to orchard and")] }),
                "Rename the crate to orchard and",
            ),
            (
                json!({ "messages": [user("# Add dark mode to the settings page\n\nOur users ask for it.")] }),
                "Add dark mode to the settings page",
            ),
            (
                json!({ "messages": [user("hello there"), user("thanks!")], "tool_name": "bash" }),
                "bash: session",
            ),
            (
                json!({ "title": "Good to see you!", "summary": "Planned the trip to Lisbon." }),
                "Planned the trip to Lisbon",
            ),
            (
                json!({ "messages": [user("Move the nightly export of all invoices to the new queue, since the old one drops what is longer than a megabyte")] }),
                "Move the nightly export of all invoices to the new queue",
            ),
            (json!({ "messages": [user("Kannst du bitte den Login reparieren?")] }), "Den Login reparieren"),
            (
                json!({ "messages": [user("Bonjour !"), user("Peux-tu corriger le test du panier ?")] }),
                "Corriger le test du panier",
            ),
            (
                json!({ "messages": [user("Hola, ¿qué tal?"), user("Puedes arreglar el login de la tienda?")] }),
                "Arreglar el login de la tienda",
            ),
            (
                json!({ "messages": [user("你好！"), user("请帮我修复登录页面的错误。")] }),
                "修复登录页面的错误",
            ),
            (
                json!({ "messages": [agent("Hello! How can I help you today?"), user("Привет!"), user("Пожалуйста, исправь вход на сайт")] }),
                "Исправь вход на сайт",
            ),
        ];
        for (session, expected) in cases {
            assert_eq!(of(&session), expected, "{session}");
        }
    }

    /// Between people no one asks for anything: the title is what they came back to.
    #[test]
    fn the_title_of_a_talk_is_what_it_is_about() {
        let talk = |lines: &[&str]| {
            let message = |(at, text): (usize, &&str)| {
                let role = ["Ann", "Mel"][at % 2];
                json!({ "role": role, "content": text })
            };
            of(&json!({ "messages": lines.iter().enumerate().map(message).collect::<Vec<_>>() }))
        };
        let english = [
            "Hey Mel! Good to see you! How have you been?",
            "Hey Ann, I'm good. How about you?",
            "Oh, we adopted a puppy from the shelter in Porto.",
            "Wow, that's so great! What is the name of the puppy?",
            "Biscuit. The shelter had found the puppy on a road.",
            "I want to see it! Let's meet on Tuesday.",
        ];
        assert_eq!(talk(&english), "We adopted a puppy from the shelter in Porto");
        let german = [
            "Hallo Mel! Schön dich zu sehen!",
            "Hallo Ann, wie geht es dir?",
            "Wir ziehen im Mai in eine Wohnung am Hafen.",
            "Und du hast die Wohnung schon gesehen?",
            "Ja, die Wohnung hat einen Balkon zum Hafen.",
        ];
        assert_eq!(talk(&german), "Wir ziehen im Mai in eine Wohnung am Hafen");
        let chinese = [
            "你好！最近怎么样？",
            "我昨天领养了一只小猫，小猫很可爱。",
            "太好了！小猫叫什么？",
            "小猫叫豆豆。",
        ];
        assert_eq!(talk(&chinese), "我昨天领养了一只小猫，小猫很可爱");
    }
}
