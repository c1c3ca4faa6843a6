//! Files that only their owner may read: keys, tokens, exports.
//!
//! Owns how they are made (never half-written, never readable by others, not even for a moment) and that one which
//! others can read is refused. Easy to get wrong: `create` must be decided by the file system and not by a look
//! beforehand, since two processes may start at once.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use confidant_memory::regular;
use zeroize::Zeroizing;

/// Whether a file was made or had been there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    New,
    Existing,
}

/// Why a private file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// There is none, or it cannot be read.
    #[error("{} cannot be read ({})", .0.display(), regular::why(.1))]
    Io(PathBuf, io::Error),
    /// Others can read it.
    #[error("{} can be read by other users (mode {:o}); hint: chmod 600 {}", .0.display(), .1, .0.display())]
    Open(PathBuf, u32),
}

/// Why it cannot be told whether something is there. Not the same as that nothing is.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} cannot be accessed ({}); hint: check the owner and permissions of the folders above it, and run this \
     as their owner",
    .0.display(), .1.kind()
)]
pub(crate) struct LookError(PathBuf, io::Error);

/// Whether there is such a file or folder. One that may not be looked at is no missing one: whoever took it for that would
/// start afresh beside what is there.
pub(crate) fn is_there(path: &Path) -> Result<bool, LookError> {
    path.try_exists().map_err(|error| LookError(path.to_owned(), error))
}

/// The same for a file in a folder, if there is a folder for it.
pub(crate) fn is_in(folder: Option<PathBuf>, name: &str) -> Result<bool, LookError> {
    folder.map_or(Ok(false), |folder| is_there(&folder.join(name)))
}

/// Whether two paths lead to the same folder, as far as they lead anywhere.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

/// Makes a folder that only its owner can enter, with those above it.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a private file, whole or not at all, unless there is one.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<Made> {
    let temporary = write_temporary(path, content)?;
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    match linked {
        Ok(()) => sync_folder(path).map(|()| Made::New),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Made::Existing),
        Err(error) => Err(error),
    }
}

/// Puts a private file in the place of another, whole or not at all.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = write_temporary(path, content)?;
    if let Err(error) = fs::rename(&temporary, path) {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_folder(path)
}

/// Reads a file that holds a secret; refuses one that others can read.
pub(crate) fn read_secret(path: &Path) -> Result<Zeroizing<String>, ReadError> {
    let failed = |error| ReadError::Io(path.to_owned(), error);
    let file = regular::open_linked(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(ReadError::Open(path.to_owned(), mode));
    }
    io::read_to_string(file).map(Zeroizing::new).map_err(failed)
}

/// The permissions of a file or folder.
pub(crate) fn mode(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o777)
}

fn write_temporary(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    // One of our own process id is a dead process's.
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if let Err(error) = written {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(temporary)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_create_wins_and_nothing_is_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        assert_eq!(create(&path, b"one").unwrap(), Made::New);
        assert_eq!(create(&path, b"two").unwrap(), Made::Existing);
        assert_eq!(*read_secret(&path).unwrap(), "one");
        replace(&path, b"three").unwrap();
        assert_eq!(*read_secret(&path).unwrap(), "three");
        assert_eq!(mode(&path).unwrap(), 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create(&path, b"secret").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = read_secret(&path).unwrap_err().to_string();
        assert!(error.contains("mode 640") && error.contains("hint: chmod 600"), "{error}");
    }
}
