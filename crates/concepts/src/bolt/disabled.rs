//! What stands in for the driver where it is not built in.

use async_trait::async_trait;

use super::BoltSettings;
use crate::concept::Node;
use crate::graph::{Graph, GraphError, Look};
use crate::guard::Cleared;

/// A graph server that this program was built without.
#[derive(Clone, Debug)]
pub enum BoltGraph {}

impl BoltGraph {
    /// Says that it cannot.
    pub fn connect(_: &BoltSettings) -> Result<Self, GraphError> {
        Err(GraphError::Input {
            what: "this program was built without graph servers".to_owned(),
            hint: "`scripts/run --all` or `cargo build --release -p confidant` builds them; or set concepts.graph_url to sqlite:",
        })
    }
}

#[async_trait]
impl Graph for BoltGraph {
    async fn nodes(&self, _: &[String], _: &str) -> Result<Vec<Option<Node>>, GraphError> {
        match *self {}
    }

    async fn find(&self, _: Look<'_>, _: &str, _: usize) -> Result<Vec<Node>, GraphError> {
        match *self {}
    }

    async fn approve(&self, _: Cleared) -> Result<String, GraphError> {
        match *self {}
    }

    async fn count(&self) -> Result<u64, GraphError> {
        match *self {}
    }
}
