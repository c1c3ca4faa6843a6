//! The built-in answerer: it quotes what was said and writes nothing of its own.
//!
//! The embedded default, so that a first run works without a network and tests give the same answer every time. It
//! leaves understanding to real models and says so in every answer. What is easy to get wrong: its own former answers
//! are in the history and in the room, and quoting those would make an echo that grows with every turn.

mod evidence;
mod lists;
mod names;
mod question;
mod text;

use async_trait::async_trait;

use super::{Answer, BlockLine, Deltas, Model, ModelError, Prompt, Role, Sampling, Voice};
use evidence::{Quote, Saying, Source};
use question::{Intent, Question};

/// A model that needs none: it answers with quotes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extractive;

impl Extractive {
    /// The answerer; it holds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl Model for Extractive {
    fn name(&self) -> &str {
        NAME
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        let text = answer(prompt);
        text.split_inclusive(' ').for_each(deltas);
        Ok(Answer { text, calls: Vec::new(), model: NAME.to_owned(), usage: None })
    }

    fn refuses(&self, sampling: &Sampling) -> Option<&'static str> {
        let stop = (!sampling.stop.is_empty()).then_some("stop");
        let format = sampling.format.as_ref().map(|_| "response_format");
        // It would say the same each time.
        let choices = sampling.choices.is_some_and(|choices| choices > 1).then_some("n");
        stop.or_else(|| sampling.penalty()).or(format).or(choices)
    }

    fn calls_tools(&self) -> bool {
        false
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

fn answer(prompt: &Prompt) -> String {
    match question::intent(&prompt.query) {
        Intent::Nothing => format!("That message holds no words. {NOTE}"),
        Intent::Greeting => format!("Hello! Ask me about what was said here. {NOTE}"),
        Intent::Thanks => format!("You are welcome. {NOTE}"),
        Intent::Telling => format!("Noted. I can quote it when you ask. {NOTE}"),
        Intent::AboutAgent => {
            format!("I am the built-in answerer: I find what was said and quote it. {NOTE}")
        }
        Intent::Asking(question) => quoted(prompt, &question),
    }
}

fn quoted(prompt: &Prompt, question: &Question) -> String {
    let sayings = sayings(prompt);
    let quotes = evidence::find(&sayings, question);
    let list = |wanted: fn(&Source<'_>) -> bool| -> Option<String> {
        let told: Vec<String> = quotes.iter().filter(|quote| wanted(&quote.source)).map(told).collect();
        (!told.is_empty()).then(|| told.join("; "))
    };
    let parts = [
        ("You said", list(|source| *source == Source::Asker)),
        ("From the room", list(|source| matches!(source, Source::Other(_)))),
        ("I said", list(|source| *source == Source::Agent)),
    ];
    let lines: Vec<String> =
        parts.into_iter().filter_map(|(who, list)| Some(format!("{who}: {}", list?))).collect();
    if lines.is_empty() {
        return format!("{NOTHING} {NOTE}");
    }
    format!("{}\n{QUOTES_NOTE}", lines.join("\n"))
}

/// Everything that was said and may be quoted, oldest first: room, history, and the message itself.
fn sayings(prompt: &Prompt) -> Vec<Saying<'_>> {
    let mut sayings = Vec::new();
    // What nobody said, such as a concept in scope, is no evidence of anything.
    let said = |line: &&BlockLine| !line.speaker.is_empty();
    for line in prompt.blocks.iter().flat_map(|block| &block.lines).filter(said) {
        match line.voice {
            Voice::Asker => evidence::add(&mut sayings, Source::Asker, &line.text),
            Voice::Other => evidence::add(&mut sayings, Source::Other(&line.speaker), &line.text),
            Voice::Agent if is_own_answer(&line.text) => {}
            Voice::Agent => evidence::add(&mut sayings, Source::Agent, &line.text),
        }
    }
    for message in &prompt.history {
        match message.role {
            Role::Human => evidence::add(&mut sayings, Source::Asker, &message.text),
            Role::Ai if is_own_answer(&message.text) => {}
            Role::Ai => evidence::add(&mut sayings, Source::Agent, &message.text),
        }
    }
    // "I'm Alice. What is my name?"
    let told = sayings.len();
    evidence::add(&mut sayings, Source::Asker, &prompt.query);
    let mut at = 0;
    sayings.retain(|saying| {
        at += 1;
        at <= told || !saying.asks()
    });
    sayings
}

/// Whether this answerer wrote a text, however much of its end is missing.
fn is_own_answer(text: &str) -> bool {
    OWN_OPENINGS.iter().any(|opening| text.starts_with(opening)) || text.contains(MARK)
}

fn told(quote: &Quote<'_>) -> String {
    let text = shortened(quote.text, quote.focus).replace('"', "'");
    match quote.source {
        Source::Other(speaker) => format!("{speaker}: \"{text}\""),
        Source::Asker | Source::Agent => format!("\"{text}\""),
    }
}

/// At most [`LONGEST_QUOTE`] characters around `focus`.
fn shortened(text: &str, focus: usize) -> String {
    if text.len() <= LONGEST_QUOTE {
        return text.to_owned();
    }
    let from =
        if focus <= LONGEST_QUOTE / 2 { 0 } else { text.floor_char_boundary(focus - LONGEST_QUOTE / 4) };
    let rest = &text[from..];
    let Some((end, _)) = rest.char_indices().nth(LONGEST_QUOTE) else {
        return if from == 0 { text.to_owned() } else { format!("…{rest}") };
    };
    let head = if from == 0 { "" } else { "…" };
    format!("{head}{}…", rest[..end].trim_end())
}

const NAME: &str = "builtin-extractive";
const MARK: &str = "(Extractive answer";
const NOTE: &str = "(Extractive answer: no language model is configured.)";
const QUOTES_NOTE: &str = "(Extractive answer: these are quotes; no language model is configured.)";
const NOTHING: &str = "I found nothing in this room or in our conversation that answers that.";
const OWN_OPENINGS: &[&str] =
    &["You said: \"", "From the room: ", "I said: \"", NOTHING, "Noted. I can quote it"];

/// In characters; long enough for a sentence, short enough for three.
const LONGEST_QUOTE: usize = 300;

#[cfg(test)]
mod tests;
