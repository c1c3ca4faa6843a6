//! From settings to the graph of concepts.

use std::sync::Arc;

use anyhow::Context as _;
use confidant_concepts::{BoltGraph, BoltSettings, SqliteGraph};
use confidant_engine::concepts::Concepts;
use secrecy::ExposeSecret as _;

use crate::config::{GraphKind, Loaded};
use crate::damage::{self, Damage, NoGraph, Part};
use crate::files;
use crate::open::{Purpose, make_folder};

/// The graph, as far as commands need to know which it is.
#[derive(Clone, Debug)]
pub(crate) struct OpenedGraph {
    pub(crate) concepts: Concepts,
    /// The embedded graph, which can be imported into and exported from.
    pub(crate) embedded: Option<SqliteGraph>,
    /// Why there is none, if it cannot be opened.
    pub(crate) damage: Option<Damage>,
}

/// Opens the graph that the settings name; nothing where concepts are off.
pub(crate) fn open(loaded: &Loaded, purpose: Purpose) -> anyhow::Result<OpenedGraph> {
    let section = &loaded.config.concepts;
    if !section.enabled {
        return Ok(OpenedGraph { concepts: Concepts::default(), embedded: None, damage: None });
    }
    if let GraphKind::Bolt(url) = &section.graph_url {
        let password = loaded.secrets.graph.as_ref().map(|secret| secret.expose_secret().to_owned());
        let graph = BoltGraph::connect(&BoltSettings {
            url: url.clone(),
            user: section.graph_user.clone().unwrap_or_default(),
            password: password.unwrap_or_default(),
            database: section.graph_database.clone(),
        })?;
        let concepts = Concepts::new(Arc::new(graph), section.settings());
        return Ok(OpenedGraph { concepts, embedded: None, damage: None });
    }
    match embedded(loaded, purpose).context("the graph of concepts cannot be opened") {
        Ok(graph) => {
            let concepts = Concepts::new(Arc::new(graph.clone()), section.settings());
            Ok(OpenedGraph { concepts, embedded: Some(graph), damage: None })
        }
        // No conversation needs it: those that would use it say that they could not.
        Err(error) => {
            let concepts = Concepts::new(Arc::new(NoGraph), section.settings());
            Ok(OpenedGraph { concepts, embedded: None, damage: Some(damage::of(Part::Concepts, &error)) })
        }
    }
}

fn embedded(loaded: &Loaded, purpose: Purpose) -> anyhow::Result<SqliteGraph> {
    let config = &loaded.config;
    let folder = match (&config.concepts.graph_url, config.data_folder()) {
        (GraphKind::Folder(folder), _) => folder.clone(),
        (GraphKind::Embedded | GraphKind::Bolt(_), Some(_)) => config.server.data_dir.clone(),
        // Where nothing is kept, no graph is either.
        (GraphKind::Embedded | GraphKind::Bolt(_), None) => return Ok(SqliteGraph::in_memory()?),
    };
    let path = folder.join("concepts.db");
    if purpose == Purpose::LookAtData && !files::is_there(&path)? {
        return Ok(SqliteGraph::in_memory()?);
    }
    make_folder(&folder)?;
    Ok(SqliteGraph::open(&path)?)
}
