use std::cell::Cell;
use std::io::Read;

use super::*;
use crate::{Graph as _, Look, SqliteGraph};

const TAXES: &str = r#"
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dcterms: <http://purl.org/dc/terms/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix c: <urn:confidant:ns:> .
@prefix t: <https://example.org/taxes#> .

t:vat a skos:Concept ; skos:prefLabel "Value-Added Tax (VAT)"@en , "Mehrwertsteuer"@de , "Cáin Bhreisluacha"@ga ;
    skos:altLabel "VAT"@en ; skos:definition "general indirect tax on goods and services in Ireland."@en ;
    c:domain "TAX" ; c:kind "VAT" ; c:jurisdiction "IE" ; dcterms:source <https://www.revenue.ie/en/vat/> ;
    skos:broader t:indirect ; skos:changeNote "not taken" .
t:indirect a skos:Concept ; skos:prefLabel "Indirect tax"@en .
t:old a skos:Concept ; skos:prefLabel "Turnover Tax"@en ; dcterms:isReplacedBy t:vat .
t:gone a skos:Concept ; skos:prefLabel "Window Tax"@en ; owl:deprecated true .
t:leak a skos:Concept ; skos:prefLabel "Fine"@en ; skos:altLabel "ask jane.doe@example.org"@en .
"#;

fn taken(graph: &SqliteGraph, text: &str, form: Form) -> Imported {
    import(graph, form, text.as_bytes(), text.as_bytes(), &Defaults::default(), &|_, _| ()).unwrap()
}

#[tokio::test]
async fn a_vocabulary_is_read_and_the_guard_is_asked() {
    let graph = SqliteGraph::in_memory().unwrap();
    let done = taken(&graph, TAXES, Form::Turtle);
    assert_eq!((done.concepts, done.passed_over), (4, 1), "the withdrawn one is none");
    assert_eq!(
        done.refused.iter().map(|(k, v)| (k.as_str(), *v)).collect::<Vec<_>>(),
        [("personal-data:email in altLabels", 1)]
    );
    let ids =
        ["TAX:IE:VAT", "https://example.org/taxes#old", "https://example.org/taxes#gone"].map(str::to_owned);
    let found = graph.nodes(&ids, "de").await.unwrap();
    let vat = found[0].as_ref().unwrap();
    assert_eq!((vat.pref_label.as_str(), vat.jurisdiction.as_deref()), ("Mehrwertsteuer", Some("IE")));
    assert_eq!(vat.broader, ["https://example.org/taxes#indirect"]);
    assert_eq!(
        found[1].as_ref().map(|node| node.id.as_str()),
        Some("TAX:IE:VAT"),
        "the successor is followed"
    );
    assert_eq!(found[2], None, "what was withdrawn is gone");
    let narrower = graph.nodes(&["https://example.org/taxes#indirect".to_owned()], "en").await.unwrap();
    assert_eq!(narrower[0].as_ref().unwrap().narrower, ["TAX:IE:VAT"]);
    assert!(taken(&graph, TAXES, Form::Turtle).known);
}

#[tokio::test]
async fn what_is_exported_can_be_imported_again() {
    for form in [Form::Turtle, Form::RdfXml] {
        let graph = SqliteGraph::in_memory().unwrap();
        taken(&graph, TAXES, Form::Turtle);
        let mut first = Vec::new();
        let done = export(&graph, form, &mut first, &|_| ()).unwrap();
        assert_eq!(done.concepts, 5);
        let again = SqliteGraph::in_memory().unwrap();
        taken(&again, std::str::from_utf8(&first).unwrap(), form);
        assert_eq!(again.list(None, "en", 100).unwrap(), graph.list(None, "en", 100).unwrap());
        let mut second = Vec::new();
        assert_eq!(export(&again, form, &mut second, &|_| ()).unwrap(), done);
    }
}

/// Ends in the middle, as a process does.
struct Torn<'a>(&'a [u8], &'a Cell<usize>);

