//! The reference: short enough to be obviously right. The others must agree with it.

mod contexts;
mod keys;

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::{Sealed, Tag};
use parking_lot::{Mutex, MutexGuard};

use super::{
    Append, Appended, Audit, AuditHead, AuditLane, AuditPlace, Claims, Find, Instance, Known, Listed, Loaded,
    Logs, Names, Owner, PendingAudit, Result, TokenRow, Tokens, Upkeep,
};
use crate::clock::Millis;
use crate::lane::Lane;

pub use keys::MemoryKeys;

/// Everything in maps behind one lock.
#[derive(Debug, Default)]
pub struct MemoryStore {
    inner: Mutex<Inner>,
    alive: Arc<Mutex<HashSet<Instance>>>,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: BTreeMap<Tag, (Names, Loaded)>,
    audit: BTreeMap<Lane, Recorded>,
    tokens: BTreeMap<String, TokenRow>,
    kept: contexts::Kept,
}

/// An audit lane: what comes after its floor.
#[derive(Debug, Default)]
struct Recorded {
    floor: Option<AuditHead>,
    records: Vec<Sealed>,
}

impl Recorded {
    fn head(&self, lane: Lane) -> Option<AuditHead> {
        match self.records.last() {
            Some(last) => {
                Some(AuditHead { lane, seq: self.start() + self.records.len() as u64, tag: last.tag()? })
            }
            None => self.floor,
        }
    }

    fn start(&self) -> u64 {
        self.floor.map_or(0, |floor| floor.seq)
    }
}

impl Inner {
    fn record(&mut self, audit: &[PendingAudit]) -> Option<AuditHead> {
        let lane = self.audit.entry(Lane::ZERO).or_default();
        for pending in audit {
            let place = lane.head(Lane::ZERO).map_or(AuditPlace::first(Lane::ZERO), AuditHead::next);
            lane.records.push(pending.link(place));
        }
        lane.head(Lane::ZERO).filter(|_| !audit.is_empty())
    }
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

#[async_trait]
impl Logs for MemoryStore {
    async fn load(&self, scope: Tag, _: Option<Known<'_>>) -> Result<Option<Loaded>> {
        Ok(self.lock().sessions.get(&scope).map(|(_, loaded)| loaded.clone()))
    }

    async fn append(&self, append: Append) -> Result<Appended> {
        let mut inner = self.lock();
        let fresh = Loaded {
            version: 0,
            kid: append.kid,
            expires_at: None,
            owner: None,
            snapshot: None,
            entries: Vec::new(),
        };
        let mut loaded = match inner.sessions.get(&append.names.scope) {
            Some((_, loaded)) => loaded.clone(),
            None => fresh,
        };
        if loaded.version != append.expected || loaded.kid != append.kid {
            return Ok(Appended::Conflict);
        }
        for sealed in append.entries {
            loaded.version += 1;
            loaded.entries.push((loaded.version, sealed));
        }
        if let Some((covers, sealed)) = append.snapshot {
            loaded.entries.retain(|(seq, _)| *seq > covers);
            loaded.snapshot = Some((covers, sealed));
        }
        loaded.expires_at = append.expires_at;
        loaded.owner = append.owner;
        inner.sessions.insert(append.names.scope, (append.names, loaded));
        inner.record(&append.audit);
        Ok(Appended::Done)
    }

    async fn erase(&self, scope: Tag, _: Option<Known<'_>>, audit: Vec<PendingAudit>) -> Result<u64> {
        let mut inner = self.lock();
        let gone = inner.sessions.remove(&scope);
        inner.record(&audit);
        Ok(gone.map_or(0, |(_, l)| l.entries.len() as u64 + u64::from(l.snapshot.is_some())))
    }

