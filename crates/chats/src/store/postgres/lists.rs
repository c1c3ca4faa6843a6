//! Floors, manifest and account data as rows.

use std::collections::BTreeMap;

use async_trait::async_trait;
use confidant_chat_format::{AccountId, FieldName, Shelf, Step, Trail};
use confidant_postgres::{Ask, Transaction};
use confidant_seal::Sealed;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::checks::{Kids, Link, Sub, envelope, grows};
use super::super::lists::{
    AccountList, DataRow, FloorRow, HaveList, ListPut, ListWrite, Lists, ManifestRow, PutData,
};
use super::super::plan::{ListPlan, SeenList, plan_list, trail};
use super::super::rings::{RingEntry, RingName};
use super::super::{Changed, Result, StoreError, limits};
use super::rings::{APPEND, Columns, ENTRIES, KIDS, entry_at, kids};
use super::rows::{
    ACCOUNT, LOCK, NOTE, Notes, account, all, damaged, digest_at, get, parsed_at, parts, sealed_at, small,
    u32_at, whose,
};
use super::{PostgresChats, Work, transact};

/// The manifest that is there.
pub(super) const MANIFEST: &str = "SELECT rev, chain, hash FROM manifests WHERE account = $1";
/// The floors that are there.
pub(super) const FLOORS: &str = "SELECT shelf, rev, hash FROM floors WHERE account = $1";
/// New floors.
pub(super) const PUT_FLOORS: &str = "INSERT INTO floors (account, shelf, rev, hash, envelope)
    SELECT $1, shelf, rev, hash, envelope
    FROM unnest($2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[]) AS u (shelf, rev, hash, envelope)
    ON CONFLICT (account, shelf) DO UPDATE SET rev = excluded.rev, hash = excluded.hash, envelope = excluded.envelope";
/// A new manifest, and the step to it.
pub(super) const PUT_MANIFEST: &str = "WITH step AS (
    INSERT INTO list_steps (account, rev, live, chain, hash) VALUES ($1, $2, $3, $4, $5)
) INSERT INTO manifests (account, rev, chain, hash, envelope) VALUES ($1, $2, $4, $5, $6)
    ON CONFLICT (account) DO UPDATE SET rev = excluded.rev, chain = excluded.chain, hash = excluded.hash,
    envelope = excluded.envelope";

#[async_trait]
impl Lists for PostgresChats {
    async fn list(&self, id: &AccountId, have: HaveList) -> Result<AccountList> {
        transact!(self, Reading, |tx| read_list(tx, id, have))
    }

    async fn write_list(&self, write: ListWrite) -> Result<u64> {
        transact!(self, Writing, |tx| write_list(tx, &write))
    }

    async fn put_data(&self, put: PutData) -> Result<u64> {
        transact!(self, Writing, |tx| put_data(tx, &put))
    }

    async fn data(&self, id: &AccountId) -> Result<Vec<DataRow>> {
        transact!(self, Reading, |tx| read_data(tx, id))
    }
}

async fn read_list(tx: &mut Transaction<'_>, id: &AccountId, have: HaveList) -> Work<AccountList> {
    let id = id.as_str();
    let (from, floors) = (i64::from(have.trail_from), have.floors.map(i64::from).to_vec());
    let (own, letters) = (1_i64, 2_i64);
    let found = tx
        .finish(&[
            whose(&[&id]),
            Ask(ACCOUNT, &[&id]),
            Ask("SELECT rev, envelope, chain FROM manifests WHERE account = $1", &[&id]),
            Ask(
                "SELECT shelf, rev, envelope FROM floors
                 WHERE account = $1 AND rev <> ($2::bigint[])[shelf::integer + 1] ORDER BY shelf",
                &[&id, &floors],
            ),
            Ask(
                "SELECT rev, chain, live, hash FROM list_steps WHERE account = $1 AND rev >= $2 AND $2 > 0 ORDER BY rev",
                &[&id, &from],
            ),
            Ask(ENTRIES, &[&id, &"", &own]),
            Ask(ENTRIES, &[&id, &"", &letters]),
        ])
        .await?;
    let [_, there, manifest, floors, steps, ring, box_ring] = parts(found)?;
    account(&there)?;
    let manifest = manifest.first().ok_or(StoreError::NotFound)?;
    Ok(AccountList {
        manifest: ManifestRow {
            rev: u32_at(manifest, 0)?,
            envelope: sealed_at(manifest, 1)?,
            chain: digest_at(manifest, 2)?,
        },
        trail: trail_of(&steps, have.trail_from)?,
        floors: all(&floors, |row| {
            Ok(FloorRow { shelf: shelf_at(row, 0)?, rev: u32_at(row, 1)?, envelope: sealed_at(row, 2)? })
        })?,
        ring: all(&ring, |row| entry_at(row, 0))?,
        box_ring: all(&box_ring, |row| entry_at(row, 0))?,
    })
}

