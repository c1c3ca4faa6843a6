//! Devices and web sessions as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, DeviceId, Digest};
use confidant_postgres::{Ask, Transaction};
use confidant_seal::Sealed;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::checks::sized;
use super::super::sessions::{Device, NewDevice, Session, Sessions};
use super::super::{Changed, Millis, Result, StoreError, limits};
use super::rows::{
    ACCOUNT, LOCK, NOTE, Notes, SHOWN, account, all, digest_at, millis_at, number, parsed_at, parts,
    sealed_at, small, u32_at, u64_at, whose,
};
use super::{PostgresChats, Work, transact};

/// Whose session is shown: from here on the transaction works for its account, or for nobody.
const WHOSE_SESSION: &str = "SELECT set_config('confidant.account', coalesce((SELECT account FROM sessions WHERE id = $1), ''), true)";
const VALID: &str =
    "SELECT s.id, s.secret, s.account, s.device, s.epoch, s.created_at, s.expires_at, s.seen_day
    FROM sessions AS s JOIN accounts AS a ON a.account = s.account AND a.epoch = s.epoch
    WHERE s.id = $1 AND s.expires_at > $2";

#[async_trait]
impl Sessions for PostgresChats {
    async fn add_device(&self, id: &AccountId, device: NewDevice) -> Result<()> {
        transact!(self, Writing, |tx| add_device(tx, id, &device))
    }

    async fn devices(&self, id: &AccountId) -> Result<Vec<Device>> {
        transact!(self, Reading, |tx| devices(tx, id))
    }

    async fn label_device(&self, id: &AccountId, device: &DeviceId, label: Sealed) -> Result<u64> {
        transact!(self, Writing, |tx| label_device(tx, id, device, &label))
    }

    async fn revoke_device(&self, id: &AccountId, device: &DeviceId) -> Result<()> {
        transact!(self, Writing, |tx| revoke_device(tx, id, device))
    }

    async fn set_cursor(&self, id: &AccountId, device: &DeviceId, seq: u64) -> Result<()> {
        transact!(self, Writing, |tx| set_cursor(tx, id, device, seq))
    }

    async fn add_session(&self, session: Session) -> Result<()> {
        transact!(self, Writing, |tx| add_session(tx, &session))
    }

    async fn session(&self, id: Digest, now: Millis) -> Result<Option<Session>> {
        let found: Result<_> = transact!(self, Reading, |tx| find(tx, id, now));
        match found? {
            // The first time on a day only, so that asking is not writing. It may have ended meanwhile.
            Some(session) if session.seen_day < now.day() => transact!(self, Writing, |tx| see(tx, id, now)),
            found => Ok(found),
        }
    }

    async fn sessions(&self, id: &AccountId, now: Millis) -> Result<Vec<Session>> {
        transact!(self, Reading, |tx| sessions(tx, id, now))
    }

    async fn end_session(&self, id: &AccountId, session: Digest) -> Result<()> {
        transact!(self, Writing, |tx| end_session(tx, id, session))
    }
}

async fn add_device(tx: &mut Transaction<'_>, id: &AccountId, device: &NewDevice) -> Work<()> {
    let (whose_id, name, label) = (id.as_str(), device.device.as_str(), device.label.as_bytes());
    let found = tx
        .run(&[
            whose(&[&whose_id]),
            Ask(LOCK, &[&whose_id]),
            Ask("SELECT count(*) FROM devices WHERE account = $1", &[&whose_id]),
            Ask("SELECT 1 FROM devices WHERE account = $1 AND device = $2", &[&whose_id, &name]),
        ])
        .await?;
    let [_, there, devices, same] = parts(found)?;
    let account = account(&there)?;
    sized(label, limits::ENTRY_BYTES, "label")?;
    if small(&devices)? >= limits::DEVICES {
        return Err(StoreError::TooMany("devices").into());
    }
    if !same.is_empty() {
        return Err(StoreError::Conflict { now: 0 }.into());
    }
    let (now, day) = (number(device.now.0), i64::from(device.now.day()));
    let notes = Notes::new(id, &account, &[Changed::Devices]);
    let sql = "INSERT INTO devices (account, device, label, created_at, seen_day, cursor) VALUES ($1, $2, $3, $4, $5, 0)";
    tx.finish(&[Ask(sql, &[&whose_id, &name, &label, &now, &day]), Ask(NOTE, &notes.args())]).await?;
    Ok(())
}

