//! Turns that a process left open when it ended: each is answered or reported once.

use std::sync::Arc;

use super::{Draft, Inbound, MemoryState, Outlet, answer, commit, recall};
use crate::aspects::Profile;
use crate::audit::{Action, Actor};
use crate::engine::{Inner, Recovered, Recovery};
use crate::entry::{Entry, Outcome};
use crate::error::Error;
use crate::model::Sampling;
use crate::room::RoomContext;
use crate::session::{Held, Session, Wrote};
use crate::tokens;

/// A turn that was tried so often is reported instead: it may be what ends the process.
const MOST_ATTEMPTS: u32 = 3;

/// Takes up every turn whose process is dead.
pub(crate) async fn recover(inner: &Arc<Inner>) -> Result<Recovered, Error> {
    let mut recovered = Recovered::default();
    for (scope, _) in inner.store.orphans().await? {
        match recover_one(inner, scope).await {
            Ok(Some(Settled::Answered)) => recovered.resumed += 1,
            Ok(Some(Settled::Reported)) => recovered.reported += 1,
            Ok(None) => {}
            Err(error) => {
                recovered.unreadable += 1;
                tracing::warn!(scope.tag = %scope, error = error.code(), "an open turn could not be taken up");
            }
        }
    }
    Ok(recovered)
}

async fn recover_one(inner: &Arc<Inner>, scope: confidant_seal::Tag) -> Result<Option<Settled>, Error> {
    let Some(row) = inner.keyring.store().get(scope).await? else {
        return Err(crate::error::Tampering::KeyGone.into());
    };
    let session = Session::new(Arc::clone(inner), inner.keyring.scope_of(&row)?, Actor::system());
    let mut held = session.lock().await?;
    if held.log().await?.is_none_or(|log| log.checkpoint().open_exchange().is_none()) {
        return Ok(None);
    }
    if !take_over(&session, &mut held).await? {
        return Ok(None);
    }
    settle(&session, &mut held).await
}

/// Makes this process the one that answers the open turn, if nobody alive is.
pub(super) async fn take_over(session: &Session, held: &mut Held<'_>) -> Result<bool, Error> {
    let inner = &session.inner;
    match held.owner() {
        // We hold the session's order, so a turn of ours that is open has no task any more.
        None => Ok(true),
        Some(owner) if owner == inner.instance => Ok(true),
        Some(owner) if inner.store.is_alive(owner).await? => Ok(false),
        Some(owner) => Ok(inner.store.claim(session.names.scope, owner, inner.instance).await?),
    }
}

/// How an open turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Answered,
    Reported,
}

/// Answers or reports the open turn, which this process has taken over. `None`: it was settled elsewhere.
pub(super) async fn settle(session: &Session, held: &mut Held<'_>) -> Result<Option<Settled>, Error> {
    let inner = &session.inner;
    let Some(open) = held.log().await?.and_then(|log| log.checkpoint().open_exchange()).cloned() else {
        return Ok(None);
    };
    let Outcome::Open { attempts } = open.outcome else { return Ok(None) };
    if inner.settings.recovery == Recovery::Report || attempts >= MOST_ATTEMPTS {
        let entry =
            Entry::Failed { request_id: open.request_id, at: inner.now(), reason: "interrupted".to_owned() };
        let wrote = held.write(vec![entry], None, session.record(Action::TurnFailed)).await?;
        inner.counters.failed.add();
        return Ok((wrote == Wrote::Done).then_some(Settled::Reported));
    }
    let entry = Entry::Resumed { request_id: open.request_id.clone(), at: inner.now() };
    if held.write(vec![entry], Some(inner.instance), session.record(Action::TurnResumed)).await?
        == Wrote::Conflict
    {
        return Ok(None);
    }
    inner.counters.resumed.add();
    let inbound = Inbound {
        request_id: open.request_id,
        tokens: open.tokens.unwrap_or_else(|| tokens::count(&open.content)),
        query: open.content,
        audience: open.audience,
        room: RoomContext::default(),
        instructions: None,
        brought: Vec::new(),
        sampling: Sampling::default(),
        profile: Profile::default(),
        focus: None,
    };
    let recalled = recall::recall(held, &inbound, &inner.settings.history);
    let mut draft = Draft::new(&inbound, MemoryState::Kept);
    draft.metadata.resumed = true;
    let outcome = answer(inner, Some(session), inbound, recalled, draft, &Outlet(None)).await;
    match commit::commit(session, held, outcome).await {
        Ok(_) => Ok(Some(Settled::Answered)),
        // The model is away: the turn is reported in the log, and its request id can be tried again.
        Err(Error::Model(_)) => Ok(Some(Settled::Reported)),
        Err(error) => Err(error),
    }
}
