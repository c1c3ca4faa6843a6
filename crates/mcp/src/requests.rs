//! From a tool's arguments to what is asked of the memory.

use std::path::PathBuf;

use confidant_memory::api::{Forget, ImportRequest, QueryRequest, RAW_EXPORT_ACK, Raw, StoreRequest};
use confidant_memory::import::Agent;
use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::failure::Failure;
use super::import;

type Read<T> = Result<T, Failure>;

/// `store_session_to_cascade`.
#[derive(Clone, PartialEq)]
pub(super) struct Store {
    pub(super) request: StoreRequest,
    pub(super) dry_run: bool,
    /// Why the transcript is not stored although something was said of storing it.
    pub(super) notes: Vec<&'static str>,
}

impl Store {
    pub(super) fn read(arguments: &Map<String, Value>) -> Read<Self> {
        let given = Arguments::of(
            arguments,
            &["session_id", "session", "tags", "metadata", "mode", "dry_run", "expect_sha256"],
        )?;
        let mut metadata = given.object("metadata")?.unwrap_or_default();
        let switches = Switches::take(&mut metadata)?;
        let session = given.object("session")?;
        // A session that is handed over may carry its id itself.
        let session_id = match (given.text("session_id")?, session.as_ref().and_then(|s| s.get("session_id")))
        {
            (Some(id), _) => id.to_owned(),
            (None, Some(Value::String(id))) => id.clone(),
            (None, _) => {
                let hint = "give the id of the session, and the session itself as \"session\" if it is not stored anywhere";
                return Err(Failure::invalid("\"session_id\" is missing", hint));
            }
        };
        let expect_sha256 = agreed(given.sha256("expect_sha256")?, switches.expect_sha256)?;
        Ok(Self {
            // Asked for in either place, a dry run is a dry run.
            dry_run: given.flag("dry_run")?.unwrap_or(false) || switches.dry_run,
            notes: switches.notes,
            request: StoreRequest {
                session_id,
                session,
                tags: given.texts("tags")?,
                metadata,
                mode: mode(given)?.map(str::to_owned),
                raw: switches.raw,
                expect_sha256,
            },
        })
    }
}

/// The tool's own switches, which stand among the metadata.
struct Switches {
    dry_run: bool,
    raw: Raw,
    expect_sha256: Option<String>,
    notes: Vec<&'static str>,
}

impl Switches {
    /// Takes the switches out, so that what is left is metadata.
    fn take(metadata: &mut Map<String, Value>) -> Read<Self> {
        let names = ["dry_run", "allow_raw_export", "raw_export_ack", "expect_sha256"];
        let taken: Map<String, Value> =
            names.iter().filter_map(|name| Some(((*name).to_owned(), metadata.remove(*name)?))).collect();
        let given = Arguments::of(&taken, &names).map_err(inside)?;
        let allowed = given.flag("allow_raw_export").map_err(inside)?.unwrap_or(false);
        let said = given.text("raw_export_ack").map_err(inside)?;
        let (raw, notes) = match (allowed, said) {
            (true, Some(RAW_EXPORT_ACK)) => (Raw::Acknowledged, vec![]),
            (false, None) => (Raw::No, vec![]),
            (true, None) => (Raw::No, vec![NO_ACK]),
            (true, Some(_)) => (Raw::No, vec![OTHER_ACK]),
            (false, Some(_)) => (Raw::No, vec![NOT_ALLOWED]),
        };
        Ok(Self {
            dry_run: given.flag("dry_run").map_err(inside)?.unwrap_or(false),
            expect_sha256: given.sha256("expect_sha256").map_err(inside)?,
            raw,
            notes,
        })
    }
}

/// Says that a field is one of the metadata's.
fn inside(failure: Failure) -> Failure {
    Failure { message: failure.message.replacen('"', "\"metadata.", 1), ..failure }
}

fn agreed(one: Option<String>, other: Option<String>) -> Read<Option<String>> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => Err(Failure::invalid(
            "\"expect_sha256\" and \"metadata.expect_sha256\" are not the same",
            "give one of them",
        )),
        (one, other) => Ok(one.or(other)),
    }
}

/// `remember`: a note is a session that says one thing. Nobody has to invent an id for it.
pub(super) fn remember(arguments: &Map<String, Value>) -> Read<StoreRequest> {
    let given = Arguments::of(arguments, &["text", "tags"])?;
    let note = given.required("text", "give the note, in a sentence or a few")?;
    if note.trim().is_empty() {
        return Err(Failure::invalid("\"text\" is empty", "give the note, in a sentence or a few"));
    }
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| Failure::internal())?;
    let mut session = Map::new();
    session.insert("summary".to_owned(), note.into());
    session.insert("tool_name".to_owned(), "remember".into());
    Ok(StoreRequest {
        session_id: format!("note-{:016x}", u64::from_be_bytes(random)),
        session: Some(session),
        tags: given.texts("tags")?,
        ..StoreRequest::default()
    })
}

