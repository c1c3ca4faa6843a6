//! The audit log: who did what to whose data, without the data.
//!
//! The log is one chain or several, called lanes: a lane has one writer at a time, so that processes on one store do not
//! wait for each other. Every record is sealed with its lane, its sequence and the tag of the one before it as associated
//! data, so a lane cannot be cut, reordered or forged without the audit key; the keyring remembers how long each was.
//! Reads are recorded as well as writes. Subjects are tags: whoever holds the keyring can tell whether a record is about a given person, and
//! nobody can tell whom it is about from the record alone.

use confidant_seal::{Context, Key, Suite, Tag, open, seal};
pub use confidant_store::Lane;
use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::error::Error;
use crate::ledger::keyring::Keyring;
use crate::ledger::log::tag_text;
use crate::store::{Audit, AuditHead, AuditLane, AuditPlace, LaneAnchor, PendingAudit};

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
    /// Somebody changed or took back what they had said.
    #[serde(rename = "session.amended")]
    SessionAmended,
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
    /// Memories were handed to an agent at the start of its session.
    #[serde(rename = "memory.recalled")]
    MemoryRecalled,
    /// A session was not made into a memory, for the reason that is given.
    #[serde(rename = "memory.skipped")]
    MemorySkipped,
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
    /// A person was let into the concepts of a conversation.
    #[serde(rename = "context.joined")]
    ContextJoined,
    /// A person was taken out of the concepts of a conversation.
    #[serde(rename = "context.left")]
    ContextLeft,
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
    /// An account was made.
    #[serde(rename = "account.registered")]
    AccountRegistered,
    /// A session of an account began.
    #[serde(rename = "account.logged_in")]
    AccountLoggedIn,
    /// Somebody who did not show that it is theirs wanted to use an account.
    #[serde(rename = "account.refused")]
    AccountRefused,
    /// A session of an account ended itself.
    #[serde(rename = "account.logged_out")]
    AccountLoggedOut,
    /// Credentials of an account were added or replaced.
    #[serde(rename = "account.credentials")]
    AccountCredentials,
    /// The password of an account was replaced by its recovery code.
    #[serde(rename = "account.recovered")]
    AccountRecovered,
    /// An account that was lost was put back from a device of its owner.
    #[serde(rename = "account.restored")]
    AccountRestored,
    /// The key of an account was replaced by its owner.
    #[serde(rename = "account.rotated")]
    AccountRotated,
    /// Everything of an account was exported by its owner.
    #[serde(rename = "account.exported")]
    AccountExported,
    /// A device was added to an account by another one.
    #[serde(rename = "device.paired")]
    DevicePaired,
    /// A device of an account was ended.
    #[serde(rename = "device.revoked")]
    DeviceRevoked,
    /// A session of an account was ended by another one.
    #[serde(rename = "device.session_ended")]
    DeviceSessionEnded,
    /// A chat was deleted by its owner, and its key destroyed.
    #[serde(rename = "chat.deleted")]
    ChatDeleted,
    /// A snapshot of a chat was shared by its owner.
    #[serde(rename = "snapshot.made")]
    SnapshotMade,
    /// A snapshot was ended by its owner.
    #[serde(rename = "snapshot.revoked")]
    SnapshotRevoked,
    /// Somebody asked for what is not theirs.
    #[serde(rename = "access.refused")]
    AccessRefused,
    /// A server started and opened the keyring with its master keys.
    #[serde(rename = "keys.opened")]
    KeysOpened,
    /// Every key was checked.
    #[serde(rename = "keys.verified")]
    KeysVerified,
    /// The state of the master keys was looked at.
    #[serde(rename = "keys.viewed")]
    KeysViewed,
    /// The keys were copied to another keyring, sealed as they are.
    #[serde(rename = "keys.copied")]
    KeysCopied,
    /// The audit log was read.
    #[serde(rename = "audit.viewed")]
    AuditViewed,
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

    /// The actor with this name in the log.
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
    /// In which tenant, as a tag in hex; missing where it concerns the whole installation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tenant: Option<String>,
    /// How many things it concerned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub count: Option<u64>,
    /// Why, in a word that says nothing of the data.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// A record with its place in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditLine {
    /// The lane that it stands in.
    #[serde(skip_serializing_if = "Lane::is_zero")]
    pub lane: Lane,
    /// Its sequence there.
    pub seq: u64,
    /// The record.
    #[serde(flatten)]
    pub record: AuditRecord,
    /// Its tag in hex, which the next record's seal binds.
    pub tag: String,
}

impl AuditRecord {
    pub(crate) fn new(at: Millis, actor: &Actor, action: Action) -> Self {
        Self { at, actor: actor.clone(), action, subject: None, tenant: None, count: None, reason: None }
    }

