//! One-use codes, pairing slots and failed logins as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Digest, Refused};
use confidant_seal::{Sealed, Tag};
use rusqlite::{Connection, params};

use super::super::checks::sized;
use super::super::codes::{Code, CodeKind, Codes, Slot};
use super::super::delays::Attempts;
use super::super::{Millis, Result, StoreError, limits};
use super::rows::{account, digest_at, millis_at, number, one, parsed_at, run, sealed_at};
use super::{SqliteChats, Work};

#[async_trait]
impl Codes for SqliteChats {
    async fn issue(&self, code: Code) -> Result<()> {
        self.write_with(
            move |c| {
                if put(c, &code)? { Ok(()) } else { Err(StoreError::Conflict { now: 0 }.into()) }
            },
        )
        .await
    }

    async fn consume(&self, kind: CodeKind, key: Digest, now: Millis) -> Result<Option<Code>> {
        self.write_with(move |c| self::consume(c, kind, key, now)).await
    }

    async fn peek(&self, kind: CodeKind, key: Digest, now: Millis) -> Result<Option<Code>> {
        self.read_with(move |c| Ok(find(c, kind, key)?.filter(|code| now < code.expires_at))).await
    }

    async fn spend(&self, code: Code, now: Millis) -> Result<bool> {
        self.write_with(move |c| {
            let sql = "DELETE FROM codes WHERE kind = ?1 AND key = ?2 AND expires_at <= ?3";
            run(c, sql, params![code.kind as i64, code.key.as_bytes(), number(now.0)])?;
            put(c, &code)
        })
        .await
    }

