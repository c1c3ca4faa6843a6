//! A session: the handle for one scope, and the only door to its data.
//!
//! Handles are cheap; what they open is kept warm in a [`Slot`] that all handles of a scope share. The slot's lock is
//! the session's order (a turn waits for the one before it) and its single flight (a cold log is opened once, however
//! many ask). What is easy to get wrong: the lock orders one process only; between processes the store's
//! compare-and-set decides, and whoever loses opens the log again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use confidant_seal::{Scope, Tag};
use hashlink::LruCache;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::audit::{Action, Actor, AuditRecord};
use crate::checkpoint::Checkpoint;
use crate::clock::Millis;
use crate::engine::Inner;
use crate::entry::{Capture, Entry};
use crate::error::{Error, Tampering};
use crate::log::Log;
use crate::store::{
    Anchor, Append, Appended, CAPTURED, DECIDED, Instance, KeyName, Known, NOBODY, Names, PARKED,
};

/// The handle for one scope, on behalf of somebody.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) inner: Arc<Inner>,
    pub(crate) scope: Scope,
    pub(crate) names: Names,
    /// What a store that has names calls it.
    pub(crate) name: Option<KeyName>,
    pub(crate) actor: Actor,
}

impl Session {
    pub(crate) fn new(inner: Arc<Inner>, scope: Scope, actor: Actor) -> Self {
        let names = inner.keyring.names(&scope);
        let name = inner.keyring.key_name(&inner.naming, &scope, names.scope);
        Self { inner, scope, names, name, actor }
    }

    /// Whose memory this is.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The session's readable id.
    #[must_use]
    pub fn id(&self) -> String {
        self.scope.session_id()
    }

    /// What a store may want to know of it besides its tag.
    pub(crate) fn known(&self) -> Known<'_> {
        Known { tenant: self.names.tenant, name: self.name.as_ref() }
    }

    /// The name under which logs may mention it.
    #[must_use]
    pub fn tag(&self) -> String {
        self.names.scope.to_string()
    }

    /// Waits for the session's turn to write, and takes it.
    pub(crate) async fn lock(&self) -> Result<Held<'_>, Error> {
        let slot = self.inner.slots.slot(self.names.scope, self.inner.now());
        let waiting = tokio::time::timeout(self.inner.settings.wait_for_turn, slot.lock_owned());
        let mut slot = waiting.await.map_err(|_| Error::Busy)?;
        if self.inner.gateway.get().is_some() {
            // Workers write; what a gateway saw last says nothing.
            *slot = Slot::default();
        }
        Ok(Held { session: self, slot, notes: Vec::new(), seen: false })
    }

    /// A look and a write beside the session's order, for what must not wait for it. The store's compare-and-set
    /// decides, as it does between processes.
    pub(crate) async fn aside(&self) -> Held<'_> {
        let slot = Arc::new(AsyncMutex::<Slot>::default()).lock_owned().await;
        Held { session: self, slot, notes: Vec::new(), seen: false }
    }

    pub(crate) fn record(&self, action: Action) -> AuditRecord {
        AuditRecord::new(self.inner.now(), &self.actor, action).about(self.names.scope)
    }
}

/// What is kept warm of a session.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The log at the version that this process last saw.
    log: Option<Log>,
    /// Who is answering its open turn, as of then.
    owner: Option<Instance>,
    /// Turns whose concepts are in scope by now, which the log has yet to hear.
    merged: Vec<String>,
}

/// A session while this task has its turn.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    session: &'a Session,
    slot: OwnedMutexGuard<Slot>,
    /// Audit records that go with the next write, such as that the log was opened.
    notes: Vec<AuditRecord>,
    /// Whether what is warm was read or written in this turn, and not before it.
    seen: bool,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrote {
    Done,
    /// Somebody else wrote in between; the log must be opened again.
    Conflict,
}

