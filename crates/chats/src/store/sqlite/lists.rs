//! Floors, manifest and account data as rows.

use async_trait::async_trait;
use confidant_chat_format::{AccountId, Digest, FieldName, Manifest, Shelf, Step, Trail};
use rusqlite::{Connection, params};

use super::super::checks::{Kids, Link, Sub, check_manifest, envelope, grows};
use super::super::lists::{
    AccountList, DataRow, FloorPut, FloorRow, HaveList, ListPut, ListWrite, Lists, ManifestRow, PutData,
};
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
                found.not_frozen(write.now, there)?;
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

/// Checks and writes floors and manifest. New entries of the account's ring are there already.
pub(super) fn put_list(c: &Connection, whose: &Account, list: &ListPut) -> Work<()> {
    let account = whose.n;
    let manifest = check_manifest(&list.manifest)?;
    let ring = kids(c, whose, &RingName::Account)?;
    ring.newest(manifest.kid)?;
    let mut shelves: Vec<Shelf> = list.floors.iter().map(|floor| floor.shelf).collect();
    shelves.sort_unstable();
    if shelves.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(StoreError::Malformed("a floor is there twice").into());
    }
    // The manifest decides who was first; its revision is what a conflict names.
    let sql = "SELECT rev, chain, hash FROM manifests WHERE account = ?1";
    let there = one(c, sql, params![account], |row| {
        Ok((row.get::<_, u32>(0)?, Link { chain: digest_at(row, 1)?, envelope: digest_at(row, 2)? }))
    })?;
    let (rev, link) = there.unwrap_or((0, Link::NONE));
    grows(manifest.rev, list.manifest.expected, rev)?;
    for floor in &list.floors {
        put_floor(c, account, floor, &ring, rev)?;
    }
    let sql = "SELECT hash FROM floors WHERE account = ?1 ORDER BY shelf";
    let hashes = all(c, sql, params![account], |row| digest_at(row, 0))?;
    let hashes: [Digest; 16] =
        hashes.try_into().map_err(|_| StoreError::Malformed("there are sixteen floors"))?;
    let live = Manifest::live(&hashes);
    link.leads_to(&live, (&list.manifest.live, &list.manifest.chain))?;
    let (chain, hash) = (list.manifest.chain.as_bytes(), manifest.hash.as_bytes());
    let sql =
        "INSERT OR REPLACE INTO manifests (account, rev, chain, hash, envelope) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(c, sql, params![account, manifest.rev, chain, hash, list.manifest.envelope.as_bytes()])?;
    let sql = "INSERT INTO list_steps (account, rev, live, chain, hash) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(c, sql, params![account, manifest.rev, live.as_bytes(), chain, hash])?;
    Ok(())
}

fn put_floor(c: &Connection, account: i64, floor: &FloorPut, ring: &Kids, manifest: u32) -> Work<()> {
    let sealed = envelope(&floor.envelope, limits::FLOOR_BYTES, "floor")?;
    ring.lists(Sub::Meta, sealed.kid)?;
    let shelf = floor.shelf.index();
    let sql = "SELECT rev FROM floors WHERE account = ?1 AND shelf = ?2";
    let there = one(c, sql, params![account, shelf], |row| row.get(0))?.unwrap_or(0);
    if floor.expected != there {
        return Err(StoreError::Conflict { now: manifest }.into());
    }
    grows(sealed.rev, floor.expected, there)?;
    let sql =
        "INSERT OR REPLACE INTO floors (account, shelf, rev, hash, envelope) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(c, sql, params![account, shelf, sealed.rev, sealed.hash.as_bytes(), floor.envelope.as_bytes()])?;
    Ok(())
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

/// Steps from one revision on: the chain at it, then what each later write left. From 0 on, or from one that is not there:
/// nothing.
pub(super) fn trail(c: &Connection, sql: &str, of: i64, from: u32) -> rusqlite::Result<Trail> {
    if from == 0 {
        return Ok(Trail::NONE);
    }
    let mut steps = all(c, sql, params![of, from], |row| {
        let step = Step { live: digest_at(row, 0)?, envelope: digest_at(row, 2)? };
        Ok((row.get::<_, u32>(3)?, digest_at(row, 1)?, step))
    })?;
    match steps.first() {
        Some((rev, chain, _)) if *rev == from => {
            Ok(Trail { chain: *chain, steps: steps.drain(1..).map(|(.., step)| step).collect() })
        }
        _ => Ok(Trail::NONE),
    }
}
