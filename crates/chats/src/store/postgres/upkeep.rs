//! Expiry, scrubbing, checking.

use async_trait::async_trait;
use confidant_postgres::{Ask, For, Transaction, check, failure};

use super::super::delays::FORGOTTEN_AFTER;
use super::super::letters::expired_by;
use super::super::{Millis, Result, StoreError, Upkeep};
use super::rows::{count, number, parts};
use super::{NAME, PostgresChats, Work, transact};

#[async_trait]
impl Upkeep for PostgresChats {
    async fn expire(&self, now: Millis) -> Result<u64> {
        transact!(self, Writing, |tx| expire(tx, now))
    }

    /// Removes dead rows from the tables, while others read and write. What the server has written to its journal, to
    /// replicas and to backups is out of our reach, and so are unused bytes of its pages until they are used again: what
    /// is left of an erased account is sealed under a key that was destroyed before.
    async fn scrub(&self) -> Result<()> {
        let known = self.pool.query(For::Reading, "SELECT id FROM unscrubbed", &[]).await?;
        let known: Vec<Vec<u8>> = known.iter().filter_map(|row| row.try_get(0).ok()).collect();
        let client = self.pool.connect_apart().await?;
        // As long as it takes. One after the other, each in a transaction of its own.
        for sql in ["SET statement_timeout = 0", "SET lock_timeout = 0"].into_iter().chain(VACUUM) {
            client.batch_execute(sql).await.map_err(|error| failure(&error))?;
        }
        let sql = "DELETE FROM unscrubbed WHERE id = ANY($1)";
        self.pool.query(For::Writing, sql, &[&known]).await?;
        Ok(())
    }

    async fn must_scrub(&self) -> Result<bool> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM unscrubbed LIMIT 1) AS some_of_them";
        let rows = self.pool.query(For::Reading, sql, &[]).await?;
        Ok(rows.first().and_then(|row| row.try_get::<_, i64>(0).ok()).is_some_and(|count| count > 0))
    }

    /// Whether the server answers, and row-level security holds for us on every table.
    async fn check(&self) -> Result<()> {
        check(&self.pool).await?;
        let sql = "SELECT count(*) FROM pg_class
                   WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
                       AND relname NOT IN ('migrations', 'unscrubbed') AND NOT (relrowsecurity AND relforcerowsecurity)";
        let open = self.pool.query(For::Reading, sql, &[]).await?;
        match open.first().and_then(|row| row.try_get::<_, i64>(0).ok()) {
            Some(0) => Ok(()),
            _ => Err(StoreError::Corrupt(NAME)),
        }
    }
}

async fn expire(tx: &mut Transaction<'_>, now: Millis) -> Work<u64> {
    let long_ago = now.0.saturating_sub(u64::try_from(FORGOTTEN_AFTER.as_millis()).unwrap_or(u64::MAX));
    let (left_by, now, long_ago) = (number(expired_by(now).0), number(now.0), number(long_ago));
    let found = tx
        .finish(&[
            Ask("SELECT expire($1, $2)", &[&now, &long_ago]),
            Ask("SELECT expire_letters($1)", &[&left_by]),
            Ask("SELECT expire_marks($1)", &[&left_by]),
            Ask("SELECT expire_snapshots($1)", &[&now]),
        ])
        .await?;
    let [gone, letters, marks, snapshots] = parts(found)?;
    let went = [count(&gone)?, count(&letters)?, count(&marks)?, count(&snapshots)?];
    Ok(went.into_iter().fold(0, u64::saturating_add))
}

/// Every table that an account has rows in.
const VACUUM: [&str; 4] = [
    "VACUUM accounts, credentials, devices, sessions, codes, pairings, attempts",
    "VACUUM rings, rotations, staged, staged_floors, floors, manifests, list_steps, data, feed, deleted_chats",
    "VACUUM chats, items, steps, tombstones, drafts, letters, marks, safety",
    "VACUUM envelopes, snapshots",
];
