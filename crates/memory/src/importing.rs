//! Sessions by the file: what agents wrote themselves becomes memories, each through the same gate as any other.
//!
//! An import can be run again and again: files that have not changed are not read, sessions that have not changed are
//! not stored, what could not be stored is tried again, and what was forgotten stays forgotten. The notes that this takes are sealed, since a hash of content
//! confirms a guess of it.
//!
//! A session that has no id is called by its file's name, and so may others be in other folders; or by one that means something in its file only. The first
//! keeps the name, for as long as its file is there; the others get digits of their place with it.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use confidant_seal::Tag;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use crate::api::{ImportOutcome, ImportReport, ImportRequest, ImportedSession, StoreRequest};
use crate::import::{self, FileOutcome, Fingerprint, Imported, Progress, SessionFile, Visitor, discover};
use crate::keys::OwnerKey;
use crate::memory::{Inner, blocking};
use crate::own::OwnMemory;
use crate::{Error, Result};

impl OwnMemory {
    /// Makes memories of session files. A dry run does everything but write. It ends early if `progress` says so; what was
    /// stored until then stays, and the next import goes on from there.
    pub fn import(
        &self,
        request: &ImportRequest,
        progress: impl Fn(Progress) -> ControlFlow<()> + Send + 'static,
    ) -> BoxFuture<'static, Result<ImportReport>> {
        self.import_telling(request.clone(), Box::new(progress))
    }

    fn import_telling(
        &self,
        request: ImportRequest,
        progress: Box<dyn Fn(Progress) -> ControlFlow<()> + Send>,
    ) -> BoxFuture<'static, Result<ImportReport>> {
        let (own, runtime) = (self.clone(), Handle::current());
        Box::pin(blocking(move || {
            let found = discover(&request.roots);
            if found.missing {
                return Err(Error::not_found(
                    "there is no file or folder at the given path",
                    "give the full path of one on the machine where this runs",
                ));
            }
            // A dry run does not even make a key.
            let owner = if request.dry_run {
                own.inner.keys.known_owner(&own.owner)?
            } else {
                Some(own.inner.keys.owner(&own.owner)?)
            };
            // What is not as it was written is not imported over.
            let forgotten = match &owner {
                Some(owner) => own.inner.keys.forgotten(owner)?,
                None => HashSet::new(),
            };
            let mut importer = Importer {
                forgotten,
                inner: Arc::clone(&own.inner),
                own: &own,
                owner,
                request: &request,
                runtime,
                progress: &progress,
                place: PathBuf::new(),
                names: HashMap::new(),
                left: false,
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
        }))
    }
}

struct Importer<'i> {
    inner: Arc<Inner>,
    own: &'i OwnMemory,
    /// The sessions that are to stay forgotten.
    forgotten: HashSet<Tag>,
    /// Nobody in a dry run for somebody who has no memories.
    owner: Option<OwnerKey>,
    request: &'i ImportRequest,
    runtime: Handle,
    progress: &'i dyn Fn(Progress) -> ControlFlow<()>,
    /// Where the file is that is being read.
    place: PathBuf,
    /// What this run has called by their files' names.
    names: HashMap<String, NamedAfter>,
    /// Whether something of the file that is being read was not stored, and may be when rules or settings change.
    left: bool,
    report: ImportReport,
}

/// The file that a session is called after, and what was in it.
#[derive(Clone)]
struct NamedAfter {
    content: [u8; 32],
    place: PathBuf,
}

impl NamedAfter {
    fn to_bytes(&self) -> Vec<u8> {
        [&self.content[..], self.place.as_os_str().as_encoded_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (content, place) = bytes.split_first_chunk::<32>()?;
        // A path that is no text here is not found, and then its name is free.
        Some(Self { content: *content, place: PathBuf::from(std::str::from_utf8(place).ok()?) })
    }
}

impl Importer<'_> {
    /// Under the id that is its own: of several files with one name, only one's session has just that.
    fn told_apart(&mut self, imported: Imported) -> Result<Imported> {
        let Some(apart) = imported.apart.clone() else { return Ok(imported) };
        let name = imported.session.id().to_owned();
        let about = |owner: &OwnerKey| {
            let agent = imported.key.agent().name().as_bytes();
            self.inner.keys.tag(owner, "import-name", &[agent, name.as_bytes()])
        };
        let known = match (self.names.get(&name), &self.owner) {
            (Some(known), _) => Some(known.clone()),
            (None, Some(owner)) => {
                self.known_note(owner, about(owner))?.and_then(|note| NamedAfter::from_bytes(&note))
            }
            (None, None) => None,
        };
        let now = NamedAfter { content: imported.key.content(), place: self.place.clone() };
        match known {
            Some(other) if other.place != now.place && other.place.exists() => {
                // A copy is nothing new.
                if other.content == now.content { Ok(imported) } else { imported.called(&apart) }
            }
            _ => {
                if let Some(owner) = &self.owner {
                    self.write_down(owner, about(owner), &now.to_bytes())?;
                }
                self.names.insert(name, now);
                Ok(imported)
            }
        }
    }

