//! From a text to the places where rules hold.
//!
//! One automaton over all keywords, one walk over all numbers, words and tokens; where one of them asks for a rule,
//! the rule's pattern is tried at that very place and nowhere else. Work per byte is bounded by the number of rules
//! that a byte can trigger times the bounded length of a pattern's window, so the time is linear on any input.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::bytes::{Regex, RegexBuilder};

use crate::finding::Hit;
use crate::heads::Heads;
use crate::rules::{self, Found, Rule, Trigger};

/// Which rules are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// Those that are believed where lines were joined.
    Joined,
}

/// All places of a text where one of these rules holds, in no order, possibly overlapping. Returns how often a pattern was tried:
/// the work beyond one look at each byte, each time bounded by a window.
pub(crate) fn scan(text: &[u8], which: Which, hits: &mut Vec<Hit>) -> usize {
    let triggers = match which {
        Which::All => &*ALL,
        Which::Joined => &*JOINED,
    };
    let machine = &*MACHINE;
    let mut scan = Scan { machine, triggers, text, ends: vec![0; machine.rules.len()], hits, attempts: 0 };
    scan.keywords(&triggers.plain, 0..text.len());
    foreign_parts(text, |part| scan.keywords(&triggers.foreign, part));
    scan.walk();
    scan.attempts
}

/// The parts of a text in which a word with letters that are not ASCII can stand, in order and apart from each other.
fn foreign_parts(text: &[u8], mut each: impl FnMut(Range<usize>)) {
    if text.is_ascii() {
        return;
    }
    let mut at = 0;
    while let Some(first) = text[at..].iter().position(|byte| !byte.is_ascii()).map(|offset| at + offset) {
        let start = first.saturating_sub(LONGEST_FOREIGN).max(at);
        let mut end = first + 1;
        while let Some(next) = text[end..].iter().take(2 * LONGEST_FOREIGN).position(|byte| !byte.is_ascii())
        {
            end += next + 1;
        }
        at = (end + LONGEST_FOREIGN).min(text.len());
        each(start..at);
    }
}

/// No letter or digit stands before a place, unless it ends a colour of the terminal.
fn begins_word(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| text[before]) else { return true };
    if !before.is_ascii_alphanumeric() {
        return true;
    }
    let lead = &text[at.saturating_sub(LONGEST_COLOUR)..at - 1];
    let code = lead.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
    before == b'm' && lead[..lead.len() - code].ends_with(b"\x1b[")
}

/// A pattern anchored where it is tried; bytes, not Unicode.
pub(crate) fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(&format!("^(?:{pattern})")).unicode(false).size_limit(1 << 22).build().ok()
}

/// Rules and their patterns, made once per process.
struct Machine {
    rules: Vec<&'static Rule>,
    patterns: Vec<OnceLock<Option<Regex>>>,
    heads: Heads,
}

/// What leads to rules, which are called by their number.
#[derive(Default)]
struct Triggers {
    plain: Keywords,
    /// Those with letters that are not ASCII, apart: with them the automaton for all texts would be twice as large.
    foreign: Keywords,
    /// For each count of digits, and for each length of a word, the rules that want it.
    numbers: Vec<Vec<usize>>,
    words: Vec<Vec<usize>>,
    hex: Vec<usize>,
    colons: Vec<usize>,
    tokens: Vec<(usize, usize)>,
}

/// What leads to rules by its letters.
#[derive(Default)]
struct Keywords {
    words: Vec<String>,
    automaton: Option<AhoCorasick>,
    /// For each word its rules, and whether it must begin a word of the text.
    rules: Vec<Vec<(usize, bool)>>,
}

impl Keywords {
    fn add(&mut self, rule: usize, word: String, boundary: bool) {
        let at = self.words.iter().position(|known| *known == word).unwrap_or_else(|| {
            self.words.push(word);
            self.rules.push(Vec::new());
            self.words.len() - 1
        });
        self.rules[at].push((rule, boundary));
    }

    fn build(&mut self) {
        self.automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&self.words)
            .ok();
    }
}

static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::new);
static ALL: LazyLock<Triggers> = LazyLock::new(|| Triggers::of(&MACHINE.rules, |_| true));
static JOINED: LazyLock<Triggers> = LazyLock::new(|| Triggers::of(&MACHINE.rules, rules::is_read_joined));

