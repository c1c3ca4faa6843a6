//! Reading one line of a data file into a pattern whose words have no numbers yet.

use std::collections::HashMap;

use super::super::text::folded_words;
use super::{START, start};

/// A rule before its words have numbers.
pub(super) struct Draft {
    pub(super) section: usize,
    pub(super) score: f32,
    pub(super) firm: bool,
    pub(super) elements: Vec<DraftElement>,
}

/// One place of it.
pub(super) struct DraftElement {
    pub(super) gap: usize,
    pub(super) optional: bool,
    pub(super) choices: Vec<Vec<DraftPiece>>,
}

/// One word of a choice.
#[derive(Clone)]
pub(super) struct DraftPiece {
    pub(super) text: String,
    /// Whether a word only has to begin with it.
    pub(super) start: bool,
}

/// Choices that have a name.
pub(super) type Names = HashMap<String, Vec<Vec<DraftPiece>>>;

impl Draft {
    /// Reads a line that is a pattern; says what is wrong with it.
    pub(super) fn read(line: &str, section: usize, names: &Names) -> Result<Self, String> {
        let (head, pattern) = line.split_once(' ').unwrap_or((line, ""));
        let (number, firm) = head.strip_suffix('!').map_or((head, false), |number| (number, true));
        let (score, pattern) = match number.parse::<f32>() {
            Ok(score) if (0.0..=10.0).contains(&score) => (score, pattern),
            Ok(_) => return Err("a score is 0 to 10".to_owned()),
            Err(_) => (0.0, line),
        };
        let elements = elements(pattern, names)?;
        let first = elements.first().ok_or("an empty pattern")?;
        if first.optional || first.gap > 0 {
            return Err("the first element is neither optional nor after a gap".to_owned());
        }
        let short = |choice: &Vec<DraftPiece>| choice[0].start && start(&choice[0].text).is_none();
        if first.choices.iter().any(short) {
            return Err(format!("the beginning of a first word has at least {START} letters"));
        }
        if elements.iter().map(|element| element.gap + 1).product::<usize>() > MOST_WAYS {
            return Err("too many or too long gaps".to_owned());
        }
        Ok(Self { section, score, firm, elements })
    }
}

fn elements(pattern: &str, names: &Names) -> Result<Vec<DraftElement>, String> {
    let mut elements = Vec::new();
    let mut gap = 0;
    let mut rest = pattern.trim_start();
    while !rest.is_empty() {
        let end = if rest.starts_with('(') {
            let close = rest.find(')').ok_or("an open parenthesis")?;
            rest[close..].find(' ').map_or(rest.len(), |at| close + at)
        } else {
            rest.find(' ').unwrap_or(rest.len())
        };
        let (part, after) = rest.split_at(end);
        rest = after.trim_start();
        if let Some(words) = part.strip_prefix('~') {
            gap = words.parse().map_err(|_| "a gap is ~ and a number")?;
            if gap > LONGEST_GAP {
                return Err(format!("a gap has at most {LONGEST_GAP} words"));
            }
            continue;
        }
        let (part, optional) = part.strip_suffix('?').map_or((part, false), |part| (part, true));
        let inner = part.strip_prefix('(').and_then(|part| part.strip_suffix(')')).unwrap_or(part);
        let choices = choices(inner, names)?;
        elements.push(DraftElement { gap: std::mem::take(&mut gap), optional, choices });
    }
    if gap > 0 {
        return Err("a gap at the end".to_owned());
    }
    Ok(elements)
}

/// The members of a choice.
pub(super) fn choices(choice: &str, names: &Names) -> Result<Vec<Vec<DraftPiece>>, String> {
    let mut choices = Vec::new();
    for member in choice.split('|') {
        if let Some(name) = member.trim().strip_prefix('@') {
            let known = names.get(name).ok_or_else(|| format!("no choice is called {name}"))?;
            choices.extend(known.iter().cloned());
            continue;
        }
        let pieces: Vec<DraftPiece> = member.split_whitespace().flat_map(pieces).collect();
        if pieces.is_empty() || member.contains(['(', ')', '~', '@', '!', '?', '[', ']']) {
            return Err(format!("no choice: {member:?}"));
        }
        choices.push(pieces);
    }
    Ok(choices)
}

/// What a word of a file is in a text: more than one word if it has an apostrophe or a hyphen.
fn pieces(word: &str) -> Vec<DraftPiece> {
    let (word, start) = word.strip_suffix('*').map_or((word, false), |word| (word, true));
    let folded = folded_words(word);
    let last = folded.len();
    let piece = |(at, text)| DraftPiece { text, start: start && at + 1 == last };
    folded.into_iter().enumerate().map(piece).collect()
}

/// In how many ways the gaps of a pattern may be filled: this bounds the time that it takes at a place.
const MOST_WAYS: usize = 150;

/// In words.
const LONGEST_GAP: usize = 6;
