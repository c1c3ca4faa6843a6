//! Sessions out of the files that agents keep of themselves.
//!
//! Owns finding these files, telling whose they are, reading them without ever writing near them, and handing out one
//! [`Session`] at a time in the `raw_session` form. What comes out is unredacted: storing it goes through the gate, which
//! is the caller's part, and so is the time at which anything happens.
//!
//! ```text
//! roots ──▶ discover ──▶ [SessionFile] ──▶ import ──▶ Visitor: Imported { session, key }, file done + Fingerprint
//! ```
//!
//! Easy to get wrong:
//! - The formats are undocumented and change. Unknown types are passed over, what does not parse is skipped and counted,
//!   and nothing panics on any bytes.
//! - Nothing is cut, because a secret that is split over a cut escapes the redaction rules ([`Import::left_out`]).
//! - A file can hold several sessions and a session several files (sub-agents); the fingerprint is of the whole.
//! - Errors and counts name no path, no id and no content.

mod agent;
mod aider;
mod claude;
mod codex;
mod cursor;
mod detect;
mod discover;
mod draft;
mod file;
mod fingerprint;
mod fixture;
mod gemini;
mod generic;
mod lines;
mod opencode;
mod peek;
mod sink;
mod sqlite;
mod text;
mod time;
mod todo;
mod zstd;

use crate::{Result, Session};

pub use agent::Agent;
pub use discover::{Discovery, Root, discover};
#[cfg(feature = "fuzzing")]
pub(crate) use draft::LONGEST_LEAF;
pub use file::SessionFile;
pub use fingerprint::{Fingerprint, Key};
pub(crate) use fixture::find as find_in_fixtures;
pub use sink::Imported;
use sink::Sink;

/// How far it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Files that are done, unchanged and failed ones among them.
    pub files_done: usize,
    /// Files in all.
    pub files_total: usize,
    /// Sessions that are done.
    pub sessions_done: usize,
    /// Bytes of the files that are done, and about how many of the one that is being read.
    pub bytes_done: u64,
    /// Bytes of all files.
    pub bytes_total: u64,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    /// It was read; keep the fingerprint, so that it need not be read again.
    Read(Fingerprint),
    /// It has what it had when it was last read. Keep the new fingerprint: the next look is cheaper with it.
    Unchanged(Fingerprint),
    /// It could not be read; the import goes on.
    Failed,
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// Files that were read.
    pub files: usize,
    /// Files that had not changed since the fingerprint was taken.
    pub unchanged: usize,
    /// Files that could not be read.
    pub failed: usize,
    /// Sessions that were handed out.
    pub sessions: usize,
    /// Lines and records that made no sense.
    pub skipped: u64,
    /// Texts that were left out whole because they were too long.
    pub left_out: u64,
}

/// Takes what an import finds. An error from it ends the import.
pub trait Visitor {
    /// The fingerprint that was kept when this file was last imported.
    fn known(&mut self, file: &SessionFile) -> Option<Fingerprint> {
        let _ = file;
        None
    }

    /// A session. A dry run does everything here but store it.
    fn session(&mut self, imported: Imported, progress: Progress) -> Result<()>;

    /// A file is done.
    fn file_done(&mut self, file: &SessionFile, outcome: FileOutcome, progress: Progress) -> Result<()> {
        let _ = (file, outcome, progress);
        Ok(())
    }
}

/// Reads the files that have changed, in the order given, one session in memory at a time.
///
/// It blocks: call it where blocking is allowed. Files that cannot be read are counted and do not end it.
pub fn import(files: &[SessionFile], visitor: &mut dyn Visitor) -> Result<Import> {
    let mut report = Import::default();
    let mut progress = Progress {
        files_total: files.len(),
        bytes_total: files.iter().map(SessionFile::size).sum(),
        ..Progress::default()
    };
    for file in files {
        let known = visitor.known(file);
        let outcome = match Fingerprint::take(file, known.as_ref()) {
            Ok(fingerprint) if known.is_some_and(|known| known.same_content(&fingerprint)) => {
                report.unchanged += 1;
                FileOutcome::Unchanged(fingerprint)
            }
            Ok(fingerprint) => import_file(file, fingerprint, progress, visitor, &mut report)?,
            Err(_) => failed(&mut report),
        };
        progress.files_done += 1;
        progress.sessions_done = report.sessions;
        progress.bytes_done += file.size();
        visitor.file_done(file, outcome, progress)?;
    }
    Ok(report)
}

/// The session with this id in a file, if it is there.
pub(crate) fn find_in(file: &SessionFile, id: &str) -> Result<Option<Session>> {
    let mut found = None;
    let mut emit = |imported: Imported| {
        if imported.session.id() == id {
            found = Some(imported.session);
        } else if imported.apart.as_deref() == Some(id) {
            found = Some(imported.session.called(id)?);
        }
        Ok(())
    };
    let mut sink = Sink::new(file, Some(id), &mut emit);
    read(file, &mut sink)?;
    Ok(found)
}

fn import_file(
    file: &SessionFile,
    fingerprint: Fingerprint,
    progress: Progress,
    visitor: &mut dyn Visitor,
    report: &mut Import,
) -> Result<FileOutcome> {
    // What the visitor refuses ends the import; what the file does not yield does not.
    let mut refused = None;
    let (mut at, end) = (progress, progress.bytes_done + file.size());
    let mut emit = |imported: Imported| -> Result<()> {
        let bytes = imported.size();
        visitor.session(imported, at).inspect_err(|error| refused = Some(error.clone()))?;
        at.sessions_done += 1;
        at.bytes_done = end.min(at.bytes_done + bytes);
        Ok(())
    };
    let mut sink = Sink::new(file, None, &mut emit);
    let read = read(file, &mut sink);
    let counts = sink.counts();
    report.sessions += counts.sessions;
    report.skipped += counts.skipped;
    report.left_out += counts.left_out;
    if let Some(error) = refused {
        return Err(error);
    }
    if read.is_err() {
        return Ok(failed(report));
    }
    report.files += 1;
    Ok(FileOutcome::Read(fingerprint))
}

fn failed(report: &mut Import) -> FileOutcome {
    report.failed += 1;
    FileOutcome::Failed
}

fn read(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    match file.agent() {
        Agent::ClaudeCode => claude::read(file, sink),
        Agent::Codex => codex::read(file, sink),
        Agent::Gemini => gemini::read(file, sink),
        Agent::Aider => aider::read(file, sink),
        Agent::OpenCode => opencode::read(file, sink),
        Agent::Cursor => cursor::read(file, sink),
        Agent::Generic => generic::read(file, sink),
        Agent::Fixture => fixture::read(file, sink),
    }
}
