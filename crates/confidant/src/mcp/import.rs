//! Sessions out of agents' own files into the memory, for the tool and the command line alike.
//!
//! Files are read on a thread of their own, one session in memory at a time, the newest file first, and each session goes
//! the way of every other: through the gate. One that is blocked or broken is told of and does not end the import. What was
//! stored before is stored once: the memory knows the content.

use std::cmp::Reverse;
use std::path::PathBuf;

use confidant_memory::api::StoreRequest;
use confidant_memory::import::{self, Agent, FileOutcome, Imported, Progress, Root, SessionFile, Visitor};
use confidant_memory::{Error, OwnMemory, Place, Session, when};
use serde::Serialize;
use tokio::sync::mpsc;

use super::failure::Failure;

/// What is to be imported.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Where to look.
    pub(crate) root: Root,
    /// Tags for all of them.
    pub(crate) tags: Vec<String>,
    /// Only sessions not before this moment, in milliseconds since 1970.
    pub(crate) since: Option<i64>,
    /// At most so many sessions.
    pub(crate) limit: usize,
    /// Store nothing.
    pub(crate) dry_run: bool,
}

/// What an import did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Report {
    pub(crate) ok: bool,
    /// Whether nothing was stored.
    pub(crate) dry_run: bool,
    /// Session files that were found.
    pub(crate) files: usize,
    /// Files and folders that could not be read, or that no agent is known to write.
    pub(crate) unreadable: usize,
    /// Sessions that were looked at.
    pub(crate) found: usize,
    /// Those that were stored, or would be.
    pub(crate) stored: usize,
    /// Those that were stored before.
    pub(crate) already_stored: usize,
    /// Those with a secret that must not be stored in any form.
    pub(crate) blocked: usize,
    /// Those that could not be stored for another reason.
    pub(crate) failed: usize,
    /// Whether there is more than the limit allowed.
    pub(crate) more: bool,
    /// The first of them, one by one.
    pub(crate) sessions: Vec<Line>,
}

/// What became of one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    /// Whose session it was.
    pub(crate) agent: &'static str,
    /// `stored`, `would_store`, `already_stored`, `blocked`, or the code of an error.
    pub(crate) outcome: &'static str,
    /// The session, redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    /// Its card's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// Where it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cascade_uri: Option<String>,
    /// How many bytes its payload has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<usize>,
    /// Rule and place of what blocked it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) places: Vec<Place>,
}

/// How far an import is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) bytes_done: u64,
    pub(crate) bytes_total: u64,
    pub(crate) sessions: usize,
}

/// Imports; says after each session how far it is.
pub(crate) async fn run(
    own: &OwnMemory,
    wish: Wish,
    tell: &(dyn Fn(Step) + Send + Sync),
) -> Result<Report, Failure> {
    // One waits while one is stored.
    let (send, mut receive) = mpsc::channel(1);
    let (root, since) = (wish.root.clone(), wish.since);
    let reading = tokio::task::spawn_blocking(move || read(&root, since, &send));
    let mut report = Report { ok: true, dry_run: wish.dry_run, ..Report::default() };
    while let Some((imported, progress)) = receive.recv().await {
        if report.found == wish.limit {
            report.more = true;
            break;
        }
        report.found += 1;
        report.add(one(own, &wish, imported).await);
        let Progress { bytes_done, bytes_total, .. } = progress;
        tell(Step { bytes_done, bytes_total, sessions: report.found });
    }
    // The reader stops at its next session if nobody waits for it any more.
    drop(receive);
    let (files, unreadable) = reading.await.map_err(|_| Failure::internal())?;
    Ok(Report { files, unreadable, ..report })
}

