//! What applications attached to a conversation and to its turns: names and values that mean something to them alone.
//!
//! What belongs to a turn goes with it.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::ledger::entry::Label;

/// All that is attached, at most one to each answer and one to the conversation.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Labels(VecDeque<Labelled>);

/// One of them, and when it was first attached.
#[derive(Serialize, Deserialize)]
struct Labelled {
    at: Millis,
    label: Label,
}

impl Labels {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the place of what was attached there before, unless it only says how the answer ended.
    pub(super) fn put(&mut self, at: Millis, label: Label) {
        let is_same =
            |known: &Labelled| known.label.request_id == label.request_id && known.label.step == label.step;
        let known = self.0.iter().position(is_same).and_then(|place| self.0.remove(place));
        let (at, label) = match known {
            Some(known) if label.done.is_some() => (known.at, Label { done: label.done, ..known.label }),
            Some(known) => (known.at, label),
            None => (at, label),
        };
        self.0.push_back(Labelled { at, label });
        // Of turns whose exchanges are never written, too: that one of the conversation stays.
        if self.0.len() > LABELS_KEPT
            && let Some(oldest) = self.0.iter().position(|known| known.label.request_id.is_some())
        {
            self.0.remove(oldest);
        }
        let says_how = |known: &Labelled| known.label.asked_for.is_some();
        let many = self.0.iter().filter(|known| says_how(known)).count().saturating_sub(ASKED_FOR_KEPT);
        let oldest = self.0.iter_mut().filter(|known| says_how(known)).take(many);
        oldest.for_each(|known| known.label.asked_for = None);
    }

    /// Drops what belongs to a turn.
    pub(super) fn forget(&mut self, request_id: &str) {
        self.0.retain(|known| known.label.request_id.as_deref() != Some(request_id));
    }

    /// What is attached to the conversation, and since when.
    pub(crate) fn of_conversation(&self) -> Option<(Millis, &BTreeMap<String, String>)> {
        let found = self.0.iter().find(|known| known.label.request_id.is_none());
        found.map(|known| (known.at, &known.label.values))
    }

    /// What is attached to the answers of a turn, and since when.
    pub(crate) fn of_turn(&self, request_id: &str) -> impl Iterator<Item = (Millis, &Label)> {
        let of_it = self.0.iter().filter(move |known| known.label.request_id.as_deref() == Some(request_id));
        of_it.map(|known| (known.at, &known.label))
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Label> {
        self.0.iter().map(|known| &known.label)
    }
}

/// Turns are kept that long, and what was attached to them with them; this bounds the rest.
const LABELS_KEPT: usize = 512;
/// How an answer was asked for may be much longer than the answer, and is looked at soon or never.
const ASKED_FOR_KEPT: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::entry::Done;

    fn label(request_id: Option<&str>, step: usize, value: &str) -> Label {
        let values = BTreeMap::from([("k".to_owned(), value.to_owned())]);
        Label { request_id: request_id.map(str::to_owned), step, values, ..Label::default() }
    }

    fn asked_for(n: usize) -> Label {
        let asked_for = Some(serde_json::json!({ "n": n }));
        Label { asked_for, ..label(Some(&format!("r{n}")), 0, "x") }
    }

    #[test]
    fn each_place_has_one_and_what_is_of_a_turn_goes_with_it() {
        let mut labels = Labels::default();
        labels.put(Millis(1), label(None, 0, "one"));
        labels.put(Millis(2), label(Some("r1"), 0, "two"));
        labels.put(Millis(3), label(Some("r1"), 2, "three"));
        labels.put(Millis(4), label(None, 0, "four"));
        let (at, values) = labels.of_conversation().unwrap();
        assert_eq!((at, values["k"].as_str()), (Millis(1), "four"));
        let steps: Vec<usize> = labels.of_turn("r1").map(|(_, label)| label.step).collect();
        assert_eq!(steps, [0, 2]);
        labels.forget("r1");
        assert_eq!((labels.of_turn("r1").count(), labels.all().count()), (0, 1));
    }

    #[test]
    fn that_of_the_conversation_outlives_those_of_its_turns() {
        let mut labels = Labels::default();
        labels.put(Millis(1), label(None, 0, "one"));
        (0..2 * LABELS_KEPT).for_each(|n| labels.put(Millis(2), label(Some(&format!("r{n}")), 0, "x")));
        assert_eq!(labels.all().count(), LABELS_KEPT);
        assert!(labels.of_conversation().is_some());
    }

    #[test]
    fn the_end_of_an_answer_is_added_and_only_the_newest_say_how_they_were_asked_for() {
        let mut labels = Labels::default();
        labels.put(Millis(1), asked_for(0));
        let done = Some(Done { at: Millis(5), usage: None });
        let end = Label { request_id: Some("r0".to_owned()), done, ..Label::default() };
        labels.put(Millis(5), end);
        let (at, known) = labels.of_turn("r0").next().unwrap();
        assert_eq!((at, known.values["k"].as_str(), known.done.is_some()), (Millis(1), "x", true));
        assert!(known.asked_for.is_some());
        (1..=ASKED_FOR_KEPT).for_each(|n| labels.put(Millis(6), asked_for(n)));
        assert_eq!(labels.all().filter(|label| label.asked_for.is_some()).count(), ASKED_FOR_KEPT);
        let (_, oldest) = labels.of_turn("r0").next().unwrap();
        assert!(oldest.asked_for.is_none() && oldest.done.is_some());
    }
}
