//! Other answers to the same query, where a client wants several to choose from.
//!
//! They are made of what the first one was made of, what its tools gave included. They call no tools, are not remembered, and are
//! judged as the first one is. One that fails is left out: the answer that counts is there already.

use std::time::Duration;

use confidant_model::{Answer, Calling, Model, ModelError, Prompt, Sampling, tokens};
use futures_util::future::{BoxFuture, join_all};

use super::draft::Draft;
use super::outbound::OtherAnswer;
use super::usage::TokenUsage;

/// Makes the answers that are wanted beside the first, and notes in the draft what they are and what they cost.
pub(super) async fn make(model: &dyn Model, prompt: Prompt, limit: Duration, draft: &mut Draft) {
    let wanted = prompt.sampling.choices.unwrap_or(1).min(MOST_CHOICES);
    let prompts: Vec<Prompt> = (1..wanted).map(|at| other_prompt(&prompt, at)).collect();
    let mut asking: Vec<BoxFuture<'_, Option<Answer>>> = Vec::with_capacity(prompts.len());
    for prompt in &prompts {
        asking.push(Box::pin(ask(model, prompt, limit)));
    }
    for Answer { text, usage, .. } in join_all(asking).await.into_iter().flatten() {
        let counted =
            TokenUsage { prompt_tokens: draft.prompt_tokens, completion_tokens: tokens::count(&text) };
        let spent = usage.map_or(counted, TokenUsage::from);
        let metadata = &mut draft.metadata;
        metadata.usage = Some(metadata.usage.map_or(spent, |before| before.and(spent)));
        metadata.others.push(OtherAnswer { text });
    }
}

/// As many as a client may choose from: each costs as much as the first.
const MOST_CHOICES: u32 = 8;

fn other_prompt(prompt: &Prompt, at: u32) -> Prompt {
    let sampling = Sampling {
        // With the same one, they would all be the same.
        seed: prompt.sampling.seed.map(|seed| seed.wrapping_add(i64::from(at))),
        tool_choice: None,
        choices: None,
        ..prompt.sampling.clone()
    };
    // Providers want to know tools that were called, and no others.
    let tools = if prompt.steps.is_empty() { Vec::new() } else { prompt.tools.clone() };
    Prompt { calling: Calling::Over, tools, sampling, ..prompt.clone() }
}

/// What the model says on the way is heard by nobody.
async fn ask(model: &dyn Model, prompt: &Prompt, limit: Duration) -> Option<Answer> {
    let unheard = |_: &str| {};
    let answer = tokio::time::timeout(limit, model.respond(prompt, &unheard)).await;
    match answer.unwrap_or(Err(ModelError::TimedOut)) {
        Ok(answer) => Some(answer).filter(|answer| !answer.text.trim().is_empty()),
        Err(error) => {
            tracing::warn!(model = model.name(), error = %error, "one of several answers could not be made");
            None
        }
    }
}
