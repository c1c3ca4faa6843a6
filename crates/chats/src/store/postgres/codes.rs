//! One-use codes, pairing slots and failed logins as rows. All are found by what the caller shows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Digest, Refused};
use confidant_postgres::{Ask, Failed, Transaction};
use confidant_seal::{Sealed, Tag};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::checks::sized;
use super::super::codes::{Code, CodeKind, Codes, Slot};
use super::super::delays::Attempts;
use super::super::{Millis, Result, StoreError, limits};
use super::rows::{
    SHOWN, damaged, digest_at, get, millis_at, number, parsed_at, parts, sealed_at, u32_at, whose,
};
use super::{Halt, PostgresChats, Work, transact};

/// Removes a code and gives it. Of several who ask at once, one gets it.
pub(super) const CONSUME: &str =
    "DELETE FROM codes WHERE kind = $1 AND key = $2 RETURNING key, account, login, carries, expires_at";
const PUT: &str =
    "INSERT INTO codes (kind, key, account, login, carries, expires_at) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT DO NOTHING RETURNING 1";
const ATTEMPTS: &str = "SELECT failures, last FROM attempts WHERE login = $1 AND network = $2";

#[async_trait]
impl Codes for PostgresChats {
    async fn issue(&self, code: Code) -> Result<()> {
        let is_new = transact!(self, Writing, |tx| put(tx, &code, None))?;
        if is_new { Ok(()) } else { Err(StoreError::Conflict { now: 0 }) }
    }

    async fn consume(&self, kind: CodeKind, key: Digest, now: Millis) -> Result<Option<Code>> {
        transact!(self, Writing, |tx| consume(tx, kind, key, now))
    }

    async fn peek(&self, kind: CodeKind, key: Digest, now: Millis) -> Result<Option<Code>> {
        transact!(self, Reading, |tx| peek(tx, kind, key, now))
    }

    async fn spend(&self, code: Code, now: Millis) -> Result<bool> {
        transact!(self, Writing, |tx| put(tx, &code, Some(now)))
    }

    async fn open_slot(&self, id: [u8; 16], offer: Vec<u8>, now: Millis) -> Result<()> {
        transact!(self, Writing, |tx| open_slot(tx, &id, &offer, now))
    }

    async fn slot(&self, id: [u8; 16], now: Millis) -> Result<Slot> {
        transact!(self, Reading, |tx| slot(tx, &id, now))
    }

    async fn answer_slot(&self, whose: &AccountId, id: [u8; 16], answer: Sealed, now: Millis) -> Result<()> {
        transact!(self, Writing, |tx| answer_slot(tx, whose, &id, &answer, now))
    }

    async fn take_slot(&self, id: [u8; 16], now: Millis) -> Result<Option<(AccountId, Sealed)>> {
        transact!(self, Writing, |tx| take_slot(tx, &id, now))
    }

    async fn attempts(&self, login: Tag, network: Tag, now: Millis) -> Result<Attempts> {
        transact!(self, Reading, |tx| read_attempts(tx, login, network, now))
    }

    async fn login_failed(&self, login: Tag, network: Tag, now: Millis) -> Result<Attempts> {
        transact!(self, Writing, |tx| login_failed(tx, login, network, now))
    }

    async fn login_succeeded(&self, login: Tag, network: Tag) -> Result<()> {
        transact!(self, Writing, |tx| login_succeeded(tx, login, network))
    }
}

/// Keeps a code; false if it is there already. One that has expired by `forget` is not.
async fn put(tx: &mut Transaction<'_>, code: &Code, forget: Option<Millis>) -> Work<bool> {
    sized(&code.carries, limits::RECORD_BYTES, "code")?;
    let (shown, kind, key) =
        (hex::encode(code.key.as_bytes()), code.kind as i64, code.key.as_bytes().as_slice());
    let (account, login) =
        (code.account.as_ref().map(AccountId::as_str), code.login.as_ref().map(Tag::as_bytes));
    let (login, expires) = (login.map(<[u8; 16]>::as_slice), number(code.expires_at.0));
    let forget = forget.map(|now| number(now.0));
    let row: [&(dyn ToSql + Sync); 6] = [&kind, &key, &account, &login, &code.carries, &expires];
    let done = tx
        .finish(&[
            Ask(SHOWN, &[&shown]),
            Ask(
                "DELETE FROM codes WHERE kind = $1 AND key = $2 AND expires_at <= $3",
                &[&kind, &key, &forget],
            ),
            Ask(PUT, &row),
        ])
        .await;
    let [_, _, made] = parts(done.map_err(orphan)?)?;
    Ok(!made.is_empty())
}

