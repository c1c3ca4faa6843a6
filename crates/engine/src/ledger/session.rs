//! A session: the handle for one scope, and the only door to its data.
//!
//! Handles are cheap; what they open is kept warm in a [`Slot`] that all handles of a scope share. The slot's lock is
//! the session's order (a turn waits for the one before it) and its single flight (a cold log is opened once, however
//! many ask). What is easy to get wrong: the lock orders one process only; between processes the store's
//! compare-and-set decides, and whoever loses opens the log again.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use confidant_seal::{Key, Kid, Scope};
use futures_util::FutureExt as _;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::clock::Millis;
use crate::error::{Error, Tampering};
use crate::inner::Inner;
use crate::ledger::audit::{Action, Actor, AuditRecord};
use crate::ledger::checkpoint::{Checkpoint, Exchange};
use crate::ledger::entry::{Capture, Entry};
use crate::ledger::epoch::Epoch;
use crate::ledger::erased;
use crate::ledger::erasures::Asked;
use crate::ledger::expire::expire;
use crate::ledger::keyring::DataKey;
use crate::ledger::log::Log;
use crate::ledger::slots::Slot;
use crate::ledger::web_scope;
use crate::store::volatile::Mark;
use crate::store::{Anchor, Append, Appended, KeyName, Known, Loaded, Names, Owner};

/// The handle for one scope, on behalf of somebody.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) inner: Arc<Inner>,
    pub(crate) scope: Scope,
    pub(crate) names: Names,
    /// What a store that has names calls it.
    pub(crate) name: Option<KeyName>,
    pub(crate) actor: Actor,
    /// That it is kept in memory, for as long as there is a handle.
    _volatile: Option<Arc<Mark>>,
}

impl Session {
    pub(crate) fn new(inner: Arc<Inner>, scope: Scope, actor: Actor) -> Self {
        let names = inner.ledger.keyring.names(&scope);
        let name = inner.ledger.keyring.key_name(&inner.ledger.naming, &scope, names.scope);
        let volatile = web_scope::is_volatile(&scope).then(|| inner.ledger.volatile.mark(names.scope));
        Self { inner, scope, names, name, actor, _volatile: volatile }
    }

    /// Whether it is of a chat that only its owner can open.
    pub(crate) fn is_web(&self) -> bool {
        web_scope::is_web(&self.scope)
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

    /// Takes a place in the session's order, behind everybody who has one, at once.
    pub(crate) fn line_up(&self) -> Place {
        let slot = self.inner.ledger.slots.slot(self.names.scope, self.inner.ledger.now());
        // Whatever the caller's task has left to do in its time slice: asked once, the lock has it in its queue.
        let mut waiting: Waiting = Box::pin(tokio::task::unconstrained(slot.lock_owned()));
        match waiting.as_mut().now_or_never() {
            Some(slot) => Place::Reached(slot),
            None => Place::Waits(waiting),
        }
    }

    /// Waits for the session's turn to write, and takes it.
    pub(crate) async fn lock(&self) -> Result<Held<'_>, Error> {
        self.lock_at(self.line_up(), Asked::now(&self.inner.ledger, None)).await
    }

    /// The same from a place that was taken before, for something that was asked for then.
    pub(crate) async fn lock_at(&self, place: Place, asked: Asked) -> Result<Held<'_>, Error> {
        let mut slot = match place {
            Place::Reached(slot) => slot,
            Place::Waits(waiting) => {
                let waiting = tokio::time::timeout(self.inner.ledger.settings.wait_for_turn, waiting);
                waiting.await.map_err(|_| Error::Busy)?
            }
        };
        if self.inner.gateway.get().is_some() {
            // Workers write; what a gateway saw last says nothing.
            *slot = Slot::default();
        }
        Ok(Held { session: self, slot, notes: Vec::new(), seen: false, asked, tried: None })
    }

    /// A look and a write beside the session's order, for what must not wait for it. The store's compare-and-set
    /// decides, as it does between processes.
    pub(crate) async fn aside(&self) -> Held<'_> {
        self.aside_at(Asked::now(&self.inner.ledger, None)).await
    }

    /// The same for something that was asked for then.
    pub(crate) async fn aside_at(&self, asked: Asked) -> Held<'_> {
        let slot = Arc::new(AsyncMutex::<Slot>::default()).lock_owned().await;
        Held { session: self, slot, notes: Vec::new(), seen: false, asked, tried: None }
    }

    pub(crate) fn record(&self, action: Action) -> AuditRecord {
        AuditRecord::new(self.inner.ledger.now(), &self.actor, action)
            .about(self.names.scope)
            .within(self.names.tenant)
    }
}

