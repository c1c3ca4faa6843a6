//! The beginning of a turn: its place in the session's order, its task, and the ear at its other end.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use confidant_model::tokens;
use confidant_seal::{Tag, TenantId};
use tokio::sync::mpsc;

use super::after::{elsewhere, remote};
use super::answer::answer;
use super::draft::Draft;
use super::outbound::{Ending, Final, MemoryState, Outbound};
use super::outlet::Outlet;
use super::prepare::Whose;
use super::request::{Inbound, TurnRequest};
use super::spoken::{Spoken, SpokenCommand};
use super::{cancel, recall, run, scope};
use crate::audience::Audience;
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::erasures::Asked;
use crate::ledger::session::{Held, Place, Session};
use crate::running;

/// A turn under way. Dropping it lets the turn go on by itself; one without memory is cancelled, since nobody could ever
/// hear of it.
#[derive(Debug)]
pub struct Turn {
    request_id: String,
    events: mpsc::UnboundedReceiver<Outbound>,
    _heard: Option<cancel::OnDrop>,
}

impl Turn {
    /// The turn's name, to ask for its answer again.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The next event, if it is there already.
    pub(crate) fn waiting(&mut self) -> Option<Outbound> {
        self.events.try_recv().ok()
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<Outbound> {
        self.events.recv().await
    }

    /// Waits for the end, skipping everything before it.
    pub async fn end(mut self) -> Result<Ending, Error> {
        while let Some(event) = self.next().await {
            match event {
                Outbound::Final(answer) => return Ok(Ending::Answer(answer)),
                Outbound::Approval(request) => return Ok(Ending::Approval(request)),
                Outbound::Error(error) => return Err(error),
                // Nobody here can give what is wanted.
                Outbound::Progress { .. }
                | Outbound::Delta { .. }
                | Outbound::SettingsWanted { .. }
                | Outbound::Wanted(_) => {}
                Outbound::Enriched(_) => {}
            }
        }
        Err(Error::Internal)
    }

    /// Waits for the answer; that somebody must approve something first is an error to whoever wants only that.
    pub async fn finish(self) -> Result<Final, Error> {
        match self.end().await? {
            Ending::Answer(answer) => Ok(answer),
            Ending::Approval(_) => Err(Error::AwaitsApproval),
        }
    }
}

impl Session {
    /// Starts a turn. It goes on even if the returned [`Turn`] is dropped.
    #[must_use]
    pub fn turn(&self, mut request: TurnRequest) -> Turn {
        let session = self.clone();
        // What these words ask for elsewhere is done by a device here; and words whose answer was begun were read before.
        if self.is_web() || !request.steps.is_empty() {
            request.spoken = Spoken::Read(None);
        }
        let audience = scope::default_audience(&self.scope, &request);
        let mut arrived = Arrived::now(self, &mut request);
        start(&self.inner, Some(self.names.scope), request, audience, move |inbound, outlet| async move {
            arrived.look(&session).await;
            run(&session, inbound, arrived, &outlet).await
        })
    }
}

pub(crate) fn start_without_memory(
    inner: &Arc<Inner>,
    tenant: Option<TenantId>,
    request: TurnRequest,
) -> Turn {
    let engine = Arc::clone(inner);
    start(inner, None, request, Audience::Private, move |mut inbound, outlet| async move {
        if let Some(gateway) = engine.gateway.get() {
            return remote::run_without_memory(gateway, tenant, inbound, &outlet).await;
        }
        inbound.tokens = tokens::count(&inbound.request.query);
        let draft = Draft::new(&inbound, MemoryState::Off);
        let whose = Whose::unnamed(tenant.as_ref());
        let recalled = recall::Recalled::default();
        let reached = answer(&engine, &whose, None, inbound, recalled, draft, &outlet).await?;
        reached.into_final().map(Ending::Answer)
    })
}

/// What a turn has from the moment it is asked for, before anything is done that takes time: turns that are sent in a row stay in
/// that order, and what was erased since is known.
pub(super) struct Arrived {
    pub(super) asked: Asked,
    /// What it tells the memory itself; such things do not wait.
    pub(super) command: Option<SpokenCommand>,
    /// Its place in the session's order.
    pub(super) place: Option<Place>,
}

impl Arrived {
    fn now(session: &Session, request: &mut TurnRequest) -> Self {
        let command = mem::take(&mut request.spoken).command(&request.query);
        let place = command.is_none().then(|| session.line_up());
        Self { asked: Asked::now(&session.inner.ledger, request.epoch), command, place }
    }

