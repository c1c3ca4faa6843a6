//! Floors, manifest and account data as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, FieldName, Shelf, Step, Trail};
use rusqlite::{Connection, params};

use super::super::checks::{Link, Sub, envelope, grows};
use super::super::lists::{
    AccountList, DataRow, FloorRow, HaveList, ListPut, ListWrite, Lists, ManifestRow, PutData,
};
use super::super::plan::{self, ListPlan, SeenList, plan_list};
use super::super::rings::{RingEntry, RingName};
use super::super::{Changed, Result, StoreError, limits};
use super::rings::{append, entries, kids};
use super::rows::{Account, account, all, digest_at, note, one, parsed_at, run, sealed_at, value};
use super::{SqliteChats, Work};

#[async_trait]
impl Lists for SqliteChats {
    async fn list(&self, whose: &AccountId, have: HaveList) -> Result<AccountList> {
        let whose = whose.clone();
        self.read_with(move |c| {
            let n = account(c, &whose)?.n;
            let sql = "SELECT rev, envelope, chain FROM manifests WHERE account = ?1";
            let manifest = one(c, sql, params![n], |row| {
                Ok(ManifestRow { rev: row.get(0)?, envelope: sealed_at(row, 1)?, chain: digest_at(row, 2)? })
            })?;
            let mut floors = Vec::new();
            for (shelf, rev) in Shelf::all().zip(have.floors) {
                let sql = "SELECT rev, envelope FROM floors WHERE account = ?1 AND shelf = ?2 AND rev <> ?3";
                let floor = one(c, sql, params![n, shelf.index(), rev], |row| {
                    Ok(FloorRow { shelf, rev: row.get(0)?, envelope: sealed_at(row, 1)? })
                })?;
                floors.extend(floor);
            }
            let sql =
                "SELECT live, chain, hash, rev FROM list_steps WHERE account = ?1 AND rev >= ?2 ORDER BY rev";
            Ok(AccountList {
                manifest: manifest.ok_or(StoreError::NotFound)?,
                trail: trail(c, sql, n, have.trail_from)?,
                floors,
                ring: entries(c, n, &RingName::Account)?,
                box_ring: entries(c, n, &RingName::Box)?,
            })
        })
        .await
    }

    async fn write_list(&self, write: ListWrite) -> Result<u64> {
        self.write_with(move |c| {
            let found = account(c, &write.account)?;
            for RingEntry { of, entry } in &write.append {
                if matches!(of, RingName::Chat(_)) {
                    return Err(StoreError::Malformed("a chat's key comes with the chat").into());
                }
                let there = value(c, "SELECT rev FROM manifests WHERE account = ?1", params![found.n])?;
                found.standing.not_frozen(write.now, there)?;
                let mut ring = kids(c, &found, of)?;
                append(c, &found, &mut ring, (of, entry), there)?;
            }
            put_list(c, &found, &write.list)?;
            Ok(note(c, found.n, &Changed::List)?)
        })
        .await
    }

    async fn put_data(&self, put: PutData) -> Result<u64> {
        self.write_with(move |c| put_data(c, &put)).await
    }

    async fn data(&self, whose: &AccountId) -> Result<Vec<DataRow>> {
        let whose = whose.clone();
        self.read_with(move |c| {
            let sql = "SELECT kind, name, rev, envelope FROM data WHERE account = ?1 ORDER BY kind, name";
            let rows = all(c, sql, params![account(c, &whose)?.n], |row| {
                Ok(DataRow {
                    kind: parsed_at(row, 0, FieldName::parse)?,
                    name: parsed_at(row, 1, FieldName::parse)?,
                    rev: row.get(2)?,
                    envelope: row.get::<_, Option<Vec<u8>>>(3)?.map(confidant_seal::Sealed::from_bytes),
                })
            })?;
            Ok(rows)
        })
        .await
    }
}

