//! The life of a turn: one request and all that it causes.
//!
//! ```text
//! scope ─▶ (accept) ─▶ recall ─▶ prepare ─▶ compose ─▶ respond ─▶ commit ─▶ enrich
//!                                                       │   ▲
//!                                                 (wait)▼   │(decide)
//! ```
//!
//! Data goes one way; each stage is a module with one public function. A turn is accepted by appending its request,
//! sealed, before any model is called: from then on it is answered or reported, whatever happens to the process. It runs
//! as a task of its own, so that a client that goes away does not take its turn with it. A turn that needs somebody's
//! approval ends with the question; the decision, whenever it comes, takes it up where it stopped.

mod accept;
mod cancel;
mod commit;
mod compose;
mod compress;
mod decide;
mod elsewhere;
mod enrich;
mod focus;
pub(crate) mod forgotten;
mod outlet;
mod past;
mod plan;
pub(crate) mod prepare;
mod produce;
mod recall;
mod remember;
mod remote;
mod respond;
mod resume;
mod safety;
mod scope;
mod told;
mod unfinished;
mod work;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use confidant_seal::{Tag, TenantId};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use enrich::Material;
pub(crate) use outlet::Outlet;
use plan::Whose;

use crate::about::Note;
use crate::approval::{ApprovalRequest, Work};
use crate::aspects::Profile;
use crate::audience::Audience;
use crate::clock::Millis;
use crate::concepts::{ConceptsOfTurn, ContextStatus, InScope};
use crate::engine::Inner;
use crate::error::Error;
use crate::model::{PromptMessage, Sampling, Usage};
use crate::rights::Receipt;
use crate::room::RoomContext;
use crate::running;
use crate::session::{Held, Session};

pub(crate) use cancel::Cancels;
pub use compose::PastChat;
pub use decide::CarryOut;
pub use elsewhere::Standing;
pub use enrich::Enrichment;
pub use prepare::{
    Decay, Decision as SafetyDecision, Harm, HarmScores, Measure, Offer, OfferedModel, Prepared, PreparedBy,
    Running as RunningHarm, SafetyAction, SafetyRule, SafetyRules, SafetyText, SafetyTexts, View,
};
pub(crate) use resume::{LeftOpen, recover};
pub use safety::Safety;
pub use told::{Told, plain_words};

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
    /// What the person chose to have known. Never stored.
    pub profile: Profile,
    /// The focus mode that is on in this turn, if its name is known; else the conversation's own.
    pub focus: Option<String>,
    /// Conversations of the past that the client thinks are like this one. Never stored.
    pub past_chats: Vec<PastChat>,
    /// Settings and memories that the client has, by name only, so that the turn can ask for some.
    pub available_settings: Vec<String>,
    /// Settings and memories that were asked for, with what they say. Never stored.
    pub settings: BTreeMap<String, String>,
    /// How far back to look; if missing, as far as the limits go.
    pub restore: Option<Restore>,
    /// Whether the model is asked for the concepts of its answer, where the settings leave that open.
    pub capture: bool,
}

/// How far back a turn may look, where a restart is a new beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// When the new beginning was; everything since can be recalled.
    pub since: Millis,
    /// How many of the person's messages from before can be, the newest, each with its answer. Nothing is deleted.
    pub messages: usize,
}

