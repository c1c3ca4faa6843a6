//! Turns that workers run for this process, which is a gateway: the same order, the same events, the same end.

use std::sync::Arc;
use std::time::Duration;

use confidant_seal::TenantId;
use tokio::time::Instant;

use super::outlet::Outlet;
use super::{Ending, Inbound, Standing, TurnRequest, cancel};
use crate::audit::Actor;
use crate::bus::{Errand, Gateway};
use crate::error::Error;
use crate::session::Session;

/// Has a turn of a session run.
pub(super) async fn run(
    gateway: &Arc<Gateway>,
    session: &Session,
    inbound: Inbound,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    // The session's order: what was said here first is asked for first.
    let _place = cancel::or(session.lock()).await??;
    let errand = Errand {
        scope: Some(session.scope().clone()),
        tenant: None,
        actor: session.actor.clone(),
        request: inbound.into_request(),
    };
    match cancel::or(gateway.run(&errand, outlet)).await {
        Ok(outcome) => outcome,
        Err(cancelled) => {
            gateway.cancel(&errand).await;
            // In the log as well: a worker that has not heard finds out when it writes.
            super::elsewhere::call_off(session, errand.request.request_id.as_deref()).await?;
            Err(cancelled)
        }
    }
}

/// Has a turn without memory run. Nobody else can ever hear of it: when it is cancelled, the gateway has it called off.
pub(super) async fn run_without_memory(
    gateway: &Arc<Gateway>,
    tenant: Option<TenantId>,
    inbound: Inbound,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let errand = Errand { scope: None, tenant, actor: Actor::named("bus"), request: inbound.into_request() };
    cancel::or(gateway.run(&errand, outlet)).await?
}

/// Waits until a worker has carried out a decision that is in the log, as long as there is one that takes it up. The decision
/// stands either way.
pub(super) async fn carried_out(
    gateway: &Arc<Gateway>,
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

impl Inbound {
    fn into_request(self) -> TurnRequest {
        TurnRequest {
            request_id: Some(self.request_id),
            query: self.query,
            audience: Some(self.audience),
            room: self.room,
            instructions: self.instructions,
            brought: self.brought,
            sampling: self.sampling,
            profile: self.profile,
            focus: self.focus,
            past_chats: self.past_chats,
            available_settings: self.available_settings,
            settings: self.settings,
            restore: self.restore,
            capture: self.capture,
        }
    }
}

const FIRST_LOOK: Duration = Duration::from_millis(50);
const LATER_LOOKS: Duration = Duration::from_secs(1);
