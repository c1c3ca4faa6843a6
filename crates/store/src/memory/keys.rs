//! The keyring in maps: the reference.

use std::collections::BTreeMap;

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};
use parking_lot::{Mutex, MutexGuard};

use crate::clock::Millis;
use crate::lane::Lane;
use crate::{Anchor, Anchors, Created, DataKeys, KeyRow, LaneAnchor, Result, Rotation, SystemKeys, Upkeep};

/// The keyring in maps behind one lock.
#[derive(Debug, Default)]
pub struct MemoryKeys {
    inner: Mutex<KeysInner>,
}

#[derive(Debug, Default)]
struct KeysInner {
    root: Option<Kid>,
    named: BTreeMap<String, (Kid, Sealed)>,
    rows: BTreeMap<Tag, KeyRow>,
    lanes: BTreeMap<(Lane, Option<Millis>), u64>,
}

impl MemoryKeys {
    /// Whether there is a key of this session.
    pub(crate) fn has(&self, scope: Tag) -> bool {
        self.lock().rows.contains_key(&scope)
    }

    fn lock(&self) -> MutexGuard<'_, KeysInner> {
        self.inner.lock()
    }
}

#[async_trait]
impl SystemKeys for MemoryKeys {
    async fn root(&self) -> Result<Option<Kid>> {
        Ok(self.lock().root)
    }

    async fn set_root(&self, from: Option<Kid>, to: Kid) -> Result<bool> {
        let mut inner = self.lock();
        let same = inner.root == from;
        if same {
            inner.root = Some(to);
        }
        Ok(same)
    }

    async fn named(&self, name: &str) -> Result<Option<(Kid, Sealed)>> {
        Ok(self.lock().named.get(name).cloned())
    }

    async fn put_named(&self, name: &str, from: Option<&Sealed>, root: Kid, to: &Sealed) -> Result<bool> {
        let mut inner = self.lock();
        let same = inner.named.get(name).map(|(_, sealed)| sealed) == from;
        if same {
            inner.named.insert(name.to_owned(), (root, to.clone()));
        }
        Ok(same)
    }
}

#[async_trait]
impl DataKeys for MemoryKeys {
    async fn get(&self, scope: Tag) -> Result<Option<KeyRow>> {
        Ok(self.lock().rows.get(&scope).cloned())
    }

    async fn create(&self, row: KeyRow) -> Result<Created> {
        let mut inner = self.lock();
        if let Some(existing) = inner.rows.get(&row.scope) {
            return Ok(Created::Existing(existing.clone()));
        }
        match inner.root {
            Some(root) if root != row.root => Ok(Created::RootChanged(root)),
            _ => {
                inner.rows.insert(row.scope, row);
                Ok(Created::New)
            }
        }
    }

    async fn destroy(&self, scopes: &[Tag]) -> Result<u64> {
        let mut inner = self.lock();
        Ok(scopes.iter().filter(|tag| inner.rows.remove(tag).is_some()).count() as u64)
    }

    async fn list(&self, after: Option<Tag>, limit: usize) -> Result<Vec<KeyRow>> {
        let inner = self.lock();
        let rows = inner.rows.values().filter(|row| after.is_none_or(|after| row.scope > after));
        Ok(rows.take(limit).cloned().collect())
    }

    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>> {
        let inner = self.lock();
        let over = inner.rows.values().filter(|row| row.expires_at.is_some_and(|at| at <= now));
        Ok(over.map(|row| row.scope).take(limit).collect())
    }
}

#[async_trait]
impl Rotation for MemoryKeys {
    async fn not_under(&self, root: Kid, limit: usize) -> Result<Vec<KeyRow>> {
        Ok(self.lock().rows.values().filter(|row| row.root != root).take(limit).cloned().collect())
    }

    async fn count(&self, root: Kid) -> Result<(u64, u64)> {
        let inner = self.lock();
        let others = inner.rows.values().filter(|row| row.root != root).count();
        Ok((inner.rows.len() as u64, others as u64))
    }

    async fn rewrap(&self, rows: Vec<(KeyRow, KeyRow)>) -> Result<u64> {
        let mut inner = self.lock();
        let mut changed = 0;
        for (from, to) in rows {
            if let Some(row) = inner.rows.get_mut(&from.scope)
                && row.sealed_key == from.sealed_key
            {
                *row = KeyRow { anchor: row.anchor, expires_at: row.expires_at, ..to };
                changed += 1;
            }
        }
        Ok(changed)
    }
}

#[async_trait]
impl Anchors for MemoryKeys {
    async fn anchor(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()> {
        let mut inner = self.lock();
        for anchor in logs {
            if let Some(row) = inner.rows.get_mut(&anchor.scope)
                && row.kid == anchor.kid
                && row.anchor <= anchor.version
            {
                row.anchor = anchor.version;
                row.expires_at = anchor.expires_at;
            }
        }
        for anchor in lanes {
            let seq = inner.lanes.entry((anchor.lane, anchor.until)).or_default();
            *seq = anchor.seq.max(*seq);
        }
        Ok(())
    }

    async fn reset_anchors(&self, logs: &[Anchor], lanes: &[LaneAnchor]) -> Result<()> {
        let mut inner = self.lock();
        for anchor in logs {
            if let Some(row) = inner.rows.get_mut(&anchor.scope)
                && row.kid == anchor.kid
            {
                row.anchor = anchor.version;
            }
        }
        inner.lanes = lanes.iter().map(|anchor| ((anchor.lane, anchor.until), anchor.seq)).collect();
        Ok(())
    }

    async fn lane_anchors(&self) -> Result<Vec<LaneAnchor>> {
        let inner = self.lock();
        Ok(inner
            .lanes
            .iter()
            .map(|((lane, until), seq)| LaneAnchor { lane: *lane, until: *until, seq: *seq })
            .collect())
    }
}

#[async_trait]
impl Upkeep for MemoryKeys {
    async fn scrub(&self) -> Result<()> {
        Ok(())
    }

    async fn check(&self) -> Result<String> {
        Ok("memory".to_owned())
    }
}
