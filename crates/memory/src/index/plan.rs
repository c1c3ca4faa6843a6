//! What a query asks for: terms, how much each weighs, and the statistics of everything there is.
//!
//! One set of statistics covers files and tail, so a card scores the same wherever it is. Words that nobody wrote are
//! replaced by their likely spellings; what a query can make us do is bounded by the constants below.

use std::collections::{HashMap, HashSet};
use std::io;

use tantivy::Term;
use tantivy::query::{
    Bm25StatisticsProvider, Bm25Weight, BooleanQuery, BoostQuery, EnableScoring, FuzzyTermQuery, Occur,
    Query, TermQuery, Weight,
};
use tantivy::schema::{Field, IndexRecordOption};

use super::Query as Asked;
use super::search::Snapshot;
use super::segment::Segment;
use super::words::{self, TermKind};

/// The terms of a query.
pub(super) struct Plan {
    pub(super) terms: Vec<Planned>,
    documents: u64,
    tokens: u64,
}

/// One term.
pub(super) struct Planned {
    pub(super) text: String,
    weight: f32,
    /// In how many documents it is.
    frequency: u64,
    pub(super) score: Bm25Weight,
}

impl Plan {
    /// Plans a search for a text.
    pub(super) fn new(snapshot: &Snapshot, query: &Asked) -> io::Result<Self> {
        let (mut documents, mut tokens) = (snapshot.tail.rows.len() as u64, snapshot.tail.tokens);
        for segment in &snapshot.segments {
            documents += u64::from(segment.info.documents);
            tokens += segment.words.total_num_tokens();
        }
        let asked = words::query_terms(&query.text);
        let mut found: HashMap<String, (f32, u64)> = HashMap::new();
        // Words that were taken out as somebody's name are not misspelled.
        let mut known: HashSet<&str> = HashSet::new();
        for hidden in &query.hidden {
            let frequency = frequency(snapshot, &hidden.term)?;
            if frequency > 0 {
                found.insert(hidden.term.clone(), (1.0, frequency));
                known.extend(hidden.words.iter().map(String::as_str));
            }
        }
        let mut whole: HashSet<String> = HashSet::new();
        for word in known {
            whole.extend(words::query_terms(word).into_iter().map(|(term, _)| term));
        }
        let mut spelled = 0;
        for (i, (term, kind)) in asked.iter().enumerate() {
            let frequency = frequency(snapshot, term)?;
            if frequency > 0 {
                found.insert(term.clone(), (1.0, frequency));
            }
            let rare = frequency <= documents / RARE && !whole.contains(term);
            if rare && *kind == TermKind::Word && spelled < SPELLED && term.chars().count() >= SHORTEST {
                spelled += 1;
                let last = i + 1 == asked.len();
                for (other, weight, frequency) in spellings(snapshot, term, last && frequency == 0)? {
                    found.entry(other).or_insert((weight, frequency));
                }
            }
        }
        let mut chosen: Vec<(String, (f32, u64))> = found.into_iter().collect();
        // The rarest tell most; among equals the order is that of the words, so that it is always the same.
        chosen.sort_by(|a, b| a.1.1.cmp(&b.1.1).then_with(|| a.0.cmp(&b.0)));
        chosen.truncate(TERMS);
        let alone = chosen.len() == 1;
        let average = tokens as f32 / documents.max(1) as f32;
        let planned = |(text, (weight, frequency)): (String, (f32, u64))| {
            let weight = if alone { 1.0 } else { weight };
            let score =
                Bm25Weight::for_one_term_without_explain(frequency.min(documents), documents, average);
            Planned { text, weight, frequency, score: score.boost_by(weight) }
        };
        Ok(Self { terms: chosen.into_iter().map(planned).collect(), documents, tokens })
    }

    /// The plan as tantivy's, for one segment.
    pub(super) fn weight(&self, segment: &Segment) -> tantivy::Result<Box<dyn Weight>> {
        let scoring = EnableScoring::enabled_from_statistics_provider(self, &segment.searcher);
        let term = |planned: &Planned| {
            let term = Term::from_field_text(segment.fields.words, &planned.text);
            TermQuery::new(term, IndexRecordOption::WithFreqs)
        };
        if let [alone] = self.terms.as_slice() {
            return term(alone).weight(scoring);
        }
        let clause = |planned: &Planned| -> (Occur, Box<dyn Query>) {
            (Occur::Should, Box::new(BoostQuery::new(Box::new(term(planned)), planned.weight)))
        };
        BooleanQuery::new(self.terms.iter().map(clause).collect()).weight(scoring)
    }
}

