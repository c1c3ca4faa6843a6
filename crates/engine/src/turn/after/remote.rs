//! Turns that workers run for this process, which is a gateway: the same order, the same events, the same end.

use std::sync::Arc;
use std::time::Duration;

use confidant_seal::TenantId;
use tokio::time::Instant;

use super::elsewhere::{Standing, call_off, note_called_off};
use crate::error::Error;
use crate::ledger::audit::Actor;
use crate::ledger::erasures::Asked;
use crate::ledger::rights::Receipt;
use crate::ledger::session::{Place, Session};
use crate::turn::begin::Arrived;
use crate::turn::cancel;
use crate::turn::gateway::{Errand, Gateway};
use crate::turn::outbound::Ending;
use crate::turn::outlet::Outlet;
use crate::turn::request::{Inbound, TurnRequest};

/// Has a turn of a session run.
pub(in crate::turn) async fn run(
    gateway: &Arc<dyn Gateway>,
    session: &Session,
    inbound: Inbound,
    (place, asked): (Option<Place>, Asked),
    outlet: &Outlet,
) -> Result<Ending, Error> {
    // The session's order: what was said here first is asked for first.
    let _place = Arrived::lock(place, asked, session, &inbound.request_id).await?;
    let errand = Errand {
        scope: Some(session.scope().clone()),
        tenant: None,
        actor: session.actor.clone(),
        request: inbound.into_request(Some(asked.epoch())),
    };
    let mut running = Arc::clone(gateway).run(&errand, outlet);
    match cancel::or(&mut running).await {
        Ok(outcome) => outcome,
        Err(cancelled) => {
            gateway.cancel(&errand).await;
            // In the log as well: a worker that has not heard finds out when it writes.
            let request_id = errand.request.request_id.as_deref();
            if !call_off(session, request_id).await? {
                note_called_off(session, request_id.unwrap_or_default(), asked).await;
            }
            // Whoever keeps what is known of a chat's harm asks for it next: with the worker's last word it is known.
            if session.is_web() && !gateway.may_be_foreign(session.scope()) {
                cancel::finish(running, ENDING).await;
            }
            Err(cancelled)
        }
    }
}

/// Tells whoever runs a turn of this session that it was called off, which the log says already: so it ends now, and not at its next write.
pub(in crate::turn) async fn tell_called_off(session: &Session, request_id: Option<&str>) {
    if let Some(relay) = session.inner.relay.get() {
        relay.silence(session.names.scope).await;
    }
    if let Some(gateway) = session.inner.gateway.get() {
        let request_id = request_id.map(str::to_owned);
        let request = TurnRequest { request_id, ..TurnRequest::default() };
        let (scope, actor) = (Some(session.scope().clone()), session.actor.clone());
        gateway.cancel(&Errand { scope, tenant: None, actor, request }).await;
    }
}

/// Has a turn without memory run. Nobody else can ever hear of it: when it is cancelled, the gateway has it called off.
pub(in crate::turn) async fn run_without_memory(
    gateway: &Arc<dyn Gateway>,
    tenant: Option<TenantId>,
    inbound: Inbound,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let errand =
        Errand { scope: None, tenant, actor: Actor::named("bus"), request: inbound.into_request(None) };
    cancel::or(Arc::clone(gateway).run(&errand, outlet)).await?
}

/// What to say of a conversation that was erased here, with this receipt, where a worker that is not ours may keep it as well:
/// it hears the same words, and what it makes of them is told as what it says.
pub(in crate::turn) async fn forgotten_elsewhere(
    gateway: &Arc<dyn Gateway>,
    session: &Session,
    inbound: &Inbound,
    receipt: &Receipt,
) -> String {
    let request = TurnRequest {
        request_id: Some(inbound.request_id.clone()),
        query: inbound.request.query.clone(),
        audience: Some(inbound.audience),
        ..TurnRequest::default()
    };
    let (scope, actor) = (Some(session.scope().clone()), session.actor.clone());
    let errand = Errand { scope, tenant: None, actor, request };
    match Arc::clone(gateway).run(&errand, &Outlet::new(None)).await {
        // A worker of ours: it has the same keyring, and found there what was erased.
        Ok(Ending::Answer(answer)) if answer.metadata.receipt.as_deref() == Some(receipt) => {
            ERASED.to_owned()
        }
        Ok(Ending::Answer(answer)) => format!("{ERASED_HERE} {PASSED_ON} {}", answer.content),
        Ok(Ending::Approval(request)) => format!("{ERASED_HERE} {PASSED_ON} {}", request.question),
        Err(error) => {
            tracing::warn!(scope.tag = %session.tag(), error = error.code(), "no worker answered the request to forget a conversation");
            format!("{ERASED_HERE} {UNHEARD}")
        }
    }
}

/// What is true where all that is kept is ours.
pub(in crate::turn) const ERASED: &str =
    "I have erased our conversation: its key is destroyed, and nothing of it can be read again.";
const ERASED_HERE: &str = "I have erased what I kept of our conversation: its key is destroyed.";
const PASSED_ON: &str =
    "The worker that answers here may keep its own memory. I passed your request on, and it says:";
const UNHEARD: &str = "The worker that answers here may keep its own memory, and it did not answer when I passed your \
                       request on. Please try again later.";

/// Waits until a worker has carried out a decision that is in the log, as long as there is one that takes it up. The decision
/// stands either way.
pub(in crate::turn) async fn carried_out(
    gateway: &Arc<dyn Gateway>,
    session: &Session,
    request_id: &str,
) -> Result<Ending, Error> {
    let (mut pause, mut waiting_since) = (FIRST_LOOK, Instant::now());
    loop {
        gateway.nudge().await;
        cancel::or(tokio::time::sleep(pause)).await?;
        match session.standing(request_id).await? {
            Standing::Ended(ending) => return Ok(ending),
            Standing::Failed(reason) => return Err(crate::bus::error(&reason)),
            Standing::Decided if waiting_since.elapsed() >= gateway.patience() => {
                return Err(Error::NoWorker);
            }
            Standing::Decided => {}
            Standing::Running => waiting_since = Instant::now(),
        }
        pause = (pause * 2).min(LATER_LOOKS);
    }
}

/// How long a worker may take to end a turn that was cancelled: longer than to judge it.
const ENDING: Duration = Duration::from_secs(15);
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LATER_LOOKS: Duration = Duration::from_secs(1);
