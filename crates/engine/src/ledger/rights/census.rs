//! What whoever keeps a server running may know of it: how many sessions there are, and the newest of what was recorded.
//!
//! Counts, and nothing that was said. Easy to get wrong: whose a session is. The keys say so, not what they are found by.

use std::collections::BTreeMap;

use confidant_seal::TenantId;
use futures_util::future::BoxFuture;

use super::administrator::Administrator;
use crate::concepts::is_concepts_key;
use crate::engine::Engine;
use crate::error::Error;
use crate::ledger::account_scope::is_account_key;
use crate::ledger::audit::{Action, AuditLine};
use crate::ledger::web_scope::is_volatile;
use crate::store::AuditLane;

/// How many sessions a tenant has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// By channel, and by whether they are in memory only.
    pub sessions: BTreeMap<(String, Kept), u64>,
    /// Keys of the whole keyring that do not open. Those do not say whose they are.
    pub unreadable: u64,
}

/// Where a session is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// In the store.
    Stored,
    /// In this process's memory.
    Memory,
}

impl Engine {
    /// Counts the sessions of a tenant. It opens every key of the keyring, so it is as much work as there are sessions:
    /// nothing that somebody waits for.
    pub fn census<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Census, Error>> {
        Box::pin(async move {
            let inner = self.inner();
            let _one_at_a_time = inner.ledger.reading_through.lock().await;
            let (mut census, now) = (Census::default(), inner.ledger.now());
            let each = &mut |owned: crate::ledger::keyring::Owned| {
                let Ok(scope) = owned.scope else { return census.unreadable += 1 };
                if owned.fault.is_some() {
                    census.unreadable += 1;
                }
                let is_over = owned.row.expires_at.is_some_and(|at| at <= now);
                let is_session = !is_concepts_key(&scope) && !is_account_key(&scope) && !is_over;
                if scope.tenant() == tenant && is_session {
                    let kept = if is_volatile(&scope) { Kept::Memory } else { Kept::Stored };
                    *census.sessions.entry((scope.channel().as_str().to_owned(), kept)).or_default() += 1;
                }
            };
            inner.ledger.keyring.read_through(each).await?;
            Ok(census)
        })
    }
}

impl Administrator {
    /// The newest audit records of one tenant, oldest first, each checked against the one before it. Where a tenant has few
    /// among many, fewer than there are.
    pub fn audit_tail<'a>(
        &'a self,
        tenant: &'a TenantId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<AuditLine>, Error>> {
        Box::pin(async move {
            let ledger = &self.inner().ledger;
            let whose = ledger.keyring.tenant(tenant);
            let mut lines = Vec::new();
            for lane in ledger.store.lanes().await? {
                lines.extend(self.tail_of(lane, &whose.to_string(), limit).await?);
            }
            lines.sort_by_key(|line| (line.record.at, line.lane, line.seq));
            let lines = lines.split_off(lines.len().saturating_sub(limit));
            let note = self.note(Action::AuditViewed).within(whose).counting(lines.len() as u64);
            ledger.record(note).await?;
            Ok(lines)
        })
    }

    /// The newest of a lane that are a tenant's, newest first.
    async fn tail_of(&self, lane: AuditLane, tenant: &str, limit: usize) -> Result<Vec<AuditLine>, Error> {
        let floor = lane.floor.map_or(0, |floor| floor.seq);
        let (mut found, mut until, mut looked) = (Vec::new(), lane.head.seq, 0);
        while until > floor && found.len() < limit && looked < MOST_LOOKED_AT {
            let after = until.saturating_sub(AT_ONCE).max(floor);
            let most = usize::try_from(until - after).unwrap_or(usize::MAX);
            let page = self.audit_lane(lane.head.lane, after, most).await?;
            looked += most;
            let theirs = |line: &AuditLine| line.record.tenant.as_deref() == Some(tenant);
            found.extend(page.into_iter().rev().filter(theirs));
            until = after;
        }
        found.truncate(limit);
        Ok(found)
    }
}

const AT_ONCE: u64 = 500;
/// The most records of a lane that are looked at for a tail.
const MOST_LOOKED_AT: usize = 5000;
