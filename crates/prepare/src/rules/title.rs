//! A title and icons for a conversation that has none yet, from its first words.

use super::category::Choice;
use super::icons;
use super::text::folded_words;
use crate::tidy::{self, LONGEST_TITLE, MOST_ICONS};
use confidant_redact::quote_line as one_line;

/// The first sentence without greetings and requests, cut to [`LONGEST_TITLE`] characters at a word.
pub(super) fn title(text: &str) -> Option<String> {
    let line = one_line(&without_code(text));
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let sentence = first_sentence(bare(line));
    let title = shortened(
        sentence.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, ')' | '+' | '#' | '?')),
    );
    let mut letters = title.chars();
    let first = letters.next()?;
    tidy::title(&first.to_uppercase().chain(letters).collect::<String>())
}

/// Icons for the subject: those that a tag names, then those of the category.
pub(super) fn icon_names(tags: &[String], choice: &Choice) -> Vec<String> {
    let tagged = tags.iter().filter_map(|tag| icons::named(&tag.to_lowercase().replace(' ', "-")));
    let mut names: Vec<&str> = Vec::new();
    for name in tagged.take(1).chain(choice.icons().iter().copied()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        names.push("message-circle");
    }
    names.into_iter().take(MOST_ICONS).map(str::to_owned).collect()
}

/// The text without what stands in code fences, and without addresses of the web.
fn without_code(raw: &str) -> String {
    let outside = raw.split("```").step_by(2).collect::<Vec<&str>>().join(" ");
    let start = outside.floor_char_boundary(LONGEST_LOOK);
    let words = outside[..start].split_whitespace();
    let kept = words.filter(|word| !word.contains("://") && !word.starts_with("www."));
    let plain: Vec<String> = kept.map(|word| word.replace(['*', '`', '|', '<', '>', '"'], "")).collect();
    plain.join(" ")
}

/// The text from the first word on that is neither a greeting nor a request to do something at all.
fn bare(line: &str) -> &str {
    let mut rest = line;
    while let Some(after) = OPENINGS.iter().find_map(|opening| without(rest, opening)) {
        rest = after;
    }
    if folded_words(rest).is_empty() { line } else { rest }
}

/// What follows an opening, if the text begins with it.
fn without<'t>(text: &'t str, opening: &str) -> Option<&'t str> {
    let head = text.get(..opening.len()).filter(|head| head.eq_ignore_ascii_case(opening))?;
    let after = &text[head.len()..];
    if after.starts_with(|c: char| c.is_alphanumeric() || c == '\'' || c == '-') {
        return None;
    }
    Some(after.trim_start_matches(|c: char| !c.is_alphanumeric()))
}

fn first_sentence(text: &str) -> &str {
    let mut ends = text.char_indices().zip(text.chars().skip(1).map(Some).chain([None]));
    let end = ends.find(|((at, c), next)| {
        let over = matches!(c, '!' | '?' | '。' | '！' | '？')
            || (*c == '.' && next.is_none_or(char::is_whitespace));
        over && *at >= SHORTEST_SENTENCE
    });
    end.map_or(text, |((at, c), _)| &text[..at + c.len_utf8()])
}

/// At most [`LONGEST_TITLE`] characters, cut between words where there are some.
fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST_TITLE {
        return text.trim_end_matches(['.', '!', ',']).to_owned();
    }
    let end = text.char_indices().nth(LONGEST_TITLE - 1).map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    let cut = head.rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", head[..cut].trim_end_matches(|c: char| !c.is_alphanumeric()))
}

/// Greetings and "can you", longest first where one begins with the other.
const OPENINGS: &[&str] = &[
    "hello",
    "hi there",
    "hi",
    "hey there",
    "hey",
    "good morning",
    "good evening",
    "please",
    "can you please",
    "could you please",
    "can you help me with",
    "can you help me",
    "can you",
    "could you",
    "would you",
    "will you",
    "i would like you to",
    "i want you to",
    "i need you to",
    "i need help with",
    "help me with",
    "help me to",
    "help me",
    "tell me",
    "so",
    "ok",
    "okay",
    "hallo",
    "guten tag",
    "guten morgen",
    "moin",
    "bitte",
    "kannst du mir bitte",
    "kannst du bitte",
    "kannst du mir",
    "kannst du",
    "könntest du",
    "könnten sie",
    "können sie",
    "ich möchte, dass du",
    "hilf mir bei",
    "hilf mir",
    "sag mir",
    "bonjour",
    "salut",
    "s'il te plaît",
    "s'il vous plaît",
    "peux-tu m'aider à",
    "peux-tu",
    "pouvez-vous",
    "pourrais-tu",
    "pourriez-vous",
    "est-ce que tu peux",
    "aide-moi à",
    "dis-moi",
    "hola",
    "buenos días",
    "por favor",
    "puedes ayudarme con",
    "puedes",
    "podrías",
    "puede",
    "ayúdame con",
    "ayúdame a",
    "dime",
    "olá",
    "oi",
    "bom dia",
    "você pode",
    "pode",
    "poderia",
    "me ajude com",
    "me ajude a",
    "me diga",
    "ciao",
    "salve",
    "buongiorno",
    "per favore",
    "puoi aiutarmi con",
    "puoi",
    "potresti",
    "aiutami con",
    "aiutami a",
    "dimmi",
];

/// "Hi!" is no sentence to be called by.
const SHORTEST_SENTENCE: usize = 8;

/// In bytes: a title comes from the beginning.
const LONGEST_LOOK: usize = 600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_the_first_words() {
        for (text, expected) in [
            ("Hi! Can you please explain how TLS works? I am new to it.", Some("Explain how TLS works?")),
            (
                "Kannst du mir erklären, wie ich einen Kuchen backe?",
                Some("Erklären, wie ich einen Kuchen backe?"),
            ),
            ("**Bold** title with `code` and https://example.org/x", Some("Bold title with code and")),
            ("```\nfn main() {}\n```\nWhy does this not compile?", Some("Why does this not compile?")),
            ("hello", Some("Hello")),
            ("Plan a trip. Three days.", Some("Plan a trip")),
            ("C++", Some("C++")),
            ("C# or snake_case?", Some("C# or snake_case?")),
            ("東京の天気を教えてください", Some("東京の天気を教えてください")),
            ("", None),
            ("!!! ???", None),
            ("👍", None),
            (
                "I would like to know everything there is to know about the history of the Roman empire and its fall",
                Some("I would like to know everything there is to know about the…"),
            ),
        ] {
            assert_eq!(title(text).as_deref(), expected, "{text}");
        }
        let long = title(&"x".repeat(500)).unwrap();
        assert_eq!(long.chars().count(), LONGEST_TITLE);
    }
}
