//! From a text to the places where rules hold.
//!
//! One automaton over all keywords, one walk over all numbers, words and tokens; where one of them asks for a rule,
//! the rule's pattern is tried at that very place and nowhere else. Work per byte is bounded by the number of rules
//! that a byte can trigger times the bounded length of a pattern's window, so the time is linear on any input.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::bytes::{Regex, RegexBuilder};

use crate::finding::Hit;
use crate::rules::{self, Found, Rule, Trigger};

/// All places of a text where a rule holds, in no order, possibly overlapping.
pub(crate) fn scan(text: &[u8], hits: &mut Vec<Hit>) {
    let machine = &*MACHINE;
    let mut ends = vec![0; machine.rules.len()];
    if let Some(keywords) = &machine.keywords {
        for found in keywords.find_overlapping_iter(text) {
            for &(index, boundary) in &machine.by_keyword[found.pattern().as_usize()] {
                if boundary && found.start() > 0 && text[found.start() - 1].is_ascii_alphanumeric() {
                    continue;
                }
                machine.attempt(index, text, found.start(), &mut ends, hits);
            }
        }
    }
    machine.walk(text, &mut ends, hits);
}

/// A pattern anchored where it is tried; bytes, not Unicode.
pub(crate) fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(&format!("^(?:{pattern})")).unicode(false).size_limit(1 << 22).build().ok()
}

/// Rules and what leads to them, made once per process.
struct Machine {
    rules: Vec<&'static Rule>,
    patterns: Vec<OnceLock<Option<Regex>>>,
    keywords: Option<AhoCorasick>,
    /// For each keyword its rules, and whether it must begin a word.
    by_keyword: Vec<Vec<(usize, bool)>>,
    numbers: Vec<(usize, usize, usize)>,
    words: Vec<(usize, usize, usize)>,
    hex: Vec<usize>,
    tokens: Vec<(usize, usize)>,
}

static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::new);

/// Makes the automaton now rather than at the first text.
pub(crate) fn warm() {
    LazyLock::force(&MACHINE);
}

