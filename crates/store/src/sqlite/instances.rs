//! Which engines are alive on this data folder: each holds a lock on a file of its own, which the operating system
//! lets go of when the process ends, however it ends. And whose turns are open.

use std::any::Any;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use confidant_seal::Tag;
use rusqlite::{Connection, params};

use super::data::SqliteStore;
use super::records::Known;
use super::{Result, tag_at};
use crate::error::StoreError;
use crate::{Claims, Instance, Owner};

#[async_trait]
impl Claims for SqliteStore {
    async fn orphans(&self) -> Result<Vec<(Tag, Owner)>> {
        let open = |c: &Connection| {
            let mut statement =
                c.prepare_cached("SELECT scope_tag, owner FROM sessions WHERE owner IS NOT NULL")?;
            let rows =
                statement.query_map([], |row| Ok((tag_at(row, 0)?, Owner::from_bytes(row.get(1)?))))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let open = self.readers.read(open).await?;
        let is_alive =
            |owner: Owner| owner.instance().is_some_and(|instance| self.instances.is_alive(instance));
        Ok(open.into_iter().filter(|(_, owner)| !is_alive(*owner)).collect())
    }

    async fn claim(&self, scope: Tag, from: Owner, to: Instance) -> Result<bool> {
        let claim = move |c: &Connection, known: &mut Known| {
            known.forget(scope);
            let sql = "UPDATE sessions SET owner = ?3 WHERE scope_tag = ?1 AND owner = ?2";
            Ok(c.prepare_cached(sql)?.execute(params![scope.as_bytes(), from.to_bytes(), to.0])? == 1)
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
}

#[derive(Clone, Debug)]
pub(super) struct Instances {
    folder: PathBuf,
}

impl Instances {
    /// Opens the folder and clears away what the dead left behind.
    pub(super) fn open(folder: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&folder).map_err(|_| StoreError::ReadOnly)?;
        for entry in std::fs::read_dir(&folder).map_err(|_| StoreError::ReadOnly)?.flatten() {
            if !is_locked(&entry.path()) {
                // Losing this race only leaves an empty file for the next start.
                let _ = std::fs::remove_file(entry.path());
            }
        }
        Ok(Self { folder })
    }

    pub(super) fn enlist(&self, instance: Instance) -> Result<Enlisted> {
        let path = self.path(instance);
        loop {
            let file = File::create(&path).map_err(|_| StoreError::ReadOnly)?;
            // Waits for those who only look whether somebody holds it.
            file.lock().map_err(|_| StoreError::Busy)?;
            // Somebody may have cleared it away before it was held; now nobody does.
            if path.exists() {
                return Ok(Enlisted { _file: file, path });
            }
        }
    }

    pub(super) fn is_alive(&self, instance: Instance) -> bool {
        is_locked(&self.path(instance))
    }

    pub(super) fn others_alive(&self, than: Instance) -> Result<bool> {
        let own = self.path(than);
        let entries = std::fs::read_dir(&self.folder).map_err(|_| StoreError::ReadOnly)?;
        Ok(entries.flatten().map(|entry| entry.path()).any(|path| path != own && is_locked(&path)))
    }

    fn path(&self, instance: Instance) -> PathBuf {
        self.folder.join(format!("{}.lock", Tag::from_bytes(instance.0)))
    }
}

/// The lock, for as long as the engine lives.
#[derive(Debug)]
pub(super) struct Enlisted {
    _file: File,
    path: PathBuf,
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_locked(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
