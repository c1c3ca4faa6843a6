//! Marks as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, TurnId};
use rusqlite::{Connection, params};

use super::super::marks::{ClaimedMark, Hold, MarkRow, Marks, Pause, PutMark, check_mark, in_millis};
use super::super::{Millis, Result, limits};
use super::rows::{account, all, chat, many, millis_at, number, one, parsed_at, run, sealed_at};
use super::{SqliteChats, Work};

#[async_trait]
impl Marks for SqliteChats {
    async fn put_mark(&self, put: PutMark) -> Result<()> {
        check_mark(&put)?;
        self.write_with(move |c| keep(c, &put)).await
    }

    async fn mark(&self, whose: &AccountId, id: &ChatId, turn: &TurnId) -> Result<Option<MarkRow>> {
        let (whose, id, turn) = (whose.clone(), id.clone(), turn.clone());
        self.read_with(move |c| {
            let sql = "SELECT asked_at, look_at, held, sealed FROM marks
                       WHERE account = ?1 AND chat = ?2 AND turn = ?3";
            Ok(one(c, sql, params![account(c, &whose)?.n, id.as_str(), turn.as_str()], |row| {
                let hold = Hold { look_at: millis_at(row, 1)?, held: row.get(2)? };
                Ok(MarkRow { asked_at: millis_at(row, 0)?, hold, sealed: sealed_at(row, 3)? })
            })?)
        })
        .await
    }

    async fn hold_mark(&self, whose: &AccountId, id: &ChatId, turn: &TurnId, hold: Hold) -> Result<bool> {
        let (whose, id, turn) = (whose.clone(), id.clone(), turn.clone());
        self.write_with(move |c| {
            let n = account(c, &whose)?.n;
            let sql =
                "UPDATE marks SET look_at = ?4, held = ?5 WHERE account = ?1 AND chat = ?2 AND turn = ?3";
            let look_at = number(hold.look_at.0);
            Ok(run(c, sql, params![n, id.as_str(), turn.as_str(), look_at, hold.held])? > 0)
        })
        .await
    }

    async fn claim_marks(&self, now: Millis, pause: Pause, most: usize) -> Result<Vec<ClaimedMark>> {
        let (shortest, longest) = (in_millis(pause.shortest), in_millis(pause.longest));
        let (now, most) = (number(now.0), many(most));
        // Nothing is due most of the time: then nothing is written.
        let due = self.read_with(move |c| {
            let sql = "SELECT 1 FROM marks WHERE look_at <= ?1 LIMIT 1";
            Ok(one(c, sql, params![now], |row| row.get::<_, i64>(0))?)
        });
        if due.await?.is_none() {
            return Ok(Vec::new());
        }
        self.write_with(move |c| {
            let sql = "SELECT a.account, m.chat, m.turn, m.asked_at, m.sealed, m.account
                       FROM marks AS m JOIN accounts AS a ON a.n = m.account
                       WHERE m.look_at <= ?1 ORDER BY m.look_at LIMIT ?2";
            let due = all(c, sql, params![now, most], |row| {
                let mark = ClaimedMark {
                    account: parsed_at(row, 0, AccountId::parse)?,
                    chat: parsed_at(row, 1, ChatId::parse)?,
                    turn: parsed_at(row, 2, TurnId::parse)?,
                    asked_at: millis_at(row, 3)?,
                    sealed: sealed_at(row, 4)?,
                };
                Ok((row.get::<_, i64>(5)?, mark))
            })?;
            let sql = "UPDATE marks SET held = 0, look_at = ?4 + max(?5, min(?6, (?4 - asked_at) / 4))
                       WHERE account = ?1 AND chat = ?2 AND turn = ?3";
            for (n, mark) in &due {
                run(c, sql, params![n, mark.chat.as_str(), mark.turn.as_str(), now, shortest, longest])?;
            }
            Ok(due.into_iter().map(|(_, mark)| mark).collect())
        })
        .await
    }

    async fn drop_mark(&self, whose: &AccountId, id: &ChatId, turn: &TurnId) -> Result<bool> {
        let (whose, id, turn) = (whose.clone(), id.clone(), turn.clone());
        self.write_with(move |c| Ok(remove(c, account(c, &whose)?.n, &id, &turn)?)).await
    }
}

/// Removes the mark of a turn; whether there was one.
pub(super) fn remove(c: &Connection, account: i64, chat: &ChatId, turn: &TurnId) -> rusqlite::Result<bool> {
    let sql = "DELETE FROM marks WHERE account = ?1 AND chat = ?2 AND turn = ?3";
    Ok(run(c, sql, params![account, chat.as_str(), turn.as_str()])? > 0)
}

fn keep(c: &Connection, put: &PutMark) -> Work<()> {
    let n = account(c, &put.account)?.n;
    chat(c, n, &put.chat)?;
    let (chat, turn, sealed) = (put.chat.as_str(), put.turn.as_str(), put.sealed.as_bytes());
    let sql = "INSERT INTO marks (account, chat, turn, asked_at, look_at, held, sealed)
               VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6)
               ON CONFLICT (account, chat, turn) DO UPDATE
                   SET look_at = excluded.look_at, held = 1, sealed = excluded.sealed";
    run(c, sql, params![n, chat, turn, number(put.now.0), number(put.look_at.0), sealed])?;
    let sql = "DELETE FROM marks WHERE rowid IN (
                   SELECT rowid FROM marks WHERE account = ?1 ORDER BY asked_at DESC, chat DESC, turn DESC
                   LIMIT -1 OFFSET ?2)";
    run(c, sql, params![n, limits::MARKS])?;
    Ok(())
}
