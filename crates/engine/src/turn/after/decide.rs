//! Decisions: from somebody's word to the turn that goes on.
//!
//! A decision is one entry of the log, written by compare-and-set, so two that race have one winner and the other is told.
//! Whoever writes it carries it out, unless they leave that to the process that keeps the channel the turn came from.

use futures_util::future::BoxFuture;

use super::elsewhere::{self, Standing};
use super::resume::carry_on;
use super::{remote, unfinished};
use crate::approval::{Approval, ApprovalRequest, Decided, Decider, Decision};
use crate::clock::Millis;
use crate::error::{Error, StoreError};
use crate::ledger::audit::Action;
use crate::ledger::checkpoint::{Checkpoint, Exchange};
use crate::ledger::entry::{Entry, Reply};
use crate::ledger::erasures::Asked;
use crate::ledger::session::{Held, Session, Wrote};
use crate::turn::begin::{Turn, spawn};
use crate::turn::commit;
use crate::turn::handed;
use crate::turn::outbound::{Ending, Final, MemoryState, Metadata};
use crate::turn::outlet::Outlet;

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
    pub fn approvals(&self) -> BoxFuture<'_, Result<Vec<ApprovalRequest>, Error>> {
        Box::pin(async move {
            let Some((log, _)) = crate::ledger::session::open(self).await? else { return Ok(Vec::new()) };
            self.inner.ledger.record(self.record(Action::SessionViewed)).await?;
            let now = self.inner.ledger.now();
            let waiting = log.checkpoint().waiting().iter();
            let undecided = waiting.filter(|waiting| {
                waiting
                    .approval()
                    .is_some_and(|approval| approval.decided.is_none() && approval.expires_at > now)
            });
            Ok(undecided.filter_map(commit::asked).collect())
        })
    }

    /// An approval of this session, as somebody who may decide it is asked for it.
    pub fn approval<'a>(
        &'a self,
        approval_id: &'a str,
        by: &'a Decider,
    ) -> BoxFuture<'a, Result<ApprovalRequest, Error>> {
        Box::pin(async move {
            let (log, _) = crate::ledger::session::open(self).await?.ok_or(Error::NoSuchApproval)?;
            let meant = Meant::Id(approval_id.to_owned());
            let mut waiting = log.checkpoint().waiting().iter();
            let found =
                waiting.find_map(|waiting| Some((waiting, waiting.approval().filter(|it| meant.is(it))?)));
            let Some((exchange, approval)) = found else {
                return Err(closed_before(self, log.checkpoint(), &meant, by));
            };
            allow(self, approval, by).await?;
            if let Some(decided) = &approval.decided {
                return Err(decided_before(decided, &whom(self, by)));
            }
            if approval.expires_at <= self.inner.ledger.now() {
                return Err(Error::ApprovalExpired);
            }
            self.inner.ledger.record(self.record(Action::SessionViewed)).await?;
            commit::asked(exchange).ok_or(Error::Internal)
        })
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
    pub fn cancel<'a>(&'a self, request_id: Option<&'a str>) -> BoxFuture<'a, Result<usize, Error>> {
        Box::pin(async move {
            let mut running = self.inner.cancels.cancel(self.names.scope, request_id);
            if running > 0 && request_id.is_some() {
                return Ok(running);
            }
            if elsewhere::call_off(self, request_id).await? {
                running += 1;
                remote::tell_called_off(self, request_id).await;
            }
            // Looked at without waiting for the session's order: a turn that runs on does not hold this up.
            let Some((log, _)) = crate::ledger::session::open(self).await? else { return Ok(running) };
            if waiting(log.checkpoint(), request_id).is_empty() {
                // It may wait for the session's order in another process: when that is its turn, it is not run.
                if let Some(unknown) = request_id.filter(|id| running == 0 && !log.checkpoint().knows(id)) {
                    let asked = Asked::now(&self.inner.ledger, None);
                    elsewhere::note_called_off(self, unknown, asked).await;
                }
                return Ok(running);
            }
            let mut held = self.lock().await?;
            let waiting =
                held.fresh().await?.map_or_else(Vec::new, |log| waiting(log.checkpoint(), request_id));
            let mut cancelled = running;
            for exchange in waiting {
                if close(self, &mut held, &exchange, Closing::Cancelled).await? {
                    self.inner.ledger.counters.cancelled.add();
                    cancelled += 1;
                }
            }
            Ok(cancelled)
        })
    }
}

