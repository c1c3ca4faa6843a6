//! Sessions that never touch a disk, beside a store that keeps the others.
//!
//! ```text
//!  engine ──▶ BesideStore ──┬── a marked session ──▶ maps of this process
//!             BesideKeys    └── everything else ───▶ the store that was opened (its audit log has both)
//! ```
//!
//! A session is marked for as long as somebody has its [`Mark`], or anything of it is here. The engine marks it when it makes a
//! handle, so there is no handle by which such a session could be written anywhere else. What happened is in the audit log like
//! everything, without content; data and key end with the process.
//!
//! Easy to get wrong: unmarking. A session that is over may still have a handle, and whoever has it may write.

mod keys;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use confidant_seal::{Sealed, Tag};
use parking_lot::Mutex;

use super::contexts::{
    CaptureRow, CapturesOf, ContextRow, ContextUpkeep, Contexts, ConversationName, Put, PutContext,
    WholeContext,
};
use super::memory::{MemoryKeys, MemoryStore};
use super::{
    Append, Appended, Audit, AuditHead, AuditLane, Claims, Find, Instance, Known, Listed, Loaded, Logs,
    NameSealer, Naming, Owner, PendingAudit, Result, Store, StoreError, TokenRow, Tokens, Upkeep,
};
use crate::clock::Millis;
use crate::lane::Lane;

pub use keys::BesideKeys;

/// What is kept in this process only.
#[derive(Debug, Default)]
pub struct Volatile {
    store: MemoryStore,
    keys: MemoryKeys,
    marked: Mutex<HashMap<Tag, Weak<Mark>>>,
    /// Sealed bytes of each session.
    sizes: Mutex<HashMap<Tag, usize>>,
    /// Whether there ever was one: most installations have none, and ask nothing more.
    used: AtomicBool,
}

/// That a session is kept in memory; for as long as this is held, whatever becomes of the session.
#[derive(Debug)]
pub struct Mark {
    scope: Tag,
    of: Weak<Volatile>,
}

impl Drop for Mark {
    fn drop(&mut self) {
        if let Some(of) = self.of.upgrade() {
            let mut marked = of.marked.lock();
            // Somebody may have marked it anew in between.
            if marked.get(&self.scope).is_some_and(|mark| mark.strong_count() == 0) {
                marked.remove(&self.scope);
            }
        }
    }
}

impl Volatile {
    /// From now on this session is kept here, until the last of its marks goes and nothing of it is left.
    pub fn mark(self: &Arc<Self>, scope: Tag) -> Arc<Mark> {
        self.used.store(true, Ordering::Release);
        let mut marked = self.marked.lock();
        if let Some(mark) = marked.get(&scope).and_then(Weak::upgrade) {
            return mark;
        }
        let mark = Arc::new(Mark { scope, of: Arc::downgrade(self) });
        marked.insert(scope, Arc::downgrade(&mark));
        mark
    }

    /// Whether a session is kept here.
    pub fn has(&self, scope: Tag) -> bool {
        if !self.used.load(Ordering::Acquire) {
            return false;
        }
        let marked = self.marked.lock().get(&scope).is_some_and(|mark| mark.strong_count() > 0);
        marked || self.sizes.lock().contains_key(&scope) || self.keys.has(scope)
    }

    /// Notes what a write adds, if there is room for it.
    fn grow(&self, append: &Append) -> Result<usize> {
        let size = |sealed: &Sealed| sealed.as_bytes().len();
        let added: usize = append.entries.iter().map(size).sum();
        let folded = append.snapshot.as_ref().map(|(_, sealed)| size(sealed));
        let mut sizes = self.sizes.lock();
        let before = sizes.get(&append.names.scope).copied().unwrap_or_default();
        let after = folded.unwrap_or(before + added);
        let all: usize = sizes.values().sum();
        if after > before && all - before + after > MOST_BYTES {
            return Err(StoreError::Full);
        }
        sizes.insert(append.names.scope, after);
        Ok(before)
    }

    fn shrink(&self, scope: Tag, to: usize) {
        let mut sizes = self.sizes.lock();
        if to == 0 {
            sizes.remove(&scope);
        } else {
            sizes.insert(scope, to);
        }
    }
}

/// Sealed bytes of all sessions together: a process that keeps more of them has no memory left for answers.
const MOST_BYTES: usize = 256 << 20;

/// A store, with the sessions that it must not have beside it.
#[derive(Debug)]
pub struct BesideStore {
    kept: Arc<dyn Store>,
    volatile: Arc<Volatile>,
}

impl BesideStore {
    pub fn new(kept: Arc<dyn Store>, volatile: Arc<Volatile>) -> Self {
        Self { kept, volatile }
    }
}

#[async_trait]
impl Logs for BesideStore {
    async fn load(&self, scope: Tag, known: Option<Known<'_>>) -> Result<Option<Loaded>> {
        if self.volatile.has(scope) {
            return self.volatile.store.load(scope, known).await;
        }
        self.kept.load(scope, known).await
    }

    async fn append(&self, mut append: Append) -> Result<Appended> {
        let scope = append.names.scope;
        if !self.volatile.has(scope) {
            return self.kept.append(append).await;
        }
        let audit = std::mem::take(&mut append.audit);
        let before = self.volatile.grow(&append)?;
        let appended = self.volatile.store.append(append).await?;
        if appended == Appended::Conflict {
            self.volatile.shrink(scope, before);
        } else if !audit.is_empty() {
            self.kept.record(audit).await?;
        }
        Ok(appended)
    }