/// What refers to an account that is not there.
fn orphan(failed: Failed) -> Halt {
    if failed.is_orphan() { StoreError::NotFound.into() } else { failed.into() }
}

async fn consume(tx: &mut Transaction<'_>, kind: CodeKind, key: Digest, now: Millis) -> Work<Option<Code>> {
    let (shown, number, key) = (hex::encode(key.as_bytes()), kind as i64, key.as_bytes().as_slice());
    let [_, found] = parts(tx.finish(&[Ask(SHOWN, &[&shown]), Ask(CONSUME, &[&number, &key])]).await?)?;
    let code = found.first().map(|row| code_at(row, kind)).transpose()?;
    Ok(code.filter(|code| now < code.expires_at))
}

async fn peek(tx: &mut Transaction<'_>, kind: CodeKind, key: Digest, now: Millis) -> Work<Option<Code>> {
    let (shown, number, key) = (hex::encode(key.as_bytes()), kind as i64, key.as_bytes().as_slice());
    let sql = "SELECT key, account, login, carries, expires_at FROM codes WHERE kind = $1 AND key = $2";
    let [_, found] = parts(tx.finish(&[Ask(SHOWN, &[&shown]), Ask(sql, &[&number, &key])]).await?)?;
    let code = found.first().map(|row| code_at(row, kind)).transpose()?;
    Ok(code.filter(|code| now < code.expires_at))
}

/// What [`CONSUME`] gave.
pub(super) fn code_at(row: &Row, kind: CodeKind) -> Work<Code> {
    let account = match get::<Option<&str>>(row, 1)? {
        Some(text) => Some(AccountId::parse(text).map_err(|_| damaged())?),
        None => None,
    };
    let login = match get::<Option<&[u8]>>(row, 2)? {
        Some(bytes) => Some(Tag::from_bytes(bytes.try_into().map_err(|_| damaged())?)),
        None => None,
    };
    Ok(Code {
        kind,
        key: digest_at(row, 0)?,
        account,
        login,
        carries: get(row, 3)?,
        expires_at: millis_at(row, 4)?,
    })
}

async fn open_slot(tx: &mut Transaction<'_>, id: &[u8], offer: &[u8], now: Millis) -> Work<()> {
    sized(offer, limits::ENTRY_BYTES, "pairing offer")?;
    let (shown, until, now) = (hex::encode(id), number(now.plus(limits::PAIRING).0), number(now.0));
    let sql =
        "INSERT INTO pairings (id, offer, expires_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING 1";
    let found = tx
        .finish(&[
            Ask(SHOWN, &[&shown]),
            Ask("DELETE FROM pairings WHERE id = $1 AND expires_at <= $2", &[&id, &now]),
            Ask(sql, &[&id, &offer, &until]),
        ])
        .await?;
    let [_, _, made] = parts(found)?;
    if made.is_empty() { Err(StoreError::Conflict { now: 0 }.into()) } else { Ok(()) }
}

async fn slot(tx: &mut Transaction<'_>, id: &[u8], now: Millis) -> Work<Slot> {
    let (shown, now) = (hex::encode(id), number(now.0));
    let sql = "SELECT offer, expires_at FROM pairings WHERE id = $1 AND expires_at > $2 AND answer IS NULL";
    let [_, found] = parts(tx.finish(&[Ask(SHOWN, &[&shown]), Ask(sql, &[&id, &now])]).await?)?;
    let row = found.first().ok_or(StoreError::NotFound)?;
    Ok(Slot { offer: get(row, 0)?, expires_at: millis_at(row, 1)? })
}

