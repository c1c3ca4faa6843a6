//! The list of segments: the one file that changes, replaced whole.
//!
//! Whoever reads it sees a complete index: segments are written and synced before the list that names them. It is sealed
//! under a key of its own in [`FileKeys`]. Putting an old list back gains nothing: the segments it names are either still
//! in use, or their keys are gone and the index is made again.

use std::io::{self, Write as _};
use std::path::Path;

use confidant_seal::{Context, Sealed, Suite, open, seal};
use serde::{Deserialize, Serialize};

use super::container;
use super::segment::Info;
use super::{FileKeys, of_io};
use crate::Result;

/// Changes with everything that decides what is in the files: analysis, weights, fields, forms.
pub(super) const VERSION: u32 = 3;

/// The segments of an index, in order of id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    version: u32,
    /// Everything up to this id is in the segments, or is no more.
    pub(super) covered: u64,
    pub(super) segments: Vec<Info>,
}

impl Manifest {
    /// An index of nothing.
    pub(super) fn empty() -> Self {
        Self { version: VERSION, ..Self::default() }
    }

    /// The sealed list as it is in the folder; nothing if there is none.
    pub(super) fn bytes(folder: &Path) -> Result<Option<Vec<u8>>> {
        let read = crate::regular::open(&folder.join(FILE)).and_then(|mut file| {
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut file, &mut bytes).map(|_| bytes)
        });
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            // Something else stands in its place; the index is made again.
            Err(error) if crate::regular::is_not_regular(&error) => Ok(Some(Vec::new())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(of_io(&error)),
        }
    }

    /// Opens a sealed list. Nothing if it is damaged or of another version: then the index is made again.
    pub(super) fn open(bytes: Vec<u8>, keys: &dyn FileKeys) -> Result<Option<Self>> {
        let Some(key) = keys.get(KEY)? else { return Ok(None) };
        let read = || {
            let opened = open(&key, &CONTEXT, &Sealed::from_bytes(bytes)).ok()?;
            let manifest: Self = serde_json::from_slice(&opened.data).ok()?;
            let order = manifest.segments.windows(2).all(|pair| pair[0].last < pair[1].first);
            (manifest.version == VERSION && order).then_some(manifest)
        };
        Ok(read())
    }

    /// Replaces the list in the folder, durably. The caller holds the lock.
    pub(super) fn write(&self, folder: &Path, keys: &dyn FileKeys) -> Result<()> {
        let key = match keys.get(KEY)? {
            Some(key) => key,
            None => keys.create(KEY)?,
        };
        let write = || -> io::Result<()> {
            let data = serde_json::to_vec(self)?;
            let sealed = seal(&key, Suite::Aes256Gcm, &CONTEXT, 1, &data);
            let new = folder.join(NEW);
            remove(&new)?;
            let mut file = container::create(&new)?;
            file.write_all(sealed.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, folder.join(FILE))?;
            sync_folder(folder)
        };
        write().map_err(|error| of_io(&error))
    }

    /// Whether a file or a key of this name belongs to the index as it is now.
    pub(super) fn names(&self, name: &str) -> bool {
        [FILE, LOCK, KEY].contains(&name) || self.segments.iter().any(|segment| segment.name == name)
    }
}

/// Removes a file if it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes new and removed names durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    std::fs::File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

const FILE: &str = "list";
const NEW: &str = "list.new";
/// The file that a writer locks.
pub(super) const LOCK: &str = "lock";
const KEY: &str = "list";
const CONTEXT: Context<'static> =
    Context { purpose: "memory.index", owner: "", container: "", object: "list", field: "" };
