//! `[concepts]`: which public concepts are in scope of a conversation, and where the graph of them is.

use std::path::PathBuf;
use std::time::Duration;

use confidant_engine::concepts::{CaptureWhen, ConceptSettings};
use serde::de::{Deserialize, Deserializer, Error as _};

#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ConceptsSection {
    pub(crate) enabled: bool,
    /// Where the shared graph is.
    pub(crate) graph_url: GraphKind,
    /// Who we are to a graph server; its password is in `CONCEPTS_GRAPH_PASSWORD`.
    pub(crate) graph_user: Option<String>,
    /// The database on it; the server's default without one.
    pub(crate) graph_database: Option<String>,
    /// When models are asked to name the concepts of their answers.
    capture: Capture,
    #[serde(deserialize_with = "some")]
    max_nodes: usize,
    max_shown: usize,
    token_budget: u32,
    #[serde(deserialize_with = "days")]
    half_life_days: Duration,
    graph_timeout_ms: u64,
    #[serde(deserialize_with = "days")]
    archive_after_days: Duration,
    #[serde(deserialize_with = "days")]
    delete_after_days: Duration,
    /// Whether contexts are sealed at rest.
    pub(crate) seal_context: bool,
    language: String,
    disclaimer_key: String,
}

/// Where the shared graph is.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum GraphKind {
    /// `concepts.db`, in the data folder.
    #[default]
    Embedded,
    /// `concepts.db` in another folder.
    Folder(PathBuf),
    /// A graph server.
    Bolt(String),
}

impl TryFrom<String> for GraphKind {
    type Error = String;

    fn try_from(url: String) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("sqlite", "")) => Ok(Self::Embedded),
            Some(("bolt" | "bolt+s" | "neo4j" | "neo4j+s", rest)) if rest.starts_with("//") && !rest.contains('@') => {
                Ok(Self::Bolt(url))
            }
            Some(("bolt" | "bolt+s" | "neo4j" | "neo4j+s", _)) => Err(
                "this is not the address of a graph server, or it has a password in it; hint: use \
                 bolt://host:7687, concepts.graph_user and CONCEPTS_GRAPH_PASSWORD"
                    .to_owned(),
            ),
            Some(("sqlite", folder)) if !folder.starts_with("//") => Ok(Self::Folder(folder.into())),
            _ => Err("this is not the address of a graph; hint: use sqlite:, sqlite:/path/folder or bolt://host:7687".to_owned()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Capture {
    Auto,
    Always,
    Never,
}

impl Default for ConceptsSection {
    fn default() -> Self {
        let settings = ConceptSettings::default();
        Self {
            enabled: true,
            graph_url: GraphKind::default(),
            graph_user: None,
            graph_database: None,
            capture: Capture::Auto,
            max_nodes: settings.max_nodes,
            max_shown: settings.max_shown,
            token_budget: settings.token_budget,
            half_life_days: settings.half_life,
            graph_timeout_ms: 500,
            archive_after_days: Duration::from_secs(90 * DAY),
            delete_after_days: Duration::from_secs(180 * DAY),
            seal_context: settings.seal_context,
            language: settings.language,
            disclaimer_key: settings.disclaimer_key,
        }
    }
}

impl ConceptsSection {
    pub(crate) fn settings(&self) -> ConceptSettings {
        ConceptSettings {
            capture: match self.capture {
                Capture::Auto => CaptureWhen::Auto,
                Capture::Always => CaptureWhen::Always,
                Capture::Never => CaptureWhen::Never,
            },
            max_nodes: self.max_nodes,
            max_shown: self.max_shown,
            token_budget: self.token_budget,
            half_life: self.half_life_days,
            graph_timeout: Duration::from_millis(self.graph_timeout_ms),
            archive_after: Some(self.archive_after_days),
            delete_after: Some(self.delete_after_days),
            seal_context: self.seal_context,
            language: self.language.clone(),
            disclaimer_key: self.disclaimer_key.clone(),
        }
    }

    pub(crate) fn token_budget(&self) -> u32 {
        self.token_budget
    }
}

fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    match usize::deserialize(deserializer)? {
        0 => Err(D::Error::custom("0 concepts is too few; hint: give at least 1, or set enabled = false")),
        most => Ok(most),
    }
}

fn days<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(D::Error::custom("0 days is too short; hint: give at least 1")),
        days if days > 3_660_000 => {
            Err(D::Error::custom("this is longer than ten thousand years; hint: give fewer days"))
        }
        days => Ok(Duration::from_secs(days * DAY)),
    }
}

const DAY: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused_without_being_quoted() {
        let read = |url: &str| GraphKind::try_from(url.to_owned());
        assert_eq!(read("sqlite:"), Ok(GraphKind::Embedded));
        assert_eq!(read("sqlite:/srv/graph"), Ok(GraphKind::Folder("/srv/graph".into())));
        assert_eq!(read("bolt://h:7687"), Ok(GraphKind::Bolt("bolt://h:7687".into())));
        for url in ["hush", "http://hush", "sqlite://hush", "bolt:hush", "bolt://me:hush@h"] {
            let error = read(url).unwrap_err();
            assert!(error.contains("; hint: ") && !error.contains("hush"), "{error}");
        }
    }
}
