//! What can go wrong, once for opening an engine and once for using it.
//!
//! Every message has two parts: what happened, and what to do next. None quotes content, keys, tokens or raw ids.

use confidant_seal::{Kid, ScopeError};

use crate::model::ModelError;

/// Why an engine could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The master key could not be had.
    #[error("no usable master key: {0}")]
    Key(#[from] KeySourceError),
    /// The keyring was sealed under a root that no configured key yields.
    #[error(
        "wrong master key: the keyring is sealed under root {expected}, the configured keys give {found}; \
         hint: restore the key that made this data, as CHECKPOINT_ENCRYPTION_KEY or in OLD_CHECKPOINT_ENCRYPTION_KEY"
    )]
    WrongKey {
        /// The root that the keyring names.
        expected: Kid,
        /// The roots that the configured keys give.
        found: String,
    },
    /// There is data, but the keyring that opens it is empty.
    #[error(
        "the data has sessions, but the keyring is empty, so none of them can be opened; \
         hint: put keyring.db back beside confidant.db, or start with an empty data folder"
    )]
    KeyringMissing,
    /// Somebody copies to this store, or began to.
    #[error(
        "this store is the unfinished copy of another; hint: run `confidant store copy` again, it goes on where it was"
    )]
    UnfinishedCopy,
    /// The keyring's own records do not open.
    #[error(
        "the keyring's {0} key does not open: it was altered or belongs to another installation; \
         hint: restore keyring.db from a backup"
    )]
    KeyringTampered(&'static str),
    /// The store could not be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a key source gave no key.
#[derive(Debug, thiserror::Error)]
#[error("{what}; hint: {hint}")]
pub struct KeySourceError {
    /// What happened, without the key.
    pub what: String,
    /// What to do next.
    pub hint: String,
}

/// What a store can fail with; each back end maps its own errors into these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Out of space.
    #[error(
        "the store is full, nothing was written; hint: free some space (disk, or a Redis server's memory) and send the turn again"
    )]
    Full,
    /// May not be written.
    #[error(
        "the store cannot be written; hint: check owner and permissions of the data folder, or whether the server is a \
         read-only replica"
    )]
    ReadOnly,
    /// Out of reach; nothing was written.
    #[error(
        "the store cannot be reached ({0}), nothing was written; hint: check that its server runs and that store.url is right"
    )]
    Unreachable(String),
    /// The connection broke while something was being written.
    #[error(
        "the connection to the store broke during a write, so it is not known whether it was written; \
         hint: send it again with the same request_id"
    )]
    Uncertain,
    /// User, password or permissions are wrong.
    #[error(
        "the store refuses this user ({0}); hint: check user and password of store.url, and what the user may do"
    )]
    Refused(String),
    /// Made for other settings, or by something else; says what to do.
    #[error("{0}")]
    Mismatch(String),
    /// Not a database, or damaged.
    #[error(
        "the database file {0} is damaged or not a database; hint: restore it from a backup, `confidant doctor` checks it"
    )]
    Corrupt(&'static str),
    /// Made by a newer version.
    #[error("the database was written by a newer version of Confidant; hint: upgrade this program")]
    Newer,
    /// Locked by others for too long.
    #[error(
        "the store is busy; hint: try again; look for a long-running process on the same data folder, or give a server more connections"
    )]
    Busy,
    /// Anything else, by a word that says nothing of the data.
    #[error("the store failed ({0}); hint: run `confidant doctor`")]
    Failed(String),
}

/// How a stored conversation turned out not to be what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Tampering {
    /// A record does not open in its place: altered, swapped, reordered, or never sealed.
    #[error("record-refused: a stored record does not open in its place")]
    RecordRefused,
    /// Records are missing in the middle or at the end.
    #[error("log-truncated: records of the log are missing")]
    LogTruncated,
    /// There are records that the log does not account for.
    #[error("log-overfull: the log holds records that it does not account for")]
    LogOverfull,
    /// The log is older than one that was seen before.
    #[error("rolled-back: the log is older than the keyring has seen")]
    RolledBack,
    /// The data key is not in the keyring: destroyed, or from another installation.
    #[error("key-gone: the keyring has no key for this log")]
    KeyGone,
    /// The data key does not open.
    #[error("key-refused: the log's key does not open")]
    KeyRefused,
}

impl StoreError {
    /// The word that names it where memory could not be loaded.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreachable(_) | Self::Uncertain => "store-unreachable",
            Self::Refused(_) => "store-refused",
            Self::Busy => "store-busy",
            _ => "store-failed",
        }
    }
}

impl Tampering {
    /// All of them.
    pub(crate) const ALL: [Self; 6] = [
        Self::RecordRefused,
        Self::LogTruncated,
        Self::LogOverfull,
        Self::RolledBack,
        Self::KeyGone,
        Self::KeyRefused,
    ];

    /// The word that names it in replies and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RecordRefused => "record-refused",
            Self::LogTruncated => "log-truncated",
            Self::LogOverfull => "log-overfull",
            Self::RolledBack => "rolled-back",
            Self::KeyGone => "key-gone",
            Self::KeyRefused => "key-refused",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::RolledBack => {
                "if you restored a backup on purpose, `confidant doctor --accept-restore` records that and opens it"
            }
            Self::KeyGone => {
                "this conversation was erased or belongs to another keyring; `confidant session delete` removes the dead rows"
            }
            _ => "restore the data folder from a backup, or delete this session to start it anew",
        }
    }
}

