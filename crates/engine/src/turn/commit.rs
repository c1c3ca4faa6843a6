//! Stage 6: what became of the turn, into the log: the answer, that there is none, or what it waits for.

use confidant_model::Step;
use confidant_seal::Kid;

use super::asking;
use super::beside;
use super::draft::{Answered, Paused, Reached, Scored, Unanswered};
use super::enrich;
use super::outbound::{Ending, Final, MemoryState, Outbound};
use super::outlet::Outlet;
use super::remember;
use super::usage::TokenUsage;
use crate::about::Note;
use crate::approval::ApprovalRequest;
use crate::audience::Audience;
use crate::concepts::{self, ContextStatus};
use crate::error::Error;
use crate::ledger::audit::{Action, AuditRecord};
use crate::ledger::checkpoint::{Checkpoint, Exchange};
use crate::ledger::entry::{Capture, Done, Entry, Label, Reply, ReplyFrom};
use crate::ledger::owed::Debt;
use crate::ledger::session::{AFTER_APPROVAL, Held, Session, Wrote};

/// Appends what became of the turn. The answer that counts is the one in the log: if another process was faster, its
/// answer is returned and this one dropped; if the session was erased meanwhile, nothing is kept.
pub(super) async fn commit(
    session: &Session,
    held: &mut Held<'_>,
    outcome: Result<Reached, Unanswered>,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    match outcome {
        Ok(Reached::Answer(answered)) => answer(session, held, *answered, outlet).await,
        Ok(Reached::Pause(paused)) => pause(session, held, paused).await,
        Err(unanswered) => {
            let reason = unanswered.error.code().to_owned();
            let (request_id, at) = (unanswered.request_id.clone(), session.inner.ledger.now());
            let (mut entries, notes) = scored(session, &request_id, unanswered.scored.map(|scored| *scored));
            entries.push(Entry::Failed { request_id: request_id.clone(), at, reason });
            write(session, held, &request_id, &entries, Action::TurnFailed, &notes).await?;
            session.inner.ledger.counters.failed.add();
            Err(unanswered.error)
        }
    }
}

async fn answer(
    session: &Session,
    held: &mut Held<'_>,
    mut answered: Answered,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let request_id = answered.draft.request_id.clone();
    let at = session.inner.ledger.now();
    let mut entries = entries(session, &answered);
    let head = next_head(held.checkpoint(), &answered);
    if head.is_some() {
        entries.extend(beside::tells(held.checkpoint(), &request_id));
    }
    entries.extend(head);
    let taken = match captures(session, &answered) {
        true => concepts::take(session, &answered.draft.query, &answered.steps),
        false => concepts::Taken::default(),
    };
    if !taken.concepts.is_empty() {
        let (request_id, draft) = (request_id.clone(), &answered.draft);
        let audience = if draft.shared { Audience::Room } else { draft.metadata.audience };
        let capture = Capture { request_id, at, audience, concepts: taken.concepts };
        entries.push(Entry::Captured { capture });
    }
    let (mut note, harm) = (std::mem::take(&mut answered.draft.note), answered.draft.harm.take());
    note.due = enrich::due(session, &answered);
    let notes: Vec<AuditRecord> = taken.refused.into_iter().chain(noteworthy(session, &note)).collect();
    if !note.is_empty() || harm.is_some() {
        entries.push(Entry::Noted { request_id: request_id.clone(), at, note: Box::new(note), harm });
    }
    let made = answered.enrichment.take().map(Box::new);
    if let Some(enrichment) = made.clone() {
        entries.push(Entry::Enriched { request_id: request_id.clone(), at, enrichment });
    }
    entries.extend(done(session, held, &request_id, answered.draft.metadata.usage));
    let kid = held.last_kid();
    let settled = match write(session, held, &request_id, &entries, Action::TurnAnswered, &notes).await {
        Ok(settled) => settled,
        // Promise 8: the answer is there, so it is given; the log hears of it when it can.
        Err(error) if error.is_stores() && kid.is_some() => {
            return Ok(Ending::Answer(unkept(session, answered, kid, entries, notes, &error)));
        }
        Err(error) => return Err(error),
    };
    match settled {
        Settled::Here => {
            session.inner.ledger.counters.answered.add();
            if captures(session, &answered) {
                note_concepts(session, held, &mut answered).await;
            }
            if session.is_web() {
                answered.draft.metadata.beside = beside::of(held.checkpoint(), &request_id);
            }
            let material = answered.draft.material.take().filter(|_| made.is_none());
            if let Some(made) = made {
                outlet.behind_the_end(Outbound::Enriched(made));
            }
            enrich::later(session, material, &answered.draft, outlet);
            Ok(Ending::Answer(answered.into_final()))
        }
        Settled::Elsewhere { content, by } => {
            let mut answer = answered.into_final();
            answer.content = content;
            answer.metadata.replayed = true;
            answer.metadata.model = Some(by);
            answer.metadata.others.clear();
            if session.is_web() {
                answer.metadata.beside = beside::of(held.checkpoint(), &request_id);
            }
            Ok(Ending::Answer(answer))
        }
    }
}

