//! The network's replies, read as requests read them but without a request around them.

use serde_json::Value;

use super::api::{Events, State, Task, amount, task};
use super::{Action, Locator, Note, command};
use crate::Result;

/// The chain's answer to what something costs, in ulume.
#[must_use]
pub fn fee(reply: &[u8]) -> Option<u64> {
    amount(&json(reply)?)
}

/// The chain's answer to what became of an action: whether its bytes are kept, or none if it says nothing known.
#[must_use]
pub fn is_kept(reply: &[u8]) -> Option<bool> {
    State::of(&json(reply)?).map(|state| state == State::Kept)
}

/// A supernode's answer to an upload or a wish to download: the name of its task.
#[must_use]
pub fn task_name(reply: &[u8]) -> Option<String> {
    task(&json(reply)?).map(str::to_owned)
}

/// A supernode's answer to how a task goes, as it came in pieces: whether it ended well, or none if it did not end.
pub fn ended_well<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Option<bool> {
    let mut events = Events::default();
    let ended = pieces.into_iter().find_map(|piece| events.take(piece));
    ended.or_else(|| events.end()).map(|task| task == Task::Done)
}

/// What a registrar printed, as the note that is kept of it.
pub fn registered(printed: &[u8], file_name: &str) -> Result<String> {
    let action = Action::checked(command::parse(printed)?)?;
    let note = Note { file_name: file_name.to_owned(), action: Some(action) };
    note.locator().map(|locator| locator.0)
}

/// A note that was kept, read and written again.
pub fn note(text: &str) -> Result<String> {
    Note::parse(&Locator(text.to_owned()))?.locator().map(|locator| locator.0)
}

fn json(reply: &[u8]) -> Option<Value> {
    serde_json::from_slice(reply).ok()
}
