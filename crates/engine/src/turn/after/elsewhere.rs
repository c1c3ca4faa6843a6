//! Turns that another process works on: how they stand, taking them up, and calling them off.
//!
//! The log is what processes share. Whoever has an open turn learns at its next write that somebody else has ended it,
//! and nothing that it does after that counts.

use futures_util::future::BoxFuture;

use super::resume::carry_on;
use crate::error::Error;
use crate::ledger::audit::Action;
use crate::ledger::checkpoint::Outcome;
use crate::ledger::entry::Entry;
use crate::ledger::erasures::Asked;
use crate::ledger::session::{Session, Wrote};
use crate::turn::begin::{Turn, spawn};
use crate::turn::handed;
use crate::turn::outbound::{Ending, Final, MemoryState, Metadata};
use crate::turn::{beside, commit};

/// How a turn stands in the log.
#[derive(Debug)]
pub enum Standing {
    /// What it waited for is decided, and nobody has taken it up.
    Decided,
    /// Somebody works on it.
    Running,
    /// It has an answer, or a question that somebody must decide.
    Ended(Ending),
    /// It ended without an answer; a word says why.
    Failed(String),
}

impl Session {
    /// How a turn stands, for whoever waits for what another process does with it.
    pub fn standing<'a>(&'a self, request_id: &'a str) -> BoxFuture<'a, Result<Standing, Error>> {
        Box::pin(async move {
            let (log, _) = crate::ledger::session::open(self).await?.ok_or(Error::Erased)?;
            if log.checkpoint().is_settled(request_id) {
                return Err(Error::AnswerGone);
            }
            if log.checkpoint().is_called_off(request_id) {
                return Ok(Standing::Failed(Error::Cancelled.code().to_owned()));
            }
            let exchange = log.checkpoint().exchange(request_id).ok_or(Error::Erased)?;
            Ok(match &exchange.outcome {
                Outcome::Open { .. } => Standing::Running,
                Outcome::Waiting { .. } if exchange.approval().is_some_and(|it| it.decided.is_some()) => {
                    Standing::Decided
                }
                Outcome::Waiting { .. } if exchange.handed().is_some() => {
                    let calls = handed::recorded(self, exchange).ok_or(Error::Internal)?;
                    Standing::Ended(Ending::Answer(calls))
                }
                Outcome::Waiting { .. } => {
                    let asked = commit::asked(exchange).ok_or(Error::Internal)?;
                    Standing::Ended(Ending::Approval(Box::new(asked)))
                }
                Outcome::Answered { .. } => {
                    let reply = exchange.answer().ok_or(Error::Internal)?;
                    let mut metadata = Box::new(Metadata::new(MemoryState::Kept, exchange.audience));
                    metadata.model = Some(reply.name.clone());
                    if self.is_web() {
                        metadata.beside = beside::of(Some(log.checkpoint()), request_id);
                    }
                    let (request_id, content) = (request_id.to_owned(), reply.content.clone());
                    Standing::Ended(Ending::Answer(Final { request_id, content, metadata }))
                }
                Outcome::Failed { reason, .. } => Standing::Failed(reason.clone()),
            })
        })
    }

    /// Takes up a turn whose approval is decided and that nobody else has taken up.
    #[must_use]
    pub fn carry_out(&self, request_id: &str) -> Turn {
        let session = self.clone();
        let (scope, name) = (self.names.scope, request_id.to_owned());
        spawn(&self.inner, Some(scope), name.clone(), move |outlet| async move {
            let mut held = session.lock().await?;
            held.cool();
            carry_on(&session, &mut held, &name, &outlet).await
        })
    }
}

/// Notes that a turn was called off which nobody has accepted: from now on nobody does, here or elsewhere. Says whether that was
/// new to the log. Where it cannot be noted the turn is called off all the same.
pub(in crate::turn) async fn note_called_off(session: &Session, request_id: &str, asked: Asked) -> bool {
    // Beside the session's order, which is what the turn was waiting for.
    let mut held = session.aside_at(asked).await;
    let noted = async {
        loop {
            let log = held.log().await?;
            if log.is_some_and(|log| log.checkpoint().knows(request_id)) {
                return Ok(false);
            }
            let (owner, at) = (held.owner(), session.inner.ledger.now());
            let entry = Entry::CalledOff { request_id: request_id.to_owned(), at };
            if held.write(vec![entry], owner, session.record(Action::TurnFailed)).await? == Wrote::Done {
                return Ok(true);
            }
        }
    };
    noted.await.unwrap_or_else(|error: Error| {
        if !matches!(error, Error::Erased) {
            tracing::warn!(error = error.code(), "a turn was cancelled, but the log could not record it");
        }
        false
    })
}

/// Calls off the turn that another process has open, if it is the one that is meant; says whether it did.
pub(in crate::turn) async fn call_off(session: &Session, request_id: Option<&str>) -> Result<bool, Error> {
    let inner = &session.inner;
    // Beside the session's order: a turn of this process may be waiting for just that one.
    let mut held = session.aside().await;
    loop {
        let open = held.log().await?.and_then(|log| log.checkpoint().open_exchange());
        let Some(open) = open.filter(|open| request_id.is_none_or(|id| open.request_id == id)) else {
            return Ok(false);
        };
        let request_id = open.request_id.clone();
        if held.is_ours() {
            return Ok(false);
        }
        let reason = Error::Cancelled.code().to_owned();
        let entry = Entry::Failed { request_id, at: inner.ledger.now(), reason };
        if held.write(vec![entry], None, session.record(Action::TurnFailed)).await? == Wrote::Done {
            inner.ledger.counters.cancelled.add();
            return Ok(true);
        }
    }
}
