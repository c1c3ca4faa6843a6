//! Turns that a process left open when it ended, or when a write of it failed: each is answered or reported once.

use std::sync::Arc;

use confidant_model::tokens;
use confidant_seal::Tag;
use futures_util::future::BoxFuture;
use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};

use super::{decide, pay, unfinished};
use crate::concepts;
use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::audit::{Action, Actor};
use crate::ledger::checkpoint::{Exchange, Outcome};
use crate::ledger::entry::{Entry, Given, Reply};
use crate::ledger::erased;
use crate::ledger::keyring::born;
use crate::ledger::session::{Held, Session, Wrote};
use crate::settings::Recovery;
use crate::store::Owner;
use crate::turn::answer::answer;
use crate::turn::draft::Draft;
use crate::turn::outbound::{Ending, Final, MemoryState, Metadata};
use crate::turn::outlet::Outlet;
use crate::turn::prepare::Whose;
use crate::turn::request::{Inbound, TurnRequest};
use crate::turn::{cancel, commit, recall};

/// A turn that was tried so often is reported instead: it may be what ends the process.
const MOST_ATTEMPTS: u32 = 3;

/// So many sessions are taken up side by side.
const AT_ONCE: usize = 8;

/// How long a session in which something waits is left alone: this process knows when what it put there runs out, and not what
/// others have put there since.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_secs(30);

/// How long a session that could not be opened is left alone.
const AFTER_FAILURE: std::time::Duration = std::time::Duration::from_secs(60);

/// What a start found of the run before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Turns that were answered now.
    pub resumed: u64,
    /// Turns that were closed without an answer.
    pub reported: u64,
    /// Turns that were closed because nobody decided in time what they waited for.
    pub expired: u64,
    /// Turns that were answered while the store was away, and are in their logs now.
    pub caught_up: u64,
    /// Turns whose log could not be opened; they are left as they are.
    pub unreadable: u64,
}

/// Takes up every turn whose process is dead, and those that this one left open; carries out decisions that nobody has, and closes what ran out.
pub(crate) async fn recover(inner: &Arc<Inner>) -> Result<Recovered, Error> {
    let mut recovered = Recovered::default();
    let orphans = inner.ledger.store.orphans().await?;
    // Before anything is taken up that was left open: some of it was answered, and only the log does not know.
    recovered.caught_up = pay::pay_all(inner).await?;
    inner.ledger.agenda.keep(&orphans);
    let now = inner.ledger.now();
    let is_due = |(scope, owner): &(Tag, Owner)| {
        let waits = *owner == Owner::Parked && inner.ledger.agenda.is_early(*scope, now);
        !waits && !inner.ledger.unreadable.is_early(*scope, now)
    };
    // Boxed one by one: the compiler cannot see that a stream of these borrows may be sent.
    let mut due: Vec<BoxFuture<'_, Tried>> = Vec::new();
    for (scope, _) in orphans.into_iter().filter(is_due) {
        due.push(Box::pin(async move { (scope, recover_one(inner, scope).await) }));
    }
    for scope in inner.ledger.left_open.take(|scope| !inner.ledger.unreadable.is_early(scope, now)) {
        due.push(Box::pin(async move {
            let settled = settle_own(inner, scope).await;
            if settled.as_ref().is_err_and(Error::is_stores) {
                inner.ledger.left_open.note(scope);
            }
            (scope, settled)
        }));
    }
    // Side by side: a model that takes its time over one keeps nobody else waiting.
    let mut due = stream::iter(due).buffer_unordered(AT_ONCE);
    while let Some((scope, taken_up)) = due.next().await {
        let again = taken_up.is_err().then(|| inner.ledger.now().plus(AFTER_FAILURE));
        inner.ledger.unreadable.note(scope, again);
        match taken_up {
            Ok(Some(Settled::Answered)) => recovered.resumed += 1,
            Ok(Some(Settled::Reported)) => recovered.reported += 1,
            Ok(Some(Settled::Expired)) => recovered.expired += 1,
            Ok(None) => {}
            Err(error) => {
                recovered.unreadable += 1;
                tracing::warn!(scope.tag = %scope, error = error.code(), "an unfinished turn could not be resumed");
            }
        }
    }
    Ok(recovered)
}

