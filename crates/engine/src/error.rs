//! What can go wrong, once for opening an engine and once for using it.
//!
//! Every message has two parts: what happened, and what to do next. None quotes content, keys, tokens or raw ids.

use confidant_model::ModelError;
use confidant_seal::{Kid, ScopeError};
pub use confidant_store::StoreError;

use crate::head::Lacks;

/// Why an engine could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no usable master key.
    #[error("no usable master key: {0}")]
    Key(#[from] KeySourceError),
    /// The keyring was sealed under a root that no configured key yields.
    #[error(
        "wrong master key: the keyring is sealed under root {expected}, but the configured keys give {found}; \
         hint: set the key that this data was made with, in CHECKPOINT_ENCRYPTION_KEY or OLD_CHECKPOINT_ENCRYPTION_KEY"
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
    /// A copy to this store is running, or was interrupted.
    #[error(
        "this store is an unfinished copy of another; hint: run `confidant store copy` again to finish it"
    )]
    UnfinishedCopy,
    /// The keyring's own records do not open.
    #[error(
        "the keyring's {0} key cannot be opened: it was altered or belongs to another installation; \
         hint: restore keyring.db from a backup"
    )]
    KeyringTampered(&'static str),
    /// A key of the keyring itself was taken out: with a new one in its place nothing of before would be found, nor erased.
    #[error(
        "the keyring's {0} key is missing, although it was in use; hint: restore the keyring from a backup"
    )]
    KeyringIncomplete(&'static str),
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

/// How a stored conversation turned out not to be what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Tampering {
    /// A record cannot be opened in its place: altered, swapped, reordered, or never sealed.
    #[error("record-refused: a stored record was altered or moved")]
    RecordRefused,
    /// Records are missing in the middle or at the end.
    #[error("log-truncated: records are missing from the log")]
    LogTruncated,
    /// There are records that the log does not account for.
    #[error("log-overfull: the log holds records that do not belong to it")]
    LogOverfull,
    /// The log is older than one that was seen before.
    #[error("rolled-back: the log is older than the version that the keyring last saw")]
    RolledBack,
    /// The data key is not in the keyring: destroyed, or from another installation.
    #[error("key-gone: the keyring has no key for this log")]
    KeyGone,
    /// The data key does not open.
    #[error("key-refused: the log's key cannot be opened")]
    KeyRefused,
    /// The key was made before an erasure that ended it, and is here again.
    #[error("put-back: this was erased, but somebody put it back")]
    PutBack,
    /// The tags beside a conversation are not those of its owner.
    #[error("relabelled: the owner tags stored with this conversation are somebody else's")]
    Relabelled,
    /// The lifetime beside a conversation is not the one that it was given.
    #[error("lifetime-changed: the lifetime stored with this conversation was changed")]
    LifetimeChanged,
}

