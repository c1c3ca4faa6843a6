//! What of a session is read, and how much of it.
//!
//! A session may have any size and a card may not, so each kind of text has an allowance (`Source::allowance`), and what
//! does not fit is not read. Requests of the user come first in full; of answers and tool outputs the last
//! [`LAST_MESSAGES`] count before the first [`FIRST_MESSAGES`], and of a long text its two ends ([`HEAD`] and [`TAIL`]).
//! Reading ends at blanks only, so no word is cut. The summary comes last of all: it is the last word on the rest.
//! Where people talk to each other, what each of them says counts alike, and nobody asks or answers ([`Source::Talk`]).

use serde_json::{Map, Value};

use super::lines::{Statement, statements};
use super::small_talk::{MOVED, is_only_small_talk, longest};
use super::words::{PLACEHOLDER, words};

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// A tool's or a program's output.
    Output,
    /// Members that nobody told us about.
    Other,
    /// What the agent said on its way.
    Answer,
    /// What a person said to another one.
    Talk,
    /// What the user asked for.
    Request,
    /// What went wrong.
    Error,
    /// What the agent said last.
    Final,
    /// The agent's own summary.
    Summary,
}

impl Source {
    /// How many bytes of it are read in all.
    fn allowance(self) -> usize {
        match self {
            Self::Request | Self::Talk => 128 * 1024,
            Self::Answer | Self::Output => 64 * 1024,
            Self::Other | Self::Error | Self::Final | Self::Summary => 32 * 1024,
        }
    }
}

/// A text of the session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'s> {
    pub(super) source: Source,
    pub(super) text: &'s str,
}

/// All that a card is made of.
#[derive(Debug, Default)]
pub(super) struct Material<'s> {
    /// In the order of time; the summary last.
    pub(super) pieces: Vec<Piece<'s>>,
    pub(super) title: Option<&'s str>,
    pub(super) tool: Option<&'s str>,
    pub(super) tags: Vec<&'s str>,
    /// Open items of the last list of things to do.
    pub(super) todos: Vec<&'s str>,
    /// Whether the session says of itself that it failed.
    pub(super) failed: bool,
    spent: [usize; 8],
}

impl<'s> Material<'s> {
    /// Reads a redacted session.
    pub(super) fn of(session: &'s Value) -> Self {
        let mut material = Self::default();
        match session {
            Value::Object(members) => material.session(members),
            other => material.leaves(other, 0),
        }
        material
    }

    /// All that is said in it, in the order of time.
    pub(super) fn statements(&self) -> Vec<Statement> {
        self.pieces.iter().flat_map(|piece| statements(piece.text, piece.source)).collect()
    }

    fn session(&mut self, members: &'s Map<String, Value>) {
        let string =
            |name: &str| members.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        self.title = string("title");
        self.tool = string("tool_name").or_else(|| string("tool"));
        self.failed = members.get("success") == Some(&Value::Bool(false));
        if let Some(Value::Array(tags)) = members.get("tags") {
            self.tags = tags.iter().filter_map(Value::as_str).take(MOST_TAGS).collect();
        }
        if let Some(Value::Array(messages)) = members.get("messages") {
            self.messages(messages);
            if self.is_talk(messages) {
                self.pieces.iter_mut().for_each(|piece| piece.source = Source::Talk);
            }
        }
        for (name, value) in members {
            match name.as_str() {
                "messages" | "summary" | "error_message" | "title" | "tags" | "success" | "tool_name"
                | "tool" => {}
                "todos" => self.list(value),
                _ if lists_of_ids(name) => {}
                "output" => self.leaves(value, 0),
                _ => self.leaves(value, 1),
            }
        }
        if let Some(text) = string("error_message") {
            self.add(Source::Error, text);
        }
        match members.get("summary") {
            Some(Value::String(text)) => self.add(Source::Summary, text),
            Some(Value::Array(lines)) => {
                lines.iter().filter_map(Value::as_str).for_each(|text| self.add(Source::Summary, text));
            }
            _ => {}
        }
    }

