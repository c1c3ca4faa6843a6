//! Writing a graph as a SKOS vocabulary, page by page, so that its size does not matter.

use std::io::Write;

use oxrdf::{Literal, NamedNode, Triple};
use oxrdfxml::RdfXmlSerializer;
use oxttl::TurtleSerializer;
use serde::Serialize;

use super::{DCTERMS, Form, OWL, OWN, RDF_TYPE, SKOS, WORDS, encoded};
use crate::graph::GraphError;
use crate::sqlite::{FullRow, Result, SqliteGraph};

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// Concepts.
    pub concepts: u64,
    /// Statements about them.
    pub statements: u64,
}

/// Writes every concept. `progress` gets how many are written.
pub fn export(
    graph: &SqliteGraph,
    form: Form,
    output: impl Write,
    progress: &dyn Fn(u64),
) -> Result<Exported> {
    match form {
        Form::Turtle => {
            let mut serializer = TurtleSerializer::new();
            for (prefix, iri) in PREFIXES {
                serializer =
                    serializer.with_prefix(prefix, iri).map_err(|_| GraphError::Malformed("a prefix"))?;
            }
            let mut writer = serializer.for_writer(output);
            let done = each(graph, progress, |triple| writer.serialize_triple(triple))?;
            writer.finish().and_then(|mut output| output.flush()).map_err(|e| unwritten(&e))?;
            Ok(done)
        }
        Form::RdfXml => {
            let mut serializer = RdfXmlSerializer::new();
            for (prefix, iri) in PREFIXES {
                serializer =
                    serializer.with_prefix(prefix, iri).map_err(|_| GraphError::Malformed("a prefix"))?;
            }
            let mut writer = serializer.for_writer(output);
            let done = each(graph, progress, |triple| writer.serialize_triple(triple))?;
            writer.finish().and_then(|mut output| output.flush()).map_err(|e| unwritten(&e))?;
            Ok(done)
        }
    }
}

fn each(
    graph: &SqliteGraph,
    progress: &dyn Fn(u64),
    mut write: impl FnMut(&Triple) -> std::io::Result<()>,
) -> Result<Exported> {
    let (mut done, mut after) = (Exported::default(), 0);
    loop {
        let rows = graph.rows(after, PAGE)?;
        let Some(last) = rows.last() else { return Ok(done) };
        after = last.row;
        for row in &rows {
            done.concepts += 1;
            for triple in triples(row) {
                write(&triple).map_err(|e| unwritten(&e))?;
                done.statements += 1;
            }
        }
        progress(done.concepts);
    }
}

fn triples(row: &FullRow) -> Vec<Triple> {
    let Some(subject) = node(&row.name, row.iri.as_deref()) else { return Vec::new() };
    let mut triples = Vec::new();
    let mut say = |predicate: String, object: oxrdf::Term| {
        triples.push(Triple::new(subject.clone(), NamedNode::new_unchecked(predicate), object));
    };
    say(RDF_TYPE.to_owned(), NamedNode::new_unchecked(format!("{SKOS}Concept")).into());
    for (kind, language, text) in &row.labels {
        let word = ["prefLabel", "altLabel", "hiddenLabel"].get(usize::from(*kind)).unwrap_or(&"altLabel");
        say(format!("{SKOS}{word}"), literal(language, text).into());
    }
    for (language, text) in &row.definitions {
        say(format!("{SKOS}definition"), literal(language, text).into());
    }
    let own = [("domain", &row.domain), ("kind", &row.kind), ("jurisdiction", &row.jurisdiction)];
    for (word, value) in own.into_iter().filter_map(|(word, value)| Some((word, value.as_ref()?))) {
        say(format!("{WORDS}{word}"), Literal::new_simple_literal(value.as_str()).into());
    }
    for url in &row.sources {
        if let Ok(url) = NamedNode::new(url.as_str()) {
            say(format!("{DCTERMS}source"), url.into());
        }
    }
    for (kind, name, iri) in &row.relations {
        let word = ["broader", "narrower", "related"].get(usize::from(*kind)).unwrap_or(&"related");
        if let Some(other) = node(name, iri.as_deref()) {
            say(format!("{SKOS}{word}"), other.into());
        }
    }
    if let Some(successor) = row.superseded_by.as_ref().and_then(|(name, iri)| node(name, iri.as_deref())) {
        say(format!("{DCTERMS}isReplacedBy"), successor.into());
    }
    if row.withdrawn {
        say(format!("{OWL}deprecated"), Literal::from(true).into());
    }
    triples
}

fn node(name: &str, iri: Option<&str>) -> Option<NamedNode> {
    let own = || format!("{OWN}{}", encoded(name));
    NamedNode::new(iri.map_or_else(own, str::to_owned)).ok()
}

fn literal(language: &str, text: &str) -> Literal {
    Literal::new_language_tagged_literal(text, language).unwrap_or_else(|_| Literal::new_simple_literal(text))
}

fn unwritten(error: &std::io::Error) -> GraphError {
    let hint = "check the disk and the permissions of the file";
    GraphError::Input { what: format!("the export could not be written ({})", error.kind()), hint }
}

const PREFIXES: [(&str, &str); 4] =
    [("skos", SKOS), ("dcterms", DCTERMS), ("owl", OWL), ("confidant", WORDS)];
const PAGE: usize = 500;
