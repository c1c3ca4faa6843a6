//! `confidant.db`: logs, audit records, token claims.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::{Sealed, Tag};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::instances::Instances;
use super::writer::Writer;
use super::{Durability, File, Readers, kid_at, many, number, number_at, sealed_at, tag_at};
use crate::clock::Millis;
use crate::store::{
    Append, Appended, AuditHead, Find, Instance, Listed, Loaded, Names, PendingAudit, Result, Store,
    TokenRow, TokenSelector,
};

const DATA: File = File {
    name: "confidant.db",
    migrations: &["
        CREATE TABLE sessions (
            id         INTEGER PRIMARY KEY,
            scope_tag  BLOB NOT NULL UNIQUE,
            person_tag BLOB NOT NULL,
            tenant_tag BLOB NOT NULL,
            kid        BLOB NOT NULL,
            version    INTEGER NOT NULL,
            expires_at INTEGER,
            owner      BLOB
        );
        CREATE INDEX sessions_by_person ON sessions (person_tag);
        CREATE INDEX sessions_by_expiry ON sessions (expires_at) WHERE expires_at IS NOT NULL;
        CREATE INDEX sessions_by_owner ON sessions (owner) WHERE owner IS NOT NULL;
        -- One tree ordered by session, then sequence: an append dirties one page, a load reads neighbours.
        CREATE TABLE session_entries (
            id      INTEGER PRIMARY KEY,
            sealed  BLOB NOT NULL,
            session INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL,
            seq     INTEGER GENERATED ALWAYS AS (id & 0xffffffff) VIRTUAL
        );
        CREATE TABLE session_snapshots (
            session INTEGER PRIMARY KEY,
            seq     INTEGER NOT NULL,
            sealed  BLOB NOT NULL
        );
        CREATE TABLE audit (
            seq    INTEGER PRIMARY KEY,
            sealed BLOB NOT NULL
        );
        CREATE TABLE tokens (
            id         TEXT PRIMARY KEY,
            hash       BLOB NOT NULL UNIQUE,
            person_tag BLOB,
            sealed     BLOB NOT NULL
        ) WITHOUT ROWID;
        CREATE INDEX tokens_by_person ON tokens (person_tag) WHERE person_tag IS NOT NULL;
    "],
};

/// The data in one SQLite file.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    writer: Writer,
    readers: Arc<Readers>,
    instances: Instances,
}

impl SqliteStore {
    /// Opens or makes `folder/confidant.db`.
    pub(crate) fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let path = folder.join(DATA.name);
        let mut connection = DATA.open(&path, durability)?;
        DATA.migrate(&mut connection)?;
        let writer = Writer::new(DATA, connection);
        let readers = Readers::new(DATA, path);
        Ok(Self { writer, readers, instances: Instances::open(folder.join("instances"))? })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn load(&self, scope: Tag) -> Result<Option<Loaded>> {
        // Short, and never kept waiting by a writer, so not worth a thread.
        self.readers.with(|c| load(c, scope))
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.writer.write(move |c| write_append(c, &append)).await
    }

    async fn erase(&self, scope: Tag, audit: Vec<PendingAudit>) -> Result<u64> {
        let erase = move |c: &Connection| {
            let id = c
                .prepare_cached("DELETE FROM sessions WHERE scope_tag = ?1 RETURNING id")?
                .query_row([scope.as_bytes()], |row| row.get::<_, i64>(0))
                .optional()?;
            let mut gone = 0;
            if let Some(id) = id {
                let (from, to) = entry_ids(id);
                gone += c
                    .prepare_cached("DELETE FROM session_entries WHERE id BETWEEN ?1 AND ?2")?
                    .execute([from, to])?;
                gone +=
                    c.prepare_cached("DELETE FROM session_snapshots WHERE session = ?1")?.execute([id])?;
            }
            record(c, &audit)?;
            Ok(gone as u64)
        };
        self.writer.write(erase).await
    }

    async fn list(&self, find: Find, after: Option<Tag>, limit: usize) -> Result<Vec<Listed>> {
        let list = move |c: &Connection| {
            let (filter, tag) = match find {
                Find::All => ("?1 = ?1", Tag::from_bytes([0; 16])),
                Find::Tenant(tag) => ("tenant_tag = ?1", tag),
                Find::Person(tag) => ("person_tag = ?1", tag),
            };
            let sql = format!(
                "SELECT scope_tag, person_tag, tenant_tag, kid, version, expires_at, owner FROM sessions
                 WHERE {filter} AND scope_tag > ?2 ORDER BY scope_tag LIMIT ?3"
            );
            let after = after.map_or_else(Vec::new, |tag| tag.as_bytes().to_vec());
            let mut statement = c.prepare_cached(&sql)?;
            let rows = statement.query_map(params![tag.as_bytes(), after, many(limit)], listed)?;
            rows.collect()
        };
        self.readers.read(list).await
    }

    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>> {
        let expired = move |c: &Connection| {
            let sql = "SELECT scope_tag FROM sessions WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2";
            let mut statement = c.prepare_cached(sql)?;
            statement.query_map(params![now.0, many(limit)], |row| tag_at(row, 0))?.collect()
        };
        self.readers.read(expired).await
    }