/// What comes out of a turn, in this order: any number of `Progress`, `Delta` and `SettingsWanted`, then one `Final`,
/// `Approval` or `Error`; and after a `Final`, where a small model makes something of turns, one `Enriched`.
#[derive(Debug)]
pub enum Outbound {
    /// What is being done.
    Progress {
        /// In a few words.
        text: Cow<'static, str>,
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
    /// There is none yet: somebody must approve something first. The turn goes on when they have.
    Approval(Box<ApprovalRequest>),
    /// There is none.
    Error(Error),
    /// Settings and memories that the client has and that would help. The turn goes on without them; a new one can bring
    /// them.
    SettingsWanted {
        /// Their names.
        names: Vec<String>,
    },
    /// What was made of the turn, after its end.
    Enriched(Box<Enrichment>),
}

/// How a turn ended, for now.
#[derive(Debug)]
pub enum Ending {
    /// With an answer.
    Answer(Final),
    /// With a question that somebody must decide.
    Approval(Box<ApprovalRequest>),
}

/// The whole answer.
#[derive(Clone)]
pub struct Final {
    /// The turn's name.
    pub request_id: String,
    /// The answer's text.
    pub content: String,
    /// How it came about.
    pub metadata: Box<Metadata>,
}

/// How an answer came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// What memory did in this turn.
    pub memory: MemoryState,
    /// Why memory could not be used, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_error: Option<Cow<'static, str>>,
    /// Who will read the answer.
    pub audience: Audience,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Messages of the history that the model saw.
    pub recalled: usize,
    /// Messages that were left out because of the audience.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub withheld: usize,
    /// Messages that the application sent along and that did not fit the prompt, the oldest of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Room lines that the model saw.
    pub room_lines: usize,
    /// Whether the answer is the recorded one of an earlier request with the same id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// Whether the turn was cut off before and taken up again; its room context is gone then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// Aspects that failed and were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_aspects: Vec<Cow<'static, str>>,
    /// Tools that were called, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Whether the beginning of the conversation was given in few words, since it no longer fits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compressed: bool,
    /// Exchanges at the beginning of the conversation that are kept no longer, since it has more than
    /// `history.max_messages`: only a summary can still tell of them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub dropped: u64,
    /// What was found out about the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation: Option<Box<Prepared>>,
    /// The mate that answered, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mate: Option<String>,
    /// The focus mode that is on after the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// What was done about harm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub safety: Vec<SafetyAction>,
    /// Whether the answer was to be judged before it was heard, and was not, since the small model failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unjudged: bool,
    /// Settings and memories that would have helped: a new turn can bring them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requested_settings: Vec<String>,
    /// What became of the concepts in scope.
    #[serde(default, skip_serializing_if = "is_off")]
    pub context_status: ContextStatus,
    /// The concepts that the answer is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concepts: Option<Box<ConceptsOfTurn>>,
    /// Approvals in this session that somebody has still to decide.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pending_approvals: usize,
    /// Tokens of prompt and answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// What was erased, when the person asked to be forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Box<Receipt>>,
}

/// What memory did in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    pub(crate) fn new(memory: MemoryState, audience: Audience) -> Self {
        Self {
            memory,
            memory_error: None,
            audience,
            model: None,
            recalled: 0,
            withheld: 0,
            left_out: 0,
            room_lines: 0,
            replayed: false,
            resumed: false,
            failed_aspects: Vec::new(),
            tools: Vec::new(),
            compressed: false,
            dropped: 0,
            preparation: None,
            mate: None,
            focus: None,
            safety: Vec::new(),
            unjudged: false,
            requested_settings: Vec::new(),
            context_status: ContextStatus::Off,
            concepts: None,
            pending_approvals: 0,
            usage: None,
            receipt: None,
        }
    }
}

/// A turn under way. Dropping it lets the turn go on by itself; one without memory is cancelled, since nobody could ever
/// hear of it.
#[derive(Debug)]
pub struct Turn {
    request_id: String,
    events: mpsc::UnboundedReceiver<Outbound>,
    _heard: Option<cancel::OnDrop>,
}

