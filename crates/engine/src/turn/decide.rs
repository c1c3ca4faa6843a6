//! Decisions: from somebody's word to the turn that goes on.
//!
//! A decision is one entry of the log, written by compare-and-set, so two that race have one winner and the other is told.
//! Whoever writes it carries it out, unless they leave that to the process that keeps the channel the turn came from.

use std::sync::Arc;

use super::outlet::Outlet;
use super::remote;
use super::resume::carry_on;
use super::{Ending, MemoryState, Metadata, Standing, Turn, commit, spawn, unfinished};
use crate::approval::{self, Approval, ApprovalRequest, Decided, Decider, Decision};
use crate::audit::{Action, Actor};
use crate::checkpoint::{Checkpoint, Exchange};
use crate::engine::{Engine, Inner};
use crate::entry::{Entry, Reply};
use crate::error::Error;
use crate::session::{Held, Session, Wrote};
use crate::turn::Final;

/// Who carries a decision out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarryOut {
    /// This process, at once.
    Here,
    /// Whichever process looks after the session's channel.
    Elsewhere,
}

impl Session {
    /// The approvals that wait in this session, oldest first.
    pub async fn approvals(&self) -> Result<Vec<ApprovalRequest>, Error> {
        let Some((log, _)) = crate::session::open(self).await? else { return Ok(Vec::new()) };
        self.inner.record(self.record(Action::SessionViewed)).await?;
        let now = self.inner.now();
        let waiting = log.checkpoint().waiting().iter();
        let undecided = waiting.filter(|waiting| {
            waiting.approval().is_some_and(|approval| approval.decided.is_none() && approval.expires_at > now)
        });
        Ok(undecided.filter_map(commit::asked).collect())
    }

    /// An approval of this session, as somebody who may decide it is asked for it.
    pub async fn approval(&self, approval_id: &str, by: &Decider) -> Result<ApprovalRequest, Error> {
        let (log, _) = crate::session::open(self).await?.ok_or(Error::NoSuchApproval)?;
        let meant = Meant::Id(approval_id.to_owned());
        let mut waiting = log.checkpoint().waiting().iter();
        let found =
            waiting.find_map(|waiting| Some((waiting, waiting.approval().filter(|it| meant.is(it))?)));
        let Some((exchange, approval)) = found else {
            return Err(closed_before(self, log.checkpoint(), &meant, by));
        };
        allow(self, approval, by).await?;
        if let Some(decided) = &approval.decided {
            return Err(Error::AlreadyDecided(word(decided.decision)));
        }
        if approval.expires_at <= self.inner.now() {
            return Err(Error::ApprovalExpired);
        }
        self.inner.record(self.record(Action::SessionViewed)).await?;
        commit::asked(exchange).ok_or(Error::Internal)
    }

    /// Decides an approval of this session, once. The turn that waited goes on as the returned one.
    #[must_use]
    pub fn decide(&self, approval_id: &str, decision: Decision, by: Decider, carry_out: CarryOut) -> Turn {
        let session = self.clone();
        let word = Word { meant: Meant::Id(approval_id.to_owned()), decision, by, said_as: None };
        spawn(&self.inner, Some(self.names.scope), approval_id.to_owned(), move |outlet| async move {
            decide(&session, &word, carry_out, &outlet).await
        })
    }

    /// Cancels a running turn of this session, or all; one that waits for an approval is closed without it. Says how
    /// many.
    pub async fn cancel(&self, request_id: Option<&str>) -> Result<usize, Error> {
        let mut running = self.inner.cancels.cancel(self.names.scope, request_id);
        if running > 0 && request_id.is_some() {
            return Ok(running);
        }
        running += usize::from(super::elsewhere::call_off(self, request_id).await?);
        // Looked at without waiting for the session's order: a turn that runs on does not hold this up.
        let log = crate::session::open(self).await?;
        if log.is_none_or(|(log, _)| waiting(log.checkpoint(), request_id).is_empty()) {
            return Ok(running);
        }
        let mut held = self.lock().await?;
        let waiting = held.fresh().await?.map_or_else(Vec::new, |log| waiting(log.checkpoint(), request_id));
        let mut cancelled = running;
        for exchange in waiting {
            if close(self, &mut held, &exchange, Closing::Cancelled).await? {
                self.inner.counters.cancelled.add();
                cancelled += 1;
            }
        }
        Ok(cancelled)
    }
}