    fn messages(&mut self, messages: &'s [Value]) {
        let end = messages.iter().rposition(|message| role(message) == Some(Source::Answer));
        let mut read: Vec<(usize, Vec<Piece<'s>>)> = Vec::new();
        let late = messages.len().saturating_sub(LAST_MESSAGES);
        let users = (0..late).filter(|at| role(&messages[*at]) == Some(Source::Request));
        let first = (0..late.min(FIRST_MESSAGES)).filter(|at| role(&messages[*at]) != Some(Source::Request));
        // In order of importance, which decides who gets the allowance.
        for at in (late..messages.len()).rev().chain(users).chain(first) {
            let Some(source) = role(&messages[at]) else { continue };
            let source = if Some(at) == end { Source::Final } else { source };
            let from = self.pieces.len();
            self.message(&messages[at], source);
            read.push((at, self.pieces.split_off(from)));
        }
        read.sort_by_key(|(at, _)| *at);
        self.pieces.extend(read.into_iter().flat_map(|(_, pieces)| pieces));
        // The last list of things to do is the one that counts.
        if let Some(list) = messages
            .iter()
            .rev()
            .take(FIRST_MESSAGES + LAST_MESSAGES)
            .find_map(|message| todo_list(message, 0))
        {
            self.list(list);
        }
    }

    /// Whether people talk to each other here, and nobody to an agent: their names stand beside what they say, or both
    /// sides speak of themselves, shortly, and write nothing that agents write.
    fn is_talk(&self, messages: &[Value]) -> bool {
        let said = |piece: &Piece<'_>| {
            matches!(piece.source, Source::Request | Source::Answer | Source::Final)
                && !WRITTEN.iter().any(|mark| piece.text.contains(mark))
        };
        if !self.pieces.iter().all(said) {
            return false;
        }
        let mut names: Vec<&str> = messages.iter().take(FIRST_MESSAGES).filter_map(speaker).collect();
        let hidden = names.len() > 1 && names.iter().all(|name| name.contains(PLACEHOLDER));
        names.sort_unstable();
        names.dedup();
        if hidden || names.len() > 1 {
            return true;
        }
        let is_answer = |piece: &&Piece<'_>| piece.source != Source::Request;
        let answers = self.pieces.iter().filter(is_answer);
        let bytes: usize = answers.clone().map(|piece| piece.text.len()).sum();
        let many = answers.clone().count();
        let answered: usize = answers.map(|piece| personal(piece.text)).sum();
        let requests = self.pieces.iter().filter(|piece| !is_answer(piece));
        let all = answered + requests.map(|piece| personal(piece.text)).sum::<usize>();
        self.pieces.len() >= LEAST_TALK
            && many * 3 >= self.pieces.len()
            && bytes <= many * LONGEST_TALK
            && answered > 0
            && all >= self.pieces.len()
    }

    fn message(&mut self, message: &'s Value, source: Source) {
        let failed = message.get("is_error") == Some(&Value::Bool(true));
        let source = if failed && source == Source::Output { Source::Error } else { source };
        for name in ["content", "text", "message"] {
            match message.get(name) {
                Some(Value::String(text)) => self.add(source, text),
                Some(Value::Array(blocks)) => blocks.iter().for_each(|block| self.block(block, source)),
                Some(nested @ Value::Object(_)) if name == "message" => self.message(nested, source),
                _ => {}
            }
        }
    }

    fn block(&mut self, block: &'s Value, source: Source) {
        match (block.get("type").and_then(Value::as_str), block) {
            (_, Value::String(text)) => self.add(source, text),
            (Some("tool_result" | "function_call_output"), _) => self.message(block, Source::Output),
            (Some("thinking" | "reasoning" | "tool_use" | "function_call"), _) => {}
            _ => {
                if let Some(text) = block.get("text").and_then(Value::as_str) {
                    self.add(source, text);
                }
            }
        }
    }

