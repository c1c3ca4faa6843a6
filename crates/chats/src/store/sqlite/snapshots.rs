//! Snapshots as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, Digest, Refused};
use confidant_seal::Sealed;
use rusqlite::{Connection, params};

use super::super::snapshots::{FoundSnapshot, PutSnapshot, SnapshotRow, Snapshots, check_snapshot};
use super::super::{Millis, Result, StoreError, limits};
use super::rows::{account, all, chat, digest_at, millis_at, number, one, parsed_at, run, sealed_at, value};
use super::{SqliteChats, Work};

#[async_trait]
impl Snapshots for SqliteChats {
    async fn put_snapshot(&self, put: PutSnapshot) -> Result<()> {
        check_snapshot(&put)?;
        self.write_with(move |c| keep(c, &put)).await
    }

    async fn snapshots(&self, whose: &AccountId, now: Millis) -> Result<Vec<SnapshotRow>> {
        let whose = whose.clone();
        self.read_with(move |c| {
            let sql = "SELECT chat, id, expires_at, line FROM snapshots
                       WHERE account = ?1 AND expires_at > ?2 ORDER BY id";
            Ok(all(c, sql, params![account(c, &whose)?.n, number(now.0)], |row| {
                Ok(SnapshotRow {
                    chat: parsed_at(row, 0, ChatId::parse)?,
                    id: digest_at(row, 1)?,
                    expires_at: millis_at(row, 2)?,
                    line: sealed_at(row, 3)?,
                })
            })?)
        })
        .await
    }

    async fn snapshot_content(&self, whose: &AccountId, id: Digest) -> Result<Option<Sealed>> {
        let whose = whose.clone();
        self.read_with(move |c| {
            let sql = "SELECT content FROM snapshots WHERE account = ?1 AND id = ?2";
            Ok(one(c, sql, params![account(c, &whose)?.n, id.as_bytes()], |row| sealed_at(row, 0))?)
        })
        .await
    }

    async fn find_snapshot(&self, id: Digest, now: Millis) -> Result<Option<FoundSnapshot>> {
        self.read_with(move |c| {
            let sql = "SELECT a.account, s.chat, s.line, s.content
                       FROM snapshots AS s JOIN accounts AS a ON a.n = s.account
                       WHERE s.id = ?1 AND s.expires_at > ?2";
            Ok(one(c, sql, params![id.as_bytes(), number(now.0)], |row| {
                Ok(FoundSnapshot {
                    account: parsed_at(row, 0, AccountId::parse)?,
                    chat: parsed_at(row, 1, ChatId::parse)?,
                    line: sealed_at(row, 2)?,
                    content: sealed_at(row, 3)?,
                })
            })?)
        })
        .await
    }

    async fn revoke_snapshot(&self, whose: &AccountId, id: Digest) -> Result<bool> {
        let whose = whose.clone();
        self.write_with(move |c| {
            let sql = "DELETE FROM snapshots WHERE account = ?1 AND id = ?2";
            Ok(run(c, sql, params![account(c, &whose)?.n, id.as_bytes()])? > 0)
        })
        .await
    }
}

fn keep(c: &Connection, put: &PutSnapshot) -> Work<()> {
    let n = account(c, &put.account)?.n;
    chat(c, n, &put.chat)?;
    // One that is over makes room.
    let sql = "DELETE FROM snapshots WHERE account = ?1 AND expires_at <= ?2";
    run(c, sql, params![n, number(put.now.0)])?;
    let there: u32 = value(c, "SELECT count(*) FROM snapshots WHERE account = ?1", params![n])?;
    if there >= limits::SNAPSHOTS {
        return Err(StoreError::TooMany("snapshots").into());
    }
    let sql = "INSERT INTO snapshots (id, account, chat, expires_at, line, content)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO NOTHING";
    let (id, chat) = (put.id.as_bytes(), put.chat.as_str());
    let (line, content) = (put.line.as_bytes(), put.content.as_bytes());
    match run(c, sql, params![id, n, chat, number(put.expires_at.0), line, content])? {
        0 => Err(Refused::Duplicate.into()),
        _ => Ok(()),
    }
}