fn waiting(checkpoint: &Checkpoint, request_id: Option<&str>) -> Vec<Exchange> {
    let meant = |waiting: &&Exchange| request_id.is_none_or(|id| waiting.request_id == id);
    checkpoint.waiting().iter().filter(meant).cloned().collect()
}

/// Which approval somebody means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::turn) enum Meant {
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

    /// The exchanges that wait for it. Without a name it is one that can still be decided, if there is any such.
    fn among<'a>(&self, checkpoint: &'a Checkpoint, now: Millis) -> Vec<&'a Exchange> {
        let waiting = checkpoint.waiting().iter();
        let found: Vec<&Exchange> =
            waiting.filter(|waiting| waiting.approval().is_some_and(|it| self.is(it))).collect();
        let open: Vec<&Exchange> = match self {
            Self::Only => found.iter().copied().filter(|exchange| exchange.is_pending(now)).collect(),
            Self::Id(_) | Self::Code(_) => Vec::new(),
        };
        if open.is_empty() { found } else { open }
    }
}

/// What somebody says.
#[derive(Debug)]
pub(in crate::turn) struct Word {
    pub(in crate::turn) meant: Meant,
    pub(in crate::turn) decision: Decision,
    pub(in crate::turn) by: Decider,
    /// The message that says it, by its own name, where it is said in the conversation.
    pub(in crate::turn) said_as: Option<String>,
}

/// Decides the one approval that is meant.
pub(in crate::turn) async fn decide(
    session: &Session,
    spoken: &Word,
    carry_out: CarryOut,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let Word { meant, decision, by, said_as } = spoken;
    let (inner, decision, by_whom) = (&session.inner, *decision, whom(session, by));
    let mut held = session.lock().await?;
    if *meant == Meant::Only {
        expire_due(session, &mut held).await?;
    }
    let mut looked_again = false;
    loop {
        let log = held.fresh().await?.ok_or(Error::NoSuchApproval)?;
        let before = said_as.as_deref().and_then(|id| log.checkpoint().decided_by(id));
        if let Some(request_id) = before.map(str::to_owned) {
            return said_before(session, held, &request_id, decision, outlet).await;
        }
        let now = inner.ledger.now();
        let found = meant.among(log.checkpoint(), now);
        if found.len() > 1 {
            return Err(Error::Invalid {
                what: "more than one approval is pending".to_owned(),
                hint: "say which one with its code, as in `approve K7QM2A`".to_owned(),
            });
        }
        let Some(exchange) = found.first().copied().cloned() else {
            return Err(closed_before(session, log.checkpoint(), meant, by));
        };
        let approval = exchange.approval().ok_or(Error::Internal)?;
        allow(session, approval, by).await?;
        let request_id = exchange.request_id.clone();
        if let Some(decided) = &approval.decided {
            // Who repeats themself, since the reply was lost or the store failed, has the same decision carried out.
            if decided.decision != decision || decided.by != by_whom {
                return Err(decided_before(decided, &by_whom));
            }
        } else if approval.expires_at <= now {
            // Who decides too late hears it here, and nobody else of this process twice; a bot on a plain bus has no other way.
            let closed = match exchange.asked_as() {
                Some(_) => expire(session, &mut held, &exchange).await?,
                None => close(session, &mut held, &exchange, Closing::Expired).await?,
            };
            if closed {
                return Err(Error::ApprovalExpired);
            }
            continue;
        } else {
            let decided = Decided { decision, by: by_whom.clone(), at: now, said_as: said_as.clone() };
            match write(session, &mut held, &request_id, decided).await {
                Ok(Wrote::Done) => {}
                Ok(Wrote::Conflict) => continue,
                // It may be in the log, and is not decided twice.
                Err(error @ Error::Store(StoreError::Uncertain)) => {
                    held.cool();
                    if std::mem::replace(&mut looked_again, true) || held.log().await.is_err() {
                        return Err(error);
                    }
                    continue;
                }
                Err(error) => return Err(error),
            }
        }
        if carry_out == CarryOut::Elsewhere {
            // Says no more than that: whoever decides need not be the one whose conversation it is.
            let metadata = Metadata::new(MemoryState::Kept, exchange.audience);
            let content = format!("{}: it is being carried out.", word(decision));
            return Ok(Ending::Answer(Final { request_id, content, metadata: Box::new(metadata) }));
        }
        return carried_out(session, held, &request_id, decision, outlet).await;
    }
}