impl Engine {
    /// The session that an approval belongs to, if it is of this tenant.
    pub async fn session_of_approval(
        &self,
        tenant: &confidant_seal::TenantId,
        approval_id: &str,
        actor: Actor,
    ) -> Result<Session, Error> {
        let inner = self.inner();
        let scope = approval::scope_of(approval_id).ok_or(Error::NoSuchApproval)?;
        let row = inner.keyring.store().get(scope).await?.ok_or(Error::NoSuchApproval)?;
        let scope = inner.keyring.scope_of(&row)?;
        if scope.tenant() != tenant {
            return Err(Error::NoSuchApproval);
        }
        Ok(Session::new(Arc::clone(inner), scope, actor))
    }
}

fn waiting(checkpoint: &Checkpoint, request_id: Option<&str>) -> Vec<Exchange> {
    let meant = |waiting: &&Exchange| request_id.is_none_or(|id| waiting.request_id == id);
    checkpoint.waiting().iter().filter(meant).cloned().collect()
}

/// Which approval somebody means.
#[derive(Clone, Debug)]
pub(super) enum Meant {
    /// The one with this name.
    Id(String),
    /// The one whose question gave this code.
    Code(String),
    /// The only one there is.
    Only,
}

impl Meant {
    fn is(&self, approval: &Approval) -> bool {
        match self {
            Self::Id(id) => approval.id == *id,
            Self::Code(code) => approval.code == *code,
            Self::Only => true,
        }
    }
}

/// What somebody says.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) meant: Meant,
    pub(super) decision: Decision,
    pub(super) by: Decider,
    /// The message that says it, by its own name, where it is said in the conversation.
    pub(super) said_as: Option<String>,
}

/// Decides the one approval that is meant.
pub(super) async fn decide(
    session: &Session,
    spoken: &Word,
    carry_out: CarryOut,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let Word { meant, decision, by, said_as } = spoken;
    let (inner, decision) = (&session.inner, *decision);
    let mut held = session.lock().await?;
    loop {
        let log = held.fresh().await?.ok_or(Error::NoSuchApproval)?;
        let before = said_as.as_deref().and_then(|id| log.checkpoint().decided_by(id));
        if let Some(request_id) = before.map(str::to_owned) {
            return said_before(session, held, &request_id, outlet).await;
        }
        let waiting = log.checkpoint().waiting().iter();
        let mut found = waiting.filter(|waiting| waiting.approval().is_some_and(|it| meant.is(it)));
        let Some(exchange) = found.next().cloned() else {
            return Err(closed_before(session, log.checkpoint(), meant, by));
        };
        if found.next().is_some() {
            return Err(Error::Invalid {
                what: "more than one approval waits".to_owned(),
                hint: "say which one with its code, as in `approve K7QM2A`".to_owned(),
            });
        }
        let approval = exchange.approval().ok_or(Error::Internal)?;
        allow(session, approval, by).await?;
        if let Some(decided) = &approval.decided {
            return Err(Error::AlreadyDecided(word(decided.decision)));
        }
        let now = inner.now();
        if approval.expires_at <= now {
            if close(session, &mut held, &exchange, Closing::Expired).await? {
                return Err(Error::ApprovalExpired);
            }
            continue;
        }
        let by_whom = match by {
            Decider::Person(person) => person.clone(),
            Decider::Admin => session.actor.as_str().to_owned(),
        };
        let decided = Decided { decision, by: by_whom, at: now, said_as: said_as.clone() };
        let request_id = exchange.request_id.clone();
        let action = match decision {
            Decision::Approve => Action::ApprovalGiven,
            Decision::Deny => Action::ApprovalDenied,
        };
        let entry = Entry::Decided { request_id: request_id.clone(), at: now, decided };
        if held.write(vec![entry], None, session.record(action)).await? == Wrote::Conflict {
            continue;
        }
        if carry_out == CarryOut::Elsewhere {
            // Says no more than that: whoever decides need not be the one whose conversation it is.
            let metadata = Metadata::new(MemoryState::Kept, exchange.audience);
            let content = format!("{}: it is being carried out.", word(decision));
            return Ok(Ending::Answer(Final { request_id, content, metadata: Box::new(metadata) }));
        }
        return carried_out(session, held, &request_id, outlet).await;
    }
}

/// Goes on with a turn that is decided.
async fn carried_out(
    session: &Session,
    mut held: Held<'_>,
    request_id: &str,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let inner = &session.inner;
    let _named = inner.cancels.also(session.names.scope, request_id);
    if let Some(gateway) = inner.gateway.get() {
        drop(held);
        return remote::carried_out(gateway, session, request_id).await;
    }
    carry_on(session, &mut held, request_id, outlet).await
}

