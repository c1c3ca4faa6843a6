//! Places in meaning, of the cards of a segment: sealed with it, in the same order.
//!
//! The sketch of a place is one bit a coordinate (its sign). Sketches are small enough to look at all of them; the places of
//! the nearest few are then read from the sealed container and compared exactly.

use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tantivy::directory::OwnedBytes;

use super::container::{Container, Damaged, Parts};
use super::meaning::{Vector, WIDTH};

/// The signs of a place's coordinates.
pub(super) type Sketch = [u64; WIDTH / 64];

/// The sketch of a place.
pub(super) fn sketch(vector: &Vector) -> Sketch {
    let mut words = Sketch::default();
    for (i, &value) in vector.iter().enumerate() {
        words[i / 64] |= u64::from(value > 0) << (i % 64);
    }
    words
}

/// In how many signs two sketches differ.
pub(super) fn apart(a: &Sketch, b: &Sketch) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// The parts of a container that hold these places.
pub(super) fn parts(vectors: &[Vector]) -> Parts {
    let exact: Vec<u8> = vectors.iter().flatten().map(|v| v.cast_unsigned()).collect();
    let signs: Vec<u8> = vectors.iter().flat_map(sketch).flat_map(u64::to_le_bytes).collect();
    vec![(VECTORS.to_owned(), OwnedBytes::new(exact)), (SKETCHES.to_owned(), OwnedBytes::new(signs))]
}

/// The parts of a container that hold the places of these rows of these segments.
pub(super) fn merged(segments: &[&Vectors], rows: &[(usize, u32)]) -> io::Result<Parts> {
    let mut all = Vec::with_capacity(segments.len());
    for segment in segments {
        all.push(segment.container.read(segment.exact.clone())?);
    }
    let vector = |&(segment, row): &(usize, u32)| {
        let places: &[[u8; WIDTH]] = all[segment].as_slice().as_chunks().0;
        places[row as usize].map(u8::cast_signed)
    };
    Ok(parts(&rows.iter().map(vector).collect::<Vec<Vector>>()))
}

/// The places of an open segment.
pub(super) struct Vectors {
    container: Arc<Container>,
    exact: Range<u64>,
    signs: Range<u64>,
    /// All sketches, once somebody looked for meaning.
    sketches: OnceLock<Vec<Sketch>>,
}

impl Vectors {
    /// The places in a container of so many rows.
    pub(super) fn open(container: Arc<Container>, rows: u32) -> io::Result<Self> {
        let part = |name, width: usize| {
            let part = container.part(name).unwrap_or(0..0);
            (part.end - part.start == u64::from(rows) * width as u64).then_some(part).ok_or(Damaged)
        };
        let (exact, signs) = (part(VECTORS, WIDTH)?, part(SKETCHES, WIDTH / 8)?);
        Ok(Self { container, exact, signs, sketches: OnceLock::new() })
    }

    /// The place of a row.
    pub(super) fn get(&self, row: u32) -> io::Result<OwnedBytes> {
        let start = self.exact.start + u64::from(row) * WIDTH as u64;
        self.container.read(start..start + WIDTH as u64)
    }

    /// All sketches, one a row.
    pub(super) fn sketches(&self) -> io::Result<&[Sketch]> {
        if let Some(sketches) = self.sketches.get() {
            return Ok(sketches);
        }
        let bytes = self.container.read(self.signs.clone())?;
        let words: &[[u8; 8]] = bytes.as_slice().as_chunks().0;
        let sketches = words.as_chunks().0.iter().map(|words: &[[u8; 8]; _]| words.map(u64::from_le_bytes));
        Ok(self.sketches.get_or_init(|| sketches.collect()))
    }
}

const VECTORS: &str = "vectors";
const SKETCHES: &str = "sketches";