impl Triggers {
    fn of(rules: &[&'static Rule], wanted: impl Fn(&Rule) -> bool) -> Self {
        let mut triggers = Self {
            numbers: vec![Vec::new(); LONGEST_NUMBER + 1],
            words: vec![Vec::new(); LONGEST_WORD + 1],
            ..Self::default()
        };
        for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| wanted(rule)) {
            match rule.trigger {
                Trigger::Keyword(keywords) => triggers.add(index, keywords, true),
                Trigger::Anywhere(keywords) => triggers.add(index, keywords, false),
                Trigger::Number(least, most) => enlist(&mut triggers.numbers, least, most, index),
                Trigger::Word(least, most) => enlist(&mut triggers.words, least, most, index),
                Trigger::Colon => triggers.colons.push(index),
                Trigger::Hex => triggers.hex.push(index),
                Trigger::Token(least) => triggers.tokens.push((least.max(LEAST_TOKEN), index)),
                Trigger::Never => {}
            }
        }
        triggers.plain.build();
        triggers.foreign.build();
        triggers
    }

    fn add(&mut self, rule: usize, keywords: &[&str], boundary: bool) {
        for keyword in keywords {
            let words = if keyword.is_ascii() { &mut self.plain } else { &mut self.foreign };
            words.add(rule, keyword.to_ascii_lowercase(), boundary);
        }
    }
}

impl Machine {
    fn new() -> Self {
        let rules = rules::all();
        let mut heads = Heads::default();
        rules.iter().for_each(|rule| heads.push(rule.pattern));
        Self { patterns: rules.iter().map(|_| OnceLock::new()).collect(), heads, rules }
    }

    /// What the rule's pattern matches at a place.
    fn search<'t>(&self, index: usize, text: &'t [u8], at: usize) -> Option<Found<'t>> {
        let pattern = self.patterns[index].get_or_init(|| compile(self.rules[index].pattern)).as_ref()?;
        let window = &text[at..text.len().min(at + WINDOW)];
        // Most attempts fail, and telling so is cheaper than telling where groups are.
        if !pattern.is_match(window) {
            return None;
        }
        let groups = pattern.captures(window)?;
        let whole = groups.get(0)?;
        let secret = groups.iter().skip(1).flatten().next().unwrap_or(whole);
        Some(Found {
            text,
            whole: at + whole.start()..at + whole.end(),
            secret: at + secret.start()..at + secret.end(),
        })
    }
}

fn enlist(lists: &mut [Vec<usize>], least: usize, most: usize, rule: usize) {
    lists.iter_mut().take(most + 1).skip(least).for_each(|list| list.push(rule));
}

/// One look at one text.
struct Scan<'s> {
    machine: &'static Machine,
    triggers: &'static Triggers,
    text: &'s [u8],
    /// Where the last find of each rule ends, which keeps it from being tried again inside.
    ends: Vec<usize>,
    hits: &'s mut Vec<Hit>,
    attempts: usize,
}

