//! How both of a memory's SQLite files are opened, and what their errors mean to people.

use std::path::Path;
use std::time::Duration;

use confidant_sqlite::{File, OpenError, Privacy};
use rusqlite::{Connection, ErrorCode};

use crate::{Error, Result};

/// Opens a file, made or brought up to date by those of these steps that it lacks. Safe beside other processes that do
/// the same. Steps are only ever added.
pub(crate) fn open(path: &Path, steps: &'static [&'static str]) -> Result<Connection> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let pragmas = &["synchronous = FULL", "secure_delete = ON", "foreign_keys = ON"];
    let file = File { steps, pragmas, statements: 16, privacy: Privacy::Required };
    file.open(path).map_err(|error| match error {
        OpenError::Newer => Error::unavailable(
            "the memory was written by a newer version of Confidant",
            "upgrade this program",
        ),
        OpenError::Private(error) => not_private(&error),
        OpenError::Sqlite(error) => failed(error),
    })
}

/// Leaves nothing of deleted rows in the journal. Readers are waited for; an error says that they are still at it, and
/// that there may still be something.
pub(crate) fn scrub(connection: &Connection) -> Result<()> {
    // The connection itself waits for readers, as long as its timeout says.
    if confidant_sqlite::truncate_journal(connection, Duration::ZERO).map_err(failed)? {
        return Ok(());
    }
    Err(still_read())
}

/// The same, and leaves no copy of them in any page: for keys.
pub(crate) fn rewrite(connection: &Connection) -> Result<()> {
    if confidant_sqlite::rewrite(connection, Duration::ZERO).map_err(failed)? {
        return Ok(());
    }
    Err(still_read())
}

fn still_read() -> Error {
    Error::unavailable(
        "erased data may still be in a journal, because another process is reading it",
        "close the process that has the file open; Confidant keeps trying",
    )
}

/// What a failure of SQLite means, without a word of what it was working on.
#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
pub(crate) fn failed(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            Error::unavailable("the disk is full, nothing was written", "free some space and try again")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            Error::unavailable("the memory's folder cannot be written", "check its owner and permissions")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::unavailable(
            "the memory is busy",
            "try again, and look for a long-running process on the same folder",
        ),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::unavailable(
            "a database of the memory is damaged or not a database",
            "restore memory.db and memory-keys.db from a backup",
        ),
        _ => Error::unavailable(
            "the memory's database failed",
            "try again; `confidant doctor` checks the files",
        ),
    }
}

/// A folder that only its owner can enter.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    let made = std::fs::create_dir_all(folder).and_then(|()| restrict(folder));
    made.map_err(|_| {
        Error::unavailable(
            "a folder of the memory cannot be created",
            "check the permissions of the data folder",
        )
    })
}

fn not_private(error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::StorageFull => {
            Error::unavailable("the disk is full, nothing was written", "free some space and try again")
        }
        _ => Error::unavailable("the memory's folder cannot be written", "check its owner and permissions"),
    }
}

#[cfg(unix)]
fn restrict(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn restrict(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &[&str] = &["CREATE TABLE things (name TEXT)"];

    #[test]
    fn a_journal_that_somebody_reads_is_not_said_to_be_clean() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let (writer, reader) = (open(&path, STEPS).unwrap(), open(&path, STEPS).unwrap());
        writer.busy_timeout(Duration::ZERO).unwrap();
        writer.execute_batch("INSERT INTO things VALUES ('a')").unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM things").unwrap();
        writer.execute_batch("DELETE FROM things").unwrap();
        assert_eq!(scrub(&writer).unwrap_err().code(), "unavailable");
        reader.execute_batch("COMMIT").unwrap();
        scrub(&writer).unwrap();
        assert_eq!(std::fs::metadata(folder.path().join("some.db-wal")).unwrap().len(), 0);
    }
}
