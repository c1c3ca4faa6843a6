//! The user's own words: what is always replaced, and what never is.

use aho_corasick::{AhoCorasick, MatchKind};

use crate::OpenError;
use crate::finding::{Hit, Tier};
use crate::rules::TERM;

/// Words to replace always and values to leave alone, compared without regard to case.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    always: Option<AhoCorasick>,
    never: Vec<String>,
}

impl Dictionary {
    pub(crate) fn open(always: &[String], never: &[String]) -> Result<Self, OpenError> {
        let words: Vec<&str> =
            always.iter().map(|word| word.trim()).filter(|word| !word.is_empty()).collect();
        let always = if words.is_empty() {
            None
        } else {
            let automaton = AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostLongest)
                .build(words)
                .map_err(|_| OpenError::TooManyWords)?;
            Some(automaton)
        };
        Ok(Self { always, never: never.iter().map(|word| word.trim().to_lowercase()).collect() })
    }

    /// Whole words of the list.
    pub(crate) fn scan(&self, text: &[u8], hits: &mut Vec<Hit>) {
        let Some(always) = &self.always else { return };
        let word = |at: Option<&u8>| at.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
        for found in always.find_iter(text) {
            let before = found.start().checked_sub(1).and_then(|at| text.get(at));
            let inside = |at: usize, next: Option<&u8>| word(text.get(at)) && word(next);
            if !inside(found.start(), before) && !inside(found.end() - 1, text.get(found.end())) {
                hits.push(Hit { start: found.start(), end: found.end(), rule: TERM });
            }
        }
    }

    /// Whether a find is on the list of what to leave alone. What is critical never is.
    pub(crate) fn spares(&self, hit: &Hit, text: &str) -> bool {
        !self.never.is_empty()
            && hit.rule.tier == Tier::Noncritical
            && text.get(hit.start..hit.end).is_some_and(|value| self.never.contains(&value.to_lowercase()))
    }
}
