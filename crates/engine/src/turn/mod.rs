//! The life of a turn: one request and all that it causes.
//!
//! ```text
//! scope ─▶ (accept) ─▶ recall ─▶ [prepare] ─▶ compose ─▶ respond ─▶ commit ─▶ [enrich]
//! ```
//!
//! Data goes one way; each stage is a module with one public function. `prepare` (before `compose`) and `enrich`
//! (after `commit`) arrive with their own capability. A turn is accepted by appending its request, sealed, before any
//! model is called: from then on it is answered or reported, whatever happens to the process. It runs as a task of its
//! own, so that a client that goes away does not take its turn with it.

mod accept;
mod commit;
mod compose;
mod recall;
mod respond;
mod resume;
mod scope;

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::mpsc;

use crate::audience::Audience;
use crate::engine::Inner;
use crate::error::Error;
use crate::model::{PromptMessage, Sampling, Usage};
use crate::rights::Receipt;
use crate::room::RoomContext;
use crate::running::Running;
use crate::session::Session;

pub(crate) use resume::recover;

/// What a channel asks for.
#[derive(Debug, Default)]
pub struct TurnRequest {
    /// Names the turn; a second request with the same id gets the recorded answer. Made if missing.
    pub request_id: Option<String>,
    /// What the person says.
    pub query: String,
    /// Who will read the answer. If missing: the room, unless the session is keyed by person alone and no room is given.
    pub audience: Option<Audience>,
    /// What was said in the room just now. Never stored.
    pub room: RoomContext,
    /// An application's own instructions for this turn. Never stored.
    pub instructions: Option<String>,
    /// Messages that the application sent along and the log does not have. Never stored.
    pub brought: Vec<PromptMessage>,
    /// How to answer.
    pub sampling: Sampling,
}

/// What comes out of a turn, in this order: any number of `Progress` and `Delta`, then one `Final` or `Error`.
#[derive(Debug)]
pub enum Outbound {
    /// What is being done.
    Progress {
        /// In a few words.
        text: &'static str,
    },
    /// The next piece of the answer.
    Delta {
        /// Counts from 0.
        seq: u64,
        /// The piece.
        text: String,
    },
    /// The whole answer.
    Final(Final),
    /// There is none.
    Error(Error),
}

/// The whole answer.
#[derive(Clone)]
pub struct Final {
    /// The turn's name.
    pub request_id: String,
    /// The answer's text.
    pub content: String,
    /// How it came about.
    pub metadata: Metadata,
}

/// How an answer came about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// What memory did in this turn.
    pub memory: MemoryState,
    /// Why memory could not be used, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_error: Option<&'static str>,
    /// Who will read the answer.
    pub audience: Audience,
    /// The model that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Messages of the history that the model saw.
    pub recalled: usize,
    /// Messages that were left out because of the audience.
    #[serde(skip_serializing_if = "is_zero")]
    pub withheld: usize,
    /// Room lines that the model saw.
    pub room_lines: usize,
    /// Whether the answer is the recorded one of an earlier request with the same id.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether the turn was cut off before and taken up again; its room context is gone then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Aspects that failed and were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_aspects: Vec<&'static str>,
    /// Tokens of prompt and answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// What was erased, when the person asked to be forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Box<Receipt>>,
}

/// What memory did in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryState {
    /// The turn is in the log.
    Kept,
    /// The turn was asked to go without.
    Off,
    /// The log could not be loaded or opened; nothing was recalled and nothing saved over it.
    Unavailable,
    /// The person asked to be forgotten.
    Forgotten,
}

/// Tokens of a turn, as counted here or by the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the answer.
    pub completion_tokens: u32,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self { prompt_tokens: usage.prompt, completion_tokens: usage.completion }
    }
}

impl Metadata {
    fn new(memory: MemoryState, audience: Audience) -> Self {
        Self {
            memory,
            memory_error: None,
            audience,
            model: None,
            recalled: 0,
            withheld: 0,
            room_lines: 0,
            replayed: false,
            resumed: false,
            failed_aspects: Vec::new(),
            usage: None,
            receipt: None,
        }
    }
}

/// A turn under way. Dropping it lets the turn go on by itself.
#[derive(Debug)]
pub struct Turn {
    request_id: String,
    events: mpsc::UnboundedReceiver<Outbound>,
}

impl Turn {
    /// The turn's name, to ask for its answer again.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<Outbound> {
        self.events.recv().await
    }

    /// Waits for the end, skipping everything before it.
    pub async fn finish(mut self) -> Result<Final, Error> {
        while let Some(event) = self.next().await {
            match event {
                Outbound::Final(answer) => return Ok(answer),
                Outbound::Error(error) => return Err(error),
                Outbound::Progress { .. } | Outbound::Delta { .. } => {}
            }
        }
        Err(Error::Internal)
    }
}

impl Session {
    /// Starts a turn. It goes on even if the returned [`Turn`] is dropped.
    #[must_use]
    pub fn turn(&self, request: TurnRequest) -> Turn {
        let session = self.clone();
        let audience = scope::default_audience(&self.scope, &request);
        start(&self.inner, request, audience, move |inbound, outlet| async move {
            run(&session, inbound, &outlet).await
        })
    }
}

pub(crate) fn start_without_memory(inner: &Arc<Inner>, request: TurnRequest) -> Turn {
    let engine = Arc::clone(inner);
    start(inner, request, Audience::Private, move |inbound, outlet| async move {
        let draft = Draft::new(&inbound, MemoryState::Off);
        let answer = answer(&engine, None, inbound, recall::Recalled::default(), draft, &outlet).await?;
        Ok(answer.into_final())
    })
}

