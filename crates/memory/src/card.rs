//! The card: what is worth remembering of a session.

use serde::{Deserialize, Serialize};

use crate::gate::Redacted;

/// The sanitised essence of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Card {
    /// One line that tells this session from others.
    pub title: String,
    /// What happened.
    pub summary_bullets: Vec<String>,
    /// What was decided.
    pub decisions: Vec<String>,
    /// What is left to do.
    pub todos: Vec<String>,
    /// Files, symbols, packages, services, error codes.
    pub entities: Vec<String>,
    /// What it is about, most telling first.
    pub keywords: Vec<String>,
    /// Errors and words worth quoting.
    pub notable_quotes: Vec<String>,
}

impl Card {
    /// Derives a card by rules: the same redacted session always gives the same card.
    #[must_use]
    pub fn derive(session: &Redacted) -> Self {
        let _ = session;
        Self::default()
    }
}
