//! What an engine knows of concepts, and what a turn has of them.

use std::sync::Arc;
use std::time::Duration;

use confidant_concepts::{Graph, GraphError, Guard, Look, Node};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::clock::Millis;

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
    /// After how long without use a conversation that an application named is deleted; never without it. That of a session
    /// ends with the session.
    pub delete_after: Option<Duration>,
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
            delete_after: Some(Duration::from_secs(180 * 86_400)),
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
    /// Whether it may look some up: there are any.
    pub(crate) look_up: bool,
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
    pub(super) async fn is_populated(&self, now: Millis) -> bool {
        let known = *self.populated.lock();
        if let Some((at, known)) = known
            && at.plus(LOOK_AGAIN) > now
        {
            return known;
        }
        let asking = tokio::time::timeout(self.settings.graph_timeout, self.graph.count());
        let populated = matches!(asking.await, Ok(Ok(count)) if count > 0);
        *self.populated.lock() = Some((now, populated));
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