/// The same message again, since its reply was lost: what became of the turn that it decided.
async fn said_before(
    session: &Session,
    held: Held<'_>,
    request_id: &str,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    match session.standing(request_id).await? {
        Standing::Ended(Ending::Answer(mut answer)) => {
            answer.metadata.replayed = true;
            Ok(Ending::Answer(answer))
        }
        Standing::Ended(asked) => Ok(asked),
        Standing::Failed(reason) if reason == Error::Cancelled.code() => Err(Error::Cancelled),
        Standing::Failed(_) => Err(Error::Model(crate::model::ModelError::CutOff)),
        Standing::Decided | Standing::Running => carried_out(session, held, request_id, outlet).await,
    }
}

/// Goes on if this person may decide; records it if not.
async fn allow(session: &Session, approval: &Approval, by: &Decider) -> Result<(), Error> {
    if approval.may_be_decided_by(by, session.scope.user().as_str()) {
        return Ok(());
    }
    session.inner.record(session.record(Action::AccessRefused)).await?;
    Err(Error::NotYourApproval)
}

/// Approvals that wait to be decided, as the log is warm.
pub(super) fn pending(held: &Held<'_>) -> usize {
    let waiting = held.checkpoint().map_or(&[][..], Checkpoint::waiting);
    waiting.iter().filter_map(Exchange::approval).filter(|approval| approval.decided.is_none()).count()
}

/// Why an approval that does not wait any more cannot be decided; others do not learn that there was one.
fn closed_before(session: &Session, checkpoint: &Checkpoint, meant: &Meant, by: &Decider) -> Error {
    let asker = session.scope.user().as_str();
    let carried_out = checkpoint.open_exchange().and_then(Exchange::work).and_then(|w| w.approval.as_ref());
    let theirs = carried_out.filter(|approval| meant.is(approval) && approval.may_be_decided_by(by, asker));
    match theirs.and_then(|approval| approval.decided.as_ref()) {
        Some(decided) => Error::AlreadyDecided(word(decided.decision)),
        None => Error::NoSuchApproval,
    }
}

fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "approved",
        Decision::Deny => "denied",
    }
}

/// Why a turn that waits is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    /// Nobody decided in time.
    Expired,
    /// Somebody called it off, be it decided or not: as long as it waits, nobody has taken it up.
    Cancelled,
}

/// Closes a turn that waits, without doing what it waits for; says whether it still waited.
async fn close(
    session: &Session,
    held: &mut Held<'_>,
    exchange: &Exchange,
    why: Closing,
) -> Result<bool, Error> {
    let (Some(approval), Some(work)) = (exchange.approval(), exchange.work()) else { return Ok(false) };
    let (words, action) = match why {
        Closing::Expired => (EXPIRED, Action::ApprovalExpired),
        Closing::Cancelled => (CANCELLED, Action::ApprovalDenied),
    };
    let done =
        if unfinished::called(work).is_empty() { "Nothing was done.".into() } else { unfinished::told(work) };
    let text = format!("{words} ({}). {done}", approval.tool);
    let reply = Reply::ai(text, None, "confidant".to_owned());
    let request_id = exchange.request_id.clone();
    let entry =
        Entry::Answered { request_id: request_id.clone(), at: session.inner.now(), replies: vec![reply] };
    loop {
        let log = held.log().await?;
        let still = log.and_then(|log| log.checkpoint().exchange(&request_id)).and_then(Exchange::approval);
        let holds = |still: &Approval| why == Closing::Cancelled || still.decided.is_none();
        if still.is_none_or(|still| still.id != approval.id || !holds(still)) {
            return Ok(false);
        }
        if held.write(vec![entry.clone()], None, session.record(action)).await? == Wrote::Done {
            return Ok(true);
        }
    }
}

/// Closes a turn whose approval ran out, and tells its channel; says whether it did.
pub(super) async fn expire(
    inner: &Arc<Inner>,
    session: &Session,
    held: &mut Held<'_>,
    exchange: &Exchange,
) -> Result<bool, Error> {
    if !close(session, held, exchange, Closing::Expired).await? {
        return Ok(false);
    }
    let log = held.checkpoint();
    let reply = log.and_then(|log| log.exchange(&exchange.request_id)).and_then(Exchange::answer);
    if let Some(reply) = reply {
        let mut metadata = Box::new(Metadata::new(MemoryState::Kept, exchange.audience));
        metadata.pending_approvals = pending(held);
        let answer =
            Final { request_id: exchange.request_id.clone(), content: reply.content.clone(), metadata };
        inner.notices.tell(session.scope(), &exchange.request_id, Ok(Ending::Answer(answer)));
    }
    Ok(true)
}

const EXPIRED: &str = "Nobody decided in time, so the approval has expired";
const CANCELLED: &str = "Cancelled while it waited for an approval";
