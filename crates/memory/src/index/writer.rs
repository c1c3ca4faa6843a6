//! Everything that changes the folder: taking in, merging, forgetting, starting again.
//!
//! One writer at a time, in this process by a mutex and among processes by a lock on a file, which the system gives back
//! when a process dies. Order is what makes a crash harmless: segment, then list, then the keys and files that the list no
//! longer names. Easy to get wrong: documents are read from the source *under* the lock, so that whatever is deleted from
//! the truth and then forgotten here cannot come back from a batch that was read before.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::sync::Arc;

use parking_lot::MutexGuard;

use super::container;
use super::manifest::{LOCK, Manifest, remove, sync_folder};
use super::segment::{self, Made, Maker, Segment};
use super::{Index, Source, of_io, of_tantivy};
use crate::Result;

/// The right to write. Given back when dropped.
pub(super) struct Held<'a> {
    _file: File,
    _here: MutexGuard<'a, ()>,
}

/// What to do when somebody else writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Busy {
    Wait,
    Leave,
}

impl Index {
    /// Becomes the writer, or finds that another is.
    pub(super) fn hold(&self, busy: Busy) -> Result<Option<Held<'_>>> {
        let here = match busy {
            Busy::Wait => self.writing.lock(),
            Busy::Leave => match self.writing.try_lock() {
                Some(here) => here,
                None => return Ok(None),
            },
        };
        let take = || -> io::Result<Option<File>> {
            make_folder(&self.folder)?;
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).write(true);
            // A pipe that somebody put in its place is an error at once, and not waited for.
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::custom_flags(
                &mut options,
                (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed(),
            );
            let file = options.open(self.folder.join(LOCK))?;
            match busy {
                Busy::Wait => file.lock()?,
                Busy::Leave => match file.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => return Ok(None),
                    Err(TryLockError::Error(error)) => return Err(error),
                },
            }
            Ok(Some(file))
        };
        let file = take().map_err(|error| of_io(&error))?;
        Ok(file.map(|file| Held { _file: file, _here: here }))
    }

    /// Takes one batch of what is new into the files. Returns how many documents it had; 0 when there is nothing left.
    pub(super) fn take_in(&self, source: &dyn Source, held: &Held<'_>) -> Result<u64> {
        let mut manifest = self.current(source, held)?;
        let mut maker = Maker::new().map_err(|error| of_tantivy(&error))?;
        while maker.documents() < LARGEST && maker.terms() < MOST_TERMS && maker.memory() < MEMORY {
            let after = maker.last().unwrap_or(manifest.covered);
            let left = usize::try_from(LARGEST - maker.documents()).unwrap_or(READ);
            let mut more = source.documents(after, READ.min(left))?;
            more.retain(|document| document.id > after);
            if more.is_empty() {
                break;
            }
            for document in more {
                maker.add(document).map_err(|error| of_tantivy(&error))?;
            }
        }
        let Some(last) = maker.last() else { return Ok(0) };
        manifest.covered = last;
        let taken = u64::from(maker.documents());
        let made = maker.finish().map_err(|error| of_tantivy(&error))?;
        manifest.segments.push(self.write_segment(made)?);
        manifest.write(&self.folder, &*self.keys)?;
        self.merge_small(&mut manifest, source)?;
        self.clean(&manifest)?;
        Ok(taken)
    }

    /// Removes documents from the files.
    pub(super) fn remove(&self, ids: &HashSet<u64>, _: &Held<'_>) -> Result<()> {
        let Some(bytes) = Manifest::bytes(&self.folder)? else {
            // A segment may have been written, and the list not any more.
            return self.clean(&Manifest::empty());
        };
        let Some(mut manifest) = Manifest::open(bytes, &*self.keys)? else { return self.start_again() };
        let mut changed = false;
        for info in std::mem::take(&mut manifest.segments) {
            if !ids.iter().any(|id| (info.first..=info.last).contains(id)) {
                manifest.segments.push(info);
                continue;
            }
            let Ok(segment) = Segment::open(&self.folder, &info, &*self.keys, &self.pages) else {
                return self.start_again();
            };
            if !(0..info.documents).any(|row| ids.contains(&segment.ids.get_val(row))) {
                manifest.segments.push(info);
                continue;
            }
            changed = true;
            match segment::merge(&[Arc::new(segment)], ids) {
                Ok(Some(made)) => manifest.segments.push(self.write_segment(made)?),
                Ok(None) => {}
                Err(_) => return self.start_again(),
            }
        }
        if changed {
            // No further than there is something: what knows more than the memories do is taken for damaged.
            manifest.covered = manifest.segments.last().map_or(0, |info| info.last);
            manifest.write(&self.folder, &*self.keys)?;
        }
        // Even if nothing changed now: a crash may have left what an earlier call replaced.
        self.clean(&manifest)
    }

    /// Forgets the whole index; it is made again from the source.
    pub(super) fn start_again(&self) -> Result<()> {
        let manifest = Manifest::empty();
        manifest.write(&self.folder, &*self.keys)?;
        self.clean(&manifest)
    }

    /// The list as it is in the folder, or an empty one if it cannot be used or knows more than the source.
    fn current(&self, source: &dyn Source, _: &Held<'_>) -> Result<Manifest> {
        let manifest = match Manifest::bytes(&self.folder)? {
            Some(bytes) => Manifest::open(bytes, &*self.keys)?,
            None => None,
        };
        match manifest {
            Some(manifest) if manifest.covered <= source.newest()? => Ok(manifest),
            _ => Ok(Manifest::empty()),
        }
    }

    fn write_segment(&self, made: Made) -> Result<segment::Info> {
        let name = random_name();
        let key = self.keys.create(&name)?;
        container::write(&self.folder, &name, &key, &made.parts).map_err(|error| of_io(&error))?;
        sync_folder(&self.folder).map_err(|error| of_io(&error))?;
        Ok(segment::Info { name, ..made.info })
    }

    /// Makes one of the newest segments while the one before them is no larger than they are together: each document is
    /// rewritten a few times in its life, and there are few segments. None grows past [`LARGEST`], so that forgetting a
    /// document costs no more than rewriting that many. What the source no longer has is left behind.
    fn merge_small(&self, manifest: &mut Manifest, source: &dyn Source) -> Result<()> {
        let mut first = manifest.segments.len();
        let (mut together, mut terms) = (0, 0);
        for (i, info) in manifest.segments.iter().enumerate().rev() {
            let large = info.documents + together > LARGEST || info.terms + terms > MOST_TERMS;
            if together > 0 && (info.documents > together || large) {
                break;
            }
            together += info.documents;
            terms += info.terms;
            first = i;
        }
        if manifest.segments.len() - first < 2 {
            return Ok(());
        }
        let open = |info| Segment::open(&self.folder, info, &*self.keys, &self.pages).map(Arc::new);
        let opened: Result<Vec<Arc<Segment>>> = manifest.segments[first..].iter().map(open).collect();
        let merged = opened.and_then(|opened| segment::merge(&opened, &dead(&opened, source)?));
        let Ok(made) = merged else {
            *manifest = Manifest::empty();
            return manifest.write(&self.folder, &*self.keys);
        };
        manifest.segments.truncate(first);
        if let Some(made) = made {
            manifest.segments.push(self.write_segment(made)?);
        }
        manifest.write(&self.folder, &*self.keys)
    }

    /// Destroys the keys, then removes the files, that the list does not name.
    fn clean(&self, manifest: &Manifest) -> Result<()> {
        let mut dead = self.keys.names()?;
        dead.retain(|name| !manifest.names(name));
        if !dead.is_empty() {
            self.keys.destroy(&dead)?;
        }
        let sweep = || -> io::Result<()> {
            let mut swept = false;
            for entry in std::fs::read_dir(&self.folder)? {
                let entry = entry?;
                if entry.file_name().to_str().is_some_and(|name| !manifest.names(name)) {
                    remove(&entry.path())?;
                    swept = true;
                }
            }
            if swept { sync_folder(&self.folder) } else { Ok(()) }
        };
        sweep().map_err(|error| of_io(&error))
    }
}

/// What is in these segments, and in the source no more.
fn dead(segments: &[Arc<Segment>], source: &dyn Source) -> Result<HashSet<u64>> {
    let mut dead = HashSet::new();
    for segment in segments {
        let ids: Vec<u64> = (0..segment.info.documents).map(|row| segment.ids.get_val(row)).collect();
        let live: HashSet<u64> = source.live(&ids)?.into_iter().collect();
        dead.extend(ids.into_iter().filter(|id| !live.contains(id)));
    }
    Ok(dead)
}

fn random_name() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .expect("the operating system provides random bytes; without them nothing is safe");
    hex::encode(bytes)
}

fn make_folder(folder: &std::path::Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Bytes that making a segment may take; then it is as large as it is.
const MEMORY: usize = 96 * 1024 * 1024;
/// Documents that are asked for at once.
const READ: usize = 512;
/// The largest segment.
const LARGEST: u32 = 50_000;
/// Terms of the largest segment, each document's counted once.
const MOST_TERMS: u64 = 4_000_000;