/// What using an engine can fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not a scope or session id.
    #[error("invalid session id: {0}")]
    Scope(#[from] ScopeError),
    /// Something in the request is not acceptable.
    #[error("{what}; hint: {hint}")]
    Invalid {
        /// What happened.
        what: String,
        /// What to do next.
        hint: String,
    },
    /// The stored conversation is not what was written.
    #[error("{0}; hint: {hint}", hint = .0.hint())]
    Tampered(Tampering),
    /// The same request id stands for another query already.
    #[error("this request_id was used for another query; hint: use a new request_id for each turn")]
    RequestReused,
    /// The request was answered so long ago that its answer is no longer kept.
    #[error(
        "this request_id was answered before and its answer is no longer kept; hint: use a new request_id"
    )]
    AnswerGone,
    /// Another turn of this session is still running.
    #[error(
        "another turn of this session is still running; hint: send it again later with the same request_id"
    )]
    Busy,
    /// The session was erased while the turn ran.
    #[error(
        "the session was erased while this turn ran, so nothing of it was kept; hint: start again if you wish"
    )]
    Erased,
    /// Somebody must approve something before there is an answer.
    #[error(
        "the turn waits for an approval; hint: approve or deny it, then ask again with the same request_id"
    )]
    AwaitsApproval,
    /// There is no such approval, or not any more.
    #[error("there is no such approval; hint: list those that wait with `confidant session approvals`")]
    NoSuchApproval,
    /// It was decided before.
    #[error("this approval was decided before ({0}); hint: a decision cannot be changed, ask the agent anew")]
    AlreadyDecided(&'static str),
    /// It ran out.
    #[error("this approval has expired, and nothing was done; hint: ask the agent anew")]
    ApprovalExpired,
    /// Somebody else has to decide.
    #[error("this approval is somebody else's to decide; hint: ask one of its approvers")]
    NotYourApproval,
    /// The person called it off.
    #[error(
        "the turn was cancelled; hint: ask again as a new message, under another request_id, if you wish"
    )]
    Cancelled,
    /// The process ended while the turn ran, too often or where such turns are not tried again.
    #[error("the turn was interrupted and is not tried again; hint: send it again with a new request_id")]
    Interrupted,
    /// No worker has room, or none is there.
    #[error(
        "every worker is busy, or none is running; hint: send the turn again with the same request_id in a moment, \
         or start another with `confidant serve --role worker`"
    )]
    NoWorker,
    /// The engine is stopping.
    #[error("the server is stopping; hint: send the turn again with the same request_id in a moment")]
    Stopping,
    /// The model gave no answer.
    #[error("{0}")]
    Model(#[from] ModelError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store failed while a session was being loaded; nothing of it is known.
    #[error("{0}")]
    Unloaded(StoreError),
    /// The master key could not be had.
    #[error("no usable master key: {0}")]
    Key(#[from] KeySourceError),
    /// A receipt or the audit log did not verify.
    #[error("{what}; hint: {hint}")]
    Unverified {
        /// What does not hold.
        what: String,
        /// What to do next.
        hint: &'static str,
    },
    /// Something that is derived from conversations could not be counted, exported or ended.
    #[error("{what}; hint: {hint}")]
    Derived {
        /// What happened.
        what: String,
        /// What to do next.
        hint: String,
    },
    /// The turn broke off by a fault of this program.
    #[error(
        "the turn broke off by an internal fault; hint: send it again with the same request_id, and report it"
    )]
    Internal,
}

impl From<Tampering> for Error {
    fn from(tampering: Tampering) -> Self {
        Self::Tampered(tampering)
    }
}

impl Error {
    /// Whether it is the store that failed: what was wanted may work once that does.
    pub(crate) fn is_stores(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Unloaded(_))
    }

    /// A failure of the store that came up while loading, marked as such: such a one costs a turn its memory only.
    pub(crate) fn while_loading(self) -> Self {
        match self {
            Self::Store(error) => Self::Unloaded(error),
            other => other,
        }
    }

    /// A word for replies, metrics and scripts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Scope(_) => "invalid_session_id",
            Self::Invalid { .. } => "invalid_request",
            Self::Tampered(tampering) => tampering.name(),
            Self::RequestReused => "request_id_reused",
            Self::AnswerGone => "answer_gone",
            Self::Busy => "busy",
            Self::Erased => "erased",
            Self::AwaitsApproval => "awaits_approval",
            Self::NoSuchApproval => "no_such_approval",
            Self::AlreadyDecided(_) => "already_decided",
            Self::ApprovalExpired => "approval_expired",
            Self::NotYourApproval => "not_your_approval",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::NoWorker => "no_worker",
            Self::Stopping => "stopping",
            Self::Model(_) => "model_failed",
            Self::Store(StoreError::Full) => "storage_full",
            Self::Store(_) | Self::Unloaded(_) => "storage_failed",
            Self::Key(_) => "key_unavailable",
            Self::Unverified { .. } => "unverified",
            Self::Derived { .. } => "derived_failed",
            Self::Internal => "internal",
        }
    }
}
