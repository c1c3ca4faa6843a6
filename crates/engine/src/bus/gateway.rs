//! The side that asks: turns of this process that workers run.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use confidant_model::ModelError;
use confidant_seal::Scope;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::link::{BusLink, Reach, Subscription, Way};
use super::seals::{Payload, Seals};
use super::wire::{self, Call, Heard};
use super::{BusSettings, CALL, ENDED, QUEUED, RUNNING, Speech, late};
use crate::clock::Clock;
use crate::engine::Engine;
use crate::error::Error;
use crate::store::random_id;
use crate::turn::{
    DataRequest, Ending, Errand, Final, Gateway, Outbound, Outlet, SafetyRecord, Wanted, is_cancelled,
};

/// The gateway of an engine.
#[derive(Debug)]
pub(crate) struct BusGateway {
    link: Arc<BusLink>,
    seals: Seals,
    settings: BusSettings,
    clock: Arc<dyn Clock>,
    /// Its name on the bus.
    id: String,
    waiting: Mutex<HashMap<String, mpsc::UnboundedSender<Heard>>>,
    /// What workers said of the harm of chats that are in their memory only, until somebody asks for it.
    scores: Mutex<HashMap<Scope, SafetyRecord>>,
}

impl Engine {
    /// Makes this process a gateway: from now on its turns are run by workers.
    pub fn become_gateway(&self, settings: BusSettings) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let inner = self.inner();
            let link = Arc::new(BusLink::connect(&settings.address).await?);
            let seals = Seals::new(inner.ledger.keyring.bus_key().clone(), settings.speech);
            let id = uuid::Uuid::from_bytes(random_id()).simple().to_string();
            let way = match settings.speech {
                Speech::Sealed => Way::ResponsesTo(id.clone()),
                Speech::Plain => Way::Responses,
            };
            let responses = link.listen(way.clone()).await;
            let _ = inner.bus_is_up.set(responses.up.clone());
            let (clock, waiting, scores) =
                (Arc::clone(&inner.ledger.clock), Mutex::default(), Mutex::default());
            if settings.speech == Speech::Plain {
                tokio::spawn(late::tell(Arc::clone(&link), seals.clone(), self.notices()));
            }
            let gateway = Arc::new(BusGateway { link, seals, settings, clock, id, waiting, scores });
            tokio::spawn(listen(Arc::downgrade(&gateway), way, responses));
            inner.gateway.set(gateway).map_err(|_| Error::Internal)
        })
    }
}

/// Hands responses to those who wait for them. What nobody here waits for is somebody else's, or late.
async fn listen(gateway: Weak<BusGateway>, way: Way, mut responses: Subscription) {
    let way = way.name();
    while let Some(bytes) = responses.messages.recv().await {
        let Some(gateway) = gateway.upgrade() else { return };
        let Some(json) = gateway.seals.open(&way, bytes) else { continue };
        let Some(response) = wire::read_response(&json) else { continue };
        // What a plain one says besides its name counts for nothing.
        let attempt = response.attempt.filter(|_| gateway.settings.speech == Speech::Sealed);
        let name = attempt.unwrap_or(response.request_id);
        if let Some(waiting) = gateway.lock().get(&name) {
            let _ = waiting.send(response.heard);
        }
    }
}

/// What a turn has told so far.
#[derive(Default)]
struct PassedOn {
    /// Whether a worker has taken it, ever.
    accepted: bool,
    /// The pieces of the answer, and whether one is missing.
    text: String,
    next: u64,
    gap: bool,
    /// What the worker said of the conversation's harm.
    safety: Option<SafetyRecord>,
}

/// Whether a worker is known to have taken a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Already,
    NotYet,
}

/// How one call ended.
enum Went {
    Ended(Result<Ending, Error>),
    /// Nobody has taken it.
    Untaken,
    /// A worker had taken it and then fell silent.
    Silent,
}

