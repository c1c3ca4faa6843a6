//! What is asked of a memory and what it answers: the shapes of the tools, the same for MCP and the command line.
//!
//! Requests are typed and already read; reading them from JSON without quoting what is wrong with it is the caller's.
//! Replies serialise to exactly what the tools return.

use confidant_display::debug_without_content;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Card;
use crate::error::Place;
use crate::gate::Fired;
use crate::import::Root;

/// `store_session_to_cascade`.
#[derive(Clone, Default, PartialEq)]
pub struct StoreRequest {
    /// Which session.
    pub session_id: String,
    /// The session itself, if it is handed over; else it is looked for.
    pub session: Option<Map<String, Value>>,
    /// Tags to find it by; the session's own are added.
    pub tags: Vec<String>,
    /// What else is to be kept with the card. The tool's own switches are not among it.
    pub metadata: Map<String, Value>,
    /// `mock` or `live`; the server's default if missing.
    pub mode: Option<String>,
    /// What is to be stored.
    pub raw: Raw,
    /// Store only exactly these bytes: the hash of a dry run.
    pub expect_sha256: Option<String>,
}

/// Whether the redacted transcript is stored beside the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Raw {
    /// Only the card.
    #[default]
    No,
    /// The transcript too: both flags were given, and a person agreed where one could be asked.
    Acknowledged,
}

/// The words that have to be given to store a transcript.
pub const RAW_EXPORT_ACK: &str = "I understand the risk";

/// What is indexed of a session that is stored from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexOf {
    /// Its card, the words of its redacted text, and hashes of what was taken out.
    #[default]
    Session,
    /// Its card only.
    Card,
}

/// What `store_session_to_cascade` did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stored {
    /// Always true; errors are errors.
    pub ok: bool,
    /// The session, redacted like everything else.
    pub session_id: String,
    /// Where the artifact is.
    pub cascade_uri: String,
    /// `artifact_only` or `raw_plus_artifact`.
    pub artifact_type: ArtifactType,
    /// Whether a search finds it from now on; not if what the session became meanwhile was stored first.
    pub indexed: bool,
    /// The card.
    pub memory_card: Card,
    /// What was redacted.
    pub redaction: Redaction,
    /// How it was sealed.
    pub crypto: Crypto,
    /// Whether exactly this was stored before, so that nothing was done now.
    pub already_stored: bool,
    /// The memory of the same session that this one replaces in searches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
}

/// What `store_session_to_cascade` would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DryRun {
    /// Always true.
    pub ok: bool,
    /// Always true.
    pub dry_run: bool,
    /// The session, redacted.
    pub session_id: String,
    /// What would be uploaded.
    pub preview: Preview,
    /// The card.
    pub memory_card: Card,
    /// What was redacted.
    pub redaction: Redaction,
    /// What a search would know of the session beside the card.
    pub session_index: Indexed,
}

/// What a search knows of a session beside its card; nothing of it is in the artifact.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Indexed {
    /// The words of the redacted session, as stems, in the order of the alphabet.
    pub words: Vec<String>,
    /// How many passages have a place in meaning.
    pub passages: usize,
    /// How many values that were replaced can be found by whoever types them: each is a keyed hash.
    pub replaced_values: usize,
}

/// The payload, before it is sealed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preview {
    /// `artifact_only` or `raw_plus_artifact`.
    pub artifact_type: ArtifactType,
    /// The members of the payload.
    pub fields: Vec<String>,
    /// How many bytes the payload has.
    pub bytes: usize,
    /// Always false: this is a dry run.
    pub would_upload: bool,
    /// The hash of the payload's bytes, for `expect_sha256`.
    pub sha256: String,
    /// The payload's bytes, as text.
    pub payload_json: String,
    /// The payload.
    pub payload: Value,
}

/// What is in an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactType {
    /// The card.
    ArtifactOnly,
    /// The card and the redacted transcript.
    RawPlusArtifact,
}

impl ArtifactType {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ArtifactOnly => "artifact_only",
            Self::RawPlusArtifact => "raw_plus_artifact",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::ArtifactOnly, Self::RawPlusArtifact].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// What the gate replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Redaction {
    /// How often each rule held.
    pub rules_fired: Vec<Fired>,
}

/// How an artifact is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Crypto {
    /// The cipher.
    pub enc: &'static str,
    /// How many bytes are stored.
    pub bytes: usize,
    /// The public id of the artifact's own key.
    pub key_id: String,
    /// The hash of the payload.
    pub plaintext_sha256: String,
    /// The hash of what is stored.
    pub ciphertext_sha256: String,
}

/// `query_memories`.
#[derive(Clone, Default, PartialEq)]
pub struct QueryRequest {
    /// Words.
    pub query: String,
    /// All of these tags, exactly.
    pub tags: Vec<String>,
    /// At most so many.
    pub limit: usize,
    /// After so many.
    pub offset: usize,
    /// Not before, in milliseconds since 1970.
    pub from: Option<i64>,
    /// Before.
    pub until: Option<i64>,
}