    async fn list(&self, find: Find, after: Option<Tag>, limit: usize) -> Result<Vec<Listed>> {
        let inner = self.lock();
        let all = inner.sessions.values().filter(|(names, _)| match find {
            Find::All => true,
            Find::Tenant(tag) => names.tenant == tag,
            Find::Person { tenant, person } => (names.tenant, names.person) == (tenant, person),
        });
        let listed =
            all.filter(|(names, _)| after.is_none_or(|after| names.scope > after)).map(|(names, l)| Listed {
                names: *names,
                kid: l.kid,
                version: l.version,
                expires_at: l.expires_at,
                owner: l.owner,
            });
        Ok(listed.take(limit).collect())
    }

    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>> {
        let inner = self.lock();
        let over = inner.sessions.iter().filter(|(_, (_, l))| l.expires_at.is_some_and(|at| at <= now));
        Ok(over.map(|(tag, _)| *tag).take(limit).collect())
    }
}

#[async_trait]
impl Claims for MemoryStore {
    async fn orphans(&self) -> Result<Vec<(Tag, Owner)>> {
        let alive = self.alive.lock().clone();
        let inner = self.lock();
        let open = inner.sessions.iter().filter_map(|(tag, (_, l))| Some((*tag, l.owner?)));
        let is_alive = |owner: Owner| owner.instance().is_some_and(|instance| alive.contains(&instance));
        Ok(open.filter(|(_, owner)| !is_alive(*owner)).collect())
    }

    async fn claim(&self, scope: Tag, from: Owner, to: Instance) -> Result<bool> {
        let mut inner = self.lock();
        match inner.sessions.get_mut(&scope) {
            Some((_, loaded)) if loaded.owner == Some(from) => {
                loaded.owner = Some(to.into());
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn enlist(&self, instance: Instance) -> Result<Box<dyn Any + Send + Sync>> {
        self.alive.lock().insert(instance);
        Ok(Box::new(Enlisted { instance, alive: Arc::clone(&self.alive) }))
    }

    async fn resign(&self, _: Instance) -> Result<()> {
        Ok(())
    }

    async fn is_alive(&self, instance: Instance) -> Result<bool> {
        Ok(self.alive.lock().contains(&instance))
    }

    async fn others_alive(&self, than: Instance) -> Result<bool> {
        let alive = self.alive.lock();
        Ok(alive.iter().any(|instance| *instance != than))
    }
}

/// Takes the instance off the list of the living when it goes.
struct Enlisted {
    instance: Instance,
    alive: Arc<Mutex<HashSet<Instance>>>,
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        self.alive.lock().remove(&self.instance);
    }
}

#[async_trait]
impl Audit for MemoryStore {
    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>> {
        Ok(self.lock().record(&audit))
    }

    async fn lanes(&self) -> Result<Vec<AuditLane>> {
        let inner = self.lock();
        let lanes = inner.audit.iter().filter_map(|(lane, recorded)| {
            Some(AuditLane { head: recorded.head(*lane)?, floor: recorded.floor, until: None })
        });
        Ok(lanes.collect())
    }

    async fn adopt(&self, lane: Lane, before: Option<AuditHead>, records: Vec<Sealed>) -> Result<()> {
        let mut inner = self.lock();
        let lane = inner.audit.entry(lane).or_insert_with(|| Recorded { floor: before, records: Vec::new() });
        lane.records.extend(records);
        Ok(())
    }

    async fn audit(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>> {
        let inner = self.lock();
        let Some(lane) = inner.audit.get(&lane) else { return Ok(Vec::new()) };
        let records = (lane.start() + 1..).zip(lane.records.iter().cloned());
        Ok(records.filter(|(seq, _)| *seq > after).take(limit).collect())
    }
}

#[async_trait]
impl Tokens for MemoryStore {
    async fn add_token(&self, row: TokenRow, audit: Vec<PendingAudit>) -> Result<()> {
        let mut inner = self.lock();
        inner.tokens.insert(row.id.clone(), row);
        inner.record(&audit);
        Ok(())
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        Ok(self.lock().tokens.values().cloned().collect())
    }

    async fn token(&self, hash: [u8; 32]) -> Result<Option<TokenRow>> {
        Ok(self.lock().tokens.values().find(|row| row.hash == hash).cloned())
    }

    async fn remove_token(&self, hash: [u8; 32], audit: Vec<PendingAudit>) -> Result<u64> {
        let mut inner = self.lock();
        let before = inner.tokens.len();
        inner.tokens.retain(|_, row| row.hash != hash);
        inner.record(&audit);
        Ok((before - inner.tokens.len()) as u64)
    }
}

#[async_trait]
impl Upkeep for MemoryStore {
    async fn scrub(&self) -> Result<()> {
        Ok(())
    }

    async fn check(&self) -> Result<String> {
        Ok("memory".to_owned())
    }
}
