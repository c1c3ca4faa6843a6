//! The life of a turn: one request and all that it causes.
//!
//! ```text
//!                                 ┌──────────────── answer ────────────────┐
//! scope ─▶ (accept) ─▶ recall ─▶  prepare ─▶ compose ─▶ respond  ─▶ commit ─▶ enrich
//!                                                       │   ▲
//!                                                 (wait)▼   │(after/decide)
//! ```
//!
//! Data goes one way; each stage is a module with one public function, and `run` calls them. What a turn is asked stands in
//! `request`, what it says in `outbound`; it starts in `begin`, and what is left to do when it is over is in `after`.
//!
//! A turn is accepted by appending its request, sealed, before any model is called: from then on it is answered or reported,
//! whatever happens to the process. It runs as a task of its own, so that a client that goes away does not take its turn with
//! it. A turn that needs somebody's approval ends with the question; the decision, whenever it comes, takes it up where it
//! stopped.

mod accept;
mod adopt;
mod after;
mod answer;
mod asking;
mod begin;
mod beside;
mod calls;
mod cancel;
mod client_tools;
mod commit;
mod compose;
mod compress;
mod data_request;
mod draft;
mod enrich;
mod focus;
mod gateway;
mod handed;
mod listed;
mod listing;
mod offers;
mod others;
mod outbound;
mod outlet;
mod past;
mod prepare;
mod recall;
mod relay;
mod remember;
mod request;
mod respond;
mod safety;
mod scope;
mod share;
mod spoken;
mod told;
mod usage;
mod work;

use std::borrow::Cow;
use std::sync::Arc;

use confidant_model::tokens;

use after::{elsewhere, pay, remote};
use answer::answer;
use begin::Arrived;
use draft::{Answered, Draft, Reached};
use prepare::Whose;
use request::Inbound;

use crate::concepts::ContextStatus;
use crate::error::Error;
use crate::ledger::owed::Debt;
use crate::ledger::session::Session;
use crate::ledger::web_cache;
use crate::running::Running;

pub use after::decide::CarryOut;
pub use after::elsewhere::Standing;
pub(crate) use after::forgotten;
pub(crate) use after::left_open::LeftOpen;
pub(crate) use after::pay::{pay, pay_all};
pub use after::recorded::{MadeOfIt, Recorded};
pub use after::resume::Recovered;
pub(crate) use after::resume::recover;
pub use begin::Turn;
pub(crate) use begin::start_without_memory;
pub(crate) use cancel::{Cancels, is_cancelled};
pub use client_tools::{ClientCall, ClientResult, ClientStep, ToolSaid, may_be_the_clients};
pub use data_request::{DataRequest, MayAsk, Piece, Wanted};
pub use enrich::Enrichment;
pub(crate) use gateway::{Errand, Gateway};
pub use listed::{CaughtUp, Listed};
pub use listing::{ListedAnswer, ListedItem, ListedLabel, ListedTurn, ListedWhat, Listing, Place, TurnState};
pub use offers::Offers;
pub(crate) use offers::offers;
pub use outbound::{
    Beside, ChatOutcome, Ending, Final, MemoryState, Metadata, Offered, OtherAnswer, Outbound, Question,
    SummedUp,
};
pub(crate) use outlet::Outlet;
pub(crate) use relay::{Relay, RelayedTurn, Tap};
pub use request::{History, PastChat, Restore, Said, SaidBy, SwitchedOff, TurnRequest};
pub use safety::{Safety, SafetyRecord};
pub use spoken::{Spoken, SpokenCommand, read_command};
pub use told::{Lines, Told};
pub use usage::TokenUsage;