/// A session, and what came of taking it up.
type Tried = (Tag, Result<Option<Settled>, Error>);

async fn recover_one(inner: &Arc<Inner>, scope: Tag) -> Result<Option<Settled>, Error> {
    let Some(row) = inner.ledger.keyring.store().get(scope).await? else {
        return Err(crate::error::Tampering::KeyGone.into());
    };
    let session = Session::new(Arc::clone(inner), inner.ledger.keyring.scope_of(&row)?, Actor::system());
    if born(&row) < inner.ledger.last_erasure(&session.names).await? {
        // It was accepted while it was erased, by a process that ended before it saw that.
        erased::remove(&session).await?;
        return Ok(None);
    }
    let mut held = session.lock().await?;
    // Another process may have written: what is warm here says nothing of that.
    held.cool();
    let open = held.log().await?.and_then(|log| log.checkpoint().open_exchange());
    if let Some(request_id) = open.map(|open| open.request_id.clone()) {
        if !take_over(&session, &mut held).await? {
            return Ok(None);
        }
        let cancel = inner.cancels.enter(Some(scope), &request_id);
        return cancel::scope(cancel, settle(&session, &mut held)).await;
    }
    // What cannot come into scope now keeps nobody from deciding.
    let caught_up = concepts::catch_up(&session, &mut held).await;
    if held.write_merged().await? == Wrote::Conflict {
        return Ok(None);
    }
    let settled = look_after_waiting(inner, &session, &mut held).await?;
    caught_up.map(|()| settled)
}

/// Settles a turn that this process left open. One that has a task of ours is left to that.
async fn settle_own(inner: &Arc<Inner>, scope: Tag) -> Result<Option<Settled>, Error> {
    let Some(row) = inner.ledger.keyring.store().get(scope).await? else { return Ok(None) };
    let session = Session::new(Arc::clone(inner), inner.ledger.keyring.scope_of(&row)?, Actor::system());
    let Some(held) = session.lock().now_or_never() else {
        inner.ledger.left_open.note(scope);
        return Ok(None);
    };
    let mut held = held?;
    held.cool();
    let open = held.log().await?.and_then(|log| log.checkpoint().open_exchange());
    let Some(request_id) = open.map(|open| open.request_id.clone()) else { return Ok(None) };
    if !held.is_ours() {
        return Ok(None);
    }
    // Whoever asks for it again just now goes on with it.
    if inner.cancels.has(scope, &request_id) {
        inner.ledger.left_open.note(scope);
        return Ok(None);
    }
    let cancel = inner.cancels.enter(Some(scope), &request_id);
    cancel::scope(cancel, settle(&session, &mut held)).await
}

/// Carries out a decision that nobody has, or closes what ran out.
async fn look_after_waiting(
    inner: &Arc<Inner>,
    session: &Session,
    held: &mut Held<'_>,
) -> Result<Option<Settled>, Error> {
    let now = inner.ledger.now();
    let waiting = held.checkpoint().map_or_else(Vec::new, |log| log.waiting().to_vec());
    for exchange in &waiting {
        if exchange.handed().is_some_and(|handed| handed.until <= now)
            && decide::let_go(session, held, exchange).await?
        {
            return Ok(Some(Settled::Expired));
        }
        let Some(approval) = exchange.approval() else { continue };
        if approval.decided.is_some() {
            let cancel = inner.cancels.enter(Some(session.names.scope), &exchange.request_id);
            let outlet = Outlet::new(None);
            let carrying = carry_on(session, held, &exchange.request_id, &outlet);
            let outcome = cancel::scope(cancel, carrying).await;
            let settled = if outcome.is_ok() { Settled::Answered } else { Settled::Reported };
            inner.notices.tell(session.scope(), exchange, outcome);
            return Ok(Some(settled));
        }
        if approval.expires_at <= now && decide::expire(session, held, exchange).await? {
            return Ok(Some(Settled::Expired));
        }
    }
    // Another process may add one that runs out sooner, and nothing here would tell.
    let next = waiting.iter().filter_map(Exchange::waits_until).min();
    inner.ledger.agenda.note(session.names.scope, next.map(|next| next.min(now.plus(LOOK_AGAIN))));
    Ok(None)
}

