//! Telling logs what they have yet to hear: see [`Owed`](crate::ledger::owed::Owed).

use std::sync::Arc;

use confidant_model::Sampling;
use futures_util::FutureExt as _;

use crate::error::Error;
use crate::inner::Inner;
use crate::ledger::audit::{Action, Actor};
use crate::ledger::entry::{Entry, Given, Label};
use crate::ledger::owed::Debt;
use crate::ledger::session::{Held, Session, Wrote};
use crate::turn::handed;
use crate::turn::request::Inbound;

/// The entries that accept a request.
pub(in crate::turn) fn request_of(session: &Session, inbound: &Inbound) -> Vec<Entry> {
    let request_id = inbound.request_id.clone();
    let mut entries = vec![Entry::Accepted {
        request_id: request_id.clone(),
        at: session.inner.ledger.now(),
        audience: inbound.audience,
        content: inbound.request.query.clone(),
        tokens: Some(inbound.tokens),
    }];
    entries.extend(given_of(inbound));
    entries.extend(label_of(session, inbound, inbound.request.steps.len()));
    let most = session.inner.ledger.settings.tools.max_result_bytes;
    if let Ok(Some(work)) = handed::begun(inbound, most) {
        let at = session.inner.ledger.now();
        entries.push(Entry::Working { request_id, at, work: Box::new(work) });
    }
    entries
}

/// The entry that says what a request was given besides, if it was given anything.
pub(in crate::turn) fn given_of(inbound: &Inbound) -> Option<Entry> {
    let given = Given {
        restore: inbound.request.restore,
        // Nobody hears the others where a turn is taken up again.
        sampling: Sampling { choices: None, ..inbound.request.sampling.clone() },
        focus: inbound.request.focus.clone(),
        capture: inbound.request.capture,
        asked_as: inbound.request.asked_as.clone(),
        shared: inbound.request.shared,
        claim: inbound.request.claim,
        transcript: inbound.request.transcript,
        off: inbound.request.off.clone(),
        titled: inbound.request.titled,
        tools: inbound.request.tools.clone(),
    };
    let request_id = inbound.request_id.clone();
    (given != Given::default()).then(|| Entry::Given { request_id, given: Box::new(given) })
}

/// The entry for what the application attached, if it did, to the answer that begins with this step.
pub(in crate::turn) fn label_of(session: &Session, inbound: &Inbound, step: usize) -> Option<Entry> {
    let (values, asked_for) = (inbound.request.labels.clone(), inbound.request.asked_for.clone());
    let (request_id, at) = (Some(inbound.request_id.clone()), session.inner.ledger.now());
    let has_some = !values.is_empty() || asked_for.is_some();
    let label = Label { request_id, step, values, asked_for, done: None };
    has_some.then_some(Entry::Labelled { at, label })
}

/// Writes what the session's log is missing; returns how many turns that were. What has to wait stays owed.
pub(crate) async fn pay(session: &Session, held: &mut Held<'_>) -> Result<u64, Error> {
    let (owed, scope) = (session.inner.ledger.slots.owed(), session.names.scope);
    let mut paid = 0;
    while let Some(debt) = owed.first(scope) {
        match tell(session, held, &debt).await? {
            Payment::Written => paid += 1,
            Payment::Moot => {}
            Payment::Later => break,
        }
        owed.forget_turn(scope, &debt.request_id);
    }
    Ok(paid)
}

/// What became of writing to the log.
enum Payment {
    Written,
    /// It is erased, or was settled in another way.
    Moot,
    /// Another turn is open.
    Later,
}

async fn tell(session: &Session, held: &mut Held<'_>, debt: &Debt) -> Result<Payment, Error> {
    loop {
        // As the store has it now: another process may have answered, or erased it all.
        let Some(log) = held.fresh().await? else { return Ok(Payment::Moot) };
        if log.key().kid() != debt.kid {
            return Ok(Payment::Moot);
        }
        let (checkpoint, id) = (log.checkpoint(), debt.request_id.as_str());
        let is_open = checkpoint.open_exchange().map(|open| open.request_id == debt.request_id);
        let known = checkpoint.exchange(id).is_some() || checkpoint.is_settled(id);
        let entries: Vec<Entry> = match is_open {
            Some(true) if held.is_ours() => debt.outcome.clone(),
            _ if known || debt.request.is_empty() => return Ok(Payment::Moot),
            Some(_) => return Ok(Payment::Later),
            None => debt.request.iter().chain(&debt.outcome).cloned().collect(),
        };
        debt.notes.iter().for_each(|note| held.queue_audit(note.clone()));
        let note = session.record(Action::TurnAnswered).because("told later");
        if held.write(entries, None, note).await? == Wrote::Done {
            session.inner.ledger.counters.answered.add();
            return Ok(Payment::Written);
        }
    }
}

/// Writes what every log is missing; returns how many turns that were. Stops at the first sign that the store is away.
pub(crate) async fn pay_all(inner: &Arc<Inner>) -> Result<u64, Error> {
    let mut paid = 0;
    for scope in inner.ledger.slots.owed().scopes() {
        let Some(row) = inner.ledger.keyring.store().get(scope).await? else {
            inner.ledger.slots.owed().forget(scope);
            continue;
        };
        let session = Session::new(Arc::clone(inner), inner.ledger.keyring.scope_of(&row)?, Actor::system());
        // A session at work pays by itself, at its next turn.
        let Some(held) = session.lock().now_or_never() else { continue };
        match pay(&session, &mut held?).await {
            Ok(some) => paid += some,
            Err(error) if error.is_stores() => return Err(error),
            // Its log does not open: nothing is ever written over it.
            Err(_) => inner.ledger.slots.owed().forget(scope),
        }
    }
    Ok(paid)
}
