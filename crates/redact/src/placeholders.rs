//! What stands where something was.
//!
//! `<REDACTED:EMAIL>`, or `<REDACTED:EMAIL:2>` when numbers are asked for: the same value has the same number
//! throughout a document, so that a reader can still tell one address from another. A scan leaves placeholders alone,
//! which is what makes redacting twice the same as redacting once.

use std::collections::HashMap;
use std::ops::Range;

/// Whether placeholders are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Numbering {
    /// `<REDACTED:EMAIL>`.
    #[default]
    None,
    /// `<REDACTED:EMAIL:2>`: the same value, the same number, within a document.
    PerDocument,
}

/// The numbers given out in one document.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    numbers: HashMap<&'static str, HashMap<String, usize>>,
}

impl Placeholders {
    pub(crate) fn placeholder(&mut self, numbering: Numbering, label: &'static str, value: &str) -> String {
        match numbering {
            Numbering::None => format!("{START}{label}>"),
            Numbering::PerDocument => {
                let values = self.numbers.entry(label).or_default();
                let next = values.len() + 1;
                let number = *values.entry(value.to_owned()).or_insert(next);
                format!("{START}{label}:{number}>")
            }
        }
    }
}

/// Where placeholders are in a text.
pub(crate) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(START).map(|offset| at + offset) {
        at = start + START.len();
        let rest = &text.as_bytes()[at..];
        let label = rest.iter().take(LONGEST).take_while(|b| b.is_ascii_uppercase() || **b == b'_').count();
        let number = match rest.get(label) {
            Some(b':') => {
                1 + rest[label + 1..].iter().take(LONGEST).take_while(|b| b.is_ascii_digit()).count()
            }
            _ => 0,
        };
        if label > 0 && number != 1 && rest.get(label + number) == Some(&b'>') {
            at += label + number + 1;
            found.push(start..at);
        }
    }
    found
}

const START: &str = "<REDACTED:";
const LONGEST: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_has_the_same_number() {
        let mut placeholders = Placeholders::default();
        let mut next = |label, value| placeholders.placeholder(Numbering::PerDocument, label, value);
        assert_eq!(next("EMAIL", "a"), "<REDACTED:EMAIL:1>");
        assert_eq!(next("EMAIL", "b"), "<REDACTED:EMAIL:2>");
        assert_eq!(next("EMAIL", "a"), "<REDACTED:EMAIL:1>");
        assert_eq!(next("PHONE", "a"), "<REDACTED:PHONE:1>");
    }

    #[test]
    fn placeholders_are_found_and_nothing_else() {
        let text = "<REDACTED:EMAIL> <REDACTED:A_B:12> <REDACTED:> <REDACTED:A:> <REDACTED:a> <REDACTED:X";
        assert_eq!(find(text), [0..16, 17..34]);
    }
}
