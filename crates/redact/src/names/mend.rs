//! Rules that see further than five words: titles, introductions, user names, lists, and the second mention of a name.
//!
//! Each only adds; what the model found stays found.

use std::collections::HashSet;

use super::handles::is_personal_handle;
use super::model::{BEGIN, INSIDE, Model, OTHER, OUTSIDE};
use super::text::{Case, Token, fold};

/// Corrects the tags in place.
pub(super) fn mend(text: &str, model: &Model, tokens: &[Token], tags: &mut [u8]) {
    for at in 0..tokens.len() {
        after_title(text, tokens, tags, at);
        if is_personal_handle(text, model, tokens, at)
            || is_introduced(text, tokens, at)
            || is_speaker(text, tokens, at)
            || is_user(text, tokens, at)
            || is_famous(text, tokens, at)
        {
            begin(tags, at);
        }
    }
    (0..tokens.len()).for_each(|at| beside(text, tokens, tags, at, 2));
    (0..tokens.len()).rev().for_each(|at| beside(text, tokens, tags, at, -2));
    mention_again(tokens, tags);
    mention_joined(text, tokens, tags);
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

/// Whether the token is what someone calls themselves on a site: `u/jane`, `redditor: jane`.
fn is_user(text: &str, tokens: &[Token], at: usize) -> bool {
    let back = |count: usize| at.checked_sub(count).and_then(|index| tokens.get(index));
    let (Some(token), Some(before)) = (tokens.get(at), back(1)) else { return false };
    let named =
        !matches!(token.case, Case::Mark | Case::Break | Case::Letter | Case::Caseless) && common(token) < 3;
    let said = |token: Option<&Token>, words: &[&str]| {
        token.is_some_and(|token| words.iter().any(|one| word(text, token).eq_ignore_ascii_case(one)))
    };
    let listed = word(text, before) == "/" && said(back(2), &["u"]) && !said(back(3), &["/", ".", "-"]);
    let marks = (1..5).take_while(|count| said(back(*count), &["*", ":"])).count();
    let labelled = marks > 0 && said(back(marks + 1), &["redditor", "commenter", "tweeter", "retweeter"]);
    named && (listed || labelled)
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

/// A full name written as one word is the same name: `Jane Doe … #janedoe`.
fn mention_joined(text: &str, tokens: &[Token], tags: &mut [u8]) {
    let mut joined: HashSet<String> = HashSet::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut end = at + 1;
        if tags.get(at) == Some(&BEGIN) {
            while tags.get(end) == Some(&INSIDE) {
                end += 1;
            }
            if end - at > 1 {
                let parts = tokens.get(at..end).unwrap_or_default();
                joined.insert(parts.iter().map(|token| fold(word(text, token))).collect());
            }
        }
        at = end;
    }
    if joined.is_empty() {
        return;
    }
    for (at, token) in tokens.iter().enumerate() {
        if token.end - token.start >= 7 && joined.contains(&fold(word(text, token))) {
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
