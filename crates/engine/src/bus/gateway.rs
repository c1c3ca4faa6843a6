//! The side that asks: turns of this process that workers run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::link::{BusLink, Reach, Subscription, Way};
use super::seals::Seals;
use super::wire::{self, Call, Errand, Heard};
use super::{BusSettings, CALL, ENDED, Speech};
use crate::clock::Clock;
use crate::engine::{Engine, random_id};
use crate::error::Error;
use crate::turn::{Ending, Final, Outbound, Outlet};

/// A gateway, as an engine has it.
#[derive(Debug)]
pub(crate) struct Gateway {
    link: BusLink,
    seals: Seals,
    settings: BusSettings,
    clock: Arc<dyn Clock>,
    /// Names it on the bus.
    id: String,
    waiting: Mutex<HashMap<String, mpsc::UnboundedSender<Heard>>>,
}

impl Engine {
    /// Makes this process a gateway: from now on its turns are run by workers.
    pub async fn become_gateway(&self, settings: BusSettings) -> Result<(), Error> {
        let inner = self.inner();
        let link = BusLink::connect(&settings.address).await?;
        let seals = Seals::new(inner.keyring.bus_key().clone(), settings.speech);
        let id = uuid::Uuid::from_bytes(random_id()).simple().to_string();
        let way = match settings.speech {
            Speech::Sealed => Way::ResponsesTo(id.clone()),
            Speech::Plain => Way::Responses,
        };
        let responses = link.listen(way.clone()).await;
        let _ = inner.bus_is_up.set(responses.up.clone());
        let (clock, waiting) = (Arc::clone(&inner.clock), Mutex::default());
        let gateway = Arc::new(Gateway { link, seals, settings, clock, id, waiting });
        tokio::spawn(listen(Arc::downgrade(&gateway), way, responses));
        inner.gateway.set(gateway).map_err(|_| Error::Internal)
    }
}

/// Hands responses to those who wait for them. What nobody here waits for is somebody else's, or late.
async fn listen(gateway: Weak<Gateway>, way: Way, mut responses: Subscription) {
    let way = way.name();
    while let Some(bytes) = responses.messages.recv().await {
        let Some(gateway) = gateway.upgrade() else { return };
        let Some(json) = gateway.seals.open(&way, bytes) else { continue };
        let Some(response) = wire::read_response(&json) else { continue };
        let name = response.attempt.unwrap_or(response.request_id);
        if let Some(waiting) = gateway.lock().get(&name) {
            let _ = waiting.send(response.heard);
        }
    }
}

/// What a turn has told so far.
#[derive(Default)]
struct Told {
    /// Whether a worker has taken it, ever.
    accepted: bool,
    /// The pieces of the answer, and whether one is missing.
    text: String,
    next: u64,
    gap: bool,
}

/// Whether a worker is known to have taken a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Already,
    NotYet,
}

/// How one call went.
enum Went {
    Ended(Result<Ending, Error>),
    /// Nobody has taken it.
    Untaken,
    /// Somebody had, and is not heard any more.
    Silent,
}

impl Gateway {
    /// Has a turn run by a worker.
    pub(crate) async fn run(self: &Arc<Self>, errand: &Errand, outlet: &Outlet) -> Result<Ending, Error> {
        match self.settings.speech {
            Speech::Sealed => self.run_sealed(errand, outlet).await,
            Speech::Plain => self.run_plain(errand, outlet).await,
        }
    }

