//! What a person said, changed or taken back afterwards.
//!
//! Both are entries of the log, so that its chain holds and other processes hear of it. The words that go are then really
//! gone: the log is folded in the same write, the records before the fold are removed at once, and so is what was
//! derived from them here (answer, summary, title, concepts in scope). What is easy to get wrong: an answer may repeat what it answers, so it
//! goes with a change, too.

use confidant_model::tokens;
use confidant_seal::Tag;
use futures_util::future::BoxFuture;

use crate::concepts;
use crate::error::Error;
use crate::ledger::audit::Action;
use crate::ledger::entry::Entry;
use crate::ledger::session::{Session, Wrote};
use crate::turn::pay;

impl Session {
    /// Replaces what the person said in a turn, and forgets the answer to what they said before. Says whether there was
    /// such a turn.
    pub fn amend<'a>(&'a self, request_id: &'a str, content: &'a str) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            if content.len() > self.inner.ledger.settings.max_query_bytes || content.trim().is_empty() {
                return Err(Error::Invalid {
                    what: "the edited message is empty or too long to store".to_owned(),
                    hint: "delete the message instead".to_owned(),
                });
            }
            let tokens = Some(tokens::count(content));
            self.revise(request_id, |at| Entry::Amended {
                request_id: request_id.to_owned(),
                at,
                content: content.to_owned(),
                tokens,
            })
            .await
        })
    }

    /// Forgets what the person said in a turn, and the answer to it. Says whether there was such a turn.
    pub fn remove<'a>(&'a self, request_id: &'a str) -> BoxFuture<'a, Result<bool, Error>> {
        Box::pin(async move {
            self.revise(request_id, |at| Entry::Removed { request_id: request_id.to_owned(), at }).await
        })
    }

    async fn revise(
        &self,
        request_id: &str,
        entry: impl Fn(crate::clock::Millis) -> Entry,
    ) -> Result<bool, Error> {
        loop {
            let mut held = self.lock().await?;
            // What was answered while the store was away can be changed like anything else.
            pay(self, &mut held).await?;
            let Some(log) = held.fresh().await? else { return Ok(false) };
            let checkpoint = log.checkpoint();
            match checkpoint.exchange(request_id) {
                None if !checkpoint.is_settled(request_id) => return Ok(false),
                // Somebody else is answering it; what they append must find it as it is.
                Some(exchange) if exchange.is_open() => return Err(Error::Busy),
                // What waits for a decision was asked for in other words.
                Some(exchange) if exchange.approval().is_some() => {
                    drop(held);
                    self.cancel(Some(request_id)).await?;
                    continue;
                }
                _ => {}
            }
            let owner = held.owner();
            let note = self.record(Action::SessionAmended);
            if held.write(vec![entry(self.inner.ledger.now())], owner, note).await? == Wrote::Done {
                break;
            }
        }
        // What cannot be taken out now is when this is asked for again: the log says that the turn is settled.
        concepts::take_back(self, request_id).await?;
        self.inner.ledger.store.tidy().await?;
        self.inner.ledger.store.scrub().await?;
        Ok(true)
    }

    /// The names of this session that a channel keeps: the tag that leads back to it.
    #[must_use]
    pub fn raw_tag(&self) -> Tag {
        self.names.scope
    }
}