impl Read for Torn<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.1.get() == 0 {
            return Err(std::io::Error::other("torn"));
        }
        let read = self.0.read(buffer)?;
        self.1.set(self.1.get().saturating_sub(read));
        Ok(read)
    }
}

#[tokio::test]
async fn an_import_that_was_cut_off_is_taken_up() {
    let mut text = String::from("@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n");
    for n in 0..15_000 {
        text.push_str(&format!(
            "<https://example.org/c{n}> a skos:Concept ; skos:prefLabel \"Concept {n}\"@en .\n"
        ));
    }
    let graph = SqliteGraph::in_memory().unwrap();
    let defaults = Defaults { domain: Some("test".into()), jurisdiction: Some("EU".into()) };
    let left = Cell::new(text.len() * 9 / 10);
    let torn = Torn(text.as_bytes(), &left);
    import(&graph, Form::Turtle, torn, b"d", &defaults, &|_, _| ()).unwrap_err();
    let seen = Cell::new(0);
    let done = import(&graph, Form::Turtle, text.as_bytes(), b"d", &defaults, &|n, _| seen.set(n)).unwrap();
    assert_eq!(
        (done.resumed_at, done.statements, done.concepts, seen.get()),
        (20_000, 30_000, 15_000, 30_000)
    );
    assert_eq!(graph.count().await.unwrap(), 15_000);
    let found = graph.find(Look::Words("concept 14999"), "en", 3).await.unwrap();
    assert_eq!(found[0].id, "TEST:EU:CONCEPT_14999");
}

#[test]
fn what_is_no_rdf_is_said_to_be_none() {
    let graph = SqliteGraph::in_memory().unwrap();
    for (text, form) in [("<a> <b>", Form::Turtle), ("<rdf:RDF", Form::RdfXml), ("\u{0}", Form::Turtle)] {
        let error = import(&graph, form, text.as_bytes(), text.as_bytes(), &Defaults::default(), &|_, _| ());
        assert!(error.unwrap_err().to_string().contains("; hint: "));
    }
}

#[test]
fn ids_survive_their_iris() {
    for id in ["TAX:IE:VAT", "STEUER:DE:GRÖSSE", "a%b c/d", ""] {
        assert_eq!(decoded(&encoded(id)), id);
    }
    assert_eq!(decoded("%zz%4"), "%zz%4");
}

/// Pieces of which a vocabulary, or something like one, is made.
fn pieces() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let words = prop::sample::select(vec![
        "<urn:a>",
        "<urn:b>",
        "_:x",
        " a ",
        "skos:Concept",
        "skos:prefLabel",
        "skos:broader",
        "dcterms:isReplacedBy",
        "owl:deprecated",
        "true",
        "\"Tax\"@en",
        "\"\"\"long\nlabel\"\"\"",
        "\"a@b.org\"",
        " ; ",
        " , ",
        " .\n",
        "[",
        "]",
        "(",
        ")",
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n",
        "@base <urn:c> .\n",
        "\u{0}",
        "<rdf:RDF>",
        "&x;",
    ]);
    let piece = prop_oneof![8 => words.prop_map(str::to_owned), 1 => any::<String>()];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest::proptest! {
    /// Whatever is called a vocabulary: it is read or refused, twice the same way, and the graph still answers.
    #[test]
    fn anything_can_be_offered_as_a_vocabulary(text in pieces()) {
        let graph = SqliteGraph::in_memory().unwrap();
        for form in [Form::Turtle, Form::RdfXml] {
            let digest = format!("{form:?}");
            let take = || import(&graph, form, text.as_bytes(), digest.as_bytes(), &Defaults::default(), &|_, _| ());
            let first = take();
            let again = take();
            proptest::prop_assert_eq!(first.is_ok(), again.is_ok());
        }
        proptest::prop_assert!(graph.list(None, "en", 10).is_ok());
        let mut out = Vec::new();
        proptest::prop_assert!(export(&graph, Form::Turtle, &mut out, &|_| ()).is_ok());
    }
}
