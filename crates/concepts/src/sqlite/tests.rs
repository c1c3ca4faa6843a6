use super::*;
use crate::concept::Concept;
use crate::guard::Guard;

async fn approved(graph: &dyn Graph, concept: Concept) -> String {
    graph.approve(Guard::new().clear(concept).unwrap()).await.unwrap()
}

fn vat() -> Concept {
    let mut vat = Concept::new("tax", "IE", "VAT", "Value-Added Tax (VAT)");
    vat.definition = Some("general indirect tax on goods and services in Ireland.".to_owned());
    vat.alt_labels = vec!["VAT".to_owned()];
    vat
}

#[tokio::test]
async fn nodes_come_in_the_order_asked_for_with_gaps() {
    let graph = SqliteGraph::in_memory().unwrap();
    approved(&graph, vat()).await;
    approved(&graph, Concept::new("tax", "IE", "VRT", "Vehicle Registration Tax (VRT)")).await;
    let ids = ["TAX:IE:VRT", "' OR 1=1 --", "TAX:IE:VAT", "TAX:IE:VRT"].map(str::to_owned);
    let found = graph.nodes(&ids, "en").await.unwrap();
    let labels: Vec<_> =
        found.iter().map(|node| node.as_ref().map(|node| node.pref_label.as_str())).collect();
    let vrt = Some("Vehicle Registration Tax (VRT)");
    assert_eq!(labels, [vrt, None, Some("Value-Added Tax (VAT)"), vrt]);
    assert_eq!(graph.nodes(&[], "en").await.unwrap(), []);
}

#[tokio::test]
async fn what_is_looked_for_is_never_syntax() {
    let graph = SqliteGraph::in_memory().unwrap();
    approved(&graph, vat()).await;
    approved(&graph, Concept::new("it", "", "cpp", "C++ (language)")).await;
    for words in ["\"", "a OR", "NEAR(", "-", "*", "plain:x", "C++ AND (", "'; DROP TABLE concepts; --", ""] {
        graph.find(Look::Words(words), "en", 5).await.unwrap();
    }
    let first = async |look| graph.find(look, "en", 5).await.unwrap().first().map(|node| node.id.clone());
    assert_eq!(first(Look::Words("value tax")).await.as_deref(), Some("TAX:IE:VAT"));
    assert_eq!(first(Look::Words("val")).await.as_deref(), Some("TAX:IE:VAT"));
    assert_eq!(
        first(Look::Label { label: "vat", jurisdiction: Some("IE") }).await.as_deref(),
        Some("TAX:IE:VAT")
    );
    assert_eq!(first(Look::Label { label: "vat", jurisdiction: Some("DE") }).await, None);
    let parts = Look::Parts { domain: "TAX", jurisdiction: "IE", kind: "VAT" };
    assert_eq!(first(parts).await.as_deref(), Some("TAX:IE:VAT"));
}

#[tokio::test]
async fn an_approval_replaces_what_was_said_before() {
    let folder = tempfile::tempdir().unwrap();
    let graph = SqliteGraph::open(&folder.path().join("concepts.db")).unwrap();
    approved(&graph, vat()).await;
    approved(&graph, Concept { pref_label: "VAT in Ireland".into(), alt_labels: vec![], ..vat() }).await;
    let again = SqliteGraph::open(&folder.path().join("concepts.db")).unwrap();
    assert_eq!(again.count().await.unwrap(), 1);
    let found = again.find(Look::Words("ireland"), "en", 5).await.unwrap();
    assert_eq!((found.len(), found[0].alt_labels.len()), (1, 0));
    assert_eq!(again.find(Look::Label { label: "VAT", jurisdiction: None }, "en", 5).await.unwrap(), []);
}

#[test]
fn a_file_of_a_newer_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("concepts.db");
    drop(SqliteGraph::open(&path).unwrap());
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 2).unwrap();
    drop(newer);
    let before = std::fs::read(&path).unwrap();
    let refused = SqliteGraph::open(&path).unwrap_err();
    assert_eq!(refused, GraphError::Newer);
    let said = "concepts.db was written by a newer version of Confidant; hint: upgrade this program";
    assert_eq!(refused.to_string(), said);
    assert!(std::fs::read(&path).unwrap() == before, "it was changed");
}
