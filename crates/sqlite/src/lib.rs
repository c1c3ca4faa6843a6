//! What every SQLite file of ours needs: to be made private, to be shared with other processes from its first moment, to be
//! brought up to date and never down, and to keep nothing in its journal that was erased.

mod file;

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

pub use file::{File, OpenError, Privacy};

/// How long another process is waited for.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Makes an empty file unless there is one, and sees to it that only its owner can read it; SQLite gives its journals the same
/// mode. One that is there is not opened: closing it again would end every lock that SQLite has on it in this process, and
/// another process would take away the journal that is written to here.
pub fn make_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => restrict(path),
        made => made.map(drop),
    }
}

#[cfg(unix)]
fn restrict(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn restrict(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Switches to a write-ahead log. Of several processes that make one file, SQLite tells all but one at once that it is busy:
/// whoever waits would keep the others from it. So it is asked for again, a little later.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())) {
            Err(error) if is_busy(&error) && Instant::now() < until => std::thread::sleep(AGAIN),
            switched => return switched,
        }
    }
}

/// Moves the write-ahead log into the database and truncates it, so that no overwritten page outlives its erasure there.
/// Whoever reads is waited for; `false` says that they are still at it, and that there may still be something.
pub fn truncate_journal(connection: &Connection, patience: Duration) -> rusqlite::Result<bool> {
    let until = Instant::now() + patience;
    loop {
        // That it could not is told in the row, not as an error; and another's checkpoint is not waited for.
        let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy == 0 || Instant::now() >= until {
            return Ok(busy == 0);
        }
        std::thread::sleep(AGAIN);
    }
}

/// Writes every page anew, then does the same as [`truncate_journal`]. For files that hold keys: `secure_delete` clears what is
/// deleted where it lies, but when SQLite splits or joins pages it leaves copies of rows in the unused part of a page, and a later
/// deletion does not find those. Takes as long as copying the file, and writers wait meanwhile.
///
/// Where the disk has no room for the copy, only the journal is truncated, so that erasing works on a full disk; the next call makes
/// good for it.
pub fn rewrite(connection: &Connection, patience: Duration) -> rusqlite::Result<bool> {
    match connection.execute_batch("VACUUM") {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {}
        done => done?,
    }
    truncate_journal(connection, patience)
}

/// Whether others had the file for too long.
fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

const AGAIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Connection {
        let steps = &["CREATE TABLE things (name TEXT)"];
        let file = File { steps, pragmas: &[], statements: 16, privacy: Privacy::Required };
        file.open(path).unwrap()
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
                        open(&path);
                    });
                }
            });
        }
    }

    #[test]
    fn a_journal_that_somebody_reads_is_not_said_to_be_clean() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let (writer, reader) = (open(&path), open(&path));
        writer.busy_timeout(Duration::ZERO).unwrap();
        writer.execute_batch("INSERT INTO things VALUES ('a')").unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM things").unwrap();
        writer.execute_batch("DELETE FROM things").unwrap();
        assert!(!truncate_journal(&writer, Duration::ZERO).unwrap());
        reader.execute_batch("COMMIT").unwrap();
        assert!(truncate_journal(&writer, Duration::ZERO).unwrap());
        assert_eq!(std::fs::metadata(folder.path().join("some.db-wal")).unwrap().len(), 0);
    }

    /// Another process that opens and closes the file does as the last one does, unless it sees our locks.
    #[cfg(target_os = "linux")]
    #[test]
    fn making_it_once_more_keeps_the_locks_on_it() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let _first = open(&path);
        let file = std::fs::metadata(&path).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let name = format!(":{} ", file.ino());
        let locked =
            || std::fs::read_to_string("/proc/locks").unwrap().lines().any(|lock| lock.contains(&name));
        assert!(locked());
        make_private(&path).unwrap();
        assert!(locked());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
