//! The port to a graph of concepts.

use async_trait::async_trait;

use crate::concept::Node;
use crate::guard::Cleared;

/// A graph of public concepts. What fails here never fails a chat: whoever asks goes on without.
#[async_trait]
pub trait Graph: Send + Sync + std::fmt::Debug {
    /// The nodes with these ids, as many as there are ids and in their order, in one query; nothing in the place of an
    /// id that is unknown or withdrawn, the successor in the place of one that was superseded.
    async fn nodes(&self, ids: &[String], language: &str) -> Result<Vec<Option<Node>>, GraphError>;

    /// Nodes that fit, the best first.
    async fn find(&self, look: Look<'_>, language: &str, limit: usize) -> Result<Vec<Node>, GraphError>;

    /// Adds a concept that somebody approved, or brings one up to date; gives its id.
    async fn approve(&self, concept: Cleared) -> Result<String, GraphError>;

    /// How many concepts there are.
    async fn count(&self) -> Result<u64, GraphError>;
}

/// What to look for. Always a value, never a query's syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look<'a> {
    /// Exactly these parts.
    Parts {
        /// The subject area.
        domain: &'a str,
        /// Whose law it is.
        jurisdiction: &'a str,
        /// The code or type.
        kind: &'a str,
    },
    /// Exactly this label, as labels are compared; of this jurisdiction, if one is given.
    Label {
        /// The label.
        label: &'a str,
        /// Whose law it is.
        jurisdiction: Option<&'a str>,
    },
    /// Words of labels.
    Words(&'a str),
}

/// Why a graph gave no answer. Says nothing of what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// It cannot be reached or opened.
    #[error(
        "the concept graph cannot be reached ({0}); hint: check concepts.graph_url and that its server runs"
    )]
    Unavailable(String),
    /// A newer version made it.
    #[error("concepts.db was written by a newer version of Confidant; hint: upgrade this program")]
    Newer,
    /// It took too long.
    #[error("the concept graph took too long; hint: raise concepts.graph_timeout_ms or look at its server")]
    TimedOut,
    /// It gave something back that is no concept.
    #[error(
        "the concept graph contains something that is not a concept ({0}); hint: check what else writes to it"
    )]
    Malformed(&'static str),
    /// What was to be imported is no RDF, or no concepts.
    #[error("{what}; hint: {hint}")]
    Input {
        /// What happened.
        what: String,
        /// What to do next.
        hint: &'static str,
    },
}
