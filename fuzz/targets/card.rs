//! Cards keep their bounds whatever the session and whatever a model answers; what a model says that the session does not
//! is left out, and a card that is read as an answer is the same card again.

#![no_main]

use std::sync::LazyLock;

use confidant_memory::card::{LONGEST, MOST_BYTES, prompt};
use confidant_memory::{Card, Gate, Redacted};
use confidant_redact::{Fence, Options};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

static GATE: LazyLock<Gate> =
    LazyLock::new(|| Gate::new(Options::default()).expect("no words, so not too many"));

const CANARY: &str = "zq7canary7qz";
const MARK: &str = "session";

// A session, as JSON or as its summary, a line of dashes, and the answer.
fuzz_target!(|input: &[u8]| {
    let input = String::from_utf8_lossy(input);
    let (session, answer) = input.split_once("\n---\n").unwrap_or((&input, &input));
    let session: Value = serde_json::from_str(session)
        .ok()
        .filter(Value::is_object)
        .unwrap_or_else(|| json!({ "summary": session }));
    let session = GATE.pass(&session).redacted;

    let derived = Card::derive(&session);
    bounded(&derived);
    assert_eq!(Card::derive(&session), derived);
    fenced(&session, answer.len());

    let Some(card) = Card::from_model(answer, &session) else { return };
    bounded(&card);
    let said = serde_json::to_string(&card).expect("a card is JSON");
    assert!(!said.contains("<<<") && !said.contains(">>>"), "{said}");
    assert_eq!(Card::from_model(&said, &session).as_ref(), Some(&card), "{said}");

    // The same answer in words that nobody has said.
    if let Ok(mut invented) = serde_json::from_str::<Value>(answer) {
        replace(&mut invented);
        assert_eq!(Card::from_model(&invented.to_string(), &session), None);
    }
});

fn bounded(card: &Card) {
    let json = serde_json::to_vec(card).expect("a card is JSON");
    assert!(json.len() <= MOST_BYTES, "{} bytes", json.len());
    assert_eq!(serde_json::from_slice::<Card>(&json).ok().as_ref(), Some(card));
    let Card { title, summary_bullets, decisions, todos, entities, keywords, notable_quotes } = card;
    let lists = [
        (summary_bullets, 7),
        (decisions, 5),
        (todos, 7),
        (entities, 15),
        (keywords, 20),
        (notable_quotes, 5),
    ];
    for (list, most) in lists {
        assert!(list.len() <= most, "{list:?}");
    }
    let items = lists.into_iter().flat_map(|(list, _)| list).inspect(|item| assert!(!item.is_empty()));
    for text in items.chain([title]) {
        assert!(text.chars().count() <= LONGEST, "{text:?}");
        assert!(!text.chars().any(char::is_control) && text.trim() == text, "{text:?}");
    }
}

/// The session stands in the fence and cannot end it, and takes no more room than it may.
fn fenced(session: &Redacted, budget: usize) {
    let fence = Fence::new(*b"whatever");
    let (_, asked) = prompt(session, budget, &fence);
    assert_eq!(asked.matches(&fence.open(MARK)).count(), 1);
    assert_eq!(asked.matches(&fence.close(MARK)).count(), 1);
    assert!(asked.chars().count() <= prompt(session, 0, &fence).1.chars().count() + budget);
}

fn replace(value: &mut Value) {
    match value {
        Value::String(text) => CANARY.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(replace),
        Value::Object(fields) => fields.values_mut().for_each(replace),
        _ => {}
    }
}
