//! Finding sessions without knowing their names: by tag, by person, all of them. Entries are tags; a name is sealed.
//!
//! An entry is written before what it stands for and outlives it a little, so that an index may name what is gone and never
//! misses what is there. It is renewed seldom: its own expiry is set an eighth of the lifetime further than needed. That of a
//! new session is written after it once more: whoever erases the one before it may take the first one out.

use std::sync::OnceLock;

use confidant_seal::{Sealed, Tag};
use hashlink::LruCache;
use parking_lot::Mutex;
use redis::Cmd;

use super::link::{For, Link, odd};
use super::names::{KeySpace, SHARDS, shard};
use super::scripts::{Call, INDEX, UNINDEX};
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::{Find, KeyName, NameSealer, Names, Result};

/// The most sessions whose entries are known to be fresh.
const MOST_KNOWN: usize = 65_536;
/// How many shards are read at once.
const SHARDS_AT_ONCE: usize = 16;

/// What is known of entries, and what opens names.
#[derive(Debug)]
pub(super) struct Index {
    space: KeySpace,
    names: OnceLock<NameSealer>,
    /// Until when the entries of a session are there for sure.
    fresh: Mutex<LruCache<Tag, Millis>>,
}

/// The last moment there is: for what has no lifetime.
pub(super) const NEVER: Millis = Millis(i64::MAX);

impl Index {
    pub(super) fn new(space: KeySpace) -> Self {
        Self { space, names: OnceLock::new(), fresh: Mutex::new(LruCache::new(MOST_KNOWN)) }
    }

    pub(super) fn introduce(&self, names: NameSealer) {
        // Clones of a store are introduced again, to the same.
        let _ = self.names.set(names);
    }

    /// What must be called before a session is written, so that it is found afterwards.
    ///
    /// A session that is there already and has no lifetime was found all along.
    pub(super) fn before(
        &self,
        names: &Names,
        name: &KeyName,
        expires_at: Option<Millis>,
        is_new: bool,
    ) -> Result<(Vec<Call>, Millis)> {
        let needed = expires_at.unwrap_or(NEVER);
        let known = self.fresh().get(&names.scope).copied();
        if !is_new && (expires_at.is_none() || known.is_some_and(|known| known >= needed)) {
            return Ok((Vec::new(), needed));
        }
        let until = outlasting(expires_at);
        Ok((self.put(names, name, until)?, until))
    }

    /// The calls that make entries which last until then.
    pub(super) fn put(&self, names: &Names, name: &KeyName, until: Millis) -> Result<Vec<Call>> {
        let sealed = self.names.get().ok_or_else(odd)?.seal(names.scope, name);
        let score = if until == NEVER { "inf".to_owned() } else { until.0.to_string() };
        let member = member(names);
        Ok(vec![
            INDEX
                .call()
                .key(self.space.sessions(shard(names.scope)))
                .key(self.space.locator(names.scope))
                .arg(&score)
                .arg(member)
                .arg(sealed.as_bytes()),
            INDEX.call().key(self.space.person(names.person)).arg(score).arg(member),
        ])
    }

    /// What [`Index::before`] said is done.
    pub(super) fn done(&self, scope: Tag, until: Millis) {
        self.fresh().insert(scope, until);
    }

    /// Whether it names no session that is not over. Needs no names.
    pub(super) async fn is_empty(&self, link: &Link) -> Result<bool> {
        let asked = (0..SHARDS).map(|shard| {
            let mut cmd = redis::cmd("ZCOUNT");
            cmd.arg(self.space.sessions(shard)).arg(SystemClock.now().0).arg("+inf");
            cmd
        });
        let counts: Vec<u64> = link.all(For::Reading, &asked.collect::<Vec<Cmd>>()).await?;
        Ok(counts.iter().all(|count| *count == 0))
    }

    /// Takes a session out, unless it is there under this key.
    pub(super) async fn remove(&self, link: &Link, names: &Names, session: Option<&str>) -> Result<()> {
        self.fresh().remove(&names.scope);
        let here = session.filter(|_| !link.is_cluster());
        let (all, locator) = (self.space.sessions(shard(names.scope)), self.space.locator(names.scope));
        let calls = [vec![all, locator], vec![self.space.person(names.person)]].map(|mut keys| {
            let locator = if keys.len() > 1 { 2 } else { 0 };
            keys.extend(here.map(str::to_owned));
            let session = if here.is_some() { keys.len() } else { 0 };
            let call = keys.into_iter().fold(UNINDEX.call(), |call, key| call.key(key));
            call.arg(member(names)).number(locator).number(session)
        });
        link.calls_together(&calls).await.map(drop)
    }

