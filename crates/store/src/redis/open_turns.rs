//! Who answers which open turns: a set of sessions for each owner, so that what the dead have left is found.
//!
//! The session's hash decides; a set may name sessions that have another owner by now, and is put right by whoever looks.
//! In a Cluster a set is written before the hash. So an entry of [`Owner::NOBODY`], whom everybody writes for, is taken out only when
//! it is older than any write that is under way, and only as it was seen.

use std::any::Any;
use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use confidant_seal::Tag;
use parking_lot::{Mutex, MutexGuard};
use redis::Cmd;

use super::data::{RedisStore, owner_of};
use super::leases::REMEMBERED;
use super::link::{For, Link};
use super::names::KeySpace;
use super::scripts::{CLAIM_TURN, CLOSE_TURN};
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::error::StoreError;
use crate::{Claims, Instance, Owner, Result};

#[async_trait]
impl Claims for RedisStore {
    async fn orphans(&self) -> Result<Vec<(Tag, Owner)>> {
        let known = self.leases.engines().await?;
        let alive = self.leases.alive(&known).await?;
        let mut dead: Vec<Owner> =
            known.into_iter().filter(|instance| !alive.contains(instance)).map(Owner::from).collect();
        dead.extend(Owner::NOBODY);
        let mut orphans = Vec::new();
        for (dead, open) in self.open.of(&self.link, dead).await? {
            let scopes: Vec<Tag> = open.iter().map(|open| open.scope).collect();
            let owners = self.owners(&scopes).await?;
            let (left, stale): (Vec<_>, Vec<_>) =
                open.into_iter().zip(owners).partition(|(_, owner)| *owner == Some(dead));
            self.open.clear(&self.link, dead, stale.into_iter().map(|(open, _)| open)).await?;
            if let Some(instance) = dead.instance().filter(|_| left.is_empty()) {
                let mut cmd = redis::cmd("ZREM");
                cmd.arg(self.space.instances()).arg(&instance.0[..]);
                self.link.run::<()>(For::Writing, cmd).await?;
            }
            orphans.extend(left.into_iter().map(|(open, _)| (open.scope, dead)));
        }
        Ok(orphans)
    }

    async fn claim(&self, scope: Tag, from: Owner, to: Instance) -> Result<bool> {
        let Some(session) = self.session(scope, None).await? else { return Ok(false) };
        let to = Owner::from(to);
        self.open.put(&self.link, scope, to).await?;
        let call = CLAIM_TURN.call().key(session).arg(from.to_bytes()).arg(to.to_bytes());
        let claimed = self.link.call(call).await?;
        if claimed {
            self.open.wrote(scope, Some(to));
            self.open.take(&self.link, scope, from).await?;
        }
        Ok(claimed)
    }

    async fn enlist(&self, instance: Instance) -> Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(self.leases.enlist(instance).await?))
    }

    async fn resign(&self, instance: Instance) -> Result<()> {
        let parting = async {
            self.settle(Vec::new()).await?;
            self.lanes.release().await?;
            self.leases.end(instance).await
        };
        // Others find out by themselves if it must be: no reason to keep a process from ending.
        let parted = tokio::time::timeout(std::time::Duration::from_secs(3), parting).await;
        parted.unwrap_or_else(|_| Err(StoreError::Unreachable("timed out".to_owned())))
    }

    async fn is_alive(&self, instance: Instance) -> Result<bool> {
        Ok(self.leases.alive(&[instance]).await?.contains(&instance))
    }

    async fn others_alive(&self, than: Instance) -> Result<bool> {
        self.leases.others_alive(than).await
    }
}

impl RedisStore {
    /// Who answers the open turns of these; nothing for those that have none or are gone.
    async fn owners(&self, scopes: &[Tag]) -> Result<Vec<Option<Owner>>> {
        let found = self.index.locate(&self.link, scopes).await?;
        let asked = found.iter().flatten().map(|name| {
            let mut cmd = redis::cmd("HGET");
            cmd.arg(self.space.session(name)).arg("o");
            cmd
        });
        let owners: Vec<Option<Vec<u8>>> = self.link.all(For::Reading, &asked.collect::<Vec<_>>()).await?;
        let mut owners = owners.into_iter();
        Ok(found.iter().map(|name| owner_of(name.as_ref().and_then(|_| owners.next())?.as_deref())).collect())
    }
}

