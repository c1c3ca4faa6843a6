//! The shared graph of public concepts: what may enter it, and how it is looked up.
//!
//! A [`Concept`] is something everybody may know, such as a tax or a benefit, in the words of SKOS: a preferred label,
//! other labels, a definition, and what is broader, narrower or related. A [`Graph`] has them: [`SqliteGraph`] in one file
//! of its own, with import and export of Turtle and RDF/XML ([`skos`]), or [`BoltGraph`], a Memgraph or Neo4j server.
//!
//! The graph is shared by all tenants, so nothing of a person may ever be in it. Two things keep that: this crate knows
//! no scope, session or tenant, so it could not say whose conversation something came from; and a graph takes only what
//! is [`Cleared`], which only a [`Guard`] makes.
//!
//! ```
//! use confidant_concepts::{Concept, Graph, Guard, SqliteGraph};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let graph = SqliteGraph::in_memory()?;
//! let vat = Concept::new("tax", "IE", "VAT", "Value-Added Tax (VAT)");
//! graph.approve(Guard::new().clear(vat).map_err(|refusals| refusals[0].to_string())?).await?;
//! let found = graph.nodes(&["TAX:IE:VAT".to_owned(), "no such".to_owned()], "en").await?;
//! assert_eq!(found[0].as_ref().map(|node| node.pref_label.as_str()), Some("Value-Added Tax (VAT)"));
//! assert_eq!(found[1], None);
//! # Ok(()) }
//! ```

mod bolt;
mod concept;
mod graph;
mod guard;
pub mod skos;
mod sqlite;

pub use bolt::{BoltGraph, BoltSettings};
pub use concept::{Concept, Label, Node, agree, concept_id, normalised};
pub use graph::{Graph, GraphError, Look};
pub use guard::{Cleared, Guard, Refusal};
pub use sqlite::{ConceptList, Pending, SqliteGraph};
