//! What a database can fail with.

/// What a database can fail with, in words that reveal nothing of the data. Each part that uses it has an error of its own,
/// which these become.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// Out of space.
    #[error(
        "the PostgreSQL server is full, nothing was written; hint: free some space on its disk, then try again"
    )]
    Full,
    /// Cannot be written to.
    #[error("the PostgreSQL server is read-only; hint: check whether it is a replica")]
    ReadOnly,
    /// Out of reach; nothing was written.
    #[error(
        "the PostgreSQL server cannot be reached ({0}), nothing was written; \
         hint: check that it is running and that store.url is correct"
    )]
    Unreachable(String),
    /// The connection broke while something was being written.
    #[error(
        "the connection to PostgreSQL was lost during a write, which may or may not have succeeded; hint: load again, then repeat"
    )]
    Uncertain,
    /// User, password or permissions are wrong.
    #[error(
        "the PostgreSQL server rejected this user ({0}); \
         hint: check the user and password in store.url, and the user's permissions"
    )]
    Refused(String),
    /// Made with other settings, or by another program; the text says what to do.
    #[error("{0}")]
    Mismatch(String),
    /// Made by a newer version.
    #[error("the database was written by a newer version of Confidant; hint: upgrade this program")]
    Newer,
    /// Locked by others for too long, or no connection was free.
    #[error("PostgreSQL is busy; hint: try again; if it stays busy, allow the server more connections")]
    Busy,
    /// Anything else.
    #[error("the database failed ({0}); hint: run `confidant doctor`")]
    Failed(String),
}
