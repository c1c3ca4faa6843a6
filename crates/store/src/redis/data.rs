//! Sessions.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use confidant_seal::{Kid, Sealed, Tag};
use parking_lot::{Mutex, MutexGuard};

use super::index::{Index, NEVER, member, outlasting};
use super::lanes::Lanes;
use super::leases::Keeper;
use super::link::{For, Link, odd};
use super::names::{KeySpace, SHARDS};
use super::open_turns::OpenTurns;
use super::scripts::{APPEND, Call, ERASE};
use super::{RedisSettings, health, legacy};
use crate::clock::Millis;
use crate::error::StoreError;
use crate::leases::Leases;
use crate::random_id;
use crate::{
    Append, Appended, Find, Instance, KeyName, Known, Listed, Loaded, Logs, NameSealer, Names, Naming, Owner,
    PendingAudit, Result, Upkeep,
};

/// The data on a Redis.
#[derive(Debug)]
pub struct RedisStore {
    pub(super) link: Arc<Link>,
    pub(super) space: KeySpace,
    naming: Naming,
    pub(super) index: Index,
    pub(super) leases: Arc<Leases>,
    pub(super) lanes: Lanes,
    pub(super) open: OpenTurns,
    /// Audit records of writes that were done, which no lane has taken yet: only in a Cluster, where they are apart.
    owed: Mutex<Vec<PendingAudit>>,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrote {
    Done,
    /// It had a lifetime and has none now.
    Lasts,
    Conflict,
}

impl RedisStore {
    pub(super) async fn open(link: Arc<Link>, settings: &RedisSettings) -> Result<Self> {
        let space = KeySpace::new(&settings.prefix);
        let naming = Naming::from(&settings.names);
        check_format(&link, &space, &naming).await?;
        let leases = Leases::new(Arc::new(Keeper::new(Arc::clone(&link), space.clone())));
        let me = Instance(random_id());
        leases.keep_writer(me).await?;
        let lanes =
            Lanes::new(Arc::clone(&link), space.clone(), Arc::clone(&leases), me, settings.keep_audit);
        let index = Index::new(space.clone());
        let open = OpenTurns::new(space.clone());
        Ok(Self { link, space, naming, index, leases, lanes, open, owed: Mutex::default() })
    }

    /// The key of a session; found by its tag if its name is not given.
    pub(super) async fn session(&self, scope: Tag, known: Option<Known<'_>>) -> Result<Option<String>> {
        Ok(self.name(scope, known).await?.map(|name| self.space.session(&name)))
    }

    async fn name(&self, scope: Tag, known: Option<Known<'_>>) -> Result<Option<KeyName>> {
        match known.and_then(|known| known.name) {
            Some(name) => Ok(Some(name.clone())),
            None => Ok(self.index.locate(&self.link, &[scope]).await?.pop().flatten()),
        }
    }

    /// One try at a write. `None` says that the audit lane was not ours any more, and nothing was written.
    async fn try_append(
        &self,
        append: &Append,
        session: &str,
        before: &mut Vec<Call>,
        after: &[Call],
    ) -> Result<Option<Wrote>> {
        let apart = self.link.is_cluster();
        let lane = if apart || append.audit.is_empty() { None } else { Some(self.lanes.take().await?) };
        let linked = lane.as_ref().map(|lane| self.lanes.addressed(lane.link(&append.audit)));
        let mut call = APPEND.call().key(session);
        if let Some(linked) = &linked {
            let (head, list) = linked.keys();
            call = call.key(head).key(list);
        }
        let owner = append.owner.or_else(|| self.open.owner(append.names.scope));
        if let Some(owner) = owner.filter(|_| !apart) {
            call = call.key(self.space.open(owner));
        }
        call = header(call, append);
        call = match &linked {
            Some(linked) => linked.lane(call),
            None => ["", "", "", "", "", "", "0"].iter().fold(call, |call, none| call.arg(none)),
        };
        call = call.number(owner.map_or(0, |owner| OpenTurns::until(owner).0));
        call = append.entries.iter().fold(call, |call, entry| call.arg(entry.as_bytes()));
        if let Some(linked) = &linked {
            call = linked.records(call);
        }
        let at = before.len();
        before.push(call);
        before.extend_from_slice(after);
        let replies = self.link.calls(before).await;
        before.clear();
        let reply: String = replies?.into_iter().nth(at).map_or(Err(odd()), super::link::convert)?;
        let wrote = match reply.as_str() {
            "again" if append.expires_at.is_none() => Wrote::Lasts,
            "done" | "again" => Wrote::Done,
            "lasts" => Wrote::Lasts,
            "conflict" => Wrote::Conflict,
            // The next try takes another.
            "lost" => {
                if let Some(lane) = lane {
                    lane.lost();
                }
                return Ok(None);
            }
            _ => return Err(odd()),
        };
        match (lane, linked) {
            (Some(lane), _) if wrote == Wrote::Conflict => lane.unchanged(),
            (Some(lane), Some(linked)) => lane.advanced(&linked.linked),
            _ => {}
        }
        Ok(Some(wrote))
    }

