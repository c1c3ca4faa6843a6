//! Why bytes are not a message of this protocol: where, why, and what to do. Never what was in them.
//!
//! Easy to get wrong: repeating what was sent. A path has names of this protocol and numbers; the only text of the
//! sender is the name of an unknown event, cut short.

use std::fmt;

/// Bytes that are not a message of this protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    path: String,
    why: Why,
}

/// What is wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The message has more bytes than this.
    TooLarge(usize),
    /// The bytes are not JSON, or not UTF-8, or end too early.
    NotJson,
    /// Another kind of value was expected.
    Expected(&'static str),
    /// A field that the object does not have.
    UnknownField,
    /// A field or a key twice.
    Twice,
    /// A field that has to be there.
    Missing,
    /// A list with more items than this.
    TooMany(usize),
    /// A list with fewer items than this.
    TooFew(usize),
    /// A text or bytes longer than this many bytes.
    TooLong(usize),
    /// A number above this, below zero, or with a fraction.
    OutOfRange(u64),
    /// An event that nobody here knows; its name, cut short.
    UnknownEvent(String),
}

impl Malformed {
    pub(crate) fn new(path: String, why: Why) -> Self {
        Self { path, why }
    }

    /// Where: names of fields and numbers of items, `event.puts[3].envelope`; empty for the whole message.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Why.
    pub fn why(&self) -> &Why {
        &self.why
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "the message is malformed: ")?,
            path => write!(f, "the message is malformed at {path}: ")?,
        }
        match &self.why {
            Why::TooLarge(limit) => write!(f, "more than {limit} bytes; hint: send it in several messages"),
            Why::NotJson => write!(f, "not JSON in UTF-8; hint: write it with a JSON library"),
            Why::Expected(what) => write!(f, "not {what}; hint: see docs/PROTOCOL.md for this field"),
            Why::UnknownField => write!(f, "unknown field; hint: leave it out, or update the server"),
            Why::Twice => write!(f, "duplicate field; hint: write each field once"),
            Why::Missing => write!(f, "missing field; hint: see docs/PROTOCOL.md for the fields"),
            Why::TooMany(limit) => write!(f, "more than {limit} items; hint: send them in several messages"),
            Why::TooFew(limit) => write!(f, "fewer than {limit} items; hint: send all of them"),
            Why::TooLong(limit) => write!(f, "longer than {limit} bytes; hint: shorten it"),
            Why::OutOfRange(max) => {
                write!(f, "not a whole number from 0 to {max}; hint: write it without fraction or exponent")
            }
            Why::UnknownEvent(name) => {
                write!(f, "unknown event {name:?}; hint: update the older side, or see docs/PROTOCOL.md")
            }
        }
    }
}

impl std::error::Error for Malformed {}
