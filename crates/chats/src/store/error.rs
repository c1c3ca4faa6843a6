//! Why the store did not do something.
//!
//! Two kinds: the caller asked for something that is refused, or the store itself failed. No error quotes an id, a tag or
//! content.

use confidant_chat_format::Refused;

/// What a store answers.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Why the store did not do something; each back end maps its own errors into these. Nothing was written, except perhaps
/// with [`Self::Uncertain`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Refused by name, as a client would refuse it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Somebody else wrote first, or rotates the account key; carries what is there now: the revision of the head, manifest,
    /// account, draft or data that was to be replaced.
    #[error("another device wrote first; hint: load again and repeat")]
    Conflict {
        /// The revision that the store has; 0 for none.
        now: u32,
    },
    /// It is not there, or belongs to somebody else.
    #[error("it was not found; hint: load the list again, it may have been deleted")]
    NotFound,
    /// Larger than allowed.
    #[error("the {0} is too large; hint: split it or shorten it")]
    TooLarge(&'static str),
    /// More of them than allowed.
    #[error("there are too many {0}; hint: delete some, or send fewer at once")]
    TooMany(&'static str),
    /// No client of ours sends this.
    #[error("the request contradicts itself: {0}; hint: update the client")]
    Malformed(&'static str),
    /// Out of space.
    #[error("the disk is full, nothing was written; hint: free some space, then try again")]
    Full,
    /// Cannot be written to.
    #[error("the file {0} cannot be written to; hint: check the owner and permissions of the data folder")]
    ReadOnly(&'static str),
    /// Not a database, or damaged.
    #[error(
        "the database {0} is damaged or not a database; \
         hint: restore it from a backup, then check it with `confidant doctor`"
    )]
    Corrupt(&'static str),
    /// Made by a newer version.
    #[error("the database was written by a newer version of Confidant; hint: upgrade this program")]
    Newer,
    /// Locked by others for too long.
    #[error(
        "the store is busy; hint: try again; if it stays busy, look for a long-running process on the same data folder"
    )]
    Busy,
    /// Out of reach; nothing was written.
    #[error(
        "the store cannot be reached ({0}), nothing was written; \
         hint: check that its server is running and that store.url is correct"
    )]
    Unreachable(String),
    /// The connection broke while something was being written.
    #[error(
        "the connection to the store was lost during a write, which may or may not have succeeded; \
         hint: load again; repeat it if it is missing"
    )]
    Uncertain,
    /// Somebody wants to copy into a store that has something.
    #[error("the store to copy into is not empty; hint: copy into a new one")]
    NotEmpty,
    /// A server does not do its part; the text says which and what to do.
    #[error("{0}")]
    Server(String),
    /// Anything else, in words that reveal nothing of the data.
    #[error("the store failed ({0}); hint: run `confidant doctor`")]
    Failed(String),
}

impl StoreError {
    /// Its name on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused(refused) => refused.name(),
            Self::Conflict { .. } => Refused::Conflict.name(),
            Self::NotFound => "not-found",
            Self::TooLarge(_) => "too-large",
            Self::TooMany(_) => "too-many",
            Self::Malformed(_) => "malformed",
            _ => "unavailable",
        }
    }
}

impl StoreError {
    /// Whether the store looked at what was asked and said no: then nothing of it is there. After any other error it may be.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused(_)
                | Self::Conflict { .. }
                | Self::NotFound
                | Self::TooLarge(_)
                | Self::TooMany(_)
                | Self::Malformed(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_written_is_no_refusal() {
        // Whoever takes these for a refusal throws away the key of an account that is there.
        let unknown = [
            StoreError::Uncertain,
            StoreError::Unreachable("gone".to_owned()),
            StoreError::Server("gone".to_owned()),
            StoreError::Failed("gone".to_owned()),
            StoreError::Busy,
            StoreError::Full,
        ];
        assert!(unknown.iter().all(|error| !error.is_refusal()));
        let no = [StoreError::Conflict { now: 1 }, Refused::LoginRefused.into(), StoreError::TooMany("x")];
        assert!(no.iter().all(StoreError::is_refusal));
    }

    #[test]
    fn every_error_has_a_hint_and_a_name_of_the_protocol() {
        for (error, name) in [
            (StoreError::from(Refused::KeyRefused), "key-refused"),
            (StoreError::Conflict { now: 3 }, "conflict"),
            (StoreError::NotFound, "not-found"),
            (StoreError::TooLarge("draft"), "too-large"),
            (StoreError::TooMany("items"), "too-many"),
            (StoreError::Malformed("an item twice"), "malformed"),
            (StoreError::Full, "unavailable"),
            (StoreError::Busy, "unavailable"),
        ] {
            assert_eq!(error.name(), name);
            assert!(error.to_string().contains("; hint: "), "{error}");
        }
    }
}