/// A turn with memory, from its place in the session's order to its place in the log.
async fn run(
    session: &Session,
    mut inbound: Inbound,
    arrived: Arrived,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let inner = &session.inner;
    let Arrived { asked, command, place } = arrived;
    if let Some(command) = command
        && scope::is_meant(session, &command, &inbound).await?
    {
        return scope::obey(session, command, &inbound, asked, outlet).await;
    }
    if let Some(gateway) = inner.gateway.get() {
        return remote::run(gateway, session, inbound, (place, asked), outlet).await;
    }
    let mut held = Arrived::lock(place, asked, session, &inbound.request_id).await?;
    let was_warm = held.warm().is_some();
    // Not before there is a place: the first time takes as long as some turns.
    inbound.tokens = tokens::count(&inbound.request.query);
    outlet.progress("🔍 Analyzing...");
    // As long as this is there, the turn can be cancelled under the name that it goes on with, too.
    let mut _named = None;
    let accepted = async {
        pay::pay(session, &mut held).await?;
        adopt::look(session, &mut held, &inbound).await?;
        _named = handed::find(session, &mut held, &mut inbound).await?;
        accept::accept(session, &mut held, &inbound).await
    };
    let accepted = accepted.await;
    match accepted {
        Ok(accept::Accepted::Before(mut answer)) => {
            answer.metadata.concepts =
                crate::concepts::recorded(session, &answer.request_id).await.map(Box::new);
            inner.ledger.counters.replayed.add();
            Ok(Ending::Answer(answer))
        }
        Ok(accept::Accepted::Waits(request)) => Ok(Ending::Approval(request)),
        Ok(accept::Accepted::Now { resumed }) => {
            match (was_warm, held.is_new()) {
                (true, _) => inner.ledger.counters.warm.add(),
                (false, false) => inner.ledger.counters.cold.add(),
                (false, true) => {}
            }
            if session.is_web() && held.is_new() {
                end_older(session);
            }
            let recalled =
                recall::recall(&mut held, &inbound, &inner.ledger.settings.history, inner.looked_at());
            let mut draft = Draft::new(&inbound, MemoryState::Kept);
            draft.metadata.resumed = resumed;
            let desk = Some((session, &mut held));
            let outcome = answer(inner, &Whose::of(session), desk, inbound, recalled, draft, outlet).await;
            commit::commit(session, &mut held, outcome, outlet).await
        }
        Err(error @ Error::Cancelled) => {
            // Before it was accepted, or the log knows already.
            elsewhere::note_called_off(session, &inbound.request_id, asked).await;
            held.cool();
            Err(error)
        }
        // Whoever has the history is asked for it.
        Err(error) if inbound.request.claim.is_some() => {
            held.cool();
            Err(error)
        }
        // Promise 8: a log that cannot be loaded, opened or written costs the memory of this turn, not its answer.
        Err(error) => {
            let Some(reason) = error.costs_memory() else { return Err(error) };
            // Only where this process had the log's key can it tell later that it is still the same conversation.
            let kid = held.last_kid().filter(|_| !matches!(error, Error::Tampered(_)));
            let debt = kid.map(|kid| Debt::of(kid, pay::request_of(session, &inbound), &inbound.request_id));
            held.cool();
            let answered = match degraded(session, inbound, reason, outlet).await? {
                Degraded::Answered(answered) => answered,
                // The client brings all of it along when it comes back.
                Degraded::Handed(calls) => return Ok(Ending::Answer(calls)),
            };
            if let Some(debt) = debt {
                let entries = commit::entries(session, &answered);
                session.inner.ledger.slots.owed().note(session.names.scope, debt.ending(entries, Vec::new()));
            }
            // Until here: its acceptance may have been written, and whoever comes next would take it up as left open.
            drop(held);
            Ok(Ending::Answer(answered.into_final()))
        }
    }
}

/// Ends the sessions of the account's other chats that are more than may be, now that there is one more.
fn end_older(session: &Session) {
    let session = session.clone();
    Running::aside(&Arc::clone(&session.inner), async move {
        if let Err(error) = web_cache::keep_newest(&session).await {
            tracing::warn!(scope.tag = %session.tag(), error = error.code(), "sessions of older chats could not be ended");
        }
    });
}

/// What a turn comes to whose log is out of reach.
enum Degraded {
    Answered(Box<Answered>),
    /// Calls that the client is to make.
    Handed(Final),
}

async fn degraded(
    session: &Session,
    inbound: Inbound,
    reason: &'static str,
    outlet: &Outlet,
) -> Result<Degraded, Error> {
    session.inner.ledger.counters.degraded.add();
    tracing::warn!(scope.tag = %session.tag(), reason, "memory unavailable: answering without it");
    let mut draft = Draft::new(&inbound, MemoryState::Unavailable);
    draft.metadata.memory_error = Some(Cow::Borrowed(reason));
    if session.inner.ledger.concepts.settings().is_some() {
        draft.metadata.context_status = ContextStatus::LoadFailed;
    }
    let recalled = recall::Recalled::default();
    let whose = Whose::of(session);
    match answer(&session.inner, &whose, None, inbound, recalled, draft, outlet).await? {
        Reached::Answer(answered) => Ok(Degraded::Answered(answered)),
        pause @ Reached::Pause(_) => pause.into_final().map(Degraded::Handed),
    }
}