    async fn run_sealed(self: &Arc<Self>, errand: &Errand, outlet: &Outlet) -> Result<Ending, Error> {
        let (began, mut told, mut pause) = (Instant::now(), Told::default(), SHORTEST_PAUSE);
        loop {
            let call = self.call();
            let attempt = call.attempt.clone();
            let mut replies = self.expect(&attempt);
            let payload = self.seals.close(&Way::Requests.name(), wire::turn(errand, Some(&call)));
            let mut unheard = errand.scope.is_none().then(|| Unheard {
                gateway: Arc::clone(self),
                request_id: errand.request.request_id.clone().unwrap_or_default(),
                call: Some(call),
            });
            let sent = self.link.publish(&Way::Requests, &payload).await;
            let mut went = match &sent {
                Ok(Reach::Perhaps) => self.hear(&mut replies, &mut told, Taken::NotYet, outlet).await,
                Ok(Reach::Nobody) | Err(_) => Went::Untaken,
            };
            let until = began + if told.accepted { LONGEST_SEARCH } else { self.settings.patience };
            // Before it is asked for again or given up it is ours, or a worker's after all: then it is heard of.
            let heard_of = !matches!(sent, Ok(Reach::Nobody));
            if matches!(went, Went::Untaken) && heard_of && !self.withdraw(&attempt, until).await? {
                went = self.hear(&mut replies, &mut told, Taken::Already, outlet).await;
            }
            if let (Some(unheard), Went::Ended(_) | Went::Untaken) = (&mut unheard, &went) {
                unheard.call = None;
            }
            match went {
                Went::Ended(outcome) => {
                    self.hear_out(replies, outlet.clone());
                    return outcome;
                }
                Went::Silent => {}
                Went::Untaken => {
                    if Instant::now() >= until {
                        return Err(sent.err().map_or(Error::NoWorker, Error::from));
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Takes a call back; says whether nobody had taken it. While that cannot be said it is tried again, until then at most.
    async fn withdraw(&self, attempt: &str, until: Instant) -> Result<bool, Error> {
        loop {
            match self.link.claim(&self.seals.name(attempt), &self.id, CALL).await {
                Ok(ours) => return Ok(ours),
                Err(error) if Instant::now() >= until => return Err(error.into()),
                Err(_) => sleep(LONGEST_PAUSE).await,
            }
        }
    }

    /// Listens to one call until it ends or falls silent.
    async fn hear(&self, replies: &mut Expected, told: &mut Told, mut taken: Taken, outlet: &Outlet) -> Went {
        loop {
            let wait = if taken == Taken::Already { self.settings.silence } else { TAKING };
            let Ok(Some(heard)) = timeout(wait, replies.receiver.recv()).await else {
                return if taken == Taken::Already { Went::Silent } else { Went::Untaken };
            };
            taken = Taken::Already;
            told.accepted = true;
            match heard {
                Heard::Event(event) => {
                    if let Some(outcome) = told.pass_on(event, outlet) {
                        return Went::Ended(outcome);
                    }
                }
                Heard::Accepted | Heard::Alive | Heard::Done => {}
            }
        }
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

    /// As with the first system: said once, and the answer waited for.
    async fn run_plain(&self, errand: &Errand, outlet: &Outlet) -> Result<Ending, Error> {
        self.fits_plain(errand)?;
        let name = errand.request.request_id.clone().unwrap_or_default();
        let mut replies = self.expect(&name);
        let (began, mut told) = (Instant::now(), Told::default());
        let payload = || self.seals.close(&Way::Requests.name(), wire::turn(errand, None));
        while self.link.publish(&Way::Requests, &payload()).await? == Reach::Nobody {
            if began.elapsed() >= self.settings.patience {
                return Err(Error::NoWorker);
            }
            sleep(LONGEST_PAUSE).await;
        }
        // A foreign worker says nothing of having taken it, and may think for a while before its first word.
        let mut wait = self.settings.patience * FIRST_WORD;
        loop {
            let Ok(Some(heard)) = timeout(wait, replies.receiver.recv()).await else {
                // A worker of ours that has it may have to wait for the session's order.
                if wait < LONGEST_SEARCH && !self.link.claim(&self.seals.name(&name), &self.id, ENDED).await?
                {
                    wait = LONGEST_SEARCH;
                    continue;
                }
                return Err(Error::NoWorker);
            };
            wait = LONGEST_SEARCH;
            if let Heard::Event(event) = heard
                && let Some(outcome) = told.pass_on(event, outlet)
            {
                return outcome;
            }
        }
    }

    /// Whether a turn can be said in the first system's words. Whoever reads them puts it under one tenant, and into a session.
    fn fits_plain(&self, errand: &Errand) -> Result<(), Error> {
        let refused =
            |what: &str, hint: &str| Err(Error::Invalid { what: what.to_owned(), hint: hint.to_owned() });
        match &errand.scope {
            None => refused(
                "a bus in compat mode has no turns without a session",
                "name the person with `user`, or set bus.mode = \"sealed\" here and at the workers",
            ),
            Some(scope) if *scope.tenant() != self.settings.plain_tenant => refused(
                "a bus in compat mode knows no tenants, so turns of this one cannot go over it",
                "set bus.mode = \"sealed\" here and at the workers",
            ),
            Some(_) => Ok(()),
        }
    }

    /// Has a turn called off, wherever it runs.
    pub(crate) async fn cancel(&self, errand: &Errand) {
        let (Some(scope), Some(request_id)) = (&errand.scope, &errand.request.request_id) else { return };
        if self.settings.speech == Speech::Sealed {
            let json = wire::cancel(scope, &errand.actor, request_id, self.call());
            let _ = self.link.publish(&Way::Requests, &self.seals.close(&Way::Requests.name(), json)).await;
        }
    }

    /// How long it looks for a worker.
    pub(crate) fn patience(&self) -> Duration {
        self.settings.patience
    }

    /// Has workers look for what was left undone now, rather than at their next round.
    pub(crate) async fn nudge(&self) {
        if self.settings.speech == Speech::Sealed {
            let json = wire::look(self.call());
            let _ = self.link.publish(&Way::Requests, &self.seals.close(&Way::Requests.name(), json)).await;
        }
    }

    fn call(&self) -> Call {
        let attempt = uuid::Uuid::from_bytes(random_id()).simple().to_string();
        Call { attempt, reply_to: self.id.clone(), sent_at: self.clock.now() }
    }

    fn expect(&self, name: &str) -> Expected {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().insert(name.to_owned(), sender);
        Expected { receiver }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, mpsc::UnboundedSender<Heard>>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        waiting.retain(|_, sender| !sender.is_closed());
        waiting
    }
}

/// Somebody who waits for responses; taken off the list when it is dropped.
#[derive(Debug)]
struct Expected {
    receiver: mpsc::UnboundedReceiver<Heard>,
}

/// A turn without memory that a worker may have and nobody listens to any more: it is taken back, or called off.
struct Unheard {
    gateway: Arc<Gateway>,
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

impl Told {
    /// Tells the asker; says how the turn ended, if it did.
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

    /// Tells what is missing of an answer that was told in pieces.
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
/// How long a turn that was accepted is looked for when no worker is heard at all.
const LONGEST_SEARCH: Duration = Duration::from_secs(300);
/// How many times its patience a gateway waits for the first word on a plain request.
const FIRST_WORD: u32 = 6;
const AFTERWARDS: Duration = Duration::from_secs(60);
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