/// Puts a decision into the log.
async fn write(
    session: &Session,
    held: &mut Held<'_>,
    request_id: &str,
    decided: Decided,
) -> Result<Wrote, Error> {
    let action = match decided.decision {
        Decision::Approve => Action::ApprovalGiven,
        Decision::Deny => Action::ApprovalDenied,
    };
    let entry = Entry::Decided { request_id: request_id.to_owned(), at: decided.at, decided };
    held.write(vec![entry], None, session.record(action)).await
}

/// What the log calls somebody who decides.
fn whom(session: &Session, by: &Decider) -> String {
    match by {
        Decider::Person(person) => person.clone(),
        Decider::Admin => session.actor.as_str().to_owned(),
    }
}

/// Goes on with a turn that is decided. Where that cannot be done now, the decision stands all the same, and whoever made it
/// must not think that it was lost.
async fn carried_out(
    session: &Session,
    mut held: Held<'_>,
    request_id: &str,
    decision: Decision,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    let inner = &session.inner;
    let _named = inner.cancels.add_name(session.names.scope, request_id);
    let outcome = if let Some(gateway) = inner.gateway.get() {
        drop(held);
        remote::carried_out(gateway, session, request_id).await
    } else {
        carry_on(session, &mut held, request_id, outlet).await
    };
    outcome.map_err(|error| match error {
        Error::Store(_) | Error::Unloaded(_) | Error::Busy | Error::NoWorker | Error::Bus(_) => {
            Error::Stands(word(decision), Box::new(error))
        }
        other => other,
    })
}

/// The same message again, since its reply was lost: what became of the turn that it decided.
async fn said_before(
    session: &Session,
    held: Held<'_>,
    request_id: &str,
    decision: Decision,
    outlet: &Outlet,
) -> Result<Ending, Error> {
    match session.standing(request_id).await? {
        Standing::Ended(Ending::Answer(mut answer)) => {
            answer.metadata.replayed = true;
            Ok(Ending::Answer(answer))
        }
        Standing::Ended(asked) => Ok(asked),
        Standing::Failed(reason) if reason == Error::Cancelled.code() => Err(Error::Cancelled),
        Standing::Failed(_) => Err(Error::Model(confidant_model::ModelError::CutOff)),
        Standing::Decided | Standing::Running => {
            carried_out(session, held, request_id, decision, outlet).await
        }
    }
}

/// Goes on if this person may decide; records it if not.
async fn allow(session: &Session, approval: &Approval, by: &Decider) -> Result<(), Error> {
    if approval.may_be_decided_by(by, session.scope.user().as_str()) {
        return Ok(());
    }
    session.inner.ledger.record(session.record(Action::AccessRefused)).await?;
    Err(Error::NotYourApproval)
}

/// Why an approval that does not wait any more cannot be decided; others do not learn that there was one.
fn closed_before(session: &Session, checkpoint: &Checkpoint, meant: &Meant, by: &Decider) -> Error {
    let (asker, by_whom) = (session.scope.user().as_str(), whom(session, by));
    let carried_out = checkpoint.open_exchange().and_then(Exchange::work).and_then(|w| w.approval.as_ref());
    let theirs = carried_out.filter(|approval| meant.is(approval) && approval.may_be_decided_by(by, asker));
    if let Some(decided) = theirs.and_then(|approval| approval.decided.as_ref()) {
        return decided_before(decided, &by_whom);
    }
    let named = match meant {
        Meant::Id(name) | Meant::Code(name) => Some(name),
        Meant::Only => None,
    };
    match named.and_then(|name| checkpoint.decision_of(name, &by_whom)) {
        Some(decision) => Error::DecidedByYou(word(decision)),
        None => Error::NoSuchApproval,
    }
}

