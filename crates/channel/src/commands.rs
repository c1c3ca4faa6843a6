//! What people tell the agent instead of asking it. Exact words only: a question about a command is a question.
//!
//! Forgetting, sharing, cancelling and deciding are the engine's to obey; they are known here because an event that is one
//! has another life than a question.

use confidant_engine::Decision;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `!forget`, `forget our conversation`.
    Forget,
    /// `!export`.
    Export,
    /// `!privacy`.
    Privacy,
    /// `!help`.
    Help,
    /// `!cancel`.
    Cancel,
    /// `approve CODE`, `deny CODE`; without a code it is one of their own, if one waits, and a word like any other if not.
    Decide(Decision, Option<String>),
}

impl Command {
    /// Whether it must not wait for what was said before it.
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(self, Self::Help | Self::Privacy | Self::Cancel)
    }
}

/// The command that a text is, if it is one.
#[must_use]
pub fn parse(text: &str) -> Option<Command> {
    let lower = text.to_lowercase();
    let mut words: Vec<&str> = lower
        .split(|c: char| c.is_whitespace() || c == ',')
        .map(|word| word.trim_end_matches(['.', '!', '?', ':']))
        .filter(|word| !word.is_empty())
        .collect();
    while words.len() > 1 && (words[0].starts_with('@') || words[0] == "please") {
        words.remove(0);
    }
    match words.as_slice() {
        ["!forget"] | ["forget", "our", "conversation"] => Some(Command::Forget),
        ["!export"] => Some(Command::Export),
        ["!privacy"] => Some(Command::Privacy),
        ["!help"] => Some(Command::Help),
        ["!cancel"] => Some(Command::Cancel),
        ["approve" | "!approve", code @ ..] => decide(Decision::Approve, code),
        ["deny" | "!deny", code @ ..] => decide(Decision::Deny, code),
        _ => None,
    }
}

/// A code, or nothing, and no other word.
fn decide(decision: Decision, code: &[&str]) -> Option<Command> {
    let is_code = |word: &str| word.len() == 6 && word.chars().all(|c| c.is_ascii_alphanumeric());
    match code {
        [] => Some(Command::Decide(decision, None)),
        [code] if is_code(code) => Some(Command::Decide(decision, Some(code.to_uppercase()))),
        _ => None,
    }
}

/// What `!help` says.
pub(crate) const HELP: &str = "\
Talk to me, and I answer. I remember what you and I said here, for you alone.

- `forget our conversation` or `!forget`: I erase what I remember of us here. It cannot be undone.
- `!export`: I send you what I remember of you, in private.
- `!privacy`: what I keep, and who can read it.
- `!cancel`: I stop what I am doing for you.
- `!share-private on` or `off`, in private: whether I may recall in rooms what you told me in private.
- `approve CODE` or `deny CODE`: when I ask before doing something.

Edit or delete a message of yours, and I change my memory of it, too.";

/// What `!privacy` says.
pub(crate) const PRIVACY: &str = "\
What I keep: your messages to me and my answers to you, encrypted, each conversation under a key of its own. Nobody else's \
questions are answered from it.
What I do not keep: what others say in this room. I read the last lines when you ask me something, and keep none of them.
What you tell me in private I do not recall in a room, unless you switch that on.
Who could read it: you (`!export`), and whoever runs me, since my keys are on their machine. The text of a question and what \
I recall for it go to the language model that they chose.
How to end it: `!forget` destroys the key of our conversation; deleting a message of yours removes it from my memory.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_words_are_commands() {
        for (text, command) in [
            ("!forget", Command::Forget),
            ("@bot forget our conversation.", Command::Forget),
            ("please !export", Command::Export),
            ("!PRIVACY", Command::Privacy),
            ("!help!", Command::Help),
            ("!cancel", Command::Cancel),
            ("Approve k7qm2a", Command::Decide(Decision::Approve, Some("K7QM2A".to_owned()))),
            ("!deny K7QM2A.", Command::Decide(Decision::Deny, Some("K7QM2A".to_owned()))),
            ("@bot approve!", Command::Decide(Decision::Approve, None)),
            ("deny", Command::Decide(Decision::Deny, None)),
        ] {
            assert_eq!(parse(text), Some(command), "{text}");
        }
        for text in [
            "help",
            "what does !help do?",
            "!forget me not",
            "approve it",
            "deny the claim",
            "approve K7QM2A now",
            "",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