/// `recall`.
pub(super) fn recall(arguments: &Map<String, Value>) -> Read<QueryRequest> {
    let given = Arguments::of(arguments, &["query", "limit"])?;
    let query = given.required("query", "give a few words to look for; list_memories needs none")?;
    Ok(QueryRequest { query: query.to_owned(), ..page(given, QUERY_LIMIT)? })
}

/// `query_memories`.
pub(super) fn query(arguments: &Map<String, Value>) -> Read<QueryRequest> {
    let given = Arguments::of(arguments, &["query", "tags", "limit", "offset", "time_range"])?;
    let query = given.required("query", "give a few words to look for; list_memories needs none")?;
    Ok(QueryRequest { query: query.to_owned(), ..page(given, QUERY_LIMIT)? })
}

/// `list_memories`.
pub(super) fn list(arguments: &Map<String, Value>) -> Read<QueryRequest> {
    page(Arguments::of(arguments, &["tags", "limit", "offset", "time_range"])?, LIST_LIMIT)
}

fn page(given: Arguments<'_>, limit: u64) -> Read<QueryRequest> {
    let (from, until) = given.time_range()?;
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Ok(QueryRequest {
        query: String::new(),
        tags: given.texts("tags")?,
        limit: size(given.count("limit", 1..=MOST_HITS)?.unwrap_or(limit)),
        offset: size(given.count("offset", 0..=FARTHEST)?.unwrap_or(0)),
        from,
        until,
    })
}

/// `retrieve_session_from_cascade`.
pub(super) fn retrieve(arguments: &Map<String, Value>) -> Read<(String, Option<&'static str>)> {
    let given = Arguments::of(arguments, &["cascade_uri", "mode"])?;
    let uri = given.required("cascade_uri", "take it from a hit of query_memories or list_memories")?;
    Ok((cascade_uri(uri), mode(given)?))
}

/// `forget_memory`.
pub(super) fn forget(arguments: &Map<String, Value>) -> Read<(Forget, bool)> {
    let given = Arguments::of(arguments, &["cascade_uri", "session_id", "dry_run"])?;
    let what = match (given.text("cascade_uri")?, given.text("session_id")?) {
        (Some(uri), None) => Forget::Uri(cascade_uri(uri)),
        (None, Some(id)) => Forget::Session(id.to_owned()),
        (None, None) => {
            let hint = "give \"cascade_uri\" to forget one memory, or \"session_id\" for all of a session";
            return Err(Failure::invalid("nothing was named to forget", hint));
        }
        (Some(_), Some(_)) => {
            let hint =
                "give one of them: \"cascade_uri\" for one memory, \"session_id\" for all of a session";
            return Err(Failure::invalid("both \"cascade_uri\" and \"session_id\" were given", hint));
        }
    };
    Ok((what, given.flag("dry_run")?.unwrap_or(false)))
}

/// `import_sessions`. Nothing is stored unless that is said.
pub(super) fn import(arguments: &Map<String, Value>, home: Option<PathBuf>) -> Read<ImportRequest> {
    let given = Arguments::of(arguments, &["path", "agent", "tags", "mode", "dry_run"])?;
    let agent = given.word("agent", &agents())?.and_then(Agent::parse);
    Ok(ImportRequest {
        roots: vec![import::root(given.text("path")?.map(PathBuf::from), agent, home)?],
        tags: given.texts("tags")?,
        mode: mode(given)?.map(str::to_owned),
        dry_run: given.flag("dry_run")?.unwrap_or(true),
        again: false,
        tell_all: false,
        only: None,
    })
}

/// The mode that was named, as the memory names it.
fn mode(given: Arguments<'_>) -> Read<Option<&'static str>> {
    let named = given.word("mode", MODES)?;
    Ok(named.map(|mode| if mode == "local" { "mock" } else { mode }))
}

/// Whose session files are understood.
pub(super) fn agents() -> [&'static str; Agent::ALL.len()] {
    Agent::ALL.map(Agent::name)
}

/// The name of an artifact, also if it was given as a resource.
pub(super) fn cascade_uri(uri: &str) -> String {
    match uri.trim().strip_prefix(super::resources::SCHEME) {
        Some(hash) => format!("cascade://{hash}"),
        None => uri.trim().to_owned(),
    }
}

/// Where artifacts are kept. `mock` is the seed's name of `local`.
pub(super) const MODES: &[&str] = &["local", "live", "mock"];
/// How many hits there are if nothing is said: an answer must not fill a context.
pub const QUERY_LIMIT: u64 = 5;
/// How many memories a list has unless it is told.
pub const LIST_LIMIT: u64 = 20;
/// The most that can be asked for.
pub const MOST_HITS: u64 = 100;
/// As far as the memory goes.
pub const FARTHEST: u64 = 10_000;

const NO_ACK: &str = "The transcript was not stored, only the card: metadata.raw_export_ack was not given. It takes both \
                      metadata.allow_raw_export = true and metadata.raw_export_ack = \"I understand the risk\".";
const OTHER_ACK: &str = "The transcript was not stored, only the card: metadata.raw_export_ack is not \
                         exactly \"I understand the risk\".";
const NOT_ALLOWED: &str =
    "The transcript was not stored, only the card: metadata.allow_raw_export is not true.";

#[cfg(test)]
mod tests;
