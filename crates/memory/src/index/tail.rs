//! The newest cards, which are not in the files yet: the same terms, counted and weighed the same way, in memory.

use std::collections::HashMap;

use tantivy::fieldnorm::FieldNormReader;

use super::meaning::{self, Vector};
use super::{Document, segment};

/// Documents after those that the files cover.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail {
    /// The highest id that was looked at.
    pub(super) last: u64,
    pub(super) rows: Vec<Row>,
    /// Rows with a term and how often it counts there, in order.
    lists: HashMap<String, Vec<(u32, u32)>>,
    /// Terms of all rows.
    pub(super) tokens: u64,
}

/// What is kept of a document beside its terms.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: u64,
    pub(super) at: i64,
    pub(super) session: u64,
    /// Its length, as coarse as in the files.
    pub(super) length: u8,
    pub(super) tags: Vec<String>,
    /// Its place in meaning.
    pub(super) vector: Vector,
    /// Those of its passages.
    pub(super) passages: Vec<Vector>,
    tokens: u32,
}

impl Tail {
    /// A tail that begins after this id.
    pub(super) fn after(covered: u64) -> Self {
        Self { last: covered, ..Self::default() }
    }

    /// Adds documents, which are newer than all there are.
    pub(super) fn extend(&mut self, documents: Vec<Document>) {
        for document in documents {
            if document.id <= self.last {
                continue;
            }
            self.last = document.id;
            let row = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
            let mut tokens = 0;
            segment::terms(&document, &mut |term| {
                tokens += 1;
                match self.lists.get_mut(term) {
                    None => {
                        self.lists.insert(term.to_owned(), vec![(row, 1)]);
                    }
                    Some(list) => match list.last_mut() {
                        Some((last, count)) if *last == row => *count += 1,
                        _ => list.push((row, 1)),
                    },
                }
            });
            self.tokens += u64::from(tokens);
            self.rows.push(Row {
                id: document.id,
                at: document.created_at,
                session: segment::session_number(&document.session_id),
                length: FieldNormReader::fieldnorm_to_id(tokens),
                vector: meaning::of_card(&document.card),
                passages: document.bag.as_ref().map(|bag| bag.places().to_vec()).unwrap_or_default(),
                tags: document.tags,
                tokens,
            });
        }
    }

    /// Drops what the files cover by now.
    pub(super) fn advance(&mut self, covered: u64) {
        self.retain(|row| row.id > covered);
        self.last = self.last.max(covered);
    }

    /// Keeps the rows for which `keep` says so.
    pub(super) fn retain(&mut self, keep: impl Fn(&Row) -> bool) {
        if self.rows.iter().all(&keep) {
            return;
        }
        let mut left = 0..;
        let places: Vec<Option<u32>> =
            self.rows.iter().map(|row| if keep(row) { left.next() } else { None }).collect();
        for list in self.lists.values_mut() {
            list.retain_mut(|(row, _)| match places.get(*row as usize) {
                Some(Some(place)) => {
                    *row = *place;
                    true
                }
                _ => false,
            });
        }
        self.lists.retain(|_, list| !list.is_empty());
        self.rows.retain(keep);
        self.tokens = self.rows.iter().map(|row| u64::from(row.tokens)).sum();
    }

    /// Rows with a term and how often it counts there.
    pub(super) fn list(&self, term: &str) -> &[(u32, u32)] {
        self.lists.get(term).map_or(&[], Vec::as_slice)
    }

    /// All terms and in how many rows they are.
    pub(super) fn terms(&self) -> impl Iterator<Item = (&str, u64)> {
        self.lists.iter().map(|(term, list)| (term.as_str(), list.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Card;

    fn document(id: u64, title: &str) -> Document {
        Document { id, card: Card { title: title.to_owned(), ..Card::default() }, ..Document::default() }
    }

    #[test]
    fn what_is_dropped_leaves_no_trace() {
        let mut tail = Tail::after(0);
        tail.extend(vec![document(1, "alpha beta"), document(2, "beta gamma"), document(5, "gamma")]);
        tail.advance(1);
        let mut fresh = Tail::after(1);
        fresh.extend(vec![document(2, "beta gamma"), document(5, "gamma")]);
        assert_eq!(tail.lists, fresh.lists);
        assert_eq!((tail.tokens, tail.last, tail.rows.len()), (fresh.tokens, 5, 2));
        assert_eq!(tail.list("alpha"), []);
        assert_eq!(tail.list("gamma"), [(0, 3), (1, 3)]);
    }
}