async fn one(own: &OwnMemory, wish: &Wish, imported: Imported) -> Line {
    let Imported { session, key } = imported;
    let request = StoreRequest {
        session_id: session.id().to_owned(),
        session: Some(session.members().clone()),
        tags: wish.tags.clone(),
        ..StoreRequest::default()
    };
    let line = Line {
        agent: key.agent().name(),
        outcome: "would_store",
        session_id: None,
        title: None,
        cascade_uri: None,
        bytes: None,
        places: Vec::new(),
    };
    if wish.dry_run {
        return match own.preview(&request).await {
            Ok(shown) => Line {
                session_id: Some(shown.session_id),
                title: Some(shown.memory_card.title),
                bytes: Some(shown.preview.bytes),
                ..line
            },
            Err(error) => line.failed(error),
        };
    }
    match own.store(&request).await {
        Ok(stored) => Line {
            outcome: if stored.already_stored { "already_stored" } else { "stored" },
            session_id: Some(stored.session_id),
            title: Some(stored.memory_card.title),
            cascade_uri: Some(stored.cascade_uri),
            ..line
        },
        Err(error) => line.failed(error),
    }
}

impl Line {
    fn failed(self, error: Error) -> Self {
        let Failure { code, places, .. } = error.into();
        Self { outcome: code, places, ..self }
    }
}

impl Report {
    fn add(&mut self, line: Line) {
        let count = match line.outcome {
            "stored" | "would_store" => &mut self.stored,
            "already_stored" => &mut self.already_stored,
            "blocked" => &mut self.blocked,
            _ => &mut self.failed,
        };
        *count += 1;
        // What went wrong is worth more of an answer's room than what went well.
        if self.sessions.len() < LINES || (!line.places.is_empty() && self.sessions.len() < 2 * LINES) {
            self.sessions.push(line);
        }
    }
}

/// Reads files until there are no more or nobody takes what is in them. Says how many there were, and how many could not be
/// read.
fn read(root: &Root, since: Option<i64>, to: &mpsc::Sender<(Imported, Progress)>) -> (usize, usize) {
    let mut found = import::discover(std::slice::from_ref(root));
    found.files.sort_by_key(|file| Reverse(file.modified()));
    let mut reader = Reader { since, to, unreadable: found.unreadable + found.unknown };
    // An error is only that nobody takes any more.
    let _ = import::import(&found.files, &mut reader);
    (found.files.len(), reader.unreadable)
}

struct Reader<'a> {
    since: Option<i64>,
    to: &'a mpsc::Sender<(Imported, Progress)>,
    unreadable: usize,
}

impl Visitor for Reader<'_> {
    fn session(&mut self, imported: Imported, progress: Progress) -> confidant_memory::Result<()> {
        if self.since.is_some_and(|since| moment(&imported.session).is_some_and(|at| at < since)) {
            return Ok(());
        }
        self.to.blocking_send((imported, progress)).map_err(|_| Error::Changed)
    }

    fn file_done(
        &mut self,
        _: &SessionFile,
        outcome: FileOutcome,
        _: Progress,
    ) -> confidant_memory::Result<()> {
        self.unreadable += usize::from(outcome == FileOutcome::Failed);
        Ok(())
    }
}

fn moment(session: &Session) -> Option<i64> {
    session.members().get("timestamp").and_then(when::parse)
}

/// Where to look: at a path, or in the usual places below a home folder.
pub(crate) fn root(
    path: Option<PathBuf>,
    agent: Option<Agent>,
    home: Option<PathBuf>,
) -> Result<Root, Failure> {
    match (path, agent, home) {
        (Some(path), agent, _) => Ok(Root::Path { path, agent }),
        (None, None, Some(home)) => Ok(Root::Home(home)),
        (None, Some(_), _) => {
            Err(Failure::invalid("\"agent\" was given without \"path\"", "say where that agent's files are"))
        }
        (None, None, None) => {
            Err(Failure::invalid("\"path\" is missing", "give a session file, or a folder of such files"))
        }
    }
}

/// How many sessions a report names; an answer must not fill a context.
const LINES: usize = 50;
