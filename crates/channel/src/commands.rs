//! What people tell the agent instead of asking it. Exact words only: a question about a command is a question.

use confidant_engine::turn::{SpokenCommand, read_command};

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// The engine's to obey; known here because an event that is one has another life than a question.
    Spoken(SpokenCommand),
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
        matches!(self, Self::Help | Self::Privacy | Self::Spoken(SpokenCommand::Cancel))
    }

    /// What the engine is told, if it is the engine's to obey.
    pub(crate) fn spoken(&self) -> Option<&SpokenCommand> {
        match self {
            Self::Spoken(spoken) => Some(spoken),
            Self::Export | Self::Privacy | Self::Help => None,
        }
    }
}

/// The command that a text is, if it is one.
pub(crate) fn parse(text: &str) -> Option<Command> {
    read_command(text, |words| match words {
        ["!export"] => Some(Command::Export),
        ["!privacy"] => Some(Command::Privacy),
        ["!help"] => Some(Command::Help),
        words => SpokenCommand::of_words(words).map(Command::Spoken),
    })
}

/// What `!help` says.
pub(crate) const HELP: &str = "\
Talk to me, and I answer. I remember what you and I said here, and use it only for you.

- `forget our conversation` or `!forget`: I erase what I remember about us here. This cannot be undone.
- `!export`: I send you what I remember about you, in private.
- `!privacy`: what I keep, and who can read it.
- `!cancel`: I stop what I am doing for you.
- `!share-private on` or `off`, in private: whether I may recall in rooms what you told me in private.
- `approve CODE` or `deny CODE`: your answer when I ask before I do something.

If you edit or delete a message of yours, my memory of it changes too.";

/// What `!privacy` says.
pub(crate) const PRIVACY: &str = "\
What I keep: your messages to me and my answers to you, encrypted, each conversation under a key of its own. I do not use \
it to answer anybody else.
What I do not keep: what others say in this room. I read the last messages when you ask me something, but I do not store them.
I do not recall in a room what you tell me in private, unless you allow it with `!share-private on`.
Who could read it: you (`!export`), and the people who run me, since my keys are on their machine. The text of a question and what \
I recall for it go to the language model that they chose.
How to delete it: `!forget` destroys the key of our conversation; deleting a message of yours removes it from my memory.";

#[cfg(test)]
mod tests {
    use confidant_engine::approval::Decision;

    use super::*;

    #[test]
    fn only_the_exact_words_are_commands() {
        for (text, command) in [
            ("!forget", Command::Spoken(SpokenCommand::Forget)),
            ("@bot forget our conversation.", Command::Spoken(SpokenCommand::Forget)),
            ("please !export", Command::Export),
            ("!PRIVACY", Command::Privacy),
            ("!help!", Command::Help),
            ("!cancel", Command::Spoken(SpokenCommand::Cancel)),
            (
                "Approve k7qm2a",
                Command::Spoken(SpokenCommand::Decide(Decision::Approve, Some("K7QM2A".to_owned()))),
            ),
            (
                "!deny K7QM2A.",
                Command::Spoken(SpokenCommand::Decide(Decision::Deny, Some("K7QM2A".to_owned()))),
            ),
            ("@bot approve!", Command::Spoken(SpokenCommand::Decide(Decision::Approve, None))),
            ("deny", Command::Spoken(SpokenCommand::Decide(Decision::Deny, None))),
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
