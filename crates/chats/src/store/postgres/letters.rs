//! Letters as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, MessageId, TurnId};
use confidant_postgres::{Ask, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::letters::{Kept, LetterRow, Letters, PutLetter, check_letter, check_more};
use super::super::{Result, StoreError, limits};
use super::marks::DROP;
use super::rows::{ACCOUNT, LOCK, account, all, get, many, millis_at, number, parsed_at, parts, whose};
use super::write::{CHAT, there};
use super::{PostgresChats, Work, transact};

const IS_THERE: &str = "SELECT more IS NULL FROM letters WHERE account = $1 AND chat = $2 AND turn = $3";
/// The reply, if it was stored, also if it was deleted since.
const STORED: &str = "SELECT 1 FROM chats AS c WHERE c.account = $1 AND c.chat = $2
    AND (EXISTS (SELECT 1 FROM items AS i WHERE i.chat = c.n AND i.item = $3)
        OR EXISTS (SELECT 1 FROM tombstones AS t WHERE t.chat = c.n AND t.item = $3))";
/// The oldest, but for so many.
const EVICT: &str = "DELETE FROM letters WHERE account = $1 AND (chat, turn) IN (
    SELECT chat, turn FROM letters WHERE account = $1 ORDER BY left_at DESC, chat DESC, turn DESC OFFSET $2)";
const PUT: &str =
    "INSERT INTO letters (account, chat, turn, reply, left_at, letter) VALUES ($1, $2, $3, $4, $5, $6)";
const ONE: &str = "SELECT chat, turn, reply, left_at, letter, more FROM letters
    WHERE account = $1 AND chat = $2 AND turn = $3";
/// Lengths are added up beside the letters, so that only those that fit are read.
const FITTING: &str = "WITH waiting AS (
    SELECT chat, turn, row_number() OVER (ORDER BY chat, turn) AS at,
        sum(length(letter) + coalesce(length(more), 0)) OVER (ORDER BY chat, turn) AS total
    FROM letters WHERE account = $1 AND (chat, turn) > ($2, $3)
) SELECT l.chat, l.turn, l.reply, l.left_at, l.letter, l.more
    FROM waiting AS w JOIN letters AS l ON l.account = $1 AND l.chat = w.chat AND l.turn = w.turn
    WHERE w.total <= $4::bigint OR w.at = 1 ORDER BY l.chat, l.turn";

#[async_trait]
impl Letters for PostgresChats {
    async fn put_letter(&self, put: PutLetter) -> Result<Kept> {
        check_letter(&put)?;
        transact!(self, Writing, |tx| keep(tx, &put))
    }

    async fn put_letter_more(
        &self,
        id: &AccountId,
        chat: &ChatId,
        turn: &TurnId,
        more: Vec<u8>,
    ) -> Result<Kept> {
        check_more(&more)?;
        transact!(self, Writing, |tx| add(tx, id, chat, turn, &more))
    }

    async fn letter(&self, id: &AccountId, chat: &ChatId, turn: &TurnId) -> Result<Option<LetterRow>> {
        transact!(self, Reading, |tx| read(tx, id, chat, turn))
    }

    async fn letters(
        &self,
        id: &AccountId,
        after: Option<(ChatId, TurnId)>,
        bytes: usize,
    ) -> Result<Vec<LetterRow>> {
        transact!(self, Reading, |tx| page(tx, id, after.as_ref(), bytes))
    }

    async fn take_letter(&self, id: &AccountId, chat: &ChatId, turn: &TurnId) -> Result<bool> {
        transact!(self, Writing, |tx| take(tx, id, chat, turn))
    }
}

