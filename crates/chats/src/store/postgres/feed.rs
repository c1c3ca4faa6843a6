//! The change feed as rows, and chats in the order in which a device loads them.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId};
use confidant_postgres::{Ask, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::feed::{Change, Changes, ChatLine, Feed, Phase, RECENT, REST};
use super::super::names::change_of;
use super::super::{Result, StoreError, limits};
use super::rows::{
    ACCOUNT, LOCK, account, all, damaged, get, many, millis_at, number, parsed_at, parts, u32_at, u64_at,
    whose,
};
use super::{PostgresChats, Work, transact};

#[async_trait]
impl Feed for PostgresChats {
    async fn changes(&self, id: &AccountId, since: u64, limit: usize) -> Result<Changes> {
        transact!(self, Reading, |tx| changes(tx, id, since, limit))
    }

    async fn lines(&self, id: &AccountId, phase: Phase) -> Result<Vec<ChatLine>> {
        transact!(self, Reading, |tx| lines(tx, id, &phase))
    }

    async fn trim_feed(&self, id: &AccountId, until: u64) -> Result<u64> {
        transact!(self, Writing, |tx| trim(tx, id, until))
    }
}

async fn changes(tx: &mut Transaction<'_>, id: &AccountId, since: u64, limit: usize) -> Work<Changes> {
    let (id, from, limit) = (id.as_str(), number(since), many(limit.min(limits::PAGE)));
    let found = tx
        .finish(&[
            whose(&[&id]),
            Ask("SELECT seq, dropped FROM accounts WHERE account = $1", &[&id]),
            Ask(
                "SELECT seq, what, name FROM feed WHERE account = $1 AND seq > $2 ORDER BY seq LIMIT $3",
                &[&id, &from, &limit],
            ),
        ])
        .await?;
    let [_, there, rows] = parts(found)?;
    let row = there.first().ok_or(StoreError::NotFound)?;
    let (newest, dropped) = (u64_at(row, 0)?, u64_at(row, 1)?);
    // A device that knows more than there is has seen a state that was lost since: it loads everything anew, too.
    if since < dropped || since > newest {
        return Ok(Changes { newest, is_behind: true, changes: Vec::new() });
    }
    let changes = all(&rows, |row| {
        let what = change_of(get(row, 1)?, get(row, 2)?).ok_or_else(damaged)?;
        Ok(Change { seq: u64_at(row, 0)?, what })
    })?;
    Ok(Changes { newest, is_behind: false, changes })
}

async fn lines(tx: &mut Transaction<'_>, id: &AccountId, phase: &Phase) -> Work<Vec<ChatLine>> {
    let id = id.as_str();
    let (recent, rest) = ((RECENT, 0_i64), (REST - RECENT, RECENT));
    let older = match phase {
        Phase::Older(at, chat, limit) => (number(at.0), chat.as_str(), many((*limit).min(limits::PAGE))),
        _ => (0, "", 0),
    };
    let args: (&'static str, Vec<&(dyn ToSql + Sync)>) = match phase {
        Phase::LastOpened => (LAST_OPENED, vec![&id]),
        Phase::Recent => (BY_TIME, vec![&id, &recent.0, &recent.1]),
        Phase::Rest => (BY_TIME, vec![&id, &rest.0, &rest.1]),
        Phase::Older(..) => (OLDER, vec![&id, &older.0, &older.1, &older.2]),
    };
    let found = tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(args.0, &args.1)]).await?;
    let [_, there, rows] = parts(found)?;
    account(&there)?;
    all(&rows, line)
}

fn line(row: &Row) -> Work<ChatLine> {
    Ok(ChatLine {
        chat: parsed_at(row, 0, ChatId::parse)?,
        messages_v: u32_at(row, 1)?,
        title_v: u32_at(row, 2)?,
        draft_v: u32_at(row, 3)?,
        updated_at: millis_at(row, 4)?,
    })
}

async fn trim(tx: &mut Transaction<'_>, id: &AccountId, until: u64) -> Work<u64> {
    let (id, until) = (id.as_str(), number(until));
    let found = tx
        .finish(&[
            whose(&[&id]),
            Ask(LOCK, &[&id]),
            Ask("DELETE FROM feed WHERE account = $1 AND seq <= $2 RETURNING 1", &[&id, &until]),
            Ask(
                "UPDATE accounts SET dropped = greatest(dropped, least(seq, $2)) WHERE account = $1",
                &[&id, &until],
            ),
        ])
        .await?;
    let [_, there, gone, _] = parts(found)?;
    account(&there)?;
    Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
}

const LAST_OPENED: &str = "SELECT chat, rev, title_v, draft_v, updated_at FROM chats WHERE account = $1
    ORDER BY opened_at DESC, chat DESC LIMIT 1";
const BY_TIME: &str = "SELECT chat, rev, title_v, draft_v, updated_at FROM chats WHERE account = $1
    ORDER BY updated_at DESC, chat DESC LIMIT $2 OFFSET $3";
const OLDER: &str = "SELECT chat, rev, title_v, draft_v, updated_at FROM chats
    WHERE account = $1 AND (updated_at, chat) < ($2, $3) ORDER BY updated_at DESC, chat DESC LIMIT $4";
