//! SKOS in Turtle and RDF/XML: reading a vocabulary into a graph, and writing a graph as one.
//!
//! Of a vocabulary only what a concept is made of is taken: what else it says is passed over and counted. Domain,
//! kind and jurisdiction have no word in SKOS, so they go by our own.

mod export;
mod import;

#[cfg(test)]
mod tests;

pub use export::{Exported, export};
pub use import::{Imported, Progress, import};

/// How a vocabulary is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Turtle, of which N-Triples is a part.
    Turtle,
    /// RDF/XML.
    RdfXml,
}

impl Form {
    /// The form that a file's name says it has.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
        match ending.as_str() {
            "ttl" | "turtle" | "nt" => Some(Self::Turtle),
            "rdf" | "xml" | "owl" | "rdfs" => Some(Self::RdfXml),
            _ => None,
        }
    }
}

/// What holds for concepts that do not say it themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The subject area.
    pub domain: Option<String>,
    /// Whose law it is.
    pub jurisdiction: Option<String>,
}

/// The beginning of the IRIs that concepts without one get.
pub(crate) const OWN: &str = "urn:confidant:concept:";
/// The beginning of our own words.
pub(crate) const WORDS: &str = "urn:confidant:ns:";
pub(crate) const SKOS: &str = "http://www.w3.org/2004/02/skos/core#";
pub(crate) const DCTERMS: &str = "http://purl.org/dc/terms/";
pub(crate) const RDFS: &str = "http://www.w3.org/2000/01/rdf-schema#";
pub(crate) const OWL: &str = "http://www.w3.org/2002/07/owl#";
pub(crate) const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// An id as a part of an IRI.
pub(crate) fn encoded(id: &str) -> String {
    use std::fmt::Write as _;
    id.bytes().fold(String::with_capacity(id.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

/// The id that was made a part of an IRI.
pub(crate) fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
