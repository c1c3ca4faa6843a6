//! Where a text lies in meaning: the mean of what the pieces of its words mean.
//!
//! The pieces are those of a small sentence encoder, each with what that encoder makes of it alone (`bench/meaning`). So a
//! text costs a few lookups and sums, microseconds instead of the encoder's ten milliseconds, and finds about as much
//! (`bench/results/SEARCH.md`). English; words of other scripts have no place. Easy to get wrong: any change here changes
//! what is in the files, so [`super::manifest::VERSION`] must change with it.

use super::words;
use crate::Card;

/// Coordinates of a place.
pub(super) const WIDTH: usize = 128;

/// A unit vector, 127 times each coordinate; zeros for what has no place, which is near to nothing.
pub(super) type Vector = [i8; WIDTH];

/// The place of what has none.
pub(super) const NOWHERE: Vector = [0; WIDTH];

/// The place of a card. What it is called counts twice.
pub(super) fn of_card(card: &Card) -> Vector {
    let mut sum = Sum::default();
    sum.add(&card.title, 2.0);
    for text in [&card.summary_bullets, &card.decisions, &card.keywords].into_iter().flatten() {
        sum.add(text, 1.0);
    }
    sum.unit()
}

/// The place of a text; [`NOWHERE`] if it has none.
pub(super) fn of_text(text: &str) -> Vector {
    let mut sum = Sum::default();
    sum.add(text, 1.0);
    sum.unit()
}

/// The place of what somebody looks for; nothing if it has none.
pub(super) fn of_query(text: &str) -> Option<Vector> {
    let unit = of_text(text);
    (unit != NOWHERE).then_some(unit)
}

/// How near two places are, from -1 to 1.
pub(super) fn nearness(a: &Vector, b: &[u8]) -> f32 {
    let product: i32 = a.iter().zip(b).map(|(&a, &b)| i32::from(a) * i32::from(b.cast_signed())).sum();
    product as f32 / (127.0 * 127.0)
}

struct Sum {
    coordinates: [f32; WIDTH],
    /// Bytes that are still read.
    left: usize,
}

impl Default for Sum {
    fn default() -> Self {
        Self { coordinates: [0.0; WIDTH], left: BYTES }
    }
}

impl Sum {
    fn add(&mut self, text: &str, weight: f32) {
        let text = words::cut(text, self.left);
        self.left -= text.len();
        let table = Table::built_in();
        words::plain_words(text, &mut |word| {
            for piece in table.pieces(word).into_iter().flatten() {
                table.add_to(&mut self.coordinates, piece, weight);
            }
        });
    }

    fn unit(&self) -> Vector {
        let length = self.coordinates.iter().map(|c| c * c).sum::<f32>().sqrt();
        if length <= f32::MIN_POSITIVE {
            return NOWHERE;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a coordinate of a unit vector is within -127 and 127"
        )]
        self.coordinates.map(|c| (c / length * 127.0).round() as i8)
    }
}

/// What each piece means, as `bench/meaning/distil.py` wrote it.
#[derive(Clone, Copy)]
struct Table {
    /// Where each piece begins in `texts`, and the end of the last.
    starts: &'static [[u8; 4]],
    /// What a step of each piece's coordinates is.
    scales: &'static [[u8; 4]],
    /// Coordinates in 4 bits, the even one low; 8 is zero.
    packed: &'static [[u8; WIDTH / 2]],
    /// In order of bytes.
    texts: &'static [u8],
}

impl Table {
    /// Slices of the program; nothing is loaded or made.
    fn built_in() -> Self {
        let (count, rest) = FILE.split_at(4);
        let count = u32::from_le_bytes([count[0], count[1], count[2], count[3]]) as usize;
        let (starts, rest) = rest.split_at((count + 1) * 4);
        let (scales, rest) = rest.split_at(count * 4);
        let (packed, texts) = rest.split_at(count * WIDTH / 2);
        Self {
            starts: starts.as_chunks().0,
            scales: scales.as_chunks().0,
            packed: packed.as_chunks().0,
            texts,
        }
    }

    /// The pieces of a word, the longest first taken from its start. Nothing if some of it is in no piece, or if what is left
    /// of it is mere letters: those mean something else each. A number or a name with one means nothing near another.
    fn pieces(&self, word: &str) -> Option<Vec<usize>> {
        if word.contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let mut pieces = Vec::new();
        let mut rest = word.as_bytes();
        let mut key = Vec::with_capacity(LONGEST);
        while !rest.is_empty() {
            let goes_on: &[u8] = if pieces.is_empty() { b"" } else { b"##" };
            key.clear();
            key.extend_from_slice(goes_on);
            key.extend_from_slice(&rest[..rest.len().min(LONGEST - goes_on.len())]);
            let piece = self.longest(&key, goes_on.len())?;
            pieces.push(piece);
            rest = &rest[self.text(piece).len() - goes_on.len()..];
        }
        (pieces.len() * LETTERS <= word.len() * 2).then_some(pieces)
    }

