//! Concepts: those of an answer, those in scope of a conversation, and those that wait for approval.

use confidant_engine as engine;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Audience, all};

/// What happened to the concepts in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ContextStatus {
    /// Concepts are off, or the turn is without memory.
    Off,
    /// There are none in scope.
    Empty,
    /// The model was told the concepts in scope.
    Loaded,
    /// They could not be loaded; nothing was overwritten.
    LoadFailed,
    /// The graph did not answer, so the model was not told about them.
    GraphFailed,
    /// What this turn added could not be saved.
    SaveFailed,
}

mirrors!(concepts::ContextStatus { Off, Empty, Loaded, LoadFailed, GraphFailed, SaveFailed });

impl ContextStatus {
    pub(super) fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

/// How well the shared graph supports an answer. Not a judgement of its truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Uncertainty {
    /// Every concept it names is in the shared graph.
    Low,
    /// Some are, or it is based on those in scope.
    Medium,
    /// None is, or this is unknown.
    High,
}

mirrors!(concepts::Uncertainty { Low, Medium, High });

/// The concepts that an answer is about.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConceptsOfTurn {
    /// Their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    referenced_nodes: Vec<String>,
    /// The jurisdiction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jurisdictions: Vec<String>,
    /// How well they support the answer.
    uncertainty_level: Uncertainty,
}

impl From<engine::concepts::ConceptsOfTurn> for ConceptsOfTurn {
    fn from(concepts: engine::concepts::ConceptsOfTurn) -> Self {
        let engine::concepts::ConceptsOfTurn { referenced_nodes, jurisdictions, uncertainty_level } =
            concepts;
        Self { referenced_nodes, jurisdictions, uncertainty_level: uncertainty_level.into() }
    }
}

/// What is in scope of a conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct ScopeView {
    /// The conversation.
    conversation_id: String,
    /// Ids, the most important first.
    #[serde(rename = "activeNodeIds")]
    active_node_ids: Vec<String>,
    /// The same concepts, with details.
    concepts: Vec<ConceptInScope>,
    /// Whether the details could be loaded.
    context_status: ContextStatus,
}

impl From<engine::concepts::ScopeView> for ScopeView {
    fn from(view: engine::concepts::ScopeView) -> Self {
        let engine::concepts::ScopeView { conversation_id, active_node_ids, concepts, context_status } = view;
        Self {
            conversation_id,
            active_node_ids,
            concepts: all(concepts),
            context_status: context_status.into(),
        }
    }
}

/// A concept in scope.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConceptInScope {
    /// Its id.
    id: String,
    /// Its label.
    label: String,
    /// The jurisdiction.
    #[serde(skip_serializing_if = "Option::is_none")]
    jurisdiction: Option<String>,
    /// Its definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Whether it is pinned: it stays in scope.
    pinned: bool,
    /// In how many turns it was used.
    uses: u64,
    /// When it was last used, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used: Option<i64>,
    /// Whether it waits for approval into the shared graph.
    candidate: bool,
}

impl From<engine::concepts::ConceptInScope> for ConceptInScope {
    fn from(concept: engine::concepts::ConceptInScope) -> Self {
        let engine::concepts::ConceptInScope {
            id,
            label,
            jurisdiction,
            description,
            pinned,
            uses,
            last_used,
            candidate,
        } = concept;
        let last_used = last_used.map(|at| at.0);
        Self { id, label, jurisdiction, description, pinned, uses, last_used, candidate }
    }
}

/// One reason why a concept is in scope.
#[derive(Serialize, ToSchema)]
pub(crate) struct ScopeReason {
    /// When, in milliseconds since 1970.
    at: i64,
    /// `used`, `pinned` or `unpinned`.
    what: &'static str,
    /// The turn's request id; missing if it was somebody else's.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// Whether this person did it.
    yours: bool,
    /// Who could read that turn.
    audience: Audience,
}

impl From<engine::concepts::Reason> for ScopeReason {
    fn from(reason: engine::concepts::Reason) -> Self {
        let engine::concepts::Reason { at, what, request_id, yours, audience } = reason;
        Self { at: at.0, what, request_id, yours, audience: audience.into() }
    }
}

/// A captured concept that waits for approval.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Candidate {
    /// Its id.
    id: String,
    /// The subject area.
    domain: String,
    /// The code or type.
    kind: String,
    /// The jurisdiction.
    jurisdiction: String,
    /// Its label.
    pref_label: String,
    /// Other labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alt_labels: Vec<String>,
    /// Its definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<String>,
    /// Sources of the definition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source_urls: Vec<String>,
    /// Whether its label is what a person said, word for word.
    said: bool,
    /// In how many turns it was captured.
    captures: u64,
    /// By which sessions, as tags.
    sessions: Vec<String>,
    /// When first, in milliseconds since 1970.
    first: i64,
    /// When last.
    last: i64,
}

impl From<engine::concepts::Candidate> for Candidate {
    fn from(candidate: engine::concepts::Candidate) -> Self {
        let engine::concepts::Candidate { concept, said, captures, sessions, first, last } = candidate;
        let engine::concepts::Concept {
            id,
            domain,
            kind,
            jurisdiction,
            pref_label,
            alt_labels,
            definition,
            source_urls,
        } = concept;
        Self {
            id,
            domain,
            kind,
            jurisdiction,
            pref_label,
            alt_labels,
            definition,
            source_urls,
            said,
            captures,
            sessions,
            first: first.0,
            last: last.0,
        }
    }
}

/// What an approval put into the shared graph.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApprovedConcept {
    /// Its id.
    id: String,
    /// Its label there.
    pref_label: String,
}

impl From<engine::concepts::ApprovedConcept> for ApprovedConcept {
    fn from(approved: engine::concepts::ApprovedConcept) -> Self {
        let engine::concepts::ApprovedConcept { id, pref_label } = approved;
        Self { id, pref_label }
    }
}