async fn answer_slot(
    tx: &mut Transaction<'_>,
    account: &AccountId,
    id: &[u8],
    answer: &Sealed,
    now: Millis,
) -> Work<()> {
    sized(answer.as_bytes(), limits::ENTRY_BYTES, "pairing answer")?;
    let (account, shown, answer, now) = (account.as_str(), hex::encode(id), answer.as_bytes(), number(now.0));
    let sql =
        "UPDATE pairings SET account = $2, answer = $3 WHERE id = $1 AND expires_at > $4 AND answer IS NULL
               RETURNING 1";
    let done = tx
        .finish(&[
            whose(&[&account]),
            Ask("SELECT 1 FROM accounts WHERE account = $1", &[&account]),
            Ask(SHOWN, &[&shown]),
            Ask(sql, &[&id, &account, &answer, &now]),
        ])
        .await;
    let [_, there, _, answered] = parts(done.map_err(orphan)?)?;
    match (there.is_empty(), answered.is_empty()) {
        (true, _) => Err(StoreError::NotFound.into()),
        (false, true) => Err(Refused::PairRefused.into()),
        (false, false) => Ok(()),
    }
}

async fn take_slot(tx: &mut Transaction<'_>, id: &[u8], now: Millis) -> Work<Option<(AccountId, Sealed)>> {
    let (shown, now) = (hex::encode(id), number(now.0));
    let found = tx
        .finish(&[
            Ask(SHOWN, &[&shown]),
            Ask(
                "DELETE FROM pairings WHERE id = $1 AND expires_at > $2 AND answer IS NOT NULL RETURNING account, answer",
                &[&id, &now],
            ),
            Ask("SELECT 1 FROM pairings WHERE id = $1 AND expires_at > $2", &[&id, &now]),
        ])
        .await?;
    let [_, taken, open] = parts(found)?;
    match taken.first() {
        Some(row) => Ok(Some((parsed_at(row, 0, AccountId::parse)?, sealed_at(row, 1)?))),
        None if open.is_empty() => Err(StoreError::NotFound.into()),
        None => Ok(None),
    }
}

fn attempts(rows: &[Row], now: Millis) -> Work<Attempts> {
    let Some(row) = rows.first() else { return Ok(Attempts::default()) };
    let attempts = Attempts { failures: u32_at(row, 0)?, last: millis_at(row, 1)? };
    Ok(if attempts.is_forgotten(now) { Attempts::default() } else { attempts })
}

async fn read_attempts(tx: &mut Transaction<'_>, login: Tag, network: Tag, now: Millis) -> Work<Attempts> {
    let (shown, login, network) =
        (hex::encode(login.as_bytes()), login.as_bytes().as_slice(), network.as_bytes().as_slice());
    let [_, found] = parts(tx.finish(&[Ask(SHOWN, &[&shown]), Ask(ATTEMPTS, &[&login, &network])]).await?)?;
    attempts(&found, now)
}

async fn login_failed(tx: &mut Transaction<'_>, login: Tag, network: Tag, now: Millis) -> Work<Attempts> {
    let (shown, login, network) =
        (hex::encode(login.as_bytes()), login.as_bytes().as_slice(), network.as_bytes().as_slice());
    // A row without failures, for others to wait for: none that was there before counts any more.
    let found = tx
        .run(&[
            Ask(SHOWN, &[&shown]),
            Ask(
                "INSERT INTO attempts (login, network, failures, last) VALUES ($1, $2, 0, 0) ON CONFLICT DO NOTHING",
                &[&login, &network],
            ),
            Ask(
                "SELECT failures, last FROM attempts WHERE login = $1 AND network = $2 FOR UPDATE",
                &[&login, &network],
            ),
        ])
        .await?;
    let [_, _, found] = parts(found)?;
    let attempts = attempts(&found, now)?.failed(now);
    let (failures, last) = (i64::from(attempts.failures), number(attempts.last.0));
    let sql = "UPDATE attempts SET failures = $3, last = $4 WHERE login = $1 AND network = $2";
    tx.finish(&[Ask(sql, &[&login, &network, &failures, &last])]).await?;
    Ok(attempts)
}

async fn login_succeeded(tx: &mut Transaction<'_>, login: Tag, network: Tag) -> Work<()> {
    let (shown, login, network) =
        (hex::encode(login.as_bytes()), login.as_bytes().as_slice(), network.as_bytes().as_slice());
    let sql = "DELETE FROM attempts WHERE login = $1 AND network = $2";
    tx.finish(&[Ask(SHOWN, &[&shown]), Ask(sql, &[&login, &network])]).await?;
    Ok(())
}
