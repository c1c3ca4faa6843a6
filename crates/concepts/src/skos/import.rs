//! Reading a vocabulary, statement by statement, so that its size does not matter.
//!
//! Every text goes through the guard like everything that enters the graph. What was applied is kept every so often: an
//! import that was cut off is taken up where it was, since the file is known by its digest.

use std::collections::BTreeMap;
use std::io::Read;

use oxrdf::{NamedOrBlankNode, Term, Triple};
use oxrdfxml::RdfXmlParser;
use oxttl::TurtleParser;
use serde::Serialize;

use super::{DCTERMS, Defaults, Form, OWL, RDF_TYPE, RDFS, SKOS, WORDS};
use crate::graph::GraphError;
use crate::guard::Guard;
use crate::sqlite::{Pending, Result, Said, SqliteGraph};

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Concepts in the file.
    pub concepts: u64,
    /// Statements in the file.
    pub statements: u64,
    /// Statements that an earlier try had applied.
    pub resumed_at: u64,
    /// Statements that say nothing a concept is made of.
    pub passed_over: u64,
    /// Statements that the guard refused, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u64>,
    /// Whether this very file was imported before; nothing was done then.
    pub known: bool,
}

/// How far an import is: statements, and bytes of the file.
pub type Progress<'p> = &'p dyn Fn(u64, u64);

/// Imports a vocabulary. `digest` names the file's content.
pub fn import(
    graph: &SqliteGraph,
    form: Form,
    input: impl Read,
    digest: &[u8],
    defaults: &Defaults,
    progress: Progress<'_>,
) -> Result<Imported> {
    let Some(pending) = graph.import(digest)? else {
        return Ok(Imported { known: true, ..Imported::default() });
    };
    let guard = Guard::new();
    let resumed_at = pending.applied();
    let done = Imported { resumed_at, ..Imported::default() };
    let counted = Counted { input, bytes: std::rc::Rc::default() };
    let bytes = std::rc::Rc::clone(&counted.bytes);
    let mut intake = Intake { pending, guard: &guard, done, progress, bytes };
    match form {
        Form::Turtle => {
            let parser = TurtleParser::new().with_base_iri(BASE).map_err(|_| no_rdf("a bad base IRI"))?;
            for triple in parser.for_reader(counted) {
                intake.take(&triple.map_err(|e| no_rdf(&e.to_string()))?)?;
            }
        }
        Form::RdfXml => {
            let parser = RdfXmlParser::new().with_base_iri(BASE).map_err(|_| no_rdf("a bad base IRI"))?;
            for triple in parser.for_reader(counted) {
                intake.take(&triple.map_err(|e| no_rdf(&e.to_string()))?)?;
            }
        }
    }
    intake.finish(defaults)
}

/// What relative IRIs of a file are relative to.
const BASE: &str = "urn:confidant:import:";
/// Statements that are kept together.
const KEPT_TOGETHER: u64 = 20_000;

struct Intake<'i, 'g> {
    pending: Pending<'g>,
    guard: &'i Guard,
    done: Imported,
    progress: Progress<'i>,
    bytes: std::rc::Rc<std::cell::Cell<u64>>,
}

impl Intake<'_, '_> {
    fn take(&mut self, triple: &Triple) -> Result<()> {
        self.done.statements += 1;
        if self.done.statements <= self.done.resumed_at {
            // Applied before; but the concepts have to be met, since they get their names at the end.
            if let Some((iri, Said::IsConcept)) = said(triple) {
                self.pending.meet(iri)?;
            }
            return Ok(());
        }
        match said(triple) {
            Some((iri, said)) => match self.refusal(&said) {
                Some(reason) => *self.done.refused.entry(reason).or_default() += 1,
                None => self.pending.apply(iri, &said)?,
            },
            None => self.done.passed_over += 1,
        }
        if self.done.statements.is_multiple_of(KEPT_TOGETHER) {
            self.pending.keep(self.done.statements)?;
            (self.progress)(self.done.statements, self.bytes.get());
        }
        Ok(())
    }

    fn refusal(&self, said: &Said) -> Option<String> {
        let (text, property) = match said {
            Said::Label { kind: 0, text, .. } => (text, "prefLabel"),
            Said::Label { text, .. } => (text, "altLabels"),
            Said::Definition { text, .. } => (text, "definition"),
            Said::Source(url) => (url, "sourceUrls"),
            Said::Domain(text) => (text, "domain"),
            Said::Kind(text) => (text, "kind"),
            Said::Jurisdiction(text) => (text, "jurisdiction"),
            _ => return None,
        };
        self.guard.leaf(text, property).map(|refusal| refusal.to_string())
    }

    fn finish(mut self, defaults: &Defaults) -> Result<Imported> {
        self.pending.keep(self.done.statements)?;
        self.done.concepts = self.pending.finish(defaults)?;
        (self.progress)(self.done.statements, self.bytes.get());
        Ok(self.done)
    }
}

/// What a statement says of a concept, if anything.
fn said(triple: &Triple) -> Option<(&str, Said)> {
    let NamedOrBlankNode::NamedNode(subject) = &triple.subject else { return None };
    let predicate = triple.predicate.as_str();
    let literal = || match &triple.object {
        Term::Literal(literal) => {
            let language = literal.language().unwrap_or_default().to_ascii_lowercase();
            Some((language, literal.value().trim().to_owned())).filter(|(_, text)| !text.is_empty())
        }
        _ => None,
    };
    let iri = || match &triple.object {
        Term::NamedNode(node) => Some(node.as_str().to_owned()),
        _ => None,
    };
    let label = |kind: u8| literal().map(|(language, text)| Said::Label { kind, language, text });
    let relation = |kind: u8| iri().map(|other| Said::Relation { kind, other });
    let own = |make: fn(String) -> Said| literal().map(|(_, text)| make(text));
    let word = |space: &str| predicate.strip_prefix(space);
    let said = match () {
        () if predicate == RDF_TYPE => (iri()? == format!("{SKOS}Concept")).then_some(Said::IsConcept),
        () if let Some(word) = word(SKOS) => match word {
            "prefLabel" => label(0),
            "altLabel" => label(1),
            "hiddenLabel" => label(2),
            "definition" => literal().map(|(language, text)| Said::Definition { language, text }),
            "broader" | "broadMatch" => relation(0),
            "narrower" | "narrowMatch" => relation(1),
            "related" | "relatedMatch" => relation(2),
            _ => None,
        },
        () if let Some(word) = word(DCTERMS) => match word {
            "isReplacedBy" => iri().map(Said::SupersededBy),
            "source" => iri().or_else(|| literal().map(|(_, text)| text)).map(Said::Source),
            _ => None,
        },
        () if let Some(word) = word(WORDS) => match word {
            "domain" => own(Said::Domain),
            "kind" => own(Said::Kind),
            "jurisdiction" => own(Said::Jurisdiction),
            _ => None,
        },
        () if predicate == format!("{RDFS}seeAlso") => iri().map(Said::Source),
        () if predicate == format!("{OWL}deprecated") => {
            literal().filter(|(_, text)| text == "true" || text == "1").map(|_| Said::Withdrawn)
        }
        () => None,
    };
    said.map(|said| (subject.as_str(), said))
}

fn no_rdf(what: &str) -> GraphError {
    let what: String = what.chars().take(200).collect();
    let hint = "check the file, or say how it is written with --format; what was read before it is kept";
    GraphError::Input { what: format!("the file cannot be read as RDF: {what}"), hint }
}

/// Counts what is read.
struct Counted<R> {
    input: R,
    bytes: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}
