//! Stage 5: the model's answer, piece by piece.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Answered, Draft, Outbound, Outlet, TokenUsage, Unanswered};
use crate::engine::Inner;
use crate::error::Error;
use crate::model::{ModelError, Prompt};
use crate::tokens;

/// Asks the model and passes its words on as they come.
pub(super) async fn respond(
    inner: &Inner,
    prompt: &Prompt,
    mut draft: Draft,
    outlet: &Outlet,
) -> Result<Answered, Unanswered> {
    let seq = AtomicU64::new(0);
    let deltas = |text: &str| {
        if !text.is_empty() {
            let seq = seq.fetch_add(1, Ordering::Relaxed);
            outlet.send(Outbound::Delta { seq, text: text.to_owned() });
        }
    };
    let asking = inner.model.respond(prompt, &deltas);
    let outcome = tokio::time::timeout(inner.settings.answer_timeout, asking).await;
    let answer = match outcome.unwrap_or(Err(ModelError::TimedOut)) {
        Ok(answer) => answer,
        Err(error) => {
            tracing::warn!(model = inner.model.name(), error = %error, "the model gave no answer");
            return Err(Unanswered { request_id: draft.request_id, error: Error::Model(error) });
        }
    };
    let tokens = tokens::count(&answer.text);
    let counted = TokenUsage { prompt_tokens: draft.prompt_tokens, completion_tokens: tokens };
    draft.metadata.usage = Some(answer.usage.map_or(counted, TokenUsage::from));
    draft.metadata.model = Some(answer.model);
    Ok(Answered { draft, text: answer.text, tokens })
}
