//! `confidant.db`: logs, audit records, token claims. How logs and audit records lie in it is in `records`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use confidant_seal::Tag;
use rusqlite::{Connection, Row, params};

use super::instances::Instances;
use super::records::{self, Known};
use super::writer::Writer;
use super::{Durability, File, Readers, kid_at, many, number_at, tag_at};
use crate::clock::Millis;
use crate::{Append, Appended, Find, Listed, Loaded, Logs, Names, Owner, PendingAudit, Result, Upkeep};

const DATA: File = File {
    name: "confidant.db",
    migrations: &[include_str!("data.sql"), include_str!("copied.sql"), include_str!("contexts.sql")],
};

/// The data in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    pub(super) writer: Arc<Writer<Known>>,
    pub(super) readers: Arc<Readers>,
    pub(super) instances: Instances,
    /// Records that folds of this process have left to be swept, about.
    dead: AtomicU64,
}

impl SqliteStore {
    /// Opens or makes `folder/confidant.db`.
    pub fn open(folder: &Path, durability: Durability) -> Result<Self> {
        let path = folder.join(DATA.name);
        let writer = Arc::new(Writer::new(DATA, DATA.open(&path, durability)?));
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
                    tracing::warn!(error = %error, "compacted records could not be removed; will retry later");
                }
            });
        }
    }
}

#[async_trait]
impl Logs for SqliteStore {
    async fn load(&self, scope: Tag, _: Option<crate::Known<'_>>) -> Result<Option<Loaded>> {
        // Short, and never kept waiting by a writer, so not worth a thread. One transaction: the tables at one moment.
        self.readers.with(|c| records::load(&*c.unchecked_transaction()?, scope))
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        let (appended, died) =
            self.writer.write_with(move |c, known| records::append(c, known, &append)).await?;
        self.bury(died);
        Ok(appended)
    }

    async fn erase(&self, scope: Tag, _: Option<crate::Known<'_>>, audit: Vec<PendingAudit>) -> Result<u64> {
        let erase = move |c: &Connection, known: &mut Known| {
            let gone = records::erase(c, known, scope)?;
            records::record(c, known, &audit)?;
            Ok(gone)
        };
        self.writer.write_with(erase).await
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
}

#[async_trait]
impl Upkeep for SqliteStore {
    async fn tidy(&self) -> Result<()> {
        self.dead.store(0, Ordering::Relaxed);
        sweep(&self.writer).await
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
        owner: row.get::<_, Option<[u8; 16]>>(6)?.map(Owner::from_bytes),
    })
}
