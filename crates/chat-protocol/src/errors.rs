//! Refusals: one event for every request that was not done.
//!
//! Names of content are those of the format (`confidant_chat_format::Refused`), all others are here. Easy to get wrong:
//! an error that tells who has what. Things of other accounts are `not-found`, like things that never were.

use confidant_chat_format::Refused;
use confidant_display::Hinted as _;
use serde::{Deserializer, Serializer};

#[cfg(feature = "describe")]
use crate::describe::{Book, Dice};
use crate::limits::MAX_WORDS;
use crate::malformed::Malformed;
use crate::shapes::{objects, words};
use crate::values::Text;
use crate::wire::{At, Wire, read_text};

words! {
    /// Why a request was refused before its content mattered.
    pub enum Failure {
        /// A message, an envelope or a list is over its limit.
        TooLarge = "too-large",
        /// The account has as many of these as it may have.
        TooMany = "too-many",
        /// Too many requests; wait for `retry_ms`.
        Rate = "rate",
        /// It is not there, or belongs to somebody else.
        NotFound = "not-found",
        /// The message is not one of this protocol.
        Malformed = "malformed",
        /// No valid session or ticket.
        Unauthorised = "unauthorised",
        /// The server stops; connect again.
        Stopping = "stopping",
        /// The server cannot reach its database or keys.
        Unavailable = "unavailable",
        /// The page is not the one that this server hands out; load it again.
        StaleClient = "stale-client",
    }
}

/// The name of an error: one of the format's, or one of the protocol's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorName {
    /// The content was refused.
    Content(Refused),
    /// The request was refused.
    Request(Failure),
}

impl ErrorName {
    /// Every name.
    pub fn all() -> impl Iterator<Item = Self> {
        let content = Refused::ALL.into_iter().map(Self::Content);
        content.chain(Failure::ALL.iter().copied().map(Self::Request))
    }

    /// The name that is sent.
    pub fn name(self) -> &'static str {
        match self {
            Self::Content(refused) => refused.name(),
            Self::Request(failure) => failure.name(),
        }
    }

    /// The status of an HTTP answer with this error.
    pub const fn status(self) -> u16 {
        match self {
            Self::Content(Refused::LoginRefused) | Self::Request(Failure::Unauthorised) => 401,
            Self::Content(Refused::Conflict | Refused::Duplicate)
            | Self::Request(Failure::TooMany | Failure::StaleClient) => 409,
            Self::Content(Refused::BadId | Refused::TwoCredentials) | Self::Request(Failure::Malformed) => {
                400
            }
            Self::Content(_) => 422,
            Self::Request(Failure::NotFound) => 404,
            Self::Request(Failure::TooLarge) => 413,
            Self::Request(Failure::Rate) => 429,
            Self::Request(Failure::Stopping | Failure::Unavailable) => 503,
        }
    }
}

impl Wire for ErrorName {
    fn read_from<'de, D: Deserializer<'de>>(from: D, at: &At<'_>) -> Result<Self, D::Error> {
        read_text(from, at, "the name of an error", 32, |text| Self::all().find(|error| error.name() == text))
    }

    fn write_to<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }

    #[cfg(feature = "describe")]
    fn describe(book: &mut Book) -> String {
        let failure = Failure::describe(book);
        format!("a name of FORMAT.md section 10, or {failure}")
    }

    #[cfg(feature = "describe")]
    fn make(dice: &mut Dice<'_>) -> Self {
        let all: Vec<Self> = Self::all().collect();
        all[dice.choice(all.len())]
    }
}

objects! {
    /// A request was not done. `re` of the frame says which; without it, the socket is meant.
    pub struct RefusedSent {
        /// The name of the error.
        pub error: ErrorName,
        /// What happened, for people.
        pub what: Text<MAX_WORDS>,
        /// What to do, for people.
        pub hint: Text<MAX_WORDS>,
        /// When to try again, in milliseconds.
        pub retry_ms: Option<u64>,
    }
}

impl RefusedSent {
    /// With words for people.
    pub fn new(error: ErrorName, what: &str, hint: &str) -> Self {
        Self { error, what: Text::cut(what), hint: Text::cut(hint), retry_ms: None }
    }
}

impl From<Refused> for RefusedSent {
    fn from(refused: Refused) -> Self {
        let (what, hint) = refused.what_and_hint("try again");
        Self::new(ErrorName::Content(refused), &what, &hint)
    }
}

impl From<&Malformed> for RefusedSent {
    fn from(malformed: &Malformed) -> Self {
        let (what, hint) = malformed.what_and_hint("see docs/PROTOCOL.md");
        Self::new(ErrorName::Request(Failure::Malformed), &what, &hint)
    }
}

impl From<Malformed> for RefusedSent {
    fn from(malformed: Malformed) -> Self {
        (&malformed).into()
    }
}
