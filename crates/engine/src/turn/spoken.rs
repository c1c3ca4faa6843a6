//! What people tell the memory in words. Exact ones only: a question about forgetting is a question.
//!
//! Channels read the same words, since an event that is one of these has another life than a question. So they are read here,
//! and nowhere else, and a channel that has read them hands on what they tell ([`Spoken`]): where two readers differ,
//! something private is told in a room.

use crate::about::FocusChange;
use crate::approval::Decision;
use crate::audience::Sharing;

/// Whether a query was read for a command already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Spoken {
    /// Not yet.
    #[default]
    Unread,
    /// It was, and this is what it tells the memory, if anything.
    Read(Option<SpokenCommand>),
}

impl Spoken {
    /// What the query tells the memory; read now, unless it was.
    pub(super) fn command(self, query: &str) -> Option<SpokenCommand> {
        match self {
            Self::Unread => SpokenCommand::read(query),
            Self::Read(command) => command,
        }
    }
}

/// Something a person tells the memory, wherever they talk to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpokenCommand {
    /// `!forget`, `forget our conversation`.
    Forget,
    /// `!cancel`.
    Cancel,
    /// `approve CODE`, `deny CODE`; without a code it is the only one that waits, and a word like any other if none does.
    Decide(Decision, Option<String>),
    /// `!share-private on`, `!share-private off`.
    Share(Sharing),
    /// `!focus ID`, `!focus off`.
    Focus(FocusChange),
}

impl SpokenCommand {
    /// What these words tell, if that is something; [`read_command`] finds them.
    #[must_use]
    pub fn of_words(words: &[&str]) -> Option<Self> {
        match words {
            ["!forget"] | ["forget", "our", "conversation"] => Some(Self::Forget),
            ["!cancel"] => Some(Self::Cancel),
            ["approve" | "!approve", code @ ..] => decided(Decision::Approve, code),
            ["deny" | "!deny", code @ ..] => decided(Decision::Deny, code),
            ["!focus", "off"] => Some(Self::Focus(FocusChange::Off)),
            ["!focus", id] => Some(Self::Focus(FocusChange::On((*id).to_owned()))),
            ["!share-private", "on"] => Some(Self::Share(Sharing::PrivateInRooms)),
            ["!share-private", "off"] => Some(Self::Share(Sharing::KeepPrivate)),
            _ => None,
        }
    }

    pub(super) fn read(query: &str) -> Option<Self> {
        read_command(query, Self::of_words)
    }
}

/// `approve` or `approve K7QM2A`: a code, or nothing, and no other word.
fn decided(decision: Decision, code: &[&str]) -> Option<SpokenCommand> {
    let is_code = |word: &str| word.len() == 6 && word.chars().all(|c| c.is_ascii_alphanumeric());
    match code {
        [] => Some(SpokenCommand::Decide(decision, None)),
        [code] if is_code(code) => Some(SpokenCommand::Decide(decision, Some(code.to_uppercase()))),
        _ => None,
    }
}

/// Reads a text for a command by its words: in small letters, without whom it addresses. A long text is not a command.
pub fn read_command<C>(text: &str, of_words: impl FnOnce(&[&str]) -> Option<C>) -> Option<C> {
    // Nobody says so much with a command, and turns are looked at one after the other.
    if text.len() > LONGEST_COMMAND {
        return None;
    }
    of_words(&plain_words(&text.to_lowercase()))
}

/// The words of a text in small letters, without whom it addresses: "@bot forget our conversation", "please forget …".
fn plain_words(lower: &str) -> Vec<&str> {
    let mut words: Vec<&str> = lower
        .split(|c: char| c.is_whitespace() || c == ',')
        .map(|word| word.trim_end_matches(['.', '!', '?', ':']))
        .filter(|word| !word.is_empty())
        .collect();
    while words.len() > 1 && (words[0].starts_with('@') || words[0] == "please") {
        words.remove(0);
    }
    words
}

const LONGEST_COMMAND: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_words_are_commands() {
        for query in [
            "!forget",
            "forget our conversation",
            "@bot forget our conversation.",
            "Please forget our conversation!",
            "@bot:matrix.org: !forget",
        ] {
            assert_eq!(SpokenCommand::read(query), Some(SpokenCommand::Forget), "{query}");
        }
        for query in [
            "do not forget our conversation",
            "did you forget our conversation",
            "forget it",
            "what does !forget do?",
            "!forget me not",
        ] {
            assert_eq!(SpokenCommand::read(query), None, "{query}");
        }
        let shares = SpokenCommand::Share(Sharing::PrivateInRooms);
        assert_eq!(SpokenCommand::read("!share-private on"), Some(shares));
    }

    #[test]
    fn a_query_is_read_once() {
        let query = "!cancel";
        assert_eq!(Spoken::Unread.command(query), Some(SpokenCommand::Cancel));
        assert_eq!(Spoken::Read(None).command(query), None);
        assert_eq!(Spoken::Read(Some(SpokenCommand::Forget)).command(query), Some(SpokenCommand::Forget));
    }

    #[test]
    fn a_long_text_is_not_a_command() {
        let addressed = |times: usize| format!("{}!forget", "@bot ".repeat(times));
        assert_eq!(SpokenCommand::read(&addressed(200)), Some(SpokenCommand::Forget));
        assert_eq!(SpokenCommand::read(&addressed(300)), None);
    }
}
