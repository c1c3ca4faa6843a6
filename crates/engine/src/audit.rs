//! The audit log: who did what to whose data, without the data.
//!
//! Every record is sealed with the sequence and tag of the one before it as associated data, so the chain cannot be
//! cut, reordered or forged without the audit key; the keyring remembers how long it was. Reads are recorded as well
//! as writes. Subjects are tags: whoever holds the keyring can tell whether a record is about a given person, and
//! nobody can tell whom it is about from the record alone.

use std::sync::Arc;

use confidant_seal::{Context, Key, Suite, Tag, open, seal};
use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::error::Error;
use crate::keyring::Keyring;
use crate::log::hex;
use crate::store::{PendingAudit, Store};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Action {
    /// A session's log was opened.
    #[serde(rename = "session.opened")]
    SessionOpened,
    /// A turn was accepted.
    #[serde(rename = "turn.accepted")]
    TurnAccepted,
    /// A turn was answered.
    #[serde(rename = "turn.answered")]
    TurnAnswered,
    /// A turn ended without an answer.
    #[serde(rename = "turn.failed")]
    TurnFailed,
    /// A turn that was cut off is being tried again.
    #[serde(rename = "turn.resumed")]
    TurnResumed,
    /// A turn stopped to ask somebody's approval.
    #[serde(rename = "approval.asked")]
    ApprovalAsked,
    /// An approval was given.
    #[serde(rename = "approval.given")]
    ApprovalGiven,
    /// An approval was denied.
    #[serde(rename = "approval.denied")]
    ApprovalDenied,
    /// An approval ran out.
    #[serde(rename = "approval.expired")]
    ApprovalExpired,
    /// A tool that changes something is about to be called.
    #[serde(rename = "tool.called")]
    ToolCalled,
    /// What was made of a turn was written.
    #[serde(rename = "session.enriched")]
    SessionEnriched,
    /// The beginning of a conversation was summed up.
    #[serde(rename = "session.summarised")]
    SessionSummarised,
    /// A conversation was marked for somebody to look at.
    #[serde(rename = "session.flagged")]
    SessionFlagged,
    /// A conversation was ended for safety.
    #[serde(rename = "session.terminated")]
    SessionTerminated,
    /// A conversation was written without a model, as by an import.
    #[serde(rename = "session.recorded")]
    SessionRecorded,
    /// The person changed a choice of theirs.
    #[serde(rename = "session.choice")]
    SessionChoice,
    /// A session was exported.
    #[serde(rename = "session.exported")]
    SessionExported,
    /// A session was looked at.
    #[serde(rename = "session.viewed")]
    SessionViewed,
    /// A session was erased.
    #[serde(rename = "session.erased")]
    SessionErased,
    /// A session's lifetime was over, and it was erased.
    #[serde(rename = "session.expired")]
    SessionExpired,
    /// Sessions were listed.
    #[serde(rename = "session.listed")]
    SessionListed,
    /// Everything of a person was exported.
    #[serde(rename = "person.exported")]
    PersonExported,
    /// Everything of a person was erased.
    #[serde(rename = "person.erased")]
    PersonErased,
    /// A session was made into a memory.
    #[serde(rename = "memory.stored")]
    MemoryStored,
    /// Memories were searched or listed.
    #[serde(rename = "memory.queried")]
    MemoryQueried,
    /// A memory was read.
    #[serde(rename = "memory.retrieved")]
    MemoryRetrieved,
    /// Memories were forgotten.
    #[serde(rename = "memory.forgotten")]
    MemoryForgotten,
    /// The concepts in scope of a conversation were looked at.
    #[serde(rename = "context.viewed")]
    ContextViewed,
    /// A concept in scope was pinned.
    #[serde(rename = "context.pinned")]
    ContextPinned,
    /// A pinned concept was let go of.
    #[serde(rename = "context.unpinned")]
    ContextUnpinned,
    /// Concepts in scope of a conversation were erased.
    #[serde(rename = "context.erased")]
    ContextErased,
    /// The concepts of a conversation were put out of use, since nobody used them.
    #[serde(rename = "context.archived")]
    ContextArchived,
    /// The concepts of a conversation were made anew from its capture log.
    #[serde(rename = "context.rebuilt")]
    ContextRebuilt,
    /// Concepts that a model named were not taken, for the reason that is given.
    #[serde(rename = "concept.refused")]
    ConceptRefused,
    /// Concepts that wait to be approved were listed.
    #[serde(rename = "concept.listed")]
    ConceptListed,
    /// A concept was put into the shared graph.
    #[serde(rename = "concept.approved")]
    ConceptApproved,
    /// Somebody asked for what is not theirs.
    #[serde(rename = "access.refused")]
    AccessRefused,
    /// Everything was re-sealed under another root.
    #[serde(rename = "keys.rotated")]
    KeysRotated,
    /// A token was made.
    #[serde(rename = "token.created")]
    TokenCreated,
    /// A token was revoked.
    #[serde(rename = "token.revoked")]
    TokenRevoked,
    /// A restored backup was accepted as the truth.
    #[serde(rename = "restore.accepted")]
    RestoreAccepted,
}