    /// The longest piece that `key` begins with, of more than `least` bytes. The greatest piece that is not after the key is
    /// it, or shares with the key as much as it could have.
    fn longest(&self, mut key: &[u8], least: usize) -> Option<usize> {
        while key.len() > least {
            let piece = self.until(key).checked_sub(1)?;
            let text = self.text(piece);
            let shared = text.iter().zip(key).take_while(|(a, b)| a == b).count();
            if shared == text.len() {
                return (shared > least).then_some(piece);
            }
            key = &key[..shared];
        }
        None
    }

    /// How many pieces are not after this text.
    fn until(&self, text: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.scales.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.text(middle) <= text {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn text(&self, piece: usize) -> &'static [u8] {
        let start = u32::from_le_bytes(self.starts[piece]) as usize;
        &self.texts[start..u32::from_le_bytes(self.starts[piece + 1]) as usize]
    }

    fn add_to(&self, coordinates: &mut [f32; WIDTH], piece: usize, weight: f32) {
        let step = f32::from_le_bytes(self.scales[piece]) * weight;
        for (pair, packed) in coordinates.as_chunks_mut::<2>().0.iter_mut().zip(self.packed[piece]) {
            pair[0] += (f32::from(packed & 15) - 8.0) * step;
            pair[1] += (f32::from(packed >> 4) - 8.0) * step;
        }
    }
}

const FILE: &[u8] = include_bytes!("../../data/meaning.bin");
/// The longest piece.
const LONGEST: usize = 18;
/// Letters of a piece, on average and doubled, below which a word is not understood.
const LETTERS: usize = 5;
/// As much of a text as counts: more of it is about everything.
const BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &str, b: &str) -> f32 {
        let (a, b) = (of_query(a).unwrap(), of_query(b).unwrap());
        nearness(&a, &b.map(i8::cast_unsigned))
    }

    #[test]
    fn the_file_is_whole_and_in_order() {
        let table = Table::built_in();
        assert_eq!(table.packed.len(), table.scales.len());
        assert_eq!(u32::from_le_bytes(*table.starts.last().unwrap()) as usize, table.texts.len());
        let all: Vec<&[u8]> = (0..table.scales.len()).map(|piece| table.text(piece)).collect();
        assert!(all.is_sorted() && all.len() > 20_000);
        assert_eq!(all.iter().map(|piece| piece.len()).max(), Some(LONGEST));
        assert!(table.scales.iter().all(|scale| f32::from_le_bytes(*scale) > 0.0));
    }

    #[test]
    fn words_are_taken_apart_from_their_start() {
        let table = Table::built_in();
        let pieces = |word: &str| {
            let found = table.pieces(word)?;
            Some(found.into_iter().map(|p| str::from_utf8(table.text(p)).unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(pieces("database"), Some(vec!["database"]));
        assert_eq!(pieces("failovers"), Some(vec!["fail", "##overs"]));
        for word in ["internationalization", "misconfigured", "kubernetes", "antidisestablishmentarianism"] {
            let longest = |from: usize| {
                let piece =
                    |to| if from > 0 { format!("##{}", &word[from..to]) } else { word[..to].to_owned() };
                let there =
                    |to: &usize| (0..table.scales.len()).any(|p| table.text(p) == piece(*to).as_bytes());
                (from + 1..=word.len()).rev().find(there)
            };
            let mut ends = vec![0];
            while let Some(end) = longest(*ends.last().unwrap()) {
                ends.push(end);
            }
            let lengths = |found: Vec<&str>| {
                found
                    .iter()
                    .scan(0, |at, piece| {
                        *at += piece.trim_start_matches("##").len();
                        Some(*at)
                    })
                    .collect::<Vec<usize>>()
            };
            if let Some(found) = pieces(word) {
                assert_eq!(lengths(found), ends[1..], "{word}");
            }
        }
        assert_eq!(pieces("xqzvw"), None, "mere letters");
        assert_eq!(pieces("number12"), None);
        assert_eq!(pieces("数据"), None);
        assert_eq!(pieces("naïve"), None, "it is folded before");
    }

    #[test]
    fn alike_texts_are_near() {
        assert!(
            near("signing in", "login to an account") > near("signing in", "the weather in Lisbon") + 0.1
        );
        assert!(
            near("the cache server died", "redis crashed") > near("the cache server died", "holiday plans")
        );
        assert!(near("Naïve café", "naive cafe") > 0.99);
        assert!(near("resize_images", "ResizeImages") > 0.99);
    }

    #[test]
    fn what_has_no_place_is_near_to_nothing() {
        for text in ["", " \n", "the of and", "数据库", "???"] {
            assert_eq!(of_query(text), None, "{text}");
        }
        let nothing = of_card(&Card::default());
        assert_eq!(nothing, NOWHERE);
        assert!(nearness(&of_query("storage").unwrap(), &nothing.map(i8::cast_unsigned)).abs() < 1e-6);
        assert!(of_query(&"word ".repeat(50_000)).is_some());
        assert_eq!(of_query(&"x".repeat(1_000_000)), None);
    }
}
