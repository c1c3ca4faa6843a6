//! Promise 1 and 2: nobody else's memories, and nothing readable at rest.

use confidant_memory::api::Forget;
use serde_json::json;

use crate::support::{Place, of, query, request};

#[tokio::test]
async fn promise_1_an_owner_finds_retrieves_and_forgets_only_their_own() {
    let place = Place::new();
    let memory = place.open();
    let (alice, bob) = (of(&memory, "alice"), of(&memory, "bob"));
    let wish =
        |marker: &str| request("demo-001", &json!({"summary": format!("Deployed {marker} to staging.")}));
    let hers = alice.store(&wish("marlinspike")).await.unwrap();
    let his = bob.store(&wish("halyard")).await.unwrap();
    assert_ne!(hers.cascade_uri, his.cascade_uri);
    for (own, finds, not) in [(&alice, "marlinspike", "halyard"), (&bob, "halyard", "marlinspike")] {
        assert_eq!(own.query(&query(finds)).await.unwrap().hits.len(), 1);
        let said = serde_json::to_string(&own.query(&query(not)).await.unwrap()).unwrap();
        assert!(!said.contains(not), "{said}");
        let all = serde_json::to_string(&own.list(&query("")).await.unwrap()).unwrap();
        assert!(all.contains(finds) && !all.contains(not), "{all}");
        assert!(!serde_json::to_string(&own.export().await.unwrap()).unwrap().contains(not));
    }
    assert_eq!(bob.retrieve(&hers.cascade_uri, None).await.unwrap_err().code(), "not_found");
    let forget = Forget::Uri(hers.cascade_uri.clone());
    assert_eq!(bob.forget(&forget, false).await.unwrap_err().code(), "not_found");
    assert!(alice.retrieve(&hers.cascade_uri, None).await.is_ok());
}

#[tokio::test]
async fn promise_2_nothing_readable_is_at_rest() {
    let place = Place::new();
    let memory = place.open();
    let own = of(&memory, "alice-quibbleworth");
    let mut words = Vec::new();
    for at in 0..300 {
        let marker = format!("zanzibarite{at}");
        let session = json!({
            "tool_name": format!("tool{marker}"),
            "summary": format!("Moved {marker} to the new cluster. Decided to keep {marker}."),
            "messages": [{"role": "user", "content": format!("What about {marker}?")}],
        });
        let mut wish = request(&format!("session-{marker}"), &session);
        wish.tags = vec![format!("tag{marker}")];
        own.store(&wish).await.unwrap();
        words.push(marker);
    }
    assert!(own.query(&query("zanzibarite7")).await.unwrap().hits[0].title.contains("zanzibarite7"));
    for word in ["zanzibarite", "quibbleworth", "cluster"] {
        assert!(!place.holds(word), "{word} is readable at rest");
    }
    drop(memory);
    assert!(!place.holds("zanzibarite"));
}