/// Who did it: a token by its id, the command line, or the program itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Actor(String);

impl Actor {
    /// The command line.
    #[must_use]
    pub fn cli() -> Self {
        Self("cli".to_owned())
    }

    /// The program itself, such as its sweeper.
    #[must_use]
    pub fn system() -> Self {
        Self("system".to_owned())
    }

    /// Whoever is called this in the log, such as one that was named by another actor's text.
    #[must_use]
    pub fn named(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// How the log names it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bearer of a token, by the token's id.
    #[must_use]
    pub fn token(id: &str) -> Self {
        Self(format!("token:{id}"))
    }
}

/// One record of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// When.
    pub at: Millis,
    /// Who.
    pub actor: Actor,
    /// What.
    pub action: Action,
    /// To which session or person, as a tag in hex.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subject: Option<String>,
    /// How many things it concerned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub count: Option<u64>,
    /// Why, in a word that says nothing of the data.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// A record with its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditLine {
    /// Its sequence.
    pub seq: u64,
    /// The record.
    #[serde(flatten)]
    pub record: AuditRecord,
    /// Its tag in hex, which the next record's seal binds.
    pub tag: String,
}

impl AuditRecord {
    pub(crate) fn new(at: Millis, actor: &Actor, action: Action) -> Self {
        Self { at, actor: actor.clone(), action, subject: None, count: None, reason: None }
    }

    pub(crate) fn about(mut self, subject: Tag) -> Self {
        self.subject = Some(subject.to_string());
        self
    }

    pub(crate) fn counting(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    pub(crate) fn because(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    /// The record, ready to be sealed into its place.
    pub(crate) fn pending(self, keyring: &Keyring) -> PendingAudit {
        let key = keyring.audit_key().clone();
        PendingAudit::new(move |seq, previous| {
            let plain = serde_json::to_vec(&self)
                .expect("an audit record has string keys only, so it is always JSON");
            let (object, field) = (seq.to_string(), hex(previous.as_ref()));
            seal(&key, Suite::ChaCha20Poly1305, &context(&object, &field), 1, &plain)
        })
    }
}

/// Reads records after `after`, checking that each follows from the one before.
///
/// `previous` is the tag of the record at `after`, nothing at the beginning.
pub(crate) async fn read(
    store: &Arc<dyn Store>,
    key: &Key,
    after: u64,
    previous: Option<[u8; 16]>,
    limit: usize,
) -> Result<Vec<AuditLine>, Error> {
    let mut lines = Vec::new();
    let (mut last, mut previous) = (after, previous);
    for (seq, sealed) in store.audit(after, limit).await? {
        if seq != last + 1 {
            return Err(broken(last + 1, "is missing"));
        }
        let (object, field) = (seq.to_string(), hex(previous.as_ref()));
        let opened = open(key, &context(&object, &field), &sealed);
        let opened = opened.map_err(|_| broken(seq, "does not follow from the one before it"))?;
        let record =
            serde_json::from_slice(&opened.data).map_err(|_| broken(seq, "is not an audit record"))?;
        previous = sealed.tag();
        last = seq;
        lines.push(AuditLine { seq, record, tag: hex(previous.as_ref()) });
    }
    Ok(lines)
}

pub(crate) fn broken(seq: u64, how: &str) -> Error {
    Error::Unverified {
        what: format!("the audit chain is broken: record {seq} {how}"),
        hint: "the log was altered or cut; compare confidant.db with a backup and keep both",
    }
}

fn context<'a>(object: &'a str, field: &'a str) -> Context<'a> {
    Context { purpose: "audit", owner: "", container: "", object, field }
}