    /// Says how far it is; an error if it is to end.
    fn tell(&self, progress: Progress) -> Result<()> {
        match (self.progress)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::unavailable(
                "the import was cancelled",
                "what it stored is kept; run the import again to continue",
            )),
        }
    }

    /// Stores a session, unless it is stored, and says what became of it.
    fn one(&mut self, imported: &Imported) -> Result<ImportedSession> {
        let (session_id, _) = self.inner.gate.name(imported.session.id());
        let agent = imported.key.agent().name();
        let told = |outcome: ImportOutcome| ImportedSession {
            session_id: session_id.clone(),
            agent,
            outcome,
            title: None,
            cascade_uri: None,
            places: Vec::new(),
        };
        let id = imported.session.id();
        let content = imported.key.content();
        if let Some(owner) = &self.owner {
            let session = self.inner.keys.tag(owner, "session", &[id.as_bytes()]);
            if self.forgotten.contains(&session) {
                return Ok(told(ImportOutcome::Forgotten));
            }
            let note = self.known_note(owner, self.note_of(owner, imported))?;
            if !self.request.again && note.is_some_and(|seen| *seen == content) {
                return Ok(told(ImportOutcome::Unchanged));
            }
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
            shown.map(|shown| ImportedSession {
                title: Some(shown.memory_card.title),
                ..told(ImportOutcome::WouldStore)
            })
        } else {
            let stored = self.runtime.block_on(self.own.store(&request));
            stored.map(|stored| {
                let outcome =
                    if stored.already_stored { ImportOutcome::Unchanged } else { ImportOutcome::Stored };
                let (title, cascade_uri) = (Some(stored.memory_card.title), Some(stored.cascade_uri));
                ImportedSession { title, cascade_uri, ..told(outcome) }
            })
        };
        let outcome = match done {
            Ok(outcome) => outcome,
            Err(Error::Blocked { places }) => ImportedSession { places, ..told(ImportOutcome::Blocked) },
            Err(Error::Unclean { places }) => ImportedSession { places, ..told(ImportOutcome::Refused) },
            Err(Error::Invalid { .. }) => told(ImportOutcome::Refused),
            // A disk that is full or a store that is down will not be better at the next session.
            Err(error) => return Err(error),
        };
        let kept = matches!(outcome.outcome, ImportOutcome::Stored | ImportOutcome::Unchanged);
        if let (true, Some(owner)) = (kept, &self.owner) {
            self.write_down(owner, self.note_of(owner, imported), &content)?;
        }
        Ok(outcome)
    }

    fn note_of(&self, owner: &OwnerKey, imported: &Imported) -> Tag {
        let agent = imported.key.agent().name().as_bytes();
        self.inner.keys.tag(owner, "import-session", &[agent, imported.key.session().as_bytes()])
    }

    fn note_of_file(&self, owner: &OwnerKey, file: &SessionFile) -> Tag {
        let path = file.path().as_os_str().as_encoded_bytes();
        self.inner.keys.tag(owner, "import-file", &[file.agent().name().as_bytes(), path])
    }

    fn known_note(&self, owner: &OwnerKey, about: Tag) -> Result<Option<Vec<u8>>> {
        let sealed = self.inner.truth.imported(owner.tag, about)?;
        Ok(sealed.and_then(|sealed| owner.open_note(about, &sealed)))
    }

    fn write_down(&self, owner: &OwnerKey, about: Tag, note: &[u8]) -> Result<()> {
        if self.request.dry_run {
            return Ok(());
        }
        self.inner.truth.note_import(owner.tag, about, &owner.seal_note(about, note))
    }
}

impl Visitor for Importer<'_> {
    fn known(&mut self, file: &SessionFile) -> Option<Fingerprint> {
        self.place = file.place();
        let owner = self.owner.as_ref().filter(|_| !self.request.again)?;
        let note = self.known_note(owner, self.note_of_file(owner, file)).ok().flatten()?;
        Fingerprint::from_bytes(&note).ok()
    }

    fn session(&mut self, imported: Imported, progress: Progress) -> Result<()> {
        self.tell(progress)?;
        if self.request.only.as_deref().is_some_and(|only| only != imported.session.id()) {
            // The file is not done with.
            self.left = true;
            return Ok(());
        }
        let imported = self.told_apart(imported)?;
        let item = self.one(&imported)?;
        let outcome = item.outcome;
        let not_stored = matches!(outcome, ImportOutcome::Blocked | ImportOutcome::Refused);
        self.left |= not_stored;
        let report = &mut self.report;
        report.sessions += 1;
        *match outcome {
            ImportOutcome::Stored | ImportOutcome::WouldStore => &mut report.stored,
            ImportOutcome::Unchanged => &mut report.unchanged,
            ImportOutcome::Blocked => &mut report.blocked,
            ImportOutcome::Refused => &mut report.refused,
            ImportOutcome::Forgotten => &mut report.forgotten,
        } += 1;
        // What was not stored is told of longer: somebody may have to do something about it.
        let most = if not_stored { 2 * MOST_ITEMS } else { MOST_ITEMS };
        if outcome == ImportOutcome::Unchanged {
            return Ok(());
        }
        if self.request.tell_all || report.items.len() < most {
            report.items.push(item);
        } else {
            report.more_items += 1;
        }
        Ok(())
    }

    fn file_done(&mut self, file: &SessionFile, outcome: FileOutcome, progress: Progress) -> Result<()> {
        self.tell(progress)?;
        if std::mem::take(&mut self.left) {
            return Ok(());
        }
        match (outcome, &self.owner) {
            (FileOutcome::Read(fingerprint) | FileOutcome::Unchanged(fingerprint), Some(owner)) => {
                self.write_down(owner, self.note_of_file(owner, file), &fingerprint.to_bytes())
            }
            _ => Ok(()),
        }
    }
}

/// More would flood whoever asked; the counts are complete.
const MOST_ITEMS: usize = 50;