    pub(crate) fn about(mut self, subject: Tag) -> Self {
        self.subject = Some(subject.to_string());
        self
    }

    pub(crate) fn within(mut self, tenant: Tag) -> Self {
        self.tenant = Some(tenant.to_string());
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
        PendingAudit::new(move |place| {
            let plain = serde_json::to_vec(&self)
                .expect("an audit record has string keys only, so it is always JSON");
            in_place(place, |context| seal(&key, Suite::ChaCha20Poly1305, context, 1, &plain))
        })
    }
}

/// Reads the records of a lane that follow `after`, checking that each follows from the one before.
pub(crate) async fn read(
    store: &dyn Audit,
    key: &Key,
    lane: Lane,
    after: Option<AuditHead>,
    limit: usize,
) -> Result<Vec<AuditLine>, Error> {
    let mut lines = Vec::new();
    let mut place = after.map_or(AuditPlace::first(lane), AuditHead::next);
    for (seq, sealed) in store.audit(lane, place.seq - 1, limit).await? {
        if seq != place.seq {
            return Err(broken(place, "is missing"));
        }
        let opened = in_place(place, |context| open(key, context, &sealed))
            .map_err(|_| broken(place, "does not follow from the record before it"))?;
        let record =
            serde_json::from_slice(&opened.data).map_err(|_| broken(place, "is not an audit record"))?;
        let tag = sealed.tag().ok_or_else(|| broken(place, "is not an audit record"))?;
        lines.push(AuditLine { lane, seq, record, tag: tag_text(Some(&tag)) });
        place = AuditHead { lane, seq, tag }.next();
    }
    Ok(lines)
}

/// Checks one lane from its first record that is there to its last; says how many there are.
///
/// `anchors` are those of the keyring, which has seen how long lanes were and from when on their beginnings may go.
pub(crate) async fn verify(
    store: &dyn Audit,
    key: &Key,
    lane: Lane,
    found: Option<&AuditLane>,
    anchors: &[LaneAnchor],
    now: Millis,
) -> Result<u64, Error> {
    let of_lane = || anchors.iter().filter(|anchor| anchor.lane == lane);
    let seen = of_lane().map(|anchor| anchor.seq).max().unwrap_or(0);
    let may_be_gone = may_be_gone(lane, anchors, now);
    let floor = found.and_then(|lane| lane.floor);
    let (mut last, mut count) = (floor, 0);
    if floor.is_some_and(|floor| floor.seq > may_be_gone) {
        let first = AuditPlace { lane, seq: may_be_gone + 1, previous: None };
        return Err(broken(first, "was removed before its retention time ended"));
    }
    loop {
        let lines = read(store, key, lane, last, AT_ONCE).await?;
        let Some(line) = lines.last() else { break };
        last = line.head();
        count += lines.len() as u64;
    }
    let end = last.map_or(0, |last| last.seq);
    let said = found.map_or(0, |lane| lane.head.seq);
    if end < said || (end < seen && may_be_gone < seen) {
        let next = AuditPlace { lane, seq: end + 1, previous: None };
        return Err(broken(
            next,
            "and all later ones are missing, though the keyring or the log still counts them",
        ));
    }
    Ok(count)
}

/// The last record of a lane that is past its time, by what the keyring has seen; 0 for none.
pub(crate) fn may_be_gone(lane: Lane, anchors: &[LaneAnchor], now: Millis) -> u64 {
    let past = |anchor: &&LaneAnchor| anchor.lane == lane && anchor.until.is_some_and(|until| until <= now);
    anchors.iter().filter(past).map(|anchor| anchor.seq).max().unwrap_or(0)
}

impl AuditLine {
    /// Where the next record of the lane continues.
    pub(crate) fn head(&self) -> Option<AuditHead> {
        let tag = Tag::from_hex(&self.tag)?;
        Some(AuditHead { lane: self.lane, seq: self.seq, tag: *tag.as_bytes() })
    }
}

const AT_ONCE: usize = 500;

fn broken(place: AuditPlace, how: &str) -> Error {
    let lane = match place.lane {
        Lane::ZERO => String::new(),
        lane => format!(" of lane {}", lane.number()),
    };
    Error::Unverified {
        what: format!("the audit chain is broken: record {}{lane} {how}", place.seq),
        hint: "the log was altered or truncated; compare the data with a backup and keep both",
    }
}

/// Calls `act` with the context of a record in this place.
fn in_place<T>(place: AuditPlace, act: impl FnOnce(&Context<'_>) -> T) -> T {
    let (seq, previous) = (place.seq.to_string(), tag_text(place.previous.as_ref()));
    // Lane 0 is not named: its records are older than lanes.
    let lane = if place.lane.is_zero() { String::new() } else { place.lane.number().to_string() };
    act(&Context { purpose: "audit", owner: "", container: &lane, object: &seq, field: &previous })
}
