//! Sessions by the file: what agents wrote themselves becomes memories, each through the same gate as any other.
//!
//! An import can be run again and again: files that have not changed are not read, sessions that have not changed are
//! not stored, what could not be stored is tried again, and what was forgotten stays forgotten. The notes that this takes are sealed, since a hash of content
//! confirms a guess of it.
//!
//! A session that has no id is called by its file's name, and so may others be in other folders; or by one that means something in its file only. The first
//! keeps the name, for as long as its file is there; the others get digits of their place with it.
//!
//! Most of the time goes into redacting, and then into waiting for the disk. So a few sessions are stored at once. What became
//! of them is written down in the order in which they were read, and a file is only done with when all its sessions are.

use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use confidant_seal::Tag;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

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
                waiting: VecDeque::new(),
                most: at_once(&own.inner, &request),
                left: false,
                report: ImportReport { ok: true, dry_run: request.dry_run, ..ImportReport::default() },
            };
            let done = import::import(&found.files, &mut importer);
            // Whatever ended it: what was begun is stored, and noted.
            let settled = importer.settle_all();
            let done = done?;
            settled?;
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
    /// What was read and is not settled yet, in order.
    waiting: VecDeque<Waiting>,
    /// How many sessions are stored at once.
    most: usize,
    /// Whether something of the file that is being settled was not stored, and may be when rules or settings change.
    left: bool,
    report: ImportReport,
}

/// Something that was read, on its way to being settled.
enum Waiting {
    /// A session that is being stored, or looked at in a dry run.
    Session(Storing),
    /// A session for which there is nothing to do.
    Done(ImportedSession),
    /// A session that was not asked for.
    NotAsked,
    /// The end of a file, and what to note about it.
    File(Option<(Tag, Vec<u8>)>),
}

/// A session that is being stored.
struct Storing {
    id: String,
    bytes: u64,
    /// What to note when it is stored.
    note: Option<(Tag, [u8; 32])>,
    /// What to tell of it, apart from what became of it.
    told: ImportedSession,
    work: JoinHandle<Result<Became>>,
}

/// What became of a session: its card's title, and where it is.
struct Became {
    outcome: ImportOutcome,
    title: String,
    cascade_uri: Option<String>,
}

impl Waiting {
    fn storing(&self) -> Option<&Storing> {
        match self {
            Self::Session(storing) => Some(storing),
            Self::Done(_) | Self::NotAsked | Self::File(_) => None,
        }
    }
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

    /// Settles what was read before, until one more may be begun. A session is never stored beside an earlier form of it.
    fn make_room(&mut self, id: &str, bytes: u64) -> Result<()> {
        loop {
            let (mut count, mut sum, mut same) = (0, bytes, false);
            for storing in self.waiting.iter().filter_map(Waiting::storing) {
                count += 1;
                sum += storing.bytes;
                same |= storing.id.trim() == id.trim();
            }
            if count == 0 || (count < self.most && sum <= MOST_BYTES && !same) {
                return Ok(());
            }
            self.settle_first()?;
        }
    }

    /// Begins to store a session, unless it is stored.
    fn begin(&self, imported: &Imported, bytes: u64) -> Result<Waiting> {
        let id = imported.session.id();
        let content = imported.key.content();
        let mut note = None;
        if let Some(owner) = &self.owner {
            let session = self.inner.keys.tag(owner, "session", &[id.as_bytes()]);
            if self.forgotten.contains(&session) {
                return Ok(Waiting::Done(self.told(imported, ImportOutcome::Forgotten)));
            }
            let about = self.note_of(owner, imported);
            let seen = self.known_note(owner, about)?;
            if !self.request.again && seen.is_some_and(|seen| *seen == content) {
                return Ok(Waiting::Done(self.told(imported, ImportOutcome::Unchanged)));
            }
            note = Some((about, content));
        }
        let request = StoreRequest {
            session_id: id.to_owned(),
            session: Some(imported.session.members().clone()),
            tags: self.request.tags.clone(),
            mode: self.request.mode.clone(),
            ..StoreRequest::default()
        };
        Ok(Waiting::Session(Storing {
            id: id.to_owned(),
            bytes,
            note,
            told: self.told(imported, ImportOutcome::Refused),
            work: self.runtime.spawn(store(self.own.clone(), request, self.request.dry_run)),
        }))
    }

    fn told(&self, imported: &Imported, outcome: ImportOutcome) -> ImportedSession {
        ImportedSession {
            session_id: self.inner.gate.name(imported.session.id()).0,
            agent: imported.key.agent().name(),
            outcome,
            title: None,
            cascade_uri: None,
            places: Vec::new(),
        }
    }