/// A place in a session's order. Whoever drops it leaves the line.
pub(crate) enum Place {
    /// It is the first.
    Reached(OwnedMutexGuard<Slot>),
    Waits(Waiting),
}

type Waiting = Pin<Box<dyn Future<Output = OwnedMutexGuard<Slot>> + Send>>;

impl Place {
    /// Whether nothing is waited for and the log is at hand, so that a write is next.
    pub(crate) fn is_warm(&self) -> bool {
        matches!(self, Self::Reached(slot) if slot.log.is_some())
    }
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
    /// When what is to be written was asked for: an erasure since then ends it.
    asked: Asked,
    /// The key of the log that was last tried to write.
    tried: Option<Kid>,
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

    /// Approvals that wait to be decided, as the log is warm.
    pub(crate) fn pending(&self) -> usize {
        let now = self.now();
        let waiting = self.checkpoint().map_or(&[][..], Checkpoint::waiting);
        waiting.iter().filter(|exchange| exchange.is_pending(now)).count()
    }

    /// Whether the log has only what was written first.
    pub(crate) fn is_new(&self) -> bool {
        self.slot.log.as_ref().is_some_and(|log| log.version() == 1)
    }

    /// Who was answering the open turn when the log was last seen.
    pub(crate) fn owner(&self) -> Option<Owner> {
        self.slot.owner
    }

    /// Whether that was this process.
    pub(crate) fn is_ours(&self) -> bool {
        self.owner() == Some(Owner::from(self.session.inner.ledger.instance))
    }

    /// The key of the log, as far as this task or one before it has had it in hand.
    pub(crate) fn kid(&self) -> Option<Kid> {
        self.slot.log.as_ref().map(|log| log.key().kid()).or(self.tried)
    }

    /// The key itself, as the log is warm.
    pub(crate) fn key(&self) -> Option<&Key> {
        self.slot.log.as_ref().map(Log::key)
    }

    /// What time it is.
    pub(crate) fn now(&self) -> Millis {
        self.session.inner.ledger.now()
    }

    /// Forgets what is warm, so that the next look opens it again.
    pub(crate) fn cool(&mut self) {
        *self.slot = Slot { before: self.last_kid(), ..Slot::default() };
    }

    /// The key of the log, or of the one that was warm here before.
    pub(crate) fn last_kid(&self) -> Option<Kid> {
        self.kid().or(self.slot.before)
    }

    /// A record that goes into the audit log with the next write.
    pub(crate) fn queue_audit(&mut self, note: AuditRecord) {
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
        owner: Option<Owner>,
        note: AuditRecord,
    ) -> Result<Wrote, Error> {
        self.notes.push(note);
        self.append(entries, owner).await
    }