#[async_trait]
impl Gateway for BusGateway {
    async fn run(self: Arc<Self>, errand: &Errand, outlet: &Outlet) -> Result<Ending, Error> {
        match self.settings.speech {
            Speech::Sealed => self.run_sealed(errand, outlet).await,
            Speech::Plain => self.run_plain(errand, outlet).await,
        }
    }

    async fn cancel(&self, errand: &Errand) {
        let (Some(scope), Some(request_id)) = (&errand.scope, &errand.request.request_id) else { return };
        if self.settings.speech == Speech::Sealed {
            let json = wire::cancel(scope, &errand.actor, request_id, self.call());
            let _ = self.link.publish(&Way::Requests, &self.seals.close(&Way::Requests.name(), json)).await;
        }
    }

    fn take_score(&self, scope: &Scope) -> Option<SafetyRecord> {
        self.scores.lock().remove(scope)
    }

    async fn end(&self, scope: &Scope, whole_account: bool) {
        if self.settings.speech == Speech::Sealed {
            let json = wire::end(scope, whole_account, self.call());
            let _ = self.link.publish(&Way::Requests, &self.seals.close(&Way::Requests.name(), json)).await;
        }
    }

    async fn nudge(&self) {
        if self.settings.speech == Speech::Sealed {
            let json = wire::look(self.call());
            let _ = self.link.publish(&Way::Requests, &self.seals.close(&Way::Requests.name(), json)).await;
        }
    }

    fn patience(&self) -> Duration {
        self.settings.patience
    }

    async fn has_worker(&self) -> bool {
        !matches!(self.link.listeners(&Way::Requests).await, Ok(Reach::Nobody))
    }

    fn may_be_foreign(&self, scope: &Scope) -> bool {
        self.settings.speech == Speech::Plain && *scope.tenant() == self.settings.plain_tenant
    }
}

