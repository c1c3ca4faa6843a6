//! Promise 4: tampering has a name, and what does not verify is not returned.

use rusqlite::Connection;
use serde_json::json;

use crate::support::{Place, bug_report, of, query, request};

#[tokio::test]
async fn blobs_that_were_altered_swapped_or_lost_are_refused_by_name() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let a = own.store(&request("a", &bug_report())).await.unwrap();
    let b = own.store(&request("b", &json!({"summary": "Another session."}))).await.unwrap();
    let hex = |uri: &str| uri.trim_start_matches("cascade://").to_owned();
    let (a_hex, b_hex) = (hex(&a.cascade_uri), hex(&b.cascade_uri));
    let original = place.shelf.blobs.lock().unwrap().clone();

    for at in [0, 20, original[&a_hex].len() - 1] {
        let mut flipped = original[&a_hex].clone();
        flipped[at] ^= 1;
        place.shelf.blobs.lock().unwrap().insert(a_hex.clone(), flipped);
        assert_eq!(own.retrieve(&a.cascade_uri, None).await.unwrap_err().code(), "tampered");
    }
    place.shelf.blobs.lock().unwrap().insert(a_hex.clone(), original[&b_hex].clone());
    assert_eq!(own.retrieve(&a.cascade_uri, None).await.unwrap_err().code(), "tampered");
    place.shelf.blobs.lock().unwrap().insert(a_hex.clone(), b"{\"memory_card\":{}}".to_vec());
    assert_eq!(own.retrieve(&a.cascade_uri, None).await.unwrap_err().code(), "tampered");
    place.shelf.blobs.lock().unwrap().remove(&a_hex);
    assert_eq!(own.retrieve(&a.cascade_uri, None).await.unwrap_err().code(), "not_found");
    assert!(own.retrieve(&b.cascade_uri, None).await.is_ok());
}

#[tokio::test]
async fn rows_that_were_altered_swapped_relabelled_or_are_plain_are_refused() {
    let attacks = [
        "UPDATE memories SET title = 'plain'",
        "UPDATE memories SET title = (SELECT snippet FROM memories m WHERE m.id = memories.id)",
        "UPDATE memories SET title = (SELECT title FROM memories m WHERE m.id <> memories.id)",
        "UPDATE memories SET created_at = '2020-01-01T00:00:00Z'",
        "UPDATE memories SET artifact_type = 'raw_plus_artifact'",
        "UPDATE memories SET title = zeroblob(64)",
    ];
    for attack in attacks {
        let place = Place::new();
        let own = of(&place.open(), "alice");
        let a = own.store(&request("a", &bug_report())).await.unwrap();
        own.store(&request("b", &json!({"summary": "JWT again, elsewhere."}))).await.unwrap();
        let db = Connection::open(place.folder.path().join("memory/memory.db")).unwrap();
        db.execute_batch(attack).unwrap();
        let refused = own.retrieve(&a.cascade_uri, None).await.unwrap_err();
        assert_eq!(refused.code(), "tampered", "{attack}");
        // A search shows nothing that does not open.
        let found = own.query(&query("JWT")).await;
        assert!(found.map_or(true, |found| found.hits.is_empty()), "{attack}");
    }
}

#[tokio::test]
async fn another_owners_row_or_key_opens_nothing() {
    let place = Place::new();
    let memory = place.open();
    let (alice, bob) = (of(&memory, "alice"), of(&memory, "bob"));
    let hers = alice.store(&request("a", &bug_report())).await.unwrap();
    bob.store(&request("b", &json!({"summary": "Something of his."}))).await.unwrap();
    let db = Connection::open(place.folder.path().join("memory/memory.db")).unwrap();
    let bobs = "SELECT owner FROM memories ORDER BY id DESC LIMIT 1";
    db.execute_batch(&format!("UPDATE memories SET owner = ({bobs}) WHERE id = 1")).unwrap();
    assert_eq!(bob.retrieve(&hers.cascade_uri, None).await.unwrap_err().code(), "not_found");
    // With the key row moved as well, the seal still says whose it is.
    let keys = Connection::open(place.folder.path().join("keys/memory-keys.db")).unwrap();
    let artifact: Vec<u8> =
        db.query_row("SELECT artifact FROM memories WHERE id = 1", [], |row| row.get(0)).unwrap();
    keys.execute(
        "UPDATE artifacts SET owner = (SELECT owner FROM artifacts WHERE id <> ?1) WHERE id = ?1",
        [artifact],
    )
    .unwrap();
    assert_eq!(bob.retrieve(&hers.cascade_uri, None).await.unwrap_err().code(), "tampered");
}

#[tokio::test]
async fn a_keyring_under_another_master_key_opens_nothing_and_says_so() {
    let place = Place::new();
    of(&place.open(), "alice").store(&request("a", &bug_report())).await.unwrap();
    *place.safe.0.lock().unwrap() = vec![[9; 32]];
    let error = of(&place.open(), "alice").query(&query("JWT")).await.unwrap_err();
    assert_eq!(error.code(), "unavailable");
    assert!(error.to_string().contains("another master key"), "{error}");
}