impl Held<'_> {
    /// The log, opened if it is not warm; `None` if there is no such session yet.
    pub(crate) async fn log(&mut self) -> Result<Option<&Log>, Error> {
        if self.slot.log.is_none()
            && let Some((log, owner)) = open(self.session).await.map_err(Error::while_loading)?
        {
            self.notes.push(self.session.record(Action::SessionOpened).counting(log.version()));
            self.slot.log = Some(log);
            self.slot.owner = owner;
            self.seen = true;
        }
        Ok(self.slot.log.as_ref())
    }

    /// Whether the log was looked at in the store since this task has its turn. Until then another process may have
    /// written, or erased it all: whatever is done without a write, which would notice, needs a look.
    pub(crate) fn has_looked(&self) -> bool {
        self.seen || self.slot.log.is_none()
    }

    /// The log as the store has it since this task has its turn.
    pub(crate) async fn fresh(&mut self) -> Result<Option<&Log>, Error> {
        if !self.has_looked() {
            self.cool();
        }
        self.log().await
    }

    /// The log as it is warm, without looking.
    pub(crate) fn warm(&mut self) -> Option<&mut Log> {
        self.slot.log.as_mut()
    }

    /// What the log folds to, as it is warm.
    pub(crate) fn checkpoint(&self) -> Option<&Checkpoint> {
        self.slot.log.as_ref().map(Log::checkpoint)
    }

    /// Who was answering the open turn when the log was last seen.
    pub(crate) fn owner(&self) -> Option<Instance> {
        self.slot.owner
    }

    /// Forgets what is warm, so that the next look opens it again.
    pub(crate) fn cool(&mut self) {
        *self.slot = Slot::default();
    }

    /// A record that goes into the audit log with the next write.
    pub(crate) fn also(&mut self, note: AuditRecord) {
        self.notes.push(note);
    }

    /// What turns named and is yet to come into scope, as far as is known here.
    pub(crate) fn captured(&self) -> Vec<Capture> {
        let captured = self.checkpoint().map_or(&[][..], Checkpoint::captured).iter();
        captured.filter(|capture| !self.slot.merged.contains(&capture.request_id)).cloned().collect()
    }

    /// What a turn named is in scope: the next write says so.
    pub(crate) fn merged(&mut self, request_id: &str) {
        self.slot.merged.push(request_id.to_owned());
    }

    /// Whether the log has yet to hear what is in scope.
    pub(crate) fn has_merged(&self) -> bool {
        !self.slot.merged.is_empty()
    }

    /// Tells the log what is in scope by now, if it does not know.
    pub(crate) async fn write_merged(&mut self) -> Result<Wrote, Error> {
        if self.slot.merged.is_empty() {
            return Ok(Wrote::Done);
        }
        let owner = self.owner();
        self.append(Vec::new(), owner).await
    }

    /// Appends `entries` and says who answers the open turn after them.
    pub(crate) async fn write(
        &mut self,
        entries: Vec<Entry>,
        owner: Option<Instance>,
        note: AuditRecord,
    ) -> Result<Wrote, Error> {
        self.notes.push(note);
        self.append(entries, owner).await
    }

    async fn append(&mut self, mut entries: Vec<Entry>, owner: Option<Instance>) -> Result<Wrote, Error> {
        let session = self.session;
        let inner = &session.inner;
        let log = match self.slot.log.take() {
            Some(log) => log,
            None => {
                let (scope, names) = (&session.scope, &session.names);
                let expires_at = inner.settings.lifetimes.expiry(scope, inner.now());
                Log::new(scope, inner.keyring.data_key_or_new(scope, names, expires_at).await?.key)
            }
        };
        let expected = log.version();
        let request_ids = std::mem::take(&mut self.slot.merged);
        if !request_ids.is_empty() {
            entries.push(Entry::Merged { request_ids });
        }
        let (log, written) = log.advance(entries, inner.settings.history.max_messages)?;
        let owner = owner.filter(|owner| !NOBODY.contains(owner)).or_else(|| parked(log.checkpoint()));
        let expires_at = expiry(session, log.checkpoint());
        let append = Append {
            names: session.names,
            name: session.name.clone(),
            kid: log.key().kid(),
            expected,
            entries: vec![written.record],
            snapshot: written.snapshot,
            expires_at,
            owner,
            audit: self.notes.drain(..).map(|note| note.pending(&inner.keyring)).collect(),
        };
        let kid = append.kid;
        let ours = [owner, self.slot.owner].contains(&Some(inner.instance));
        // It may have happened or not, and either way the turn may be open with nobody at work on it.
        let failed = || {
            if ours {
                inner.left_open.note(session.names.scope);
            }
        };
        if inner.store.append(append).await.inspect_err(|_| failed())? == Appended::Conflict {
            inner.counters.conflicts.add();
            self.cool();
            return Ok(Wrote::Conflict);
        }
        // A session that was erased while it was being made has rows but no key any more.
        let has_key = expected > 0
            || inner.keyring.still_has(session.names.scope, kid).await.inspect_err(|_| failed())?;
        if !has_key {
            inner.store.erase(session.names.scope, Some(session.known()), Vec::new()).await?;
            self.cool();
            return Ok(Wrote::Conflict);
        }
        let anchor = Anchor { scope: session.names.scope, kid, version: log.version(), expires_at };
        inner.anchors.mark(anchor);
        self.slot.log = Some(log);
        self.slot.owner = owner;
        self.seen = true;
        Ok(Wrote::Done)
    }
}