impl Bm25StatisticsProvider for Plan {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok(self.tokens)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.documents)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let planned =
            self.terms.iter().find(|planned| planned.text.as_bytes() == term.serialized_value_bytes());
        Ok(planned.map_or(0, |planned| planned.frequency.min(self.documents)))
    }
}

/// In how many documents a term is.
fn frequency(snapshot: &Snapshot, term: &str) -> io::Result<u64> {
    let mut frequency = snapshot.tail.list(term).len() as u64;
    for segment in &snapshot.segments {
        let term = Term::from_field_text(segment.fields.words, term);
        frequency += u64::from(segment.words.doc_freq(&term)?);
    }
    Ok(frequency)
}

/// Terms that may have been meant, with what they weigh and in how many documents they are.
fn spellings(snapshot: &Snapshot, term: &str, beginning: bool) -> io::Result<Vec<(String, f32, u64)>> {
    let mut found: HashMap<String, u64> = HashMap::new();
    let most = if term.chars().count() >= LONG { 2 } else { 1 };
    for (other, frequency) in snapshot.tail.terms() {
        let near = match distance(term, other, most) {
            Some(mistakes) => mistakes < 2 || term.chars().next() == other.chars().next(),
            None => beginning && other.starts_with(term),
        };
        if near {
            *found.entry(other.to_owned()).or_default() += frequency;
        }
    }
    for segment in &snapshot.segments {
        let mut here: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut near = |key: &[u8], frequency| here.insert(key.to_vec(), frequency);
        let field = segment.fields.words;
        for mistakes in 1..=most {
            let query = FuzzyTermQuery::new(Term::from_field_text(field, term), mistakes, true);
            let automaton = query.automaton().map_err(io::Error::other)?;
            let mut terms = segment.words.terms().search(automaton);
            // Two mistakes are looked for only where the first letter is right: a twentieth of the work.
            if let (2, Some(first)) = (mistakes, term.chars().next()) {
                terms = terms.ge(first.to_string());
                if let Some(next) = char::from_u32(u32::from(first) + 1) {
                    terms = terms.lt(next.to_string());
                }
            }
            let mut stream = terms.into_stream()?;
            while stream.advance() {
                near(stream.key(), stream.value().doc_freq);
            }
        }
        if beginning {
            let mut stream = segment.words.terms().range().ge(term).into_stream()?;
            for _ in 0..BEGINNINGS {
                if !stream.advance() || !stream.key().starts_with(term.as_bytes()) {
                    break;
                }
                near(stream.key(), stream.value().doc_freq);
            }
        }
        for (other, frequency) in here {
            if let Ok(other) = String::from_utf8(other) {
                *found.entry(other).or_default() += u64::from(frequency);
            }
        }
    }
    found.remove(term);
    let weighed = |(other, frequency): (String, u64)| {
        let weight = match distance(term, &other, most) {
            Some(0 | 1) => 0.6,
            Some(_) => 0.4,
            None => 0.5,
        };
        (other, weight, frequency)
    };
    let mut found: Vec<(String, f32, u64)> = found.into_iter().map(weighed).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.2.cmp(&a.2)).then_with(|| a.0.cmp(&b.0)));
    found.truncate(SPELLINGS);
    Ok(found)
}

/// How many letters must be added, left out, changed or swapped with their neighbour, if at most `most`. Works on one
/// row of the table at a time, and gives up on lengths that differ too much.
fn distance(a: &str, b: &str, most: u8) -> Option<u8> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > usize::from(most) {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            next[j] = change.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
    }
    u8::try_from(row[b.len()]).ok().filter(|&distance| distance <= most)
}

/// A word is rare, and may be a misspelling, if it is in no more than one of so many documents.
const RARE: u64 = 10_000;
/// Shorter words are too near to each other.
const SHORTEST: usize = 4;
/// From this length on, two mistakes are forgiven.
const LONG: usize = 8;
/// Words of one query whose spellings are looked for.
const SPELLED: usize = 3;
/// Spellings of one word that are taken.
const SPELLINGS: usize = 6;
/// Terms with the same beginning that are looked at, in each segment.
const BEGINNINGS: usize = 50;
/// Terms of one query that are searched for.
const TERMS: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_typing() {
        for (a, b, expected) in [
            ("alpha", "alpha", Some(0)),
            ("alpha", "alhpa", Some(1)),
            ("alpha", "alpa", Some(1)),
            ("alpha", "alphas", Some(1)),
            ("alpha", "alpla", Some(1)),
            ("alpha", "beta", None),
            ("größe", "grösse", Some(2)),
            ("", "ab", Some(2)),
            ("", "abc", None),
        ] {
            assert_eq!(distance(a, b, 2), expected, "{a} {b}");
            assert_eq!(distance(b, a, 2), expected, "{b} {a}");
        }
    }
}
