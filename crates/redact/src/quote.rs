//! Words of others, made fit to be quoted to a language model.
//!
//! A model tells a quote from what it is told to do by a [`Fence`] round it, and tells who speaks by the tokens of its
//! chat template. So what stands in a fence must hold neither: not as it is written, and not once somebody further down
//! has folded compatibility forms (NFKC) or dropped what cannot be seen. Everything else stays as it was written: `x²`
//! is not `x2`. What is easy to get wrong: dropping a character may join what stood on either side of it, so what is
//! invisible goes first, and marks are looked for in what is left.

use std::collections::BTreeMap;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

use crate::normalise::{View, is_invisible};

/// What quotes stand in. Its word is nobody's to know beforehand, so that no text can close what it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    word: String,
}

impl Fence {
    /// A fence with a word of these random bytes. This crate has no randomness of its own.
    #[must_use]
    pub fn new(random: [u8; 8]) -> Self {
        let letter = |byte: &u8| char::from(LETTERS[usize::from(byte & 31)]);
        Self { word: random.iter().map(letter).collect() }
    }

    /// The line that opens it.
    #[must_use]
    pub fn open(&self, label: &str) -> String {
        format!("<<<{label} {}", self.word)
    }

    /// The line that closes it.
    #[must_use]
    pub fn close(&self, label: &str) -> String {
        format!("{} {label}>>>", self.word)
    }

    /// Text of many lines inside the fence, cleaned.
    #[must_use]
    pub fn around(&self, label: &str, text: &str) -> String {
        format!("{}\n{}\n{}", self.open(label), quote_text(text), self.close(label))
    }
}

/// 32 letters and digits of which none looks like another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345678";

/// What a person sees of a text, as one line that cannot forge structure: nothing invisible, no line breaks, no fence, no
/// token of a chat template.
#[must_use]
pub fn quote_line(text: &str) -> String {
    without_tokens(visible_line(text))
}

/// Text of many lines that cannot forge structure: as [`quote_line`], and no line begins as if somebody else spoke.
#[must_use]
pub fn quote_text(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '\n' | '\t' | ' '..='~' => seen.push(c),
            '\r' if letters.peek() == Some(&'\n') => {}
            '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => seen.push('\n'),
            _ if c.is_control() || is_invisible(c) => {}
            _ => seen.push(c),
        }
    }
    let seen = without_tokens(seen);
    if !seen.split('\n').any(begins_as_a_speaker) {
        return seen;
    }
    let quoted =
        |line: &str| if begins_as_a_speaker(line) { format!("{CLOSE} {line}") } else { line.to_owned() };
    seen.split('\n').map(quoted).collect::<Vec<_>>().join("\n")
}

/// What a person sees of a text, with one space for every gap.
#[must_use]
pub fn visible_line(text: &str) -> String {
    // Most texts are composed already, and composing takes longer than everything else here.
    // What cannot be seen goes first: it may keep two characters from being one.
    let kept = || text.chars().filter(|c| c.is_ascii() || !is_invisible(*c));
    let mut line = if text.is_ascii() || is_nfc_quick(kept()) == IsNormalized::Yes {
        seen(text.len(), kept())
    } else {
        seen(text.len(), kept().nfc())
    };
    line.truncate(line.trim_end().len());
    line
}

/// A text as what it passes for: in small letters, without what cannot be seen, compatibility forms and letters of other
/// scripts that look like Latin ones as those. For comparing names, not for showing.
#[must_use]
pub fn folded(text: &str) -> String {
    String::from_utf8_lossy(View::plain(text).bytes()).to_lowercase()
}

fn seen(length: usize, text: impl Iterator<Item = char>) -> String {
    let mut line = String::with_capacity(length);
    for c in text {
        match c {
            '!'..='~' => line.push(c),
            _ if is_invisible(c) => {}
            _ if c.is_whitespace() || c.is_control() => {
                if !line.is_empty() && !line.ends_with(' ') {
                    line.push(' ');
                }
            }
            _ => line.push(c),
        }
    }
    line
}