/// Who stands as the owner of a session that nobody works on: turns of it may wait for a decision, for somebody to carry
/// one out, or for what they named to come into scope. Nobody alive ever has these names, so whoever looks for what was left open finds them.
fn parked(checkpoint: &Checkpoint) -> Option<Instance> {
    let mut approvals = checkpoint.waiting().iter().filter_map(|waiting| waiting.approval());
    if approvals.clone().any(|approval| approval.decided.is_some()) {
        return Some(DECIDED);
    }
    if !checkpoint.captured().is_empty() {
        return Some(CAPTURED);
    }
    approvals.next().map(|_| PARKED)
}

/// When the session ends if nothing more is said: not before what waits in it can be decided.
fn expiry(session: &Session, checkpoint: &Checkpoint) -> Option<Millis> {
    let inner = &session.inner;
    let usual = inner.settings.lifetimes.expiry(&session.scope, inner.now())?;
    let waits = checkpoint.waits_until().map(|until| until.plus(AFTER_APPROVAL));
    Some(waits.map_or(usual, |waits| waits.max(usual)))
}

/// How long a session stays after the last approval in it ran out, so that its person can be told.
pub(crate) const AFTER_APPROVAL: Duration = Duration::from_secs(86_400);

/// Opens a session's log from the store, afresh.
pub(crate) async fn open(session: &Session) -> Result<Option<(Log, Option<Instance>)>, Error> {
    let Session { inner, scope, names, .. } = session;
    for _ in 0..OPENING_TRIES {
        // The key first: its anchor must not be newer than the log that is held against it.
        let data_key = inner.keyring.data_key(scope, names).await?;
        let loaded = inner.store.load(names.scope, Some(session.known())).await?;
        match (data_key, loaded) {
            (None, None) => return Ok(None),
            (Some(key), None) if key.anchor == 0 => return Ok(None),
            // Over: the store ended it by itself.
            (Some(key), None) if key.expires_at.is_some_and(|at| at <= inner.now()) => {
                crate::retention::expire(inner, names.scope).await?;
                return Ok(None);
            }
            // The rows were taken away behind our back; or the session was erased between the two looks, and is not.
            (Some(key), None) if inner.keyring.still_has(names.scope, key.key.kid()).await? => {
                return Err(Tampering::RolledBack.into());
            }
            (Some(_), None) => {}
            (_, Some(loaded)) if loaded.expires_at.is_some_and(|at| at <= inner.now()) => {
                crate::retention::expire(inner, names.scope).await?;
                return Ok(None);
            }
            (Some(key), Some(loaded)) if key.key.kid() == loaded.kid => {
                let log =
                    Log::open(scope, key.key, &loaded, key.anchor, inner.settings.history.max_messages)?;
                return Ok(Some((log, loaded.owner)));
            }
            // The key is missing or another's: look again, since it may just be changing.
            _ => {}
        }
    }
    Err(Tampering::KeyGone.into())
}

/// How often opening looks again when key and log do not belong together.
const OPENING_TRIES: usize = 3;

/// The warm sessions of a process: bounded in number and in time, since each holds a key and plaintext.
#[derive(Debug)]
pub(crate) struct Slots {
    inner: Mutex<LruCache<Tag, Warm>>,
    most: usize,
    idle: Duration,
}

#[derive(Debug)]
struct Warm {
    slot: Arc<AsyncMutex<Slot>>,
    used: Millis,
}

impl Slots {
    pub(crate) fn new(most: usize, idle: Duration) -> Self {
        Self { inner: Mutex::new(LruCache::new_unbounded()), most: most.max(1), idle }
    }

    /// Lets go of what has been idle for too long.
    pub(crate) fn cool(&self, now: Millis) {
        let mut slots = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        while let Some((_, warm)) = slots.iter().next() {
            let stale = warm.used.plus(self.idle) <= now || slots.len() > self.most;
            // One that is in use stays: dropping it would let a second turn of the session run beside it.
            if !stale || Arc::strong_count(&warm.slot) > 1 {
                break;
            }
            slots.remove_lru();
        }
    }

    /// Whether a session is warm.
    pub(crate) fn has(&self, scope: Tag) -> bool {
        let mut slots = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        slots.get_mut(&scope).is_some()
    }

    /// Lets go of one session, as when it was erased.
    pub(crate) fn forget(&self, scope: Tag) {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&scope);
    }

    /// Lets go of everything.
    pub(crate) fn clear(&self) {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
    }

    fn slot(&self, scope: Tag, now: Millis) -> Arc<AsyncMutex<Slot>> {
        let slot = {
            let mut slots = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(warm) = slots.get_mut(&scope) {
                warm.used = now;
                Arc::clone(&warm.slot)
            } else {
                let slot = Arc::new(AsyncMutex::default());
                slots.insert(scope, Warm { slot: Arc::clone(&slot), used: now });
                slot
            }
        };
        self.cool(now);
        slot
    }
}