/// Where the conversation stands with the answer, if it stands where the client said: others may have gone on while this one
/// waited for somebody.
fn next_head(log: Option<&Checkpoint>, answered: &Answered) -> Option<Entry> {
    let (claim, stands) = (answered.draft.claim?, log.and_then(Checkpoint::head));
    let fits = stands == Some(claim.head()) || (stands.is_none() && claim.count == 0);
    fits.then(|| Entry::Head { head: claim.next() })
}

/// That the newest answer of a turn has come to its end, where the application may ask for it again.
fn done(session: &Session, held: &Held<'_>, request_id: &str, usage: Option<TokenUsage>) -> Option<Entry> {
    let labels = held.checkpoint()?.labels().of_turn(request_id);
    let step = labels.filter(|(_, label)| label.asked_for.is_some()).map(|(_, label)| label.step).max()?;
    let (at, request_id) = (session.inner.ledger.now(), Some(request_id.to_owned()));
    let done = Some(Done { at, usage });
    Some(Entry::Labelled { at, label: Label { request_id, step, done, ..Label::default() } })
}

/// Whether what the answer names may come into scope. For a chat that only its owner can open, the person says so.
fn captures(session: &Session, answered: &Answered) -> bool {
    !session.is_web() || answered.draft.concepts.capture
}

/// What an answer is in the log.
pub(super) fn entries(session: &Session, answered: &Answered) -> Vec<Entry> {
    let (request_id, at) = (answered.draft.request_id.clone(), session.inner.ledger.now());
    let by = answered.draft.metadata.model.clone().unwrap_or_default();
    let mut replies = replies(&answered.steps, answered.told, &by);
    if session.is_web() {
        // What a search found is the person's device's, and is not kept.
        replies.retain(|reply| reply.name != remember::NAME);
    }
    replies.push(Reply::ai(answered.text.clone(), Some(answered.tokens), by));
    vec![Entry::Answered { request_id, at, replies }]
}

/// An answer that could not be written: it says so, and is written later.
fn unkept(
    session: &Session,
    mut answered: Answered,
    kid: Option<Kid>,
    entries: Vec<Entry>,
    notes: Vec<AuditRecord>,
    error: &Error,
) -> Final {
    let reason = error.costs_memory().unwrap_or("store-failed");
    session.inner.ledger.counters.degraded.add();
    tracing::warn!(scope.tag = %session.tag(), reason, "an answer could not be saved; will retry later");
    let beside = beside::of_entries(&entries).filter(|_| session.is_web());
    if let Some(kid) = kid {
        // Its request is in the log.
        let debt = Debt::of(kid, Vec::new(), &answered.draft.request_id).ending(entries, notes);
        session.inner.ledger.slots.owed().note(session.names.scope, debt);
    }
    let metadata = &mut answered.draft.metadata;
    metadata.beside = beside;
    metadata.memory = MemoryState::Unavailable;
    metadata.memory_error = Some(reason.into());
    if metadata.context_status != ContextStatus::Off {
        metadata.context_status = ContextStatus::SaveFailed;
    }
    answered.into_final()
}

/// What the turn captured goes into the context of its conversation, now that it is in the log.
async fn note_concepts(session: &Session, held: &mut Held<'_>, answered: &mut Answered) {
    let draft = &mut answered.draft;
    let (status, of_turn) = concepts::note(session, held, &draft.concepts, &draft.request_id).await;
    draft.metadata.context_status = status;
    draft.metadata.concepts = of_turn.map(Box::new);
}

/// What somebody may have to look at goes into the audit log.
fn noteworthy(session: &Session, note: &Note) -> impl Iterator<Item = AuditRecord> {
    if note.flagged_for_review {
        session.inner.ledger.counters.flagged.add();
    }
    let flagged = note.flagged_for_review.then(|| session.record(Action::SessionFlagged));
    flagged.into_iter().chain(note.terminated.then(|| session.record(Action::SessionTerminated)))
}

/// The harm of a turn without an answer, in the write that says so.
fn scored(session: &Session, request_id: &str, scored: Option<Scored>) -> (Vec<Entry>, Vec<AuditRecord>) {
    let Some(Scored { note, harm }) = scored else { return Default::default() };
    let notes = noteworthy(session, &note).collect();
    let (request_id, at) = (request_id.to_owned(), session.inner.ledger.now());
    (vec![Entry::Noted { request_id, at, note: Box::new(note), harm: Some(harm) }], notes)
}

