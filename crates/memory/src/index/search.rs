//! One search over one consistent view: find candidates, weigh them, put them in order.
//!
//! Candidates are the best by BM25 times recency: a block of a list is skipped only where no card in it could still get in,
//! as far as tantivy's bound of the block holds under our statistics. Filters on tags and time are sets of rows. What the
//! truth no longer has is left out by the caller, at the very end.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;

use tantivy::postings::Postings as _;
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocSet as _, TERMINATED, Term};

use super::plan::Plan;
use super::rank::{self, Mix};
use super::segment::Segment;
use super::tail::{Row, Tail};
use super::{Query, Source, meaning, words};

/// Everything there is at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) tail: Arc<Tail>,
}

/// What a search found.
#[derive(Debug)]
pub(super) struct Found {
    /// Best first.
    pub(super) candidates: Vec<Candidate>,
    /// Whether there are no others.
    pub(super) all: bool,
}

/// A card that may be an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) score: f32,
    pub(super) at: i64,
    pub(super) id: u64,
    pub(super) session: u64,
    pub(super) place: Place,
    /// Its passage that is nearest in meaning.
    pub(super) passage: Option<u32>,
}

/// Where a card is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Segment and row.
    Segment(usize, u32),
    /// Row of the tail.
    Tail(usize),
}

impl Eq for Candidate {}

/// Better is greater: by score, then newer first.
impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then((self.at, self.id).cmp(&(other.at, other.id)))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Snapshot {
    /// The best candidates for a query, best first, and `spare` more than it asks for.
    pub(super) fn search(
        &self,
        query: &Query,
        mix: Mix,
        spare: usize,
        source: &dyn Source,
    ) -> tantivy::Result<Found> {
        let wanted = query.offset.saturating_add(query.limit).min(DEEPEST) + spare;
        let asked = Asked::new(query, mix.recency);
        if query.text.trim().is_empty() {
            let candidates = self.newest(&asked, wanted)?.into_sorted();
            return Ok(Found { all: candidates.len() < wanted, candidates });
        }
        // The same depth for the first pages, so that going on to the next one does not reorder them.
        let depth = wanted.next_power_of_two().max(CANDIDATES);
        let mut top = Top::new(depth);
        let plan = Plan::new(self, query)?;
        if !plan.terms.is_empty() {
            self.tail_matches(&plan, &asked, &mut top);
            for i in self.newest_first() {
                self.segment_matches(i, &plan, &asked, &mut top)?;
            }
        }
        let meaning = meaning::of_query(&query.text).filter(|_| mix.meaning > 0.0);
        let found = top.into_sorted();
        let all = found.len() < depth;
        Ok(Found { candidates: rank::rank(self, &asked, found, meaning.as_ref(), mix, source)?, all })
    }

    /// Segments, the one with the latest cards first: they raise the bar for the others.
    fn newest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.segments.len()).collect();
        order.sort_by_key(|&i| Reverse(self.segments[i].info.until));
        order
    }

    fn newest(&self, asked: &Asked<'_>, wanted: usize) -> tantivy::Result<Top> {
        let mut top = Top::new(wanted);
        for (i, row) in self.tail.rows.iter().enumerate().filter(|(_, row)| asked.takes_row(row)) {
            top.offer(tail_candidate(i, row, 0.0));
        }
        for i in self.newest_first() {
            let segment = &self.segments[i];
            if top.floor().is_some_and(|floor| floor.at > segment.info.until) {
                break;
            }
            let filter = asked.filter(segment)?;
            filter.each(segment.info.documents, |row| {
                let at = segment.times.get_val(row);
                if top.floor().is_none_or(|floor| floor.at <= at) {
                    top.offer(segment.candidate(i, row, 0.0));
                }
            });
        }
        Ok(top)
    }

    fn tail_matches(&self, plan: &Plan, asked: &Asked<'_>, top: &mut Top) {
        let mut scores = vec![0.0_f32; self.tail.rows.len()];
        for term in &plan.terms {
            for &(row, count) in self.tail.list(&term.text) {
                let row = row as usize;
                scores[row] += term.score.score(self.tail.rows[row].length, count);
            }
        }
        for (i, row) in self.tail.rows.iter().enumerate() {
            if scores[i] > 0.0 && asked.takes_row(row) {
                top.offer(tail_candidate(i, row, scores[i] * asked.recency(row.at)));
            }
        }
    }

    fn segment_matches(
        &self,
        i: usize,
        plan: &Plan,
        asked: &Asked<'_>,
        top: &mut Top,
    ) -> tantivy::Result<()> {
        let segment = &self.segments[i];
        let filter = asked.filter(segment)?;
        if let Filter::Rows(rows, count) = &filter {
            if *count == 0 {
                return Ok(());
            }
            if count * FEW < segment.info.documents as usize {
                return Self::few_matches(segment, i, plan, asked, rows, top);
            }
        }
        // No card of this segment gains more than this from being new.
        let gain = asked.recency(segment.info.until);
        let bar = |top: &Top| top.floor().map_or(0.0, |floor| floor.score / gain * BELOW);
        let mut each = |row, score: f32| {
            if filter.takes(row) {
                let score = score * asked.recency(segment.times.get_val(row));
                if top.floor().is_none_or(|floor| floor.score <= score) {
                    top.offer(segment.candidate(i, row, score));
                }
            }
            bar(top)
        };
        let start = each(TERMINATED, 0.0);
        plan.weight(segment)?.for_each_pruning(start, segment.reader(), &mut each)
    }

    /// Where a filter leaves few rows, these are looked up instead of everything that matches.
    fn few_matches(
        segment: &Segment,
        i: usize,
        plan: &Plan,
        asked: &Asked<'_>,
        rows: &BitSet,
        top: &mut Top,
    ) -> tantivy::Result<()> {
        let rows: Vec<u32> = (0..segment.info.documents).filter(|&row| rows.contains(row)).collect();
        let lengths = segment.reader().get_fieldnorms_reader(segment.fields.words)?;
        let mut scores = vec![0.0_f32; rows.len()];
        for planned in &plan.terms {
            let term = Term::from_field_text(segment.fields.words, &planned.text);
            let Some(mut list) = segment.words.read_postings(&term, IndexRecordOption::WithFreqs)? else {
                continue;
            };
            for (score, &row) in scores.iter_mut().zip(&rows) {
                if list.doc() < row {
                    list.seek(row);
                }
                if list.doc() == row {
                    *score += planned.score.score(lengths.fieldnorm_id(row), list.term_freq());
                }
            }
        }
        for (&row, score) in rows.iter().zip(scores) {
            if score > 0.0 {
                top.offer(segment.candidate(i, row, score * asked.recency(segment.times.get_val(row))));
            }
        }
        Ok(())
    }
}