async fn devices(tx: &mut Transaction<'_>, id: &AccountId) -> Work<Vec<Device>> {
    let id = id.as_str();
    let sql =
        "SELECT device, label, created_at, seen_day, cursor FROM devices WHERE account = $1 ORDER BY device";
    let found = tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(sql, &[&id])]).await?;
    let [_, there, devices] = parts(found)?;
    account(&there)?;
    all(&devices, |row| {
        Ok(Device {
            device: parsed_at(row, 0, DeviceId::parse)?,
            label: sealed_at(row, 1)?,
            created_at: millis_at(row, 2)?,
            seen_day: u32_at(row, 3)?,
            cursor: u64_at(row, 4)?,
        })
    })
}

async fn label_device(
    tx: &mut Transaction<'_>,
    id: &AccountId,
    device: &DeviceId,
    label: &Sealed,
) -> Work<u64> {
    let (device, label) = (device.as_str(), label.as_bytes());
    let sql = "UPDATE devices SET label = $3 WHERE account = $1 AND device = $2 RETURNING 1";
    let whose_id = id.as_str();
    let [_, there] = parts(tx.run(&[whose(&[&whose_id]), Ask(LOCK, &[&whose_id])]).await?)?;
    let account = account(&there)?;
    sized(label, limits::ENTRY_BYTES, "label")?;
    let [changed] = parts(tx.run(&[Ask(sql, &[&whose_id, &device, &label])]).await?)?;
    note_devices(tx, id, &account, changed.is_empty()).await
}

async fn revoke_device(tx: &mut Transaction<'_>, id: &AccountId, device: &DeviceId) -> Work<()> {
    let (whose_id, device) = (id.as_str(), device.as_str());
    let found = tx
        .run(&[
            whose(&[&whose_id]),
            Ask(LOCK, &[&whose_id]),
            // Its sessions go with it.
            Ask("DELETE FROM devices WHERE account = $1 AND device = $2 RETURNING 1", &[&whose_id, &device]),
        ])
        .await?;
    let [_, there, gone] = parts(found)?;
    note_devices(tx, id, &account(&there)?, gone.is_empty()).await.map(drop)
}

async fn note_devices(
    tx: &mut Transaction<'_>,
    id: &AccountId,
    account: &super::rows::Account,
    is_missing: bool,
) -> Work<u64> {
    if is_missing {
        return Err(StoreError::NotFound.into());
    }
    let notes = Notes::new(id, account, &[Changed::Devices]);
    tx.finish(&[Ask(NOTE, &notes.args())]).await?;
    Ok(notes.newest())
}

async fn set_cursor(tx: &mut Transaction<'_>, id: &AccountId, device: &DeviceId, seq: u64) -> Work<()> {
    let (id, device, seq) = (id.as_str(), device.as_str(), number(seq));
    let sql =
        "UPDATE devices SET cursor = greatest(cursor, $3) WHERE account = $1 AND device = $2 RETURNING 1";
    let [_, moved] = parts(tx.finish(&[whose(&[&id]), Ask(sql, &[&id, &device, &seq])]).await?)?;
    if moved.is_empty() { Err(StoreError::NotFound.into()) } else { Ok(()) }
}

