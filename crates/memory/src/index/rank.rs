//! The last word on order: neighbouring context and meaning, mixed into BM25 in measured proportion.
//!
//! `bench/results/SEARCH.md` has the measurements behind the constants.

use std::collections::HashSet;
use std::io;

use super::search::{Asked, Candidate, Place, Snapshot, Top};
use super::{Source, vectors};

/// What is mixed into BM25, and how much of it. For measurements; the default is what was measured to be best.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Of the better neighbour's score, what a card in the same session gains.
    pub neighbour: f32,
    /// What being alike in meaning weighs against the best card's words.
    pub meaning: f32,
    /// What the newest card gains over an old one.
    pub recency: f32,
}

impl Default for Mix {
    fn default() -> Self {
        Self { neighbour: 0.1, meaning: 1.0, recency: 0.1 }
    }
}

/// Puts candidates in their final order, with those added that are near in meaning.
pub(super) fn rank(
    snapshot: &Snapshot,
    asked: &Asked<'_>,
    mut found: Vec<Candidate>,
    meaning: Option<&[i8]>,
    mix: Mix,
    source: &dyn Source,
) -> io::Result<Vec<Candidate>> {
    lend(&mut found, mix.neighbour, source);
    if let Some(meaning) = meaning {
        let best = found.iter().map(|candidate| candidate.score).fold(f32::MIN_POSITIVE, f32::max);
        for candidate in &mut found {
            candidate.score /= best;
        }
        add_near(snapshot, asked, &mut found, meaning)?;
        for candidate in &mut found {
            candidate.score += mix.meaning * nearness(snapshot, candidate.place, meaning)?.max(0.0);
        }
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    Ok(found)
}

/// A card gains from the card before or after it in the same session, if not much time lies between: what was said just
/// then is about the same. What the truth no longer has lends nothing: mostly it is the same card as it was before.
fn lend(found: &mut [Candidate], share: f32, source: &dyn Source) {
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_unstable_by_key(|&i| (found[i].session, found[i].id));
    let beside = order.chunk_by(|&a, &b| found[a].session == found[b].session).filter(|some| some.len() > 1);
    let beside: Vec<u64> = beside.flatten().map(|&i| found[i].id).collect();
    if beside.is_empty() {
        return;
    }
    // A truth that does not answer is met again when its rows are read.
    let live: HashSet<u64> = source.live(&beside).unwrap_or_default().into_iter().collect();
    order.retain(|&i| live.contains(&found[i].id));
    let gain = |me: usize, other: Option<&usize>| match other {
        Some(&other)
            if found[other].session == found[me].session
                && found[other].at.abs_diff(found[me].at) <= BESIDE =>
        {
            found[other].score
        }
        _ => 0.0,
    };
    let gains: Vec<(usize, f32)> = order
        .iter()
        .enumerate()
        .map(|(place, &me)| {
            let before = place.checked_sub(1).and_then(|before| order.get(before));
            (me, share * gain(me, before).max(gain(me, order.get(place + 1))))
        })
        .collect();
    for (i, gain) in gains {
        found[i].score += gain;
    }
}

/// Adds the cards that are nearest in meaning, whatever their words.
fn add_near(
    snapshot: &Snapshot,
    asked: &Asked<'_>,
    found: &mut Vec<Candidate>,
    meaning: &[i8],
) -> io::Result<()> {
    let known: HashSet<u64> = found.iter().map(|candidate| candidate.id).collect();
    let wanted = vectors::sketch(meaning.iter().copied());
    let mut near = Top::new(NEAR);
    let mut left = SKETCHES;
    for (i, segment) in snapshot.segments.iter().enumerate().rev() {
        let documents = segment.info.documents as usize;
        if segment.vectors.width != meaning.len() || documents > left {
            continue;
        }
        left -= documents;
        let filter = asked.filter(segment)?;
        // Candidates are made for those only that get in: most rows cost nothing but the count.
        let mut bar = u32::MAX;
        for (row, sketch) in (0..).zip(segment.vectors.sketches()?.chunks_exact(wanted.len().max(1))) {
            let apart: u32 = sketch.iter().zip(&wanted).map(|(a, b)| (a ^ b).count_ones()).sum();
            if apart < bar && filter.takes(row) {
                near.offer(segment.candidate(i, row, -(apart as f32)));
                bar = near.bar().map_or(u32::MAX, |worst| (-worst) as u32);
            }
        }
    }
    for (i, row) in snapshot.tail.rows.iter().enumerate() {
        if let Some(vector) = row.vector.as_ref().filter(|vector| vector.len() == meaning.len())
            && asked.takes_row(row)
        {
            let sketch = vectors::sketch(vector.iter().copied());
            let apart: u32 = sketch.iter().zip(&wanted).map(|(a, b)| (a ^ b).count_ones()).sum();
            near.offer(Candidate {
                score: -(apart as f32),
                at: row.at,
                id: row.id,
                session: row.session,
                place: Place::Tail(i),
            });
        }
    }
    for candidate in near.into_sorted().into_iter().filter(|candidate| !known.contains(&candidate.id)) {
        if nearness(snapshot, candidate.place, meaning)? >= CLEARLY {
            found.push(Candidate { score: 0.0, ..candidate });
        }
    }
    Ok(())
}

fn nearness(snapshot: &Snapshot, place: Place, meaning: &[i8]) -> io::Result<f32> {
    Ok(match place {
        Place::Segment(i, row) if snapshot.segments[i].vectors.width == meaning.len() => {
            vectors::nearness(meaning, snapshot.segments[i].vectors.get(row)?.as_slice())
        }
        Place::Tail(i) => snapshot.tail.rows[i].vector.as_ref().map_or(0.0, |vector| {
            let bytes: Vec<u8> = vector.iter().map(|v| v.cast_unsigned()).collect();
            vectors::nearness(meaning, &bytes)
        }),
        Place::Segment(..) => 0.0,
    })
}

/// Half an hour, in milliseconds.
const BESIDE: u64 = 30 * 60 * 1000;
/// Cards that are looked at for their meaning alone.
const NEAR: usize = 64;
/// Sketches that are looked at, newest segments first; 48 bytes each in memory.
const SKETCHES: usize = 250_000;
/// Below this, two texts have nothing in common.
const CLEARLY: f32 = 0.25;