impl Turn {
    /// The turn's name, to ask for its answer again.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The next event, if it is there already.
    pub(crate) fn waiting(&mut self) -> Option<Outbound> {
        self.events.try_recv().ok()
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<Outbound> {
        self.events.recv().await
    }

    /// Waits for the end, skipping everything before it.
    pub async fn end(mut self) -> Result<Ending, Error> {
        while let Some(event) = self.next().await {
            match event {
                Outbound::Final(answer) => return Ok(Ending::Answer(answer)),
                Outbound::Approval(request) => return Ok(Ending::Approval(request)),
                Outbound::Error(error) => return Err(error),
                Outbound::Progress { .. } | Outbound::Delta { .. } | Outbound::SettingsWanted { .. } => {}
                Outbound::Enriched(_) => {}
            }
        }
        Err(Error::Internal)
    }

    /// Waits for the answer; that somebody must approve something first is an error to whoever wants only that.
    pub async fn finish(self) -> Result<Final, Error> {
        match self.end().await? {
            Ending::Answer(answer) => Ok(answer),
            Ending::Approval(_) => Err(Error::AwaitsApproval),
        }
    }
}

impl Session {
    /// Starts a turn. It goes on even if the returned [`Turn`] is dropped.
    #[must_use]
    pub fn turn(&self, request: TurnRequest) -> Turn {
        let session = self.clone();
        let audience = scope::default_audience(&self.scope, &request);
        start(&self.inner, Some(self.names.scope), request, audience, move |inbound, outlet| async move {
            run(&session, inbound, &outlet).await
        })
    }
}

pub(crate) fn start_without_memory(
    inner: &Arc<Inner>,
    tenant: Option<TenantId>,
    request: TurnRequest,
) -> Turn {
    let engine = Arc::clone(inner);
    start(inner, None, request, Audience::Private, move |inbound, outlet| async move {
        if let Some(gateway) = engine.gateway.get() {
            return remote::run_without_memory(gateway, tenant, inbound, &outlet).await;
        }
        let draft = Draft::new(&inbound, MemoryState::Off);
        let whose = Whose::unnamed(tenant.as_ref());
        let recalled = recall::Recalled::default();
        let reached = answer(&engine, &whose, None, inbound, recalled, draft, &outlet).await?;
        reached.into_final().map(Ending::Answer)
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
    restore: Option<Restore>,
    profile: Profile,
    focus: Option<String>,
    past_chats: Vec<PastChat>,
    available_settings: Vec<String>,
    settings: BTreeMap<String, String>,
    capture: bool,
}

fn start<F>(
    inner: &Arc<Inner>,
    scope: Option<Tag>,
    request: TurnRequest,
    audience: Audience,
    run: impl FnOnce(Inbound, Outlet) -> F + Send + 'static,
) -> Turn
where
    F: Future<Output = Result<Ending, Error>> + Send + 'static,
{
    match scope::inbound(request, audience, &inner.settings) {
        Ok(inbound) => {
            let request_id = inbound.request_id.clone();
            spawn(inner, scope, request_id, |outlet| run(inbound, outlet))
        }
        Err(error) => {
            let (events, receiver) = mpsc::unbounded_channel();
            Outlet::new(Some(events)).end(Err(error));
            Turn { request_id: String::new(), events: receiver, _heard: None }
        }
    }
}

/// Runs a turn as a task of its own, which can be cancelled by its name.
fn spawn<F>(
    inner: &Arc<Inner>,
    scope: Option<Tag>,
    request_id: String,
    run: impl FnOnce(Outlet) -> F + Send + 'static,
) -> Turn
where
    F: Future<Output = Result<Ending, Error>> + Send + 'static,
{
    let (events, receiver) = mpsc::unbounded_channel();
    let outlet = Outlet::new(Some(events));
    let refused = outlet.clone();
    let cancel = inner.cancels.enter(scope, &request_id);
    let heard = scope.is_none().then(|| cancel.on_drop());
    let turn = Turn { request_id, events: receiver, _heard: heard };
    let task = cancel::scope(cancel, async move {
        let outcome = run(outlet.clone()).await;
        cancel::leave();
        outlet.end(outcome);
    });
    if let Err(error) = running::Running::spawn(inner, task) {
        refused.end(Err(error));
    }
    turn
}

/// A turn with memory, from its place in the session's order to its place in the log.
async fn run(session: &Session, inbound: Inbound, outlet: &Outlet) -> Result<Ending, Error> {
    let inner = &session.inner;
    if let Some(command) = scope::command(&inbound)
        && scope::is_meant(session, &command, &inbound).await?
    {
        return scope::obey(session, command, &inbound, outlet).await;
    }
    if let Some(gateway) = inner.gateway.get() {
        return remote::run(gateway, session, inbound, outlet).await;
    }
    let mut held = cancel::or(session.lock()).await??;
    outlet.progress("🔍 Analyzing...");
    match accept::accept(session, &mut held, &inbound).await {
        Ok(accept::Accepted::Before(mut answer)) => {
            answer.metadata.concepts =
                crate::concepts::recorded(session, &answer.request_id).await.map(Box::new);
            inner.counters.replayed.add();
            Ok(Ending::Answer(answer))
        }
        Ok(accept::Accepted::Waits(request)) => Ok(Ending::Approval(request)),
        Ok(accept::Accepted::Now { resumed }) => {
            let recalled = recall::recall(&mut held, &inbound, &inner.settings.history);
            let mut draft = Draft::new(&inbound, MemoryState::Kept);
            draft.metadata.resumed = resumed;
            let desk = Some((session, &mut held));
            let outcome = answer(inner, &Whose::of(session), desk, inbound, recalled, draft, outlet).await;
            commit::commit(session, &mut held, outcome, outlet).await
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
            degraded(session, inbound, reason, outlet).await.map(Ending::Answer)
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
    draft.metadata.memory_error = Some(Cow::Borrowed(reason));
    if session.inner.concepts.settings().is_some() {
        draft.metadata.context_status = ContextStatus::LoadFailed;
    }
    let recalled = recall::Recalled::default();
    let whose = Whose::of(session);
    answer(&session.inner, &whose, None, inbound, recalled, draft, outlet).await?.into_final()
}

/// An answer in the making: which turn it is for, and what is known of how it came about.
#[derive(Clone, Debug)]
struct Draft {
    request_id: String,
    metadata: Metadata,
    /// Tokens of the prompt, as counted here.
    prompt_tokens: u32,
    /// Messages of the history that found no place in the prompt.
    left_out: usize,
    /// The first exchange of the log that found one, or the turn itself.
    kept_from: u64,
    /// Whether the log is nearly as long as it may be, so that its beginning goes soon.
    crowded: bool,
    /// What the turn found out about the conversation, for the log.
    note: Note,
    harm: Option<RunningHarm>,
    /// What something can be made of after the turn.
    material: Option<Material>,
    /// What the person's settings say, and their names.
    settings: Vec<String>,
    known_settings: Vec<String>,
    /// The concepts in scope, and what the person said: what is captured is held against both.
    concepts: Arc<InScope>,
    query: String,
}

impl Draft {
    fn new(inbound: &Inbound, memory: MemoryState) -> Self {
        let metadata = Metadata::new(memory, inbound.audience);
        Self {
            request_id: inbound.request_id.clone(),
            metadata,
            prompt_tokens: 0,
            left_out: 0,
            kept_from: 0,
            crowded: false,
            note: Note::default(),
            harm: None,
            material: None,
            settings: Vec::new(),
            known_settings: Vec::new(),
            concepts: Arc::default(),
            query: String::new(),
        }
    }
}

/// How far a turn got.
#[derive(Debug)]
enum Reached {
    /// To its answer.
    Answer(Box<Answered>),
    /// To something that somebody must decide.
    Pause(Box<Paused>),
}

impl Reached {
    /// The answer of a turn that has no log, and so cannot wait.
    fn into_final(self) -> Result<Final, Error> {
        match self {
            Self::Answer(answered) => Ok(answered.into_final()),
            Self::Pause(_) => Err(Error::AwaitsApproval),
        }
    }
}

/// An answer that is not yet in the log.
#[derive(Debug)]
struct Answered {
    draft: Draft,
    text: String,
    tokens: u32,
    /// The tools that were called on the way.
    steps: Vec<crate::model::Step>,
    /// What was made of it, where that had to be before it was heard.
    enrichment: Option<Enrichment>,
}

impl Answered {
    fn into_final(self) -> Final {
        Final {
            request_id: self.draft.request_id,
            content: self.text,
            metadata: Box::new(self.draft.metadata),
        }
    }
}

/// A turn that waits, with the work up to there.
#[derive(Debug)]
struct Paused {
    request_id: String,
    work: Work,
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

/// Compose and respond: what is the same with and without a log. Ends early when the turn is cancelled.
async fn answer(
    inner: &Inner,
    whose: &Whose<'_>,
    mut log: Option<(&Session, &mut Held<'_>)>,
    inbound: Inbound,
    recalled: recall::Recalled,
    draft: Draft,
    outlet: &Outlet,
) -> Result<Reached, Unanswered> {
    let request_id = draft.request_id.clone();
    let log_again = log.as_mut().map(|(session, held)| (*session, &mut **held));
    // On the heap: with everything that a turn can come to, it is too large for a stack.
    let producing = Box::pin(produce::produce(inner, whose, log_again, inbound, recalled, draft, outlet));
    match cancel::or(producing).await {
        Ok(outcome) => outcome,
        Err(error) => {
            // A write may have been under way; the next one looks again.
            if let Some((_, held)) = log {
                held.cool();
            }
            inner.counters.cancelled.add();
            Err(Unanswered { request_id, error })
        }
    }
}

fn is_off(status: &ContextStatus) -> bool {
    *status == ContextStatus::Off
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

fn is_none(n: &u64) -> bool {
    *n == 0
}

impl std::fmt::Debug for Final {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Final").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}
