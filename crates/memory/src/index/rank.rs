//! The last word on order: neighbouring context and meaning, mixed into BM25.
//!
//! `bench/results/SEARCH.md` has the measurements behind the constants, and says which of them is a guess.

use std::collections::HashSet;
use std::io;

use super::meaning::Vector;
use super::search::{Asked, Candidate, Snapshot};
use super::{Source, near};

/// What is mixed into BM25, and how much of it. For measurements.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Of the better neighbour's score, what a card in the same session gains.
    pub neighbour: f32,
    /// What being alike in meaning weighs against the best card's words.
    pub meaning: f32,
    /// What the nearest passage of a session weighs against the best card's words.
    pub passage: f32,
    /// What the newest card gains over an old one.
    pub recency: f32,
}

impl Default for Mix {
    fn default() -> Self {
        Self { neighbour: 0.1, meaning: 1.0, passage: 1.0, recency: 0.1 }
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
        let known: HashSet<u64> = found.iter().map(|candidate| candidate.id).collect();
        found.extend(near::nearest(snapshot, asked, &known, meaning, source)?);
        // Passages are read of those that may still be among the first.
        found.sort_unstable_by(|a, b| b.cmp(a));
        for (at, candidate) in found.iter_mut().enumerate() {
            let near = near::nearness(snapshot, candidate.place, meaning)?;
            candidate.score += mix.meaning * best * near.max(0.0);
            if at < WITH_PASSAGES
                && let Some((near, passage)) = near::passage(snapshot, candidate.place, meaning)?
            {
                candidate.score += mix.passage * best * near.max(0.0);
                candidate.passage = (near >= near::CLEARLY).then_some(passage);
            }
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

/// Candidates whose passages are looked at.
const WITH_PASSAGES: usize = 64;
/// Half an hour, in milliseconds.
const BESIDE: u64 = 30 * 60 * 1000;
