//! User names that give a person's own name away: `@JaneDoe`, `@janedoe`, `u/jane_doe`, `#JaneDoe`.
//!
//! A user name is one word to the model, so it is taken apart here and its parts are looked up.

use super::model::Model;
use super::text::{Case, Note, Token};

/// Whether the token is a user name, or part of one, that is made of a person's name.
pub(super) fn is_personal_handle(text: &str, model: &Model, tokens: &[Token], at: usize) -> bool {
    let Some(token) = tokens.get(at).filter(|token| !matches!(token.case, Case::Mark | Case::Break)) else {
        return false;
    };
    let body = word(text, token);
    if !(3..=40).contains(&body.len()) {
        return false;
    }
    match sign(text, tokens, at) {
        Some(Sign::At) => humps(body).iter().any(|hump| is_personal(model, hump)),
        Some(Sign::Hash) => is_full_name(model, &humps(body)),
        None => false,
    }
}

enum Sign {
    At,
    Hash,
}

/// The sign that a user name or a tag begins with, before the token or before the parts that `_` joins to it.
fn sign(text: &str, tokens: &[Token], at: usize) -> Option<Sign> {
    let mut first = at;
    for _ in 0..LONGEST {
        let before = tokens.get(first.checked_sub(1)?)?;
        let gap = text.get(before.end..tokens.get(first)?.start).unwrap_or_default();
        if !matches!(gap, "" | " ") {
            return None;
        }
        match word(text, before) {
            "@" => return is_mention(text, before, tokens.get(first)?, tokens.get(at)?).then_some(Sign::At),
            "#" => return Some(Sign::Hash),
            // `@ jane _ doe`, as text looks that was cut into words.
            joint if joint.bytes().all(|byte| byte == b'_') => first -= 1,
            _ if first < at && word(text, tokens.get(first)?).bytes().all(|byte| byte == b'_') => first -= 1,
            _ => return None,
        }
    }
    None
}

/// The sign begins a user name: not an address, a package or a decorator.
fn is_mention(text: &str, sign: &Token, first: &Token, last: &Token) -> bool {
    let left = text.get(..sign.start).and_then(|left| left.chars().next_back());
    let right = text.get(last.end..).and_then(|right| right.chars().next());
    let code = sign.end == first.start && matches!(right, Some('/' | '(' | '-'));
    !code && !left.is_some_and(|left| left.is_alphanumeric() || matches!(left, '.' | '_' | '-'))
}

/// Whether a part of a user name is a given name, one with more run on to it, or a rare surname.
fn is_personal(model: &Model, hump: &str) -> bool {
    let is_any = |part: &str| model.note(part).flags & 15 != 0 || is_capital(model.note(part));
    let note = model.note(hump);
    let whole = (hump.len() >= 4 && is_first(note, 2))
        || (hump.len() == 3 && is_first(note, 3) && is_capital(note))
        || (hump.len() >= 6 && note.flags & 12 != 0 && note.flags >> 4 == 0 && !is_small(note))
        || (hump.len() >= 5 && note.usage >> 4 >= 6 && note.flags >> 4 == 0);
    whole
        || hump.char_indices().skip(2).take(10).any(|(cut, _)| {
            let (head, tail) = hump.split_at(cut);
            let first = |least: u8| is_first(model.note(head), least);
            match cut {
                2 => tail.len() >= 5 && first(2) && is_any(tail),
                3 => tail.len() >= 4 && first(3) && is_any(tail),
                4 => tail.len() >= 3 && first(2) && is_any(tail),
                _ => tail.len() >= 3 && first(3),
            }
        })
}

/// A given name and a surname, each a part of its own.
fn is_full_name(model: &Model, humps: &[&str]) -> bool {
    let [first, .., last] = humps else { return false };
    let (first, last) = (model.note(first), model.note(last));
    is_first(first, 2) && last.flags & 12 != 0 && last.flags >> 6 < 2 && is_capital(last)
}

/// A given name, at least so usual, and not a usual word.
fn is_first(note: Note, least: u8) -> bool {
    note.flags & 3 >= least && note.flags >> 6 < 2
}

/// People write it with a capital, mostly.
fn is_capital(note: Note) -> bool {
    note.usage >> 4 >= 5
}

/// People write it without one, mostly.
fn is_small(note: Note) -> bool {
    note.usage != 0 && note.usage >> 4 < 4
}

/// `realJaneDoe_7` in its parts.
fn humps(body: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, letter) in body.char_indices() {
        if letter.is_uppercase() || !letter.is_alphabetic() {
            parts.extend(body.get(start..at));
            start = if letter.is_alphabetic() { at } else { at + letter.len_utf8() };
        }
    }
    parts.extend(body.get(start..));
    parts.retain(|part| !part.is_empty());
    parts
}

fn word<'a>(text: &'a str, token: &Token) -> &'a str {
    text.get(token.start..token.end).unwrap_or_default()
}

/// Parts and joints of a user name that are looked at.
const LONGEST: usize = 7;
