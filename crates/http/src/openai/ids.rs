//! The names of conversations, responses and items.
//!
//! A name leads to its session by the session's tag, and says nothing else: whoever may not talk in that session is told that there is
//! nothing. Names are made of what the log has, so they are not kept.

use confidant_engine::Session;
use confidant_engine::turn::{ClientCall, ListedItem, ListedWhat, Place};

/// Digits of a session's tag, of a turn's mark, and of the step that a response begins with.
const TAG: usize = 32;
const MARK: usize = 24;
const STEP: usize = 3;
/// Digits of a place.
const PLACE: usize = 4;

/// The name of a conversation.
pub(super) fn conversation(session: &Session) -> String {
    format!("conv_{}", session.tag())
}

/// The tag in the name of a conversation.
pub(super) fn tag_of_conversation(id: &str) -> Option<&str> {
    id.strip_prefix("conv_").filter(|tag| tag.len() == TAG && tag.bytes().all(is_digit))
}

/// The name of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub(super) tag: String,
    /// Its turn.
    pub(super) mark: String,
    /// The step of the turn that it begins with.
    pub(super) step: usize,
}

impl ResponseId {
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (tag, mark, step) = parts(id.strip_prefix("resp_")?, STEP)?;
        Some(Self { tag, mark, step })
    }
}

impl std::fmt::Display for ResponseId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tag, mark, step } = self;
        write!(f, "resp_{tag}{mark}{step:03x}")
    }
}

/// The name of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemId {
    pub(super) tag: String,
    pub(super) mark: String,
    kind: &'static str,
    place: usize,
}

impl ItemId {
    pub(super) fn parse(id: &str) -> Option<Self> {
        let named = |kind: &'static str| Some((kind, id.strip_prefix(kind)?));
        let (kind, rest) = KINDS.into_iter().find_map(named)?;
        let (tag, mark, place) = parts(rest, PLACE)?;
        Some(Self { tag, mark, kind, place })
    }

    pub(super) fn of(tag: &str, mark: &str, item: &ListedItem) -> Self {
        let kind = match &item.what {
            ListedWhat::Query(_) | ListedWhat::Said(_) => KINDS[0],
            ListedWhat::Call(_) => KINDS[1],
            ListedWhat::Result(_) => KINDS[2],
        };
        Self { tag: tag.to_owned(), mark: mark.to_owned(), kind, place: item.place.0.into() }
    }

    /// The name of the agent's message in a response.
    pub(super) fn message(response: &ResponseId) -> Self {
        let ResponseId { tag, mark, step } = response.clone();
        Self { tag, mark, kind: KINDS[0], place: Place::message(step).0.into() }
    }

    /// The name of a call in a response.
    pub(super) fn call(response: &ResponseId, call: &ClientCall) -> Option<Self> {
        let ResponseId { tag, mark, .. } = response.clone();
        let CallId { step, at, .. } = CallId::parse(&call.id)?;
        Some(Self { tag, mark, kind: KINDS[1], place: Place::call(step, at).0.into() })
    }
}

impl std::fmt::Display for ItemId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tag, mark, kind, place } = self;
        write!(f, "{kind}{tag}{mark}{place:04x}")
    }
}

/// What the names of messages, calls and results begin with.
const KINDS: [&str; 3] = ["msg_", "fc_", "fco_"];

/// What the engine says in the name of a call.
pub(super) struct CallId {
    pub(super) mark: String,
    pub(super) step: usize,
    at: usize,
}

impl CallId {
    pub(super) fn parse(id: &str) -> Option<Self> {
        let rest = id.strip_prefix("call_").filter(|rest| rest.bytes().all(is_digit))?;
        let (mark, rest) = rest.split_at_checked(MARK)?;
        let (step, at) = rest.split_at_checked(4)?;
        let number = |digits: &str| usize::from_str_radix(digits, 16).ok();
        Some(Self { mark: mark.to_owned(), step: number(step)?, at: number(at)? })
    }
}

fn parts(text: &str, digits: usize) -> Option<(String, String, usize)> {
    if text.len() != TAG + MARK + digits || !text.bytes().all(is_digit) {
        return None;
    }
    let (tag, rest) = text.split_at(TAG);
    let (mark, number) = rest.split_at(MARK);
    Some((tag.to_owned(), mark.to_owned(), usize::from_str_radix(number, 16).ok()?))
}

/// Only small letters: a name has one spelling.
fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_nothing_else_is() {
        let (tag, mark) = ("0123456789abcdef".repeat(2), "0123456789ab".repeat(2));
        let response = ResponseId { tag: tag.clone(), mark: mark.clone(), step: 0x2a };
        assert_eq!(ResponseId::parse(&response.to_string()), Some(response.clone()));
        let message = ItemId::message(&response);
        assert_eq!(ItemId::parse(&message.to_string()), Some(message.clone()));
        assert!(response.to_string().len() <= 64 && message.to_string().len() <= 64);
        for kind in KINDS {
            let item = ItemId { kind, ..message.clone() };
            assert_eq!(ItemId::parse(&item.to_string()), Some(item));
        }
        let call = CallId::parse(&format!("call_{mark}000203")).unwrap();
        assert_eq!((call.mark, call.step, call.at), (mark.clone(), 2, 3));
        let upper = response.to_string().replace('a', "A");
        for id in ["", "resp_", "resp_é", "resp_123", upper.as_str(), &format!("resp_{tag}{mark}0000")] {
            assert_eq!(ResponseId::parse(id), None, "{id}");
        }
        assert_eq!(ItemId::parse(&response.to_string()), None);
        assert!(CallId::parse("call_x").is_none() && CallId::parse("call_").is_none());
        assert_eq!(tag_of_conversation(&format!("conv_{tag}")), Some(tag.as_str()));
        assert_eq!(tag_of_conversation("conv_1"), None);
    }
}