    /// The entry of one session, whatever became of the session itself.
    pub(super) async fn find(&self, link: &Link, scope: Tag) -> Result<Option<Names>> {
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(self.space.sessions(shard(scope))).arg(0).arg(-1);
        let found: Vec<Vec<u8>> = link.run(For::Reading, cmd).await?;
        Ok(found.iter().filter_map(|member| names(member)).find(|names| names.scope == scope))
    }

    /// The names of sessions, by tag; nothing for those that have none.
    pub(super) async fn locate(&self, link: &Link, scopes: &[Tag]) -> Result<Vec<Option<KeyName>>> {
        let asked: Vec<Cmd> = scopes
            .iter()
            .map(|scope| {
                let mut cmd = redis::cmd("GET");
                cmd.arg(self.space.locator(*scope));
                cmd
            })
            .collect();
        let found: Vec<Option<Vec<u8>>> = link.all(For::Reading, &asked).await?;
        let opened = scopes.iter().zip(found).map(|(scope, sealed)| {
            let sealed = Sealed::from_bytes(sealed?);
            self.names.get()?.open(*scope, &sealed)
        });
        Ok(opened.collect())
    }

    /// Entries in the order of their tags after `after`; they may stand for nothing. Gives at least one part of the index,
    /// and says where the next begins.
    pub(super) async fn entries(
        &self,
        link: &Link,
        find: Find,
        after: Option<Tag>,
        from: usize,
    ) -> Result<(Vec<Names>, usize)> {
        let (keys, next) = match find {
            Find::Person { person, .. } => (vec![self.space.person(person)], SHARDS),
            Find::All | Find::Tenant(_) => {
                let from = from.max(after.map_or(0, shard));
                let next = (from + SHARDS_AT_ONCE).min(SHARDS);
                ((from..next).map(|shard| self.space.sessions(shard)).collect(), next)
            }
        };
        let asked: Vec<Cmd> = keys
            .into_iter()
            .map(|key| {
                let mut cmd = redis::cmd("ZRANGE");
                cmd.arg(key).arg(0).arg(-1);
                cmd
            })
            .collect();
        let found: Vec<Vec<Vec<u8>>> = link.all(For::Reading, &asked).await?;
        let mut entries: Vec<Names> = found.iter().flatten().filter_map(|member| names(member)).collect();
        entries.retain(|names| match find {
            Find::All => true,
            Find::Tenant(tenant) => names.tenant == tenant,
            Find::Person { tenant, person } => (names.tenant, names.person) == (tenant, person),
        });
        entries.retain(|names| after.is_none_or(|after| names.scope > after));
        entries.sort_by_key(|names| names.scope);
        Ok((entries, next))
    }

    fn fresh(&self) -> parking_lot::MutexGuard<'_, LruCache<Tag, Millis>> {
        self.fresh.lock()
    }
}

/// Until when entries of a session last that lives until then: longer, so that they are renewed seldom.
pub(super) fn outlasting(expires_at: Option<Millis>) -> Millis {
    expires_at.map_or(NEVER, |at| Millis(at.0 + (at.0 - SystemClock.now().0).max(0) / 8))
}

/// The three tags of a session, as entries and its hash have them.
pub(super) fn member(names: &Names) -> [u8; 48] {
    let mut member = [0; 48];
    for (part, tag) in member.chunks_exact_mut(16).zip([names.scope, names.person, names.tenant]) {
        part.copy_from_slice(tag.as_bytes());
    }
    member
}

/// Reads what [`member`] wrote.
pub(super) fn names(member: &[u8]) -> Option<Names> {
    let tag = |at: usize| Some(Tag::from_bytes(member.get(at..at + 16)?.try_into().ok()?));
    (member.len() == 48).then_some(())?;
    Some(Names { scope: tag(0)?, person: tag(16)?, tenant: tag(32)? })
}
