//! Places in meaning: vectors of cards beside their segment, and the encoder that makes them.
//!
//! A vector is a unit vector in `i8`; its sketch is one bit a coordinate (its sign). Sketches are small enough to look at
//! all of them; the vectors of the nearest few are then read from the sealed container and compared exactly.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tantivy::directory::OwnedBytes;

use super::container::{Container, Damaged, Parts};
use crate::Result;

/// Makes vectors of texts. Vectors of different encoders must never meet in one index.
pub trait Encoder: Send + Sync + std::fmt::Debug {
    /// The place of a text in meaning, as a quantised unit vector; nothing for a text that has none.
    fn encode(&self, text: &str) -> Result<Option<Vec<i8>>>;
}

/// A unit vector in `i8`: 127 times each coordinate.
#[must_use]
pub fn quantise(vector: &[f32]) -> Vec<i8> {
    let norm = vector.iter().map(|v| v * v).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a coordinate of a unit vector is within -127 and 127"
    )]
    let small = |v: &f32| (v / norm * 127.0).round().clamp(-127.0, 127.0) as i8;
    vector.iter().map(small).collect()
}

/// How near two quantised vectors are, from -1 to 1; 0 if they are of different lengths.
pub(super) fn nearness(a: &[i8], b: &[u8]) -> f32 {
    if a.len() != b.len() {
        return 0.0;
    }
    let product: i32 = a.iter().zip(b).map(|(&a, &b)| i32::from(a) * i32::from(b.cast_signed())).sum();
    product as f32 / (127.0 * 127.0)
}

/// The signs of a vector's coordinates.
pub(super) fn sketch(vector: impl Iterator<Item = i8>) -> Vec<u64> {
    let mut words = Vec::new();
    for (i, value) in vector.enumerate() {
        if i % 64 == 0 {
            words.push(0);
        }
        if let Some(word) = words.last_mut() {
            *word |= u64::from(value > 0) << (i % 64);
        }
    }
    words
}

/// The parts of a container that hold these vectors; none if there is none. A document without one has zeros, which are
/// near to nothing.
pub(super) fn parts<'a>(vectors: impl Iterator<Item = Option<&'a [i8]>> + Clone, count: usize) -> Parts {
    // One width a segment: that of most of them. A vector of another one is from another encoder.
    let mut widths: BTreeMap<usize, usize> = BTreeMap::new();
    for len in vectors.clone().flatten().map(<[i8]>::len).filter(|&len| len > 0 && len <= WIDEST) {
        *widths.entry(len).or_default() += 1;
    }
    let Some((width, _)) = widths.into_iter().max_by_key(|&(width, count)| (count, width)) else {
        return Parts::new();
    };
    let mut exact = Vec::with_capacity(count * width);
    let mut signs = Vec::with_capacity(count * width.div_ceil(64) * 8);
    for vector in vectors {
        match vector.filter(|vector| vector.len() == width) {
            Some(vector) => {
                exact.extend(vector.iter().map(|v| v.cast_unsigned()));
                signs.extend(sketch(vector.iter().copied()).iter().flat_map(|word| word.to_le_bytes()));
            }
            None => {
                exact.resize(exact.len() + width, 0);
                signs.resize(signs.len() + width.div_ceil(64) * 8, 0);
            }
        }
    }
    vec![(VECTORS.to_owned(), OwnedBytes::new(exact)), (SKETCHES.to_owned(), OwnedBytes::new(signs))]
}

/// The parts of a container that hold the vectors of these rows of these segments.
pub(super) fn merged(segments: &[&Vectors], rows: &[(usize, u32)]) -> io::Result<Parts> {
    let mut all = Vec::with_capacity(segments.len());
    for segment in segments {
        all.push(segment.container.read(segment.exact.clone())?);
    }
    let vector = |&(segment, row): &(usize, u32)| {
        let width = segments[segment].width;
        let start = row as usize * width;
        let bytes = &all[segment].as_slice()[start..start + width];
        (width > 0).then(|| bytes.iter().map(|b| b.cast_signed()).collect::<Vec<i8>>())
    };
    let vectors: Vec<Option<Vec<i8>>> = rows.iter().map(vector).collect();
    Ok(parts(vectors.iter().map(Option::as_deref), rows.len()))
}

/// The vectors of an open segment.
pub(super) struct Vectors {
    container: Arc<Container>,
    /// Coordinates of each; 0 without any.
    pub(super) width: usize,
    rows: usize,
    exact: Range<u64>,
    signs: Range<u64>,
    /// All sketches, once somebody looked for meaning.
    sketches: OnceLock<Vec<u64>>,
}

impl Vectors {
    /// The vectors in a container of so many rows.
    pub(super) fn open(container: Arc<Container>, rows: u32) -> io::Result<Self> {
        let exact = container.part(VECTORS).unwrap_or(0..0);
        let signs = container.part(SKETCHES).unwrap_or(0..0);
        let len = exact.end - exact.start;
        let width = usize::try_from(len / u64::from(rows.max(1))).map_err(|_| Damaged)?;
        if width > WIDEST || len != width as u64 * u64::from(rows) {
            return Err(Damaged.into());
        }
        Ok(Self { container, width, rows: rows as usize, exact, signs, sketches: OnceLock::new() })
    }

    /// The vector of a row.
    pub(super) fn get(&self, row: u32) -> io::Result<OwnedBytes> {
        let start = self.exact.start + u64::from(row) * self.width as u64;
        self.container.read(start..start + self.width as u64)
    }

    /// All sketches, `width / 64` words a row.
    pub(super) fn sketches(&self) -> io::Result<&[u64]> {
        if let Some(sketches) = self.sketches.get() {
            return Ok(sketches);
        }
        let bytes = self.container.read(self.signs.clone())?;
        let (words, rest) = bytes.as_slice().as_chunks::<8>();
        if !rest.is_empty() || words.len() != self.rows * self.width.div_ceil(64) {
            return Err(Damaged.into());
        }
        Ok(self.sketches.get_or_init(|| words.iter().map(|word| u64::from_le_bytes(*word)).collect()))
    }
}

const VECTORS: &str = "vectors";
const SKETCHES: &str = "sketches";
/// No encoder makes wider ones.
const WIDEST: usize = 4096;
