//! Search over one owner's cards: local, sealed on disk, never the truth.
//!
//! Everything here can be thrown away and made again from a [`Source`]; missing, damaged, stale and foreign files are, by
//! whoever searches next. User text is never query syntax.
//!
//! ```text
//! Source ──catch_up──▶ segment ──▶ container (pages, a key each) ──▶ list          [writer, segment, container, manifest]
//!    │                                                                 │
//!    └──newest──▶ tail (in memory) ──▶ plan ──▶ candidates ──▶ rank ◀──┘          [tail, plan, search, near, rank]
//! ```
//!
//! Cards go into immutable segments of at most 50 000, each one sealed file with its own key; the list of segments is
//! replaced whole. What is not in a segment yet is the tail: the same terms, weights and statistics, in memory. Files do
//! not go through tantivy's own writer, which would start threads and take some 50 ms for a card.

mod bag;
mod container;
mod directory;
mod manifest;
mod meaning;
mod near;
mod pages;
mod plan;
mod rank;
mod search;
mod segment;
mod tail;
mod vectors;
mod words;
mod writer;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use confidant_seal::Key;
use parking_lot::{Mutex, MutexGuard};

pub use self::bag::Bag;
pub(crate) use self::bag::MARK;
use self::manifest::Manifest;
use self::pages::Pages;
#[doc(hidden)]
pub use self::rank::Mix;
use self::search::{Found, Snapshot};
use self::segment::Segment;
use self::tail::Tail;
pub(crate) use self::words::fold;
use self::writer::Busy;
use crate::{Card, Error, Result};

/// A card as search sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Its row in the truth; newer ones have higher ids.
    pub id: u64,
    /// Its text.
    pub card: Card,
    /// Exact tags.
    pub tags: Vec<String>,
    /// The session it is of.
    pub session_id: String,
    /// The tool that ran it.
    pub tool: String,
    /// When the session was, in milliseconds since 1970.
    pub created_at: i64,
    /// The session's own words, if they are indexed.
    pub bag: Option<Bag>,
}

/// Where documents come from: the truth. Ids grow: a document that appears later has a higher id than all before it.
pub trait Source: Send + Sync {
    /// The highest id of any document, live or not any more, 0 without any.
    fn newest(&self) -> Result<u64>;
    /// Live documents with a higher id than `after`, in order of id.
    fn documents(&self, after: u64, limit: usize) -> Result<Vec<Document>>;
    /// Which of these ids are still live.
    fn live(&self, ids: &[u64]) -> Result<Vec<u64>>;
}

/// Where the keys of one index's files are kept: apart from the files, so that destroying one ends what it sealed. What is
/// in here and not in use is destroyed, so two indexes must not share one.
pub trait FileKeys: Send + Sync + std::fmt::Debug {
    /// Makes and keeps a new key under this name.
    fn create(&self, name: &str) -> Result<Key>;
    /// The key of this name; nothing if there is none.
    fn get(&self, name: &str) -> Result<Option<Key>>;
    /// Destroys the keys of these names beyond recovery.
    fn destroy(&self, names: &[String]) -> Result<()>;
    /// All names there are.
    fn names(&self) -> Result<Vec<String>>;
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Words in any language; empty to list by time.
    pub text: String,
    /// All of these tags, exactly.
    pub tags: Vec<String>,
    /// Not before, in milliseconds since 1970.
    pub from: Option<i64>,
    /// Before.
    pub until: Option<i64>,
    /// At most so many.
    pub limit: usize,
    /// After so many.
    pub offset: usize,
    /// The present, for recency.
    pub now: i64,
    /// What of the text may have been taken out of sessions.
    pub hidden: Vec<Hidden>,
}

/// What may have been taken out of a session, as a search asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The term under which it would be found.
    pub term: String,
    /// The words of the query that it was made of, folded.
    pub words: Vec<String>,
}

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its id in the truth.
    pub id: u64,
    /// How well it fits; higher is better.
    pub score: f32,
    /// The passage of the session that is nearest in meaning, from 0, if one is near.
    pub passage: Option<u32>,
}

/// The search index of one owner.
#[derive(Debug)]
pub struct Index {
    folder: PathBuf,
    keys: Arc<dyn FileKeys>,
    mix: Mix,
    /// Opened pages of all segments.
    pages: Arc<Pages>,
    /// What was open when somebody last looked.
    view: Mutex<View>,
    /// Held by the one writer in this process.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct View {
    /// The sealed list, by which a change is noticed.
    bytes: Option<Vec<u8>>,
    covered: u64,
    segments: Vec<Arc<Segment>>,
    tail: Arc<Tail>,
}

impl Index {
    /// Opens the index in this folder, or an empty one if it is missing, damaged or of another version. Reads nothing and
    /// writes nothing: that is left to the first search.
    pub fn open(folder: &Path, keys: Arc<dyn FileKeys>) -> Result<Self> {
        Ok(Self {
            folder: folder.to_path_buf(),
            keys,
            mix: Mix::default(),
            pages: Arc::new(Pages::new(CACHE)),
            view: Mutex::default(),
            writing: Mutex::default(),
        })
    }

