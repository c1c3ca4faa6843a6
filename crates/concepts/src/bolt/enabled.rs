//! The queries. Every value is a parameter; the text of a query never depends on what is asked.
//!
//! Nodes are `(:Concept {id, pref_label, domain, kind, jurisdiction, definition, alt_labels, source_urls, ingestion_status,
//! created_at, updated_at})`, other names also `(:Label {id, value, kind})` behind `HAS_ALT_LABEL`, and a successor is behind
//! `SUPERSEDED_BY`. An index on `:Concept(id)` makes the look of each turn fast.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use neo4rs::{ConfigBuilder, Error, Query, Row, query};

use super::BoltSettings;
use crate::concept::{Node, normalised};
use crate::graph::{Graph, GraphError, Look};
use crate::guard::Cleared;

/// A graph server. Connects when it is first asked something; clones share their connections.
#[derive(Clone)]
pub struct BoltGraph {
    graph: Arc<neo4rs::Graph>,
}

impl BoltGraph {
    /// A graph on this server. Whether it can be reached shows when it is asked.
    pub fn connect(settings: &BoltSettings) -> Result<Self, GraphError> {
        let mut config = ConfigBuilder::default()
            .uri(&settings.url)
            .user(&settings.user)
            .password(&settings.password)
            .connection_timeout(Duration::from_secs(5))
            .max_connections(8);
        if let Some(database) = &settings.database {
            config = config.db(database.as_str());
        }
        let graph = config.build().and_then(neo4rs::Graph::connect).map_err(|e| failed(&e))?;
        Ok(Self { graph: Arc::new(graph) })
    }

    async fn rows(&self, query: Query) -> Result<Vec<Row>, GraphError> {
        let mut stream = self.graph.execute(query).await.map_err(|e| failed(&e))?;
        let mut rows = Vec::new();
        while let Some(row) = stream.next().await.map_err(|e| failed(&e))? {
            rows.push(row);
        }
        Ok(rows)
    }
}

#[async_trait]
impl Graph for BoltGraph {
    async fn nodes(&self, ids: &[String], _: &str) -> Result<Vec<Option<Node>>, GraphError> {
        let mut found: Vec<Option<Node>> = vec![None; ids.len()];
        if ids.is_empty() {
            return Ok(found);
        }
        let text = format!(
            "UNWIND range(0, size($ids) - 1) AS place \
             MATCH (a:Concept {{id: $ids[place]}}) \
             OPTIONAL MATCH (a)-[:SUPERSEDED_BY*1..8]->(s:Concept) WHERE NOT (s)-[:SUPERSEDED_BY]->(:Concept) \
             WITH place, coalesce(s, a) AS c {STANDS} \
             RETURN place, {NODE} ORDER BY place"
        );
        for row in self.rows(query(&text).param("ids", ids.to_vec())).await? {
            let place = usize::try_from(row.get::<i64>("place").map_err(|_| malformed())?)
                .map_err(|_| malformed())?;
            *found.get_mut(place).ok_or_else(malformed)? = Some(node(&row)?);
        }
        Ok(found)
    }

    async fn find(&self, look: Look<'_>, _: &str, limit: usize) -> Result<Vec<Node>, GraphError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let end = format!("{STANDS} RETURN {NODE} ORDER BY size(c.pref_label), c.id LIMIT $limit");
        let asked = match look {
            Look::Parts { domain, jurisdiction, kind } => {
                let start =
                    "MATCH (c:Concept {domain: $domain, jurisdiction: $jurisdiction, kind: $kind}) WITH c";
                query(&format!("{start} {end}"))
                    .param("domain", domain)
                    .param("jurisdiction", jurisdiction)
                    .param("kind", kind)
            }
            Look::Label { label, jurisdiction } => {
                let start = "MATCH (c:Concept) WHERE ($jurisdiction = '' OR coalesce(c.jurisdiction, $jurisdiction) = $jurisdiction) \
                     AND $label IN [x IN [c.pref_label] + coalesce(c.alt_labels, []) | toLower(x)] WITH c";
                query(&format!("{start} {end}"))
                    .param("label", label.trim().to_lowercase())
                    .param("jurisdiction", jurisdiction.unwrap_or_default())
            }
            Look::Words(words) => {
                let plain = normalised(words);
                let words: Vec<String> =
                    plain.split(' ').filter(|w| !w.is_empty()).take(8).map(str::to_owned).collect();
                if words.is_empty() {
                    return Ok(Vec::new());
                }
                let start = "MATCH (c:Concept) WITH c, [x IN [c.pref_label] + coalesce(c.alt_labels, []) | toLower(x)] AS names \
                     WHERE any(n IN names WHERE all(w IN $words WHERE n CONTAINS w)) WITH c";
                query(&format!("{start} {end}")).param("words", words)
            }
        };
        self.rows(asked.param("limit", limit)).await?.iter().map(node).collect()
    }

