//! The side that answers: turns that gateways ask for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::sleep;

use super::line::{Lines, Place, Step};
use super::link::{BusLink, Subscription, Way};
use super::seals::Seals;
use super::wire::{self, Asked, Call, Heard, Request};
use super::{BEAT, BusSettings, CALL, ENDED, QUEUED, RUNNING, Speech, late};
use crate::clock::Millis;
use crate::engine::Engine;
use crate::error::Error;
use crate::ledger::session::Session;
use crate::ledger::web_cache;
use crate::ledger::web_scope::{Keep, is_volatile, keep};
use crate::store::random_id;
use crate::turn::{Errand, Outbound, Piece};

/// A process that runs turns for gateways.
#[derive(Debug)]
pub struct Worker {
    desk: Arc<Desk>,
    requests: Subscription,
}

/// Who waits for what a device gives: by call and number.
type DataRequests = HashMap<(String, u64), oneshot::Sender<Vec<Piece>>>;

#[derive(Debug)]
struct Desk {
    engine: Engine,
    link: Arc<BusLink>,
    seals: Seals,
    settings: BusSettings,
    room: Arc<Semaphore>,
    lines: Lines,
    /// Turns without memory, by the call that asked for them: only its gateway can cancel one.
    calls: Mutex<HashMap<String, Arc<Notify>>>,
    /// What turns want of devices, by their call and the number of the request.
    data_requests: Mutex<DataRequests>,
    /// The number of the next request for data: none comes twice, so that nothing that is late is taken for another.
    next_data_request: AtomicU64,
}

impl Engine {
    /// Makes this process a worker; it takes turns while [`Worker::work`] runs.
    pub fn become_worker(&self, settings: BusSettings) -> BoxFuture<'_, Result<Worker, Error>> {
        Box::pin(async move {
            let link = Arc::new(BusLink::connect(&settings.address).await?);
            let seals = Seals::new(self.inner().ledger.keyring.bus_key().clone(), settings.speech);
            let requests = link.listen(Way::Requests).await;
            let _ = self.inner().bus_is_up.set(requests.up.clone());
            if settings.speech == Speech::Plain {
                tokio::spawn(late::tell(Arc::clone(&link), seals.clone(), self.notices()));
            }
            let room = Arc::new(Semaphore::new(settings.turns.max(1)));
            let (lines, calls, data_requests) = (Lines::default(), Mutex::default(), Mutex::default());
            let (engine, next_data_request) = (self.clone(), AtomicU64::new(0));
            let desk =
                Desk { engine, link, seals, settings, room, lines, calls, data_requests, next_data_request };
            let desk = Arc::new(desk);
            Ok(Worker { desk, requests })
        })
    }
}

impl Worker {
    /// Takes requests until this is dropped. Turns that it took keep running.
    pub async fn work(&mut self) {
        while let Some(bytes) = self.requests.messages.recv().await {
            self.desk.take(bytes);
        }
    }
}

impl Desk {
    fn take(self: &Arc<Self>, bytes: Vec<u8>) {
        let Some(json) = self.seals.open(&Way::Requests.name(), bytes) else {
            tracing::warn!("ignored a message on the bus that this installation did not seal");
            return;
        };
        let read = wire::read_request(&json, self.settings.speech, &self.settings.plain_tenant);
        let desk = Arc::clone(self);
        match read {
            Ok(mut request) => {
                if request.call.as_ref().is_some_and(|call| self.is_stale(call.sent_at)) {
                    tracing::warn!(
                        "ignored a request on the bus with an implausible time; check that all clocks agree"
                    );
                    return;
                }
                self.name_as_in_its_session(&mut request);
                let line = self.line_up(&request);
                tokio::spawn(async move { desk.serve(request, line).await });
            }
            Err(unreadable) => {
                tracing::warn!(error = unreadable.why.code(), "a request on the bus could not be read");
                let Some(request_id) = unreadable.request_id else { return };
                if self.settings.speech == Speech::Plain {
                    tokio::spawn(async move { desk.refuse(request_id, unreadable.why).await });
                }
            }
        }
    }

    /// Tells a foreign gateway what is wrong with its request. One worker does this for all.
    async fn refuse(&self, request_id: String, why: Error) {
        let (name, run, way) = (self.seals.name(&request_id), run_name(), Way::Responses);
        if matches!(self.link.claim(&name, &run, ENDED).await, Ok(true)) {
            let reply = Reply { desk: self, way, name, run, request_id, attempt: None, line: None };
            reply.say(&[Heard::Event(Outbound::Error(why))]).await;
        }
    }