impl Scan<'_> {
    /// Tries the rules of every keyword in a part of the text.
    fn keywords(&mut self, keywords: &'static Keywords, part: Range<usize>) {
        let (text, Some(automaton)) = (self.text, &keywords.automaton) else { return };
        for found in automaton.find_overlapping_iter(&text[part.clone()]) {
            let (start, end) = (part.start + found.start(), part.start + found.end());
            for &(index, boundary) in &keywords.rules[found.pattern().as_usize()] {
                if !boundary || begins_word(text, start) {
                    self.attempt(index, start..end);
                }
            }
        }
    }

    /// Tries one rule at the place of its trigger.
    fn attempt(&mut self, index: usize, trigger: Range<usize>) {
        let (machine, text, at) = (self.machine, self.text, trigger.start);
        if at < self.ends[index] || !machine.heads.may_begin(index, text, at) {
            return;
        }
        self.attempts += 1;
        let rule = machine.rules[index];
        let found = if rule.pattern.is_empty() {
            Found { text, whole: trigger.clone(), secret: trigger }
        } else {
            let Some(found) = machine.search(index, text, at) else { return };
            found
        };
        if let Some(range) = (rule.check)(&found)
            && range.start < range.end
            && range.end <= text.len()
        {
            self.ends[index] = range.end;
            self.hits.push(Hit { start: range.start, end: range.end, rule });
        }
    }

    /// Numbers, words and tokens, in one pass.
    fn walk(&mut self) {
        let (triggers, text) = (self.triggers, self.text);
        let (mut at, mut token_end, mut number_end) = (0, 0, 0);
        while at < text.len() {
            let class = CLASSES[usize::from(text[at])];
            if class & ALPHANUMERIC == 0 {
                if text[at] == b':' && Word::could_be_address(text, at) {
                    triggers.colons.iter().for_each(|rule| self.attempt(*rule, at..at + 1));
                }
                at += 1;
                continue;
            }
            let word = Word::at(text, at);
            let next = text.get(at + word.length).copied().unwrap_or(b' ');
            let is_token = word.length >= LEAST_TOKEN || CLASSES[usize::from(next)] & TOKEN != 0;
            if word.digits == 0 && !is_token && next != b':' {
                // A word, as most are, and what stands behind it.
                at += word.length + 1;
                continue;
            }
            if at >= token_end {
                token_end = token_at(text, at + word.length);
                for &(least, rule) in &triggers.tokens {
                    if token_end - at >= least {
                        self.attempt(rule, at..token_end.min(at + WINDOW));
                    }
                }
            }
            if word.digits > 0 {
                if class & DIGIT != 0 && at >= number_end {
                    number_end = self.number(at);
                }
                if word.digits < word.length
                    && let Some(rules) = triggers.words.get(word.length)
                {
                    rules.iter().for_each(|rule| self.attempt(*rule, at..at + word.length));
                }
            }
            if word.could_be_hex(text, at) {
                triggers.hex.iter().for_each(|rule| self.attempt(*rule, at..at + word.length));
            }
            at += word.length;
        }
    }

    /// Tries the rules for numbers at the first digit; returns the end of the number.
    fn number(&mut self, at: usize) -> usize {
        let (triggers, text) = (self.triggers, self.text);
        let (end, count) = number_at(text, at);
        // Few numbers have fewer digits and mean anything.
        if count < LEAST_DIGITS {
            return end;
        }
        let before = |back: usize| at.checked_sub(back).map(|start| (start, text[start]));
        for &rule in &triggers.numbers[count.min(LONGEST_NUMBER)] {
            // `+`, `(` and `+(` belong to the number that they stand before.
            if let Some((start, b'+' | b'(')) = before(1) {
                let start = before(2).filter(|(_, sign)| *sign == b'+').map_or(start, |(start, _)| start);
                self.attempt(rule, start..end);
            }
            self.attempt(rule, at..end);
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
        let (mut end, mut digits, mut all) = (at, 0, u8::MAX);
        while let Some(byte) = text.get(end) {
            let class = CLASSES[usize::from(*byte)];
            if class & ALPHANUMERIC == 0 {
                break;
            }
            end += 1;
            digits += usize::from(class & DIGIT);
            all &= class;
        }
        Self { length: end - at, digits: digits / usize::from(DIGIT), hex: all & HEX != 0 }
    }

    /// A colon with another one near, and nothing but hexadecimal digits around it.
    fn could_be_address(text: &[u8], at: usize) -> bool {
        let hex = |byte: &&u8| byte.is_ascii_hexdigit();
        let next = text[at + 1..].iter().take(5).take_while(hex).count();
        text.get(at + 1 + next) == Some(&b':')
            && at.checked_sub(1).is_none_or(|before| {
                let class = CLASSES[usize::from(text[before])];
                class & HEX != 0 || class & ALPHANUMERIC == 0
            })
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
    at + text[at..].iter().take_while(|byte| CLASSES[usize::from(**byte)] & TOKEN != 0).count()
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
const LONGEST_WORD: usize = 128;
/// How much of a word can stand before or behind its letters that are not ASCII.
const LONGEST_FOREIGN: usize = 24;
const LONGEST_COLOUR: usize = 16;
const LEAST_DIGITS: usize = 4;
/// No rule for tokens asks for shorter ones.
const LEAST_TOKEN: usize = 16;
const ALPHANUMERIC: u8 = 1;
const DIGIT: u8 = 2;
const HEX: u8 = 4;
/// What tokens are made of.
const TOKEN: u8 = 8;
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0u8;
    while byte < 128 {
        let mut class = 0;
        if byte.is_ascii_alphanumeric() {
            class |= ALPHANUMERIC | TOKEN;
        }
        if byte.is_ascii_digit() {
            class |= DIGIT;
        }
        if byte.is_ascii_hexdigit() {
            class |= HEX;
        }
        if matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~') {
            class |= TOKEN;
        }
        classes[byte as usize] = class;
        byte += 1;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work is counted, not timed: twice the text, at most twice the attempts, each of which looks at a bounded window.
    #[test]
    fn work_grows_with_the_text_and_no_faster() {
        let units = [
            "key=",
            "password: ",
            "-----BEGIN RSA PRIVATE KEY-----\n",
            "a@",
            "kty:\"EC\" ",
            "0 ",
            "1-",
            "eyJ",
            "Authorization: ",
            "::",
            "a:",
            "sk-",
            "://",
            "AKIA",
            "a1",
            "0f3a9c5b7d1e2f4a",
            "token token ",
            "deepgram=",
            "\\",
            "%2",
            "=",
            "\n",
        ];
        for unit in units {
            let work = |length: usize| {
                let mut hits = Vec::new();
                let attempts = scan(unit.repeat(length / unit.len()).as_bytes(), Which::All, &mut hits);
                (attempts, hits.len())
            };
            let ((once, _), (twice, hits)) = (work(20_000), work(40_000));
            assert!(twice <= 2 * once + 64, "{unit:?}: {once} attempts, then {twice}");
            assert!(twice <= MOST_PER_BYTE * 40_000 && hits <= twice, "{unit:?}: {twice} attempts");
        }
    }

    /// No byte leads to more.
    const MOST_PER_BYTE: usize = 4;
}
