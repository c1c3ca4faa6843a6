//! What a chat's log has, for whoever runs the chat: the words of its branch, and what a turn claimed.
//!
//! Only of chats that devices keep, and only for the door that runs them ([`WebSessions`](crate::WebSessions)): their words come from there.

use futures_util::future::BoxFuture;

use super::request::SaidBy;
use crate::error::Error;
use crate::head::Claim;
use crate::ledger::checkpoint::Outcome;
use crate::ledger::entry::ReplyFrom;
use crate::ledger::session::{self, Session};

/// Who said what, the oldest first.
pub type Lines = Vec<(SaidBy, String)>;

impl Session {
    /// What was said in a chat, the oldest first, as its devices have it. `None` if the log does not have all of that: it was cut, or an exchange has
    /// more than a question and its answer.
    pub fn told(&self) -> BoxFuture<'_, Result<Option<Lines>, Error>> {
        Box::pin(async move {
            if !self.is_web() {
                return Ok(None);
            }
            let Some((log, _)) = session::open(self).await? else { return Ok(None) };
            let log = log.checkpoint();
            let mut told = Vec::new();
            for exchange in log.all() {
                let Outcome::Answered { replies, .. } = &exchange.outcome else { continue };
                let [reply] = replies.as_slice() else { return Ok(None) };
                let by = match reply.from {
                    ReplyFrom::Ai => SaidBy::Assistant,
                    ReplyFrom::Tool => SaidBy::Tool,
                    ReplyFrom::Summary => SaidBy::Summary,
                    ReplyFrom::Quoted => SaidBy::Quoted,
                };
                told.push((SaidBy::User, exchange.content.clone()));
                told.push((by, reply.content.clone()));
            }
            let has_all = log.head().is_some_and(|head| head.count == told.len() as u64);
            Ok(has_all.then_some(told))
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
