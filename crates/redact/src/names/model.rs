//! The weights in the binary and the best path through them.
//!
//! Owns the layout of `names.bin`; what a feature is, `text` says.

use super::features::{self, BITS, COLUMNS};
use super::text::{self, Lexicon, NOTE, Note, Token, Tone};

/// Outside any name.
pub(super) const OUTSIDE: u8 = 0;
/// First token of a name.
pub(super) const BEGIN: u8 = 1;
/// Further token of a name.
pub(super) const INSIDE: u8 = 2;

/// Part of another entity: a place, a firm, a work.
pub(super) const OTHER: u8 = 3;

const TAGS: usize = COLUMNS + 1;
const HEADER: usize = 8 + 2 * (TAGS * TAGS + TAGS);
const WEIGHTS: usize = COLUMNS << BITS;
/// Longest stretch decoded as one sequence; bounds the memory of the back pointers.
const STRETCH: usize = 4096;
const NEVER: i32 = i32::MIN / 4;

/// Everything learned, borrowed from the program's own image: nothing is read or built at start.
pub(super) struct Model {
    lexicon: Lexicon<'static>,
    weights: &'static [u8],
    moves: [[i32; TAGS]; TAGS],
    starts: [i32; TAGS],
}

impl Model {
    /// The model in the binary. A damaged one finds nothing; a test holds that it is whole.
    pub(super) fn embedded() -> Self {
        Self::parse(include_bytes!("../../data/names.bin")).unwrap_or(Self {
            lexicon: Lexicon::new(&[], &[]),
            weights: &[],
            moves: [[0; TAGS]; TAGS],
            starts: [0; TAGS],
        })
    }

    fn parse(bytes: &'static [u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"CFN2")?;
        let words = usize::try_from(u32::from_le_bytes(*rest.first_chunk()?)).ok()?;
        let (head, body) = bytes.split_at_checked(HEADER)?;
        let mut numbers = head.get(8..)?.chunks_exact(2).map(|pair| match pair {
            [low, high] => i32::from(i16::from_le_bytes([*low, *high])),
            _ => 0,
        });
        let mut moves = [[0; TAGS]; TAGS];
        moves.iter_mut().flatten().zip(&mut numbers).for_each(|(slot, number)| *slot = number);
        let mut starts = [0; TAGS];
        starts.iter_mut().zip(&mut numbers).for_each(|(slot, number)| *slot = number);
        // A name cannot go on that has not begun.
        for (from, row) in moves.iter_mut().enumerate() {
            if from != usize::from(BEGIN) && from != usize::from(INSIDE) {
                row[usize::from(INSIDE)] = NEVER;
            }
        }
        starts[usize::from(INSIDE)] = NEVER;
        let (hashes, body) = body.split_at_checked(words.checked_mul(4)?)?;
        let (notes, weights) = body.split_at_checked(words * NOTE)?;
        (weights.len() == WEIGHTS).then_some(Self {
            lexicon: Lexicon::new(hashes, notes),
            weights,
            moves,
            starts,
        })
    }

    /// The tokens of `text`.
    pub(super) fn tokens(&self, text: &str) -> Vec<Token> {
        text::tokens(text, self.lexicon)
    }

    /// What the lexicon knows of a word in any spelling.
    pub(super) fn note(&self, word: &str) -> Note {
        self.lexicon.get(text::hash(&text::fold(word)))
    }

    /// A tag for each token.
    pub(super) fn tag(&self, tokens: &[Token]) -> Vec<u8> {
        let mut tags = Vec::with_capacity(tokens.len());
        let mut from = 0;
        while from < tokens.len() {
            let until = tokens.len().min(from + STRETCH);
            self.decode(tokens, from..until, &mut tags);
            from = until;
        }
        tags
    }

    fn decode(&self, tokens: &[Token], stretch: std::ops::Range<usize>, tags: &mut Vec<u8>) {
        let mut scores = self.starts;
        let mut back: Vec<[u8; TAGS]> = Vec::with_capacity(stretch.len());
        for at in stretch.clone() {
            let own = self.score(tokens, at);
            let mut next = [NEVER; TAGS];
            let mut origin = [0; TAGS];
            for (to, (best, from_tag)) in next.iter_mut().zip(&mut origin).enumerate() {
                if at == stretch.start {
                    *best = scores[to];
                } else {
                    for (from, score) in scores.iter().enumerate() {
                        let total = score.saturating_add(self.moves[from][to]);
                        if total > *best {
                            (*best, *from_tag) = (total, u8::try_from(from).unwrap_or(OUTSIDE));
                        }
                    }
                }
                *best = best.saturating_add(own[to]);
            }
            // Only differences matter; subtracting the best keeps long stretches far from overflow.
            let top = next.iter().copied().max().unwrap_or(0);
            scores = next.map(|score| score.saturating_sub(top).max(NEVER));
            back.push(origin);
        }
        let best = (0_u8..).zip(scores).max_by_key(|(_, score)| *score);
        let mut tag = best.map_or(OUTSIDE, |(tag, _)| tag);
        let first = tags.len();
        for origin in back.iter().rev() {
            tags.push(tag);
            tag = origin.get(usize::from(tag)).copied().unwrap_or(OUTSIDE);
        }
        if let Some(own) = tags.get_mut(first..) {
            own.reverse();
        }
    }

    fn score(&self, tokens: &[Token], at: usize) -> [i32; TAGS] {
        let mut own = [0; TAGS];
        own[usize::from(BEGIN)] = tokens.get(at).map_or(0, lean);
        features::features(tokens, at, |row| {
            if let Some(weights) = self.weights.get(row * COLUMNS..row * COLUMNS + COLUMNS) {
                for (sum, weight) in own.iter_mut().skip(1).zip(weights) {
                    *sum += i32::from(weight.cast_signed());
                }
            }
        });
        own
    }
}

/// How far to lean towards a name, in the unit of the weights. A missed name of a private person costs more than a
/// word too many; on a page most names are those of things. Measured on the development set, not learned.
fn lean(token: &Token) -> i32 {
    match token.tone {
        Tone::Page => -16,
        Tone::Talk => 44,
        Tone::Post => 100,
    }
}
