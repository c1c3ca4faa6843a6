//! Makes the cards of our own sessions and scores them, beside cards that were saved before.
//!
//! `bench/cards.sh [--save FILE] [--beside FILE]` prints Markdown: a table of both, and each session's cards side by side.
//! `README.md` beside this file has the rubric that people judge by; what is counted here is only what a program can see.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use confidant_memory::{Card, Gate};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A session, and what its card should have.
struct Session {
    /// `agent` or `people`.
    kind: String,
    language: String,
    /// One of these words is in a good title.
    about: Vec<String>,
    /// What a good card keeps.
    facts: Vec<String>,
    value: Value,
}

#[expect(clippy::print_stderr, reason = "errors of a command")]
fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cards: {error}\nhint: [--sessions FILE] [--save FILE] [--beside FILE]");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let (mut sessions, mut save, mut beside) = (PathBuf::from("bench/cards/sessions.txt"), None, None);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--sessions" => sessions = value.into(),
            "--save" => save = Some(PathBuf::from(value)),
            "--beside" => beside = Some(PathBuf::from(value)),
            _ => return Err(format!("unknown argument {argument}").into()),
        }
    }
    let sessions = read(&std::fs::read_to_string(sessions)?);
    let gate = Gate::new(confidant_redact::Options::default())?;
    let cards: Vec<Card> =
        sessions.iter().map(|session| Card::derive(&gate.pass(&session.value).redacted)).collect();
    if let Some(path) = save {
        let lines: Vec<String> =
            cards.iter().map(serde_json::to_string).collect::<std::result::Result<_, _>>()?;
        std::fs::write(path, lines.join("\n"))?;
    }
    let before = beside.as_deref().map(saved).transpose()?.unwrap_or_default();
    print(&table(&sessions, &before, &cards));
    for (at, session) in sessions.iter().enumerate() {
        print(&side_by_side(at, session, before.get(at), &cards[at]));
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "it prints a table")]
fn print(text: &str) {
    println!("{text}");
}

fn saved(path: &Path) -> Result<Vec<Card>> {
    Ok(std::fs::read_to_string(path)?
        .lines()
        .map(serde_json::from_str)
        .collect::<std::result::Result<_, _>>()?)
}

/// Sessions, parted by empty lines: `# kind language`, `about:`, `facts:`, and a line for each message.
fn read(text: &str) -> Vec<Session> {
    let texts = text.split("\n\n").filter(|text| !text.trim().is_empty());
    texts.enumerate().map(|(at, text)| session(text, at)).collect()
}

fn session(text: &str, at: usize) -> Session {
    let list = |text: &str, parts: char| text.split(parts).map(|part| part.trim().to_owned()).collect();
    let mut session = Session {
        kind: String::new(),
        language: String::new(),
        about: Vec::new(),
        facts: Vec::new(),
        value: json!({ "messages": [] }),
    };
    let mut first: Option<&str> = None;
    let mut messages = Vec::new();
    for line in text.trim().lines() {
        if let Some(head) = line.strip_prefix("# ") {
            let (kind, language) = head.split_once(' ').unwrap_or((head, "en"));
            (session.kind, session.language) = (kind.to_owned(), language.to_owned());
            continue;
        }
        let Some((name, said)) = line.split_once(": ").or_else(|| line.split_once('：')) else { continue };
        let said = said.trim().replace("\\n", "\n");
        match name {
            "about" => session.about = list(&said, ','),
            "facts" => session.facts = list(&said, ';'),
            "summary" => session.value["summary"] = said.into(),
            "user" | "tool" => messages.push(json!({ "role": name, "content": said })),
            "agent" => messages.push(json!({ "role": "assistant", "content": said })),
            // Every other talk comes as if one of the two were an agent, which is how many programs keep it.
            _ if at % 2 == 1 => {
                let role = if *first.get_or_insert(name) == name { "user" } else { "assistant" };
                messages.push(json!({ "role": role, "content": said }));
            }
            _ => messages.push(json!({ "speaker": name, "text": said })),
        }
    }
    session.value["messages"] = Value::Array(messages);
    session
}

/// Whether the title says what the session is about, and which share of the facts the card has.
fn score(session: &Session, card: &Card) -> (bool, usize) {
    let title = card.title.to_lowercase();
    let lists = [&card.summary_bullets, &card.decisions, &card.todos, &card.entities, &card.notable_quotes];
    let all: Vec<String> =
        lists.into_iter().flatten().chain([&card.title]).map(|text| text.to_lowercase()).collect();
    let kept = session.facts.iter().filter(|fact| {
        let fact = fact.to_lowercase();
        all.iter().any(|text| text.contains(&fact))
    });
    (session.about.iter().any(|word| title.contains(&word.to_lowercase())), kept.count())
}

fn table(sessions: &[Session], before: &[Card], after: &[Card]) -> String {
    let mut table =
        String::from("| sessions | cards | titles that name the subject | facts kept |\n|---|---|---:|---:|");
    for kind in ["agent", "people"] {
        for (when, cards) in [("before", before), ("after", after)] {
            let (mut all, mut titles, mut facts, mut kept) = (0, 0, 0, 0);
            for (session, card) in sessions.iter().zip(cards).filter(|(session, _)| session.kind == kind) {
                let (title, found) = score(session, card);
                all += 1;
                titles += usize::from(title);
                facts += session.facts.len();
                kept += found;
            }
            if all > 0 {
                table.push_str(&format!(
                    "\n| {all} {kind} | {when} | {titles} of {all} | {kept} of {facts} |"
                ));
            }
        }
    }
    table
}

fn side_by_side(at: usize, session: &Session, before: Option<&Card>, after: &Card) -> String {
    let cell = |items: &[String]| items.join("<br>").replace('|', "\\|");
    let empty = Card::default();
    let before = before.unwrap_or(&empty);
    let mut text = format!(
        "\n### {} {} {}\n\n| | before | after |\n|---|---|---|",
        at + 1,
        session.kind,
        session.language
    );
    let rows = [
        ("title", std::slice::from_ref(&before.title), std::slice::from_ref(&after.title)),
        ("bullets", &before.summary_bullets[..], &after.summary_bullets[..]),
        ("decisions", &before.decisions[..], &after.decisions[..]),
        ("todos", &before.todos[..], &after.todos[..]),
        ("entities", &before.entities[..], &after.entities[..]),
    ];
    for (name, before, after) in rows {
        text.push_str(&format!("\n| {name} | {} | {} |", cell(before), cell(after)));
    }
    text
}