    async fn append(&mut self, mut entries: Vec<Entry>, owner: Option<Owner>) -> Result<Wrote, Error> {
        let session = self.session;
        let inner = &session.inner;
        let log = match self.slot.log.take() {
            // Somebody began anew after an erasure, and this was asked for before it.
            Some(log) if self.asked.is_before(&inner.ledger, log.erased()) => {
                self.cool();
                return Err(Error::Erased);
            }
            Some(log) => log,
            None => {
                let (key, erased) = erased::data_key(session, &mut self.asked).await?;
                Log::new(&session.scope, key).after(erased)
            }
        };
        self.tried = Some(log.key().kid());
        let expected = log.version();
        let request_ids = std::mem::take(&mut self.slot.merged);
        if !request_ids.is_empty() {
            entries.push(Entry::Merged { request_ids });
        }
        let lifetime = |checkpoint: &Checkpoint| expiry(session, checkpoint);
        let (log, written) = log.advance(entries, inner.ledger.settings.history.max_messages, lifetime)?;
        let owner = owner.filter(|owner| !owner.is_nobody()).or_else(|| parked(log.checkpoint()));
        let expires_at = written.expires_at;
        let append = Append {
            names: session.names,
            name: session.name.clone(),
            kid: log.key().kid(),
            expected,
            entries: vec![written.record],
            snapshot: written.snapshot,
            expires_at,
            owner,
            audit: self.notes.drain(..).map(|note| note.pending(&inner.ledger.keyring)).collect(),
        };
        let kid = append.kid;
        let ours = [owner, self.slot.owner].contains(&Some(Owner::from(inner.ledger.instance)));
        // It may have happened or not, and either way the turn may be open with nobody at work on it.
        let failed = || {
            if ours {
                inner.ledger.left_open.note(session.names.scope);
            }
        };
        if inner.ledger.store.append(append).await.inspect_err(|_| failed())? == Appended::Conflict {
            inner.ledger.counters.conflicts.add();
            self.cool();
            return Ok(Wrote::Conflict);
        }
        // A session that was erased while it was being made has rows but no key any more, or an erasure that did not find it.
        if expected == 0 && is_erased(session, kid, &log).await.inspect_err(|_| failed())? {
            self.cool();
            return Ok(Wrote::Conflict);
        }
        let anchor = Anchor { scope: session.names.scope, kid, version: log.version(), expires_at };
        inner.ledger.anchors.mark(anchor);
        // What waits from now on may run out before what this process knew of.
        let waiting = log.checkpoint().waiting().iter().filter_map(Exchange::waits_until);
        if let Some(soonest) = waiting.min() {
            inner.ledger.agenda.bring_forward(session.names.scope, soonest);
        }
        self.slot.log = Some(log);
        self.slot.owner = owner;
        self.seen = true;
        Ok(Wrote::Done)
    }
}

/// Whether a session was erased while it was being made; then what was made of it goes.
async fn is_erased(session: &Session, kid: Kid, log: &Log) -> Result<bool, Error> {
    let inner = &session.inner;
    let erased = erased::came_between(session, log.erased());
    let (has_key, erased) =
        tokio::try_join!(inner.ledger.keyring.still_has(session.names.scope, kid), erased)?;
    if has_key && erased {
        erased::remove(session).await?;
    } else if !has_key {
        inner.ledger.store.erase(session.names.scope, Some(session.known()), Vec::new()).await?;
    }
    Ok(!has_key || erased)
}

/// Who stands as the owner of a session that nobody works on: turns of it may wait for a decision, for their client, for somebody
/// to carry one out, or for what they named to come into scope. None of these is ever alive, so whoever looks for what was left open finds them.
fn parked(checkpoint: &Checkpoint) -> Option<Owner> {
    let mut approvals = checkpoint.waiting().iter().filter_map(|waiting| waiting.approval());
    if approvals.any(|approval| approval.decided.is_some()) {
        return Some(Owner::Decided);
    }
    if !checkpoint.captured().is_empty() {
        return Some(Owner::Captured);
    }
    (!checkpoint.waiting().is_empty()).then_some(Owner::Parked)
}

/// When the session ends if nothing more is said: not before what waits in it can be decided.
fn expiry(session: &Session, checkpoint: &Checkpoint) -> Option<Millis> {
    let inner = &session.inner;
    let usual = inner.ledger.expiry(&session.scope, inner.ledger.now())?;
    let waits = checkpoint.waits_until().map(|until| until.plus(AFTER_APPROVAL));
    Some(waits.map_or(usual, |waits| waits.max(usual)))
}

