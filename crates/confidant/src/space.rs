//! Space that is kept for what must work on a full disk: looking at data, exporting it, and above all erasing it.
//!
//! Removing a row of SQLite needs room, too: its journal, and the record of it. So a file of a few megabytes lies beside the
//! databases, and is let go of while something needs the room that nobody else has left; afterwards it is taken again. What is
//! easy to get wrong: turns must not live on it. They may meet the room while an erasure has it, which takes moments.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use confidant_engine::storage::Headroom;
use parking_lot::Mutex;

use crate::config::Config;

/// The reserves beside the databases of an installation.
#[derive(Debug)]
pub(crate) struct Space {
    folders: Vec<PathBuf>,
    /// How many need the room now, and whether it was let go of.
    lent: Mutex<(usize, bool)>,
}

impl Space {
    /// The reserves of these settings' folders; none where nothing is kept here.
    pub(crate) fn of(config: &Config) -> Self {
        let mut folders: Vec<PathBuf> =
            config.local_folders().map_or_else(Vec::new, |(data, keyring)| vec![data, keyring]);
        folders.dedup();
        Self { folders, lent: Mutex::default() }
    }

    /// Takes the room, unless the disk is nearly full as it is.
    pub(crate) fn hold(&self) {
        for folder in &self.folders {
            if free(folder).is_none_or(|free| free >= 2 * SIZE) {
                take(folder);
            }
        }
    }

    /// Whether some disk is too full for what is to work on it.
    fn is_short(&self) -> bool {
        self.folders.iter().any(|folder| free(folder).is_some_and(|free| free < SIZE))
    }
}

impl Headroom for Space {
    fn make(&self) {
        let mut lent = self.lent.lock();
        lent.0 += 1;
        if !lent.1 && self.is_short() {
            // Removed, not truncated: whoever crashes now leaves nothing that is taken for a reserve.
            lent.1 =
                self.folders.iter().filter(|folder| std::fs::remove_file(folder.join(NAME)).is_ok()).count()
                    > 0;
            if lent.1 {
                tracing::warn!("the disk is full: the space kept for erasing and exporting is used");
            }
        }
    }

    fn take_back(&self) {
        let mut lent = self.lent.lock();
        lent.0 = lent.0.saturating_sub(1);
        if lent.0 == 0 && std::mem::take(&mut lent.1) {
            self.folders.iter().for_each(|folder| take(folder));
        }
    }
}

/// Makes the reserve of a folder as large as it is to be, or as the disk allows. Failing is no trouble now.
fn take(folder: &Path) {
    if let Err(error) = fill(&folder.join(NAME)) {
        tracing::debug!(error = %error.kind(), "the reserve of disk space could not be filled");
    }
}

fn fill(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    let have = file.metadata()?.len();
    if have >= SIZE || allocate(&file) {
        return Ok(());
    }
    // As far as it goes, on disks that are nearly full and on those that cannot promise room.
    let chunk = vec![0xA5; 64 << 10];
    for _ in 0..(SIZE - have) / chunk.len() as u64 {
        file.write_all(&chunk)?;
    }
    file.sync_all()
}

/// Has the file system promise the room, where it can; all of it or nothing.
#[cfg(target_os = "linux")]
fn allocate(file: &File) -> bool {
    rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, SIZE).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File) -> bool {
    false
}

/// Bytes that are left where a folder is; `None` if that is not known.
#[cfg(unix)]
fn free(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}

/// The reserve's file name.
pub(crate) const NAME: &str = "space.reserve";
/// Enough for the journals of an erasure of thousands of sessions, and for opening every database.
const SIZE: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_taken_once_and_only_let_go_of_where_there_is_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let space = Space { folders: vec![folder.path().to_owned()], lent: Mutex::default() };
        let size = || std::fs::metadata(folder.path().join(NAME)).map(|file| file.len()).ok();
        assert_eq!(size(), None);
        for _ in 0..2 {
            space.hold();
            assert_eq!(size(), Some(SIZE));
        }
        space.make();
        assert_eq!(size(), Some(SIZE), "this disk has room");
        space.take_back();
        assert_eq!(size(), Some(SIZE));
    }
}