pub(super) fn shelf_at(row: &Row, at: usize) -> Work<Shelf> {
    Shelf::all().nth(u32_at(row, at)? as usize).ok_or_else(damaged)
}

/// What a trail is made of: rev, chain, live, hash.
pub(super) fn trail_of(rows: &[Row], from: u32) -> Work<Trail> {
    let steps = all(rows, |row| {
        let step = Step { live: digest_at(row, 2)?, envelope: digest_at(row, 3)? };
        Ok((u32_at(row, 0)?, digest_at(row, 1)?, step))
    })?;
    Ok(trail(steps, from))
}

/// What a write of floors and manifest finds: the account's ring, [`MANIFEST`] and [`FLOORS`].
pub(super) fn seen_list(ring: Kids, manifest: &[Row], floors: &[Row]) -> Work<SeenList> {
    let manifest = match manifest.first() {
        Some(row) => (u32_at(row, 0)?, Link { chain: digest_at(row, 1)?, envelope: digest_at(row, 2)? }),
        None => (0, Link::NONE),
    };
    let floors = all(floors, |row| Ok((shelf_at(row, 0)?, (u32_at(row, 1)?, digest_at(row, 2)?))))?;
    Ok(SeenList { ring, manifest, floors: floors.into_iter().collect::<BTreeMap<_, _>>() })
}

/// Floors and manifest as columns.
#[derive(Debug)]
pub(super) struct ListColumns<'a> {
    account: &'a str,
    shelves: Vec<i64>,
    revs: Vec<i64>,
    hashes: Vec<&'a [u8]>,
    envelopes: Vec<&'a [u8]>,
    rev: i64,
    live: &'a [u8],
    chain: &'a [u8],
    hash: &'a [u8],
    envelope: &'a [u8],
}

impl<'a> ListColumns<'a> {
    pub(super) fn new(account: &'a str, list: &'a ListPut, plan: &'a ListPlan) -> Self {
        Self {
            account,
            shelves: list.floors.iter().map(|floor| number_of(floor.shelf)).collect(),
            revs: plan.floors.iter().map(|floor| i64::from(floor.rev)).collect(),
            hashes: plan.floors.iter().map(|floor| floor.hash.as_bytes().as_slice()).collect(),
            envelopes: list.floors.iter().map(|floor| floor.envelope.as_bytes()).collect(),
            rev: i64::from(plan.manifest.rev),
            live: plan.live.as_bytes(),
            chain: list.manifest.chain.as_bytes(),
            hash: plan.manifest.hash.as_bytes(),
            envelope: list.manifest.envelope.as_bytes(),
        }
    }

    /// For [`PUT_FLOORS`].
    pub(super) fn floors(&self) -> [&(dyn ToSql + Sync); 5] {
        [&self.account, &self.shelves, &self.revs, &self.hashes, &self.envelopes]
    }

    /// For [`PUT_MANIFEST`].
    pub(super) fn manifest(&self) -> [&(dyn ToSql + Sync); 6] {
        [&self.account, &self.rev, &self.live, &self.chain, &self.hash, &self.envelope]
    }
}

pub(super) fn number_of(shelf: Shelf) -> i64 {
    super::rows::many(shelf.index())
}