/// How long the sets of [`Owner::NOBODY`] last: no decision is waited for so long.
const WAITED_FOR: Duration = Duration::from_secs(400 * 86_400);
/// Longer than any write takes.
const UNDER_WAY: Duration = Duration::from_secs(60);

/// The sets of open turns.
#[derive(Debug)]
pub(super) struct OpenTurns {
    space: KeySpace,
    /// In whose set this process has put a session.
    owners: Mutex<HashMap<Tag, Owner>>,
}

/// A session in a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) scope: Tag,
    /// When the set was to expire, as of when this was put into it.
    until: Millis,
}

impl OpenTurns {
    pub(super) fn new(space: KeySpace) -> Self {
        Self { space, owners: Mutex::default() }
    }

    /// In whose set this process has put a session.
    pub(super) fn owner(&self, scope: Tag) -> Option<Owner> {
        self.lock().get(&scope).copied()
    }

    /// Takes note of a write; says in whose set the session was.
    pub(super) fn wrote(&self, scope: Tag, owner: Option<Owner>) -> Option<Owner> {
        match owner {
            Some(owner) => self.lock().insert(scope, owner),
            None => self.lock().remove(&scope),
        }
    }

    /// When a set expires that something is put into now.
    pub(super) fn until(owner: Owner) -> Millis {
        SystemClock.now().plus(if owner.is_nobody() { WAITED_FOR } else { REMEMBERED })
    }

    /// Puts a session into a set.
    pub(super) async fn put(&self, link: &Link, scope: Tag, owner: Owner) -> Result<()> {
        let (key, until) = (self.space.open(owner), Self::until(owner));
        let (mut add, mut expire) = (redis::cmd("ZADD"), redis::cmd("PEXPIREAT"));
        add.arg(&key).arg(until.0).arg(&scope.as_bytes()[..]);
        expire.arg(key).arg(until.0);
        link.all::<()>(For::Writing, &[add, expire]).await.map(drop)
    }

    /// Takes a session out of the set of an instance whose own it was.
    pub(super) async fn take(&self, link: &Link, scope: Tag, owner: Owner) -> Result<()> {
        if owner.is_nobody() {
            return Ok(());
        }
        let mut remove = redis::cmd("ZREM");
        remove.arg(self.space.open(owner)).arg(&scope.as_bytes()[..]);
        link.run(For::Writing, remove).await
    }

    /// The sets of these.
    pub(super) async fn of(&self, link: &Link, owners: Vec<Owner>) -> Result<Vec<(Owner, Vec<Entry>)>> {
        let asked = owners.iter().map(|owner| {
            let mut cmd = redis::cmd("ZRANGE");
            cmd.arg(self.space.open(*owner)).arg(0).arg(-1).arg("WITHSCORES");
            cmd
        });
        let sets: Vec<Vec<(Vec<u8>, f64)>> = link.all(For::Reading, &asked.collect::<Vec<Cmd>>()).await?;
        #[expect(clippy::cast_possible_truncation, reason = "it was a whole number when it was written")]
        let entry = |(tag, until): (Vec<u8>, f64)| {
            Some(Entry { scope: Tag::from_bytes(tag.try_into().ok()?), until: Millis(until as i64) })
        };
        let sets = sets.into_iter().map(|set| set.into_iter().filter_map(entry).collect());
        Ok(owners.into_iter().zip(sets).collect())
    }

    /// Takes entries out that have another owner.
    pub(super) async fn clear(
        &self,
        link: &Link,
        owner: Owner,
        stale: impl Iterator<Item = Entry>,
    ) -> Result<()> {
        let settled = |entry: &Entry| !owner.is_nobody() || entry.until.plus(UNDER_WAY) <= Self::until(owner);
        let calls = stale.filter(settled).map(|entry| {
            CLOSE_TURN.call().key(self.space.open(owner)).arg(entry.scope.as_bytes()).number(entry.until.0)
        });
        link.calls_together(&calls.collect::<Vec<_>>()).await.map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tag, Owner>> {
        self.owners.lock()
    }
}
