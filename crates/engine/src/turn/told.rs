//! What people tell the memory in words. Exact ones only: a question about forgetting is a question.
//!
//! Channels read the same words, since an event that is one of these has another life than a question. So they are read here,
//! and nowhere else: where two readers differ, something private is told in a room.

use crate::approval::Decision;

/// Something a person tells the memory, wherever they talk to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// `!forget`, `forget our conversation`.
    Forget,
    /// `!cancel`.
    Cancel,
    /// `approve CODE`, `deny CODE`; without a code it is the only one that waits, and a word like any other if none does.
    Decide(Decision, Option<String>),
}

impl Told {
    /// What these words tell, if that is something.
    #[must_use]
    pub fn read(words: &[&str]) -> Option<Self> {
        match words {
            ["!forget"] | ["forget", "our", "conversation"] => Some(Self::Forget),
            ["!cancel"] => Some(Self::Cancel),
            ["approve" | "!approve", code @ ..] => decided(Decision::Approve, code),
            ["deny" | "!deny", code @ ..] => decided(Decision::Deny, code),
            _ => None,
        }
    }
}

/// `approve` or `approve K7QM2A`: a code, or nothing, and no other word.
fn decided(decision: Decision, code: &[&str]) -> Option<Told> {
    let is_code = |word: &str| word.len() == 6 && word.chars().all(|c| c.is_ascii_alphanumeric());
    match code {
        [] => Some(Told::Decide(decision, None)),
        [code] if is_code(code) => Some(Told::Decide(decision, Some(code.to_uppercase()))),
        _ => None,
    }
}

/// The words of a text in small letters, without whom it addresses: "@bot forget our conversation", "please forget …".
#[must_use]
pub fn plain_words(lower: &str) -> Vec<&str> {
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
