//! Databases of other programs, opened so that nothing near them is written: no lock file, no log, no checkpoint.
//!
//! Easy to get wrong: opening a database in WAL mode "read-only" still creates its `-wal` and `-shm` files where they are
//! missing, and may fold the log into the database on closing. Nor may it be copied: a copy of sessions in a temporary
//! folder is what this project exists to avoid. So there are three ways:
//!
//! | log | index of the log | way |
//! |---|---|---|
//! | none, or empty | | `immutable=1`: the file as it is, without locks |
//! | there | there | `mode=ro&readonly_shm=1`: a reader that the owner's process knows of |
//! | there | missing, or stale | no locks, and `locking_mode=EXCLUSIVE`: the index of the log is in memory only |
//!
//! Without locks the owner may write meanwhile, so readers ask [`Database::is_still_the_same`] when they are done.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::lines::unreadable;
use crate::{Error, Result, regular};

/// The first bytes of every SQLite file.
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";

/// A database of another program.
pub(crate) struct Database {
    path: PathBuf,
    before: State,
    is_locked: bool,
    connection: Connection,
}

/// What a writer cannot help changing.
#[derive(PartialEq, Eq)]
struct State {
    database: (u64, Option<SystemTime>),
    /// The head of the log, which changes when it is begun anew. It may grow: what is new is not looked at.
    log: Vec<u8>,
}

impl Database {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut first = Vec::new();
        let file = regular::open(path).map_err(|_| unreadable())?;
        file.take(MAGIC.len() as u64).read_to_end(&mut first).map_err(|_| unreadable())?;
        if first != MAGIC {
            return Err(not_a_database());
        }
        let before = State::of(path).ok_or_else(unreadable)?;
        let (connection, is_locked) = if before.log.is_empty() {
            (connect(path, "immutable=1", Locking::Normal)?, false)
        } else if let Ok(connection) = connect(path, "mode=ro&readonly_shm=1", Locking::Normal) {
            (connection, true)
        } else {
            (connect(path, WITHOUT_LOCKS, Locking::Exclusive)?, false)
        };
        Ok(Self { path: path.to_owned(), before, is_locked, connection })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether what was read is what was there when it was opened.
    pub(crate) fn is_still_the_same(&self) -> bool {
        self.is_locked || State::of(&self.path).as_ref() == Some(&self.before)
    }
}

/// The names of a database's tables.
pub(crate) fn tables(path: &Path) -> Result<Vec<String>> {
    let database = Database::open(path)?;
    let list = || -> rusqlite::Result<Vec<String>> {
        let mut tables =
            database.connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' LIMIT 1000")?;
        tables.query_map([], |row| row.get(0))?.collect()
    };
    list().map_err(|_| not_a_database())
}

/// The names of a table's columns; none if there is no such table.
pub(crate) fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1) LIMIT 1000")?;
    columns.query_map([table], |row| row.get(0))?.collect()
}

/// The log of a database.
pub(crate) fn log_of(path: &Path) -> Option<PathBuf> {
    let mut name: OsString = path.file_name()?.to_owned();
    name.push("-wal");
    Some(path.with_file_name(name))
}

/// What is said of a file that should be a database.
pub(crate) fn not_a_database() -> Error {
    Error::unavailable(
        "an agent's database cannot be read: it is damaged, in use, or of another form",
        "try again when the agent is not running",
    )
}

enum Locking {
    Normal,
    Exclusive,
}

fn connect(path: &Path, how: &str, locking: Locking) -> Result<Connection> {
    // Paths are canonical by now, so a link anywhere in one was put there since.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(uri(path, how), flags)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        if matches!(locking, Locking::Exclusive) {
            connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        }
        connection.pragma_update(None, "query_only", true)?;
        // Sorting must not spill sessions into a temporary file.
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        // A snapshot that lasts as long as the connection, and proof that it can be read.
        connection.execute_batch("BEGIN")?;
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
        Ok(connection)
    };
    open().map_err(|_| not_a_database())
}

/// `file:` with whatever means something in a URI escaped, byte by byte.
fn uri(path: &Path, how: &str) -> String {
    let mut uri = "file:".to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~') {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02x}"));
        }
    }
    uri.push('?');
    uri.push_str(how);
    uri
}

impl State {
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        let mut log = Vec::new();
        if let Some(file) = log_of(path).and_then(|log| regular::open(&log).ok()) {
            file.take(LOG_HEAD).read_to_end(&mut log).ok()?;
        }
        Some(Self { database: (metadata.len(), metadata.modified().ok()), log })
    }
}

/// The log's head has the two numbers that change when it is begun anew.
const LOG_HEAD: u64 = 32;
#[cfg(unix)]
const WITHOUT_LOCKS: &str = "mode=ro&vfs=unix-none";
#[cfg(not(unix))]
const WITHOUT_LOCKS: &str = "mode=ro&vfs=win32-none";
