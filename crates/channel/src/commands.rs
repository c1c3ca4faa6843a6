//! What people tell the agent instead of asking it. Exact words only: a question about a command is a question.

use confidant_engine::{Told, plain_words};

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The engine's to obey; known here because an event that is one has another life than a question.
    Told(Told),
    /// `!export`.
    Export,
    /// `!privacy`.
    Privacy,
    /// `!help`.
    Help,
}

impl Command {
    /// Whether it must not wait for what was said before it.
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(self, Self::Help | Self::Privacy | Self::Told(Told::Cancel))
    }
}

/// The command that a text is, if it is one.
#[must_use]
pub fn parse(text: &str) -> Option<Command> {
    let lower = text.to_lowercase();
    match plain_words(&lower).as_slice() {
        ["!export"] => Some(Command::Export),
        ["!privacy"] => Some(Command::Privacy),
        ["!help"] => Some(Command::Help),
        words => Told::read(words).map(Command::Told),
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
    use confidant_engine::Decision;

    use super::*;

    #[test]
    fn only_the_exact_words_are_commands() {
        for (text, command) in [
            ("!forget", Command::Told(Told::Forget)),
            ("@bot forget our conversation.", Command::Told(Told::Forget)),
            ("please !export", Command::Export),
            ("!PRIVACY", Command::Privacy),
            ("!help!", Command::Help),
            ("!cancel", Command::Told(Told::Cancel)),
            ("Approve k7qm2a", Command::Told(Told::Decide(Decision::Approve, Some("K7QM2A".to_owned())))),
            ("!deny K7QM2A.", Command::Told(Told::Decide(Decision::Deny, Some("K7QM2A".to_owned())))),
            ("@bot approve!", Command::Told(Told::Decide(Decision::Approve, None))),
            ("deny", Command::Told(Told::Decide(Decision::Deny, None))),
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
