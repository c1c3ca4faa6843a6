//! The device's files: whole or not at all, sealed, for this user only.
//!
//! ```text
//! device.key      32 random bytes, mode 0600; or the caller brings the key
//! state           account, session, what was seen, the queue        ┐ each sealed under a key made from it,
//! room-chat_…     a chat: its keys, head and items                  ┘ written as a new file, synced, then renamed
//! ```
//!
//! Easy to get wrong: two files that belong together. A process may be killed between any two writes, so each file has
//! to make sense beside an older one of the others; `state` is always written first.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use confidant_display::debug_without_content;
use confidant_seal::{Context, Key, Sealed, Suite, open, seal};
use zeroize::Zeroizing;

use crate::error::Error;

/// Where a device keeps its files, by name. A name is letters, digits, `.`, `-` and `_`.
pub trait Files: Send + Sync + std::fmt::Debug {
    /// Reads a file; `None` if there is none.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error>;
    /// Replaces a file, as a whole.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error>;
    /// Replaces several files, each as a whole, in any order. One that cannot be written ends it; others may be.
    fn write_all(&self, files: &[(String, Vec<u8>)]) -> Result<(), Error> {
        files.iter().try_for_each(|(name, bytes)| self.write(name, bytes))
    }
    /// Removes a file; one that is not there is fine.
    fn remove(&self, name: &str) -> Result<(), Error>;
    /// The names of all files.
    fn names(&self) -> Result<Vec<String>, Error>;
}

/// A folder on disk.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Opens a folder for this user only; makes it if it is not there.
    pub fn open(path: &Path) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Replaces a file whose new name a power cut may still undo.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let new = self.path.join(format!("{name}{NEW}"));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let mut file = options.open(&new).map_err(failed)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, self.path.join(name)).map_err(failed)
    }

    /// The new names survive a power cut.
    fn settle(&self) -> Result<(), Error> {
        #[cfg(unix)]
        fs::File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(())
    }
}

impl Files for Folder {
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        match fs::read(self.path.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.put(name, bytes)?;
        self.settle()
    }

    /// Several threads wait for the disk, which syncs many files as fast as one.
    fn write_all(&self, files: &[(String, Vec<u8>)]) -> Result<(), Error> {
        let share = files.len().div_ceil(THREADS).max(1);
        thread::scope(|scope| {
            let put =
                |part: &[(String, Vec<u8>)]| part.iter().try_for_each(|(name, bytes)| self.put(name, bytes));
            let parts: Vec<_> = files.chunks(share).map(|part| scope.spawn(move || put(part))).collect();
            let ended = parts.into_iter().map(|part| part.join().unwrap_or(Err(Error::Damaged)));
            // All of them are waited for, whichever failed.
            ended.fold(Ok(()), Result::and)
        })?;
        self.settle()
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            names.extend(name.to_str().filter(|name| !name.ends_with(NEW)).map(ToOwned::to_owned));
        }
        Ok(names)
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::Files(error.kind().to_string())
}

const NEW: &str = ".new";
/// Threads that write at once.
const THREADS: usize = 8;

/// Files, sealed under the device's key.
#[derive(Clone)]
pub(crate) struct Cabinet {
    files: Arc<dyn Files>,
    key: Key,
}

debug_without_content!(Cabinet { files });

impl Cabinet {
    /// With the caller's key, or the one beside the files, which is made if there is none.
    pub(crate) fn open(files: Arc<dyn Files>, key: Option<Key>) -> Result<Self, Error> {
        let secret = match (key, files.read(KEY)?) {
            (Some(key), _) => key,
            (None, Some(bytes)) => {
                let bytes = Zeroizing::new(bytes);
                Key::from_bytes(<[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| Error::Damaged)?)
            }
            (None, None) => {
                let key = Key::random();
                files.write(KEY, key.dangerously_expose_bytes())?;
                key
            }
        };
        Ok(Self { files, key: secret.derive("client") })
    }

    pub(crate) fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        let Some(bytes) = self.files.read(name)? else { return Ok(None) };
        let opened = open(&self.key, &context(name), &Sealed::from_bytes(bytes));
        opened.map(|opened| Some(opened.data)).map_err(|_| Error::Damaged)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let sealed = seal(&self.key, Suite::Aes256Gcm, &context(name), 1, bytes);
        self.files.write(name, sealed.as_bytes())
    }

    /// Several files, in any order.
    pub(crate) fn write_all(
        &self,
        files: impl Iterator<Item = (String, Zeroizing<Vec<u8>>)>,
    ) -> Result<(), Error> {
        let sealed = |(name, bytes): (String, Zeroizing<Vec<u8>>)| {
            let sealed = seal(&self.key, Suite::Aes256Gcm, &context(&name), 1, &bytes);
            (name, sealed.into_bytes())
        };
        self.files.write_all(&files.map(sealed).collect::<Vec<_>>())
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), Error> {
        self.files.remove(name)
    }

    /// Names that begin with this.
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>, Error> {
        Ok(self.files.names()?.into_iter().filter(|name| name.starts_with(prefix)).collect())
    }

    /// Removes everything, the key last.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        for name in self.files.names()?.into_iter().filter(|name| name != KEY) {
            self.files.remove(&name)?;
        }
        self.files.remove(KEY)
    }
}

fn context(name: &str) -> Context<'_> {
    Context { purpose: "client", owner: "", container: "", object: name, field: "" }
}

const KEY: &str = "device.key";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_whole_private_and_bound_to_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let files = Arc::new(Folder::open(folder.path()).unwrap());
        let cabinet = Cabinet::open(files.clone(), None).unwrap();
        cabinet.write("state", b"one").unwrap();
        cabinet.write("state", b"two").unwrap();
        assert_eq!(cabinet.read("state").unwrap().unwrap().as_slice(), b"two");
        assert_eq!(cabinet.read("other").unwrap(), None);
        // Nothing is in clear, and the bytes of one file are not another's.
        let bytes = files.read("state").unwrap().unwrap();
        assert!(!bytes.windows(3).any(|part| part == b"two"));
        files.write("room-x", &bytes).unwrap();
        assert_eq!(cabinet.read("room-x"), Err(Error::Damaged));
        // The same key opens it again; another one does not.
        assert!(Cabinet::open(files.clone(), None).unwrap().read("state").is_ok());
        let other = Cabinet::open(files.clone(), Some(Key::random())).unwrap();
        assert_eq!(other.read("state"), Err(Error::Damaged));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            for name in ["state", "device.key"] {
                let mode = fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{name}");
            }
        }
        cabinet.clear().unwrap();
        assert!(files.names().unwrap().is_empty());
    }
}