    async fn orphans(&self) -> Result<Vec<(Tag, Instance)>> {
        let open = |c: &Connection| {
            let mut statement =
                c.prepare_cached("SELECT scope_tag, owner FROM sessions WHERE owner IS NOT NULL")?;
            let rows = statement.query_map([], |row| Ok((tag_at(row, 0)?, Instance(row.get(1)?))))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let open = self.readers.read(open).await?;
        Ok(open.into_iter().filter(|(_, owner)| !self.instances.is_alive(*owner)).collect())
    }

    async fn claim(&self, scope: Tag, from: Instance, to: Instance) -> Result<bool> {
        let claim = move |c: &Connection| {
            let sql = "UPDATE sessions SET owner = ?3 WHERE scope_tag = ?1 AND owner = ?2";
            Ok(c.prepare_cached(sql)?.execute(params![scope.as_bytes(), from.0, to.0])? == 1)
        };
        self.writer.write(claim).await
    }

    async fn enlist(&self, instance: Instance) -> Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(self.instances.enlist(instance)?))
    }

    async fn is_alive(&self, instance: Instance) -> Result<bool> {
        Ok(self.instances.is_alive(instance))
    }

    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>> {
        self.writer.write(move |c| record(c, &audit)).await
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>> {
        let audit = move |c: &Connection| {
            let sql = "SELECT seq, sealed FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2";
            let mut statement = c.prepare_cached(sql)?;
            let rows = statement.query_map(params![number(after), many(limit)], |row| {
                Ok((number_at(row, 0)?, sealed_at(row, 1)?))
            })?;
            rows.collect()
        };
        self.readers.read(audit).await
    }

    async fn add_token(&self, row: TokenRow, audit: Vec<PendingAudit>) -> Result<()> {
        let add = move |c: &Connection| {
            let sql = "INSERT INTO tokens (id, hash, person_tag, sealed) VALUES (?1, ?2, ?3, ?4)";
            let person = row.person.map(|tag| *tag.as_bytes());
            c.prepare_cached(sql)?.execute(params![row.id, row.hash, person, row.sealed.as_bytes()])?;
            record(c, &audit).map(drop)
        };
        self.writer.write(add).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        let all = |c: &Connection| {
            let mut statement =
                c.prepare_cached("SELECT id, hash, person_tag, sealed FROM tokens ORDER BY id")?;
            statement.query_map([], token)?.collect()
        };
        self.readers.read(all).await
    }

    async fn token(&self, hash: [u8; 32]) -> Result<Option<TokenRow>> {
        let one = move |c: &Connection| {
            let mut statement =
                c.prepare_cached("SELECT id, hash, person_tag, sealed FROM tokens WHERE hash = ?1")?;
            statement.query_row([hash], token).optional()
        };
        self.readers.read(one).await
    }

    async fn remove_tokens(&self, which: TokenSelector, audit: Vec<PendingAudit>) -> Result<u64> {
        let remove = move |c: &Connection| {
            let gone = match &which {
                TokenSelector::Id(id) => {
                    c.prepare_cached("DELETE FROM tokens WHERE id = ?1")?.execute([id])?
                }
                TokenSelector::Person(tag) => {
                    c.prepare_cached("DELETE FROM tokens WHERE person_tag = ?1")?.execute([tag.as_bytes()])?
                }
            };
            record(c, &audit)?;
            Ok(gone as u64)
        };
        self.writer.write(remove).await
    }

    async fn scrub(&self) -> Result<()> {
        self.readers.scrub().await
    }

    async fn check(&self) -> Result<()> {
        self.readers.check().await
    }
}

