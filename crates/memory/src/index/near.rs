//! The cards that are nearest in meaning, whatever their words.
//!
//! In three steps, each dearer and for fewer: signs against signs for as many as are looked at, which are in memory; the
//! query's exact coordinates against signs; and exact against exact, which is read from the sealed files.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io;

use super::Source;
use super::meaning::{self, Vector, WIDTH};
use super::search::{Asked, Candidate, Place, Snapshot, tail_candidate};
use super::vectors::{self, Sketch};

/// The nearest live cards that are clearly near, nearest first, without those that are `known`. Their score is 0.
pub(super) fn nearest(
    snapshot: &Snapshot,
    asked: &Asked<'_>,
    known: &HashSet<u64>,
    meaning: &Vector,
    source: &dyn Source,
) -> io::Result<Vec<Candidate>> {
    let mut near: Vec<(f32, Candidate)> = Vec::new();
    for (i, row) in by_signs(snapshot, asked, meaning)? {
        let candidate = snapshot.segments[i].candidate(i, row, 0.0);
        near.push((nearness(snapshot, candidate.place, meaning)?, candidate));
    }
    for (i, row) in snapshot.tail.rows.iter().enumerate().filter(|(_, row)| asked.takes_row(row)) {
        near.push((nearness(snapshot, Place::Tail(i), meaning)?, tail_candidate(i, row, 0.0)));
    }
    near.retain(|(near, candidate)| *near >= CLEARLY && !known.contains(&candidate.id));
    near.sort_unstable_by(|(a, one), (b, other)| b.total_cmp(a).then(other.cmp(one)));
    let mut nearest: Vec<Candidate> = Vec::new();
    for some in near.chunks(NEAR) {
        // A session that was stored again and again leaves as many cards alike, all but one of them dead. A truth that does
        // not answer is met again when its rows are read.
        let ids: Vec<u64> = some.iter().map(|(_, candidate)| candidate.id).collect();
        let live: HashSet<u64> = source.live(&ids).unwrap_or_default().into_iter().collect();
        nearest.extend(some.iter().map(|(_, candidate)| candidate).filter(|card| live.contains(&card.id)));
        if nearest.len() >= NEAR {
            break;
        }
    }
    nearest.truncate(NEAR);
    Ok(nearest)
}

/// How near a card is, from -1 to 1.
pub(super) fn nearness(snapshot: &Snapshot, place: Place, meaning: &Vector) -> io::Result<f32> {
    Ok(match place {
        Place::Segment(i, row) => {
            meaning::nearness(meaning, snapshot.segments[i].vectors.get(row)?.as_slice())
        }
        Place::Tail(i) => meaning::nearness(meaning, &snapshot.tail.rows[i].vector.map(i8::cast_unsigned)),
    })
}

/// The nearest passage of a session: how near it is, and which it is.
pub(super) fn passage(snapshot: &Snapshot, place: Place, meaning: &Vector) -> io::Result<Option<(f32, u32)>> {
    let nearest = |places: &mut dyn Iterator<Item = f32>| {
        (0..).zip(places).map(|(at, near)| (near, at)).reduce(|a, b| if b.0 > a.0 { b } else { a })
    };
    Ok(match place {
        Place::Segment(i, row) => {
            let bytes = snapshot.segments[i].vectors.passages(row)?;
            let places: &[[u8; WIDTH]] = bytes.as_slice().as_chunks().0;
            nearest(&mut places.iter().map(|place| meaning::nearness(meaning, place)))
        }
        Place::Tail(i) => {
            let places = &snapshot.tail.rows[i].passages;
            nearest(&mut places.iter().map(|p| meaning::nearness(meaning, &p.map(i8::cast_unsigned))))
        }
    })
}

/// Segments and rows that are worth reading, in their order, so that a page is opened once. Of one session the newest: they
/// stand in for the others, which may be many and alike.
fn by_signs(snapshot: &Snapshot, asked: &Asked<'_>, meaning: &Vector) -> io::Result<Vec<(usize, u32)>> {
    let wanted = vectors::sketch(meaning);
    let mut left = SKETCHES;
    let mut rows: Vec<(u32, Reverse<(usize, u32)>)> = Vec::new();
    let mut bar = u32::MAX;
    for (i, segment) in snapshot.segments.iter().enumerate().rev() {
        let documents = segment.info.documents as usize;
        if documents > left {
            continue;
        }
        left -= documents;
        let filter = asked.filter(segment)?;
        for (row, sketch) in (0..).zip(segment.vectors.sketches()?) {
            let apart = vectors::apart(sketch, &wanted);
            if apart < bar && filter.takes(row) {
                rows.push((apart, Reverse((i, row))));
                if rows.len() >= 2 * BY_SIGNS {
                    rows.select_nth_unstable(BY_SIGNS);
                    bar = rows[BY_SIGNS].0;
                    rows.truncate(BY_SIGNS);
                }
            }
        }
    }
    let mut better: Vec<(i32, Reverse<(usize, u32)>)> = Vec::with_capacity(rows.len());
    let mut of_session: HashMap<u64, usize> = HashMap::new();
    rows.sort_unstable_by_key(|(_, place)| *place);
    for (_, Reverse((i, row))) in rows {
        let seen = of_session.entry(snapshot.segments[i].sessions.get_val(row)).or_default();
        *seen += 1;
        if *seen > OF_SESSION {
            continue;
        }
        let sketch = &snapshot.segments[i].vectors.sketches()?[row as usize];
        better.push((-toward(meaning, sketch), Reverse((i, row))));
    }
    if better.len() > EXACTLY {
        better.select_nth_unstable(EXACTLY);
        better.truncate(EXACTLY);
    }
    let mut places: Vec<(usize, u32)> = better.into_iter().map(|(_, Reverse(place))| place).collect();
    places.sort_unstable();
    Ok(places)
}

/// How far a place goes where signs point.
fn toward(meaning: &Vector, signs: &Sketch) -> i32 {
    let sign = |i: usize| signs[i / 64] >> (i % 64) & 1 == 1;
    meaning.iter().enumerate().map(|(i, &c)| if sign(i) { i32::from(c) } else { -i32::from(c) }).sum()
}

/// Cards that are found by their meaning alone.
const NEAR: usize = 64;
/// Cards whose signs are looked at again, and of those, cards that are read.
const BY_SIGNS: usize = 2048;
const EXACTLY: usize = 256;
/// Cards of one session: one is live, or one of each kind of artifact where both were stored before that was so.
const OF_SESSION: usize = 2;
/// Sketches that are looked at, newest segments first; 16 bytes each in memory.
const SKETCHES: usize = 250_000;
/// Below this, two texts have nothing in common.
pub(super) const CLEARLY: f32 = 0.4;
