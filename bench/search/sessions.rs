//! How often the right session is among the first: whole sessions, stored and asked for as a person does it.
//!
//! The sessions and their questions are our own (`bench/search/sessions/*.jsonl`): talks of people and work of agents, half of the
//! questions paraphrases, a quarter by a name or an address that the gate takes out. Beside it, in the same run, plain BM25
//! (FTS5 with stems) over everything that was said, unredacted: what a search without a gate would find.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use confidant_memory::api::{QueryRequest, StoreRequest};
use confidant_memory::blobs::Blobs;
use confidant_memory::blobs::local::Local;
use confidant_memory::index::Mix;
use confidant_memory::{Gate, IndexOf, Key, Memory, OwnMemory, Owner, Parts, RootSource, Roots};
use confidant_seal::{TenantId, UserId};
use rusqlite::{Connection, params};
use serde_json::{Map, Value};

use crate::fts;
use crate::{Result, print};

/// A session and what is asked of it.
struct Session {
    id: String,
    members: Map<String, Value>,
    /// Kind and text.
    questions: Vec<(String, String)>,
}

/// Measures and prints tables: of everything, and of each kind of question.
pub(crate) fn run(folder: &Path, mixes: bool) -> Result<()> {
    let sessions = read(folder)?;
    let asked: usize = sessions.iter().map(|session| session.questions.len()).sum();
    print(&format!("\n{} sessions, {asked} questions.\n", sessions.len()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut rows = vec![("BM25 over the plain text (FTS5, stems)".to_owned(), plain(&sessions)?)];
    for (how, index) in [("ours, `card`", IndexOf::Card), ("**ours, `session`**", IndexOf::Session)] {
        let place = tempfile::tempdir()?;
        let own = stored(&runtime, &sessions, place.path(), index, Mix::default())?;
        rows.push((how.to_owned(), ask(&runtime, &sessions, &own)?));
        if mixes && index == IndexOf::Session {
            for (how, mix) in variants() {
                let own = opened(place.path(), index, mix)?;
                rows.push((how, ask(&runtime, &sessions, &own)?));
            }
        }
    }
    let mut kinds: Vec<&str> =
        sessions.iter().flat_map(|s| &s.questions).map(|(kind, _)| kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in std::iter::once("all").chain(kinds) {
        print(&format!("\n| {kind} | first | among 5 | among 10 |\n|---|---:|---:|---:|"));
        for (how, places) in &rows {
            print(&row(how, kind, &sessions, places));
        }
    }
    Ok(())
}

/// What may be mixed otherwise, for choosing.
fn variants() -> Vec<(String, Mix)> {
    let mix = Mix::default();
    let mut variants = Vec::new();
    for meaning in [0.0, 0.25, 0.5, 1.0] {
        for passage in [0.0, 0.25, 0.5, 1.0, 1.5] {
            variants.push((format!("meaning {meaning}, passage {passage}"), Mix { meaning, passage, ..mix }));
        }
    }
    variants
}

/// At which place the right session is for each question, from 0, if it is among the first ten.
type Places = Vec<Option<usize>>;

fn row(how: &str, kind: &str, sessions: &[Session], places: &Places) -> String {
    let kinds = sessions.iter().flat_map(|session| &session.questions).map(|(kind, _)| kind.as_str());
    let of_kind: Vec<Option<usize>> =
        kinds.zip(places).filter(|(of, _)| kind == "all" || *of == kind).map(|(_, place)| *place).collect();
    let share = |most: usize| {
        let found = of_kind.iter().filter(|place| place.is_some_and(|place| place < most)).count();
        100.0 * found as f64 / of_kind.len().max(1) as f64
    };
    format!("| {how} | {:.1} | {:.1} | {:.1} |", share(1), share(5), share(10))
}

fn plain(sessions: &[Session]) -> Result<Places> {
    let table = Connection::open_in_memory()?;
    table.execute_batch("CREATE VIRTUAL TABLE said USING fts5(text, tokenize = 'porter unicode61')")?;
    for (row, session) in (1_i64..).zip(sessions) {
        let mut text = String::new();
        for message in session.members.get("messages").and_then(Value::as_array).into_iter().flatten() {
            for part in ["name", "content"] {
                text.push_str(message[part].as_str().unwrap_or_default());
                text.push('\n');
            }
        }
        table.execute("INSERT INTO said (rowid, text) VALUES (?1, ?2)", params![row, text])?;
    }
    let mut search = table.prepare("SELECT rowid FROM said WHERE said MATCH ?1 ORDER BY rank LIMIT 10")?;
    let mut places = Vec::new();
    for (right, session) in (1_i64..).zip(sessions) {
        for (_, question) in &session.questions {
            let found = search.query_map([fts::query(question, " OR ")], |row| row.get::<_, i64>(0))?;
            let found: std::result::Result<Vec<i64>, _> = found.collect();
            places.push(found?.iter().position(|row| *row == right));
        }
    }
    Ok(places)
}

#[derive(Debug)]
struct Safe;

impl RootSource for Safe {
    fn roots(&self) -> confidant_memory::Result<Roots> {
        Ok(Roots::new(Key::from_bytes([7; 32]), Vec::new()))
    }
}

fn opened(folder: &Path, index: IndexOf, mix: Mix) -> Result<OwnMemory> {
    let mut options = confidant_redact::Options::default();
    options.names = true;
    let blobs: Arc<dyn Blobs> = Arc::new(Local::open(folder.join("blobs"))?);
    let memory = Memory::open(Parts {
        folder: folder.join("memory"),
        keys_folder: folder.join("keys"),
        roots: Box::new(Safe),
        gate: Gate::new(options)?,
        card_writer: None,
        stores: BTreeMap::from([("mock".to_owned(), blobs)]),
        default_mode: "mock".to_owned(),
        sources: confidant_memory::source::Sources::default(),
        clock: || 1_790_000_000_000,
        prices: confidant_memory::cost::Prices::default(),
        index,
        witness: None,
    })?;
    memory.mixing(mix);
    Ok(memory.of(Owner { tenant: TenantId::new("bench")?, user: UserId::new("jo")? }, "bench"))
}

fn stored(
    runtime: &tokio::runtime::Runtime,
    sessions: &[Session],
    folder: &Path,
    index: IndexOf,
    mix: Mix,
) -> Result<OwnMemory> {
    let own = opened(folder, index, mix)?;
    for session in sessions {
        let request = StoreRequest {
            session_id: session.id.clone(),
            session: Some(session.members.clone()),
            ..StoreRequest::default()
        };
        runtime.block_on(own.store(&request))?;
    }
    Ok(own)
}

fn ask(runtime: &tokio::runtime::Runtime, sessions: &[Session], own: &OwnMemory) -> Result<Places> {
    let mut places = Vec::new();
    for session in sessions {
        for (_, question) in &session.questions {
            let request = QueryRequest { query: question.clone(), limit: 10, ..QueryRequest::default() };
            let found = runtime.block_on(own.query(&request))?;
            places.push(found.hits.iter().position(|hit| hit.cass_session_id == session.id));
        }
    }
    Ok(places)
}

fn read(folder: &Path) -> Result<Vec<Session>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let mut sessions = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "jsonl")) {
        for line in std::fs::read_to_string(file)?.lines() {
            let Value::Object(mut members) = serde_json::from_str(line)? else {
                return Err("a line is no session".into());
            };
            let questions = members.remove("questions").unwrap_or_default();
            let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
            let questions = questions.as_array().into_iter().flatten();
            let questions = questions.map(|one| (text(one, "kind"), text(one, "text"))).collect();
            let id = members.remove("session_id").and_then(|id| id.as_str().map(str::to_owned));
            if let Some(at) = members.remove("created_at") {
                members.insert("timestamp".to_owned(), at);
            }
            sessions.push(Session { id: id.ok_or("a session without an id")?, members, questions });
        }
    }
    Ok(sessions)
}