    async fn approve(&self, concept: Cleared) -> Result<String, GraphError> {
        let concept = concept.concept();
        let labels: Vec<String> = concept.alt_labels.clone();
        let ids: Vec<String> = labels.iter().map(|label| label_id(&concept.id, label)).collect();
        let text = "MERGE (c:Concept {id: $id}) ON CREATE SET c.created_at = timestamp() \
             SET c.pref_label = $pref_label, c.domain = $domain, c.kind = $kind, c.jurisdiction = $jurisdiction, \
                 c.definition = $definition, c.alt_labels = $alt_labels, c.source_urls = $source_urls, \
                 c.ingestion_status = 'approved', c.updated_at = timestamp() \
             WITH c UNWIND range(0, size($label_ids)) AS at WITH c, at WHERE at < size($label_ids) \
             MERGE (l:Label {id: $label_ids[at]}) SET l.value = $alt_labels[at], l.kind = 'alt' \
             MERGE (c)-[:HAS_ALT_LABEL]->(l)";
        let write = query(text)
            .param("id", concept.id.as_str())
            .param("pref_label", concept.pref_label.as_str())
            .param("domain", concept.domain.as_str())
            .param("kind", concept.kind.as_str())
            .param("jurisdiction", concept.jurisdiction.as_str())
            .param("definition", concept.definition.clone().unwrap_or_default())
            .param("alt_labels", labels)
            .param("source_urls", concept.source_urls.clone())
            .param("label_ids", ids);
        self.graph.run(write).await.map(drop).map_err(|e| failed(&e))?;
        Ok(concept.id.clone())
    }

    async fn count(&self) -> Result<u64, GraphError> {
        let rows = self.rows(query("MATCH (c:Concept) RETURN count(c) AS concepts")).await?;
        let count = rows.first().ok_or_else(malformed)?.get::<i64>("concepts").map_err(|_| malformed())?;
        u64::try_from(count).map_err(|_| malformed())
    }
}

/// What a node is made of.
const NODE: &str = "c.id AS id, c.pref_label AS pref_label, c.domain AS domain, c.kind AS kind, \
    c.jurisdiction AS jurisdiction, c.definition AS definition, c.alt_labels AS alt_labels, c.source_urls AS source_urls";
/// Which of them there still are.
const STANDS: &str = "WHERE coalesce(c.ingestion_status, 'approved') <> 'withdrawn'";

fn node(row: &Row) -> Result<Node, GraphError> {
    let text = |key: &str| row.get::<Option<String>>(key).map_err(|_| malformed());
    let list = |key: &str| row.get::<Option<Vec<String>>>(key).map_err(|_| malformed());
    let id = text("id")?.ok_or_else(malformed)?;
    Ok(Node {
        pref_label: text("pref_label")?.unwrap_or_else(|| id.clone()),
        alt_labels: list("alt_labels")?.unwrap_or_default(),
        definition: text("definition")?.filter(|text| !text.is_empty()),
        domain: text("domain")?,
        kind: text("kind")?,
        jurisdiction: text("jurisdiction")?,
        source_urls: list("source_urls")?.unwrap_or_default(),
        id,
        ..Node::default()
    })
}

/// `<id>:LABEL:<SLUG>`.
fn label_id(id: &str, label: &str) -> String {
    format!("{id}:LABEL:{}", normalised(label).to_uppercase().replace(' ', "_"))
}

fn malformed() -> GraphError {
    GraphError::Malformed("a node of the graph server")
}

/// What a failure of the driver means, without a word of what was asked.
fn failed(error: &Error) -> GraphError {
    match error {
        Error::InvalidConfig | Error::UrlParseError(_) | Error::UnsupportedScheme(_) => GraphError::Input {
            what: "concepts.graph_url is not the address of a graph server".to_owned(),
            hint: "use bolt://host:7687, or bolt+s:// with TLS",
        },
        Error::ConnectionTimedOut => GraphError::TimedOut,
        Error::AuthenticationError(_) => GraphError::Unavailable("it refuses our password".to_owned()),
        Error::IOError { detail } => GraphError::Unavailable(detail.kind().to_string()),
        _ => GraphError::Unavailable("the server refused".to_owned()),
    }
}

impl std::fmt::Debug for BoltGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BoltGraph")
    }
}