/// A request that was found acceptable.
#[derive(Debug)]
struct Inbound {
    request_id: String,
    query: String,
    tokens: u32,
    audience: Audience,
    room: RoomContext,
    instructions: Option<String>,
    brought: Vec<PromptMessage>,
    sampling: Sampling,
}

/// Where a turn's events go. Nobody needs to listen.
#[derive(Clone, Debug)]
struct Outlet(Option<mpsc::UnboundedSender<Outbound>>);

impl Outlet {
    fn send(&self, event: Outbound) {
        if let Some(events) = &self.0 {
            let _ = events.send(event);
        }
    }

    fn progress(&self, text: &'static str) {
        self.send(Outbound::Progress { text });
    }
}

fn start<F>(
    inner: &Arc<Inner>,
    request: TurnRequest,
    audience: Audience,
    run: impl FnOnce(Inbound, Outlet) -> F + Send + 'static,
) -> Turn
where
    F: Future<Output = Result<Final, Error>> + Send + 'static,
{
    let (events, receiver) = mpsc::unbounded_channel();
    let outlet = Outlet(Some(events));
    let inbound = scope::inbound(request, audience, &inner.settings);
    let request_id = inbound.as_ref().map_or_else(|_| String::new(), |inbound| inbound.request_id.clone());
    let turn = Turn { request_id, events: receiver };
    let inbound = match inbound {
        Ok(inbound) => inbound,
        Err(error) => {
            outlet.send(Outbound::Error(error));
            return turn;
        }
    };
    let refused = outlet.clone();
    let task = async move {
        let end = match run(inbound, outlet.clone()).await {
            Ok(answer) => Outbound::Final(answer),
            Err(error) => Outbound::Error(error),
        };
        outlet.send(end);
    };
    if let Err(error) = Running::spawn(inner, task) {
        refused.send(Outbound::Error(error));
    }
    turn
}

/// A turn with memory, from its place in the session's order to its place in the log.
async fn run(session: &Session, inbound: Inbound, outlet: &Outlet) -> Result<Final, Error> {
    let inner = &session.inner;
    if let Some(command) = scope::command(&inbound) {
        return scope::obey(session, command, &inbound).await;
    }
    let mut held = session.lock().await?;
    outlet.progress("🔍 Analyzing...");
    match accept::accept(session, &mut held, &inbound).await {
        Ok(accept::Accepted::Before(answer)) => {
            inner.counters.replayed.add();
            Ok(answer)
        }
        Ok(accept::Accepted::Now { resumed }) => {
            let recalled = recall::recall(&mut held, &inbound, &inner.settings.history);
            let mut draft = Draft::new(&inbound, MemoryState::Kept);
            draft.metadata.resumed = resumed;
            let outcome = answer(inner, Some(session), inbound, recalled, draft, outlet).await;
            commit::commit(session, &mut held, outcome).await
        }
        // Promise 8: a log that cannot be loaded or opened costs the memory of this turn, not its answer.
        Err(error) => {
            let reason = match &error {
                Error::Tampered(tampering) => tampering.name(),
                Error::Unloaded(store) => store.name(),
                _ => return Err(error),
            };
            held.cool();
            drop(held);
            degraded(session, inbound, reason, outlet).await
        }
    }
}

async fn degraded(
    session: &Session,
    inbound: Inbound,
    reason: &'static str,
    outlet: &Outlet,
) -> Result<Final, Error> {
    session.inner.counters.degraded.add();
    tracing::warn!(scope.tag = %session.tag(), reason, "memory unavailable: answering without it");
    let mut draft = Draft::new(&inbound, MemoryState::Unavailable);
    draft.metadata.memory_error = Some(reason);
    let recalled = recall::Recalled::default();
    let answer = answer(&session.inner, Some(session), inbound, recalled, draft, outlet).await?;
    Ok(answer.into_final())
}

/// An answer in the making: which turn it is for, and what is known of how it came about.
#[derive(Debug)]
struct Draft {
    request_id: String,
    metadata: Metadata,
    /// Tokens of the prompt, as counted here.
    prompt_tokens: u32,
}

impl Draft {
    fn new(inbound: &Inbound, memory: MemoryState) -> Self {
        let metadata = Metadata::new(memory, inbound.audience);
        Self { request_id: inbound.request_id.clone(), metadata, prompt_tokens: 0 }
    }
}

/// An answer that is not yet in the log.
#[derive(Debug)]
struct Answered {
    draft: Draft,
    text: String,
    tokens: u32,
}

impl Answered {
    fn into_final(self) -> Final {
        Final { request_id: self.draft.request_id, content: self.text, metadata: self.draft.metadata }
    }
}

/// Why a turn has no answer, with the turn it is.
#[derive(Debug)]
struct Unanswered {
    request_id: String,
    error: Error,
}

impl From<Unanswered> for Error {
    fn from(unanswered: Unanswered) -> Self {
        unanswered.error
    }
}

/// Compose and respond: what is the same with and without a log.
async fn answer(
    inner: &Inner,
    session: Option<&Session>,
    inbound: Inbound,
    recalled: recall::Recalled,
    draft: Draft,
    outlet: &Outlet,
) -> Result<Answered, Unanswered> {
    let (prompt, draft) = compose::compose(inner, session, inbound, recalled, draft).await;
    outlet.progress("🧠 Thinking...");
    respond::respond(inner, &prompt, draft, outlet).await
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl std::fmt::Debug for Final {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Final").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}
