//! What a chat's log has, for whoever runs the chat: the words of its branch, and what a turn claimed.
//!
//! Only of chats that devices keep, and only for the door that runs them ([`WebSessions`](crate::WebSessions)): their words come from there.
//! Easy to get wrong: a log whose beginning is gone. Where the branch stood before a question is kept with the question, so the last
//! answer is enough.

use confidant_display::debug_without_content;
use futures_util::future::BoxFuture;

use super::beside;
use super::request::SaidBy;
use crate::error::Error;
use crate::head::{Claim, Digest};
use crate::ledger::checkpoint::{Checkpoint, Exchange, Outcome, UNANSWERED};
use crate::ledger::entry::ReplyFrom;
use crate::ledger::session::{self, Session};

/// Who said what, the oldest first.
pub type Lines = Vec<(SaidBy, String)>;

/// The end of a chat's branch.
#[derive(Clone, PartialEq)]
pub struct Told {
    /// What its transcript was before these lines; without it, they are all there are.
    pub after: Option<Digest>,
    /// What was said since.
    pub lines: Lines,
}

debug_without_content!(Told);

impl Session {
    /// What was said last in a chat, as its devices have it. `None` if the log does not say where the branch stood before that, and does not have all
    /// that was said.
    pub fn told(&self) -> BoxFuture<'_, Result<Option<Told>, Error>> {
        Box::pin(async move {
            if !self.is_web() {
                return Ok(None);
            }
            Ok(session::open(self).await?.and_then(|(log, _)| told(log.checkpoint())))
        })
    }

    /// What a turn of a chat said of its branch, until it is answered.
    pub fn claimed<'a>(&'a self, request_id: &'a str) -> BoxFuture<'a, Result<Option<Claim>, Error>> {
        Box::pin(async move {
            if !self.is_web() {
                return Ok(None);
            }
            let Some((log, _)) = session::open(self).await? else { return Ok(None) };
            let exchange = log.checkpoint().exchange(request_id);
            Ok(exchange.and_then(|exchange| exchange.given.as_ref()).and_then(|given| given.claim))
        })
    }
}

fn told(log: &Checkpoint) -> Option<Told> {
    let on_branch: Vec<&Exchange> = log.exchanges().iter().filter(|one| is_on_branch(one)).collect();
    let from = on_branch.iter().rposition(|one| one.stand.is_some());
    let lines: Lines = on_branch[from.unwrap_or(0)..].iter().flat_map(|one| lines(one)).collect();
    let has_all = || log.dropped() == 0 && log.head().is_some_and(|head| head.count == lines.len() as u64);
    if from.is_none() && !has_all() {
        return None;
    }
    let after = from.and_then(|at| on_branch[at].stand).map(|stand| stand.transcript);
    Some(Told { after, lines })
}

/// Whether the devices have it on their branch: not a turn that failed here and was asked again, or that still waits.
fn is_on_branch(exchange: &Exchange) -> bool {
    match &exchange.outcome {
        Outcome::Answered { .. } => true,
        Outcome::Failed { reason, .. } => reason == UNANSWERED,
        Outcome::Open { .. } | Outcome::Waiting { .. } => false,
    }
}

/// What is part of the transcript. A summary stands beside it.
fn lines(exchange: &Exchange) -> Lines {
    let asked = (!exchange.content.is_empty()).then(|| (SaidBy::User, exchange.content.clone()));
    let said = beside::replies(exchange).filter_map(|(from, text)| {
        let by = match from {
            ReplyFrom::Ai => SaidBy::Assistant,
            ReplyFrom::Tool => SaidBy::Tool,
            ReplyFrom::Summary => return None,
            ReplyFrom::Quoted => SaidBy::Quoted,
        };
        Some((by, text))
    });
    asked.into_iter().chain(said).collect()
}