/// The text with other signs in the place of those that make a fence or a token.
fn without_tokens(text: String) -> String {
    if !text.contains(opens_or_closes) {
        return text;
    }
    let mut signs = signs(&text);
    let mut changed: BTreeMap<usize, char> = BTreeMap::new();
    let mut at = 0;
    while let Some((sign, _)) = signs.get(at).copied() {
        let run = signs[at..].iter().take_while(|(other, _)| *other == sign).count();
        if run >= FENCE_SIGNS && matches!(sign, '<' | '>') {
            let with = if sign == '<' { OPEN } else { CLOSE };
            for (sign, place) in &mut signs[at..at + run] {
                (*sign, _) = (with, changed.insert(*place, with));
            }
        }
        at += run;
    }
    // From the end: a token may stand inside of another, which is one only once the signs of the inner one are others.
    for at in (0..signs.len()).rev() {
        let (open, place) = signs[at];
        let close = match open {
            '<' => '>',
            '[' => ']',
            _ => continue,
        };
        let goes_on = |(sign, _): &&(char, usize)| *sign != open && *sign != close && !sign.is_whitespace();
        let inside: String =
            signs[at + 1..].iter().take(LONGEST_TOKEN).take_while(goes_on).map(|(sign, _)| *sign).collect();
        let end = at + 1 + inside.chars().count();
        if signs.get(end).is_some_and(|(sign, _)| *sign == close) && is_token(open, &inside) {
            changed.extend([(place, OPEN), (signs[end].1, CLOSE)]);
            (signs[at].0, signs[end].0) = (OPEN, CLOSE);
        }
    }
    if changed.is_empty() {
        return text;
    }
    text.char_indices().map(|(at, c)| changed.get(&at).copied().unwrap_or(c)).collect()
}

/// Signs without which there is neither a fence nor a token, and those that NFKC makes them of.
fn opens_or_closes(c: char) -> bool {
    matches!(c, '<' | '>' | '[' | '\u{fe47}' | '\u{fe64}' | '\u{fe65}' | '\u{ff1c}' | '\u{ff1e}' | '\u{ff3b}')
}

/// The text as NFKC folds it, in small letters, each with the place that it comes from. Character by character: what is
/// composed of several is never ASCII.
fn signs(text: &str) -> Vec<(char, usize)> {
    let mut signs = Vec::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if c.is_ascii() {
            signs.push((c.to_ascii_lowercase(), at));
        } else {
            let folded = std::iter::once(c).nfkc().filter(|c| !is_invisible(*c));
            signs.extend(folded.map(|c| (c.to_ascii_lowercase(), at)));
        }
    }
    signs
}

/// Whether a chat template, or a tokenizer, takes what stands between these signs for more than text.
fn is_token(open: char, inside: &str) -> bool {
    let name = inside.strip_prefix('/').unwrap_or(inside);
    if open == '[' {
        return IN_BRACKETS.contains(&name);
    }
    let has_bars = inside.len() > 1 && (inside.starts_with('|') || inside.ends_with('|'));
    let is_numbered = |start: &str| {
        name.strip_prefix(start)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    has_bars || IN_ANGLES.contains(&name) || NUMBERED.into_iter().any(is_numbered)
}

/// Whether a line begins as prompts of plain text mark who speaks: `Human:`, `### Assistant:`. In small letters only what
/// no file of settings has as a key.
fn begins_as_a_speaker(line: &str) -> bool {
    let start = line.trim_start().chars().take(LONGEST_SPEAKER);
    let start: String = start.nfkc().filter(|c| !is_invisible(*c)).collect();
    let start = start.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '*' | '_'));
    let Some((who, rest)) = start.split_once(|c: char| !c.is_alphabetic()) else { return false };
    let after = &start[who.len()..start.len() - rest.len()];
    let ends =
        after == ":" || (matches!(after, "*" | "_") && rest.trim_start_matches(['*', '_']).starts_with(':'));
    let is_capital = who.starts_with(char::is_uppercase);
    let who = who.to_lowercase();
    ends && (SPEAKERS.contains(&who.as_str()) || (is_capital && CAPITAL_SPEAKERS.contains(&who.as_str())))
}

/// What the signs of fences and tokens become: no form of theirs, and nobody's token.
const OPEN: char = '‹';
const CLOSE: char = '›';
/// So many in a row make a fence.
const FENCE_SIGNS: usize = 3;
/// In characters; no template has a longer one.
const LONGEST_TOKEN: usize = 128;
const LONGEST_SPEAKER: usize = 48;
/// Tokens of Llama, Gemma, Qwen, T5 and those that learned from them. What has bars (`<|…|>`) is one by its bars.
const IN_ANGLES: [&str; 22] = [
    "s",
    "bos",
    "eos",
    "eot",
    "pad",
    "unk",
    "mask",
    "sys",
    "start_of_turn",
    "end_of_turn",
    "start_of_image",
    "end_of_image",
    "image_soft_token",
    "im_start",
    "im_end",
    "endoftext",
    "think",
    "tool_call",
    "tool_calls",
    "tool_response",
    "function_calls",
    "function_results",
];
const NUMBERED: [&str; 2] = ["unused", "extra_id_"];
/// Tokens of Mistral and GLM.
const IN_BRACKETS: [&str; 9] = [
    "inst",
    "system_prompt",
    "available_tools",
    "tool_calls",
    "tool_results",
    "tool_content",
    "call_id",
    "think",
    "gmask",
];
const SPEAKERS: [&str; 2] = ["human", "assistant"];
const CAPITAL_SPEAKERS: [&str; 6] = ["system", "user", "developer", "ai", "instruction", "response"];

#[cfg(test)]
mod tests;