/// Takes up a turn that waited and is decided: once, since the entry that says so has one winner.
pub(in crate::turn) async fn carry_on(
    session: &Session,
    held: &mut Held<'_>,
    request_id: &str,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let inner = &session.inner;
    loop {
        let exchange = held.log().await?.and_then(|log| log.checkpoint().exchange(request_id)).cloned();
        let Some(exchange) = exchange else { return Err(Error::Erased) };
        let decided = exchange.approval().is_some_and(|approval| approval.decided.is_some());
        if !decided {
            return Err(Error::Busy);
        }
        let open = held.log().await?.is_some_and(|log| log.checkpoint().open_exchange().is_some());
        if open {
            // A turn of the session that another process runs: the decision is kept, and carried out after it.
            if !take_over(session, held).await? {
                return Err(Error::Busy);
            }
            settle(session, held).await?;
            continue;
        }
        tools_known(inner).await;
        let entry = Entry::Resumed { request_id: request_id.to_owned(), at: inner.ledger.now() };
        let note = session.record(Action::TurnResumed);
        if held.write(vec![entry], Some(inner.ledger.instance.into()), note).await? == Wrote::Conflict {
            continue;
        }
        inner.ledger.counters.resumed.add();
        return rerun(session, held, exchange, outlet).await;
    }
}

/// Makes this process the one that answers the open turn, if nobody alive is.
pub(in crate::turn) async fn take_over(session: &Session, held: &mut Held<'_>) -> Result<bool, Error> {
    let inner = &session.inner;
    match held.owner() {
        // We hold the session's order, so a turn of ours that is open has no task any more.
        None => Ok(true),
        Some(Owner::Running(instance)) if instance == inner.ledger.instance => Ok(true),
        Some(Owner::Running(instance)) if inner.ledger.store.is_alive(instance).await? => Ok(false),
        Some(owner) => {
            Ok(inner.ledger.store.claim(session.names.scope, owner, inner.ledger.instance).await?)
        }
    }
}

/// How an open turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::turn) enum Settled {
    Answered,
    Reported,
    Expired,
}

/// Answers or reports the open turn, which this process has taken over. `None`: it was settled elsewhere.
pub(in crate::turn) async fn settle(
    session: &Session,
    held: &mut Held<'_>,
) -> Result<Option<Settled>, Error> {
    let inner = &session.inner;
    // It may have been answered while the store was away, and only the log does not know.
    pay::pay(session, held).await?;
    let Some(open) = held.log().await?.and_then(|log| log.checkpoint().open_exchange()).cloned() else {
        return Ok(None);
    };
    if is_given_up(session, &open) {
        let Some(outcome) = give_up(session, held, open.clone()).await? else { return Ok(None) };
        inner.notices.tell(session.scope(), &open, outcome);
        return Ok(Some(Settled::Reported));
    }
    tools_known(inner).await;
    let entry = Entry::Resumed { request_id: open.request_id.clone(), at: inner.ledger.now() };
    if held
        .write(vec![entry], Some(inner.ledger.instance.into()), session.record(Action::TurnResumed))
        .await?
        == Wrote::Conflict
    {
        return Ok(None);
    }
    inner.ledger.counters.resumed.add();
    let outcome = rerun(session, held, open.clone(), &Outlet::new(None)).await;
    let settled = match &outcome {
        Ok(_) => Ok(Some(Settled::Answered)),
        // The turn is reported in the log; unless it was cancelled, its request id can be tried again.
        Err(Error::Model(_) | Error::Cancelled) => Ok(Some(Settled::Reported)),
        Err(_) => Ok(None),
    };
    match outcome {
        Err(error) if !matches!(error, Error::Model(_) | Error::Cancelled) => return Err(error),
        outcome => inner.notices.tell(session.scope(), &open, outcome),
    }
    settled
}