    /// Pays the audit records that are owed, and these.
    pub(super) async fn settle(&self, audit: Vec<PendingAudit>) -> Result<()> {
        let mut all = std::mem::take(&mut *self.lock(&self.owed));
        all.extend(audit);
        let paid = self.lanes.record(&all).await;
        if paid.is_err() {
            let mut owed = self.lock(&self.owed);
            all.append(&mut owed);
            *owed = all;
        }
        paid.map(drop)
    }

    /// Puts back what finds a session, if it is there: it was made anew while the one before it was taken out.
    async fn index_again(&self, names: &Names, name: &KeyName) -> Result<()> {
        let mut cmd = redis::cmd("HMGET");
        cmd.arg(self.space.session(name)).arg(&["v", "x"]);
        let found: Vec<Option<Vec<u8>>> = self.link.run(For::Reading, cmd).await?;
        if let [Some(_), expires_at] = found.as_slice() {
            let until = outlasting(moment(expires_at.as_deref()));
            self.link.calls(&self.index.put(names, name, until)?).await?;
        }
        Ok(())
    }

    /// What lists say of sessions, in the order given; those that are gone are left out.
    async fn look(&self, entries: &[Names]) -> Result<Vec<Listed>> {
        let scopes: Vec<Tag> = entries.iter().map(|names| names.scope).collect();
        let found = self.index.locate(&self.link, &scopes).await?;
        let (mut asked, mut of) = (Vec::new(), Vec::new());
        for (names, name) in entries.iter().zip(found) {
            let Some(name) = name else { continue };
            let mut cmd = redis::cmd("HMGET");
            cmd.arg(self.space.session(&name)).arg(&["v", "k", "x", "o"]);
            asked.push(cmd);
            of.push(*names);
        }
        let rows: Vec<Vec<Option<Vec<u8>>>> = self.link.all(For::Reading, &asked).await?;
        let listed = of.into_iter().zip(rows).filter_map(|(names, row)| {
            let [version, kid, expires_at, owner] = row.try_into().ok()?;
            Some(Listed {
                names,
                kid: kid_of(kid.as_deref()),
                version: number(version?.as_slice()).unwrap_or(0),
                expires_at: moment(expires_at.as_deref()),
                owner: owner_of(owner.as_deref()),
            })
        });
        Ok(listed.collect())
    }

    fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        mutex.lock()
    }
}

#[async_trait]
impl Logs for RedisStore {
    fn naming(&self) -> Naming {
        self.naming.clone()
    }

    fn introduce(&self, names: NameSealer) {
        self.index.introduce(names);
    }

    async fn load(&self, scope: Tag, known: Option<Known<'_>>) -> Result<Option<Loaded>> {
        let Some(session) = self.session(scope, known).await? else { return Ok(None) };
        let mut cmd = redis::cmd("HGETALL");
        cmd.arg(session);
        let fields: HashMap<Vec<u8>, Vec<u8>> = self.link.run(For::Reading, cmd).await?;
        Ok((!fields.is_empty()).then(|| loaded(fields)))
    }

