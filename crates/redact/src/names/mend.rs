//! Rules that see further than five words: titles, introductions, user names, lists, and the second mention of a name.
//!
//! Each only adds; what the model found stays found.

use std::collections::HashSet;

use super::model::{BEGIN, INSIDE, Model, OTHER, OUTSIDE};
use super::text::{Case, Token};

/// Corrects the tags in place.
pub(super) fn mend(text: &str, model: &Model, tokens: &[Token], tags: &mut [u8]) {
    for at in 0..tokens.len() {
        after_title(text, tokens, tags, at);
        if is_personal_handle(text, model, tokens, at)
            || is_introduced(text, tokens, at)
            || is_speaker(text, tokens, at)
            || is_famous(text, tokens, at)
        {
            begin(tags, at);
        }
    }
    (0..tokens.len()).for_each(|at| beside(text, tokens, tags, at, 2));
    (0..tokens.len()).rev().for_each(|at| beside(text, tokens, tags, at, -2));
    mention_again(tokens, tags);
    take_titles(text, tokens, tags);
}

/// A capitalised word after `Mr.` is a name whatever the model thinks of it.
fn after_title(text: &str, tokens: &[Token], tags: &mut [u8], at: usize) {
    let Some(title) = tokens.get(at).filter(|token| is_title(word(text, token))) else { return };
    let dotted = tokens.get(at + 1).is_some_and(|token| word(text, token) == "." && token.start == title.end);
    let next = if dotted { at + 2 } else { at + 1 };
    let Some(name) = tokens.get(next) else { return };
    // Without its dot a title may be a drive, a degree or a product: `Oak Dr`, `MS Word`.
    let sure = dotted || (title.case == Case::Initial && !word(text, title).eq_ignore_ascii_case("dr"));
    let fits = match title.case {
        Case::Lower => name.case == Case::Lower && common(name) < 2,
        _ => matches!(name.case, Case::Initial | Case::Mixed),
    };
    let spaced = text.get(title.end..name.start).is_some_and(|gap| gap.trim_start_matches('.') == " ");
    if sure && fits && spaced && matches!(tags.get(next), Some(&OUTSIDE | &OTHER)) {
        begin(tags, next);
    }
}

/// Whether the token follows `my name is`, `her maiden name is` or `calls me`.
fn is_introduced(text: &str, tokens: &[Token], at: usize) -> bool {
    let Some([owner, noun, verb, name]) = at.checked_sub(3).and_then(|from| tokens.get(from..=at)) else {
        return false;
    };
    let is =
        |token: &Token, words: &[&str]| words.iter().any(|one| word(text, token).eq_ignore_ascii_case(one));
    let owned = is(owner, &["my", "his", "her", "their", "maiden", "first", "last", "full", "middle"]);
    let named = owned && is(noun, &["name"]) && is(verb, &["is", ":", "was"]);
    let called = is(noun, &["calls", "call", "called"]) && is(verb, &["me"]);
    let plain =
        matches!(name.case, Case::Initial | Case::Mixed) || (name.case == Case::Lower && common(name) < 2);
    let worded = common(name) == 3 && name.flags & 15 == 0;
    plain && !worded && (named || (called && name.flags & 3 != 0))
}

/// Whether the token opens a line of talk as its speaker: `alice: hi`.
fn is_speaker(text: &str, tokens: &[Token], at: usize) -> bool {
    let (Some(name), Some(colon)) = (tokens.get(at), tokens.get(at + 1)) else { return false };
    let opens =
        at.checked_sub(1).and_then(|before| tokens.get(before)).is_none_or(|token| token.case == Case::Break);
    let spaced = text.get(colon.end..).is_some_and(|rest| rest.starts_with(' '));
    opens
        && spaced
        && word(text, colon) == ":"
        && colon.start == name.end
        && name.flags & 3 == 3
        && common(name) < 2
}

/// Whether the token is a name that everyone knows from one person, though it may be a word too.
fn is_famous(text: &str, tokens: &[Token], at: usize) -> bool {
    let Some(token) = tokens.get(at).filter(|token| token.case == Case::Initial) else { return false };
    // `Trump Tower` is a place.
    let alone = tokens.get(at + 1).is_none_or(|next| next.case != Case::Initial || common(next) == 3);
    alone && FAMOUS.contains(&word(text, token))
}

/// A given name beside a name in a list is one too: `Ann, Chad and Lee`.
fn beside(text: &str, tokens: &[Token], tags: &mut [u8], at: usize, step: isize) {
    let near = |distance: isize| at.checked_add_signed(distance).and_then(|index| tokens.get(index));
    let (Some(token), Some(comma), Some(other)) = (near(0), near(step / 2), near(step)) else { return };
    let tag = at.checked_add_signed(step).and_then(|index| tags.get(index));
    let listed = matches!(word(text, comma), "," | "and" | "&") && matches!(tag, Some(&BEGIN | &INSIDE));
    let alike = token.case == other.case && matches!(token.case, Case::Initial | Case::Lower);
    let known = token.flags & 3 >= 2 && (token.case == Case::Initial || common(token) < 3);
    if listed && alike && known && place(token) < 3 && tags.get(at) == Some(&OUTSIDE) {
        begin(tags, at);
    }
}