    /// A plain request of our own gateways is in the log under the name that its person gave it. Another may say that it is
    /// one: only who has the key can make both names fit.
    fn name_as_in_its_session(&self, request: &mut Request) {
        let Request { request_id, own_name: Some(own_name), asked: Asked::Turn(errand), .. } = request else {
            return;
        };
        let fits = |scope| self.seals.plain_name(scope, own_name) == *request_id;
        if errand.scope.as_ref().is_some_and(fits) {
            errand.request.request_id = Some(std::mem::take(own_name));
        }
    }

    /// A place in its session's line for a turn of which nobody else keeps the order.
    fn line_up(&self, request: &Request) -> Option<Place> {
        let (None, Asked::Turn(errand)) = (&request.call, &request.asked) else { return None };
        let scope = errand.scope.as_ref()?;
        Some(self.lines.join(self.engine.inner().ledger.keyring.names(scope).scope))
    }

    /// Whether a message was said so long ago that its claim may have been forgotten.
    fn is_stale(&self, sent_at: Millis) -> bool {
        let now = self.engine.inner().ledger.now();
        sent_at.plus(BELIEVED) < now || now.plus(BELIEVED) < sent_at
    }

    async fn serve(self: Arc<Self>, request: Request, line: Option<Place>) {
        let Request { request_id, call, asked, .. } = request;
        match asked {
            Asked::Look => {
                if let Err(error) = self.engine.recover().await {
                    tracing::warn!(error = error.code(), "unfinished turns could not be looked up");
                }
            }
            // Only the worker that runs it has it in its list; the log tells the others.
            Asked::Cancel { scope, request_id } => {
                self.engine
                    .inner()
                    .cancels
                    .cancel(self.engine.inner().ledger.keyring.names(&scope).scope, Some(&request_id));
            }
            Asked::CallOff => {
                let called_off = call.and_then(|call| self.calls().get(&call.attempt).cloned());
                called_off.iter().for_each(|turn| turn.notify_one());
            }
            // Only the worker that runs the turn has the request.
            Asked::Give { number, pieces } => {
                let data_request =
                    call.and_then(|call| self.data_requests.lock().remove(&(call.attempt, number)));
                // The turn may have gone on without it.
                let _late = data_request.map(|data_request| data_request.send(pieces));
            }
            // Whoever has some of it ends it; what is kept where conversations are ends there.
            Asked::End { scope, whole_account } => {
                if let Err(error) =
                    self.engine.web_sessions(scope.tenant().clone()).end_here(scope, whole_account).await
                {
                    tracing::warn!(error = error.code(), "what is in memory of a chat could not be ended");
                }
            }
            Asked::Turn(mut errand) => {
                self.date(&mut errand, call.is_some()).await;
                let Some(line) = line else { return self.take_turn(request_id, call, *errand, None).await };
                line.after(Step::Claimed).await;
                self.take_turn(request_id, call, *errand, Some(&line)).await;
                // Whoever is behind it must not come before those that it is behind.
                line.after(Step::Begun).await;
            }
        }
    }

    /// Says when a turn was asked for, unless a gateway of ours has: now, though it may have to wait. A plain one may say that it
    /// is older, and no more.
    async fn date(&self, errand: &mut Errand, sealed: bool) {
        let said = errand.request.epoch;
        if errand.scope.is_some() && !(sealed && said.is_some()) {
            let now = self.engine.epoch().await;
            errand.request.epoch = Some(said.map_or(now, |said| said.min(now)));
        }
    }

