//! Contexts and the capture log in maps: the reference.

use std::collections::BTreeMap;

use async_trait::async_trait;
use confidant_seal::Tag;

use super::MemoryStore;
use crate::clock::Millis;
use crate::contexts::{
    CaptureRow, CapturesOf, ContextRow, ContextUpkeep, Contexts, ConversationName, Put, PutContext,
    WholeContext,
};
use crate::{PendingAudit, Result};

/// What is kept of conversations.
#[derive(Debug, Default)]
pub(super) struct Kept {
    contexts: BTreeMap<ConversationName, ContextRow>,
    captures: BTreeMap<(ConversationName, Tag), CaptureRow>,
}

#[async_trait]
impl Contexts for MemoryStore {
    async fn context(&self, name: ConversationName) -> Result<Option<ContextRow>> {
        Ok(self.lock().kept.contexts.get(&name).cloned())
    }

    async fn put_context(&self, put: PutContext) -> Result<Put> {
        let mut inner = self.lock();
        let seen = inner.kept.contexts.get(&put.name);
        let fits = match seen {
            None => put.expected == 0,
            Some(row) => row.version == put.expected && row.kid == put.kid,
        };
        if !fits {
            return Ok(Put::Conflict);
        }
        if put.capture.as_ref().is_some_and(|row| inner.kept.captures.contains_key(&(row.name, row.request)))
        {
            return Ok(Put::Known);
        }
        let row = ContextRow {
            version: put.expected + 1,
            kid: put.kid,
            content: put.content,
            updated_at: put.updated_at,
            archived_at: put.archived_at,
        };
        inner.kept.contexts.insert(put.name, row);
        if let Some(whose) = put.forget {
            let goes = |row: &CaptureRow| row.scope == whose || row.request == whose;
            inner.kept.captures.retain(|(name, _), row| *name != put.name || !goes(row));
        }
        if let Some(row) = put.capture {
            inner.kept.captures.insert((row.name, row.request), row);
        }
        inner.record(&put.audit);
        Ok(Put::Done)
    }

    async fn captures(&self, of: CapturesOf) -> Result<Vec<CaptureRow>> {
        let inner = self.lock();
        let wanted = inner.kept.captures.values().filter(|row| match of {
            CapturesOf::Conversation(name) => row.name == name,
            CapturesOf::Session(scope) => row.scope == scope,
            CapturesOf::SessionOf { tenant, scope } => (row.name.tenant, row.scope) == (tenant, scope),
            CapturesOf::Tenant(tenant) => row.name.tenant == tenant,
        });
        let mut wanted: Vec<CaptureRow> = wanted.cloned().collect();
        wanted.sort_by_key(|row| (row.at, row.request));
        Ok(wanted)
    }

    async fn erase_context(&self, name: ConversationName, audit: Vec<PendingAudit>) -> Result<u64> {
        let mut inner = self.lock();
        let before = inner.kept.captures.len();
        inner.kept.contexts.remove(&name);
        inner.kept.captures.retain(|(of, _), _| *of != name);
        inner.record(&audit);
        Ok((before - inner.kept.captures.len()) as u64)
    }

    async fn idle_contexts(&self, before: Millis, limit: usize) -> Result<Vec<ConversationName>> {
        let inner = self.lock();
        let contexts = inner.kept.contexts.iter();
        let idle = contexts.filter(|(_, row)| row.archived_at.is_none() && row.updated_at < before);
        let mut idle: Vec<_> = idle.map(|(name, row)| (row.updated_at, *name)).collect();
        idle.sort_unstable();
        Ok(idle.into_iter().map(|(_, name)| name).take(limit).collect())
    }

    async fn adopt_context(
        &self,
        name: ConversationName,
        whole: WholeContext,
        _expires_at: Option<Millis>,
    ) -> Result<()> {
        let kept = &mut self.lock().kept;
        kept.contexts.insert(name, whole.row);
        kept.captures.retain(|(of, _), _| *of != name);
        kept.captures.extend(whole.captures.into_iter().map(|row| ((name, row.request), row)));
        Ok(())
    }
}

impl ContextUpkeep for MemoryStore {}