async fn add_session(tx: &mut Transaction<'_>, session: &Session) -> Work<()> {
    let (id, device) = (session.account.as_str(), session.device.as_str());
    let found = tx
        .run(&[
            whose(&[&id]),
            Ask(LOCK, &[&id]),
            Ask("SELECT 1 FROM devices WHERE account = $1 AND device = $2", &[&id, &device]),
            Ask("SELECT count(*) FROM sessions WHERE account = $1", &[&id]),
        ])
        .await?;
    let [_, there, devices, sessions] = parts(found)?;
    let standing = account(&there)?.standing;
    if standing.epoch != session.epoch {
        return Err(StoreError::Conflict { now: standing.rev }.into());
    }
    devices.first().ok_or(StoreError::NotFound)?;
    if small(&sessions)? >= limits::SESSIONS {
        return Err(StoreError::TooMany("sessions").into());
    }
    let (key, secret) = (session.id.as_bytes().as_slice(), session.secret.as_bytes().as_slice());
    let (epoch, day) = (i64::from(session.epoch), i64::from(session.created_at.day()));
    let (created, expires) = (number(session.created_at.0), number(session.expires_at.0));
    let row: [&(dyn ToSql + Sync); 8] = [&key, &secret, &id, &device, &epoch, &created, &expires, &day];
    let sql = "INSERT INTO sessions (id, secret, account, device, epoch, created_at, expires_at, seen_day)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    tx.finish(&[Ask(sql, &row)]).await.map(drop).map_err(super::accounts::taken)
}

async fn find(tx: &mut Transaction<'_>, id: Digest, now: Millis) -> Work<Option<Session>> {
    let (shown, id, now) = (hex::encode(id.as_bytes()), id.as_bytes().as_slice(), number(now.0));
    let found =
        tx.finish(&[Ask(SHOWN, &[&shown]), Ask(WHOSE_SESSION, &[&id]), Ask(VALID, &[&id, &now])]).await?;
    let [_, _, found] = parts(found)?;
    found.first().map(session_at).transpose()
}

async fn see(tx: &mut Transaction<'_>, id: Digest, now: Millis) -> Work<Option<Session>> {
    let (shown, id, day, now) =
        (hex::encode(id.as_bytes()), id.as_bytes().as_slice(), i64::from(now.day()), number(now.0));
    let device = "UPDATE devices SET seen_day = greatest(seen_day, $2)
                  WHERE (account, device) = (SELECT account, device FROM sessions WHERE id = $1)";
    let found = tx
        .finish(&[
            Ask(SHOWN, &[&shown]),
            Ask(WHOSE_SESSION, &[&id]),
            Ask("UPDATE sessions SET seen_day = $2 WHERE id = $1", &[&id, &day]),
            Ask(device, &[&id, &day]),
            Ask(VALID, &[&id, &now]),
        ])
        .await?;
    let [_, _, _, _, found] = parts(found)?;
    found.first().map(session_at).transpose()
}

async fn sessions(tx: &mut Transaction<'_>, id: &AccountId, now: Millis) -> Work<Vec<Session>> {
    let (id, now) = (id.as_str(), number(now.0));
    let sql = "SELECT s.id, s.secret, s.account, s.device, s.epoch, s.created_at, s.expires_at, s.seen_day
               FROM sessions AS s JOIN accounts AS a ON a.account = s.account AND a.epoch = s.epoch
               WHERE s.account = $1 AND s.expires_at > $2 ORDER BY s.created_at DESC, s.id";
    let found = tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(sql, &[&id, &now])]).await?;
    let [_, there, sessions] = parts(found)?;
    account(&there)?;
    all(&sessions, session_at)
}

async fn end_session(tx: &mut Transaction<'_>, id: &AccountId, session: Digest) -> Work<()> {
    let (id, session) = (id.as_str(), session.as_bytes().as_slice());
    let sql = "DELETE FROM sessions WHERE account = $1 AND id = $2 RETURNING 1";
    let [_, ended] = parts(tx.finish(&[whose(&[&id]), Ask(sql, &[&id, &session])]).await?)?;
    if ended.is_empty() { Err(StoreError::NotFound.into()) } else { Ok(()) }
}

fn session_at(row: &Row) -> Work<Session> {
    Ok(Session {
        id: digest_at(row, 0)?,
        secret: digest_at(row, 1)?,
        account: parsed_at(row, 2, AccountId::parse)?,
        device: parsed_at(row, 3, DeviceId::parse)?,
        epoch: u32_at(row, 4)?,
        created_at: millis_at(row, 5)?,
        expires_at: millis_at(row, 6)?,
        seen_day: u32_at(row, 7)?,
    })
}
