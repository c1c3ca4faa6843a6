//! Who answers which open turns: a set of sessions for each instance, so that what the dead have left is found.
//!
//! The session's hash decides; a set may name sessions that have another owner by now, and is put right by whoever looks.
//! In a Cluster a set is written before the hash. So an entry of [`NOBODY`], whom everybody writes for, is taken out only when
//! it is older than any write that is under way, and only as it was seen.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use confidant_seal::Tag;
use redis::Cmd;

use super::leases::REMEMBERED;
use super::link::{For, Link};
use super::names::KeySpace;
use super::scripts::CLOSE_TURN;
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::store::{Instance, NOBODY, Result};

/// How long their sets last: no decision is waited for so long.
const WAITED_FOR: Duration = Duration::from_secs(400 * 86_400);
/// Longer than any write takes.
const UNDER_WAY: Duration = Duration::from_secs(60);

/// The sets of open turns.
#[derive(Debug)]
pub(super) struct OpenTurns {
    space: KeySpace,
    /// In whose set this process has put a session.
    owners: Mutex<HashMap<Tag, Instance>>,
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
    pub(super) fn owner(&self, scope: Tag) -> Option<Instance> {
        self.lock().get(&scope).copied()
    }

    /// Takes note of a write; says in whose set the session was.
    pub(super) fn wrote(&self, scope: Tag, owner: Option<Instance>) -> Option<Instance> {
        match owner {
            Some(owner) => self.lock().insert(scope, owner),
            None => self.lock().remove(&scope),
        }
    }

    /// When a set expires that something is put into now.
    pub(super) fn until(owner: Instance) -> Millis {
        SystemClock.now().plus(if NOBODY.contains(&owner) { WAITED_FOR } else { REMEMBERED })
    }

    /// Puts a session into a set.
    pub(super) async fn put(&self, link: &Link, scope: Tag, owner: Instance) -> Result<()> {
        let (key, until) = (self.space.open(owner), Self::until(owner));
        let (mut add, mut expire) = (redis::cmd("ZADD"), redis::cmd("PEXPIREAT"));
        add.arg(&key).arg(until.0).arg(&scope.as_bytes()[..]);
        expire.arg(key).arg(until.0);
        link.all::<()>(For::Writing, &[add, expire]).await.map(drop)
    }

    /// Takes a session out of the set of an instance whose own it was.
    pub(super) async fn take(&self, link: &Link, scope: Tag, owner: Instance) -> Result<()> {
        if NOBODY.contains(&owner) {
            return Ok(());
        }
        let mut remove = redis::cmd("ZREM");
        remove.arg(self.space.open(owner)).arg(&scope.as_bytes()[..]);
        link.run(For::Writing, remove).await
    }

    /// The sets of these.
    pub(super) async fn of(&self, link: &Link, owners: Vec<Instance>) -> Result<Vec<(Instance, Vec<Entry>)>> {
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
        owner: Instance,
        stale: impl Iterator<Item = Entry>,
    ) -> Result<()> {
        let settled =
            |entry: &Entry| !NOBODY.contains(&owner) || entry.until.plus(UNDER_WAY) <= Self::until(owner);
        let calls = stale.filter(settled).map(|entry| {
            CLOSE_TURN.call().key(self.space.open(owner)).arg(entry.scope.as_bytes()).number(entry.until.0)
        });
        link.calls_together(&calls.collect::<Vec<_>>()).await.map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tag, Instance>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