    async fn open_slot(&self, id: [u8; 16], offer: Vec<u8>, now: Millis) -> Result<()> {
        self.write_with(move |c| {
            sized(&offer, limits::ENTRY_BYTES, "pairing offer")?;
            run(c, "DELETE FROM pairings WHERE id = ?1 AND expires_at <= ?2", params![id, number(now.0)])?;
            let sql =
                "INSERT INTO pairings (id, offer, expires_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
            match run(c, sql, params![id, offer, number(now.plus(limits::PAIRING).0)])? {
                0 => Err(StoreError::Conflict { now: 0 }.into()),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn slot(&self, id: [u8; 16], now: Millis) -> Result<Slot> {
        self.read_with(move |c| {
            let sql =
                "SELECT offer, expires_at FROM pairings WHERE id = ?1 AND expires_at > ?2 AND answer IS NULL";
            let slot = one(c, sql, params![id, number(now.0)], |row| {
                Ok(Slot { offer: row.get(0)?, expires_at: millis_at(row, 1)? })
            })?;
            slot.ok_or(StoreError::NotFound.into())
        })
        .await
    }

    async fn answer_slot(&self, whose: &AccountId, id: [u8; 16], answer: Sealed, now: Millis) -> Result<()> {
        let whose = whose.clone();
        self.write_with(move |c| {
            sized(answer.as_bytes(), limits::ENTRY_BYTES, "pairing answer")?;
            let n = account(c, &whose)?.n;
            let sql = "UPDATE pairings SET account = ?2, answer = ?3 WHERE id = ?1 AND expires_at > ?4 AND answer IS NULL";
            match run(c, sql, params![id, n, answer.as_bytes(), number(now.0)])? {
                0 => Err(Refused::PairRefused.into()),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn take_slot(&self, id: [u8; 16], now: Millis) -> Result<Option<(AccountId, Sealed)>> {
        self.write_with(move |c| {
            let sql =
                "SELECT a.account, p.answer FROM pairings AS p LEFT JOIN accounts AS a ON a.n = p.account
                       WHERE p.id = ?1 AND p.expires_at > ?2";
            let slot =
                one(c, sql, params![id, number(now.0)], |row| match row.get::<_, Option<Vec<u8>>>(1)? {
                    Some(_) => Ok(Some((parsed_at(row, 0, AccountId::parse)?, sealed_at(row, 1)?))),
                    None => Ok(None),
                })?;
            let answer = slot.ok_or(StoreError::NotFound)?;
            if answer.is_some() {
                run(c, "DELETE FROM pairings WHERE id = ?1", params![id])?;
            }
            Ok(answer)
        })
        .await
    }

    async fn attempts(&self, login: Tag, network: Tag, now: Millis) -> Result<Attempts> {
        self.read_with(move |c| Ok(attempts(c, login, network, now)?)).await
    }

    async fn login_failed(&self, login: Tag, network: Tag, now: Millis) -> Result<Attempts> {
        self.write_with(move |c| {
            let attempts = attempts(c, login, network, now)?.failed(now);
            let sql =
                "INSERT OR REPLACE INTO attempts (login, network, failures, last) VALUES (?1, ?2, ?3, ?4)";
            let last = number(attempts.last.0);
            run(c, sql, params![login.as_bytes(), network.as_bytes(), attempts.failures, last])?;
            Ok(attempts)
        })
        .await
    }

    async fn login_succeeded(&self, login: Tag, network: Tag) -> Result<()> {
        self.write_with(move |c| {
            let sql = "DELETE FROM attempts WHERE login = ?1 AND network = ?2";
            run(c, sql, params![login.as_bytes(), network.as_bytes()])?;
            Ok(())
        })
        .await
    }
}

/// Keeps a code; false if it is there already.
fn put(c: &Connection, code: &Code) -> Work<bool> {
    sized(&code.carries, limits::RECORD_BYTES, "code")?;
    let whose = match &code.account {
        Some(whose) => Some(account(c, whose)?.n),
        None => None,
    };
    let sql =
        "INSERT INTO codes (kind, key, account, login, carries, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
               ON CONFLICT DO NOTHING";
    let login = code.login.as_ref().map(Tag::as_bytes);
    let expires = number(code.expires_at.0);
    Ok(run(c, sql, params![code.kind as i64, code.key.as_bytes(), whose, login, code.carries, expires])? > 0)
}

/// Removes a code and gives it, unless it has expired.
pub(super) fn consume(c: &Connection, kind: CodeKind, key: Digest, now: Millis) -> Work<Option<Code>> {
    let code = find(c, kind, key)?;
    run(c, "DELETE FROM codes WHERE kind = ?1 AND key = ?2", params![kind as i64, key.as_bytes()])?;
    Ok(code.filter(|code| now < code.expires_at))
}

fn find(c: &Connection, kind: CodeKind, key: Digest) -> rusqlite::Result<Option<Code>> {
    let sql = "SELECT c.key, a.account, c.login, c.carries, c.expires_at
               FROM codes AS c LEFT JOIN accounts AS a ON a.n = c.account WHERE c.kind = ?1 AND c.key = ?2";
    one(c, sql, params![kind as i64, key.as_bytes()], |row| {
        let account = match row.get_ref(1)? {
            rusqlite::types::ValueRef::Null => None,
            _ => Some(parsed_at(row, 1, AccountId::parse)?),
        };
        Ok(Code {
            kind,
            key: digest_at(row, 0)?,
            account,
            login: row.get::<_, Option<[u8; 16]>>(2)?.map(Tag::from_bytes),
            carries: row.get(3)?,
            expires_at: millis_at(row, 4)?,
        })
    })
}

fn attempts(c: &Connection, login: Tag, network: Tag, now: Millis) -> rusqlite::Result<Attempts> {
    let sql = "SELECT failures, last FROM attempts WHERE login = ?1 AND network = ?2";
    let found = one(c, sql, params![login.as_bytes(), network.as_bytes()], |row| {
        Ok(Attempts { failures: row.get(0)?, last: millis_at(row, 1)? })
    })?;
    Ok(found.filter(|attempts| !attempts.is_forgotten(now)).unwrap_or_default())
}
