//! Sessions by the file: what agents wrote themselves becomes memories, each through the same gate as any other.
//!
//! An import can be run again and again: files that have not changed are not read, sessions that have not changed are
//! not stored, and what was forgotten stays forgotten. The notes that this takes are sealed, since a hash of content
//! confirms a guess of it.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::api::{ImportOutcome, ImportReport, ImportRequest, ImportedSession, StoreRequest};
use crate::import::{self, FileOutcome, Fingerprint, Imported, Progress, SessionFile, Visitor, discover};
use crate::keys::OwnerKey;
use crate::memory::{Inner, blocking};
use crate::own::OwnMemory;
use crate::{Error, Result};

impl OwnMemory {
    /// Makes memories of session files. A dry run does everything but write.
    pub async fn import(
        &self,
        request: &ImportRequest,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<ImportReport> {
        let (own, request, runtime) = (self.clone(), request.clone(), Handle::current());
        blocking(move || {
            let owner = own.inner.keys.owner(&own.owner)?;
            let found = discover(&request.roots);
            let mut importer = Importer {
                inner: Arc::clone(&own.inner),
                own: &own,
                owner,
                request: &request,
                runtime,
                progress: &progress,
                report: ImportReport { ok: true, dry_run: request.dry_run, ..ImportReport::default() },
            };
            let done = import::import(&found.files, &mut importer)?;
            let mut report = importer.report;
            report.files = done.files as u64;
            report.unchanged_files = done.unchanged as u64;
            report.unreadable_files = (done.failed + found.unreadable) as u64;
            report.unknown_files = found.unknown as u64;
            report.skipped_lines = done.skipped;
            report.left_out_texts = done.left_out;
            Ok(report)
        })
        .await
    }
}

struct Importer<'i> {
    inner: Arc<Inner>,
    own: &'i OwnMemory,
    owner: OwnerKey,
    request: &'i ImportRequest,
    runtime: Handle,
    progress: &'i dyn Fn(Progress),
    report: ImportReport,
}

impl Importer<'_> {
    fn one(&mut self, imported: &Imported) -> Result<(ImportOutcome, Option<String>, Option<String>)> {
        let id = imported.session.id();
        let session = self.inner.keys.tag(&self.owner, "session", &[id.as_bytes()]);
        if self.inner.truth.is_forgotten(self.owner.tag, session)? {
            return Ok((ImportOutcome::Forgotten, None, None));
        }
        let note = self.note_of(imported);
        let known = self.inner.truth.imported(self.owner.tag, note)?;
        let content = imported.key.content();
        if known
            .is_some_and(|sealed| self.owner.open_note(note, &sealed).is_some_and(|seen| *seen == content))
        {
            return Ok((ImportOutcome::Unchanged, None, None));
        }
        let request = StoreRequest {
            session_id: id.to_owned(),
            session: Some(imported.session.members().clone()),
            tags: self.request.tags.clone(),
            mode: self.request.mode.clone(),
            ..StoreRequest::default()
        };
        let done = if self.request.dry_run {
            let shown = self.runtime.block_on(self.own.preview(&request));
            shown.map(|shown| (ImportOutcome::WouldStore, Some(shown.memory_card.title), None))
        } else {
            let stored = self.runtime.block_on(self.own.store(&request));
            stored.map(|stored| {
                let outcome =
                    if stored.already_stored { ImportOutcome::Unchanged } else { ImportOutcome::Stored };
                (outcome, Some(stored.memory_card.title), Some(stored.cascade_uri))
            })
        };
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(Error::Blocked { .. }) => (ImportOutcome::Blocked, None, None),
            Err(Error::Unclean { .. } | Error::Invalid { .. }) => (ImportOutcome::Refused, None, None),
            // A disk that is full or a store that is down will not be better at the next session.
            Err(error) => return Err(error),
        };
        if !self.request.dry_run {
            self.inner.truth.note_import(self.owner.tag, note, &self.owner.seal_note(note, &content))?;
        }
        Ok(outcome)
    }

    fn note_of(&self, imported: &Imported) -> confidant_seal::Tag {
        let agent = imported.key.agent().name().as_bytes();
        self.inner.keys.tag(&self.owner, "import-session", &[agent, imported.key.session().as_bytes()])
    }

    fn note_of_file(&self, file: &SessionFile) -> confidant_seal::Tag {
        let path = file.path().as_os_str().as_encoded_bytes();
        self.inner.keys.tag(&self.owner, "import-file", &[file.agent().name().as_bytes(), path])
    }
}

impl Visitor for Importer<'_> {
    fn known(&mut self, file: &SessionFile) -> Option<Fingerprint> {
        let note = self.note_of_file(file);
        let sealed = self.inner.truth.imported(self.owner.tag, note).ok().flatten()?;
        Fingerprint::from_bytes(&self.owner.open_note(note, &sealed)?).ok()
    }

    fn session(&mut self, imported: Imported, progress: Progress) -> Result<()> {
        (self.progress)(progress);
        let (outcome, title, cascade_uri) = self.one(&imported)?;
        let report = &mut self.report;
        report.sessions += 1;
        *match outcome {
            ImportOutcome::Stored | ImportOutcome::WouldStore => &mut report.stored,
            ImportOutcome::Unchanged => &mut report.unchanged,
            ImportOutcome::Blocked => &mut report.blocked,
            ImportOutcome::Refused => &mut report.refused,
            ImportOutcome::Forgotten => &mut report.forgotten,
        } += 1;
        if report.items.len() < MOST_ITEMS && outcome != ImportOutcome::Unchanged {
            let (session_id, _) = self.inner.gate.name(imported.session.id());
            let agent = imported.key.agent().name();
            report.items.push(ImportedSession { session_id, agent, outcome, title, cascade_uri });
        }
        Ok(())
    }

    fn file_done(&mut self, file: &SessionFile, outcome: FileOutcome, progress: Progress) -> Result<()> {
        (self.progress)(progress);
        if self.request.dry_run {
            return Ok(());
        }
        let (FileOutcome::Read(fingerprint) | FileOutcome::Unchanged(fingerprint)) = outcome else {
            return Ok(());
        };
        let note = self.note_of_file(file);
        self.inner.truth.note_import(
            self.owner.tag,
            note,
            &self.owner.seal_note(note, &fingerprint.to_bytes()),
        )
    }
}

/// More would flood whoever asked; the counts are complete.
const MOST_ITEMS: usize = 50;
