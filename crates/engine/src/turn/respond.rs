//! Stage 5: the model's answer, piece by piece, with the tools that it calls on the way.

use std::sync::atomic::{AtomicBool, Ordering};

use confidant_model::tokens;
use confidant_model::{Answer, Calling, Model, ModelError, Prompt};
use parking_lot::Mutex;

use super::after::unfinished;
use super::draft::{Answered, Draft, Paused, Reached, Unanswered};
use super::outlet::Outlet;
use super::usage::TokenUsage;
use super::work::{Desk, Step};
use super::{handed, others};
use crate::approval::{Current, Work};
use crate::concepts;
use crate::error::Error;

/// Asks the model, runs what it calls, and asks again, until it has said its last word or must wait.
pub(super) async fn respond(
    model: &dyn Model,
    mut prompt: Prompt,
    mut work: Work,
    mut draft: Draft,
    desk: &mut Desk<'_, '_>,
) -> Result<Reached, Unanswered> {
    let fail = |draft: &Draft, error| Unanswered::new(draft.request_id.clone(), error);
    let limits = desk.inner.ledger.settings.tools;
    let voice = Voice::new(desk.outlet);
    // What was said before a pause is part of the answer, as far as nobody has heard it.
    work.steps().skip(work.told).for_each(|(text, _)| {
        voice.begin();
        voice.say(text);
    });
    loop {
        match Box::pin(desk.finish_step(&mut work)).await {
            Ok(Step::Done) => {}
            Ok(Step::Waits) => return Ok(Reached::Pause(Box::new(paused(model, draft, work, desk)))),
            Err(error) => return Err(fail(&draft, error)),
        }
        let many = work.done.len().saturating_sub(work.told) >= limits.max_steps;
        if (many || work.done.len() >= handed::MOST_STEPS) && prompt.calling == Calling::Free {
            prompt.calling = Calling::Over;
            if !prompt.tools.is_empty() {
                prompt.system.push_str(LAST_STEP);
            }
        }
        prompt.steps.clone_from(&work.done);
        voice.begin();
        let Answer { text, calls, model: by, usage } = match ask(model, &prompt, &voice, desk).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(model = model.name(), error = %error, "the model gave no answer");
                if desk.has_begun() {
                    return Ok(Reached::Answer(cut_short(draft, work, voice)));
                }
                return Err(fail(&draft, failed(error)));
            }
        };
        let counted =
            TokenUsage { prompt_tokens: draft.prompt_tokens, completion_tokens: tokens::count(&text) };
        draft.metadata.usage = Some(usage.map_or(counted, TokenUsage::from));
        if desk.only_notes(&calls) && !text.trim().is_empty() {
            // The answer is there; nobody needs to hear that the concepts were noted.
            let results = vec![concepts::NOTED.to_owned(); calls.len()];
            work.done.push(confidant_model::Step { text, calls, results });
        } else if !calls.is_empty() && prompt.calling == Calling::Free {
            work.current = Some(Current::new(text, calls));
            continue;
        }
        if voice.is_silent() {
            if desk.has_begun() {
                return Ok(Reached::Answer(cut_short(draft, work, voice)));
            }
            return Err(fail(&draft, Error::Model(ModelError::Malformed)));
        }
        let text = voice.said();
        let tokens = tokens::count(&text);
        if usage.is_none() {
            let prompt_tokens = draft.prompt_tokens;
            draft.metadata.usage = Some(TokenUsage { prompt_tokens, completion_tokens: tokens });
        }
        draft.metadata.model = Some(by);
        draft.metadata.tools = called(&work);
        others::make(model, prompt, desk.inner.ledger.settings.answer_timeout, &mut draft).await;
        return Ok(Reached::Answer(Box::new(Answered {
            draft,
            text,
            tokens,
            steps: work.done,
            told: work.told,
            enrichment: None,
        })));
    }
}

/// What the person hears of a model that gave no answer. What it does not take, they can leave out.
fn failed(error: ModelError) -> Error {
    match error {
        ModelError::AttachmentRefused => Error::Invalid {
            what: "the model that answers here did not take the image or file".to_owned(),
            hint: "leave it out, or set [model] to one that takes it".to_owned(),
        },
        error => Error::Model(error),
    }
}

/// The answer of a turn whose model failed after something was done: that it was, so that nobody has it done again.
fn cut_short(mut draft: Draft, work: Work, voice: Voice<'_>) -> Box<Answered> {
    voice.begin();
    voice.say(&format!("I could not finish my answer because the model failed. {}", unfinished::told(&work)));
    let text = voice.said();
    let tokens = tokens::count(&text);
    draft.metadata.model = Some("confidant".to_owned());
    draft.metadata.tools = called(&work);
    Box::new(Answered { draft, text, tokens, steps: work.done, told: work.told, enrichment: None })
}

/// A turn that waits for somebody's decision, or for the client.
fn paused(model: &dyn Model, draft: Draft, work: Work, desk: &Desk<'_, '_>) -> Paused {
    let Draft { request_id, mut metadata, .. } = draft;
    let (text, calls) = handed::told(&desk.whose.tag, &request_id, &work);
    metadata.model = Some(model.name().to_owned());
    metadata.tools = called(&work);
    metadata.calls = calls;
    Paused { request_id, work, text, metadata, scored: None }
}

fn called(work: &Work) -> Vec<String> {
    let called = work.done.iter().flat_map(|step| &step.calls).map(|call| call.name.clone());
    called.filter(|name| name != concepts::NAME).collect()
}

async fn ask(
    model: &dyn Model,
    prompt: &Prompt,
    voice: &Voice<'_>,
    desk: &Desk<'_, '_>,
) -> Result<Answer, ModelError> {
    let deltas = |text: &str| voice.say(text);
    let asking = model.respond(prompt, &deltas);
    let outcome = tokio::time::timeout(desk.inner.ledger.settings.answer_timeout, asking).await;
    outcome.unwrap_or(Err(ModelError::TimedOut))
}

/// What the person hears, as one text: the words before a call, a gap, the words after it.
struct Voice<'o> {
    outlet: &'o Outlet,
    said: Mutex<String>,
    gap: AtomicBool,
}

impl<'o> Voice<'o> {
    fn new(outlet: &'o Outlet) -> Self {
        Self { outlet, said: Mutex::default(), gap: AtomicBool::new(false) }
    }

    /// What comes next is a new beginning.
    fn begin(&self) {
        self.gap.store(true, Ordering::Relaxed);
    }

    fn say(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut said = self.said.lock();
        if self.gap.swap(false, Ordering::Relaxed) && !said.is_empty() {
            said.push_str("\n\n");
            self.outlet.delta("\n\n");
        }
        said.push_str(text);
        self.outlet.delta(text);
    }

    fn is_silent(&self) -> bool {
        let said = self.said.lock();
        said.trim().is_empty()
    }

    fn said(self) -> String {
        self.said.into_inner()
    }
}

const LAST_STEP: &str =
    "\n\nYou have used your tools as often as you may in this turn. Answer now with what you have.";