/// What a write of floors and manifest finds. New entries of the account's ring are there already.
pub(super) fn seen(c: &Connection, whose: &Account) -> Work<SeenList> {
    let sql = "SELECT rev, chain, hash FROM manifests WHERE account = ?1";
    let manifest = one(c, sql, params![whose.n], |row| {
        Ok((row.get::<_, u32>(0)?, Link { chain: digest_at(row, 1)?, envelope: digest_at(row, 2)? }))
    })?;
    let sql = "SELECT shelf, rev, hash FROM floors WHERE account = ?1";
    let floors = all(c, sql, params![whose.n], |row| {
        let shelf = Shelf::all().nth(row.get(0)?).ok_or(rusqlite::Error::InvalidQuery)?;
        Ok((shelf, (row.get::<_, u32>(1)?, digest_at(row, 2)?)))
    })?;
    Ok(SeenList {
        ring: kids(c, whose, &RingName::Account)?,
        manifest: manifest.unwrap_or((0, Link::NONE)),
        floors: floors.into_iter().collect(),
    })
}

/// Checks and writes floors and manifest. New entries of the account's ring are there already.
pub(super) fn put_list(c: &Connection, whose: &Account, list: &ListPut) -> Work<()> {
    let plan = plan_list(list, &seen(c, whose)?)?;
    Ok(put(c, whose.n, list, &plan)?)
}

/// Writes floors and manifest that were checked.
pub(super) fn put(c: &Connection, account: i64, list: &ListPut, plan: &ListPlan) -> rusqlite::Result<()> {
    let sql =
        "INSERT OR REPLACE INTO floors (account, shelf, rev, hash, envelope) VALUES (?1, ?2, ?3, ?4, ?5)";
    for (floor, sealed) in list.floors.iter().zip(&plan.floors) {
        let (shelf, hash) = (floor.shelf.index(), sealed.hash.as_bytes());
        run(c, sql, params![account, shelf, sealed.rev, hash, floor.envelope.as_bytes()])?;
    }
    let (rev, chain, hash) =
        (plan.manifest.rev, list.manifest.chain.as_bytes(), plan.manifest.hash.as_bytes());
    let sql =
        "INSERT OR REPLACE INTO manifests (account, rev, chain, hash, envelope) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(c, sql, params![account, rev, chain, hash, list.manifest.envelope.as_bytes()])?;
    let sql = "INSERT INTO list_steps (account, rev, live, chain, hash) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(c, sql, params![account, rev, plan.live.as_bytes(), chain, hash]).map(drop)
}

fn put_data(c: &Connection, put: &PutData) -> Work<u64> {
    let found = account(c, &put.account)?;
    let (kind, name) = (put.kind.as_str(), put.name.as_str());
    let sql = "SELECT rev FROM data WHERE account = ?1 AND kind = ?2 AND name = ?3";
    let there: Option<u32> = one(c, sql, params![found.n, kind, name], |row| row.get(0))?;
    let rev = match &put.envelope {
        Some(sealed) => {
            let sealed = envelope(sealed, limits::HEAD_BYTES, "piece of data")?;
            kids(c, &found, &RingName::Account)?.lists(Sub::Meta, sealed.kid)?;
            sealed.rev
        }
        None => put.expected.saturating_add(1),
    };
    grows(rev, put.expected, there.unwrap_or(0))?;
    if there.is_none() {
        let count: u32 = value(c, "SELECT count(*) FROM data WHERE account = ?1", params![found.n])?;
        if count >= limits::DATA {
            return Err(StoreError::TooMany("pieces of data").into());
        }
    }
    let bytes = put.envelope.as_ref().map(|sealed| sealed.as_bytes());
    let sql = "INSERT OR REPLACE INTO data (account, kind, name, rev, envelope) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(c, sql, params![found.n, kind, name, rev, bytes])?;
    Ok(note(c, found.n, &Changed::Data(put.kind.clone(), put.name.clone()))?)
}

/// Steps from one revision on.
pub(super) fn trail(c: &Connection, sql: &str, of: i64, from: u32) -> rusqlite::Result<Trail> {
    if from == 0 {
        return Ok(Trail::NONE);
    }
    let steps = all(c, sql, params![of, from], |row| {
        let step = Step { live: digest_at(row, 0)?, envelope: digest_at(row, 2)? };
        Ok((row.get::<_, u32>(3)?, digest_at(row, 1)?, step))
    })?;
    Ok(plan::trail(steps, from))
}
