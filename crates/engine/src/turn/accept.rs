//! The turn's place in the log, taken before any model is called.
//!
//! Accepting is an append of the sealed request that also names this process as the one that answers. Whoever finds an
//! open turn of a living process waits; of a dead one, takes it over, once.

use std::time::Duration;

use super::after::{decide, pay, resume};
use super::outbound::{Ending, Final, MemoryState, Metadata};
use super::request::Inbound;
use super::{adopt, beside, cancel, commit, handed, listing};
use crate::approval::{ApprovalRequest, Work};
use crate::error::Error;
use crate::ledger::audit::Action;
use crate::ledger::checkpoint::{Checkpoint, Exchange, Outcome};
use crate::ledger::entry::Entry;
use crate::ledger::session::{Held, Session, Wrote};

/// What became of a request.
#[derive(Debug)]
pub(super) enum Accepted {
    /// It was answered before; this is the recorded answer.
    Before(Final),
    /// It waits for somebody's decision; this is the question.
    Waits(Box<ApprovalRequest>),
    /// It is in the log, and this task answers it.
    Now {
        /// Whether an earlier try was cut off or failed.
        resumed: bool,
    },
}

/// How long to wait before looking again whether another process has finished.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

pub(super) async fn accept(
    session: &Session,
    held: &mut Held<'_>,
    inbound: &Inbound,
) -> Result<Accepted, Error> {
    let (waiting, mut fresh) = (tokio::time::Instant::now(), held.checkpoint().is_none());
    make_room(session, held).await?;
    loop {
        cancel::check()?;
        match attempt(session, held, inbound).await? {
            // Another process may have decided it since this was warm.
            Some(Accepted::Waits(_)) if !std::mem::replace(&mut fresh, true) => held.cool(),
            Some(accepted) => return Ok(accepted),
            None => {}
        }
        if waiting.elapsed() > session.inner.ledger.settings.wait_for_turn {
            return Err(Error::Busy);
        }
    }
}

/// One try; `None` says that the log changed under it.
async fn attempt(
    session: &Session,
    held: &mut Held<'_>,
    inbound: &Inbound,
) -> Result<Option<Accepted>, Error> {
    let inner = &session.inner;
    if !held.has_looked() && held.log().await?.is_some_and(|log| log.checkpoint().knows(&inbound.request_id))
    {
        // What was said before is said again from the log as it is now: it may have gone on elsewhere, or be erased.
        held.cool();
    }
    let checkpoint = held.log().await?.map(crate::ledger::log::Log::checkpoint);
    let before = checkpoint.map(|checkpoint| recorded(session, checkpoint, inbound));
    if let Some(before) = before.transpose()?.flatten() {
        return Ok(Some(before));
    }
    let known = checkpoint.and_then(|checkpoint| checkpoint.exchange(&inbound.request_id));
    let steps = &inbound.request.steps;
    let gone_on = known.map(|exchange| handed::with_results(session, exchange, steps)).transpose()?.flatten();
    let given_up = known.is_some_and(|exchange| resume::is_given_up(session, exchange));
    let failed_before = known.is_some_and(|exchange| matches!(exchange.outcome, Outcome::Failed { .. }));
    let open = checkpoint.and_then(Checkpoint::open_exchange).map(|open| open.request_id.clone());
    if let Some(open) = open {
        if !resume::take_over(session, held).await? {
            held.cool();
            tokio::time::sleep(LOOK_AGAIN).await;
            return Ok(None);
        }
        // Ours was cut off before: it goes on here. Somebody else's: it is settled first, then we look again.
        if open != inbound.request_id {
            resume::settle(session, held).await?;
            return Ok(None);
        }
        let ours = held.checkpoint().and_then(|log| log.open_exchange()).cloned();
        if let Some(ours) = ours.filter(|ours| resume::is_given_up(session, ours)) {
            return match resume::give_up(session, held, ours).await? {
                Some(Ok(Ending::Answer(answer))) => Ok(Some(Accepted::Before(answer))),
                Some(Ok(Ending::Approval(_))) => Err(Error::Internal),
                Some(Err(error)) => Err(error),
                None => Ok(None),
            };
        }
        return resumed(session, held, inbound).await;
    }
    if given_up {
        return Err(Error::Interrupted);
    }
    if let Some(work) = gone_on {
        return goes_on(session, held, inbound, work).await;
    }
    if let Err(error) = listing::follows(session, held.checkpoint(), inbound) {
        // Another process may have said more since this was warm.
        if held.has_looked() {
            return Err(error);
        }
        held.cool();
        return Ok(None);
    }
    let adopted = adopt::needed(session, held.checkpoint(), inbound)?;
    if failed_before && adopted.is_none() {
        return resumed(session, held, inbound).await;
    }
    let safety = adopt::noted_safety(session, held.checkpoint(), inbound);
    // One write: there is no moment with the one and without the other.
    let entries = adopted.into_iter().chain(pay::request_of(session, inbound)).chain(safety).collect();
    let note = session.record(Action::TurnAccepted);
    if held.write(entries, Some(inner.ledger.instance.into()), note).await? == Wrote::Conflict {
        return Ok(None);
    }
    inner.ledger.counters.accepted.add();
    Ok(Some(Accepted::Now { resumed: false }))
}