async fn keep(tx: &mut Transaction<'_>, put: &PutLetter) -> Work<Kept> {
    let (id, chat, turn) = (put.account.as_str(), put.chat.as_str(), put.turn.as_str());
    let reply = put.reply.as_str();
    let found = tx
        .run(&[
            whose(&[&id]),
            Ask(LOCK, &[&id]),
            Ask(CHAT, &[&id, &chat]),
            Ask(IS_THERE, &[&id, &chat, &turn]),
            Ask(STORED, &[&id, &chat, &reply]),
        ])
        .await?;
    let [_, locked, chats, letters, stored] = parts(found)?;
    account(&locked)?;
    there(&chats)?;
    let (now, letter) = (number(put.now.0), put.letter.as_slice());
    // One place is left for the new one.
    let others = i64::from(limits::LETTERS) - 1;
    let evict: [&(dyn ToSql + Sync); 2] = [&id, &others];
    let row: [&(dyn ToSql + Sync); 6] = [&id, &chat, &turn, &reply, &now, &letter];
    let is_new = letters.is_empty() && stored.is_empty();
    let mark: [&(dyn ToSql + Sync); 3] = [&id, &chat, &turn];
    let asks: &[Ask<'_>] =
        if is_new { &[Ask(EVICT, &evict), Ask(PUT, &row), Ask(DROP, &mark)] } else { &[Ask(DROP, &mark)] };
    tx.finish(asks).await?;
    Ok(if is_new { Kept::Now } else { Kept::Before })
}

async fn add(
    tx: &mut Transaction<'_>,
    id: &AccountId,
    chat: &ChatId,
    turn: &TurnId,
    more: &[u8],
) -> Work<Kept> {
    let (id, chat, turn) = (id.as_str(), chat.as_str(), turn.as_str());
    let found = tx.run(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(IS_THERE, &[&id, &chat, &turn])]).await?;
    let [_, locked, letters] = parts(found)?;
    account(&locked)?;
    let is_open: bool = get(letters.first().ok_or(StoreError::NotFound)?, 0)?;
    let sql = "UPDATE letters SET more = $4 WHERE account = $1 AND chat = $2 AND turn = $3 AND more IS NULL";
    tx.finish(&[Ask(sql, &[&id, &chat, &turn, &more])]).await?;
    Ok(if is_open { Kept::Now } else { Kept::Before })
}

async fn read(
    tx: &mut Transaction<'_>,
    id: &AccountId,
    chat: &ChatId,
    turn: &TurnId,
) -> Work<Option<LetterRow>> {
    let (id, chat, turn) = (id.as_str(), chat.as_str(), turn.as_str());
    let found = tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(ONE, &[&id, &chat, &turn])]).await?;
    let [_, whose, letters] = parts(found)?;
    account(&whose)?;
    letters.first().map(letter_at).transpose()
}

async fn page(
    tx: &mut Transaction<'_>,
    id: &AccountId,
    after: Option<&(ChatId, TurnId)>,
    bytes: usize,
) -> Work<Vec<LetterRow>> {
    let (id, bytes) = (id.as_str(), many(bytes));
    let (chat, turn) = after.map_or(("", ""), |(chat, turn)| (chat.as_str(), turn.as_str()));
    let found =
        tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(FITTING, &[&id, &chat, &turn, &bytes])]).await?;
    let [_, whose, letters] = parts(found)?;
    account(&whose)?;
    all(&letters, letter_at)
}

async fn take(tx: &mut Transaction<'_>, id: &AccountId, chat: &ChatId, turn: &TurnId) -> Work<bool> {
    let (id, chat, turn) = (id.as_str(), chat.as_str(), turn.as_str());
    let sql = "DELETE FROM letters WHERE account = $1 AND chat = $2 AND turn = $3 RETURNING 1";
    let of: [&(dyn ToSql + Sync); 3] = [&id, &chat, &turn];
    let found = tx.finish(&[whose(&[&id]), Ask(LOCK, &[&id]), Ask(sql, &of), Ask(DROP, &of)]).await?;
    let [_, locked, taken, _] = parts(found)?;
    account(&locked)?;
    Ok(!taken.is_empty())
}

fn letter_at(row: &Row) -> Work<LetterRow> {
    Ok(LetterRow {
        chat: parsed_at(row, 0, ChatId::parse)?,
        turn: parsed_at(row, 1, TurnId::parse)?,
        reply: parsed_at(row, 2, MessageId::parse)?,
        left_at: millis_at(row, 3)?,
        letter: get(row, 4)?,
        more: get(row, 5)?,
    })
}