impl BusGateway {
    async fn run_sealed(self: &Arc<Self>, errand: &Errand, outlet: &Outlet) -> Result<Ending, Error> {
        let (began, mut told, mut pause) = (Instant::now(), PassedOn::default(), SHORTEST_PAUSE);
        loop {
            let call = self.call();
            let attempt = call.attempt.clone();
            let mut replies = self.expect(&attempt)?;
            let payload = self.seals.close(&Way::Requests.name(), wire::turn(errand, &call));
            let mut unheard = errand.scope.is_none().then(|| Unheard {
                gateway: Arc::clone(self),
                request_id: errand.request.request_id.clone().unwrap_or_default(),
                call: Some(call),
            });
            let sent = self.link.publish(&Way::Requests, &payload).await;
            let patience = began + self.settings.patience;
            let mut went = match &sent {
                Ok(Reach::Perhaps) => {
                    self.hear(&mut replies, &mut told, Taken::NotYet, patience, outlet).await
                }
                Ok(Reach::Nobody) | Err(_) => Went::Untaken,
            };
            let until = if told.accepted { began + LONGEST_SEARCH } else { patience };
            // Before it is asked for again or given up it is ours, or a worker's after all: then it is heard of. Though nobody
            // listened: a server that is no longer the one to write to says so to a write only, and workers have left it.
            if matches!(went, Went::Untaken) && !self.withdraw(&attempt, until).await? {
                went = self.hear(&mut replies, &mut told, Taken::Already, patience, outlet).await;
            }
            if let (Some(unheard), Went::Ended(_) | Went::Untaken) = (&mut unheard, &went) {
                unheard.call = None;
            }
            match went {
                Went::Ended(outcome) => {
                    self.hear_out(replies, outlet.clone());
                    self.note_score(errand, told.safety);
                    return outcome;
                }
                // Nobody has it, and nobody is asked any more.
                Went::Silent | Went::Untaken if is_cancelled() => return Err(Error::Cancelled),
                Went::Silent => {}
                Went::Untaken => {
                    if Instant::now() >= until {
                        return Err(sent.err().map_or(Error::NoWorker, Error::Bus));
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Keeps what a worker said of harm until it is asked for.
    fn note_score(&self, errand: &Errand, safety: Option<SafetyRecord>) {
        let (Some(scope), Some(safety)) = (&errand.scope, safety) else { return };
        let mut scores = self.scores.lock();
        if scores.len() >= MOST_SCORES {
            // Nobody has asked for them.
            scores.clear();
        }
        scores.insert(scope.clone(), safety);
    }

    /// Takes a call back; says whether nobody had taken it. While that cannot be said it is tried again, until then at most.
    async fn withdraw(&self, attempt: &str, until: Instant) -> Result<bool, Error> {
        loop {
            match self.link.claim(&self.seals.name(attempt), &self.id, CALL).await {
                Ok(ours) => return Ok(ours),
                Err(error) if Instant::now() >= until => return Err(Error::Bus(error)),
                Err(_) => sleep(LONGEST_PAUSE).await,
            }
        }
    }

    /// Listens to one call until it ends or falls silent. While a worker says that it is the next to be taken, it is not asked
    /// for again, which would put it behind all others: until `patience` is over.
    async fn hear(
        self: &Arc<Self>,
        replies: &mut Expected,
        told: &mut PassedOn,
        mut taken: Taken,
        patience: Instant,
        outlet: &Outlet,
    ) -> Went {
        let mut taking = TAKING;
        loop {
            let wait = if taken == Taken::Already { self.settings.silence } else { taking };
            let Ok(Some(heard)) = timeout(wait, replies.receiver.recv()).await else {
                return if taken == Taken::Already { Went::Silent } else { Went::Untaken };
            };
            if matches!(heard, Heard::Queued) {
                taking = (QUEUED * 3).min(patience.saturating_duration_since(Instant::now()));
                continue;
            }
            taken = Taken::Already;
            told.accepted = true;
            match heard {
                Heard::Event(event) => {
                    if let Some(outcome) = told.pass_on(event, outlet) {
                        return Went::Ended(outcome);
                    }
                }
                Heard::Unanswered(event, safety) => {
                    told.safety = Some(safety);
                    if let Some(outcome) = told.pass_on(*event, outlet) {
                        return Went::Ended(outcome);
                    }
                }
                Heard::Wants(number, data_request) => {
                    self.pass_data_request(&replies.name, number, data_request, outlet)
                }
                Heard::Queued | Heard::Accepted | Heard::Alive | Heard::Done => {}
            }
        }
    }

    /// Passes on what a turn wants of the person's device, and what that gives.
    fn pass_data_request(
        self: &Arc<Self>,
        attempt: &str,
        number: u64,
        data_request: DataRequest,
        outlet: &Outlet,
    ) {
        let (wanted, given) = Wanted::new(data_request);
        outlet.send(Outbound::Wanted(Box::new(wanted)));
        let (gateway, attempt) = (Arc::clone(self), attempt.to_owned());
        tokio::spawn(async move {
            // Longer than any turn waits for it.
            let given =
                timeout(LONGEST_DATA_REQUEST, given).await.ok().and_then(Result::ok).unwrap_or_default();
            let call = Call { attempt, ..gateway.call() };
            let json = wire::give(number, given, call);
            let payload = gateway.seals.close(&Way::Requests.name(), json);
            let _ = gateway.link.publish(&Way::Requests, &payload).await;
        });
    }

    /// What a small model makes of the turn comes after its end.
    fn hear_out(&self, mut replies: Expected, outlet: Outlet) {
        tokio::spawn(async move {
            while let Ok(Some(heard)) = timeout(AFTERWARDS, replies.receiver.recv()).await {
                match heard {
                    Heard::Event(event @ Outbound::Enriched(_)) => outlet.send(event),
                    Heard::Done => return,
                    _ => {}
                }
            }
        });
    }

    /// As with the first system: said once, and the answer waited for. What a worker of ours had and has no more is said
    /// again, since the log keeps it from being run twice; a foreign worker claims nothing and would run it once more.
    async fn run_plain(&self, errand: &Errand, outlet: &Outlet) -> Result<Ending, Error> {
        let scope = self.fits_plain(errand)?;
        let own_name = errand.request.request_id.clone().unwrap_or_default();
        let name = self.seals.plain_name(scope, &own_name);
        let mut replies = self.expect(&name)?;
        let plain = || wire::plain_turn(errand, &name, self.clock.now());
        let payload = || self.seals.close(&Way::Requests.name(), plain());
        let claim = self.seals.name(&name);
        // It may be at work, or just have ended: then nobody takes it until its claim is over.
        let mut ours = matches!(self.link.is_claimed(&claim).await, Ok(true));
        let began = Instant::now();
        while self.say_plain(&payload()).await? == Reach::Nobody {
            if began.elapsed() >= self.settings.patience {
                return Err(Error::NoWorker);
            }
            sleep(LONGEST_PAUSE).await;
        }
        let (mut told, mut alive, mut said) = (PassedOn::default(), Instant::now(), Instant::now());
        loop {
            // A foreign worker says nothing of having taken it, and may think for a while before its first word.
            let taken = told.accepted || ours;
            let longest = if taken { LONGEST_SEARCH } else { self.settings.patience * FIRST_WORD };
            let quiet = if ours && !told.accepted { TAKING } else { self.settings.silence };
            let wait = LOOK.min(quiet).min(longest.saturating_sub(alive.elapsed()));
            if let Ok(Some(heard)) = timeout(wait, replies.receiver.recv()).await {
                alive = Instant::now();
                if let Some(event) = heard.into_event()
                    && let Some(outcome) = told.pass_on(event.of(&own_name), outlet)
                {
                    return outcome;
                }
                // Looked at now: it does not stand for long after the end, and the end may not be heard.
                if !std::mem::replace(&mut told.accepted, true) {
                    ours |= matches!(self.link.is_claimed(&claim).await, Ok(true));
                }
                continue;
            }
            if matches!(self.link.is_claimed(&claim).await, Ok(true)) {
                // A worker of ours has it, and may have to wait for the session's order.
                (ours, alive) = (true, Instant::now());
            } else if alive.elapsed() >= longest {
                // Before it is given up it is ours, or a worker's after all.
                if self.link.claim(&claim, &self.id, ENDED).await.map_err(Error::Bus)? {
                    let cut_off = told.accepted && !ours;
                    return Err(if cut_off { ModelError::CutOff.into() } else { Error::NoWorker });
                }
            } else if ours && alive.elapsed().min(said.elapsed()) >= quiet {
                said = Instant::now();
                let _ = self.say_plain(&payload()).await;
            }
        }
    }

    async fn say_plain(&self, payload: &Payload) -> Result<Reach, Error> {
        let reach = self.link.publish(&Way::Requests, payload).await.map_err(Error::Bus)?;
        if reach == Reach::Nobody {
            // As in `run_sealed`: where workers are may be elsewhere by now.
            self.link.claim(&self.seals.name(&self.id), &self.id, ENDED).await.map_err(Error::Bus)?;
        }
        Ok(reach)
    }

    /// The session of a turn that can be said in the first system's words. Whoever reads them puts it under one tenant, and
    /// into a session.
    fn fits_plain<'a>(&self, errand: &'a Errand) -> Result<&'a Scope, Error> {
        let refused =
            |what: &str, hint: &str| Err(Error::Invalid { what: what.to_owned(), hint: hint.to_owned() });
        match &errand.scope {
            None => refused(
                "a bus in compat mode cannot carry turns without a session",
                "name the person with `user`, or set bus.mode = \"sealed\" here and on the workers",
            ),
            Some(scope) if *scope.tenant() != self.settings.plain_tenant => refused(
                "a bus in compat mode carries a single tenant, and this turn belongs to another one",
                "set bus.mode = \"sealed\" here and on the workers",
            ),
            Some(scope) => Ok(scope),
        }
    }

    fn call(&self) -> Call {
        let attempt = uuid::Uuid::from_bytes(random_id()).simple().to_string();
        Call { attempt, reply_to: self.id.clone(), sent_at: self.clock.now() }
    }

    /// Waits for the responses to one request; only one may wait for each.
    fn expect(&self, name: &str) -> Result<Expected, Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        match self.lock().entry(name.to_owned()) {
            Entry::Occupied(_) => Err(Error::Busy),
            Entry::Vacant(free) => {
                free.insert(sender);
                Ok(Expected { receiver, name: name.to_owned() })
            }
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<String, mpsc::UnboundedSender<Heard>>> {
        let mut waiting = self.waiting.lock();
        waiting.retain(|_, sender| !sender.is_closed());
        waiting
    }
}

/// Somebody who waits for responses; taken off the list when it is dropped.
#[derive(Debug)]
struct Expected {
    /// What they answer.
    name: String,
    receiver: mpsc::UnboundedReceiver<Heard>,
}

/// A turn without memory that a worker may have and nobody listens to any more: it is taken back, or called off.
struct Unheard {
    gateway: Arc<BusGateway>,
    request_id: String,
    call: Option<Call>,
}

impl Drop for Unheard {
    fn drop(&mut self) {
        let (Some(call), gateway) = (self.call.take(), Arc::clone(&self.gateway)) else { return };
        let request_id = std::mem::take(&mut self.request_id);
        // Without one the process ends, and so do its calls.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let claimed = gateway.link.claim(&gateway.seals.name(&call.attempt), &gateway.id, CALL).await;
            if !matches!(claimed, Ok(true)) {
                let payload = gateway.seals.close(&Way::Requests.name(), wire::call_off(&request_id, call));
                let _ = gateway.link.publish(&Way::Requests, &payload).await;
            }
        });
    }
}

impl Outbound {
    /// The same of a turn by the name that it has in its session.
    fn of(mut self, own_name: &str) -> Self {
        match &mut self {
            Self::Final(answer) => own_name.clone_into(&mut answer.request_id),
            Self::Approval(request) => own_name.clone_into(&mut request.request_id),
            _ => {}
        }
        self
    }
}

impl PassedOn {
    /// Passes an event on to the asker; returns how the turn ended, if it did.
    fn pass_on(&mut self, event: Outbound, outlet: &Outlet) -> Option<Result<Ending, Error>> {
        match event {
            Outbound::Final(answer) => {
                self.complete(&answer, outlet);
                Some(Ok(Ending::Answer(answer)))
            }
            Outbound::Approval(request) => Some(Ok(Ending::Approval(request))),
            Outbound::Error(error) => Some(Err(error)),
            Outbound::Delta { seq, text } => {
                // One that was lost leaves a gap, and one that was told by another worker is told: the end has all of it.
                if seq == self.next && !self.gap {
                    self.next += 1;
                    self.text.push_str(&text);
                    outlet.delta(&text);
                } else {
                    self.gap = true;
                }
                None
            }
            other => {
                outlet.send(other);
                None
            }
        }
    }

    /// Sends the missing rest of an answer that was sent in pieces.
    fn complete(&self, answer: &Final, outlet: &Outlet) {
        if !self.gap {
            return;
        }
        match answer.content.strip_prefix(&*self.text) {
            Some("") => {}
            Some(rest) => outlet.delta(rest),
            // Another worker began anew and said it otherwise: the whole answer is what holds.
            None => outlet.delta(&format!("\n\n{}", answer.content)),
        }
    }
}

/// How long a call waits to be taken before it is made again.
const TAKING: Duration = Duration::from_millis(1000);
/// Chats whose harm is kept for whoever asks.
const MOST_SCORES: usize = 10_000;
/// How long a turn that was accepted is looked for when no worker is heard at all.
const LONGEST_SEARCH: Duration = Duration::from_secs(300);
/// How many times its patience a gateway waits for the first word on a plain request.
const FIRST_WORD: u32 = 6;
/// How often a gateway looks whether a worker of ours has a plain request: while the claim of one that died still stands.
const LOOK: Duration = Duration::from_secs(RUNNING.as_secs() / 3);
const AFTERWARDS: Duration = Duration::from_secs(60);
const LONGEST_DATA_REQUEST: Duration = Duration::from_secs(60);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
