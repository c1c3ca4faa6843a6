//! `confidant.db`: logs, audit records, token claims.

use std::any::Any;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use confidant_seal::{Sealed, Tag};
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use super::instances::Instances;
use super::writer::Writer;
use super::{Durability, File, Readers, blocking, kid_at, many, number, number_at, sealed_at, tag_at};
use crate::clock::Millis;
use crate::store::{
    Append, Appended, AuditHead, Find, Instance, Listed, Loaded, Names, PendingAudit, Result, Store,
    TokenRow, TokenSelector,
};

const DATA: File = File {
    name: "confidant.db",
    migrations: &["
        CREATE TABLE sessions (
            scope_tag  BLOB PRIMARY KEY,
            person_tag BLOB NOT NULL,
            tenant_tag BLOB NOT NULL,
            kid        BLOB NOT NULL,
            version    INTEGER NOT NULL,
            expires_at INTEGER,
            owner      BLOB
        ) WITHOUT ROWID;
        CREATE INDEX sessions_by_person ON sessions (person_tag);
        CREATE INDEX sessions_by_expiry ON sessions (expires_at) WHERE expires_at IS NOT NULL;
        CREATE INDEX sessions_by_owner ON sessions (owner) WHERE owner IS NOT NULL;
        CREATE TABLE session_entries (
            scope_tag BLOB NOT NULL,
            seq       INTEGER NOT NULL,
            sealed    BLOB NOT NULL,
            PRIMARY KEY (scope_tag, seq)
        ) WITHOUT ROWID;
        CREATE TABLE session_snapshots (
            scope_tag BLOB PRIMARY KEY,
            seq       INTEGER NOT NULL,
            sealed    BLOB NOT NULL
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
        let writer = Writer::start(DATA, connection)?;
        let readers = Arc::new(Readers { file: DATA, path, idle: Mutex::default() });
        Ok(Self { writer, readers, instances: Instances::open(folder.join("instances"))? })
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let readers = Arc::clone(&self.readers);
        blocking(move || readers.with(read)).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn load(&self, scope: Tag) -> Result<Option<Loaded>> {
        self.read(move |c| load(c, scope)).await
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        self.writer.write(move |c| write_append(c, &append)).await
    }

    async fn erase(&self, scope: Tag, audit: Vec<PendingAudit>) -> Result<u64> {
        let erase = move |c: &Connection| {
            let delete = |table: &str| {
                c.prepare_cached(&format!("DELETE FROM {table} WHERE scope_tag = ?1"))?
                    .execute([scope.as_bytes()])
            };
            let entries = delete("session_entries")? + delete("session_snapshots")?;
            delete("sessions")?;
            record(c, &audit)?;
            Ok(entries as u64)
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
        self.read(list).await
    }

    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>> {
        let expired = move |c: &Connection| {
            let sql = "SELECT scope_tag FROM sessions WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2";
            let mut statement = c.prepare_cached(sql)?;
            statement.query_map(params![now.0, many(limit)], |row| tag_at(row, 0))?.collect()
        };
        self.read(expired).await
    }

    async fn orphans(&self) -> Result<Vec<(Tag, Instance)>> {
        let open = |c: &Connection| {
            let mut statement =
                c.prepare_cached("SELECT scope_tag, owner FROM sessions WHERE owner IS NOT NULL")?;
            let rows = statement.query_map([], |row| Ok((tag_at(row, 0)?, Instance(row.get(1)?))))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let open = self.read(open).await?;
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
        self.read(audit).await
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
        self.read(all).await
    }

    async fn token(&self, hash: [u8; 32]) -> Result<Option<TokenRow>> {
        let one = move |c: &Connection| {
            let mut statement =
                c.prepare_cached("SELECT id, hash, person_tag, sealed FROM tokens WHERE hash = ?1")?;
            statement.query_row([hash], token).optional()
        };
        self.read(one).await
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
        let readers = Arc::clone(&self.readers);
        blocking(move || readers.with(|c| Ok(DATA.scrub(c)))?).await
    }

    async fn check(&self) -> Result<()> {
        let readers = Arc::clone(&self.readers);
        blocking(move || readers.with(|c| Ok(DATA.check(c)))?).await
    }
}

fn load(c: &Connection, scope: Tag) -> rusqlite::Result<Option<Loaded>> {
    // One read transaction, so that the three tables are seen at one moment.
    let tx = c.unchecked_transaction()?;
    let head = tx
        .prepare_cached("SELECT version, kid, expires_at, owner FROM sessions WHERE scope_tag = ?1")?
        .query_row([scope.as_bytes()], |row| {
            Ok(Loaded {
                version: number_at(row, 0)?,
                kid: kid_at(row, 1)?,
                expires_at: row.get::<_, Option<i64>>(2)?.map(Millis),
                owner: row.get::<_, Option<[u8; 16]>>(3)?.map(Instance),
                snapshot: None,
                entries: Vec::new(),
            })
        })
        .optional()?;
    let Some(mut loaded) = head else { return Ok(None) };
    loaded.snapshot = tx
        .prepare_cached("SELECT seq, sealed FROM session_snapshots WHERE scope_tag = ?1")?
        .query_row([scope.as_bytes()], |row| Ok((number_at(row, 0)?, sealed_at(row, 1)?)))
        .optional()?;
    loaded.entries = tx
        .prepare_cached("SELECT seq, sealed FROM session_entries WHERE scope_tag = ?1 ORDER BY seq")?
        .query_map([scope.as_bytes()], |row| Ok((number_at(row, 0)?, sealed_at(row, 1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Some(loaded))
}

fn write_append(c: &Connection, append: &Append) -> rusqlite::Result<Appended> {
    let scope = append.names.scope;
    let version = append.expected + append.entries.len() as u64;
    let sql = if append.expected == 0 {
        "INSERT INTO sessions (scope_tag, person_tag, tenant_tag, kid, version, expires_at, owner)
         VALUES (:scope, :person, :tenant, :kid, :version, :expires, :owner) ON CONFLICT DO NOTHING"
    } else {
        "UPDATE sessions SET version = :version, expires_at = :expires, owner = :owner
         WHERE scope_tag = :scope AND kid = :kid AND version = :expected"
    };
    let (person, tenant) = (append.names.person, append.names.tenant);
    let kid = append.kid;
    let expires = append.expires_at.map(|at| at.0);
    let owner = append.owner.map(|owner| owner.0);
    let mut statement = c.prepare_cached(sql)?;
    let changed = if append.expected == 0 {
        statement.execute(named_params! {
            ":scope": scope.as_bytes(), ":person": person.as_bytes(), ":tenant": tenant.as_bytes(),
            ":kid": kid.as_bytes(), ":version": number(version), ":expires": expires, ":owner": owner,
        })?
    } else {
        statement.execute(named_params! {
            ":scope": scope.as_bytes(), ":kid": kid.as_bytes(), ":version": number(version),
            ":expected": number(append.expected), ":expires": expires, ":owner": owner,
        })?
    };
    if changed == 0 {
        return Ok(Appended::Conflict);
    }
    let covers = append.snapshot.as_ref().map_or(0, |(covers, _)| *covers);
    let mut insert =
        c.prepare_cached("INSERT INTO session_entries (scope_tag, seq, sealed) VALUES (?1, ?2, ?3)")?;
    for (seq, sealed) in (append.expected + 1..).zip(&append.entries) {
        if seq > covers {
            insert.execute(params![scope.as_bytes(), number(seq), sealed.as_bytes()])?;
        }
    }
    if let Some((covers, sealed)) = &append.snapshot {
        c.prepare_cached("DELETE FROM session_entries WHERE scope_tag = ?1 AND seq <= ?2")?
            .execute(params![scope.as_bytes(), number(*covers)])?;
        c.prepare_cached(
            "INSERT OR REPLACE INTO session_snapshots (scope_tag, seq, sealed) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![scope.as_bytes(), number(*covers), sealed.as_bytes()])?;
    }
    record(c, &append.audit)?;
    Ok(Appended::Done)
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
