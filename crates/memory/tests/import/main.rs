//! Importing the session files of agents, and finding a session by its id.
//!
//! Each agent's shape is a file in `tests/fixtures`, written for these tests; the secrets in them are made up.

#![expect(clippy::unwrap_used, reason = "what cannot be set up is a failed test")]

mod agents;
mod databases;
mod discovery;
mod hostile;
mod incremental;
mod source;

use std::path::{Path, PathBuf};

use confidant_memory::import::{
    Agent, Discovery, FileOutcome, Fingerprint, Import, Imported, Key, Progress, Root, SessionFile, Visitor,
    discover, import,
};
use confidant_memory::{Result, Session};
use serde_json::Value;

/// The folder of fixtures.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Everything that an import told.
#[derive(Default)]
struct All {
    known: Vec<(PathBuf, Fingerprint)>,
    sessions: Vec<Session>,
    keys: Vec<Key>,
    outcomes: Vec<FileOutcome>,
    progress: Vec<Progress>,
}

impl Visitor for All {
    fn known(&mut self, file: &SessionFile) -> Option<Fingerprint> {
        self.known.iter().find(|(path, _)| path == file.path()).map(|(_, fingerprint)| *fingerprint)
    }

    fn session(&mut self, imported: Imported, progress: Progress) -> Result<()> {
        self.sessions.push(imported.session);
        self.keys.push(imported.key);
        self.progress.push(progress);
        Ok(())
    }

    fn file_done(&mut self, file: &SessionFile, outcome: FileOutcome, progress: Progress) -> Result<()> {
        if let FileOutcome::Read(fingerprint) | FileOutcome::Unchanged(fingerprint) = &outcome {
            self.known.retain(|(path, _)| path != file.path());
            // What is kept is kept as bytes.
            self.known
                .push((file.path().to_owned(), Fingerprint::from_bytes(&fingerprint.to_bytes()).unwrap()));
        }
        self.outcomes.push(outcome);
        self.progress.push(progress);
        Ok(())
    }
}

impl All {
    /// The members of the session with this id.
    fn value(&self, id: &str) -> Value {
        let session = self.sessions.iter().find(|session| session.id() == id);
        Value::Object(session.unwrap_or_else(|| panic!("no session {id}")).members().clone())
    }

    fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self.sessions.iter().map(Session::id).collect();
        ids.sort_unstable();
        ids
    }
}

/// Discovers and imports.
fn run(roots: &[Root]) -> (All, Import, Discovery) {
    let mut all = All::default();
    let discovery = discover(roots);
    let report = import(&discovery.files, &mut all).unwrap();
    (all, report, discovery)
}

/// One file of one agent.
fn run_file(agent: Agent, path: &Path) -> (All, Import) {
    let (all, report, _) = run(&[Root::of(agent, path)]);
    (all, report)
}

/// Roles and contents of a session's messages.
fn messages(session: &Value) -> Vec<(&str, &str)> {
    let messages = session["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect()
}