pub(super) fn tail_candidate(i: usize, row: &Row, score: f32) -> Candidate {
    Candidate { score, at: row.at, id: row.id, session: row.session, place: Place::Tail(i), passage: None }
}

impl Segment {
    pub(super) fn candidate(&self, i: usize, row: u32, score: f32) -> Candidate {
        Candidate {
            score,
            at: self.times.get_val(row),
            id: self.ids.get_val(row),
            session: self.sessions.get_val(row),
            place: Place::Segment(i, row),
            passage: None,
        }
    }
}

/// The exact part of a query.
pub(super) struct Asked<'a> {
    query: &'a Query,
    tags: Vec<String>,
    newest: f32,
}

impl<'a> Asked<'a> {
    fn new(query: &'a Query, newest: f32) -> Self {
        Self { query, newest, tags: query.tags.iter().take(TAGS).map(|tag| words::tag_term(tag)).collect() }
    }

    /// What a card gains from being new: a little, and half as much with every [`HALF_LIFE`].
    pub(super) fn recency(&self, at: i64) -> f32 {
        let age = self.query.now.saturating_sub(at).max(0) as f32;
        1.0 + self.newest * (-age / HALF_LIFE).exp2()
    }

    fn takes_time(&self, at: i64) -> bool {
        self.query.from.is_none_or(|from| from <= at) && self.query.until.is_none_or(|until| at < until)
    }

