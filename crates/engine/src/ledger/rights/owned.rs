//! What is somebody's: told by what is sealed, not by what is found under their tag.
//!
//! Tags are there to find things quickly, and whoever can write to a store can change them. A copy or an end of everything
//! that is kept of a person must be all of theirs and nothing else, so every key is asked whose it is. That is as much work as
//! there are sessions, which is why it is done for these two, one at a time, and for nothing that a turn waits for.

use std::sync::Arc;

use confidant_seal::{Scope, Tag, TenantId, UserId};

use crate::concepts::is_conversation;
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::account_scope::is_account_key;
use crate::store::{Find, Listed, Names};

/// The sessions of a person in a tenant.
#[derive(Debug, Default)]
pub(super) struct Theirs {
    /// Those whose keys say so.
    pub(super) scopes: Vec<Scope>,
    /// Keys of an account and its chats, which no session belongs to.
    pub(super) account: Vec<Scope>,
    /// Those that lie under the person's tag and have no key any more: nothing opens them, whosever they were.
    pub(super) without_key: Vec<Names>,
    /// How many lie under the person's tag with a key that does not say whose it is. They are left as they are: it may be
    /// another's. What of it is the person's does not open after their erasure, whose mark is younger.
    pub(super) unsaid: usize,
}

impl Theirs {
    pub(super) fn len(&self) -> u64 {
        (self.scopes.len() + self.without_key.len()) as u64
    }

    pub(super) fn names(&self, inner: &Inner) -> Vec<Names> {
        let known = self.scopes.iter().chain(&self.account).map(|scope| inner.ledger.keyring.names(scope));
        known.chain(self.without_key.iter().copied()).collect()
    }
}

/// All sessions of a person, and only theirs.
pub(super) async fn all_of(inner: &Arc<Inner>, tenant: &TenantId, user: &UserId) -> Result<Theirs, Error> {
    let _one_at_a_time = inner.ledger.reading_through.lock().await;
    let (mut theirs, mut keys, mut unsaid) = (Theirs::default(), Vec::<Tag>::new(), Vec::<Tag>::new());
    inner
        .ledger
        .keyring
        .read_through(&mut |owned| {
            keys.push(owned.row.scope);
            let Ok(scope) = owned.scope else { return unsaid.push(owned.row.scope) };
            if scope.tenant() == tenant && scope.user() == user && !is_conversation(&scope) {
                let of = if is_account_key(&scope) { &mut theirs.account } else { &mut theirs.scopes };
                of.push(scope);
            }
        })
        .await?;
    keys.sort_unstable();
    let (tenant, person) = (inner.ledger.keyring.tenant(tenant), inner.ledger.keyring.person(tenant, user));
    for one in all(inner, Find::Person { tenant, person }, usize::MAX).await? {
        if keys.binary_search(&one.names.scope).is_err() {
            theirs.without_key.push(one.names);
        } else if unsaid.contains(&one.names.scope) {
            theirs.unsaid += 1;
        }
    }
    Ok(theirs)
}

/// What a store lists, `limit` at most.
pub(super) async fn all(inner: &Inner, find: Find, limit: usize) -> Result<Vec<Listed>, Error> {
    let mut all: Vec<Listed> = Vec::new();
    while all.len() < limit {
        let after = all.last().map(|one| one.names.scope);
        let page = inner.ledger.store.list(find, after, AT_ONCE.min(limit - all.len())).await?;
        if page.is_empty() {
            break;
        }
        all.extend(page);
    }
    Ok(all)
}

const AT_ONCE: usize = 500;