/// What `query_memories` and `list_memories` found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hits {
    /// Always true.
    pub ok: bool,
    /// The best first.
    pub hits: Vec<MemoryHit>,
    /// How many more there are that do not open in their place.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreadable: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "made for serde")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One memory, in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryHit {
    /// The session it is of.
    pub cass_session_id: String,
    /// Where the artifact is.
    pub cascade_uri: String,
    /// `artifact_only` or `raw_plus_artifact`.
    pub artifact_type: ArtifactType,
    /// The card's title.
    pub title: String,
    /// The card's first bullets.
    pub snippet: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// When the session was.
    pub created_at: String,
    /// How well it fits, from 0 to 1: higher is better. 0 where nothing was searched for.
    pub score: f64,
    /// What of it fits the query best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<Matched>,
    /// Lines of its card that a later memory among these states otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<Overturned>,
}

/// A line that is no longer so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overturned {
    /// What was so.
    pub line: String,
    /// What the later memory says.
    pub now: String,
    /// Which memory that is.
    pub by: String,
}

/// What of a memory fits a query best.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Matched {
    /// A line of the card that has some of the query's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bullet: Option<String>,
    /// The passage of the session that is nearest in meaning, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passage: Option<u32>,
    /// How many passages the session has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passages: Option<u32>,
}

/// What `retrieve_session_from_cascade` returned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Retrieved {
    /// Always true.
    pub ok: bool,
    /// Where it was.
    pub cascade_uri: String,
    /// `artifact_only` or `raw_plus_artifact`.
    pub artifact_type: ArtifactType,
    /// The artifact.
    pub artifact: Value,
    /// That it was checked.
    pub crypto: Verified,
}

/// That an artifact is what was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Always true: what does not verify is not returned.
    pub verified: bool,
}

/// What to forget.
#[derive(Clone, PartialEq, Eq)]
pub enum Forget {
    /// One artifact, by its `cascade_uri`, and the earlier ones of its session that it stands in for.
    Uri(String),
    /// All that was stored of a session, by its id.
    Session(String),
}

/// What `forget_memory` did, or would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// Always true.
    pub ok: bool,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// How many memories went.
    pub forgotten: u64,
    /// How many of their blobs lie where nothing can be deleted; their keys are destroyed, so nothing opens them.
    pub permanent: u64,
    /// How many blobs are still to be deleted because their store did not answer; their keys are destroyed.
    pub pending: u64,
    /// Which.
    pub cascade_uris: Vec<String>,
}

/// `import_sessions`.
#[derive(Clone, Default, PartialEq)]
pub struct ImportRequest {
    /// Where session files are.
    pub roots: Vec<Root>,
    /// Tags for all of them; the sessions' own are added.
    pub tags: Vec<String>,
    /// `mock` or `live`; the server's default if missing.
    pub mode: Option<String>,
    /// Do everything but write.
    pub dry_run: bool,
    /// Also what has not changed since the last import, as after a change of rules, tags or mode.
    pub again: bool,
    /// Tell of every session, not of the first and of those that could not be stored.
    pub tell_all: bool,
    /// Only the session with this id, where a file has several.
    pub only: Option<String>,
}

/// What `import_sessions` did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Always true.
    pub ok: bool,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Files that were read.
    pub files: u64,
    /// Files that had not changed since the last import.
    pub unchanged_files: u64,
    /// Files and folders that could not be read.
    pub unreadable_files: u64,
    /// Files that no known agent writes.
    pub unknown_files: u64,
    /// Sessions that were found in the files that were read.
    pub sessions: u64,
    /// Those that were stored, or would be.
    pub stored: u64,
    /// Those that were stored before and have not changed.
    pub unchanged: u64,
    /// Those that have a critical secret; nothing of them was stored.
    pub blocked: u64,
    /// Those that could not be made into a clean card.
    pub refused: u64,
    /// Those that were forgotten before, and stay so. Store one by its id to have it back.
    pub forgotten: u64,
    /// Lines that made no sense.
    pub skipped_lines: u64,
    /// Texts that were too long and were left out whole.
    pub left_out_texts: u64,
    /// What became of the first sessions, those that had not changed left out; of all, if that was asked for.
    pub items: Vec<ImportedSession>,
    /// How many more there are.
    pub more_items: u64,
}

/// What became of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportedSession {
    /// The session, redacted.
    pub session_id: String,
    /// Whose file it was in.
    pub agent: &'static str,
    /// What became of it.
    pub outcome: ImportOutcome,
    /// The card's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where the artifact is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cascade_uri: Option<String>,
    /// Why it was not stored: rule and place of what was found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

/// What became of a session of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportOutcome {
    /// It is stored.
    Stored,
    /// It would be.
    WouldStore,
    /// It was stored before and has not changed.
    Unchanged,
    /// It has a critical secret.
    Blocked,
    /// It could not be made into a clean card.
    Refused,
    /// It was forgotten before.
    Forgotten,
}

debug_without_content!(StoreRequest(***), QueryRequest(***), Forget(***), ImportRequest(***));
