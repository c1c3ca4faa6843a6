//! What the engine does beyond its promises, which are in `tests/promises`: turns, tools, models and concepts, on every store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod approvals;
mod calls;
mod chats;
mod chats_asking;
mod chats_beside;
mod chats_concepts;
mod chats_recorded;
mod chats_scores;
mod chats_turns;
mod client_tools;
mod concepts;
mod focus;
mod in_a_row;
mod listing;
mod long_conversations;
mod moving;
mod preparing;
mod processing;
mod revision;
#[path = "../rig/mod.rs"]
mod rig;
mod rotation;
mod tools;
mod web;
