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
    let mut merged = parts(&rows.iter().map(vector).collect::<Vec<Vector>>());
    let mut passages = Passages::default();
    for &(segment, row) in rows {
        let places = segments[segment].passages(row)?;
        let places: &[[u8; WIDTH]] = places.as_slice().as_chunks().0;
        passages.push(&places.iter().map(|place| place.map(u8::cast_signed)).collect::<Vec<Vector>>());
    }
    merged.extend(passages.parts());
    Ok(merged)
}

/// Places of the passages of documents that come one after another.
#[derive(Debug, Default)]
pub(super) struct Passages {
    places: Vec<Vector>,
    /// How many there are up to each document.
    ends: Vec<u32>,
}

impl Passages {
    /// Adds those of the next document.
    pub(super) fn push(&mut self, places: &[Vector]) {
        self.places.extend_from_slice(places);
        self.ends.push(u32::try_from(self.places.len()).unwrap_or(u32::MAX));
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The parts of a container that hold them.
    pub(super) fn parts(&self) -> Parts {
        let places: Vec<u8> = self.places.iter().flatten().map(|v| v.cast_unsigned()).collect();
        let ends: Vec<u8> = self.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        vec![(PASSAGES.to_owned(), OwnedBytes::new(places)), (ENDS.to_owned(), OwnedBytes::new(ends))]
    }
}

/// The places of an open segment.
pub(super) struct Vectors {
    container: Arc<Container>,
    exact: Range<u64>,
    signs: Range<u64>,
    passages: Range<u64>,
    ends: Range<u64>,
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
        let ends = part(ENDS, 4)?;
        let passages = container.part(PASSAGES).ok_or(Damaged)?;
        Ok(Self { container, exact, signs, passages, ends, sketches: OnceLock::new() })
    }

    /// The place of a row.
    pub(super) fn get(&self, row: u32) -> io::Result<OwnedBytes> {
        let start = self.exact.start + u64::from(row) * WIDTH as u64;
        self.container.read(start..start + WIDTH as u64)
    }

    /// The places of a row's passages, one after another.
    pub(super) fn passages(&self, row: u32) -> io::Result<OwnedBytes> {
        let at = self.ends.start + u64::from(row) * 4;
        let (from, until) = (at.saturating_sub(4).max(self.ends.start), at + 4);
        let bytes = self.container.read(from..until)?;
        let end = |at: usize| bytes.as_slice()[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        let (first, last) = if row == 0 { (0, end(0)) } else { (end(0), end(4)) };
        let place = |number: u32| self.passages.start + u64::from(number) * WIDTH as u64;
        if first > last || place(last) > self.passages.end {
            return Err(Damaged.into());
        }
        self.container.read(place(first)..place(last))
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
const PASSAGES: &str = "passages";
const ENDS: &str = "passage ends";