/// Whether a turn that was cut off is reported, and not tried once more.
pub(in crate::turn) fn is_given_up(session: &Session, exchange: &Exchange) -> bool {
    match &exchange.outcome {
        Outcome::Open { attempts, .. } => {
            session.inner.ledger.settings.recovery == Recovery::Report || *attempts >= MOST_ATTEMPTS
        }
        Outcome::Failed { reason, attempts, .. } => {
            reason == Error::Interrupted.code() && *attempts >= MOST_ATTEMPTS
        }
        Outcome::Waiting { .. } | Outcome::Answered { .. } => false,
    }
}

/// Closes an open turn that is not tried any more; says what whoever asked for it hears. `None`: it was settled elsewhere.
pub(in crate::turn) async fn give_up(
    session: &Session,
    held: &mut Held<'_>,
    open: Exchange,
) -> Result<Option<Result<Ending, Error>>, Error> {
    let (request_id, at) = (open.request_id.clone(), session.inner.ledger.now());
    let (entry, outcome) = match open.work() {
        // Something may have been done. Whoever asks again must hear that, and must not have it done again.
        Some(work) => {
            let content = format!("I was interrupted too often. {}", unfinished::told(work));
            let replies = vec![Reply::ai(content.clone(), None, "confidant".to_owned())];
            let metadata = Box::new(Metadata::new(MemoryState::Kept, open.audience));
            let answer = Final { request_id: request_id.clone(), content, metadata };
            (Entry::Answered { request_id, at, replies }, Ok(Ending::Answer(answer)))
        }
        None => {
            let reason = Error::Interrupted.code().to_owned();
            (Entry::Failed { request_id, at, reason }, Err(Error::Interrupted))
        }
    };
    let wrote = held.write(vec![entry], None, session.record(Action::TurnFailed)).await?;
    session.inner.ledger.counters.failed.add();
    Ok((wrote == Wrote::Done).then_some(outcome))
}

/// What was begun with tools goes on with them: just after a start their servers may still be on their way.
async fn tools_known(inner: &Inner) {
    let _ = tokio::time::timeout(TOOLS_COME_WITHIN, inner.staff.toolbox.settled()).await;
}

const TOOLS_COME_WITHIN: std::time::Duration = std::time::Duration::from_secs(30);

/// Runs a turn again from what the log has of it. What it was given and the log does not have is gone.
async fn rerun(
    session: &Session,
    held: &mut Held<'_>,
    exchange: Exchange,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let inner = &session.inner;
    let given = exchange.given.map(|given| *given).unwrap_or_default();
    let Given { restore, sampling, focus, capture, asked_as, shared, claim, transcript, off, titled, tools } =
        given;
    let inbound = Inbound {
        request_id: exchange.request_id,
        audience: exchange.audience,
        tokens: exchange.tokens.unwrap_or_else(|| tokens::count(&exchange.content)),
        request: TurnRequest {
            query: exchange.content,
            sampling,
            restore,
            focus,
            capture,
            asked_as,
            shared,
            claim,
            transcript,
            off,
            titled,
            tools,
            ..TurnRequest::default()
        },
    };
    let recalled = recall::recall(held, &inbound, &inner.ledger.settings.history, inner.looked_at());
    let mut draft = Draft::new(&inbound, MemoryState::Kept);
    draft.metadata.resumed = true;
    let outcome =
        answer(inner, &Whose::of(session), Some((session, held)), inbound, recalled, draft, outlet).await;
    commit::commit(session, held, outcome, outlet).await
}
