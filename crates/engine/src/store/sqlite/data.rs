//! `confidant.db`: logs, audit records, token claims. How logs and audit records lie in it is in `records`.

use std::any::Any;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use confidant_seal::{Sealed, Tag};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::copied;
use super::instances::Instances;
use super::records::{self, Known};
use super::writer::Writer;
use super::{Durability, File, Readers, kid_at, many, number_at, sealed_at, tag_at};
use crate::audit::Lane;
use crate::clock::Millis;
use crate::store::{
    self, Append, Appended, AuditHead, AuditLane, Find, Instance, Listed, Loaded, Names, PendingAudit,
    Result, Store, TokenRow, TokenSelector,
};

const DATA: File = File {
    name: "confidant.db",
    migrations: &[include_str!("data.sql"), include_str!("copied.sql"), include_str!("contexts.sql")],
};

/// The data in one SQLite file.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    pub(super) writer: Arc<Writer<Known>>,
    pub(super) readers: Arc<Readers>,
    instances: Instances,
    /// Records that folds of this process have left to be swept, about.
    dead: AtomicU64,
}

impl SqliteStore {
    /// Opens or makes `folder/confidant.db`.
    pub(crate) fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let path = folder.join(DATA.name);
        let mut connection = DATA.open(&path, durability)?;
        DATA.migrate(&mut connection)?;
        let writer = Arc::new(Writer::new(DATA, connection));
        let readers = Readers::new(DATA, path);
        let instances = Instances::open(folder.join("instances"))?;
        Ok(Self { writer, readers, instances, dead: AtomicU64::new(0) })
    }

    /// Counts what a fold left behind, and has it swept beside the turns once that is worth it.
    fn bury(&self, died: u64) {
        if died > 0 && self.dead.fetch_add(died, Ordering::Relaxed) + died >= SWEEP_AT {
            self.dead.store(0, Ordering::Relaxed);
            let (writer, runtime) = (Arc::clone(&self.writer), tokio::runtime::Handle::current());
            tokio::task::spawn_blocking(move || {
                if let Err(error) = runtime.block_on(sweep(&writer)) {
                    tracing::warn!(error = %error, "folded records could not be removed; trying again later");
                }
            });
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn load(&self, scope: Tag, _: Option<store::Known<'_>>) -> Result<Option<Loaded>> {
        // Short, and never kept waiting by a writer, so not worth a thread. One transaction: the tables at one moment.
        self.readers.with(|c| records::load(&*c.unchecked_transaction()?, scope))
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        let (appended, died) =
            self.writer.write_with(move |c, known| records::append(c, known, &append)).await?;
        self.bury(died);
        Ok(appended)
    }

    async fn erase(&self, scope: Tag, _: Option<store::Known<'_>>, audit: Vec<PendingAudit>) -> Result<u64> {
        let erase = move |c: &Connection, known: &mut Known| {
            let gone = records::erase(c, known, scope)?;
            records::record(c, known, &audit)?;
            Ok(gone)
        };
        self.writer.write_with(erase).await
    }

    async fn tidy(&self) -> Result<()> {
        self.dead.store(0, Ordering::Relaxed);
        sweep(&self.writer).await
    }

    async fn list(&self, find: Find, after: Option<Tag>, limit: usize) -> Result<Vec<Listed>> {
        let list = move |c: &Connection| {
            let nobody = Tag::from_bytes([0; 16]);
            let (filter, tag, person) = match find {
                Find::All => ("?1 = ?4", nobody, nobody),
                Find::Tenant(tenant) => ("tenant_tag = ?1 AND ?4 = ?4", tenant, tenant),
                Find::Person { tenant, person } => ("tenant_tag = ?1 AND person_tag = ?4", tenant, person),
            };
            let sql = format!(
                "SELECT scope_tag, person_tag, tenant_tag, kid, version, expires_at, owner, head FROM sessions
                 WHERE {filter} AND scope_tag > ?2 ORDER BY scope_tag LIMIT ?3"
            );
            let after = after.map_or_else(Vec::new, |tag| tag.as_bytes().to_vec());
            let c = c.unchecked_transaction()?;
            let mut newest = HashMap::new();
            records::resolve(&c, |found| {
                newest.insert(found.log, found);
            })?;
            let mut statement = c.prepare_cached(&sql)?;
            let rows = statement.query_map(
                params![tag.as_bytes(), after, many(limit), person.as_bytes()],
                |row| {
                    let (mut listed, head) = (listed(row)?, row.get::<_, i64>(7)?);
                    if let Some(newest) =
                        newest.get(&records::log(listed.kid)).filter(|found| found.id > head)
                    {
                        listed.version = newest.seq;
                    }
                    Ok(listed)
                },
            )?;
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
        let claim = move |c: &Connection, known: &mut Known| {
            known.forget(scope);
            let sql = "UPDATE sessions SET owner = ?3 WHERE scope_tag = ?1 AND owner = ?2";
            Ok(c.prepare_cached(sql)?.execute(params![scope.as_bytes(), from.0, to.0])? == 1)
        };
        self.writer.write_with(claim).await
    }

    async fn enlist(&self, instance: Instance) -> Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(self.instances.enlist(instance)?))
    }

    async fn resign(&self, _: Instance) -> Result<()> {
        Ok(())
    }

    async fn is_alive(&self, instance: Instance) -> Result<bool> {
        Ok(self.instances.is_alive(instance))
    }

    async fn others_alive(&self, than: Instance) -> Result<bool> {
        self.instances.others_alive(than)
    }

    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>> {
        self.writer.write_with(move |c, known| records::record(c, known, &audit)).await
    }

    async fn lanes(&self) -> Result<Vec<AuditLane>> {
        // On the thread of the caller, as in `load`.
        let (mut lanes, own) = self.readers.with(|c| {
            let c = c.unchecked_transaction()?;
            Ok((copied::lanes(&c)?, records::audit_head(&c)?))
        })?;
        lanes.extend(own.map(|head| AuditLane { head, floor: None, until: None }));
        Ok(lanes)
    }

    async fn adopt(&self, lane: Lane, before: Option<AuditHead>, records: Vec<Sealed>) -> Result<()> {
        self.writer.write_with(move |c, _| copied::adopt(c, lane, before, &records)).await
    }

    async fn audit(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>> {
        let read = move |c: &Connection| {
            let c = c.unchecked_transaction()?;
            match copied::own_lane(&c)? {
                own if own == lane => records::audit(&c, after, limit),
                _ => copied::audit(&c, lane, after, limit),
            }
        };
        self.readers.read(read).await
    }

    async fn add_token(&self, row: TokenRow, audit: Vec<PendingAudit>) -> Result<()> {
        let add = move |c: &Connection, known: &mut Known| {
            let sql = "INSERT INTO tokens (id, hash, person_tag, sealed) VALUES (?1, ?2, ?3, ?4)";
            let person = row.person.map(|tag| *tag.as_bytes());
            c.prepare_cached(sql)?.execute(params![row.id, row.hash, person, row.sealed.as_bytes()])?;
            records::record(c, known, &audit).map(drop)
        };
        self.writer.write_with(add).await
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
        let remove = move |c: &Connection, known: &mut Known| {
            let gone = match &which {
                TokenSelector::Id(id) => {
                    c.prepare_cached("DELETE FROM tokens WHERE id = ?1")?.execute([id])?
                }
                TokenSelector::Person(tag) => {
                    c.prepare_cached("DELETE FROM tokens WHERE person_tag = ?1")?.execute([tag.as_bytes()])?
                }
            };
            records::record(c, known, &audit)?;
            Ok(gone as u64)
        };
        self.writer.write_with(remove).await
    }

    async fn scrub(&self) -> Result<()> {
        self.readers.scrub().await
    }

    async fn check(&self) -> Result<String> {
        self.readers.check().await
    }
}

/// As many dead records as are swept without being asked to: a few megabytes.
const SWEEP_AT: u64 = 4096;

async fn sweep(writer: &Writer<Known>) -> Result<()> {
    while writer.write_with(records::sweep).await? {}
    Ok(())
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
