//! The keyring with the keys of sessions that are kept in memory beside it. Root and named keys are the keyring's own.

use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};

use super::Volatile;
use crate::clock::Millis;
use crate::{
    Anchor, Anchors, Created, DataKeys, KeyRow, KeyStore, LaneAnchor, Result, Rotation, SystemKeys, Upkeep,
};

/// A keyring, with the keys that it must not have beside it.
#[derive(Debug)]
pub struct BesideKeys {
    kept: Arc<dyn KeyStore>,
    volatile: Arc<Volatile>,
}

impl BesideKeys {
    pub fn new(kept: Arc<dyn KeyStore>, volatile: Arc<Volatile>) -> Self {
        Self { kept, volatile }
    }

    /// Those that are kept here, and the others.
    fn parted<T: Clone>(&self, all: &[T], scope: impl Fn(&T) -> Tag) -> (Vec<T>, Vec<T>) {
        all.iter().cloned().partition(|one| self.volatile.has(scope(one)))
    }
}

#[async_trait]
impl SystemKeys for BesideKeys {
    async fn root(&self) -> Result<Option<Kid>> {
        self.kept.root().await
    }

    async fn set_root(&self, from: Option<Kid>, to: Kid) -> Result<bool> {
        self.kept.set_root(from, to).await
    }

    async fn named(&self, name: &str) -> Result<Option<(Kid, Sealed)>> {
        self.kept.named(name).await
    }

    async fn put_named(&self, name: &str, from: Option<&Sealed>, root: Kid, to: &Sealed) -> Result<bool> {
        self.kept.put_named(name, from, root, to).await
    }
}

#[async_trait]
impl DataKeys for BesideKeys {
    async fn get(&self, scope: Tag) -> Result<Option<KeyRow>> {
        if self.volatile.has(scope) {
            return self.volatile.keys.get(scope).await;
        }
        self.kept.get(scope).await
    }

    async fn create(&self, row: KeyRow) -> Result<Created> {
        if !self.volatile.has(row.scope) {
            return self.kept.create(row).await;
        }
        // As the keyring has it: a key under a root that is gone could not be opened again.
        match self.kept.root().await? {
            Some(root) if root != row.root => Ok(Created::RootChanged(root)),
            _ => self.volatile.keys.create(row).await,
        }
    }

    async fn destroy(&self, scopes: &[Tag]) -> Result<u64> {
        let (here, kept) = self.parted(scopes, |scope| *scope);
        let mut gone = self.volatile.keys.destroy(&here).await?;
        if !kept.is_empty() {
            gone += self.kept.destroy(&kept).await?;
        }
        Ok(gone)
    }

    async fn list(&self, after: Option<Tag>, limit: usize) -> Result<Vec<KeyRow>> {
        let mut rows = self.kept.list(after, limit).await?;
        rows.extend(self.volatile.keys.list(after, limit).await?);
        rows.sort_by_key(|row| row.scope);
        rows.truncate(limit);
        Ok(rows)
    }

    async fn unlisted(&self) -> Result<Vec<KeyRow>> {
        self.kept.unlisted().await
    }

    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>> {
        let mut expired = self.volatile.keys.expired(now, limit).await?;
        if expired.len() < limit {
            expired.extend(self.kept.expired(now, limit - expired.len()).await?);
        }
        Ok(expired)
    }
}

#[async_trait]
impl Rotation for BesideKeys {
    async fn not_under(&self, root: Kid, limit: usize) -> Result<Vec<KeyRow>> {
        let mut rows = self.volatile.keys.not_under(root, limit).await?;
        if rows.len() < limit {
            rows.extend(self.kept.not_under(root, limit - rows.len()).await?);
        }
        Ok(rows)
    }

    async fn count(&self, root: Kid) -> Result<(u64, u64)> {
        let (kept, here) = (self.kept.count(root).await?, self.volatile.keys.count(root).await?);
        Ok((kept.0 + here.0, kept.1 + here.1))
    }

    async fn rewrap(&self, rows: Vec<(KeyRow, KeyRow)>) -> Result<u64> {
        let (here, kept) = self.parted(&rows, |(row, _)| row.scope);
        let mut changed = self.volatile.keys.rewrap(here).await?;
        if !kept.is_empty() {
            changed += self.kept.rewrap(kept).await?;
        }
        Ok(changed)
    }
}

#[async_trait]
impl Anchors for BesideKeys {
    async fn anchor(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()> {
        let (here, kept) = self.parted(logs, |anchor| anchor.scope);
        self.volatile.keys.anchor(&here, &[]).await?;
        if kept.is_empty() && lanes.is_empty() {
            return Ok(());
        }
        self.kept.anchor(&kept, lanes).await
    }

    async fn reset_anchors(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()> {
        let (here, kept) = self.parted(logs, |anchor| anchor.scope);
        self.volatile.keys.reset_anchors(&here, &[]).await?;
        self.kept.reset_anchors(&kept, lanes).await
    }

    async fn lane_anchors(&self) -> Result<Vec<LaneAnchor>> {
        self.kept.lane_anchors().await
    }
}

#[async_trait]
impl Upkeep for BesideKeys {
    async fn tidy(&self) -> Result<()> {
        self.kept.tidy().await
    }

    async fn scrub(&self) -> Result<()> {
        self.kept.scrub().await
    }

    async fn check(&self) -> Result<String> {
        self.kept.check().await
    }

    fn writable(&self) -> Result<()> {
        self.kept.writable()
    }
}
