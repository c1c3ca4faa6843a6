//! Snapshots as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, Digest, Refused};
use confidant_postgres::{Ask, Transaction};
use confidant_seal::Sealed;

use super::super::snapshots::{FoundSnapshot, PutSnapshot, SnapshotRow, Snapshots, check_snapshot};
use super::super::{Millis, Result, StoreError, limits};
use super::rows::{
    ACCOUNT, LOCK, SHOWN, account, all, digest_at, millis_at, number, parsed_at, parts, sealed_at, small,
    whose,
};
use super::write::{CHAT, there};
use super::{PostgresChats, Work, transact};

/// Those that are not over: the others make room.
const COUNT: &str = "SELECT count(*) FROM snapshots WHERE account = $1 AND expires_at > $2";
const OVER: &str = "DELETE FROM snapshots WHERE account = $1 AND expires_at <= $2";
/// An id of another account is taken as well, though its row is not seen.
const PUT: &str = "INSERT INTO snapshots (id, account, chat, expires_at, line, content)
    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING 1";

#[async_trait]
impl Snapshots for PostgresChats {
    async fn put_snapshot(&self, put: PutSnapshot) -> Result<()> {
        check_snapshot(&put)?;
        transact!(self, Writing, |tx| keep(tx, &put))
    }

    async fn snapshots(&self, id: &AccountId, now: Millis) -> Result<Vec<SnapshotRow>> {
        transact!(self, Reading, |tx| list(tx, id, now))
    }

    async fn snapshot_content(&self, account: &AccountId, id: Digest) -> Result<Option<Sealed>> {
        transact!(self, Reading, |tx| content(tx, account, &id))
    }

    async fn find_snapshot(&self, id: Digest, now: Millis) -> Result<Option<FoundSnapshot>> {
        transact!(self, Reading, |tx| find(tx, &id, now))
    }

    async fn revoke_snapshot(&self, account: &AccountId, id: Digest) -> Result<bool> {
        transact!(self, Writing, |tx| remove(tx, account, &id))
    }
}

async fn keep(tx: &mut Transaction<'_>, put: &PutSnapshot) -> Work<()> {
    let (id, chat, now) = (put.account.as_str(), put.chat.as_str(), number(put.now.0));
    let found = tx
        .run(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(CHAT, &[&id, &chat]), Ask(COUNT, &[&id, &now])])
        .await?;
    let [_, locked, chats, count] = parts(found)?;
    account(&locked)?;
    there(&chats)?;
    if small(&count)? >= limits::SNAPSHOTS {
        return Err(StoreError::TooMany("snapshots").into());
    }
    let (digest, until) = (put.id.as_bytes().as_slice(), number(put.expires_at.0));
    let (line, content) = (put.line.as_bytes(), put.content.as_bytes());
    let asks = [Ask(OVER, &[&id, &now]), Ask(PUT, &[&digest, &id, &chat, &until, &line, &content])];
    let [_, stored] = parts(tx.finish(&asks).await?)?;
    if stored.is_empty() { Err(Refused::Duplicate.into()) } else { Ok(()) }
}

async fn list(tx: &mut Transaction<'_>, id: &AccountId, now: Millis) -> Work<Vec<SnapshotRow>> {
    let (id, now) = (id.as_str(), number(now.0));
    let sql = "SELECT chat, id, expires_at, line FROM snapshots
               WHERE account = $1 AND expires_at > $2 ORDER BY id";
    let found = tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(sql, &[&id, &now])]).await?;
    let [_, owner, rows] = parts(found)?;
    account(&owner)?;
    all(&rows, |row| {
        Ok(SnapshotRow {
            chat: parsed_at(row, 0, ChatId::parse)?,
            id: digest_at(row, 1)?,
            expires_at: millis_at(row, 2)?,
            line: sealed_at(row, 3)?,
        })
    })
}

async fn content(tx: &mut Transaction<'_>, id: &AccountId, digest: &Digest) -> Work<Option<Sealed>> {
    let (id, digest) = (id.as_str(), digest.as_bytes().as_slice());
    let sql = "SELECT content FROM snapshots WHERE account = $1 AND id = $2";
    let found = tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(sql, &[&id, &digest])]).await?;
    let [_, owner, rows] = parts(found)?;
    account(&owner)?;
    rows.first().map(|row| sealed_at(row, 0)).transpose()
}

async fn find(tx: &mut Transaction<'_>, digest: &Digest, now: Millis) -> Work<Option<FoundSnapshot>> {
    let (shown, now) = (hex::encode(digest.as_bytes()), number(now.0));
    let digest = digest.as_bytes().as_slice();
    let sql = "SELECT account, chat, line, content FROM snapshots WHERE id = $1 AND expires_at > $2";
    let [_, rows] = parts(tx.finish(&[Ask(SHOWN, &[&shown]), Ask(sql, &[&digest, &now])]).await?)?;
    let row = rows.first().map(|row| {
        Ok(FoundSnapshot {
            account: parsed_at(row, 0, AccountId::parse)?,
            chat: parsed_at(row, 1, ChatId::parse)?,
            line: sealed_at(row, 2)?,
            content: sealed_at(row, 3)?,
        })
    });
    row.transpose()
}

async fn remove(tx: &mut Transaction<'_>, id: &AccountId, digest: &Digest) -> Work<bool> {
    let (id, digest) = (id.as_str(), digest.as_bytes().as_slice());
    let sql = "DELETE FROM snapshots WHERE account = $1 AND id = $2 RETURNING 1";
    let found = tx.finish(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(sql, &[&id, &digest])]).await?;
    let [_, locked, gone] = parts(found)?;
    account(&locked)?;
    Ok(!gone.is_empty())
}