async fn pause(session: &Session, held: &mut Held<'_>, mut paused: Box<Paused>) -> Result<Ending, Error> {
    let request_id = paused.request_id.clone();
    let (mut entries, notes) = scored(session, &request_id, paused.scored.take());
    entries.push(Entry::Waiting {
        request_id: request_id.clone(),
        at: session.inner.ledger.now(),
        work: Box::new(asking::unkept(session.is_web(), &paused.work).into_owned()),
    });
    if paused.work.handed.is_some() {
        entries.extend(done(session, held, &request_id, paused.metadata.usage));
        let settled = write(session, held, &request_id, &entries, Action::ToolCalled, &notes).await?;
        session.inner.ledger.counters.paused.add();
        let mut calls = paused.into_final();
        if let Settled::Elsewhere { content, by } = settled {
            let metadata = &mut calls.metadata;
            (metadata.calls, metadata.model, metadata.replayed) = (Vec::new(), Some(by), true);
            calls.content = content;
        }
        return Ok(Ending::Answer(calls));
    }
    write(session, held, &request_id, &entries, Action::ApprovalAsked, &notes).await?;
    let exchange = held.checkpoint().and_then(|log| log.exchange(&request_id));
    let request = exchange.and_then(asked).ok_or(Error::Internal)?;
    session.inner.ledger.counters.paused.add();
    if let Some(until) = held.checkpoint().and_then(Checkpoint::waits_until) {
        concepts::wait(session, until.plus(AFTER_APPROVAL));
    }
    Ok(Ending::Approval(Box::new(request)))
}

/// What a person is asked, by the turn that waits for it.
pub(super) fn asked(exchange: &Exchange) -> Option<ApprovalRequest> {
    let work = exchange.work()?;
    let (_, call) = work.waiting_call()?;
    Some(work.approval.as_ref()?.request(&exchange.request_id, exchange.audience, call))
}

/// Where a turn was settled.
enum Settled {
    Here,
    Elsewhere { content: String, by: String },
}

async fn write(
    session: &Session,
    held: &mut Held<'_>,
    request_id: &str,
    entries: &[Entry],
    action: Action,
    notes: &[AuditRecord],
) -> Result<Settled, Error> {
    loop {
        // Cold after a turn that was cut short, or after a write that lost: what is there now decides.
        let log = held.log().await.inspect_err(|error| {
            // The turn is open, and is ours: it is looked at again once that can be done.
            if error.is_stores() {
                session.inner.ledger.left_open.note(session.names.scope);
            }
        });
        let exchange = log?.and_then(|log| log.checkpoint().exchange(request_id));
        let Some(exchange) = exchange else { return Err(Error::Erased) };
        if let Some(recorded) = exchange.answer() {
            return Ok(Settled::Elsewhere { content: recorded.content.clone(), by: recorded.name.clone() });
        }
        if exchange.is_cancelled() {
            let harm = entries.iter().find_map(harm_alone).filter(|_| !exchange.scored);
            let Some(harm) = harm else { return Err(Error::Cancelled) };
            // Somebody called it off from elsewhere. It counts all the same.
            let (owner, note) = (held.owner(), session.record(Action::TurnFailed));
            if held.write(vec![harm], owner, note).await? == Wrote::Done {
                return Err(Error::Cancelled);
            }
            continue;
        }
        if !exchange.is_open() || !held.is_ours() {
            return Err(Error::Busy);
        }
        // With each try: a write that lost took them with it.
        notes.iter().for_each(|note| held.queue_audit(note.clone()));
        if held.write(entries.to_vec(), None, session.record(action)).await? == Wrote::Done {
            return Ok(Settled::Here);
        }
    }
}

/// What an entry says of harm, for a turn that gets no answer.
fn harm_alone(entry: &Entry) -> Option<Entry> {
    let Entry::Noted { request_id, at, note, harm: Some(harm) } = entry else { return None };
    let Note { flagged_for_review, terminated, .. } = **note;
    let note = Note { flagged_for_review, terminated, scored: true, ..Note::default() };
    Some(Entry::Noted { request_id: request_id.clone(), at: *at, note: Box::new(note), harm: Some(*harm) })
}

/// Steps as the log keeps them. The words of those that the client has heard of are messages of their own; those of the others
/// are part of the answer.
pub(super) fn replies(steps: &[Step], told: usize, by: &str) -> Vec<Reply> {
    let said = |(at, step): (usize, &Step)| {
        let is_told = at < told && !step.text.trim().is_empty();
        let words =
            is_told.then(|| Reply { step: Some(at), ..Reply::ai(step.text.clone(), None, by.to_owned()) });
        words.into_iter().chain(tool_replies(at, step)).collect::<Vec<_>>()
    };
    steps.iter().enumerate().flat_map(said).collect()
}

/// The calls of a step and what came back, as the log keeps them.
fn tool_replies(at: usize, step: &Step) -> impl Iterator<Item = Reply> + '_ {
    step.calls.iter().zip(&step.results).map(move |(call, result)| Reply {
        from: ReplyFrom::Tool,
        content: result.clone(),
        tokens: None,
        name: call.name.clone(),
        arguments: Some(call.arguments.clone()),
        step: Some(at),
    })
}
