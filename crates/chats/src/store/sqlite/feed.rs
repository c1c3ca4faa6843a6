//! The change feed as rows, and chats in the order in which a device loads them.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId};
use rusqlite::params;

use super::super::feed::{Change, Changes, ChatLine, Feed, Phase, RECENT, REST};
use super::super::{Result, limits};
use super::SqliteChats;
use super::rows::{account, all, changed_at, many, millis_at, number, one, parsed_at, run, u64_at};

#[async_trait]
impl Feed for SqliteChats {
    async fn changes(&self, whose: &AccountId, since: u64, limit: usize) -> Result<Changes> {
        let whose = whose.clone();
        self.read_with(move |c| {
            let n = account(c, &whose)?.n;
            let sql = "SELECT seq, dropped FROM accounts WHERE n = ?1";
            let read = one(c, sql, params![n], |row| Ok((u64_at(row, 0)?, u64_at(row, 1)?)))?;
            let (newest, dropped) = read.unwrap_or_default();
            // A device that knows more than there is has seen a state that was lost since: it loads everything anew, too.
            if since < dropped || since > newest {
                return Ok(Changes { newest, is_behind: true, changes: Vec::new() });
            }
            let sql =
                "SELECT seq, what, name FROM feed WHERE account = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
            let changes = all(c, sql, params![n, number(since), many(limit.min(limits::PAGE))], |row| {
                Ok(Change { seq: u64_at(row, 0)?, what: changed_at(row, 1, 2)? })
            })?;
            Ok(Changes { newest, is_behind: false, changes })
        })
        .await
    }

    async fn lines(&self, whose: &AccountId, phase: Phase) -> Result<Vec<ChatLine>> {
        let whose = whose.clone();
        self.read_with(move |c| {
            let n = account(c, &whose)?.n;
            let line = |row: &rusqlite::Row<'_>| {
                Ok(ChatLine {
                    chat: parsed_at(row, 0, ChatId::parse)?,
                    messages_v: row.get(1)?,
                    title_v: row.get(2)?,
                    draft_v: row.get(3)?,
                    updated_at: millis_at(row, 4)?,
                })
            };
            let lines = match phase {
                Phase::LastOpened => {
                    let sql = "SELECT chat, rev, title_v, draft_v, updated_at FROM chats WHERE account = ?1
                               ORDER BY opened_at DESC, chat DESC LIMIT 1";
                    all(c, sql, params![n], line)?
                }
                Phase::Recent => all(c, BY_TIME, params![n, RECENT, 0], line)?,
                Phase::Rest => all(c, BY_TIME, params![n, REST - RECENT, RECENT], line)?,
                Phase::Older(at, chat, limit) => {
                    let sql = "SELECT chat, rev, title_v, draft_v, updated_at FROM chats
                               WHERE account = ?1 AND (updated_at, chat) < (?2, ?3)
                               ORDER BY updated_at DESC, chat DESC LIMIT ?4";
                    let limit = many(limit.min(limits::PAGE));
                    all(c, sql, params![n, number(at.0), chat.as_str(), limit], line)?
                }
            };
            Ok(lines)
        })
        .await
    }

    async fn trim_feed(&self, whose: &AccountId, until: u64) -> Result<u64> {
        let whose = whose.clone();
        self.write_with(move |c| {
            let n = account(c, &whose)?.n;
            let gone =
                run(c, "DELETE FROM feed WHERE account = ?1 AND seq <= ?2", params![n, number(until)])?;
            let sql = "UPDATE accounts SET dropped = max(dropped, min(seq, ?2)) WHERE n = ?1";
            run(c, sql, params![n, number(until)])?;
            Ok(u64::try_from(gone).unwrap_or(u64::MAX))
        })
        .await
    }
}

const BY_TIME: &str = "SELECT chat, rev, title_v, draft_v, updated_at FROM chats WHERE account = ?1
                       ORDER BY updated_at DESC, chat DESC LIMIT ?2 OFFSET ?3";
