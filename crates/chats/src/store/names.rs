//! How rings, sub-keys and changes are written in rows, the same in every back end: a store is copied row by row.

use confidant_chat_format::{ChatId, Entry, FieldName};
use confidant_seal::Kid;

use super::feed::Changed;
use super::rings::RingName;

/// A ring: its container and its kind.
pub(crate) fn ring_key(of: &RingName) -> (&str, i64) {
    match of {
        RingName::Chat(chat) => (chat.as_str(), 0),
        RingName::Account => ("", 1),
        RingName::Box => ("", 2),
    }
}

/// The ring of a row; nothing if the row is damaged.
pub(crate) fn ring_of(container: &str, kind: i64) -> Option<RingName> {
    match kind {
        0 => ChatId::parse(container).ok().map(RingName::Chat),
        1 => Some(RingName::Account),
        2 => Some(RingName::Box),
        _ => None,
    }
}

/// The sub-keys of an entry, one after the other.
pub(crate) fn subs_bytes(entry: &Entry) -> Vec<u8> {
    entry.subs.iter().flat_map(|kid| *kid.as_bytes()).collect()
}

/// The sub-keys of a row; nothing if the row is damaged.
pub(crate) fn subs_of(bytes: &[u8]) -> Option<Vec<Kid>> {
    let (subs, rest) = bytes.as_chunks::<8>();
    rest.is_empty().then(|| subs.iter().copied().map(Kid::from_bytes).collect())
}

/// A change: its kind and its name.
pub(crate) fn change_key(what: &Changed) -> (i64, String) {
    match what {
        Changed::Account => (0, String::new()),
        Changed::List => (1, String::new()),
        Changed::Chat(chat) => (2, chat.to_string()),
        Changed::Deleted(chat) => (3, chat.to_string()),
        Changed::Draft(chat) => (4, chat.to_string()),
        Changed::Data(kind, name) => (5, format!("{kind} {name}")),
        Changed::Devices => (6, String::new()),
    }
}

/// The change of a row; nothing if the row is damaged.
pub(crate) fn change_of(kind: i64, name: &str) -> Option<Changed> {
    let chat = || ChatId::parse(name).ok();
    Some(match kind {
        0 => Changed::Account,
        1 => Changed::List,
        2 => Changed::Chat(chat()?),
        3 => Changed::Deleted(chat()?),
        4 => Changed::Draft(chat()?),
        5 => {
            let (kind, name) = name.split_once(' ')?;
            Changed::Data(FieldName::parse(kind).ok()?, FieldName::parse(name).ok()?)
        }
        6 => Changed::Devices,
        _ => return None,
    })
}