    /// Changes what is mixed into the order, for measurements.
    #[doc(hidden)]
    #[must_use]
    pub fn with_mix(mut self, mix: Mix) -> Self {
        self.mix = mix;
        self
    }

    /// Searches everything that `source` has, what is not indexed yet included.
    pub fn search(&self, query: &Query, source: &dyn Source) -> Result<Vec<Hit>> {
        if query.limit == 0 {
            return Ok(Vec::new());
        }
        let mut spare = SPARE;
        loop {
            let found = self.find(query, source, spare)?;
            let (hits, all) = Self::living(query, source, &found)?;
            // Too many of the best are gone by now: look further down.
            if hits.len() < query.limit && !all && spare < MOST_SPARE {
                spare *= 8;
                continue;
            }
            return Ok(hits);
        }
    }

    /// The best candidates, `spare` more than are asked for; and whether there are no others.
    fn find(&self, query: &Query, source: &dyn Source, spare: usize) -> Result<Found> {
        let search = || -> Result<std::result::Result<Found, tantivy::TantivyError>> {
            Ok(self.snapshot(source)?.search(query, self.mix, spare, source))
        };
        search()?.or_else(|error| {
            // Damage that shows only now. What was found so far is not used.
            tracing::warn!(error = %of_tantivy(&error), "the search index is being rebuilt");
            let found = self.view().bytes.clone();
            self.reset_if(found.as_ref())?;
            search()?.map_err(|error| of_tantivy(&error))
        })
    }

    /// The page of those that the truth still has; and whether these are all there are.
    fn living(query: &Query, source: &dyn Source, found: &Found) -> Result<(Vec<Hit>, bool)> {
        let mut hits = Vec::new();
        let wanted = query.offset.saturating_add(query.limit);
        for some in found.candidates.chunks(wanted.clamp(1, LIVE)) {
            let ids: Vec<u64> = some.iter().map(|candidate| candidate.id).collect();
            let live: HashSet<u64> = source.live(&ids)?.into_iter().collect();
            let some = some.iter().filter(|candidate| live.contains(&candidate.id));
            hits.extend(some.map(|candidate| Hit {
                id: candidate.id,
                score: candidate.score,
                passage: candidate.passage,
            }));
            if hits.len() >= wanted {
                break;
            }
        }
        Ok((hits.into_iter().skip(query.offset).take(query.limit).collect(), found.all))
    }

    /// Takes what is new in `source` into the files, if there is enough of it or `now` says so. Cheap when there is
    /// nothing to do; at most one process does it at a time, and another one returns at once. Returns how many documents
    /// were taken in.
    pub fn catch_up(&self, source: &dyn Source, now: bool) -> Result<u64> {
        let least = if now { 1 } else { BATCH };
        let waiting = {
            let mut view = self.view();
            self.refresh(&mut view, source)?;
            Self::extend(&mut view, source, least)?;
            view.tail.rows.len()
        };
        if waiting < least { Ok(0) } else { self.take_all_in(source, Busy::Leave) }
    }

    /// Removes documents, and what sealed files still say of them. Returns when it is done. Call it after they are gone
    /// from the truth, so that nobody takes them in again.
    pub fn forget(&self, ids: &[u64]) -> Result<()> {
        let ids: HashSet<u64> = ids.iter().copied().collect();
        if ids.is_empty() {
            return Ok(());
        }
        if let Some(held) = self.hold(Busy::Wait)? {
            self.remove(&ids, &held)?;
        }
        let mut view = self.view();
        Arc::make_mut(&mut view.tail).retain(|row| !ids.contains(&row.id));
        // What was replaced is closed now, not when somebody searches next.
        let bytes = Manifest::bytes(&self.folder)?;
        if self.open_segments(&mut view, bytes).is_err() {
            *view = View::default();
        }
        Ok(())
    }

    /// Everything that can be searched now. Takes in first what is too much to search in memory.
    fn snapshot(&self, source: &dyn Source) -> Result<Snapshot> {
        let mut most = TAIL;
        loop {
            {
                let mut view = self.view();
                self.refresh(&mut view, source)?;
                if Self::extend(&mut view, source, most)? {
                    return Ok(Snapshot { segments: view.segments.clone(), tail: Arc::clone(&view.tail) });
                }
            }
            if most > TAIL {
                return Err(Error::unavailable(
                    "the search index cannot be written, and there are too many memories to search without it",
                    "free some disk space, or give this program write permission for its data folder",
                ));
            }
            if let Err(error) = self.take_all_in(source, Busy::Wait) {
                tracing::warn!(%error, "the search index cannot be written; searching in memory");
                most = WITHOUT_FILES;
            }
        }
    }

