//! Marks as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, TurnId};
use confidant_postgres::{Ask, Transaction};

use super::super::marks::{ClaimedMark, Hold, MarkRow, Marks, Pause, PutMark, check_mark, in_millis};
use super::super::{Millis, Result, limits};
use super::rows::{
    ACCOUNT, LOCK, account, all, get, many, millis_at, number, parsed_at, parts, sealed_at, whose,
};
use super::write::{CHAT, there};
use super::{PostgresChats, Work, transact};

/// The mark of a turn goes.
pub(super) const DROP: &str = "DELETE FROM marks WHERE account = $1 AND chat = $2 AND turn = $3 RETURNING 1";
const PUT: &str = "INSERT INTO marks (account, chat, turn, asked_at, look_at, held, sealed)
    VALUES ($1, $2, $3, $4, $5, true, $6)
    ON CONFLICT (account, chat, turn) DO UPDATE
        SET look_at = excluded.look_at, held = true, sealed = excluded.sealed";
/// The oldest, but for so many.
const EVICT: &str = "DELETE FROM marks WHERE account = $1 AND (chat, turn) IN (
    SELECT chat, turn FROM marks WHERE account = $1 ORDER BY asked_at DESC, chat DESC, turn DESC OFFSET $2)";

#[async_trait]
impl Marks for PostgresChats {
    async fn put_mark(&self, put: PutMark) -> Result<()> {
        check_mark(&put)?;
        transact!(self, Writing, |tx| keep(tx, &put))
    }

    async fn mark(&self, id: &AccountId, chat: &ChatId, turn: &TurnId) -> Result<Option<MarkRow>> {
        transact!(self, Reading, |tx| read(tx, id, chat, turn))
    }

    async fn hold_mark(&self, id: &AccountId, chat: &ChatId, turn: &TurnId, hold: Hold) -> Result<bool> {
        transact!(self, Writing, |tx| occupy(tx, id, chat, turn, hold))
    }

    async fn claim_marks(&self, now: Millis, pause: Pause, most: usize) -> Result<Vec<ClaimedMark>> {
        transact!(self, Writing, |tx| claim(tx, now, pause, most))
    }

    async fn drop_mark(&self, id: &AccountId, chat: &ChatId, turn: &TurnId) -> Result<bool> {
        transact!(self, Writing, |tx| remove(tx, id, chat, turn))
    }
}

async fn keep(tx: &mut Transaction<'_>, put: &PutMark) -> Work<()> {
    let (id, chat, turn) = (put.account.as_str(), put.chat.as_str(), put.turn.as_str());
    let found = tx.run(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(CHAT, &[&id, &chat])]).await?;
    let [_, locked, chats] = parts(found)?;
    account(&locked)?;
    there(&chats)?;
    let (now, look_at, sealed) = (number(put.now.0), number(put.look_at.0), put.sealed.as_bytes());
    let most = i64::from(limits::MARKS);
    tx.finish(&[Ask(PUT, &[&id, &chat, &turn, &now, &look_at, &sealed]), Ask(EVICT, &[&id, &most])]).await?;
    Ok(())
}

async fn read(
    tx: &mut Transaction<'_>,
    id: &AccountId,
    chat: &ChatId,
    turn: &TurnId,
) -> Work<Option<MarkRow>> {
    let (id, chat, turn) = (id.as_str(), chat.as_str(), turn.as_str());
    let sql = "SELECT asked_at, look_at, held, sealed FROM marks
               WHERE account = $1 AND chat = $2 AND turn = $3";
    let found = tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(sql, &[&id, &chat, &turn])]).await?;
    let [_, whose, marks] = parts(found)?;
    account(&whose)?;
    let row = marks.first().map(|row| {
        let hold = Hold { look_at: millis_at(row, 1)?, held: get(row, 2)? };
        Ok(MarkRow { asked_at: millis_at(row, 0)?, hold, sealed: sealed_at(row, 3)? })
    });
    row.transpose()
}

async fn occupy(
    tx: &mut Transaction<'_>,
    id: &AccountId,
    chat: &ChatId,
    turn: &TurnId,
    hold: Hold,
) -> Work<bool> {
    let (id, chat, turn) = (id.as_str(), chat.as_str(), turn.as_str());
    let sql = "UPDATE marks SET look_at = $4, held = $5 WHERE account = $1 AND chat = $2 AND turn = $3
               RETURNING 1";
    let look_at = number(hold.look_at.0);
    let found = tx
        .finish(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(sql, &[&id, &chat, &turn, &look_at, &hold.held])])
        .await?;
    let [_, locked, held] = parts(found)?;
    account(&locked)?;
    Ok(!held.is_empty())
}

async fn claim(tx: &mut Transaction<'_>, now: Millis, pause: Pause, most: usize) -> Work<Vec<ClaimedMark>> {
    let (shortest, longest) = (in_millis(pause.shortest), in_millis(pause.longest));
    let (now, most) = (number(now.0), many(most));
    let sql = "SELECT account, chat, turn, asked_at, sealed FROM claim_marks($1, $2, $3, $4)";
    let [due] = parts(tx.finish(&[Ask(sql, &[&now, &shortest, &longest, &most])]).await?)?;
    all(&due, |row| {
        Ok(ClaimedMark {
            account: parsed_at(row, 0, AccountId::parse)?,
            chat: parsed_at(row, 1, ChatId::parse)?,
            turn: parsed_at(row, 2, TurnId::parse)?,
            asked_at: millis_at(row, 3)?,
            sealed: sealed_at(row, 4)?,
        })
    })
}

async fn remove(tx: &mut Transaction<'_>, id: &AccountId, chat: &ChatId, turn: &TurnId) -> Work<bool> {
    let (id, chat, turn) = (id.as_str(), chat.as_str(), turn.as_str());
    let found = tx.finish(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(DROP, &[&id, &chat, &turn])]).await?;
    let [_, locked, gone] = parts(found)?;
    account(&locked)?;
    Ok(!gone.is_empty())
}
