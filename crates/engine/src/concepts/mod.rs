//! Concepts in scope: which public concepts a conversation has touched, so that later answers build on them.
//!
//! ```text
//! recall:  context ─▶ ids, ranked ─▶ graph ─▶ "- Label (IE) – description"      a failure costs the paragraph, no more
//! commit:  capture_concepts ─▶ checked ─▶ resolved ─▶ merged, with its reason   a failure costs the memory, no more
//! ```
//!
//! [`context`] is what is remembered and how it is ranked, [`keep`] how it is kept, sealed and forgotten, [`capture`] what
//! is taken of a model's word, [`aspect`] what a prompt says of it, [`rights`] what people and administrators can do.
//! What a model captures and the shared graph does not have stays with the conversation, as a candidate, until somebody
//! approves it. What is easy to get wrong: a context is per conversation, but a person's erasure is per session, so each
//! use in it says whose it is.

mod aspect;
mod capture;
mod context;
mod conversation;
mod keep;
mod lifetime;
mod rights;
mod settle;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use confidant_concepts::{Graph, GraphError, Guard, Look, Node};
use serde::{Deserialize, Serialize};

use crate::audience::{Audience, Sharing};
use crate::clock::Millis;
use crate::engine::Inner;
use crate::session::Session;

pub use aspect::ConversationContextAspect;
pub(crate) use capture::{NAME, NOTED, checked, take, tool};
pub(crate) use context::Captured;
pub use context::{ConversationContext, ConversationIdentity};
pub(crate) use conversation::is_conversation;
pub(crate) use keep::{count, forget, stored_version, sweep, take_back};
pub(crate) use lifetime::{Until, over, wait};
pub use rights::{ApprovedConcept, Candidate, ConceptChoice, ConceptInScope, Reason, ScopeView};
pub(crate) use settle::{catch_up, note, recorded};

/// What an engine knows of concepts.
#[derive(Clone, Debug, Default)]
pub struct Concepts {
    shared: Option<Arc<Shared>>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) graph: Arc<dyn Graph>,
    pub(crate) guard: Guard,
    pub(crate) settings: ConceptSettings,
    /// Whether the graph had anything when it was last looked at.
    populated: Mutex<Option<(Millis, bool)>>,
}

/// How concepts are kept and shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ConceptSettings {
    /// When models are asked to name concepts.
    pub capture: CaptureWhen,
    /// The most ids that a context keeps.
    pub max_nodes: usize,
    /// The most that a prompt shows.
    pub max_shown: usize,
    /// Tokens that they may take there.
    pub token_budget: u32,
    /// After how long without use an id counts half.
    pub half_life: Duration,
    /// The longest that the graph may take.
    pub graph_timeout: Duration,
    /// After how long without use a context is out of use; never without it.
    pub archive_after: Option<Duration>,
    /// Whether contexts are sealed at rest.
    pub seal_context: bool,
    /// The language in which labels are wanted.
    pub language: String,
    /// The key of the disclaimer that applications show with answers.
    pub disclaimer_key: String,
}

impl Default for ConceptSettings {
    fn default() -> Self {
        Self {
            capture: CaptureWhen::Auto,
            max_nodes: 256,
            max_shown: 24,
            token_budget: 800,
            half_life: Duration::from_secs(7 * 86_400),
            graph_timeout: Duration::from_millis(500),
            archive_after: Some(Duration::from_secs(90 * 86_400)),
            seal_context: true,
            language: "en".to_owned(),
            disclaimer_key: "general_information".to_owned(),
        }
    }
}

/// When models are asked to name the concepts of their answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureWhen {
    /// When the request asks for it, when some are in scope, or when the graph has any.
    Auto,
    /// In every turn.
    Always,
    /// Never.
    Never,
}

impl Concepts {
    /// Concepts of this graph.
    #[must_use]
    pub fn new(graph: Arc<dyn Graph>, settings: ConceptSettings) -> Self {
        let shared = Shared { graph, guard: Guard::new(), settings, populated: Mutex::default() };
        Self { shared: Some(Arc::new(shared)) }
    }

    pub(crate) fn shared(&self) -> Option<&Arc<Shared>> {
        self.shared.as_ref()
    }

    /// The settings; nothing where concepts are off.
    #[must_use]
    pub fn settings(&self) -> Option<&ConceptSettings> {
        self.shared.as_ref().map(|shared| &shared.settings)
    }
}

/// What became of the concepts in a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextStatus {
    /// Concepts are off, or the turn is without memory.
    #[default]
    Off,
    /// There are none in scope.
    Empty,
    /// Those in scope were told to the model.
    Loaded,
    /// They could not be loaded; the answer was made without, and nothing was saved over them.
    LoadFailed,
    /// The graph did not answer, so the model was told nothing of them.
    GraphFailed,
    /// What this turn added could not be saved.
    SaveFailed,
}

/// The concepts in scope of a turn.
#[derive(Clone, Debug, Default)]
pub struct InScope {
    pub(crate) status: ContextStatus,
    /// Those that are shown, the most important first.
    pub(crate) nodes: Vec<ScopeNode>,
    /// Ids that the graph does not have any more, with their successors where there are any.
    pub(crate) moved: Vec<(String, Option<String>)>,
    /// Whether the model is asked to name concepts.
    pub(crate) capture: bool,
}

/// A concept as a prompt shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScopeNode {
    pub(crate) id: String,
    pub(crate) label: String,
    pub(crate) jurisdiction: Option<String>,
    pub(crate) description: Option<String>,
}

