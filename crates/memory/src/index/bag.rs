//! What a search knows of a session beside its card: which words it has and how often, and where its passages lie in meaning.
//!
//! Words are terms, most of them stems, in the order of the alphabet: whoever opens a bag reads no sentence. It is made of
//! redacted text only, and is kept where the card is: sealed, with the key of the artifact. What the gate took out is in it as
//! keyed hashes ([`crate::replaced`]). Easy to get wrong: it is bounded, however large the session is, so that no session can
//! swell the files.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use confidant_display::debug_without_content;
use serde_json::{Map, Value, json};

use super::meaning::{self, NOWHERE, Vector, WIDTH};
use super::words;
use crate::card::lists_of_ids;

/// The words of a session and the places of its passages.
#[derive(Clone, Default, PartialEq)]
pub struct Bag {
    terms: BTreeMap<String, u32>,
    passages: Vec<Vector>,
}

debug_without_content!(Bag(***));

impl Bag {
    /// Reads the texts of a redacted session.
    #[must_use]
    pub fn of(session: &Value) -> Self {
        let mut texts = Texts::default();
        texts.walk(session, 0);
        let mut bag = Self::default();
        for text in &texts.pieces {
            let plain = without_placeholders(text);
            words::document_terms(&plain, &mut |term| bag.add(term, 1));
        }
        bag.passages = passages(&texts.pieces);
        bag
    }

    /// Adds a term so many times; each counts a few times at most, and new ones only as long as there is room.
    pub(crate) fn add(&mut self, term: &str, times: u32) {
        if let Some(count) = self.terms.get_mut(term) {
            *count = count.saturating_add(times).min(MOST_TIMES);
        } else if self.terms.len() < MOST_TERMS {
            self.terms.insert(term.to_owned(), times.min(MOST_TIMES));
        }
    }

    /// Its terms, in the order of the alphabet, and how often each is there.
    pub fn terms(&self) -> impl Iterator<Item = (&str, u32)> {
        self.terms.iter().map(|(term, &count)| (term.as_str(), count))
    }

    /// How many passages the session has.
    #[must_use]
    pub fn passages(&self) -> usize {
        self.passages.len()
    }

    /// Where they lie.
    pub(super) fn places(&self) -> &[Vector] {
        &self.passages
    }

    /// As it is kept: terms apart by blanks, with a count where it is not one, and the places in base64.
    pub(crate) fn to_json(&self) -> Value {
        let mut text = String::new();
        for (term, count) in &self.terms {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(term);
            if *count > 1 {
                text.push_str(&format!("{TIMES}{count}"));
            }
        }
        let bytes: Vec<u8> = self.passages.iter().flatten().map(|c| c.cast_unsigned()).collect();
        json!({ "words": text, "passages": STANDARD_NO_PAD.encode(bytes) })
    }

    /// The same for whoever it is of: each word and each hash with its count, and where each passage lies.
    pub(crate) fn exported(&self) -> Value {
        let (mut words, mut hashes) = (Map::new(), Map::new());
        for (term, count) in self.terms() {
            match term.strip_prefix(MARK) {
                Some(hash) => hashes.insert(hash.to_owned(), count.into()),
                None => words.insert(term.to_owned(), count.into()),
            };
        }
        let place = |place: &Vector| STANDARD_NO_PAD.encode(place.map(i8::cast_unsigned));
        let passages: Vec<String> = self.passages.iter().map(place).collect();
        json!({ "words": words, "replaced_hashes": hashes, "passages": passages })
    }

    /// The same, read again; nothing if it is none.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let mut bag = Self::default();
        for one in value.get("words")?.as_str()?.split_ascii_whitespace() {
            let (term, count) = match one.rsplit_once(TIMES) {
                Some((term, count)) => (term, count.parse().ok()?),
                None => (one, 1),
            };
            bag.add(term, count);
        }
        let bytes = STANDARD_NO_PAD.decode(value.get("passages")?.as_str()?).ok()?;
        let (places, rest): (&[[u8; WIDTH]], _) = bytes.as_chunks();
        if !rest.is_empty() || places.len() > MOST_PASSAGES {
            return None;
        }
        bag.passages = places.iter().map(|place| place.map(u8::cast_signed)).collect();
        Some(bag)
    }
}

