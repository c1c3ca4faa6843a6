//! The one way to open a file: made private, refused if a newer version wrote it, shared with other processes, and brought up
//! to date.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::{PATIENCE, make_private, write_ahead};

/// What makes one kind of file, and how its connections are set up.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Applied in order; the count applied is the file's `user_version`. Only ever added to.
    pub steps: &'static [&'static str],
    /// What is set on every connection, such as `synchronous = FULL`, besides what is set for every file.
    pub pragmas: &'static [&'static str],
    /// How many statements a connection keeps prepared.
    pub statements: usize,
    /// Whether it may be used where it cannot be made private.
    pub privacy: Privacy,
}

/// What to do with a file that cannot be made its owner's alone: another owner has it, or the file system knows no owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privacy {
    /// It is not opened.
    Required,
    /// It is opened all the same.
    IfPossible,
}

/// Why a file was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It could not be made, or not be made private.
    #[error("the file cannot be made private; hint: check owner and permissions of its folder")]
    Private(#[source] std::io::Error),
    /// A newer version wrote it; nothing in it was changed.
    #[error("the file was written by a newer version of Confidant; hint: upgrade this program")]
    Newer,
    /// SQLite refused it.
    #[error("the file cannot be opened; hint: run `confidant doctor`")]
    Sqlite(#[from] rusqlite::Error),
}

impl File {
    /// Opens the file, made or brought up to date by those of its steps that it lacks. Safe beside other processes that do the
    /// same. One that is refused is left as it is, to the byte.
    pub fn open(&self, path: &Path) -> Result<Connection, OpenError> {
        let private = make_private(path);
        if self.privacy == Privacy::Required {
            private.map_err(OpenError::Private)?;
        }
        let mut connection = connect(path)?;
        let opened = self.take(&mut connection);
        if opened.is_err() {
            leave(&connection);
        }
        opened.map(|()| connection)
    }

    /// One more connection to a file that this process has opened. The steps were applied then.
    pub fn join(&self, path: &Path) -> rusqlite::Result<Connection> {
        let connection = connect(path)?;
        self.prepare(&connection)?;
        Ok(connection)
    }

    /// The same tables in memory; they end with the connection.
    pub fn in_memory(&self) -> Result<Connection, OpenError> {
        let mut connection = Connection::open_in_memory()?;
        self.take(&mut connection)?;
        Ok(connection)
    }

    fn take(&self, connection: &mut Connection) -> Result<(), OpenError> {
        // First of all: to switch to a write-ahead log is to write.
        let is_up_to_date = self.lacking(connection)?.is_empty();
        self.prepare(connection)?;
        if is_up_to_date {
            return Ok(());
        }
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Asked again: another process, perhaps a newer one, may have done it while we waited for the lock.
        for step in self.lacking(&tx)? {
            tx.execute_batch(step)?;
        }
        tx.pragma_update(None, "user_version", self.steps.len())?;
        Ok(tx.commit()?)
    }

    /// The steps that were not applied yet.
    fn lacking(&self, connection: &Connection) -> Result<&'static [&'static str], OpenError> {
        let applied: usize = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        self.steps.get(applied..).ok_or(OpenError::Newer)
    }

    fn prepare(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.set_prepared_statement_cache_capacity(self.statements);
        write_ahead(connection)?;
        ALWAYS
            .iter()
            .chain(self.pragmas)
            .try_for_each(|pragma| connection.execute_batch(&format!("PRAGMA {pragma}")))
    }
}

