//! Expiry, scrubbing, checking.

use std::sync::Arc;

use async_trait::async_trait;
use confidant_sqlite::{PATIENCE, truncate_journal};
use rusqlite::{ErrorCode, params};

use super::super::delays::FORGOTTEN_AFTER;
use super::super::letters::expired_by;
use super::super::{Millis, Result, StoreError, Upkeep};
use super::rows::{all, number, run, value};
use super::{FILE, NAME, SqliteChats, blocking, rotation};

#[async_trait]
impl Upkeep for SqliteChats {
    async fn expire(&self, now: Millis) -> Result<u64> {
        self.write_with(move |c| {
            let now_n = number(now.0);
            let long_ago =
                now.0.saturating_sub(u64::try_from(FORGOTTEN_AFTER.as_millis()).unwrap_or(u64::MAX));
            let mut gone = rotation::thaw_expired(c, now)?;
            for (sql, until) in [
                ("DELETE FROM codes WHERE expires_at <= ?1", now_n),
                ("DELETE FROM pairings WHERE expires_at <= ?1", now_n),
                ("DELETE FROM sessions WHERE expires_at <= ?1", now_n),
                ("DELETE FROM snapshots WHERE expires_at <= ?1", now_n),
                ("DELETE FROM attempts WHERE last <= ?1", number(long_ago)),
                ("DELETE FROM letters WHERE left_at <= ?1", number(expired_by(now).0)),
                ("DELETE FROM marks WHERE asked_at <= ?1", number(expired_by(now).0)),
            ] {
                gone += run(c, sql, params![until])?;
            }
            Ok(u64::try_from(gone).unwrap_or(u64::MAX))
        })
        .await
    }

    /// Rewrites the whole file, then truncates its journal. `secure_delete` alone is not enough: when SQLite joins or splits
    /// pages, it copies cells and leaves the copies in the unused part of the page, where a later deletion does not find them
    /// (seen with SQLite 3.50.2: whole envelopes of an erased account between the cells of another's).
    async fn scrub(&self) -> Result<()> {
        let path = self.inner.path.clone();
        // Other writers of this process wait for it as tasks, not as threads that give up.
        let held = Arc::clone(&self.inner.writer).lock_owned().await;
        blocking(move || {
            let _held = held;
            let connection = FILE.join(&path)?;
            // Those that are known now: an erasure of another process while this runs is scrubbed the next time.
            let known = all(&connection, "SELECT id FROM unscrubbed", [], |row| row.get::<_, Vec<u8>>(0))?;
            // The copy on the way has what is kept, and nothing erased. In memory it could be too large, so it is there only
            // where no temporary file can be made.
            match connection.execute_batch("PRAGMA temp_store = FILE; VACUUM") {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
                    connection.execute_batch("PRAGMA temp_store = MEMORY; VACUUM")?;
                }
                done => done?,
            }
            if !truncate_journal(&connection, PATIENCE)? {
                return Err(StoreError::Busy.into());
            }
            for id in known {
                run(&connection, "DELETE FROM unscrubbed WHERE id = ?1", params![id])?;
            }
            Ok(())
        })
        .await
    }

    async fn must_scrub(&self) -> Result<bool> {
        self.read_with(|c| Ok(value(c, "SELECT EXISTS (SELECT 1 FROM unscrubbed)", [])?)).await
    }

    async fn check(&self) -> Result<()> {
        self.read_with(|c| {
            let verdict: String = value(c, "PRAGMA quick_check(1)", [])?;
            let foreign = c.prepare("PRAGMA foreign_key_check")?.exists([])?;
            if verdict == "ok" && !foreign { Ok(()) } else { Err(StoreError::Corrupt(NAME).into()) }
        })
        .await
    }
}
