//! Whatever a model calls `capture_concepts` with: few concepts come out, each with the id that is computed here, and nothing
//! in them is the person's, somebody's id, hidden, or more than one line.

#![no_main]

use std::sync::LazyLock;

use confidant_concepts::{Concept, Guard};
use confidant_engine::{fuzzing::captured, fuzzing::is_hidden};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

static GUARD: LazyLock<Guard> = LazyLock::new(Guard::new);

const SOMEONES: [&str; 3] = ["alice", "acme", "conversation-17"];
/// As many words of the person's in a row as no text may have.
const QUOTED: usize = 6;

// What the person said, a zero byte, and the arguments of the turn's calls, parted by more of them.
fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let mut parts = text.split('\0');
    let query = parts.next().unwrap_or_default();
    let calls: Vec<Value> = parts.filter_map(|json| serde_json::from_str(json).ok()).collect();
    let (concepts, refused) = captured(&GUARD, query, &SOMEONES, &calls);
    assert!(concepts.len() <= 5);
    for (concept, _) in &concepts {
        let Concept { id, domain, jurisdiction, kind, pref_label, .. } = concept;
        assert_eq!(*id, Concept::new(domain, jurisdiction, kind, pref_label).id);
        assert!(GUARD.clear(concept.clone()).is_ok(), "{id}");
        assert!(!pref_label.is_empty());
        let leaves = concept.alt_labels.iter().chain(&concept.definition).chain(&concept.source_urls);
        for leaf in leaves.chain([pref_label, domain, kind]) {
            assert!(!leaf.chars().any(|c| c.is_control() || is_hidden(c)), "{leaf:?}");
            let words = leaf.split_whitespace().collect::<Vec<_>>();
            let plain = query.split_whitespace().collect::<Vec<_>>();
            let is_plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
            let quotes = words
                .windows(QUOTED)
                .any(|words| words.iter().all(is_plain) && plain.windows(QUOTED).any(|said| said == words));
            assert!(!quotes, "{leaf:?}");
        }
    }
    // A reason is a name, never what was said.
    for reason in refused.keys() {
        assert!(
            reason.len() <= 80 && reason.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '),
            "{reason:?}"
        );
    }
});