    /// Looks how many erasures there were, where one may come before the turn writes. Where that cannot be told now, it is
    /// looked for again by whoever writes.
    async fn look(&mut self, session: &Session) {
        let inner = &session.inner;
        let waits = matches!(self.place, Some(Place::Waits(_)));
        let at_hand = inner.gateway.get().is_none() && self.place.as_ref().is_some_and(Place::is_warm);
        if waits {
            // For as long as an erasure takes, perhaps: this must be known, and costs no time.
            let _ = self.asked.look(&inner.ledger).await;
        } else if !at_hand {
            let _ = tokio::time::timeout(LOOKS, self.asked.look(&inner.ledger)).await;
        }
    }

    /// Waits for the session's turn to write.
    pub(super) async fn lock<'s>(
        place: Option<Place>,
        asked: Asked,
        session: &'s Session,
        request_id: &str,
    ) -> Result<Held<'s>, Error> {
        let place = place.unwrap_or_else(|| session.line_up());
        match cancel::or(session.lock_at(place, asked)).await {
            Ok(held) => held,
            Err(cancelled) => {
                elsewhere::note_called_off(session, request_id, asked).await;
                session.inner.ledger.counters.cancelled.add();
                Err(cancelled)
            }
        }
    }
}

/// How long a turn waits to learn how many erasures there were: a store that is away costs it no more than that.
const LOOKS: Duration = Duration::from_millis(500);

fn start<F>(
    inner: &Arc<Inner>,
    scope: Option<Tag>,
    request: TurnRequest,
    audience: Audience,
    run: impl FnOnce(Inbound, Outlet) -> F + Send + 'static,
) -> Turn
where
    F: Future<Output = Result<Ending, Error>> + Send + 'static,
{
    // A gateway's workers answer, and look for themselves.
    let answers = inner.gateway.get().is_none().then_some(&inner.staff.models);
    let checked = scope::inbound(request, audience, &inner.ledger.settings);
    match checked.and_then(|inbound| scope::can_be_answered(inbound, answers)) {
        Ok(inbound) => {
            let request_id = inbound.request_id.clone();
            spawn(inner, scope, request_id, |outlet| run(inbound, outlet))
        }
        Err(error) => {
            let (events, receiver) = mpsc::unbounded_channel();
            Outlet::new(Some(events)).end(Err(error));
            Turn { request_id: String::new(), events: receiver, _heard: None }
        }
    }
}

/// Runs a turn as a task of its own, which can be cancelled by its name.
pub(super) fn spawn<F>(
    inner: &Arc<Inner>,
    scope: Option<Tag>,
    request_id: String,
    run: impl FnOnce(Outlet) -> F + Send + 'static,
) -> Turn
where
    F: Future<Output = Result<Ending, Error>> + Send + 'static,
{
    let (events, receiver) = mpsc::unbounded_channel();
    let outlet = Outlet::new(Some(events));
    let refused = outlet.clone();
    let cancel = inner.cancels.enter(scope, &request_id);
    let heard = scope.is_none().then(|| cancel.on_drop());
    let turn = Turn { request_id, events: receiver, _heard: heard };
    let task = cancel::scope(cancel, async move {
        let outcome = run(outlet.clone()).await;
        cancel::leave();
        outlet.end(outcome);
    });
    if let Err(error) = running::Running::spawn(inner, task) {
        refused.end(Err(error));
    }
    turn
}