async fn write_list(tx: &mut Transaction<'_>, write: &ListWrite) -> Work<u64> {
    let id = write.account.as_str();
    let (own, letters) = (1_i64, 2_i64);
    let found = tx
        .run(&[
            whose(&[&id]),
            Ask(LOCK, &[&id]),
            Ask(KIDS, &[&id, &"", &own]),
            Ask(KIDS, &[&id, &"", &letters]),
            Ask(MANIFEST, &[&id]),
            Ask(FLOORS, &[&id]),
        ])
        .await?;
    let [_, there, ring, box_ring, manifest, floors] = parts(found)?;
    let account = account(&there)?;
    let generation = account.standing.generation;
    let mut box_ring = kids(&box_ring, generation)?;
    let mut seen = seen_list(kids(&ring, generation)?, &manifest, &floors)?;
    let rev = seen.manifest.0;
    for RingEntry { of, entry } in &write.append {
        let ring = match of {
            RingName::Chat(_) => return Err(StoreError::Malformed("a chat's key comes with the chat").into()),
            RingName::Account => &mut seen.ring,
            RingName::Box => &mut box_ring,
        };
        account.standing.not_frozen(write.now, rev)?;
        ring.append(of, entry, rev)?;
    }
    let plan = plan_list(&write.list, &seen)?;
    let columns = ListColumns::new(id, &write.list, &plan);
    let entries = Columns::new(write.append.iter().map(|row| (&row.of, &row.entry)));
    let generation = i64::from(generation);
    let whose: [&(dyn ToSql + Sync); 2] = [&id, &generation];
    let append = [&whose[..], &entries.args()].concat();
    let notes = Notes::new(&write.account, &account, &[Changed::List]);
    tx.finish(&[
        Ask(APPEND, &append),
        Ask(PUT_FLOORS, &columns.floors()),
        Ask(PUT_MANIFEST, &columns.manifest()),
        Ask(NOTE, &notes.args()),
    ])
    .await?;
    Ok(notes.newest())
}

async fn put_data(tx: &mut Transaction<'_>, put: &PutData) -> Work<u64> {
    let (id, kind, name, own) = (put.account.as_str(), put.kind.as_str(), put.name.as_str(), 1_i64);
    let found = tx
        .run(&[
            whose(&[&id]),
            Ask(LOCK, &[&id]),
            Ask("SELECT rev FROM data WHERE account = $1 AND kind = $2 AND name = $3", &[&id, &kind, &name]),
            Ask("SELECT count(*) FROM data WHERE account = $1", &[&id]),
            Ask(KIDS, &[&id, &"", &own]),
        ])
        .await?;
    let [_, there, data, pieces, ring] = parts(found)?;
    let account = account(&there)?;
    let rev = match &put.envelope {
        Some(sealed) => {
            let sealed = envelope(sealed, limits::HEAD_BYTES, "piece of data")?;
            kids(&ring, account.standing.generation)?.lists(Sub::Meta, sealed.kid)?;
            sealed.rev
        }
        None => put.expected.saturating_add(1),
    };
    grows(rev, put.expected, small(&data)?)?;
    if data.is_empty() && small(&pieces)? >= limits::DATA {
        return Err(StoreError::TooMany("pieces of data").into());
    }
    let (rev, bytes) = (i64::from(rev), put.envelope.as_ref().map(|sealed| sealed.as_bytes()));
    let sql = "INSERT INTO data (account, kind, name, rev, envelope) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (account, kind, name) DO UPDATE SET rev = excluded.rev, envelope = excluded.envelope";
    let change = Changed::Data(put.kind.clone(), put.name.clone());
    let notes = Notes::new(&put.account, &account, &[change]);
    tx.finish(&[Ask(sql, &[&id, &kind, &name, &rev, &bytes]), Ask(NOTE, &notes.args())]).await?;
    Ok(notes.newest())
}

async fn read_data(tx: &mut Transaction<'_>, id: &AccountId) -> Work<Vec<DataRow>> {
    let id = id.as_str();
    let sql = "SELECT kind, name, rev, envelope FROM data WHERE account = $1 ORDER BY kind, name";
    let found = tx.finish(&[whose(&[&id]), Ask(ACCOUNT, &[&id]), Ask(sql, &[&id])]).await?;
    let [_, there, data] = parts(found)?;
    account(&there)?;
    all(&data, |row| {
        Ok(DataRow {
            kind: parsed_at(row, 0, FieldName::parse)?,
            name: parsed_at(row, 1, FieldName::parse)?,
            rev: u32_at(row, 2)?,
            envelope: get::<Option<Vec<u8>>>(row, 3)?.map(Sealed::from_bytes),
        })
    })
}
