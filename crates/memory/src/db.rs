//! How both of a memory's SQLite files are opened, and what their errors mean to people.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use crate::{Error, Result};

/// Opens a file, made or brought up to date by those of these steps that it lacks. Safe beside other processes that do
/// the same. Steps are only ever added.
pub(crate) fn open(path: &Path, steps: &[&str]) -> Result<Connection> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    private_file(path)?;
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    write_ahead(&connection).map_err(failed)?;
    connection
        .execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY;
             PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;",
        )
        .map_err(failed)?;
    match version(&connection)? {
        have if have == steps.len() => {}
        have if have < steps.len() => {
            let tx = connection
                .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
                .map_err(failed)?;
            // Asked again: another process may have done it while we waited for the lock.
            for step in steps.iter().skip(version(&tx)?) {
                tx.execute_batch(step).map_err(failed)?;
            }
            tx.pragma_update(None, "user_version", steps.len()).map_err(failed)?;
            tx.commit().map_err(failed)?;
        }
        _ => {
            return Err(Error::unavailable(
                "the memory was written by a newer version of Confidant",
                "upgrade this program",
            ));
        }
    }
    Ok(connection)
}

fn version(connection: &Connection) -> Result<usize> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)
}

/// Switches to a write-ahead log. Of several processes that make one file, SQLite tells all but one at once that it is busy:
/// whoever waits would keep the others from it. So it is asked for again, a little later.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let patience = Instant::now() + PATIENCE;
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())) {
            Err(error) if is_busy(&error) && Instant::now() < patience => {
                std::thread::sleep(Duration::from_millis(5));
            }
            switched => return switched,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Leaves nothing of deleted rows in the journal. Readers are waited for; an error says that they are still at it, and
/// that there may still be something.
pub(crate) fn scrub(connection: &Connection) -> Result<()> {
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    match busy.map_err(failed)? {
        0 => Ok(()),
        _ => Err(Error::unavailable(
            "what is gone may still be in a journal, because another process is reading it",
            "end what reads for so long; it is tried again by itself",
        )),
    }
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
    let made = std::fs::create_dir_all(folder).and_then(|()| restrict(folder, 0o700));
    made.map_err(|_| {
        Error::unavailable(
            "a folder of the memory cannot be made",
            "check the permissions of the data folder",
        )
    })
}

/// Makes a file that only its owner can read. One that is there is not opened: closing it again would end every lock that
/// SQLite has on it in this process, and another process would take away the journal that is written to here.
fn private_file(path: &Path) -> Result<()> {
    let made = match std::fs::OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    };
    let made = made.and_then(|()| restrict(path, 0o600));
    made.map_err(|error| match error.kind() {
        std::io::ErrorKind::StorageFull => {
            Error::unavailable("the disk is full, nothing was written", "free some space and try again")
        }
        _ => Error::unavailable("the memory's folder cannot be written", "check its owner and permissions"),
    })
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn restrict(_: &Path, _: u32) -> std::io::Result<()> {
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(10);

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

    /// Another process that opens and closes the file does as the last one does, unless it sees our locks.
    #[cfg(target_os = "linux")]
    #[test]
    fn opening_it_once_more_keeps_the_locks_on_it() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let _first = open(&path, STEPS).unwrap();
        let locked = || {
            let file = format!(":{} ", std::fs::metadata(&path).unwrap().ino());
            std::fs::read_to_string("/proc/locks").unwrap().lines().any(|lock| lock.contains(&file))
        };
        assert!(locked());
        private_file(&path).unwrap();
        assert!(locked());
    }

    #[test]
    fn many_can_make_one_file_at_once() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("some.db");
            let start = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        start.wait();
                        open(&path, STEPS).unwrap();
                    });
                }
            });
        }
    }
}