impl Tampering {
    /// All of them.
    pub(crate) const ALL: [Self; 9] = [
        Self::RecordRefused,
        Self::LogTruncated,
        Self::LogOverfull,
        Self::RolledBack,
        Self::KeyGone,
        Self::KeyRefused,
        Self::PutBack,
        Self::Relabelled,
        Self::LifetimeChanged,
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
            Self::PutBack => "put-back",
            Self::Relabelled => "relabelled",
            Self::LifetimeChanged => "lifetime-changed",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::RolledBack => {
                "if you restored a backup on purpose, run `confidant doctor --accept-restore` to accept it"
            }
            Self::KeyGone => {
                "this conversation was erased or belongs to another keyring; `confidant session delete` removes its \
                 remaining rows"
            }
            Self::PutBack => {
                "erase it again with `confidant session delete`, then find out who can write to the store"
            }
            _ => "restore the data folder from a backup, or delete this session and start over",
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
    /// The request id was used for another query already.
    #[error("this request_id was used for another query; hint: use a new request_id for each turn")]
    RequestReused,
    /// The request was answered so long ago that its answer is no longer kept.
    #[error(
        "this request_id was already answered, and the answer is no longer kept; hint: use a new request_id"
    )]
    AnswerGone,
    /// Another turn of this session is still running.
    #[error(
        "another turn of this session is still running; hint: send it again later with the same request_id"
    )]
    Busy,
    /// The session was erased while the turn ran.
    #[error(
        "the session was erased while this turn ran, so nothing was kept; hint: send a new message to start over"
    )]
    Erased,
    /// Somebody must approve something before there is an answer.
    #[error(
        "the turn is waiting for an approval; hint: approve or deny it, then ask again with the same request_id"
    )]
    AwaitsApproval,
    /// There is no such approval, or no longer.
    #[error("there is no such approval; hint: list the pending ones with `confidant session approvals`")]
    NoSuchApproval,
    /// It is already decided.
    #[error(
        "this approval was already decided ({0}); hint: a decision cannot be changed; ask the agent again"
    )]
    AlreadyDecided(&'static str),
    /// The same person decided it already, and that decision counts.
    #[error(
        "you already decided this approval ({0}), and your decision counted; \
         hint: nothing more to do; send the turn's request_id again to get the result"
    )]
    DecidedByYou(&'static str),
    /// The decision is in the log, but could not be carried out yet.
    #[error(
        "your decision stands ({0}) and will be carried out later: {why}; \
         hint: nothing more to do; send the turn's request_id again to get the result",
        why = .1.why_not_yet()
    )]
    Stands(&'static str, Box<Self>),
    /// It has expired.
    #[error("this approval has expired, and nothing was done; hint: ask the agent again")]
    ApprovalExpired,
    /// Somebody else has to decide.
    #[error("somebody else must decide this approval; hint: ask one of its approvers")]
    NotYourApproval,
    /// The person cancelled it.
    #[error("the turn was cancelled; hint: to ask again, send a new message with a new request_id")]
    Cancelled,
    /// The process ended while the turn ran: too often, or where such turns are not retried.
    #[error("the turn was interrupted and will not be retried; hint: send it again with a new request_id")]
    Interrupted,
    /// No worker has room, or none is running.
    #[error(
        "every worker is busy, or none is running; hint: send the turn again with the same request_id in a moment, \
         or start another with `confidant serve --role worker`"
    )]
    NoWorker,
    /// The bus to the workers cannot be reached.
    #[error(
        "the bus cannot be reached, so no worker gets this turn; \
         hint: check the Redis at bus.url (or store.url), then send the turn again with the same request_id"
    )]
    Bus(StoreError),
    /// The engine is stopping.
    #[error("the server is stopping; hint: send the turn again with the same request_id in a moment")]
    Stopping,
    /// The log does not have the conversation as its client does.
    #[error("the conversation is not here as you have it ({}); hint: send its history with the message", .0.code())]
    History(Lacks),
    /// The model gave no answer.
    #[error("{0}")]
    Model(#[from] ModelError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store failed while a session was being loaded; nothing of it is known.
    #[error("{0}")]
    Unloaded(StoreError),
    /// There is no usable master key.
    #[error("no usable master key: {0}")]
    Key(#[from] KeySourceError),
    /// A receipt or the audit log did not verify.
    #[error("{what}; hint: {hint}")]
    Unverified {
        /// What did not verify.
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
    /// The turn failed because of a bug in this program.
    #[error(
        "the turn failed with an internal error; hint: send it again with the same request_id, and report the error"
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

    /// Why it costs a turn its memory and not its answer, by name; `None` for one that costs both.
    pub(crate) fn costs_memory(&self) -> Option<&'static str> {
        match self {
            Self::Tampered(tampering) => Some(tampering.name()),
            Self::Unloaded(store) | Self::Store(store) => Some(store.name()),
            Self::Key(_) => Some("key-unavailable"),
            _ => None,
        }
    }

    /// A failure of the store that came up while loading, marked as such: such a one costs a turn its memory only.
    pub(crate) fn while_loading(self) -> Self {
        match self {
            Self::Store(error) => Self::Unloaded(error),
            other => other,
        }
    }

    /// Why a decision is not carried out at once.
    fn why_not_yet(&self) -> &'static str {
        match self {
            Self::NoWorker => "no worker is available",
            Self::Bus(_) => "the workers cannot be reached",
            Self::Busy => "another turn of the conversation is still running",
            _ => "the store failed",
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
            Self::AlreadyDecided(_) | Self::DecidedByYou(_) => "already_decided",
            Self::Stands(_, why) => why.code(),
            Self::ApprovalExpired => "approval_expired",
            Self::NotYourApproval => "not_your_approval",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::NoWorker => "no_worker",
            Self::Bus(_) => "bus_unreachable",
            Self::Stopping => "stopping",
            Self::History(lacks) => lacks.code(),
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