    async fn append(&self, mut append: Append) -> Result<Appended> {
        let name = append.name.take().ok_or_else(odd)?;
        let (session, scope) = (self.space.session(&name), append.names.scope);
        let (mut before, until) =
            self.index.before(&append.names, &name, append.expires_at, append.expected == 0)?;
        let indexed = !before.is_empty();
        let after = if append.expected == 0 { before.clone() } else { Vec::new() };
        if let Some(owner) = append.owner.filter(|_| self.link.is_cluster()) {
            self.open.put(&self.link, scope, owner).await?;
        }
        let wrote = loop {
            if let Some(wrote) = self.try_append(&append, &session, &mut before, &after).await? {
                break wrote;
            }
        };
        if wrote == Wrote::Conflict {
            return Ok(Appended::Conflict);
        }
        if indexed {
            self.index.done(scope, until);
        }
        let before = self.open.wrote(scope, append.owner);
        // The script has seen to it if nobody follows, where it can.
        let left = before.filter(|before| match append.owner {
            Some(owner) => owner != *before,
            None => self.link.is_cluster(),
        });
        if wrote == Wrote::Lasts {
            self.link.calls(&self.index.put(&append.names, &name, NEVER)?).await?;
            self.index.done(scope, NEVER);
        }
        // It is written: whatever becomes of what follows, to say otherwise would be wrong.
        if let Some(before) = left
            && let Err(error) = self.open.take(&self.link, scope, before).await
        {
            tracing::debug!(scope.tag = %scope, error = %error, "an ended turn could not be removed from the set of open turns; it will be removed later");
        }
        if self.link.is_cluster()
            && let Err(error) = self.settle(append.audit).await
        {
            tracing::warn!(scope.tag = %scope, error = %error, "audit records could not be written yet; will retry");
        }
        Ok(Appended::Done)
    }

    async fn erase(&self, scope: Tag, known: Option<Known<'_>>, audit: Vec<PendingAudit>) -> Result<u64> {
        // What is about to be done is recorded first: between the two, it may only be said too early.
        self.lanes.record(&audit).await?;
        self.open.wrote(scope, None);
        let mut gone = 0;
        let name = self.name(scope, known).await?;
        let session = name.as_ref().map(|name| self.space.session(name));
        if let Some(session) = &session {
            // With a prefix, or under a hash, no name of ours is one of the first system's.
            legacy::erase(&self.link, session).await?;
            let mut cmd = redis::cmd("HKEYS");
            cmd.arg(session);
            let fields: Vec<Vec<u8>> = self.link.run(For::Reading, cmd).await?;
            let before = fields.iter().filter(|field| is_record(field)).count() as u64;
            // If the first reply was lost, the second says that there was nothing.
            gone = self.link.call::<u64>(ERASE.call().key(session.as_str())).await?.max(before);
        }
        if let Some(names) = self.index.find(&self.link, scope).await? {
            self.index.remove(&self.link, &names, session.as_deref()).await?;
            if let Some(name) = name.filter(|_| self.link.is_cluster()) {
                self.index_again(&names, &name).await?;
            }
        }
        Ok(gone)
    }

    async fn is_empty(&self) -> Result<bool> {
        self.index.is_empty(&self.link).await
    }

    async fn list(&self, find: Find, after: Option<Tag>, limit: usize) -> Result<Vec<Listed>> {
        let (mut listed, mut part) = (Vec::new(), 0);
        while listed.len() < limit && part < SHARDS {
            let (entries, next) = self.index.entries(&self.link, find, after, part).await?;
            part = next;
            for some in entries.chunks(LOOKED_AT_ONCE) {
                listed.extend(self.look(some).await?);
                if listed.len() >= limit {
                    break;
                }
            }
        }
        listed.truncate(limit);
        Ok(listed)
    }

