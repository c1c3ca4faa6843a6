//! A folder of sealed artifacts, named by their hash.
//!
//! `ab/cd/abcd…` holds one blob. A blob appears whole or not at all: it is written to `incoming/`, flushed, and moved to
//! its name, and the folders are flushed too. What a crash leaves in `incoming/` is swept at the next use; a file
//! that a live writer holds is locked, so several processes may share the folder.
//!
//! Easy to get wrong: a blob that is already there counts as kept only if its bytes are right. A damaged one is
//! replaced, since its name says what it must be.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use super::{Blobs, Locator, MAX_BYTES, Pointer, Removed};
use crate::{Error, Result, regular};

/// A content-addressed folder; the seed's `mock` mode.
#[derive(Clone, Debug)]
pub struct Local {
    root: PathBuf,
    limit: u64,
    /// How bytes get into a file; tests put a disk that fills up in its place.
    write: fn(&mut File, &[u8]) -> io::Result<()>,
}

impl Local {
    /// Opens the folder, makes it (private to its owner) if it is not there, and sweeps what a crash left.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let local = Self { root: root.into(), limit: MAX_BYTES, write: write_all };
        private_folder(&local.root).map_err(|error| failed("make the folder for artifacts", &error))?;
        local.sweep().map_err(|error| failed("clean the folder for artifacts", &error))?;
        Ok(local)
    }

    fn folder(&self, pointer: &Pointer) -> (PathBuf, PathBuf) {
        let hex = pointer.hex();
        let outer = self.root.join(&hex[..2]);
        let inner = outer.join(&hex[2..4]);
        (outer, inner)
    }

    fn path(&self, pointer: &Pointer) -> PathBuf {
        self.folder(pointer).1.join(pointer.hex())
    }

    fn incoming(&self) -> PathBuf {
        self.root.join("incoming")
    }

    /// Removes temporary files that no writer holds.
    fn sweep(&self) -> io::Result<()> {
        let entries = match fs::read_dir(self.incoming()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            if !entry.file_type()?.is_file() {
                continue;
            }
            let held = match regular::open(&entry.path()) {
                Ok(file) => file.try_lock().is_err(),
                // Its writer has just moved it away, or another sweep was here first.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if !held {
                ignore_missing(fs::remove_file(entry.path()))?;
            }
        }
        Ok(())
    }

    fn keep(&self, pointer: &Pointer, ciphertext: &[u8]) -> io::Result<()> {
        self.sweep()?;
        let target = self.path(pointer);
        if holds(&target, ciphertext)? {
            return Ok(());
        }
        let (outer, inner) = self.folder(pointer);
        for folder in [&self.incoming(), &outer, &inner] {
            private_folder(folder)?;
        }
        // A sweep that comes between creating and locking takes the file away; then it is written again.
        for attempt in 1.. {
            match self.place(&target, ciphertext) {
                Err(error) if error.kind() == ErrorKind::NotFound && attempt < ATTEMPTS => {}
                other => return other,
            }
        }
        Ok(())
    }

    fn place(&self, target: &Path, ciphertext: &[u8]) -> io::Result<()> {
        let temporary = self.incoming().join(random_name()?);
        let written = self.write_temporary(&temporary, ciphertext).and_then(|file| {
            fs::rename(&temporary, target)?;
            Ok(file)
        });
        match written {
            // The lock goes only now that the name is gone from `incoming/`.
            Ok(file) => drop(file),
            Err(error) => {
                // The first failure is the one to report; a leftover is swept later.
                let _ = fs::remove_file(&temporary);
                return Err(error);
            }
        }
        if let Some(folder) = target.parent() {
            flush_folder(folder)?;
        }
        flush_folder(&self.incoming())
    }

    fn write_temporary(&self, path: &Path, ciphertext: &[u8]) -> io::Result<File> {
        let mut file = private_file(path)?;
        file.lock()?;
        (self.write)(&mut file, ciphertext)?;
        file.sync_all()?;
        Ok(file)
    }

    fn read(&self, pointer: &Pointer) -> Result<Vec<u8>> {
        let path = self.path(pointer);
        let missing = |error: &io::Error| error.kind() == ErrorKind::NotFound;
        // A link or a pipe is not ours, and opening a pipe would wait for ever.
        let file = match regular::open(&path) {
            Err(error) if missing(&error) => return Err(absent()),
            Err(error) if regular::is_not_regular(&error) => return Err(not_ours()),
            other => other.map_err(|error| failed("read an artifact", &error))?,
        };
        if file.metadata().map_err(|error| failed("read an artifact", &error))?.len() > self.limit {
            return Err(not_ours());
        }
        let mut bytes = Vec::new();
        file.take(self.limit + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| failed("read an artifact", &error))?;
        if bytes.len() as u64 > self.limit {
            return Err(not_ours());
        }
        Ok(bytes)
    }

    fn erase(&self, pointer: &Pointer) -> io::Result<()> {
        let path = self.path(pointer);
        ignore_missing(fs::remove_file(&path))?;
        path.parent().map_or(Ok(()), |folder| ignore_missing(flush_folder(folder)))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let local = self.clone();
        tokio::task::spawn_blocking(move || work(&local)).await.unwrap_or_else(|_| {
            Err(Error::unavailable("the folder for artifacts could not be used", "try again"))
        })
    }
}