fn load(c: &Connection, scope: Tag) -> rusqlite::Result<Option<Loaded>> {
    // One read transaction, so that the three tables are seen at one moment.
    let tx = c.unchecked_transaction()?;
    let head = tx
        .prepare_cached("SELECT id, version, kid, expires_at, owner FROM sessions WHERE scope_tag = ?1")?
        .query_row([scope.as_bytes()], |row| {
            let loaded = Loaded {
                version: number_at(row, 1)?,
                kid: kid_at(row, 2)?,
                expires_at: row.get::<_, Option<i64>>(3)?.map(Millis),
                owner: row.get::<_, Option<[u8; 16]>>(4)?.map(Instance),
                snapshot: None,
                entries: Vec::new(),
            };
            Ok((row.get::<_, i64>(0)?, loaded))
        })
        .optional()?;
    let Some((id, mut loaded)) = head else { return Ok(None) };
    loaded.snapshot = tx
        .prepare_cached("SELECT seq, sealed FROM session_snapshots WHERE session = ?1")?
        .query_row([id], |row| Ok((number_at(row, 0)?, sealed_at(row, 1)?)))
        .optional()?;
    let (from, to) = entry_ids(id);
    loaded.entries = tx
        .prepare_cached("SELECT id, sealed FROM session_entries WHERE id BETWEEN ?1 AND ?2 ORDER BY id")?
        .query_map([from, to], |row| Ok((number_at(row, 0)? & SEQUENCES, sealed_at(row, 1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Some(loaded))
}

/// The lower half of an entry's id is its sequence, the upper half its session.
const SEQUENCES: u64 = 0xffff_ffff;

fn entry_ids(session: i64) -> (i64, i64) {
    (session << 32, (session << 32) | number(SEQUENCES))
}

fn write_append(c: &Connection, append: &Append) -> rusqlite::Result<Appended> {
    let Some(id) = advance_head(c, append)? else { return Ok(Appended::Conflict) };
    let (first, _) = entry_ids(id);
    let covers = append.snapshot.as_ref().map_or(0, |(covers, _)| *covers);
    let mut insert = c.prepare_cached("INSERT INTO session_entries (id, sealed) VALUES (?1, ?2)")?;
    for (seq, sealed) in (append.expected + 1..).zip(&append.entries) {
        if seq > covers {
            insert.execute(params![first | number(seq), sealed.as_bytes()])?;
        }
    }
    if let Some((covers, sealed)) = &append.snapshot {
        c.prepare_cached("DELETE FROM session_entries WHERE id BETWEEN ?1 AND ?2")?
            .execute([first, first | number(*covers)])?;
        c.prepare_cached(
            "INSERT OR REPLACE INTO session_snapshots (session, seq, sealed) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![id, number(*covers), sealed.as_bytes()])?;
    }
    record(c, &append.audit)?;
    Ok(Appended::Done)
}

/// The compare-and-set: moves the session's version on, and returns its id; nothing if it was not as expected.
fn advance_head(c: &Connection, append: &Append) -> rusqlite::Result<Option<i64>> {
    let Names { scope, person, tenant } = append.names;
    let version = number(append.expected + append.entries.len() as u64);
    let expires = append.expires_at.map(|at| at.0);
    let owner = append.owner.map(|owner| owner.0);
    let id = |row: &Row<'_>| row.get(0);
    if append.expected == 0 {
        let sql = "INSERT INTO sessions (scope_tag, kid, version, expires_at, owner, person_tag, tenant_tag)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING RETURNING id";
        let (kid, person, tenant) = (append.kid.as_bytes(), person.as_bytes(), tenant.as_bytes());
        let values = params![scope.as_bytes(), kid, version, expires, owner, person, tenant];
        c.prepare_cached(sql)?.query_row(values, id).optional()
    } else {
        let sql = "UPDATE sessions SET version = ?3 WHERE scope_tag = ?1 AND kid = ?2 AND version = ?4
                   RETURNING id, expires_at, owner";
        let values = params![scope.as_bytes(), append.kid.as_bytes(), version, number(append.expected)];
        let before = c
            .prepare_cached(sql)?
            .query_row(values, |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, Option<[u8; 16]>>(2)?))
            })
            .optional()?;
        let Some((id, expires_before, owner_before)) = before else { return Ok(None) };
        // Each has an index, which an update rewrites even if the value stays: so only when it does not.
        if expires_before != expires {
            c.prepare_cached("UPDATE sessions SET expires_at = ?2 WHERE id = ?1")?
                .execute(params![id, expires])?;
        }
        if owner_before != owner {
            c.prepare_cached("UPDATE sessions SET owner = ?2 WHERE id = ?1")?.execute(params![id, owner])?;
        }
        Ok(Some(id))
    }
}

fn record(c: &Connection, audit: &[PendingAudit]) -> rusqlite::Result<Option<AuditHead>> {
    let last = c
        .prepare_cached("SELECT seq, sealed FROM audit ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| Ok((number_at(row, 0)?, sealed_at(row, 1)?)))
        .optional()?;
    let (mut seq, mut tag) = last.map_or((0, None), |(seq, sealed)| (seq, sealed.tag()));
    let mut insert = c.prepare_cached("INSERT INTO audit (seq, sealed) VALUES (?1, ?2)")?;
    for pending in audit {
        seq += 1;
        let sealed = pending.link(seq, tag);
        insert.execute(params![number(seq), sealed.as_bytes()])?;
        tag = sealed.tag();
    }
    Ok(tag.map(|tag| AuditHead { seq, tag }))
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        names: Names { scope: tag_at(row, 0)?, person: tag_at(row, 1)?, tenant: tag_at(row, 2)? },
        kid: kid_at(row, 3)?,
        version: number_at(row, 4)?,
        expires_at: row.get::<_, Option<i64>>(5)?.map(Millis),
        owner: row.get::<_, Option<[u8; 16]>>(6)?.map(Instance),
    })
}

fn token(row: &Row<'_>) -> rusqlite::Result<TokenRow> {
    Ok(TokenRow {
        id: row.get(0)?,
        hash: row.get(1)?,
        person: row.get::<_, Option<[u8; 16]>>(2)?.map(Tag::from_bytes),
        sealed: sealed_at(row, 3)?,
    })
}