/// What the log has of the request already, if that is all there is to say.
fn recorded(
    session: &Session,
    checkpoint: &Checkpoint,
    inbound: &Inbound,
) -> Result<Option<Accepted>, Error> {
    let known = checkpoint.exchange(&inbound.request_id);
    if known.is_some_and(|exchange| exchange.content != inbound.request.query) {
        return Err(Error::RequestReused);
    }
    // Somebody stopped it. Whoever asks again has not heard: a client, a gateway, a channel that wakes up.
    if known.is_some_and(Exchange::is_cancelled) || checkpoint.is_called_off(&inbound.request_id) {
        return Err(Error::Cancelled);
    }
    if let Some((reply, audience)) = known.and_then(|exchange| Some((exchange.answer()?, exchange.audience)))
    {
        let mut metadata = Box::new(Metadata::new(MemoryState::Kept, audience));
        metadata.replayed = true;
        metadata.model = Some(reply.name.clone());
        if session.is_web() {
            metadata.beside = beside::of(Some(checkpoint), &inbound.request_id);
        }
        let request_id = inbound.request_id.clone();
        return Ok(Some(Accepted::Before(Final { request_id, content: reply.content.clone(), metadata })));
    }
    if let Some(waiting) = known.filter(|exchange| exchange.approval().is_some()) {
        let request = commit::asked(waiting).ok_or(Error::Internal)?;
        return Ok(Some(Accepted::Waits(Box::new(request))));
    }
    if checkpoint.is_settled(&inbound.request_id) {
        return Err(Error::AnswerGone);
    }
    if let Some(waiting) = known.filter(|exchange| exchange.handed().is_some())
        && handed::with_results(session, waiting, &inbound.request.steps)?.is_none()
    {
        // Whoever comes without what it waits for has not heard what that is.
        return Ok(handed::recorded(session, waiting).map(Accepted::Before));
    }
    Ok(None)
}

/// Closes the oldest of the turns whose client does not come back, where they are too many.
async fn make_room(session: &Session, held: &mut Held<'_>) -> Result<(), Error> {
    let waiting = held.log().await?.map_or(&[][..], |log| log.checkpoint().waiting());
    let handed: Vec<&Exchange> = waiting.iter().filter(|exchange| exchange.handed().is_some()).collect();
    let many = handed.len().saturating_sub(MOST_HANDED);
    for exchange in handed.into_iter().take(many).cloned().collect::<Vec<_>>() {
        decide::let_go(session, held, &exchange).await?;
    }
    Ok(())
}

/// More than these at once are those of a client that does not come back.
const MOST_HANDED: usize = 20;

/// Goes on with a turn whose client has made the calls that it was handed.
async fn goes_on(
    session: &Session,
    held: &mut Held<'_>,
    inbound: &Inbound,
    work: Work,
) -> Result<Option<Accepted>, Error> {
    let (inner, request_id, at) = (&session.inner, inbound.request_id.clone(), session.inner.ledger.now());
    let mut entries = vec![Entry::Resumed { request_id: request_id.clone(), at }];
    entries.extend(pay::given_of(inbound));
    // The step that was handed out has its results, and the answer goes on behind it.
    entries.extend(pay::label_of(session, inbound, work.done.len() + 1));
    entries.push(Entry::Working { request_id, at, work: Box::new(work) });
    let note = session.record(Action::TurnResumed);
    if held.write(entries, Some(inner.ledger.instance.into()), note).await? == Wrote::Conflict {
        return Ok(None);
    }
    Ok(Some(Accepted::Now { resumed: false }))
}

async fn resumed(
    session: &Session,
    held: &mut Held<'_>,
    inbound: &Inbound,
) -> Result<Option<Accepted>, Error> {
    let inner = &session.inner;
    let entry = Entry::Resumed { request_id: inbound.request_id.clone(), at: inner.ledger.now() };
    let note = session.record(Action::TurnResumed);
    if held.write(vec![entry], Some(inner.ledger.instance.into()), note).await? == Wrote::Conflict {
        return Ok(None);
    }
    inner.ledger.counters.resumed.add();
    Ok(Some(Accepted::Now { resumed: true }))
}