/// What a turn has to say of concepts when it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConceptsOfTurn {
    /// Concepts that were central to the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub referenced_nodes: Vec<String>,
    /// Whose law it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jurisdictions: Vec<String>,
    /// How well the answer stands on concepts that somebody approved.
    pub uncertainty_level: Uncertainty,
}

/// How well an answer stands on the shared graph. Not a judgement of its truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Uncertainty {
    /// Every concept it names is in the shared graph.
    Low,
    /// Some are, or it builds on those in scope.
    Medium,
    /// None is, or it is not known.
    #[default]
    High,
}

/// Loads what is in scope for an answer that `audience` will read. Never fails: what cannot be had is left out, and said.
pub(crate) async fn recall(session: &Session, audience: Audience, sharing: Sharing, asked: bool) -> InScope {
    let inner = &session.inner;
    let Some(shared) = inner.concepts.shared() else { return InScope::default() };
    let mut scope = match keep::load(session).await {
        Ok(context) => visible(session, shared, &context, audience, sharing).await,
        Err(error) => {
            inner.counters.contexts_failed.add();
            tracing::warn!(scope.tag = %session.tag(), error = error.code(), "concepts in scope could not be loaded");
            InScope { status: ContextStatus::LoadFailed, ..InScope::default() }
        }
    };
    scope.capture = match shared.settings.capture {
        CaptureWhen::Always => true,
        CaptureWhen::Never => false,
        CaptureWhen::Auto => asked || !scope.nodes.is_empty() || shared.is_populated(inner).await,
    };
    scope
}

async fn visible(
    session: &Session,
    shared: &Shared,
    context: &ConversationContext,
    audience: Audience,
    sharing: Sharing,
) -> InScope {
    let now = session.inner.now();
    let ranked = context.ranked(now, &shared.settings);
    let by = session.tag();
    let mut shown: Vec<_> = ranked.into_iter().filter(|one| one.reaches(&by, audience, sharing)).collect();
    shown.truncate(shared.settings.max_shown);
    if shown.is_empty() {
        return InScope { status: ContextStatus::Empty, ..InScope::default() };
    }
    let ids: Vec<String> = shown.iter().map(|one| one.id.clone()).collect();
    let found = match shared.nodes(&ids).await {
        Ok(found) => found,
        Err(error) => {
            session.inner.counters.contexts_failed.add();
            tracing::warn!(error = %error, "concepts in scope could not be described");
            return InScope { status: ContextStatus::GraphFailed, ..InScope::default() };
        }
    };
    let mut scope = InScope { status: ContextStatus::Loaded, ..InScope::default() };
    for (active, node) in shown.into_iter().zip(found) {
        match (node, &active.concept) {
            (Some(node), _) => {
                if node.id != active.id {
                    scope.moved.push((active.id.clone(), Some(node.id.clone())));
                }
                scope.nodes.push(ScopeNode::from(node));
            }
            (None, Some(candidate)) => scope.nodes.push(ScopeNode::from(candidate.concept.clone())),
            (None, None) => scope.moved.push((active.id.clone(), None)),
        }
    }
    // Two that became one are shown once.
    let mut seen = std::collections::HashSet::new();
    scope.nodes.retain(|node| seen.insert(node.id.clone()));
    if scope.nodes.is_empty() {
        scope.status = ContextStatus::Empty;
    }
    scope
}

impl Shared {
    /// Nodes by their ids, within the time that the graph has.
    pub(crate) async fn nodes(&self, ids: &[String]) -> Result<Vec<Option<Node>>, GraphError> {
        let asking = self.graph.nodes(ids, &self.settings.language);
        let nodes = tokio::time::timeout(self.settings.graph_timeout, asking).await;
        let nodes = nodes.map_err(|_| GraphError::TimedOut)??;
        if nodes.len() == ids.len() { Ok(nodes) } else { Err(GraphError::Malformed("a number of nodes")) }
    }

    pub(crate) async fn find(&self, look: Look<'_>, limit: usize) -> Result<Vec<Node>, GraphError> {
        let asking = self.graph.find(look, &self.settings.language, limit);
        tokio::time::timeout(self.settings.graph_timeout, asking).await.map_err(|_| GraphError::TimedOut)?
    }

    /// Whether the graph has anything; asked now and then.
    async fn is_populated(&self, inner: &Inner) -> bool {
        let now = inner.now();
        let known = *self.populated.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((at, known)) = known
            && at.plus(LOOK_AGAIN) > now
        {
            return known;
        }
        let asking = tokio::time::timeout(self.settings.graph_timeout, self.graph.count());
        let populated = matches!(asking.await, Ok(Ok(count)) if count > 0);
        *self.populated.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((now, populated));
        populated
    }
}

/// How long it is believed that the graph has something, or nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

impl From<Node> for ScopeNode {
    fn from(node: Node) -> Self {
        let Node { id, pref_label, jurisdiction, definition, .. } = node;
        Self {
            id,
            label: pref_label,
            jurisdiction: jurisdiction.filter(is_someones_law),
            description: definition,
        }
    }
}

impl From<confidant_concepts::Concept> for ScopeNode {
    fn from(concept: confidant_concepts::Concept) -> Self {
        let confidant_concepts::Concept { id, pref_label, jurisdiction, definition, .. } = concept;
        let jurisdiction = Some(jurisdiction).filter(is_someones_law);
        Self { id, label: pref_label, jurisdiction, description: definition }
    }
}

/// What holds everywhere is nobody's law in particular.
fn is_someones_law(jurisdiction: &String) -> bool {
    !jurisdiction.is_empty() && jurisdiction != "GLOBAL"
}
