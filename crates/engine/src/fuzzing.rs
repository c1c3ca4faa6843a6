//! Inner doors for the fuzz targets. No stable interface.

use std::collections::BTreeMap;

use confidant_concepts::{Concept, Guard};
use confidant_model::{Block, Form};
use confidant_prepare::Found;
use confidant_prepare::{self, Offer, Prepared, View};
use confidant_redact::{Options, Redactor};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use crate::clock::Millis;
use crate::fence::{Fence, is_invisible};
use crate::room::{Asker, RoomContext, RoomLimits};

/// The block that a model would read of a room, with its tokens; the present is `now`.
#[must_use]
pub fn room_block(
    room: RoomContext,
    user: &str,
    query: &str,
    now: Millis,
    limits: RoomLimits,
    budget: u32,
) -> Option<(Block, u32)> {
    room.into_block(&Asker { user, query, now }, limits, budget)
}

/// Whether a model sees this character and a person does not.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    is_invisible(c)
}

/// A text as a careless reader further down has it: compatibility forms folded, without what cannot be seen.
#[must_use]
pub fn read_again(text: &str) -> String {
    text.nfkc().filter(|c| !is_invisible(*c)).collect()
}

/// What the local rules find out about a turn.
#[must_use]
pub fn prepare_rules(view: &View<'_>, offer: &Offer) -> Prepared {
    confidant_prepare::rules(view, offer, &gate())
}

fn gate() -> Redactor {
    Redactor::new(Options::default()).expect("it looks for no words of anybody's, so they are not too many")
}

/// The forms that a small model would fill in for a turn.
#[must_use]
pub fn prepare_forms(view: &View<'_>, offer: &Offer) -> Vec<Form> {
    confidant_prepare::forms(view, offer, &Fence::new([0; 8]))
}

/// What is made of what a small model filled in, over what the local rules find out.
#[must_use]
pub fn prepare_read(filled: &[Value], view: &View<'_>, offer: &Offer) -> Prepared {
    let gate = gate();
    let found: Vec<Option<Found>> =
        filled.iter().map(|value| confidant_prepare::read(value, view, offer, &gate)).collect();
    confidant_prepare::merge(found, confidant_prepare::rules(view, offer, &gate))
}

/// What is taken of a turn's calls of `capture_concepts` by their arguments, each with whether its label is what the person
/// said; and how often each reason spoke against one.
#[must_use]
pub fn captured(
    guard: &Guard,
    query: &str,
    someones: &[&str],
    calls: &[Value],
) -> (Vec<(Concept, bool)>, BTreeMap<String, u64>) {
    let (taken, refused) = crate::concepts::checked(guard, query, someones, calls.iter());
    (taken.into_iter().map(|captured| (captured.concept, captured.said)).collect(), refused)
}

/// A request on the bus, read as a worker reads it: its session and what it asks, or every word of the refusal.
pub fn bus_request(json: &[u8]) -> Result<(Option<String>, String), String> {
    crate::bus::fuzzing::request(json)
}

/// A response on the bus, read as a gateway reads it and written again: the same message, if it is one.
#[must_use]
pub fn bus_response(json: &[u8]) -> Option<(String, Option<Vec<u8>>)> {
    crate::bus::fuzzing::response(json)
}

/// What is taken over of a conversation of the first system: questions, each with what was said to it.
#[must_use]
pub fn checkpoint(json: &[u8]) -> Option<Vec<(String, Vec<String>)>> {
    let taken = crate::ledger::legacy::messages::conversation(json, "import")?.exchanges;
    let said =
        |replies: Vec<crate::ledger::entry::Reply>| replies.into_iter().map(|reply| reply.content).collect();
    Some(taken.into_iter().map(|(question, replies)| (question, said(replies))).collect())
}
