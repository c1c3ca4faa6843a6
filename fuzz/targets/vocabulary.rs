//! Whatever a file says that it is a vocabulary: it is read or refused, what enters the graph has passed the guard, and what
//! is written of it can be read again.

#![no_main]

use std::sync::LazyLock;

use confidant_concepts::skos::{Defaults, Form, export, import};
use confidant_concepts::{Guard, SqliteGraph};
use libfuzzer_sys::fuzz_target;

static GUARD: LazyLock<Guard> = LazyLock::new(Guard::new);

// The first byte says how the rest is written.
fuzz_target!(|input: &[u8]| {
    let Some((form, file)) = input.split_first() else { return };
    let form = if form % 2 == 0 { Form::Turtle } else { Form::RdfXml };
    let defaults = Defaults { domain: Some("LAW".to_owned()), jurisdiction: Some("EU".to_owned()) };
    let Some(graph) = read(form, file, &defaults) else { return };
    let page = graph.list(None, "en", 100).expect("a graph in memory can be listed");
    for node in &page.concepts {
        for text in node.alt_labels.iter().chain(&node.definition).chain([&node.pref_label]) {
            assert!(GUARD.leaf(text, "prefLabel").is_none() || *text == node.id, "{}", node.id);
        }
    }
    for form in [Form::Turtle, Form::RdfXml] {
        let mut written = Vec::new();
        let done = export(&graph, form, &mut written, &|_| {}).expect("a vector takes everything");
        let again = read(form, &written, &Defaults::default()).expect("what was written can be read");
        let mut twice = Vec::new();
        assert_eq!(export(&again, form, &mut twice, &|_| {}).expect("here, too"), done);
    }
});

fn read(form: Form, file: &[u8], defaults: &Defaults) -> Option<SqliteGraph> {
    let graph = SqliteGraph::in_memory().expect("there is memory");
    import(&graph, form, file, b"digest", defaults, &|_, _| {}).ok().map(|_| graph)
}
