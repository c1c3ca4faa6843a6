//! Stage 7: what is made of a finished turn. Off the answer's path: nobody waits for it, and a turn without it is whole.

mod enrichment;
mod strip;

use std::sync::Arc;
use std::time::Duration;

use confidant_model::{Model, ModelError, fresh_fence};

use super::compress;
use super::draft::{Answered, Draft};
use super::outbound::Outbound;
use super::outlet::Outlet;
use crate::about::Due;
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::audit::Action;
use crate::ledger::entry::Entry;
use crate::ledger::session::{Session, Wrote};
use crate::running::Running;

pub use enrichment::Enrichment;
pub(super) use enrichment::{Material, clip};

/// Does what there is to do after a turn, on a task of its own.
pub(super) fn later(session: &Session, material: Option<Material>, draft: &Draft, outlet: &Outlet) {
    let inner = &session.inner;
    let processing = &inner.ledger.settings.processing;
    let Some(small) = inner.staff.models.small().cloned() else { return };
    let (session, outlet) = (session.clone(), outlet.clone());
    let request_id = draft.request_id.clone();
    let material = material.filter(|_| processing.enrich);
    let kept_from = Some(draft.kept_from).filter(|_| draft.left_out > 0 || draft.crowded);
    if material.is_none() && kept_from.is_none() {
        return;
    }
    Running::aside(&Arc::clone(inner), async move {
        if let Some(material) = material
            && let Err(error) = enriched(&session, small.as_ref(), &request_id, &material, &outlet).await
        {
            tracing::warn!(error = error.code(), "a turn was not enriched");
        }
        if let Some(kept_from) = kept_from
            && let Err(error) = compressed(&session, small.as_ref(), kept_from).await
        {
            tracing::warn!(error = error.code(), "a conversation was not summarised");
        }
    });
}

/// Whether something is to be made of an answer, where devices keep the chat: they may have to look for it in the log.
pub(super) fn due(session: &Session, answered: &Answered) -> Option<Due> {
    let inner = &session.inner;
    let makes = inner.ledger.settings.processing.enrich && inner.staff.models.small().is_some();
    let material = answered.draft.material.as_ref().filter(|_| makes && session.is_web())?;
    if answered.enrichment.is_some() {
        return None;
    }
    let is_known = material.settings.is_empty() && material.profile.is_empty();
    Some(if is_known { Due::FromLog } else { Due::Here })
}

/// How long it may take until it is there, or will not come from whoever answered.
pub(super) fn patience(inner: &Inner) -> Duration {
    inner.ledger.settings.processing.timeout * (ENRICH_PATIENCE + 1) + Duration::from_secs(5)
}

/// What a small model makes of a turn.
pub(super) async fn ask(
    session: &Session,
    small: &dyn Model,
    material: &Material,
) -> Result<Enrichment, ModelError> {
    let inner = &session.inner;
    let limit = inner.ledger.settings.processing.timeout * ENRICH_PATIENCE;
    let filled = tokio::time::timeout(limit, small.fill(&material.form(&fresh_fence()))).await;
    Ok(material.read(&filled.unwrap_or(Err(ModelError::TimedOut))?, &inner.staff.gate))
}

async fn enriched(
    session: &Session,
    small: &dyn Model,
    request_id: &str,
    material: &Material,
    outlet: &Outlet,
) -> Result<(), Error> {
    let made = ask(session, small, material).await?;
    if keep(session, request_id, &made).await? {
        outlet.send(Outbound::Enriched(Box::new(made)));
    }
    Ok(())
}

/// Puts it into the log; says whether its turn is still there.
pub(super) async fn keep(session: &Session, request_id: &str, made: &Enrichment) -> Result<bool, Error> {
    let mut held = session.lock().await?;
    loop {
        let log = held.log().await?;
        if log.is_none_or(|log| log.checkpoint().exchange(request_id).is_none()) {
            return Ok(false);
        }
        let owner = held.owner();
        let entry = Entry::Enriched {
            request_id: request_id.to_owned(),
            at: session.inner.ledger.now(),
            enrichment: Box::new(made.clone()),
        };
        if held.write(vec![entry], owner, session.record(Action::SessionEnriched)).await? == Wrote::Done {
            return Ok(true);
        }
    }
}

async fn compressed(session: &Session, small: &dyn Model, kept_from: u64) -> Result<(), Error> {
    let limits = session.inner.ledger.settings.history;
    let job = {
        let mut held = session.lock().await?;
        let due = held.log().await?.and_then(|log| compress::due(log.checkpoint(), kept_from, &limits));
        due.map(|job| job.of(held.kid()))
    };
    match job {
        Some(job) => compress::sum_up(session, small, job).await,
        None => Ok(()),
    }
}

/// Nobody waits for an enrichment, so it may take longer than what somebody waits for.
const ENRICH_PATIENCE: u32 = 6;