    async fn erase(&self, scope: Tag, known: Option<Known<'_>>, audit: Vec<PendingAudit>) -> Result<u64> {
        if !self.volatile.has(scope) {
            return self.kept.erase(scope, known, audit).await;
        }
        let gone = self.volatile.store.erase(scope, known, Vec::new()).await?;
        self.volatile.shrink(scope, 0);
        if !audit.is_empty() {
            self.kept.record(audit).await?;
        }
        Ok(gone)
    }

    async fn list(&self, find: Find, after: Option<Tag>, limit: usize) -> Result<Vec<Listed>> {
        let mut listed = self.kept.list(find, after, limit).await?;
        listed.extend(self.volatile.store.list(find, after, limit).await?);
        listed.sort_by_key(|one| one.names.scope);
        listed.truncate(limit);
        Ok(listed)
    }

    async fn is_empty(&self) -> Result<bool> {
        self.kept.is_empty().await
    }

    async fn expired(&self, now: Millis, limit: usize) -> Result<Vec<Tag>> {
        let mut expired = self.volatile.store.expired(now, limit).await?;
        if expired.len() < limit {
            expired.extend(self.kept.expired(now, limit - expired.len()).await?);
        }
        Ok(expired)
    }

    fn naming(&self) -> Naming {
        self.kept.naming()
    }

    fn introduce(&self, names: NameSealer) {
        self.kept.introduce(names);
    }
}

#[async_trait]
impl Claims for BesideStore {
    async fn orphans(&self) -> Result<Vec<(Tag, Owner)>> {
        let mut orphans = self.kept.orphans().await?;
        orphans.extend(self.volatile.store.orphans().await?);
        Ok(orphans)
    }

    async fn claim(&self, scope: Tag, from: Owner, to: Instance) -> Result<bool> {
        if self.volatile.has(scope) {
            return self.volatile.store.claim(scope, from, to).await;
        }
        self.kept.claim(scope, from, to).await
    }

    async fn enlist(&self, instance: Instance) -> Result<Box<dyn Any + Send + Sync>> {
        let here = self.volatile.store.enlist(instance).await?;
        Ok(Box::new((self.kept.enlist(instance).await?, here)))
    }

    async fn resign(&self, instance: Instance) -> Result<()> {
        self.kept.resign(instance).await
    }

    async fn is_alive(&self, instance: Instance) -> Result<bool> {
        self.kept.is_alive(instance).await
    }

    async fn others_alive(&self, than: Instance) -> Result<bool> {
        self.kept.others_alive(than).await
    }
}

#[async_trait]
impl Audit for BesideStore {
    async fn record(&self, audit: Vec<PendingAudit>) -> Result<Option<AuditHead>> {
        self.kept.record(audit).await
    }

    async fn lanes(&self) -> Result<Vec<AuditLane>> {
        self.kept.lanes().await
    }

    async fn adopt(&self, lane: Lane, before: Option<AuditHead>, records: Vec<Sealed>) -> Result<()> {
        self.kept.adopt(lane, before, records).await
    }

    async fn audit(&self, lane: Lane, after: u64, limit: usize) -> Result<Vec<(u64, Sealed)>> {
        self.kept.audit(lane, after, limit).await
    }

    async fn drop_audit(&self, lane: Lane, until: u64) -> Result<()> {
        self.kept.drop_audit(lane, until).await
    }
}

#[async_trait]
impl Tokens for BesideStore {
    async fn add_token(&self, row: TokenRow, audit: Vec<PendingAudit>) -> Result<()> {
        self.kept.add_token(row, audit).await
    }

    async fn tokens(&self) -> Result<Vec<TokenRow>> {
        self.kept.tokens().await
    }

    async fn token(&self, hash: [u8; 32]) -> Result<Option<TokenRow>> {
        self.kept.token(hash).await
    }

    async fn remove_token(&self, hash: [u8; 32], audit: Vec<PendingAudit>) -> Result<u64> {
        self.kept.remove_token(hash, audit).await
    }
}

#[async_trait]
impl Contexts for BesideStore {
    async fn context(&self, name: ConversationName) -> Result<Option<ContextRow>> {
        self.kept.context(name).await
    }

    async fn put_context(&self, put: PutContext) -> Result<Put> {
        self.kept.put_context(put).await
    }

    async fn captures(&self, of: CapturesOf) -> Result<Vec<CaptureRow>> {
        self.kept.captures(of).await
    }

    async fn erase_context(&self, name: ConversationName, audit: Vec<PendingAudit>) -> Result<u64> {
        self.kept.erase_context(name, audit).await
    }

    async fn idle_contexts(&self, before: Millis, limit: usize) -> Result<Vec<ConversationName>> {
        self.kept.idle_contexts(before, limit).await
    }

    async fn adopt_context(
        &self,
        name: ConversationName,
        whole: WholeContext,
        expires_at: Option<Millis>,
    ) -> Result<()> {
        self.kept.adopt_context(name, whole, expires_at).await
    }
}

#[async_trait]
impl ContextUpkeep for BesideStore {
    async fn prolong_context(&self, name: ConversationName, expires_at: Option<Millis>) -> Result<()> {
        self.kept.prolong_context(name, expires_at).await
    }

    fn may_lose_contexts(&self) -> bool {
        self.kept.may_lose_contexts()
    }

    async fn find_again(&self, name: ConversationName) -> Result<()> {
        self.kept.find_again(name).await
    }
}

#[async_trait]
impl Upkeep for BesideStore {
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