/// Whether the token is a user name made of a person's name: `@JaneDoe`, `@janedoe`.
fn is_personal_handle(text: &str, model: &Model, tokens: &[Token], at: usize) -> bool {
    let (Some(token), Some(sign)) = (tokens.get(at), at.checked_sub(1).and_then(|before| tokens.get(before)))
    else {
        return false;
    };
    let gap = text.get(sign.end..token.start).unwrap_or_default();
    let left = text.get(..sign.start).and_then(|left| left.chars().next_back());
    let right = text.get(token.end..).and_then(|right| right.chars().next());
    let body = word(text, token);
    if word(text, sign) != "@"
        || !matches!(gap, "" | " ")
        || left.is_some_and(|left| left.is_alphanumeric() || matches!(left, '.' | '_' | '-'))
        || (gap.is_empty() && matches!(right, Some('/' | '(' | '-')))
        || !(4..=40).contains(&body.len())
    {
        return false;
    }
    humps(body).iter().any(|hump| is_personal(model, hump))
}

/// Whether a part of a user name is a given name, or one with a surname run on to it.
fn is_personal(model: &Model, hump: &str) -> bool {
    let is_first = |part: &str, least: u8| {
        let flags = model.flags(part);
        flags & 3 >= least && flags >> 6 < 2
    };
    let is_any = |part: &str| model.flags(part) & 15 != 0;
    (hump.len() >= 4 && is_first(hump, 2))
        || hump.char_indices().skip(2).take(10).any(|(cut, _)| {
            let (head, tail) = hump.split_at(cut);
            match cut {
                2 => tail.len() >= 5 && is_first(head, 2) && is_any(tail),
                3 => tail.len() >= 4 && is_first(head, 3) && is_any(tail),
                4 => tail.len() >= 3 && is_first(head, 2) && is_any(tail),
                _ => tail.len() >= 3 && is_first(head, 3),
            }
        })
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

/// A word found as a name once is one wherever it is written alike.
fn mention_again(tokens: &[Token], tags: &mut [u8]) {
    let telling = |token: &Token| {
        matches!(token.case, Case::Initial | Case::Mixed)
            && common(token) < 2
            && place(token) < 2
            && token.end - token.start >= 4
    };
    let pairs = || tokens.iter().enumerate();
    let seen: HashSet<u32> = pairs()
        .filter(|(at, token)| matches!(tags.get(*at), Some(&BEGIN | &INSIDE)) && telling(token))
        .map(|(_, token)| token.low)
        .collect();
    if seen.is_empty() {
        return;
    }
    for (at, token) in pairs() {
        if tags.get(at) == Some(&OUTSIDE) && telling(token) && seen.contains(&token.low) {
            begin(tags, at);
        }
    }
}

/// Takes the short title before a name into it: it tells the sex, and often the trade.
fn take_titles(text: &str, tokens: &[Token], tags: &mut [u8]) {
    for at in 1..tokens.len() {
        if tags.get(at) != Some(&BEGIN) {
            continue;
        }
        let dotted = tokens.get(at - 1).is_some_and(|token| word(text, token) == ".");
        let Some(title) = at.checked_sub(if dotted { 2 } else { 1 }) else { continue };
        let free =
            tags.get(title..at).is_some_and(|tags| tags.iter().all(|tag| matches!(*tag, OUTSIDE | OTHER)));
        if free && tokens.get(title).is_some_and(|token| is_title(word(text, token))) {
            tags.iter_mut().take(at + 1).skip(title + 1).for_each(|tag| *tag = INSIDE);
            begin(tags, title);
        }
    }
}

fn is_title(word: &str) -> bool {
    ["mr", "mrs", "ms", "miss", "dr", "prof"].iter().any(|title| word.eq_ignore_ascii_case(title))
}

/// Lexicon strength from 0 to 3 as a place.
fn place(token: &Token) -> u8 {
    (token.flags >> 4) & 3
}

/// Lexicon strength from 0 to 3 as a common word.
fn common(token: &Token) -> u8 {
    token.flags >> 6
}

fn begin(tags: &mut [u8], at: usize) {
    if let Some(tag) = tags.get_mut(at).filter(|tag| !matches!(**tag, BEGIN | INSIDE)) {
        *tag = BEGIN;
    }
}

fn word<'a>(text: &'a str, token: &Token) -> &'a str {
    text.get(token.start..token.end).unwrap_or_default()
}

const FAMOUS: &[&str] = &[
    "Adele",
    "Beyonce",
    "Biden",
    "Bieber",
    "Bolsonaro",
    "Clinton",
    "Drake",
    "Eminem",
    "Erdogan",
    "Hillary",
    "Kanye",
    "Kardashian",
    "Lebron",
    "Macron",
    "Madonna",
    "Merkel",
    "Messi",
    "Modi",
    "Musk",
    "Neymar",
    "Obama",
    "Pence",
    "Putin",
    "Rihanna",
    "Ronaldo",
    "Snowden",
    "Trudeau",
    "Trump",
    "Zelensky",
    "Zuckerberg",
];