    async fn expired(&self, _: Millis, _: usize) -> Result<Vec<Tag>> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl Upkeep for RedisStore {
    async fn tidy(&self) -> Result<()> {
        self.settle(Vec::new()).await
    }

    async fn scrub(&self) -> Result<()> {
        Ok(())
    }

    async fn check(&self) -> Result<String> {
        health(&self.link).await
    }

    fn writable(&self) -> Result<()> {
        self.leases.writable()
    }
}

/// How many sessions a list looks at in one round trip.
const LOOKED_AT_ONCE: usize = 256;
/// The layout that this code reads and writes.
const FORMAT: &str = "1";

/// Takes note of the layout at the first start, and refuses another one: a session under another kind of name would look as
/// if it had been taken away.
async fn check_format(link: &Link, space: &KeySpace, naming: &Naming) -> Result<()> {
    let names = if *naming == Naming::Opaque { "opaque" } else { "readable" };
    let ours = format!("{FORMAT} {names}");
    let (mut set, mut get) = (redis::cmd("SETNX"), redis::cmd("GET"));
    set.arg(space.format()).arg(&ours);
    get.arg(space.format());
    // A start that only looks must not need to write.
    let found: Option<String> = link.run(For::Reading, get.clone()).await?;
    let found = match found {
        Some(found) => found,
        None => {
            link.run::<()>(For::Writing, set).await?;
            link.run::<Option<String>>(For::Reading, get).await?.unwrap_or_default()
        }
    };
    match found.split_once(' ') {
        _ if found == ours => Ok(()),
        Some((FORMAT, "opaque")) => Err(StoreError::Mismatch(
            "the sessions on this Redis have opaque names; hint: set store.opaque_names = true".to_owned(),
        )),
        Some((FORMAT, "readable")) => Err(StoreError::Mismatch(
            "the sessions on this Redis have readable names; \
             hint: set store.opaque_names = false, or start over with another store.prefix"
                .to_owned(),
        )),
        _ => Err(StoreError::Newer),
    }
}

/// The first nine arguments of a write; see `scripts/append.lua`.
fn header(call: Call, append: &Append) -> Call {
    let (covers, snapshot) = match &append.snapshot {
        Some((covers, sealed)) => (covers.to_string(), sealed.as_bytes()),
        None => (String::new(), &[][..]),
    };
    // Tells this write from any other: the tag of the last thing in it.
    let last = append.snapshot.as_ref().map(|(_, sealed)| sealed).or(append.entries.last());
    let stamp = last.and_then(Sealed::tag).unwrap_or_default();
    call.number(append.expected)
        .arg(append.kid.as_bytes())
        .arg(member(&append.names))
        .arg(append.expires_at.map_or_else(String::new, |at| at.0.to_string()))
        .arg(append.owner.map_or_else(Vec::new, |owner| owner.to_bytes().to_vec()))
        .arg(stamp)
        .number(append.entries.len())
        .arg(covers)
        .arg(snapshot)
}

/// Reads a session's hash. What is not as it was written is handed on as it is, or left out: opening the log finds out.
fn loaded(mut fields: HashMap<Vec<u8>, Vec<u8>>) -> Loaded {
    let mut take = |name: &str| fields.remove(name.as_bytes());
    let (version, kid, expires_at, owner) = (take("v"), take("k"), take("x"), take("o"));
    let (covers, snapshot) = (take("c"), take("f"));
    for known in ["w", "s"] {
        take(known);
    }
    let covers = covers.and_then(|covers| number(&covers));
    let mut entries: Vec<(u64, Sealed)> = fields
        .into_iter()
        .map(|(name, sealed)| (number(&name).unwrap_or(0), Sealed::from_bytes(sealed)))
        .collect();
    entries.sort_by_key(|(seq, _)| *seq);
    Loaded {
        version: version.and_then(|version| number(&version)).unwrap_or(0),
        kid: kid_of(kid.as_deref()),
        expires_at: moment(expires_at.as_deref()),
        owner: owner_of(owner.as_deref()),
        snapshot: snapshot.map(|sealed| (covers.unwrap_or(0), Sealed::from_bytes(sealed))),
        entries,
    }
}

/// Whether a field of a session's hash is a record or the snapshot.
fn is_record(field: &[u8]) -> bool {
    field == b"f" || number(field).is_some()
}

pub(super) fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

pub(super) fn moment(text: Option<&[u8]>) -> Option<Millis> {
    std::str::from_utf8(text?).ok()?.parse().ok().map(Millis)
}

pub(super) fn owner_of(id: Option<&[u8]>) -> Option<Owner> {
    id?.try_into().ok().map(Owner::from_bytes)
}

/// A key id; one that is none belongs to no key.
pub(super) fn kid_of(bytes: Option<&[u8]>) -> Kid {
    Kid::from_bytes(bytes.and_then(|bytes| bytes.try_into().ok()).unwrap_or_default())
}
