//! Promise 7, secrets do not leave: what a model makes of a conversation is redacted before it is kept.

use confidant_engine::model::ModelError;
use serde_json::json;

use crate::rig::processing::{plain, setting, with};
use crate::rig::*;

on_every_store! {
    promise_7_a_secret_is_not_in_the_title,
    promise_7_an_address_is_not_in_the_summary,
}

const ID: &str = "http:r:main:alice";

/// What is kept of a conversation as a whole, whoever finds it out.
async fn promise_7_a_secret_is_not_in_the_title(place: Place) {
    let s = setting(&place, |_| {}).await;
    let secret = "AKIAZ3MSJV4WXQPNLB7H";
    s.small.fails("prepare_turn", ModelError::Unreachable);
    let query = format!("My AWS key is {secret}");
    let by_rules = session(&s.engine, ID).turn(says(&query)).finish().await.unwrap();
    s.small.says("prepare_turn", with(json!({ "title": format!("Key {secret}"), "tags": ["aws", secret] })));
    let bob = "http:r:main:bob";
    let by_model = session(&s.engine, bob).turn(says(&query)).finish().await.unwrap();
    for (id, answer) in [(ID, by_rules), (bob, by_model)] {
        let found = serde_json::to_string(&answer.metadata.preparation).unwrap().to_uppercase();
        assert!(!found.contains(secret), "{found}");
        let about = session(&s.engine, id).about().await.unwrap().unwrap();
        assert!(about.title.unwrap().contains("REDACTED"));
    }
}

async fn promise_7_an_address_is_not_in_the_summary(place: Place) {
    let s = setting(&place, |parts| parts.settings.processing.enrich = true).await;
    s.small.says("prepare_turn", plain());
    let summary = "They greeted each other. Mail zoe.marker@example.org.";
    s.small.says("enrich_turn", json!({ "chat_summary": summary, "chat_tags": ["greeting"] }));
    let alice = session(&s.engine, ID);
    alice.turn(says("Hello")).finish().await.unwrap();
    s.engine.settle().await;
    let made = alice.about().await.unwrap().unwrap().enrichment.unwrap();
    assert!(made.chat_summary.unwrap().contains("<REDACTED:EMAIL>"));
    let export = serde_json::to_string(&alice.export().await.unwrap()).unwrap();
    assert!(!export.contains("zoe.marker"), "{export}");
}
