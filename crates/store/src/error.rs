//! What a store can fail with.

/// What a store can fail with; each back end maps its own errors into these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Out of space.
    #[error(
        "the store is full, nothing was written; \
         hint: free some space on the disk or in the server's memory, then try again"
    )]
    Full,
    /// Cannot be written to.
    #[error(
        "the store cannot be written to; \
         hint: check the owner and permissions of the data folder, or whether the server is a read-only replica"
    )]
    ReadOnly,
    /// Out of reach; nothing was written.
    #[error(
        "the store cannot be reached ({0}), nothing was written; \
         hint: check that its server is running and that store.url is correct"
    )]
    Unreachable(String),
    /// The connection broke while something was being written.
    #[error(
        "the connection to the store was lost during a write, which may or may not have succeeded; \
         hint: send it again with the same request_id"
    )]
    Uncertain,
    /// User, password or permissions are wrong.
    #[error(
        "the store rejected this user ({0}); hint: check the user and password in store.url, and the user's permissions"
    )]
    Refused(String),
    /// Made with other settings, or by another program; the text says what to do.
    #[error("{0}")]
    Mismatch(String),
    /// Not a database, or damaged.
    #[error(
        "the database file {0} is damaged or not a database; \
         hint: restore it from a backup, then check it with `confidant doctor`"
    )]
    Corrupt(&'static str),
    /// Made by a newer version.
    #[error("the database was written by a newer version of Confidant; hint: upgrade this program")]
    Newer,
    /// Locked by others for too long.
    #[error(
        "the store is busy; hint: try again; if it stays busy, look for a long-running process on the same data folder, \
         or allow a server more connections"
    )]
    Busy,
    /// Anything else, in words that reveal nothing of the data.
    #[error("the store failed ({0}); hint: run `confidant doctor`")]
    Failed(String),
}

impl StoreError {
    /// Its name where memory could not be loaded.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreachable(_) | Self::Uncertain => "store-unreachable",
            Self::Refused(_) => "store-refused",
            Self::Busy => "store-busy",
            Self::Full => "store-full",
            Self::ReadOnly => "store-read-only",
            Self::Corrupt(_) => "store-damaged",
            _ => "store-failed",
        }
    }
}