    /// Waits for a session to be stored, and notes that it is.
    fn finish(&self, storing: Storing) -> Result<ImportedSession> {
        let Storing { note, told, work, .. } = storing;
        let done = self.runtime.block_on(work).unwrap_or_else(|_| Err(interrupted()));
        let item = match done {
            Ok(Became { outcome, title, cascade_uri }) => {
                ImportedSession { outcome, title: Some(title), cascade_uri, ..told }
            }
            Err(Error::Blocked { places }) => {
                ImportedSession { outcome: ImportOutcome::Blocked, places, ..told }
            }
            Err(Error::Unclean { places }) => {
                ImportedSession { outcome: ImportOutcome::Refused, places, ..told }
            }
            Err(Error::Invalid { .. }) => ImportedSession { outcome: ImportOutcome::Refused, ..told },
            // A disk that is full or a store that is down will not be better at the next session.
            Err(error) => return Err(error),
        };
        let kept = matches!(item.outcome, ImportOutcome::Stored | ImportOutcome::Unchanged);
        if let (true, Some((about, content)), Some(owner)) = (kept, note, &self.owner) {
            self.write_down(owner, about, &content)?;
        }
        Ok(item)
    }

    /// Settles what was read first, however long that takes.
    fn settle_first(&mut self) -> Result<()> {
        match self.waiting.pop_front() {
            Some(Waiting::Session(storing)) => {
                // A file with a session that failed is not done with.
                let item = self.finish(storing).inspect_err(|_| self.left = true)?;
                self.count(item);
            }
            Some(Waiting::Done(item)) => self.count(item),
            Some(Waiting::NotAsked) => self.left = true,
            Some(Waiting::File(note)) => {
                let left = std::mem::take(&mut self.left);
                if let (false, Some((about, note)), Some(owner)) = (left, note, &self.owner) {
                    self.write_down(owner, about, &note)?;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Settles what can be settled without waiting.
    fn settle_ready(&mut self) -> Result<()> {
        let ready = |one: &Waiting| one.storing().is_none_or(|storing| storing.work.is_finished());
        while self.waiting.front().is_some_and(ready) {
            self.settle_first()?;
        }
        Ok(())
    }

    /// Settles everything. One that failed keeps none of the others from being noted.
    fn settle_all(&mut self) -> Result<()> {
        let mut all = Ok(());
        while !self.waiting.is_empty() {
            all = all.and(self.settle_first());
        }
        all
    }

    /// Takes what became of a session into the report.
    fn count(&mut self, item: ImportedSession) {
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
            return;
        }
        if self.request.tell_all || report.items.len() < most {
            report.items.push(item);
        } else {
            report.more_items += 1;
        }
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
            self.waiting.push_back(Waiting::NotAsked);
            return self.settle_ready();
        }
        let imported = self.told_apart(imported)?;
        let bytes = imported.size();
        self.make_room(imported.session.id(), bytes)?;
        let one = self.begin(&imported, bytes)?;
        self.waiting.push_back(one);
        self.settle_ready()
    }

    fn file_done(&mut self, file: &SessionFile, outcome: FileOutcome, progress: Progress) -> Result<()> {
        self.tell(progress)?;
        let note = match (outcome, &self.owner) {
            (FileOutcome::Read(fingerprint) | FileOutcome::Unchanged(fingerprint), Some(owner)) => {
                Some((self.note_of_file(owner, file), fingerprint.to_bytes()))
            }
            _ => None,
        };
        self.waiting.push_back(Waiting::File(note));
        self.settle_ready()
    }
}

/// Stores a session, or says what would be stored of it.
async fn store(own: OwnMemory, request: StoreRequest, dry_run: bool) -> Result<Became> {
    if dry_run {
        let shown = own.preview(&request).await?;
        let (outcome, title) = (ImportOutcome::WouldStore, shown.memory_card.title);
        return Ok(Became { outcome, title, cascade_uri: None });
    }
    let stored = own.store(&request).await?;
    let outcome = if stored.already_stored { ImportOutcome::Unchanged } else { ImportOutcome::Stored };
    Ok(Became { outcome, title: stored.memory_card.title, cascade_uri: Some(stored.cascade_uri) })
}

/// How many sessions are stored at once. A model that writes cards and a store elsewhere, which may have to be paid, get one
/// after the other.
fn at_once(inner: &Inner, request: &ImportRequest) -> usize {
    let is_here = inner.store_of(request.mode.as_deref()).is_ok_and(|(mode, _)| mode == "mock");
    if inner.card_writer.is_some() || !is_here {
        return 1;
    }
    // One more than can be redacted at once, for the one that waits for the disk.
    std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_CORES) + 1
}

fn interrupted() -> Error {
    Error::unavailable("the work was interrupted", "run the import again to continue")
}

/// More cores than this are left to others.
const MOST_CORES: usize = 7;
/// Sessions that are stored at once have no more bytes than this together; a larger one is stored alone.
const MOST_BYTES: u64 = 8 << 20;
/// More would flood whoever asked; the counts are complete.
const MOST_ITEMS: usize = 50;
