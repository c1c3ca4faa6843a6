//! Letters as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, MessageId, TurnId};
use rusqlite::{Connection, Row, params};

use super::super::letters::{Kept, LetterRow, Letters, PutLetter, check_letter, check_more};
use super::super::{Result, StoreError, limits};
use super::rows::{account, chat, millis_at, number, one, parsed_at, run, value};
use super::{SqliteChats, Work, marks};

#[async_trait]
impl Letters for SqliteChats {
    async fn put_letter(&self, put: PutLetter) -> Result<Kept> {
        check_letter(&put)?;
        self.write_with(move |c| keep(c, &put)).await
    }

    async fn put_letter_more(
        &self,
        whose: &AccountId,
        id: &ChatId,
        turn: &TurnId,
        more: Vec<u8>,
    ) -> Result<Kept> {
        check_more(&more)?;
        let (whose, id, turn) = (whose.clone(), id.clone(), turn.clone());
        self.write_with(move |c| add(c, &whose, &id, &turn, &more)).await
    }

    async fn letter(&self, whose: &AccountId, id: &ChatId, turn: &TurnId) -> Result<Option<LetterRow>> {
        let (whose, id, turn) = (whose.clone(), id.clone(), turn.clone());
        self.read_with(move |c| {
            let sql = "SELECT chat, turn, reply, left_at, letter, more FROM letters
                       WHERE account = ?1 AND chat = ?2 AND turn = ?3";
            let n = account(c, &whose)?.n;
            Ok(one(c, sql, params![n, id.as_str(), turn.as_str()], letter_at)?)
        })
        .await
    }

    async fn letters(
        &self,
        whose: &AccountId,
        after: Option<(ChatId, TurnId)>,
        bytes: usize,
    ) -> Result<Vec<LetterRow>> {
        let whose = whose.clone();
        self.read_with(move |c| page(c, &whose, after.as_ref(), bytes)).await
    }

    async fn take_letter(&self, whose: &AccountId, id: &ChatId, turn: &TurnId) -> Result<bool> {
        let (whose, id, turn) = (whose.clone(), id.clone(), turn.clone());
        self.write_with(move |c| {
            let n = account(c, &whose)?.n;
            marks::remove(c, n, &id, &turn)?;
            let sql = "DELETE FROM letters WHERE account = ?1 AND chat = ?2 AND turn = ?3";
            Ok(run(c, sql, params![n, id.as_str(), turn.as_str()])? > 0)
        })
        .await
    }
}

fn keep(c: &Connection, put: &PutLetter) -> Work<Kept> {
    let n = account(c, &put.account)?.n;
    let of = chat(c, n, &put.chat)?.n;
    marks::remove(c, n, &put.chat, &put.turn)?;
    let (chat, turn) = (put.chat.as_str(), put.turn.as_str());
    let sql = "SELECT EXISTS (SELECT 1 FROM letters WHERE account = ?1 AND chat = ?2 AND turn = ?3)
                   OR EXISTS (SELECT 1 FROM items WHERE chat = ?4 AND item = ?5)
                   OR EXISTS (SELECT 1 FROM tombstones WHERE chat = ?4 AND item = ?5)";
    if value(c, sql, params![n, chat, turn, of, put.reply.as_str()])? {
        return Ok(Kept::Before);
    }
    // One place is left for the new one.
    let sql = "DELETE FROM letters WHERE rowid IN (
                   SELECT rowid FROM letters WHERE account = ?1 ORDER BY left_at DESC, chat DESC, turn DESC
                   LIMIT -1 OFFSET ?2)";
    run(c, sql, params![n, limits::LETTERS - 1])?;
    let sql =
        "INSERT INTO letters (account, chat, turn, reply, left_at, letter) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    run(c, sql, params![n, chat, turn, put.reply.as_str(), number(put.now.0), put.letter])?;
    Ok(Kept::Now)
}

fn add(c: &Connection, whose: &AccountId, id: &ChatId, turn: &TurnId, more: &[u8]) -> Work<Kept> {
    let n = account(c, whose)?.n;
    let sql = "SELECT more IS NULL FROM letters WHERE account = ?1 AND chat = ?2 AND turn = ?3";
    let is_open = one(c, sql, params![n, id.as_str(), turn.as_str()], |row| row.get::<_, bool>(0))?;
    if !is_open.ok_or(StoreError::NotFound)? {
        return Ok(Kept::Before);
    }
    let sql = "UPDATE letters SET more = ?4 WHERE account = ?1 AND chat = ?2 AND turn = ?3";
    run(c, sql, params![n, id.as_str(), turn.as_str(), more])?;
    Ok(Kept::Now)
}

fn page(
    c: &Connection,
    whose: &AccountId,
    after: Option<&(ChatId, TurnId)>,
    bytes: usize,
) -> Work<Vec<LetterRow>> {
    let n = account(c, whose)?.n;
    let (chat, turn) = after.map_or(("", ""), |(chat, turn)| (chat.as_str(), turn.as_str()));
    let sql = "SELECT chat, turn, reply, left_at, letter, more FROM letters
               WHERE account = ?1 AND (chat, turn) > (?2, ?3) ORDER BY chat, turn";
    let mut letters = c.prepare_cached(sql)?;
    let (mut rows, mut left) = (Vec::new(), bytes);
    // Row by row: only those that fit are read.
    for row in letters.query_map(params![n, chat, turn], letter_at)? {
        let row = row?;
        match left.checked_sub(row.letter.len() + row.more.as_ref().map_or(0, Vec::len)) {
            Some(rest) => left = rest,
            None if rows.is_empty() => left = 0,
            None => break,
        }
        rows.push(row);
    }
    Ok(rows)
}

fn letter_at(row: &Row<'_>) -> rusqlite::Result<LetterRow> {
    Ok(LetterRow {
        chat: parsed_at(row, 0, ChatId::parse)?,
        turn: parsed_at(row, 1, TurnId::parse)?,
        reply: parsed_at(row, 2, MessageId::parse)?,
        left_at: millis_at(row, 3)?,
        letter: row.get(4)?,
        more: row.get(5)?,
    })
}
