//! The tables, made and brought up to date at the start. Migrations are only ever added.

use tokio::time::timeout;

use super::error::PostgresError;
use super::pool::{ANSWER, Pool, Result, failure, timed_out};

/// Applies what is missing. Several processes may start at once; they do it one after the other, each for as long as it takes:
/// the limits of a turn are not for those who rewrite a large table, or wait for one who does.
pub async fn migrate(pool: &Pool, migrations: &[&str]) -> Result<()> {
    let known = i32::try_from(migrations.len()).unwrap_or(i32::MAX);
    match applied(pool).await? {
        Some(have) if have == known => return Ok(()),
        Some(have) if have > known => return Err(PostgresError::Newer),
        _ => {}
    }
    let mut client = pool.connect_apart().await?;
    let failed = |error: tokio_postgres::Error| failure(&error);
    let transaction = client.transaction().await.map_err(failed)?;
    // Any number will do, as long as it is always the same.
    let begin = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock(7367000001)";
    transaction.batch_execute(begin).await.map_err(failed)?;
    let make = format!(
        "CREATE SCHEMA IF NOT EXISTS {schema};
         CREATE TABLE IF NOT EXISTS migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())",
        schema = pool.schema
    );
    transaction.batch_execute(&make).await.map_err(failed)?;
    let have: i32 = transaction
        .query_one("SELECT coalesce(max(version), 0) FROM migrations", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(failed)?;
    for (version, sql) in (1..).zip(migrations.iter().copied()).filter(|(version, _)| *version > have) {
        transaction.batch_execute(sql).await.map_err(failed)?;
        transaction
            .execute("INSERT INTO migrations (version) VALUES ($1)", &[&version])
            .await
            .map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Whether somebody has made the tables.
pub async fn is_there(pool: &Pool) -> Result<bool> {
    Ok(applied(pool).await?.is_some_and(|version| version > 0))
}

/// The last migration that was applied; nothing if there are no tables of ours.
async fn applied(pool: &Pool) -> Result<Option<i32>> {
    timeout(ANSWER, last(pool)).await.unwrap_or_else(|_| Err(timed_out()))
}

async fn last(pool: &Pool) -> Result<Option<i32>> {
    let client = pool.connect_apart().await?;
    let table = format!("{}.migrations", pool.schema);
    let there = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table]).await;
    let there: bool = there.and_then(|row| row.try_get(0)).map_err(|error| failure(&error))?;
    if !there {
        return Ok(None);
    }
    let version = client.query_one("SELECT coalesce(max(version), 0) FROM migrations", &[]).await;
    version.and_then(|row| row.try_get(0)).map(Some).map_err(|error| failure(&error))
}
