//! Which processes on this folder are alive, so that what a dead one left undone is taken up, and only that.
//!
//! A process holds a lock on a file of its own for as long as it lives; the system lets go of it however it ends. What
//! it is at itself it knows by heart: a task of its own that nobody here is at was left undone as well.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::keys::ArtifactId;
use crate::{Error, Result, db, regular};

/// A running process, as the one who does a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Instance(pub(crate) [u8; 16]);

/// The folder of lock files, and our own lock.
#[derive(Debug)]
pub(crate) struct Instances {
    folder: PathBuf,
    own: Instance,
    at_work: Arc<Mutex<HashSet<ArtifactId>>>,
    _lock: File,
}

/// That somebody in this process is at an artifact; over when it is dropped.
#[derive(Debug)]
pub(crate) struct AtWork {
    on: ArtifactId,
    all: Arc<Mutex<HashSet<ArtifactId>>>,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.all.lock().remove(&self.on);
    }
}

impl Instances {
    pub(crate) fn enlist(folder: &Path) -> Result<Self> {
        let fail = |_| {
            Error::unavailable("the memory's folder cannot be written", "check its owner and permissions")
        };
        db::make_folder(folder)?;
        let mut own = [0; 16];
        getrandom::fill(&mut own)
            .map_err(|_| Error::unavailable("there are no random bytes", "try again"))?;
        let own = Instance(own);
        let lock = File::create(path(folder, own)).map_err(fail)?;
        lock.lock().map_err(fail)?;
        Ok(Self { folder: folder.to_owned(), own, at_work: Arc::default(), _lock: lock })
    }

    /// Starts work on an artifact; nothing if somebody in this process is at it.
    pub(crate) fn start(&self, on: ArtifactId) -> Option<AtWork> {
        let started = self.at_work.lock().insert(on);
        started.then(|| AtWork { on, all: Arc::clone(&self.at_work) })
    }

    pub(crate) fn own(&self) -> Instance {
        self.own
    }

    /// Whether an instance is alive. The file of one that is not is cleared away.
    pub(crate) fn is_alive(&self, instance: Instance) -> bool {
        if instance == self.own {
            return true;
        }
        let path = path(&self.folder, instance);
        let Ok(file) = regular::open(&path) else { return false };
        match file.try_lock() {
            Ok(()) => {
                let _ = fs::remove_file(&path);
                false
            }
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(_)) => false,
        }
    }

    /// The same question about many.
    pub(crate) fn alive(&self) -> impl FnMut(Instance) -> bool + '_ {
        let mut known = HashMap::new();
        move |instance| *known.entry(instance).or_insert_with(|| self.is_alive(instance))
    }
}

impl Drop for Instances {
    fn drop(&mut self) {
        let _ = fs::remove_file(path(&self.folder, self.own));
    }
}

fn path(folder: &Path, instance: Instance) -> PathBuf {
    folder.join(format!("{}.lock", confidant_seal::Tag::from_bytes(instance.0)))
}
