//! Devices and web sessions as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, DeviceId, Digest};
use confidant_seal::Sealed;
use rusqlite::{Row, params};

use super::super::checks::sized;
use super::super::sessions::{Device, NewDevice, Session, Sessions};
use super::super::{Changed, Millis, Result, StoreError, limits};
use super::SqliteChats;
use super::rows::{
    account, all, digest_at, millis_at, note, number, one, parsed_at, run, sealed_at, u64_at, value,
};

#[async_trait]
impl Sessions for SqliteChats {
    async fn add_device(&self, whose: &AccountId, device: NewDevice) -> Result<()> {
        let whose = whose.clone();
        self.write_with(move |c| {
            let n = account(c, &whose)?.n;
            sized(device.label.as_bytes(), limits::ENTRY_BYTES, "label")?;
            let count: u32 = value(c, "SELECT count(*) FROM devices WHERE account = ?1", params![n])?;
            if count >= limits::DEVICES {
                return Err(StoreError::TooMany("devices").into());
            }
            let sql = "INSERT INTO devices (account, device, label, created_at, seen_day, cursor)
                       VALUES (?1, ?2, ?3, ?4, ?5, 0) ON CONFLICT DO NOTHING";
            let (name, label) = (device.device.as_str(), device.label.as_bytes());
            if run(c, sql, params![n, name, label, number(device.now.0), device.now.day()])? == 0 {
                return Err(StoreError::Conflict { now: 0 }.into());
            }
            note(c, n, &Changed::Devices)?;
            Ok(())
        })
        .await
    }

    async fn devices(&self, whose: &AccountId) -> Result<Vec<Device>> {
        let whose = whose.clone();
        self.read_with(move |c| {
            let sql = "SELECT device, label, created_at, seen_day, cursor FROM devices WHERE account = ?1 ORDER BY device";
            let devices = all(c, sql, params![account(c, &whose)?.n], |row| {
                Ok(Device {
                    device: parsed_at(row, 0, DeviceId::parse)?,
                    label: sealed_at(row, 1)?,
                    created_at: millis_at(row, 2)?,
                    seen_day: row.get(3)?,
                    cursor: u64_at(row, 4)?,
                })
            })?;
            Ok(devices)
        })
        .await
    }

    async fn label_device(&self, whose: &AccountId, device: &DeviceId, label: Sealed) -> Result<u64> {
        let (whose, device) = (whose.clone(), device.clone());
        self.write_with(move |c| {
            let n = account(c, &whose)?.n;
            sized(label.as_bytes(), limits::ENTRY_BYTES, "label")?;
            let sql = "UPDATE devices SET label = ?3 WHERE account = ?1 AND device = ?2";
            if run(c, sql, params![n, device.as_str(), label.as_bytes()])? == 0 {
                return Err(StoreError::NotFound.into());
            }
            Ok(note(c, n, &Changed::Devices)?)
        })
        .await
    }

    async fn revoke_device(&self, whose: &AccountId, device: &DeviceId) -> Result<()> {
        let (whose, device) = (whose.clone(), device.clone());
        self.write_with(move |c| {
            let n = account(c, &whose)?.n;
            // Its sessions go with it.
            let sql = "DELETE FROM devices WHERE account = ?1 AND device = ?2";
            if run(c, sql, params![n, device.as_str()])? == 0 {
                return Err(StoreError::NotFound.into());
            }
            note(c, n, &Changed::Devices)?;
            Ok(())
        })
        .await
    }

