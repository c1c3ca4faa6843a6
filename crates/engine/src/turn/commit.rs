//! Stage 6: the answer, or that there is none, into the log.

use super::{Answered, Final, Unanswered};
use crate::audit::Action;
use crate::entry::{Entry, Reply, ReplyFrom};
use crate::error::Error;
use crate::session::{Held, Session, Wrote};

/// Appends what became of the turn. The answer that counts is the one in the log: if another process was faster, its
/// answer is returned and this one dropped; if the session was erased meanwhile, nothing is kept.
pub(super) async fn commit(
    session: &Session,
    held: &mut Held<'_>,
    outcome: Result<Answered, Unanswered>,
) -> Result<Final, Error> {
    let inner = &session.inner;
    let at = inner.now();
    let (request_id, entry, action) = match &outcome {
        Ok(answered) => {
            let request_id = answered.draft.request_id.clone();
            let reply = Reply {
                from: ReplyFrom::Ai,
                content: answered.text.clone(),
                tokens: Some(answered.tokens),
                name: answered.draft.metadata.model.clone().unwrap_or_default(),
            };
            let entry = Entry::Answered { request_id: request_id.clone(), at, replies: vec![reply] };
            (request_id, entry, Action::TurnAnswered)
        }
        Err(unanswered) => {
            let request_id = unanswered.request_id.clone();
            let reason = unanswered.error.code().to_owned();
            (request_id.clone(), Entry::Failed { request_id, at, reason }, Action::TurnFailed)
        }
    };
    loop {
        if held.write(vec![entry.clone()], None, session.record(action)).await? == Wrote::Done {
            break;
        }
        let exchange = held.log().await?.and_then(|log| log.checkpoint().exchange(&request_id));
        let Some(exchange) = exchange else { return Err(Error::Erased) };
        if let (Some(recorded), Ok(answered)) = (exchange.answer(), &outcome) {
            let content = recorded.content.clone();
            let mut metadata = answered.draft.metadata.clone();
            metadata.replayed = true;
            metadata.model = Some(recorded.name.clone());
            return Ok(Final { request_id, content, metadata });
        }
        if !exchange.is_open() || held.owner() != Some(inner.instance) {
            return Err(Error::Busy);
        }
    }
    match outcome {
        Ok(answered) => {
            inner.counters.answered.add();
            Ok(answered.into_final())
        }
        Err(unanswered) => {
            inner.counters.failed.add();
            Err(unanswered.error)
        }
    }
}