    pub(super) fn takes_row(&self, row: &Row) -> bool {
        self.takes_time(row.at) && self.query.tags.iter().all(|tag| row.tags.contains(tag))
    }

    /// The rows of a segment that have the tags and are in the time range.
    pub(super) fn filter(&self, segment: &Segment) -> io::Result<Filter> {
        let info = &segment.info;
        let (from, until) = (self.query.from.unwrap_or(i64::MIN), self.query.until.unwrap_or(i64::MAX));
        if info.until < from || info.from >= until && self.query.until.is_some() {
            return Ok(Filter::Rows(BitSet::with_max_value(0), 0));
        }
        let always = self.takes_time(info.from) && self.takes_time(info.until);
        if always && self.tags.is_empty() {
            return Ok(Filter::All);
        }
        let mut rows: Option<BitSet> = None;
        for tag in &self.tags {
            let mut with = BitSet::with_max_value(info.documents);
            let term = Term::from_field_text(segment.fields.tags, tag);
            if let Some(mut list) = segment.tags.read_postings(&term, IndexRecordOption::Basic)? {
                let mut row = list.doc();
                while row != TERMINATED {
                    if rows.as_ref().is_none_or(|rows| rows.contains(row)) {
                        with.insert(row);
                    }
                    row = list.advance();
                }
            }
            rows = Some(with);
        }
        if !always {
            let mut within = BitSet::with_max_value(info.documents);
            for row in 0..info.documents {
                let tagged = rows.as_ref().is_none_or(|rows| rows.contains(row));
                if tagged && self.takes_time(segment.times.get_val(row)) {
                    within.insert(row);
                }
            }
            rows = Some(within);
        }
        Ok(rows.map_or(Filter::All, |rows| {
            let count = rows.len();
            Filter::Rows(rows, count)
        }))
    }
}

/// Rows of a segment.
pub(super) enum Filter {
    All,
    /// These, and how many they are.
    Rows(BitSet, usize),
}

impl Filter {
    pub(super) fn takes(&self, row: u32) -> bool {
        match self {
            Self::All => row != TERMINATED,
            Self::Rows(rows, _) => row < rows.max_value() && rows.contains(row),
        }
    }

    /// Calls `each` with every row, the last first: that is mostly the newest, and those after it need not be kept.
    fn each(&self, documents: u32, mut each: impl FnMut(u32)) {
        for row in (0..documents).rev().filter(|&row| self.takes(row)) {
            each(row);
        }
    }
}

/// The best of many.
pub(super) struct Top {
    best: BinaryHeap<Reverse<Candidate>>,
    most: usize,
}

impl Top {
    pub(super) fn new(most: usize) -> Self {
        Self { best: BinaryHeap::new(), most: most.max(1) }
    }

    pub(super) fn offer(&mut self, candidate: Candidate) {
        if self.best.len() < self.most {
            self.best.push(Reverse(candidate));
        } else if let Some(mut worst) = self.best.peek_mut()
            && worst.0 < candidate
        {
            *worst = Reverse(candidate);
        }
    }

    /// The worst of them, once they are as many as are wanted: what is worse need not be offered.
    fn floor(&self) -> Option<&Candidate> {
        (self.best.len() >= self.most).then(|| self.best.peek()).flatten().map(|Reverse(worst)| worst)
    }

    pub(super) fn into_sorted(self) -> Vec<Candidate> {
        self.best.into_sorted_vec().into_iter().map(|Reverse(candidate)| candidate).collect()
    }
}

/// Candidates that are weighed beyond BM25.
const CANDIDATES: usize = 256;
/// Nobody pages further than this.
const DEEPEST: usize = 10_000;
const TAGS: usize = 64;
/// A filter that leaves less than one in so many rows is followed, not checked.
const FEW: usize = 12;
/// Keeps what is just as good as the worst, in spite of rounding.
const BELOW: f32 = 0.999_99;
/// 30 days, in milliseconds.
const HALF_LIFE: f32 = 30.0 * 24.0 * 3600.0 * 1000.0;