    async fn set_cursor(&self, whose: &AccountId, device: &DeviceId, seq: u64) -> Result<()> {
        let (whose, device) = (whose.clone(), device.clone());
        self.write_with(move |c| {
            let sql = "UPDATE devices SET cursor = max(cursor, ?3) WHERE account = ?1 AND device = ?2";
            match run(c, sql, params![account(c, &whose)?.n, device.as_str(), number(seq)])? {
                0 => Err(StoreError::NotFound.into()),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn add_session(&self, session: Session) -> Result<()> {
        self.write_with(move |c| {
            let found = account(c, &session.account)?;
            if found.standing.epoch != session.epoch {
                return Err(StoreError::Conflict { now: found.standing.rev }.into());
            }
            let device = session.device.as_str();
            let sql = "SELECT 1 FROM devices WHERE account = ?1 AND device = ?2";
            one(c, sql, params![found.n, device], |_| Ok(()))?.ok_or(StoreError::NotFound)?;
            let count: u32 = value(c, "SELECT count(*) FROM sessions WHERE account = ?1", params![found.n])?;
            if count >= limits::SESSIONS {
                return Err(StoreError::TooMany("sessions").into());
            }
            let sql =
                "INSERT INTO sessions (id, secret, account, device, epoch, created_at, expires_at, seen_day)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING";
            let (id, secret) = (session.id.as_bytes(), session.secret.as_bytes());
            let (created, expires) = (number(session.created_at.0), number(session.expires_at.0));
            let row = params![
                id,
                secret,
                found.n,
                device,
                session.epoch,
                created,
                expires,
                session.created_at.day()
            ];
            match run(c, sql, row)? {
                0 => Err(StoreError::Conflict { now: 0 }.into()),
                _ => Ok(()),
            }
        })
        .await
    }

    async fn session(&self, id: Digest, now: Millis) -> Result<Option<Session>> {
        let sql =
            "SELECT s.id, s.secret, a.account, s.device, s.epoch, s.created_at, s.expires_at, s.seen_day
                   FROM sessions AS s JOIN accounts AS a ON a.n = s.account AND a.epoch = s.epoch
                   WHERE s.id = ?1 AND s.expires_at > ?2";
        let find = move |c: &rusqlite::Connection| {
            Ok(one(c, sql, params![id.as_bytes(), number(now.0)], session_at)?)
        };
        let found = self.read_with(find).await?;
        let Some(session) = found else { return Ok(None) };
        if session.seen_day >= now.day() {
            return Ok(Some(session));
        }
        // The first time on a day only, so that asking is not writing. It may have ended meanwhile.
        self.write_with(move |c| {
            let sql = "UPDATE sessions SET seen_day = ?2 WHERE id = ?1";
            run(c, sql, params![id.as_bytes(), now.day()])?;
            let sql = "UPDATE devices SET seen_day = max(seen_day, ?2)
                       WHERE (account, device) = (SELECT account, device FROM sessions WHERE id = ?1)";
            run(c, sql, params![id.as_bytes(), now.day()])?;
            find(c)
        })
        .await
    }

    async fn sessions(&self, whose: &AccountId, now: Millis) -> Result<Vec<Session>> {
        let whose = whose.clone();
        self.read_with(move |c| {
            let sql =
                "SELECT s.id, s.secret, a.account, s.device, s.epoch, s.created_at, s.expires_at, s.seen_day
                       FROM sessions AS s JOIN accounts AS a ON a.n = s.account AND a.epoch = s.epoch
                       WHERE s.account = ?1 AND s.expires_at > ?2 ORDER BY s.created_at DESC, s.id";
            Ok(all(c, sql, params![account(c, &whose)?.n, number(now.0)], session_at)?)
        })
        .await
    }

    async fn end_session(&self, whose: &AccountId, id: Digest) -> Result<()> {
        let whose = whose.clone();
        self.write_with(move |c| {
            let sql = "DELETE FROM sessions WHERE account = ?1 AND id = ?2";
            match run(c, sql, params![account(c, &whose)?.n, id.as_bytes()])? {
                0 => Err(StoreError::NotFound.into()),
                _ => Ok(()),
            }
        })
        .await
    }
}

fn session_at(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: digest_at(row, 0)?,
        secret: digest_at(row, 1)?,
        account: parsed_at(row, 2, AccountId::parse)?,
        device: parsed_at(row, 3, DeviceId::parse)?,
        epoch: row.get(4)?,
        created_at: millis_at(row, 5)?,
        expires_at: millis_at(row, 6)?,
        seen_day: row.get(7)?,
    })
}