    /// Every string of a value that has no place of its own.
    fn leaves(&mut self, value: &'s Value, depth: usize) {
        match value {
            Value::String(text) => self.add(Source::Other, text),
            Value::Array(items) if depth < DEEPEST => {
                items.iter().take(MOST_LEAVES).for_each(|item| self.leaves(item, depth + 1))
            }
            Value::Object(members) if depth < DEEPEST => {
                for (name, value) in members.iter().take(MOST_LEAVES) {
                    if !lists_of_ids(name) {
                        self.leaves(value, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn list(&mut self, list: &'s Value) {
        let Value::Array(items) = list else { return };
        self.todos = items.iter().filter_map(open_item).take(MOST_TODOS).collect();
    }

    /// Takes a text, or its two ends, as far as the allowance goes.
    fn add(&mut self, source: Source, text: &'s str) {
        let left = source.allowance().saturating_sub(self.spent[source as usize]);
        let (head, tail) = ends(text, left);
        for text in [head, tail].into_iter().filter(|text| !text.trim().is_empty()) {
            self.spent[source as usize] += text.len();
            self.pieces.push(Piece { source, text });
        }
    }
}

/// What kind of text a message is; none for those that say nothing about the session.
fn role(message: &Value) -> Option<Source> {
    match role_name(message).unwrap_or_default() {
        "user" | "human" => Some(Source::Request),
        "assistant" | "agent" | "model" | "ai" | "gemini" => Some(Source::Answer),
        "tool" | "function" | "tool_result" => Some(Source::Output),
        _ => speaker(message).map(|_| Source::Request),
    }
}

fn role_name(message: &Value) -> Option<&str> {
    message.get("role").or_else(|| message.get("type")).and_then(Value::as_str)
}

/// The person who says it, by name: `{"speaker": "Ann", …}`, or `{"role": "Ann", …}`, since what programs call roles is in
/// small letters, as a rule.
fn speaker(message: &Value) -> Option<&str> {
    let role = role_name(message).unwrap_or_default();
    let is_one = |list: &[&str], name: &str| list.contains(&name.to_lowercase().as_str());
    if is_one(&["system", "developer", "tool", "function", "tool_result"], role) {
        return None;
    }
    let names: &[&str] = if is_one(&["user", "human", "assistant"], role) {
        &["speaker", "author", "sender", "from", "name"]
    } else {
        &["speaker", "author", "sender", "from"]
    };
    let named = names.iter().find_map(|name| message.get(*name)?.as_str());
    let is_name = |name: &&str| {
        let first = name.trim_start_matches('<').chars().next();
        name.len() <= LONGEST_SPEAKER
            && first.is_some_and(|first| first.is_alphabetic() && !first.is_lowercase())
            && !is_one(NO_NAMES, name)
    };
    named.filter(is_name).or_else(|| Some(role).filter(is_name))
}

/// How much a message sounds like a person who tells of themselves, is polite, asks back, or is moved.
fn personal(text: &str) -> usize {
    let own = |word: &&str| OWN_WORDS.contains(&word.to_lowercase().as_str());
    let tells =
        text.contains(['我', '私', '僕', '俺']) || is_only_small_talk(text) || words(text).iter().any(own);
    2 * usize::from(tells)
        + usize::from(text.contains(['?', '？']))
        + usize::from(longest(text, &MOVED).is_some())
}

/// The list of things to do that a message hands to a tool.
fn todo_list(value: &Value, depth: usize) -> Option<&Value> {
    match value {
        Value::Object(members) => {
            let own = members.get("todos").filter(|list| list.is_array());
            own.or_else(|| {
                members.values().filter(|_| depth < DEEPEST).find_map(|inner| todo_list(inner, depth + 1))
            })
        }
        Value::Array(items) if depth < DEEPEST => {
            items.iter().take(MOST_LEAVES).find_map(|item| todo_list(item, depth + 1))
        }
        _ => None,
    }
}

/// What an item of such a list says, unless it is done.
fn open_item(item: &Value) -> Option<&str> {
    if let Value::String(text) = item {
        return Some(text);
    }
    let over =
        ["done", "completed", "checked"].iter().any(|name| item.get(*name) == Some(&Value::Bool(true)));
    let status = ["status", "state"].iter().find_map(|name| item.get(*name)?.as_str()).unwrap_or_default();
    let gone = [
        "completed",
        "complete",
        "done",
        "cancelled",
        "canceled",
        "closed",
        "resolved",
        "deleted",
        "skipped",
    ]
    .iter()
    .any(|one| status.eq_ignore_ascii_case(one));
    let names = ["content", "text", "title", "subject", "task", "description", "name"];
    names.iter().find_map(|name| item.get(*name)?.as_str()).filter(|_| !over && !gone)
}

/// Ids and times tell a person nothing.
pub(crate) fn lists_of_ids(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("id")
        || name.ends_with("ids")
        || name.contains("timestamp")
        || name.ends_with("_at")
        || ["uuid", "hash", "sha256", "version", "schema_version", "model", "cwd", "status", "role", "type"]
            .contains(&name.as_str())
}

/// The whole of a text that fits, else its head and its tail, ended at blanks.
fn ends(text: &str, left: usize) -> (&str, &str) {
    if text.len() <= (HEAD + TAIL).min(left) {
        return (text, "");
    }
    let (head, tail) = (HEAD.min(left / 2), TAIL.min(left / 2));
    let head = floor(text, head);
    let head = text[..head].rfind(is_break).map_or("", |at| &text[..at]);
    let tail = &text[floor(text, text.len().saturating_sub(tail))..];
    let tail = tail.find(is_break).map_or("", |at| &tail[at..]);
    (head, tail)
}

/// Where a text may be parted: blanks, and the stops of scripts that have none.
fn is_break(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '。' | '，' | '、' | '！' | '？')
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// How many messages from the end are read.
const LAST_MESSAGES: usize = 120;
/// How many answers and outputs from the beginning are read.
const FIRST_MESSAGES: usize = 40;
/// Bytes of a long text's beginning.
const HEAD: usize = 6 * 1024;
/// Bytes of a long text's end.
const TAIL: usize = 6 * 1024;
/// Fewer messages are no talk, unless it is said whose they are.
const LEAST_TALK: usize = 6;
/// Bytes of a message in the mean.
const LONGEST_TALK: usize = 400;
const LONGEST_SPEAKER: usize = 80;
/// What programs call the two sides, in any case.
const NO_NAMES: &[&str] =
    &["user", "human", "assistant", "agent", "model", "ai", "bot", "message", "chatgpt", "gemini", "event"];
/// What agents write, and people do not say.
const WRITTEN: &[&str] = &["`", "](", "\n- ", "\n* ", "\n#", "\n1. ", "**"];
/// Words of people who speak of themselves, or of their own; agents say "I", too.
const OWN_WORDS: &[&str] = &[
    "my", "mine", "our", "ours", "myself", "mein", "meine", "meinen", "meiner", "meinem", "mich", "mir",
    "unser", "unsere", "mon", "ma", "mes", "moi", "notre", "nos", "mi", "mis", "nuestro", "nuestra", "meu",
    "minha", "nosso", "nossa", "min", "mitt", "mine", "meg", "vår", "vårt", "mig", "vores", "mio", "mia",
    "miei", "nostro", "nostra", "mijn", "ons", "onze", "мой", "моя", "моё", "мои", "мне", "меня", "нас",
    "нам", "наш", "наша",
];
const MOST_TAGS: usize = 32;
const MOST_TODOS: usize = 32;
const MOST_LEAVES: usize = 256;
const DEEPEST: usize = 6;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_bounded_and_in_order() {
        let word = "word ".repeat(5_000);
        let message = |at: usize| json!({ "role": if at.is_multiple_of(2) { "user" } else { "assistant" }, "content": format!("{at} {word}") });
        let session = json!({ "messages": (0..400).map(message).collect::<Vec<_>>(), "summary": "The end." });
        let material = Material::of(&session);
        let bytes: usize = material.pieces.iter().map(|piece| piece.text.len()).sum();
        assert!(bytes < 400 * 1024, "{bytes}");
        assert_eq!(
            material.pieces.last().map(|piece| (piece.source, piece.text)),
            Some((Source::Summary, "The end."))
        );
        let numbers: Vec<usize> =
            material.pieces.iter().filter_map(|piece| piece.text.split(' ').next()?.parse().ok()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
    }

    #[test]
    fn people_who_talk_to_each_other_are_told_from_people_with_agents() {
        let chat = |names: [&str; 2], lines: &[&str]| {
            let message = |(at, line): (usize, &&str)| json!({ "role": names[at % 2], "content": line });
            json!({ "messages": lines.iter().enumerate().map(message).collect::<Vec<_>>() })
        };
        let talks = |session: &Value| {
            let material = Material::of(session);
            !material.pieces.is_empty() && material.pieces.iter().all(|piece| piece.source == Source::Talk)
        };
        let lines = [
            "Hey Mel! Good to see you!",
            "Hi! How have you been?",
            "We moved to a flat by the river in May.",
            "Wow, my sister lives there, too!",
            "Then we must meet there.",
            "Yes, our daughters could play.",
        ];
        assert!(talks(&chat(["user", "assistant"], &lines)));
        assert!(talks(&chat(["Mel", "Ann"], &lines[2..4])));
        assert!(talks(&json!({ "messages": [
            { "speaker": "<REDACTED:NAME>", "text": "We moved." }, { "speaker": "<REDACTED:NAME>", "text": "Where to?" },
        ] })));
        let agent = [
            "Why does the login fail?",
            "The token is checked too early.",
            "Fix it, and run the tests.",
            "I moved the check. All tests pass.",
            "Add a test for it.",
            "I added a test for the order of checks.",
        ];
        assert!(!talks(&chat(["user", "assistant"], &agent)));
        assert!(!talks(&chat(["user", "assistant"], &lines[..4])));
        let mut with_code = lines.to_vec();
        with_code.push("My tests say `panicked at src/main.rs`");
        assert!(!talks(&chat(["user", "assistant"], &with_code)));
        assert!(!talks(&chat(["system", "event"], &lines)));
    }

    #[test]
    fn only_open_items_of_the_last_list_count() {
        let session = json!({ "messages": [
            { "role": "assistant", "content": [{ "type": "tool_use", "name": "todo", "input": { "todos": [{ "content": "old", "status": "pending" }] } }] },
            { "role": "assistant", "tool": { "input": { "todos": [
                { "content": "done", "status": "completed" },
                { "content": "left", "status": "in_progress" },
                "plain",
                { "text": "ticked", "done": true },
            ] } } },
        ] });
        assert_eq!(Material::of(&session).todos, ["left", "plain"]);
    }
}