/// Set for every file. Temporary tables and sorts stay in memory: nothing of ours is ever in a file that we do not know of. And
/// a schema that somebody else changed calls no function that could do harm.
const ALWAYS: &[&str] = &["temp_store = MEMORY", "trusted_schema = OFF"];

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// Keeps the end of this connection from changing the file: the last one to close it moves what is in its journal into it. A
/// journal without content is our own, and goes with the connection.
fn leave(connection: &Connection) {
    let journal = connection.path().map(|path| std::fs::metadata(format!("{path}-wal")));
    let is_empty = journal.is_some_and(|journal| journal.map_or(true, |journal| journal.len() == 0));
    if !is_empty {
        let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    const FILE: File = File {
        steps: &["CREATE TABLE things (name TEXT)", "ALTER TABLE things ADD COLUMN size INTEGER"],
        pragmas: &["synchronous = FULL", "secure_delete = ON"],
        statements: 16,
        privacy: Privacy::Required,
    };
    const OLDER: File = File { steps: FILE.steps.split_at(1).0, ..FILE };

    fn setting<T: rusqlite::types::FromSql>(connection: &Connection, name: &str) -> T {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap()
    }

    /// What is in every file of a folder. SQLite makes the index of a journal anew as it likes; it says nothing.
    fn all(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let named = files.map(|file| (file.file_name().into_string().unwrap(), file.path()));
        named
            .filter(|(name, _)| !name.ends_with("-shm"))
            .map(|(name, path)| (name, std::fs::read(path).unwrap()))
            .collect()
    }

    #[test]
    fn a_file_is_made_once_and_then_brought_up_to_date() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        OLDER.open(&path).unwrap().execute("INSERT INTO things VALUES ('a')", []).unwrap();
        for _ in 0..2 {
            let (file, other) = (FILE.open(&path).unwrap(), FILE.join(&path).unwrap());
            for connection in [&file, &other] {
                assert_eq!(setting::<i64>(connection, "user_version"), 2);
                assert_eq!(setting::<String>(connection, "journal_mode"), "wal");
                let set = ["synchronous", "secure_delete", "temp_store", "trusted_schema"]
                    .map(|name| setting::<i64>(connection, name));
                assert_eq!(set, [2, 1, 2, 0]);
            }
            let row = other.query_row("SELECT name, size FROM things", [], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?))
            });
            assert_eq!(row.unwrap(), ("a".to_owned(), None));
        }
        FILE.in_memory().unwrap().execute("INSERT INTO things VALUES ('a', 1)", []).unwrap();
    }

    /// Whatever state it was left in, down to a journal that was not written back because the program was killed.
    #[test]
    fn a_file_of_a_newer_version_is_refused_and_not_a_byte_of_it_changes() {
        for version in [3, 4, i64::from(i32::MAX)] {
            for (mode, killed) in [("DELETE", false), ("WAL", false), ("WAL", true)] {
                let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
                let path = one.path().join("some.db");
                let newer = FILE.open(&path).unwrap();
                newer.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(())).unwrap();
                newer.pragma_update(None, "user_version", version).unwrap();
                newer.execute("INSERT INTO things VALUES ('a', 1)", []).unwrap();
                let folder = if killed {
                    for (name, bytes) in all(one.path()) {
                        std::fs::write(other.path().join(name), bytes).unwrap();
                    }
                    other.path()
                } else {
                    one.path()
                };
                drop(newer);
                let before = all(folder);
                assert_eq!(before.len(), if killed { 2 } else { 1 });
                for file in [FILE, OLDER] {
                    let refused = file.open(&folder.join("some.db"));
                    assert!(matches!(refused, Err(OpenError::Newer)), "{version} {mode}: {refused:?}");
                    assert!(all(folder) == before, "{version} {mode} {killed}: it was changed");
                }
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_one_is_refused_the_same_way() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let newer = FILE.open(&one.path().join("some.db")).unwrap();
        for (name, bytes) in all(one.path()) {
            std::fs::write(other.path().join(name), bytes).unwrap();
        }
        drop(newer);
        let before = all(other.path());
        let link = one.path().join("link.db");
        std::os::unix::fs::symlink(other.path().join("some.db"), &link).unwrap();
        assert!(matches!(OLDER.open(&link), Err(OpenError::Newer)));
        assert_eq!(before.len(), 2);
        assert!(all(other.path()) == before);
    }

    /// No version of ours is below nothing, and no other program's file is one of ours.
    #[test]
    fn what_is_no_file_of_ours_is_refused_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let strange = Connection::open(&path).unwrap();
        strange.execute_batch("CREATE TABLE theirs (name TEXT); PRAGMA user_version = -1").unwrap();
        drop(strange);
        let negative = std::fs::read(&path).unwrap();
        for bytes in [negative, vec![0x55; 8192]] {
            std::fs::write(&path, &bytes).unwrap();
            assert!(matches!(FILE.open(&path), Err(OpenError::Sqlite(_))));
            assert!(all(folder.path()) == BTreeMap::from([("some.db".to_owned(), bytes)]));
        }
    }

    /// Between a look at the version and the lock, a newer program may have been there: its version is not taken back.
    #[test]
    fn a_newer_program_that_was_quicker_keeps_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        let newer = OLDER.open(&path).unwrap();
        newer.execute_batch("BEGIN IMMEDIATE; PRAGMA user_version = 9").unwrap();
        std::thread::scope(|scope| {
            let late = scope.spawn(|| FILE.open(&path));
            std::thread::sleep(Duration::from_millis(200));
            newer.execute_batch("COMMIT").unwrap();
            assert!(matches!(late.join().unwrap(), Err(OpenError::Newer)));
        });
        assert_eq!(setting::<i64>(&newer, "user_version"), 9);
    }

    #[test]
    fn a_step_that_fails_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        OLDER.open(&path).unwrap().execute("INSERT INTO things VALUES ('a')", []).unwrap();
        let wrong =
            File { steps: &["", "ALTER TABLE things ADD COLUMN size; CREATE TABLE things (a)"], ..FILE };
        assert!(matches!(wrong.open(&path), Err(OpenError::Sqlite(_))));
        let there = OLDER.open(&path).unwrap();
        let columns = there.prepare("SELECT * FROM things").unwrap().column_count();
        assert_eq!((setting::<i64>(&there, "user_version"), columns), (1, 1));
    }

    #[test]
    fn a_file_that_cannot_be_made_private_is_opened_only_where_that_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("some.db");
        assert!(matches!(FILE.open(&path), Err(OpenError::Private(_))));
        let allowed = File { privacy: Privacy::IfPossible, ..FILE };
        assert!(matches!(allowed.open(&path), Err(OpenError::Sqlite(_))), "it says itself why it cannot");
    }
}