#[async_trait]
impl Blobs for Local {
    async fn put(
        &self,
        pointer: &Pointer,
        ciphertext: &[u8],
        _resume: Option<&Locator>,
        _noted: &(dyn for<'l> Fn(&'l Locator) + Send + Sync),
    ) -> Result<Locator> {
        super::fits(ciphertext, self.limit)?;
        let (pointer, bytes) = (pointer.clone(), ciphertext.to_vec());
        self.blocking(move |local| {
            local.keep(&pointer, &bytes).map_err(|error| failed("keep an artifact", &error))
        })
        .await?;
        Ok(Locator::default())
    }

    async fn get(&self, pointer: &Pointer, _locator: &Locator) -> Result<Vec<u8>> {
        let pointer = pointer.clone();
        self.blocking(move |local| local.read(&pointer)).await
    }

    async fn remove(&self, pointer: &Pointer, _locator: &Locator) -> Result<Removed> {
        let pointer = pointer.clone();
        self.blocking(move |local| {
            local.erase(&pointer).map_err(|error| failed("remove an artifact", &error))
        })
        .await?;
        Ok(Removed::Gone)
    }

    async fn check(&self) -> Result<()> {
        self.blocking(|local| {
            private_folder(&local.incoming())
                .and_then(|()| local.sweep())
                .and_then(|()| {
                    let probe = local.incoming().join(random_name()?);
                    drop(private_file(&probe)?);
                    ignore_missing(fs::remove_file(probe))
                })
                .map_err(|error| failed("write to the folder for artifacts", &error))
        })
        .await
    }
}

/// Whether the file has exactly these bytes.
fn holds(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let file = match regular::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound || regular::is_not_regular(&error) => {
            return Ok(false);
        }
        other => other?,
    };
    let mut found = Vec::new();
    file.take(bytes.len() as u64 + 1).read_to_end(&mut found)?;
    Ok(found == bytes)
}

fn write_all(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}

/// Makes the folder and those above it that are missing, and flushes the folder that it is in. One that is there
/// keeps its mode: it may be somebody else's.
fn private_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), flush_folder)
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// A new or vanished name in a folder is durable only once the folder itself is flushed.
fn flush_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

fn ignore_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn random_name() -> io::Result<String> {
    super::random_hex().map_err(|_| io::Error::other("no random numbers"))
}

fn absent() -> Error {
    Error::not_found(
        "the artifact is not in the folder for artifacts",
        "if the folder was moved or restored from an older backup, put the file back; or forget the memory",
    )
}

fn not_ours() -> Error {
    Error::tampered(
        "what is in place of the artifact was not written by this program",
        "restore the folder for artifacts from a backup, or forget the memory",
    )
}

/// What was being done, and why it failed, without a path.
fn failed(doing: &str, error: &io::Error) -> Error {
    let (why, hint) = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            ("the disk is full", "free some space, then try again; nothing was left half written")
        }
        ErrorKind::PermissionDenied => (
            "permission was denied",
            "make the user that runs this the owner of the folder, or choose another folder",
        ),
        ErrorKind::ReadOnlyFilesystem => {
            ("the file system is read-only", "mount it writable, or choose another folder")
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            ("there is a file where a folder must be", "move that file, or choose another folder")
        }
        _ => ("the disk failed", "check the disk and the system's log, then try again"),
    };
    Error::unavailable(format!("cannot {doing}: {why}"), hint)
}

/// How often a file is written anew when a sweep took it away.
const ATTEMPTS: u32 = 5;

#[cfg(test)]
mod tests;