impl Machine {
    fn new() -> Self {
        let rules = rules::all();
        let mut words: Vec<String> = Vec::new();
        let mut machine = Self {
            patterns: rules.iter().map(|_| OnceLock::new()).collect(),
            keywords: None,
            by_keyword: Vec::new(),
            numbers: Vec::new(),
            words: Vec::new(),
            hex: Vec::new(),
            tokens: Vec::new(),
            rules,
        };
        for index in 0..machine.rules.len() {
            match machine.rules[index].trigger {
                Trigger::Keyword(keywords) => machine.add(index, keywords, true, &mut words),
                Trigger::Anywhere(keywords) => machine.add(index, keywords, false, &mut words),
                Trigger::Number(least, most) => machine.numbers.push((least, most, index)),
                Trigger::Word(least, most) => machine.words.push((least, most, index)),
                Trigger::Hex => machine.hex.push(index),
                Trigger::Token(least) => machine.tokens.push((least, index)),
                Trigger::Never => {}
            }
        }
        machine.keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&words)
            .ok();
        machine
    }

    fn add(&mut self, rule: usize, keywords: &[&str], boundary: bool, words: &mut Vec<String>) {
        for keyword in keywords {
            let keyword = keyword.to_ascii_lowercase();
            let at = words.iter().position(|word| *word == keyword).unwrap_or_else(|| {
                words.push(keyword);
                self.by_keyword.push(Vec::new());
                words.len() - 1
            });
            self.by_keyword[at].push((rule, boundary));
        }
    }

    /// Tries one rule at one place. `ends` keeps a rule from being tried again inside what it has taken.
    fn attempt(&self, index: usize, text: &[u8], at: usize, ends: &mut [usize], hits: &mut Vec<Hit>) {
        if at < ends[index] {
            return;
        }
        let Some(pattern) = self.patterns[index].get_or_init(|| compile(self.rules[index].pattern)) else {
            return;
        };
        let window = &text[at..text.len().min(at + WINDOW)];
        // Most attempts fail, and telling so is cheaper than telling where groups are.
        if !pattern.is_match(window) {
            return;
        }
        let Some(groups) = pattern.captures(window) else { return };
        let Some(whole) = groups.get(0) else { return };
        let secret = groups.iter().skip(1).flatten().next().unwrap_or(whole);
        let found = Found {
            text,
            whole: at + whole.start()..at + whole.end(),
            secret: at + secret.start()..at + secret.end(),
        };
        if let Some(range) = (self.rules[index].check)(&found)
            && range.start < range.end
            && range.end <= text.len()
        {
            ends[index] = range.end;
            hits.push(Hit { start: range.start, end: range.end, rule: self.rules[index] });
        }
    }

    /// Numbers, words and tokens, in one pass.
    fn walk(&self, text: &[u8], ends: &mut [usize], hits: &mut Vec<Hit>) {
        let mut at = 0;
        let mut token_end = 0;
        let mut number_end = 0;
        while at < text.len() {
            if !text[at].is_ascii_alphanumeric() {
                at += 1;
                continue;
            }
            let word = Word::at(text, at);
            if at >= token_end {
                token_end = token_at(text, at);
                for &(least, rule) in &self.tokens {
                    if token_end - at >= least {
                        self.attempt(rule, text, at, ends, hits);
                    }
                }
            }
            if word.digits > 0 {
                if text[at].is_ascii_digit() && at >= number_end {
                    number_end = self.number(text, at, ends, hits);
                }
                if word.digits < word.length {
                    for &(least, most, rule) in &self.words {
                        if (least..=most).contains(&word.length) {
                            self.attempt(rule, text, at, ends, hits);
                        }
                    }
                }
            }
            if word.could_be_hex(text, at) {
                for &rule in &self.hex {
                    self.attempt(rule, text, at, ends, hits);
                }
            }
            at += word.length;
        }
    }

    /// Tries the rules for numbers at the first digit; returns the end of the number.
    fn number(&self, text: &[u8], at: usize, ends: &mut [usize], hits: &mut Vec<Hit>) -> usize {
        let (end, count) = number_at(text, at);
        // Few numbers have fewer digits and mean anything.
        if count < LEAST_DIGITS {
            return end;
        }
        let before = |back: usize| at.checked_sub(back).map(|start| (start, text[start]));
        for &(least, most, rule) in &self.numbers {
            if (least..=most).contains(&count) {
                // `+`, `(` and `+(` belong to the number that they stand before.
                if let Some((start, b'+' | b'(')) = before(1) {
                    let start = before(2).filter(|(_, sign)| *sign == b'+').map_or(start, |(start, _)| start);
                    self.attempt(rule, text, start, ends, hits);
                }
                self.attempt(rule, text, at, ends, hits);
            }
        }
        end
    }
}

#[derive(Clone, Copy)]
struct Word {
    length: usize,
    digits: usize,
    hex: bool,
}

impl Word {
    fn at(text: &[u8], at: usize) -> Self {
        let mut word = Self { length: 0, digits: 0, hex: true };
        for &byte in &text[at..] {
            if !byte.is_ascii_alphanumeric() {
                break;
            }
            word.length += 1;
            word.digits += usize::from(byte.is_ascii_digit());
            word.hex &= byte.is_ascii_hexdigit();
        }
        word
    }

    fn could_be_hex(self, text: &[u8], at: usize) -> bool {
        self.hex
            && matches!(self.length, 2 | 4)
            && matches!(text.get(at + self.length), Some(b':' | b'-' | b'.'))
            && text.get(at + self.length + 1).is_some_and(u8::is_ascii_hexdigit)
    }
}

/// The end of the token at a place: letters, digits and the signs that keys have inside.
fn token_at(text: &[u8], at: usize) -> usize {
    let token = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~')
    };
    at + text[at..].iter().take_while(|byte| token(byte)).count()
}

/// The end of the number at a place and how many digits it has. Up to two signs may stand between digits.
fn number_at(text: &[u8], at: usize) -> (usize, usize) {
    let (mut end, mut count, mut signs) = (at, 0, 0);
    for (offset, &byte) in text[at..].iter().take(LONGEST_NUMBER).enumerate() {
        match byte {
            b'0'..=b'9' => {
                count += 1;
                signs = 0;
                end = at + offset + 1;
            }
            b' ' | b'-' | b'.' | b'/' | b'(' | b')' if signs < 2 => signs += 1,
            _ => break,
        }
    }
    (end, count)
}

/// How far a pattern looks. Longer matches are extended by their checks.
const WINDOW: usize = 768;
const LONGEST_NUMBER: usize = 48;
const LEAST_DIGITS: usize = 4;