/// The texts of a session, as far as they are read.
#[derive(Default)]
struct Texts<'s> {
    pieces: Vec<&'s str>,
    bytes: usize,
}

impl<'s> Texts<'s> {
    fn walk(&mut self, value: &'s Value, depth: usize) {
        match value {
            Value::String(text) => self.add(text),
            Value::Array(items) if depth < DEEPEST => {
                items.iter().for_each(|item| self.walk(item, depth + 1));
            }
            Value::Object(members) if depth < DEEPEST => {
                // What the members are called says nothing of the session, nor do its ids.
                for (name, value) in members {
                    if !lists_of_ids(name) {
                        self.walk(value, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes a text, of a long one the two ends. What has no blanks for long is no text.
    fn add(&mut self, text: &'s str) {
        if text.len() > LONGEST_WORD && !text.as_bytes()[..LONGEST_WORD].iter().any(|b| !b.is_ascii_graphic())
        {
            return;
        }
        let ends = if text.len() <= 2 * END {
            [text, ""]
        } else {
            let tail = text.ceil_char_boundary(text.len() - END);
            [words::cut(text, END), &text[tail..]]
        };
        for text in ends {
            let text = words::cut(text, MOST_BYTES - self.bytes);
            if !text.trim().is_empty() {
                self.bytes += text.len();
                self.pieces.push(text);
            }
        }
    }
}

/// The places of passages: neighbouring texts together until there is enough to say what they are about, long ones in parts.
fn passages(pieces: &[&str]) -> Vec<Vector> {
    let all: usize = pieces.iter().map(|piece| piece.len()).sum();
    let enough = PASSAGE.max(all / (MOST_PASSAGES / 2));
    let mut places = Vec::new();
    let mut passage = String::new();
    let mut end = |passage: &mut String| {
        let place = meaning::of_text(passage);
        if place != NOWHERE && places.len() < MOST_PASSAGES {
            places.push(place);
        }
        passage.clear();
    };
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let part = part(rest, enough);
            rest = &rest[part.len()..];
            if passage.len() + part.len() > enough && !passage.is_empty() {
                end(&mut passage);
            }
            passage.push_str(&without_placeholders(part));
            passage.push('\n');
        }
    }
    if !passage.trim().is_empty() {
        end(&mut passage);
    }
    places
}

/// The start of a text, ended at a blank if one is near.
fn part(text: &str, most: usize) -> &str {
    let start = words::cut(text, most);
    if start.len() == text.len() {
        return text;
    }
    let at = start.rfind(char::is_whitespace).filter(|&at| at >= most / 2);
    // Never empty, or reading would not end: a character may be longer than what is left.
    match at.map_or(start, |at| &start[..at]) {
        "" => &text[..text.chars().next().map_or(0, char::len_utf8)],
        start => start,
    }
}

/// The text without the names of what was taken out of it: they are in every session.
fn without_placeholders(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(PLACEHOLDER) {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let name = &from[PLACEHOLDER.len()..];
        let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '#' | '-')));
        match end {
            Some(end) if name[end..].starts_with('>') => {
                plain.push(' ');
                rest = &name[end + 1..];
            }
            _ => {
                plain.push_str(PLACEHOLDER);
                rest = name;
            }
        }
    }
    plain.push_str(rest);
    plain
}

const PLACEHOLDER: &str = "<REDACTED:";
/// Begins a term that is a hash of what was taken out; no word begins with it.
pub(crate) const MARK: char = '=';
/// Between a term and how often it is there; no term has it.
const TIMES: char = '*';
/// How often a term counts at most.
const MOST_TIMES: u32 = 24;
/// Different terms of a session.
const MOST_TERMS: usize = 4000;
/// Bytes of a text's beginning, and of its end.
const END: usize = 16 * 1024;
/// Bytes of a session that are read.
const MOST_BYTES: usize = 1024 * 1024;
/// Bytes that are said in a passage, about; and passages.
const PASSAGE: usize = 480;
const MOST_PASSAGES: usize = 64;
/// What is longer without a blank is data.
const LONGEST_WORD: usize = 512;
const DEEPEST: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn session(texts: &[&str]) -> Value {
        let messages: Vec<Value> =
            texts.iter().map(|text| json!({ "role": "user", "id": "m-17", "content": text })).collect();
        json!({ "messages": messages, "timestamp": "2026-01-01" })
    }

