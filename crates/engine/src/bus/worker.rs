//! The side that answers: turns that gateways ask for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::sleep;

use super::link::{BusLink, Subscription, Way};
use super::seals::Seals;
use super::wire::{self, Asked, Call, Errand, Heard, Request};
use super::{BEAT, BusSettings, CALL, ENDED, RUNNING, Speech};
use crate::clock::Millis;
use crate::engine::{Engine, random_id};
use crate::error::Error;
use crate::turn::Outbound;

/// A process that runs turns for gateways.
#[derive(Debug)]
pub struct Worker {
    desk: Arc<Desk>,
    requests: Subscription,
}

#[derive(Debug)]
struct Desk {
    engine: Engine,
    link: BusLink,
    seals: Seals,
    settings: BusSettings,
    id: String,
    room: Arc<Semaphore>,
    /// Turns without memory, by the call that asked for them: nobody but its gateway can have one called off.
    calls: Mutex<HashMap<String, Arc<Notify>>>,
}

impl Engine {
    /// Makes this process a worker; it takes turns while [`Worker::work`] runs.
    pub async fn become_worker(&self, settings: BusSettings) -> Result<Worker, Error> {
        let link = BusLink::connect(&settings.address).await?;
        let seals = Seals::new(self.inner().keyring.bus_key().clone(), settings.speech);
        let requests = link.listen(Way::Requests).await;
        let _ = self.inner().bus_is_up.set(requests.up.clone());
        let id = uuid::Uuid::from_bytes(random_id()).simple().to_string();
        let room = Arc::new(Semaphore::new(settings.turns.max(1)));
        let calls = Mutex::default();
        let desk = Arc::new(Desk { engine: self.clone(), link, seals, settings, id, room, calls });
        Ok(Worker { desk, requests })
    }
}

impl Worker {
    /// Takes requests until this is dropped. What was taken goes on by itself.
    pub async fn work(&mut self) {
        while let Some(bytes) = self.requests.messages.recv().await {
            self.desk.take(bytes);
        }
    }
}

impl Desk {
    fn take(self: &Arc<Self>, bytes: Vec<u8>) {
        let Some(json) = self.seals.open(&Way::Requests.name(), bytes) else {
            tracing::warn!("a message on the bus is not sealed by this installation; it is left alone");
            return;
        };
        let read = wire::read_request(&json, self.settings.speech, &self.settings.plain_tenant);
        let desk = Arc::clone(self);
        match read {
            Ok(request) => {
                if request.call.as_ref().is_some_and(|call| self.is_stale(call.sent_at)) {
                    tracing::warn!("a request on the bus is older than any should be; are the clocks right?");
                    return;
                }
                tokio::spawn(async move { desk.serve(request).await });
            }
            Err(unreadable) => {
                tracing::warn!(error = unreadable.why.code(), "a request on the bus is not understood");
                let Some(request_id) = unreadable.request_id else { return };
                if self.settings.speech == Speech::Plain {
                    tokio::spawn(async move { desk.refuse(request_id, unreadable.why).await });
                }
            }
        }
    }

    /// Tells a foreign gateway what is wrong with its request: one worker does.
    async fn refuse(&self, request_id: String, why: Error) {
        let name = self.seals.name(&request_id);
        if matches!(self.link.claim(&name, &self.id, ENDED).await, Ok(true)) {
            let reply = Reply { desk: self, way: Way::Responses, name, request_id, attempt: None };
            reply.say(&Heard::Event(Outbound::Error(why))).await;
        }
    }

    /// Whether a message was said so long ago that its claim may have been forgotten.
    fn is_stale(&self, sent_at: Millis) -> bool {
        let now = self.engine.inner().now();
        sent_at.plus(BELIEVED) < now || now.plus(BELIEVED) < sent_at
    }

    async fn serve(self: Arc<Self>, request: Request) {
        let Request { request_id, call, asked } = request;
        match asked {
            Asked::Look => {
                if let Err(error) = self.engine.recover().await {
                    tracing::warn!(error = error.code(), "what was left undone could not be looked for");
                }
            }
            // Only the worker that runs it has it in its list; the log tells the others.
            Asked::Cancel { scope, request_id } => {
                self.engine
                    .inner()
                    .cancels
                    .cancel(self.engine.inner().keyring.names(&scope).scope, Some(&request_id));
            }
            Asked::CallOff => {
                let called_off = call.and_then(|call| self.calls().get(&call.attempt).cloned());
                called_off.iter().for_each(|turn| turn.notify_one());
            }
            Asked::Turn(errand) => self.take_turn(request_id, call, *errand).await,
        }
    }