    /// Runs a turn, once there is room and if nobody else does.
    async fn take_turn(&self, request_id: String, call: Option<Call>, errand: Errand, line: Option<&Place>) {
        let (way, attempt, stands) = match call {
            Some(call) => (Way::ResponsesTo(call.reply_to), Some(call.attempt), CALL),
            None => (Way::Responses, None, RUNNING),
        };
        let name = self.claim_name(attempt.as_deref(), &errand);
        let reply = Reply { desk: self, way, name, run: run_name(), request_id, attempt, line };
        let place = self.place(&reply, &errand).await;
        if place.is_none() && reply.attempt.is_some() {
            // Its gateway has lost patience by now, and tells whoever waits.
            return;
        }
        // Before it is claimed: once a gateway knows that somebody has it, it may say that it is off.
        let called_off = Arc::new(Notify::new());
        let _listed = reply.attempt.as_ref().filter(|_| errand.scope.is_none()).map(|attempt| {
            self.calls().insert(attempt.clone(), Arc::clone(&called_off));
            Listed { desk: self, attempt: attempt.clone() }
        });
        match self.link.claim(&reply.name, &reply.run, stands).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(error = %error, "a request could not be claimed");
                return;
            }
        }
        line.iter().for_each(|line| line.reached(Step::Claimed));
        if place.is_some() {
            let run = async {
                tokio::select! {
                    // One without memory is cancelled when it is dropped.
                    () = called_off.notified() => {}
                    () = reply.run(errand) => {}
                }
            };
            let _ = tokio::join!(reply.say(&[Heard::Accepted]), run);
        } else {
            // A plain request is made once: if nobody has room, one of us says so.
            reply.say(&[Heard::Event(Outbound::Error(Error::NoWorker))]).await;
        }
        reply.keep_claim(ENDED).await;
    }

    /// A place for a turn. A full worker leaves it to those who have room, and is ready for it as soon as it has some itself:
    /// asked again after a while instead, a turn would wait for that while, though places come free every moment. None if that
    /// takes longer than anybody waits.
    async fn place(&self, reply: &Reply<'_>, errand: &Errand) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.room).try_acquire_owned() {
            sleep(self.reluctance(errand)).await;
            return Some(place);
        }
        let mut free = std::pin::pin!(Arc::clone(&self.room).acquire_owned());
        let mut patience = std::pin::pin!(sleep(self.settings.patience));
        let mut reminders = tokio::time::interval(QUEUED);
        loop {
            tokio::select! {
                place = &mut free => return place.ok(),
                () = &mut patience => return None,
                _ = reminders.tick() => reply.say(&[Heard::Queued]).await,
            }
        }
    }

    /// Its name in claims: this call's, or that of the turn in its session, which other calls share.
    fn claim_name(&self, attempt: Option<&str>, errand: &Errand) -> String {
        match (attempt, &errand.scope) {
            (Some(attempt), _) => self.seals.name(attempt),
            (None, scope) => {
                let request_id = errand.request.request_id.as_deref().unwrap_or_default();
                let turn = scope.as_ref().map(|scope| self.seals.plain_name(scope, request_id));
                self.seals.name(turn.as_deref().unwrap_or(request_id))
            }
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.calls.lock()
    }

    /// How long to leave a request to others: not at all when the conversation is warm here, longer the more there is to do.
    fn reluctance(&self, errand: &Errand) -> Duration {
        let inner = self.engine.inner();
        let warm = errand
            .scope
            .as_ref()
            .is_some_and(|scope| inner.ledger.slots.has(inner.ledger.keyring.names(scope).scope));
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
    /// Who has it: this run, and no other of this worker.
    run: String,
    request_id: String,
    /// Which call it is; a plain request does not say.
    attempt: Option<String>,
    line: Option<&'a Place>,
}

impl Reply<'_> {
    async fn run(&self, errand: Errand) {
        let mut beats = tokio::time::interval_at(tokio::time::Instant::now() + BEAT, BEAT);
        if let Some(line) = self.line {
            let mut next = std::pin::pin!(line.after(Step::Begun));
            loop {
                tokio::select! {
                    () = &mut next => break,
                    _ = beats.tick() => self.beat().await,
                }
            }
        }
        let Errand { scope, tenant, actor, request } = errand;
        let engine = &self.desk.engine;
        let session = scope.map(|scope| engine.session(scope, actor));
        let mut turn = match &session {
            Some(session) => session.turn(request),
            None => engine.turn_without_memory(tenant, request),
        };
        let (mut pieces, mut waits) = (0, false);
        loop {
            tokio::select! {
                event = turn.next() => {
                    let Some(event) = event else {
                        self.say(&[Heard::Done]).await;
                        return end_unkept(session.filter(|_| !waits)).await;
                    };
                    // Whatever it says, it has had its place in the session's order.
                    self.line.iter().for_each(|line| line.reached(Step::Begun));
                    // Each time that something is said takes a while. Meanwhile more may have come.
                    let waiting = std::iter::once(event).chain(std::iter::from_fn(|| turn.waiting()));
                    let waiting = waiting.inspect(|event| waits |= matches!(event, Outbound::Approval(_)));
                    let mut said = joined(waiting, &mut pieces);
                    said.iter_mut().for_each(|said| self.note_data_request(said));
                    note_safety(session.as_ref(), &mut said).await;
                    self.say(&said).await;
                }
                _ = beats.tick() => self.beat().await,
            }
        }
    }

    /// Keeps the way back for what a turn wants; what its call has no name for gets nothing.
    fn note_data_request(&self, said: &mut Heard) {
        let (Heard::Event(Outbound::Wanted(_)), Some(attempt)) = (&said, &self.attempt) else { return };
        let Heard::Event(Outbound::Wanted(wanted)) = std::mem::replace(said, Heard::Alive) else { return };
        let (data_request, answer) = wanted.parted();
        let mut data_requests = self.desk.data_requests.lock();
        // Those whose turn went on without.
        data_requests.retain(|_, answer| !answer.is_closed());
        let number = self.desk.next_data_request.fetch_add(1, Ordering::Relaxed);
        data_requests.insert((attempt.clone(), number), answer);
        *said = Heard::Wants(number, data_request);
    }

    async fn beat(&self) {
        tokio::join!(self.say(&[Heard::Alive]), self.keep_claim(RUNNING));
    }

    /// Says how long the claim of a plain request stands from now on. That of a call needs no more than it has.
    async fn keep_claim(&self, stands: Duration) {
        if self.attempt.is_none()
            && let Err(error) = self.desk.link.keep_claim(&self.name, &self.run, stands).await
        {
            tracing::warn!(error = %error, "a claim could not be renewed");
        }
    }

    /// Sends these, in their order.
    async fn say(&self, heard: &[Heard]) {
        let (way, attempt) = (self.way.name(), self.attempt.as_deref());
        let said = heard.iter().filter_map(|heard| wire::response(&self.request_id, attempt, heard));
        let payloads: Vec<_> = said.map(|json| self.desk.seals.close(&way, json)).collect();
        if payloads.is_empty() {
            return;
        }
        if let Err(error) = self.desk.link.publish_all(&self.way, &payloads).await {
            // The gateway asks again, and finds the answer in the log.
            tracing::warn!(error = %error, "a response could not be sent");
        }
    }
}

