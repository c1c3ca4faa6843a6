//! What a pattern must begin with, byte by byte.
//!
//! Most places where a pattern is tried are none, and their first bytes tell. A pattern's head is the row of sets of
//! bytes that every match must begin with; looking a few bytes up in it costs far less than starting a search. It is
//! read off the parsed pattern, so it cannot disagree with it.

use std::collections::HashMap;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// The heads of all patterns; the few different sets are kept once.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    sets: Vec<Set>,
    known: HashMap<Set, u16>,
    heads: Vec<Vec<u16>>,
}

type Set = [bool; 256];

impl Heads {
    /// Adds the head of a pattern, whose number is the count of those added before.
    pub(crate) fn push(&mut self, pattern: &str) {
        let parsed = ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern);
        let sets = parsed.map(|hir| head(&hir).0).unwrap_or_default();
        let head = sets.into_iter().map(|set| self.number(set)).collect();
        self.heads.push(head);
    }

    /// Whether a match of the pattern may begin at a place.
    pub(crate) fn may_begin(&self, pattern: usize, text: &[u8], at: usize) -> bool {
        let head = &self.heads[pattern];
        text.len() - at >= head.len()
            && head
                .iter()
                .zip(&text[at..])
                .all(|(set, byte)| self.sets[usize::from(*set)][usize::from(*byte)])
    }

    fn number(&mut self, set: Set) -> u16 {
        *self.known.entry(set).or_insert_with(|| {
            self.sets.push(set);
            u16::try_from(self.sets.len() - 1).unwrap_or(u16::MAX)
        })
    }
}

/// The sets that are certain, and whether they are the whole of what matches.
fn head(hir: &Hir) -> (Vec<Set>, bool) {
    let (mut sets, mut whole) = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (Vec::new(), true),
        HirKind::Literal(literal) => (literal.0.iter().map(|byte| one(*byte)).collect(), true),
        HirKind::Class(Class::Bytes(class)) => {
            let mut set = [false; 256];
            for range in class.ranges() {
                (range.start()..=range.end()).for_each(|byte| set[usize::from(byte)] = true);
            }
            (vec![set], true)
        }
        HirKind::Class(Class::Unicode(_)) => (Vec::new(), false),
        HirKind::Capture(capture) => head(&capture.sub),
        HirKind::Repetition(repetition) => {
            let (sub, whole) = head(&repetition.sub);
            let times = if whole { repetition.min as usize } else { repetition.min.min(1) as usize };
            let sets: Vec<Set> = sub.iter().copied().cycle().take(sub.len() * times.min(LONGEST)).collect();
            (sets, whole && repetition.max == Some(repetition.min) && times <= LONGEST)
        }
        HirKind::Concat(parts) => concat(parts),
        HirKind::Alternation(parts) => either(parts),
    };
    if sets.len() > LONGEST {
        sets.truncate(LONGEST);
        whole = false;
    }
    (sets, whole)
}

fn concat(parts: &[Hir]) -> (Vec<Set>, bool) {
    let mut sets = Vec::new();
    for part in parts {
        let (more, whole) = head(part);
        sets.extend(more);
        if !whole || sets.len() >= LONGEST {
            return (sets, false);
        }
    }
    (sets, true)
}

fn either(parts: &[Hir]) -> (Vec<Set>, bool) {
    let heads: Vec<(Vec<Set>, bool)> = parts.iter().map(head).collect();
    let shortest = heads.iter().map(|(sets, _)| sets.len()).min().unwrap_or(0);
    let whole = heads.iter().all(|(sets, whole)| *whole && sets.len() == shortest);
    let union = |at: usize| {
        let mut set = [false; 256];
        for (sets, _) in &heads {
            set.iter_mut().zip(&sets[at]).for_each(|(all, one)| *all |= one);
        }
        set
    };
    ((0..shortest).map(union).collect(), whole)
}

fn one(byte: u8) -> Set {
    let mut set = [false; 256];
    set[usize::from(byte)] = true;
    set
}

/// Longer heads tell hardly more.
const LONGEST: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_lets_every_match_through_and_little_else() {
        let cases = [
            ("sk-[a-z]{3}", "sk-abc", &["sk-ab", "sk-ab1", "tk-abc"][..]),
            ("(?i)ab?c", "AC", &["bc", ""][..]),
            ("(?:ab|cde)[0-9]{2,}x", "cde12x", &["zb12x", "aa12"][..]),
            ("[0-9]{2}(?:-[0-9]{2}){2}", "12-34-56", &["12-34", "1a-34-56", "12-34-5x"][..]),
            ("(?:x{2}|y)z", "yz", &["zz"][..]),
        ];
        for (pattern, good, bad) in cases {
            let mut heads = Heads::default();
            heads.push(pattern);
            assert!(heads.may_begin(0, good.as_bytes(), 0), "{pattern} {good}");
            for bad in bad {
                assert!(!heads.may_begin(0, bad.as_bytes(), 0), "{pattern} {bad}");
            }
        }
    }
}
