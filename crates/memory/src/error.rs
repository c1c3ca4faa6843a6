//! What can go wrong with a memory.
//!
//! Every message has two parts: what happened, and what to do next. None quotes content, keys or ids.

use confidant_display::Hinted as _;
use serde::Serialize;

/// Why something was not done. Nothing was written unless the message says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request makes no sense.
    #[error("{what}; hint: {hint}")]
    Invalid {
        /// What is wrong with it.
        what: String,
        /// What to do next.
        hint: String,
    },
    /// There is no such session, memory or file.
    #[error("{what}; hint: {hint}")]
    NotFound {
        /// What there is none of.
        what: String,
        /// What to do next.
        hint: String,
    },
    /// Policy says no.
    #[error("{what}; hint: {hint}")]
    NotAllowed {
        /// What is not allowed.
        what: String,
        /// What to do next.
        hint: String,
    },
    /// The session has a secret that must not be stored in any form.
    #[error(
        "blocked: the session has a private key, an Authorization header or a bearer token, so nothing of it was \
         stored; hint: revoke the secret, remove it from the session, and store it again"
    )]
    Blocked {
        /// Rule and place of each.
        places: Vec<Place>,
    },
    /// The scan of what was derived found something.
    #[error(
        "the second scan found something in the memory derived from the redacted session ({}), so nothing \
         was stored; hint: add these words to memory.always_redact, which replaces them first, or remove \
         them from the session",
        told(.places)
    )]
    Unclean {
        /// Rule and place of each.
        places: Vec<Place>,
    },
    /// What would be stored is not what was shown.
    #[error(
        "what would be stored does not match the given hash, so nothing was stored; hint: make a new dry run \
         and check it"
    )]
    Changed,
    /// Stored bytes are not what was written.
    #[error("tampered: {what}; hint: {hint}")]
    Tampered {
        /// What does not hold.
        what: String,
        /// What to do next.
        hint: String,
    },
    /// A disk, a service or a lock is not to be had.
    #[error("{what}; hint: {hint}")]
    Unavailable {
        /// What cannot be reached.
        what: String,
        /// What to do next.
        hint: String,
    },
}

/// A rule and where it held; never what it found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The rule's id.
    pub rule: String,
    /// A JSON pointer into the session, its keys redacted.
    pub path: String,
}

/// Rule and place of the first few.
fn told(places: &[Place]) -> String {
    let told = places.iter().take(MOST_TOLD).map(|Place { rule, path }| format!("{rule} at {path}"));
    let more = if places.len() > MOST_TOLD { ", …" } else { "" };
    told.collect::<Vec<_>>().join(", ") + more
}

const MOST_TOLD: usize = 3;

impl Error {
    pub(crate) fn invalid(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), hint: hint.into() }
    }

    pub(crate) fn not_found(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::NotFound { what: what.into(), hint: hint.into() }
    }

    pub(crate) fn unavailable(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Unavailable { what: what.into(), hint: hint.into() }
    }

    pub(crate) fn tampered(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Tampered { what: what.into(), hint: hint.into() }
    }

    /// What happened, and what to do next.
    #[must_use]
    pub fn parted(&self) -> (String, String) {
        self.what_and_hint("")
    }

    /// The word that names it in replies.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "invalid",
            Self::NotFound { .. } => "not_found",
            Self::NotAllowed { .. } => "not_allowed",
            Self::Blocked { .. } => "blocked",
            Self::Unclean { .. } => "unclean",
            Self::Changed => "changed",
            Self::Tampered { .. } => "tampered",
            Self::Unavailable { .. } => "unavailable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_second_scan_found_is_named_by_rule_and_place_with_a_hint_that_can_be_followed() {
        let place = |path: &str| Place { rule: "email".to_owned(), path: path.to_owned() };
        let places = ["/memory_card/title", "/tags/0", "/tags/1", "/tags/2"].map(place).to_vec();
        let (what, hint) = Error::Unclean { places }.parted();
        assert!(
            what.contains("(email at /memory_card/title, email at /tags/0, email at /tags/1, …)"),
            "{what}"
        );
        // A dry run fails in the same way, so it shows nothing.
        assert!(hint.contains("memory.always_redact") && !hint.contains("dry run"), "{hint}");
    }
}