/// Says with a turn that has no answer how harmful its conversation has been, where that is in this process's memory only.
async fn note_safety(session: Option<&Session>, said: &mut [Heard]) {
    let Some(session) = session.filter(|session| is_volatile(session.scope())) else { return };
    for heard in said {
        if !matches!(heard, Heard::Event(Outbound::Error(_) | Outbound::Approval(_))) {
            continue;
        }
        let Ok(Some(safety)) = session.safety().await else { continue };
        if let Heard::Event(event) = std::mem::replace(heard, Heard::Alive) {
            *heard = Heard::Unanswered(Box::new(event), safety);
        }
    }
}

/// Ends a session that is kept for one answer only, now that its gateway has it.
async fn end_unkept(session: Option<Session>) {
    let Some(session) = session.filter(|session| keep(session.scope()) == Some(Keep::Once)) else { return };
    if let Err(error) = web_cache::end(&session).await {
        tracing::warn!(scope.tag = %session.tag(), error = error.code(), "a session kept for one answer could not be ended; it expires");
    }
}

/// What is to be said, with pieces of an answer that follow each other made one. They are numbered as they are said.
fn joined(events: impl Iterator<Item = Outbound>, pieces: &mut u64) -> Vec<Heard> {
    let mut joined: Vec<Heard> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(Heard::Event(Outbound::Delta { text, .. })), Outbound::Delta { text: more, .. }) => {
                text.push_str(&more);
            }
            (_, Outbound::Delta { text, .. }) => {
                joined.push(Heard::Event(Outbound::Delta { seq: *pieces, text }));
                *pieces += 1;
            }
            (_, event) => joined.push(Heard::Event(event)),
        }
    }
    joined
}

/// A name for one run. The same request may arrive twice; those are two runs.
fn run_name() -> String {
    uuid::Uuid::from_bytes(random_id()).simple().to_string()
}

/// How old a message may be; claims are kept for longer.
const BELIEVED: Duration = Duration::from_secs(240);
const MOST_RELUCTANT: Duration = Duration::from_millis(20);
const COLD: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_wait_are_said_as_one_and_in_their_order() {
        let piece = |seq, text: &str| Outbound::Delta { seq, text: text.to_owned() };
        let progress = || Outbound::Progress { text: "p".into() };
        let mut pieces = 0;
        let mut said = |events: Vec<Outbound>| {
            let words = joined(events.into_iter(), &mut pieces).into_iter().map(|heard| match heard {
                Heard::Event(Outbound::Delta { seq, text }) => format!("{seq}:{text}"),
                Heard::Event(Outbound::Progress { text }) => text.into_owned(),
                Heard::Event(Outbound::Error(error)) => error.code().to_owned(),
                other => panic!("{other:?}"),
            });
            words.collect::<Vec<_>>()
        };
        assert_eq!(said(vec![progress(), piece(0, "a")]), ["p", "0:a"]);
        assert_eq!(said(vec![piece(1, "b"), piece(2, "c"), progress(), piece(3, "d")]), ["1:bc", "p", "2:d"]);
        assert_eq!(said(vec![piece(4, "e"), Outbound::Error(Error::Busy)]), ["3:e", "busy"]);
    }
}