/// How long a session stays after the last approval in it ran out, so that its person can be told.
pub(crate) const AFTER_APPROVAL: Duration = Duration::from_secs(86_400);

/// Opens a session's log from the store, afresh.
pub(crate) async fn open(session: &Session) -> Result<Option<(Log, Option<Owner>)>, Error> {
    let outcome = look(session).await;
    if matches!(outcome, Err(Error::Tampered(_))) {
        session.inner.ledger.counters.unopened.add();
    }
    outcome
}

async fn look(session: &Session) -> Result<Option<(Log, Option<Owner>)>, Error> {
    let Session { inner, scope, names, .. } = session;
    for _ in 0..OPENING_TRIES {
        // The key first: its anchor must not be newer than the log that is held against it.
        let (data_key, erased) =
            tokio::try_join!(inner.ledger.keyring.data_key(scope, names), inner.ledger.last_erasure(names))?;
        if data_key.as_ref().is_some_and(|key| key.born < erased) {
            // What an erasure missed, or what somebody put back.
            return Ok(None);
        }
        let loaded = inner.ledger.store.load(names.scope, Some(session.known())).await?;
        match (data_key, loaded) {
            (None, None) => return Ok(None),
            (Some(key), None) if key.anchor == 0 => return Ok(None),
            // Over: the store ended it by itself.
            (Some(key), None) if is_over(inner, key.expires_at) => {
                expire(inner, names.scope).await?;
                return Ok(None);
            }
            // The rows were taken away behind our back; or the session was erased between the two looks, and is not.
            (Some(key), None) if inner.ledger.keyring.still_has(names.scope, key.key.kid()).await? => {
                return Err(Tampering::RolledBack.into());
            }
            (Some(_), None) => {}
            (Some(key), Some(loaded)) if key.key.kid() == loaded.kid => {
                return opened(session, key, &loaded, erased).await;
            }
            (None, Some(loaded)) if is_over(inner, loaded.expires_at) => {
                expire(inner, names.scope).await?;
                return Ok(None);
            }
            // Rows of a log whose key went when its time came; the key that is there is of the next one.
            (Some(_), Some(loaded)) if is_over(inner, loaded.expires_at) => {
                inner.ledger.store.erase(names.scope, Some(session.known()), Vec::new()).await?;
            }
            // The key is missing or another's: look again, since it may just be changing.
            _ => {}
        }
    }
    Err(Tampering::KeyGone.into())
}

/// The log that a key opens, unless it is over. When that is stands sealed in the log: what stands beside it is for finding.
async fn opened(
    session: &Session,
    key: DataKey,
    loaded: &Loaded,
    erased: Epoch,
) -> Result<Option<(Log, Option<Owner>)>, Error> {
    let (inner, by_keyring) = (&session.inner, is_over(&session.inner, key.expires_at));
    let log =
        Log::open(&session.scope, key.key, loaded, key.anchor, inner.ledger.settings.history.max_messages);
    let (is_over, changed) = match &log {
        Ok(log) => {
            // A log that was last written before lifetimes were sealed has none in it.
            let until = log.checkpoint().lives().unwrap_or(loaded.expires_at);
            (is_over(inner, until), until != loaded.expires_at)
        }
        // What does not open cannot say it: then both others must.
        Err(_) => (is_over(inner, loaded.expires_at) && by_keyring, false),
    };
    if is_over {
        expire(inner, session.names.scope).await?;
        return Ok(None);
    }
    if changed {
        return Err(Tampering::LifetimeChanged.into());
    }
    Ok(Some((log?.after(erased), loaded.owner)))
}

fn is_over(inner: &Inner, expires_at: Option<Millis>) -> bool {
    expires_at.is_some_and(|at| at <= inner.ledger.now())
}

/// How often opening looks again when key and log do not belong together.
const OPENING_TRIES: usize = 3;
