//! The last word on order: neighbouring context and meaning, mixed into BM25 in measured proportion.
//!
//! `bench/results/SEARCH.md` has the measurements behind the constants.

use std::collections::HashSet;
use std::io;

use super::meaning::{self, Vector};
use super::search::{Asked, Candidate, Place, Snapshot, Top, tail_candidate};
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
    meaning: Option<&Vector>,
    mix: Mix,
    source: &dyn Source,
) -> io::Result<Vec<Candidate>> {
    lend(&mut found, mix.neighbour, source);
    if let Some(meaning) = meaning {
        // Where no word is found, meaning has nothing to be weighed against.
        let best = found.iter().map(|candidate| candidate.score).reduce(f32::max).unwrap_or(1.0);
        add_near(snapshot, asked, &mut found, meaning)?;
        for candidate in &mut found {
            let near = nearness(snapshot, candidate.place, meaning)?.max(0.0);
            candidate.score += mix.meaning * best * near;
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
    meaning: &Vector,
) -> io::Result<()> {
    let known: HashSet<u64> = found.iter().map(|candidate| candidate.id).collect();
    let wanted = vectors::sketch(meaning);
    let mut near = Top::new(NEAR);
    let mut left = SKETCHES;
    for (i, segment) in snapshot.segments.iter().enumerate().rev() {
        let documents = segment.info.documents as usize;
        if documents > left {
            continue;
        }
        left -= documents;
        let filter = asked.filter(segment)?;
        // Candidates are made for those only that get in: most rows cost nothing but the count.
        let mut bar = u32::MAX;
        for (row, sketch) in (0..).zip(segment.vectors.sketches()?) {
            let apart = vectors::apart(sketch, &wanted);
            if apart < bar && filter.takes(row) {
                near.offer(segment.candidate(i, row, -(apart as f32)));
                bar = near.bar().map_or(u32::MAX, |worst| (-worst) as u32);
            }
        }
    }
    for (i, row) in snapshot.tail.rows.iter().enumerate().filter(|(_, row)| asked.takes_row(row)) {
        let apart = vectors::apart(&vectors::sketch(&row.vector), &wanted);
        near.offer(tail_candidate(i, row, -(apart as f32)));
    }
    for candidate in near.into_sorted().into_iter().filter(|candidate| !known.contains(&candidate.id)) {
        if nearness(snapshot, candidate.place, meaning)? >= CLEARLY {
            found.push(Candidate { score: 0.0, ..candidate });
        }
    }
    Ok(())
}

fn nearness(snapshot: &Snapshot, place: Place, meaning: &Vector) -> io::Result<f32> {
    Ok(match place {
        Place::Segment(i, row) => {
            meaning::nearness(meaning, snapshot.segments[i].vectors.get(row)?.as_slice())
        }
        Place::Tail(i) => meaning::nearness(meaning, &snapshot.tail.rows[i].vector.map(i8::cast_unsigned)),
    })
}

/// Half an hour, in milliseconds.
const BESIDE: u64 = 30 * 60 * 1000;
/// Cards that are looked at for their meaning alone.
const NEAR: usize = 64;
/// Sketches that are looked at, newest segments first; 16 bytes each in memory.
const SKETCHES: usize = 1_000_000;
/// Below this, two texts have nothing in common.
const CLEARLY: f32 = 0.35;