    #[test]
    fn a_bag_has_words_and_no_order_and_comes_back_as_it_was() {
        let bag = Bag::of(&session(&["Zebras like pottery classes.", "I like <REDACTED:NAME> and pottery"]));
        let terms: Vec<(&str, u32)> = bag.terms().collect();
        assert!(terms.is_sorted(), "{terms:?}");
        assert!(terms.contains(&("potteri", 2)) && terms.contains(&("like", 2)), "{terms:?}");
        for absent in ["redact", "redacted:name", "name", "m", "17", "m-17", "role", "user", "2026"] {
            assert!(!terms.iter().any(|(term, _)| *term == absent), "{absent}");
        }
        assert_eq!(bag.passages(), 1);
        assert_eq!(Bag::from_json(&bag.to_json()).as_ref(), Some(&bag));
        let other = Bag::of(&session(&["pottery classes like Zebras", "pottery I and <REDACTED:NAME> like"]));
        assert_eq!(bag.to_json()["words"], other.to_json()["words"]);
    }

    #[test]
    fn an_export_has_words_and_hashes_apart_with_their_counts() {
        let mut bag = Bag::of(&session(&["Zebras like pottery classes.", "I like pottery"]));
        bag.add("=00ff", 3);
        let exported = bag.exported();
        assert_eq!((&exported["words"]["potteri"], &exported["words"]["=00ff"]), (&json!(2), &Value::Null));
        assert_eq!(exported["replaced_hashes"], json!({ "00ff": 3 }));
        assert_eq!(exported["passages"].as_array().map(Vec::len), Some(bag.passages()));
    }

    #[test]
    fn it_is_bounded_however_large_the_session_is() {
        let words: String = (0..40_000).map(|n| format!("word{n}x ")).collect();
        let many: Vec<&str> = std::iter::repeat_n(words.as_str(), 80).collect();
        let bag = Bag::of(&session(&many));
        assert!(bag.terms.len() <= MOST_TERMS && bag.passages() <= MOST_PASSAGES);
        assert!(bag.terms.values().all(|&count| count <= MOST_TIMES));
        let talk = "We talked about the garden and the greenhouse for a while. ".repeat(4000);
        let bag = Bag::of(&session(&[&talk, &talk, &talk]));
        assert!((8..=MOST_PASSAGES).contains(&bag.passages()), "{}", bag.passages());
        let data = "QUJD".repeat(5000);
        assert_eq!(Bag::of(&session(&[&data])), Bag::default());
    }

    #[test]
    fn any_text_can_be_read() {
        for text in ["", " ", "é", "数据库".repeat(3000).as_str(), "<REDACTED:", "<REDACTED:A b", "a*3 b*x *"]
        {
            let bag = Bag::of(&session(&[text]));
            assert_eq!(Bag::from_json(&bag.to_json()), Some(bag), "{text}");
        }
        assert_eq!(without_placeholders("a <REDACTED:EMAIL> b <REDACTED:NAME#2>c"), "a   b  c");
        assert_eq!(without_placeholders("a <REDACTED: b"), "a <REDACTED: b");
    }

    #[test]
    fn what_is_no_bag_is_none() {
        for value in [json!({}), json!({ "words": "a" }), json!({ "words": "a*b", "passages": "" })] {
            assert_eq!(Bag::from_json(&value), None, "{value}");
        }
        assert_eq!(Bag::from_json(&json!({ "words": "a", "passages": "AAAA" })), None);
    }
}