    /// Runs a turn, if there is room and nobody else does.
    async fn take_turn(&self, request_id: String, call: Option<Call>, errand: Errand) {
        let room = || Arc::clone(&self.room).try_acquire_owned().ok();
        let mut place = room();
        let (way, attempt, stands) = match call {
            // Its gateway asks again while it has patience, and tells whoever waits.
            Some(_) if place.is_none() => return,
            Some(call) => (Way::ResponsesTo(call.reply_to), Some(call.attempt), CALL),
            None => (Way::Responses, None, RUNNING),
        };
        if place.is_some() {
            sleep(self.reluctance(&errand)).await;
        } else {
            // A plain request is made once: if nobody has room, one of us says so.
            sleep(OTHERS_FIRST).await;
            place = room();
        }
        // Before it is claimed: once a gateway knows that somebody has it, it may say that it is off.
        let called_off = Arc::new(Notify::new());
        let _listed = attempt.as_ref().filter(|_| errand.scope.is_none()).map(|attempt| {
            self.calls().insert(attempt.clone(), Arc::clone(&called_off));
            Listed { desk: self, attempt: attempt.clone() }
        });
        let name = self.seals.name(attempt.as_deref().unwrap_or(&request_id));
        match self.link.claim(&name, &self.id, stands).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(error = %error, "a request could not be claimed");
                return;
            }
        }
        let reply = Reply { desk: self, way, name, request_id, attempt };
        if place.is_some() {
            let run = async {
                tokio::select! {
                    // One without memory is cancelled when it is dropped.
                    () = called_off.notified() => {}
                    () = reply.run(errand) => {}
                }
            };
            let _ = tokio::join!(reply.say(&Heard::Accepted), run);
        } else {
            reply.say(&Heard::Event(Outbound::Error(Error::NoWorker))).await;
        }
        reply.keep_claim(ENDED).await;
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long to leave a request to others: not at all when the conversation is warm here, longer the more there is to do.
    fn reluctance(&self, errand: &Errand) -> Duration {
        let inner = self.engine.inner();
        let warm =
            errand.scope.as_ref().is_some_and(|scope| inner.slots.has(inner.keyring.names(scope).scope));
        let busy = self.settings.turns.saturating_sub(self.room.available_permits());
        let load = MOST_RELUCTANT.mul_f64(busy as f64 / self.settings.turns.max(1) as f64);
        if warm { load / 4 } else { load + COLD }
    }
}

/// Takes a call off the list when it is over.
struct Listed<'a> {
    desk: &'a Desk,
    attempt: String,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.desk.calls().remove(&self.attempt);
    }
}

/// Where the answer to one request goes.
struct Reply<'a> {
    desk: &'a Desk,
    way: Way,
    /// What its claim is called.
    name: String,
    request_id: String,
    /// Which call it is; a plain request does not say.
    attempt: Option<String>,
}

impl Reply<'_> {
    async fn run(&self, errand: Errand) {
        let Errand { scope, tenant, actor, request } = errand;
        let engine = &self.desk.engine;
        let mut turn = match scope {
            Some(scope) => engine.session(scope, actor).turn(request),
            None => engine.turn_without_memory(tenant, request),
        };
        let mut beats = tokio::time::interval_at(tokio::time::Instant::now() + BEAT, BEAT);
        loop {
            tokio::select! {
                event = turn.next() => match event {
                    Some(event) => self.say(&Heard::Event(event)).await,
                    None => return self.say(&Heard::Done).await,
                },
                _ = beats.tick() => {
                    tokio::join!(self.say(&Heard::Alive), self.keep_claim(RUNNING));
                }
            }
        }
    }

    /// Says how long the claim of a plain request stands from now on. That of a call needs no more than it has.
    async fn keep_claim(&self, stands: Duration) {
        if self.attempt.is_none()
            && let Err(error) = self.desk.link.keep_claim(&self.name, &self.desk.id, stands).await
        {
            tracing::warn!(error = %error, "a claim could not be kept");
        }
    }

    async fn say(&self, heard: &Heard) {
        let Some(json) = wire::response(&self.request_id, self.attempt.as_deref(), heard) else { return };
        let payload = self.desk.seals.close(&self.way.name(), json);
        if let Err(error) = self.desk.link.publish(&self.way, &payload).await {
            // The gateway asks again, and finds the answer in the log.
            tracing::warn!(error = %error, "a response could not be sent");
        }
    }
}

/// How old a message may be; claims are kept for longer.
const BELIEVED: Duration = Duration::from_secs(240);
const MOST_RELUCTANT: Duration = Duration::from_millis(20);
const COLD: Duration = Duration::from_millis(1);
/// How long a full worker leaves a plain request to those who have room.
const OTHERS_FIRST: Duration = Duration::from_millis(250);