    fn take_all_in(&self, source: &dyn Source, busy: Busy) -> Result<u64> {
        let mut all = 0;
        loop {
            // Given back between steps, so that whoever wants to forget need not wait for a whole rebuild.
            let Some(held) = self.hold(busy)? else { return Ok(all) };
            let taken = self.take_in(source, &held)?;
            all += taken;
            if taken == 0 {
                return Ok(all);
            }
        }
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock()
    }

    /// Brings the view up to the list in the folder.
    fn refresh(&self, view: &mut View, source: &dyn Source) -> Result<()> {
        for _ in 0..TRIES {
            let Ok(bytes) = Manifest::bytes(&self.folder) else { break };
            let known = bytes.is_some() && bytes == view.bytes;
            let why = match if known { Ok(()) } else { self.open_segments(view, bytes.clone()) } {
                Ok(()) if view.covered <= source.newest()? => return Ok(()),
                Ok(()) => "it has entries without memories",
                // Replaced while it was read.
                Err(_) if Manifest::bytes(&self.folder)? != bytes => continue,
                Err(_) => "it does not open",
            };
            tracing::warn!(why, "the search index is being rebuilt");
            if let Err(error) = self.reset_if(bytes.as_ref()) {
                tracing::warn!(%error, "the search index cannot be replaced");
                break;
            }
        }
        *view = View::default();
        Ok(())
    }

    fn open_segments(&self, view: &mut View, bytes: Option<Vec<u8>>) -> Result<()> {
        let manifest = match &bytes {
            Some(bytes) => Manifest::open(bytes.clone(), &*self.keys)?.ok_or_else(damaged)?,
            None => Manifest::empty(),
        };
        let mut segments = Vec::with_capacity(manifest.segments.len());
        for info in &manifest.segments {
            let open = view.segments.iter().find(|segment| segment.info == *info);
            segments.push(match open {
                Some(segment) => Arc::clone(segment),
                None => Arc::new(Segment::open(&self.folder, info, &*self.keys, &self.pages)?),
            });
        }
        if manifest.covered < view.covered {
            view.tail = Arc::new(Tail::after(manifest.covered));
        } else if manifest.covered > view.covered {
            Arc::make_mut(&mut view.tail).advance(manifest.covered);
        }
        view.bytes = bytes;
        view.covered = manifest.covered;
        view.segments = segments;
        Ok(())
    }

    /// Loads what is new into the tail, until it has `most`. True if that was all.
    fn extend(view: &mut View, source: &dyn Source, most: usize) -> Result<bool> {
        let newest = source.newest()?;
        while view.tail.last < newest {
            if view.tail.rows.len() >= most {
                return Ok(false);
            }
            let documents = source.documents(view.tail.last, READ.min(most))?;
            let tail = Arc::make_mut(&mut view.tail);
            if documents.is_empty() {
                // The newest is gone already.
                tail.last = newest;
            }
            tail.extend(documents);
        }
        Ok(true)
    }

    /// Throws the index away, if it is still the one that was found to be damaged.
    fn reset_if(&self, found: Option<&Vec<u8>>) -> Result<()> {
        let Some(_held) = self.hold(Busy::Wait)? else { return Ok(()) };
        if Manifest::bytes(&self.folder)?.as_ref() == found { self.start_again() } else { Ok(()) }
    }
}

/// The distinct terms of a query.
pub(crate) fn terms(text: &str) -> HashSet<String> {
    words::query_terms(text).into_iter().map(|(term, _)| term).collect()
}

/// How many of these terms a text has.
pub(crate) fn shared(terms: &HashSet<String>, text: &str) -> usize {
    let mut found = HashSet::new();
    words::document_terms(text, &mut |term| {
        if let Some(term) = terms.get(term) {
            found.insert(term);
        }
    });
    found.len()
}

fn damaged() -> Error {
    Error::tampered(
        "a file of the search index is damaged or was changed",
        "nothing to do: the index is rebuilt from the memories",
    )
}

fn of_io(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound => damaged(),
        kind => Error::unavailable(
            format!("the search index cannot be read or written: {kind}"),
            "check the disk and the permissions of the data folder",
        ),
    }
}

fn of_tantivy(error: &tantivy::TantivyError) -> Error {
    match error {
        tantivy::TantivyError::IoError(error) => of_io(error),
        _ => damaged(),
    }
}

/// As many wait before they are taken into the files unasked.
const BATCH: usize = 256;
/// As many are searched in memory while they wait.
const TAIL: usize = 4096;
/// As many are searched in memory if nothing can be written.
const WITHOUT_FILES: usize = 50_000;
/// Documents that are asked for at once.
const READ: usize = 512;
/// Bytes of opened pages that are kept.
const CACHE: usize = 32 * 1024 * 1024;
/// How often a list that is being replaced is read again.
const TRIES: usize = 5;
/// More candidates than are asked for, because some may be gone from the truth by now; and the most there ever are.
const SPARE: usize = 32;
const MOST_SPARE: usize = 1 << 20;
/// Candidates whose life is asked for at once.
const LIVE: usize = 500;

#[cfg(test)]
mod tests;