/// What somebody hears of an approval that is decided.
fn decided_before(decided: &Decided, by: &str) -> Error {
    let word = word(decided.decision);
    if decided.by == by { Error::DecidedByYou(word) } else { Error::AlreadyDecided(word) }
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
    let Some(work) = exchange.work().filter(|_| exchange.waits_until().is_some()) else { return Ok(false) };
    let approval = exchange.approval();
    let (words, action) = match (why, approval) {
        (Closing::Expired, Some(_)) => (EXPIRED, Action::ApprovalExpired),
        (Closing::Expired, None) => (LET_GO, Action::TurnFailed),
        (Closing::Cancelled, Some(_)) => (CANCELLED, Action::ApprovalDenied),
        (Closing::Cancelled, None) => (CANCELLED_CALLS, Action::TurnFailed),
    };
    let done =
        if unfinished::called(work).is_empty() { "Nothing was done.".into() } else { unfinished::told(work) };
    let waited = approval.map_or_else(|| handed::names(work), |approval| approval.tool.clone());
    let text = format!("{words} ({waited}). {done}");
    let reply = Reply::ai(text, None, "confidant".to_owned());
    // What the client's tools gave before is remembered; whoever is asked to approve something has heard nothing yet.
    let heard =
        if approval.is_none() { commit::replies(&work.done, work.told, &work.model) } else { Vec::new() };
    let request_id = exchange.request_id.clone();
    let entry = Entry::Answered {
        request_id: request_id.clone(),
        at: session.inner.ledger.now(),
        replies: heard.into_iter().chain([reply]).collect(),
    };
    loop {
        let log = held.log().await?;
        let still = log.and_then(|log| log.checkpoint().exchange(&request_id));
        let holds = |still: &Exchange| match (approval, still.approval()) {
            (Some(approval), Some(still)) => {
                still.id == approval.id && (why == Closing::Cancelled || still.decided.is_none())
            }
            (None, None) => still.handed().is_some() && still.handed() == exchange.handed(),
            _ => false,
        };
        if !still.is_some_and(holds) {
            return Ok(false);
        }
        if held.write(vec![entry.clone()], None, session.record(action)).await? == Wrote::Done {
            return Ok(true);
        }
    }
}

/// Closes a turn whose client did not come back with what it was handed; says whether it still waited.
pub(in crate::turn) async fn let_go(
    session: &Session,
    held: &mut Held<'_>,
    exchange: &Exchange,
) -> Result<bool, Error> {
    close(session, held, exchange, Closing::Expired).await
}

/// Closes a turn whose approval ran out, and tells its channel; says whether it did.
pub(in crate::turn) async fn expire(
    session: &Session,
    held: &mut Held<'_>,
    exchange: &Exchange,
) -> Result<bool, Error> {
    if !close(session, held, exchange, Closing::Expired).await? {
        return Ok(false);
    }
    let inner = &session.inner;
    let log = held.checkpoint();
    let reply = log.and_then(|log| log.exchange(&exchange.request_id)).and_then(Exchange::answer);
    if let Some(reply) = reply {
        let mut metadata = Box::new(Metadata::new(MemoryState::Kept, exchange.audience));
        metadata.pending_approvals = held.pending();
        let answer =
            Final { request_id: exchange.request_id.clone(), content: reply.content.clone(), metadata };
        inner.notices.tell(session.scope(), exchange, Ok(Ending::Answer(answer)));
    }
    Ok(true)
}

/// Closes every turn of a session whose approval ran out beside one that still waits: those are not what `approve` means. One
/// that is alone is left to whoever decides it, who is told that it is over.
async fn expire_due(session: &Session, held: &mut Held<'_>) -> Result<(), Error> {
    let now = session.inner.ledger.now();
    let waiting = held.fresh().await?.map_or(&[][..], |log| log.checkpoint().waiting());
    if !waiting.iter().any(|exchange| exchange.is_pending(now)) {
        return Ok(());
    }
    let has_run_out = |approval: &Approval| approval.decided.is_none() && approval.expires_at <= now;
    let due = waiting.iter().filter(|exchange| exchange.approval().is_some_and(has_run_out));
    for exchange in due.cloned().collect::<Vec<_>>() {
        expire(session, held, &exchange).await?;
    }
    Ok(())
}

const EXPIRED: &str = "Nobody decided in time, so the approval has expired";
const LET_GO: &str = "The application did not come back with the results of its tools";
const CANCELLED_CALLS: &str = "Cancelled while waiting for the application's tools";
const CANCELLED: &str = "Cancelled while waiting for an approval";
