//! A container as tantivy's directory: read only.
//!
//! Segments are made in memory and written as one container, so nothing of tantivy ever writes a file.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, WatchCallback, WatchHandle, WritePtr,
};

use super::container::Container;

/// The parts of one container, seen as files.
#[derive(Clone, Debug)]
pub(super) struct SealedDirectory(pub(super) Arc<Container>);

impl Directory for SealedDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let missing = || OpenReadError::FileDoesNotExist(path.to_path_buf());
        let range = path.to_str().and_then(|name| self.0.part(name)).ok_or_else(missing)?;
        Ok(Arc::new(SealedFile { container: Arc::clone(&self.0), range }))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(path.to_str().is_some_and(|name| self.0.part(name).is_some()))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let file = self.get_file_handle(path)?;
        let bytes = file.read_bytes(0..file.len());
        let bytes = bytes.map_err(|error| OpenReadError::wrap_io_error(error, path.to_path_buf()))?;
        Ok(bytes.as_slice().to_vec())
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError { io_error: Arc::new(read_only()), filepath: path.to_path_buf() })
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(read_only(), path.to_path_buf()))
    }

    fn atomic_write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    /// A container never changes, so there is nothing to lock.
    fn acquire_lock(&self, _: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

#[derive(Debug)]
struct SealedFile {
    container: Arc<Container>,
    range: Range<u64>,
}

impl HasLen for SealedFile {
    fn len(&self) -> usize {
        usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX)
    }
}

impl FileHandle for SealedFile {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.container.read(self.range.start + range.start as u64..self.range.start + range.end as u64)
    }
}

fn read_only() -> io::Error {
    io::Error::from(io::ErrorKind::ReadOnlyFilesystem)
}
