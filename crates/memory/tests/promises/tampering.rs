//! Promise 4: tampering has a name, and what does not verify is not returned.

use std::collections::BTreeSet;

use confidant_memory::api::Forget;
use confidant_memory::{Damage, Depth};
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
async fn rows_that_were_altered_swapped_relabelled_or_are_plain_are_refused_and_others_are_not() {
    let attacks = [
        "UPDATE memories SET title = 'plain' WHERE id = 1",
        "UPDATE memories SET title = snippet WHERE id = 1",
        "UPDATE memories SET title = (SELECT title FROM memories WHERE id = 2) WHERE id = 1",
        "UPDATE memories SET title = zeroblob(64) WHERE id = 1",
        "UPDATE memories SET created_at = '2020-01-01T00:00:00Z' WHERE id = 1",
        "UPDATE memories SET created_at = x'00' WHERE id = 1",
        "UPDATE memories SET artifact_type = 'raw_plus_artifact' WHERE id = 1",
        "UPDATE memories SET artifact_type = 'nonsense' WHERE id = 1",
        "UPDATE memories SET artifact_type = x'00' WHERE id = 1",
        "UPDATE memories SET artifact = x'00' WHERE id = 1",
    ];
    for attack in attacks {
        let place = Place::new();
        let memory = place.open();
        let own = of(&memory, "alice");
        let a = own.store(&request("a", &bug_report())).await.unwrap();
        let b = own.store(&request("b", &json!({"summary": "JWT again, elsewhere."}))).await.unwrap();
        assert_eq!(own.query(&query("JWT")).await.unwrap().hits.len(), 2);
        let db = Connection::open(place.folder.path().join("memory/memory.db")).unwrap();
        db.execute_batch(attack).unwrap();
        let refused = own.retrieve(&a.cascade_uri, None).await.unwrap_err();
        assert_eq!(refused.code(), "tampered", "{attack}");
        // The one that does not open is counted and not shown; whoever comes later does not even meet it.
        for (own, unreadable) in [(&own, 1), (&of(&place.open(), "alice"), 0)] {
            for found in [own.query(&query("JWT")).await.unwrap(), own.list(&query("")).await.unwrap()] {
                let uris: Vec<_> = found.hits.iter().map(|hit| &hit.cascade_uri).collect();
                assert_eq!((uris, found.unreadable), (vec![&b.cascade_uri], unreadable), "{attack}");
            }
        }
        let exported = own.export().await.unwrap();
        assert_eq!(exported.len(), 2, "{attack}");
        assert_eq!((&exported[0]["unreadable"], exported[0].get("memory_card")), (&json!("tampered"), None));
        assert_eq!(exported[1].get("unreadable"), None, "{attack}");
        let checked = memory.verify().await.unwrap();
        assert_eq!((checked.memories, checked.refused), (1, vec![a.cascade_uri.clone()]), "{attack}");
        // The hint can be followed.
        assert_eq!(own.forget(&Forget::Uri(a.cascade_uri), false).await.unwrap().forgotten, 1, "{attack}");
        assert_eq!(memory.verify().await.unwrap().refused, Vec::<String>::new(), "{attack}");
    }
}

#[tokio::test]
async fn a_sample_always_has_the_newest_artifact_and_sooner_or_later_every_other() {
    let place = Place::new();
    let memory = place.open();
    let mut uris = Vec::new();
    for (owner, name) in [("alice", "a"), ("bob", "b"), ("alice", "c"), ("bob", "d")] {
        let session = json!({"summary": format!("Investigated the JWT of service {name}.")});
        let stored = of(&memory, owner).store(&request(name, &session)).await.unwrap();
        uris.push(stored.cascade_uri);
    }
    let sound = memory.verify_telling(Depth::Sample(2), &|_, total| assert_eq!(total, 2)).await.unwrap();
    assert!(sound.is_sound(), "{sound:?}");
    assert_eq!((sound.memories, sound.artifacts, sound.left_out), (4, 2, 2));
    let all = memory.verify_telling(Depth::Sample(4), &|_, _| {}).await.unwrap();
    assert_eq!((all.artifacts, all.left_out), (4, 0));

    place.shelf.blobs.lock().unwrap().clear();
    let mut met = BTreeSet::new();
    for _ in 0..100 {
        let checked = memory.verify_telling(Depth::Sample(2), &|_, _| {}).await.unwrap();
        assert_eq!((checked.lost.len(), checked.artifacts), (2, 0));
        assert!(checked.lost.iter().all(|one| one.damage == Damage::Missing), "{checked:?}");
        assert!(checked.lost.iter().any(|one| one.cascade_uri == uris[3]), "{checked:?}");
        met.extend(checked.lost.into_iter().map(|one| one.cascade_uri));
    }
    assert_eq!(met, uris.into_iter().collect());
    assert_eq!(memory.verify().await.unwrap().lost.len(), 4);
}

#[tokio::test]
async fn a_damaged_key_fails_its_own_memory_only() {
    let place = Place::new();
    let memory = place.open();
    let own = of(&memory, "alice");
    let a = own.store(&request("a", &bug_report())).await.unwrap();
    own.store(&request("b", &json!({"summary": "JWT again, elsewhere."}))).await.unwrap();
    let keys = Connection::open(place.folder.path().join("keys/memory-keys.db")).unwrap();
    let db = Connection::open(place.folder.path().join("memory/memory.db")).unwrap();
    let artifact = "SELECT artifact FROM memories WHERE id = 1";
    let artifact: Vec<u8> = db.query_row(artifact, [], |row| row.get(0)).unwrap();
    keys.execute("UPDATE artifacts SET sealed_key = zeroblob(64) WHERE id = ?1", [artifact]).unwrap();
    assert_eq!(own.retrieve(&a.cascade_uri, None).await.unwrap_err().code(), "tampered");
    assert_eq!(own.query(&query("JWT")).await.unwrap().hits.len(), 1);
    assert_eq!(own.export().await.unwrap().len(), 2);
    assert_eq!(memory.verify().await.unwrap().refused, [a.cascade_uri]);
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
    assert!(error.to_string().contains("a master key that is not configured"), "{error}");
}

/// A memory that the version before wrote: Alice has one session in two forms and forgot another, Bob has one.
#[tokio::test]
async fn a_memory_of_the_version_before_opens_and_is_numbered_once() {
    let before: serde_json::Value = serde_json::from_str(include_str!("before.json")).unwrap();
    let place = Place::new();
    let root =
        confidant_seal::MasterKey::from_hex_or_base64(&"07".repeat(32)).unwrap().root().derive("memory");
    *place.safe.0.lock().unwrap() = vec![*root.dangerously_expose_bytes()];
    for file in ["memory/memory.db", "keys/memory-keys.db"] {
        let path = place.folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        Connection::open(path).unwrap().execute_batch(before[file].as_str().unwrap()).unwrap();
    }
    for (name, hex) in before["blobs"].as_object().unwrap() {
        let hex = hex.as_str().unwrap();
        let bytes = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap());
        place.shelf.blobs.lock().unwrap().insert(name.clone(), bytes.collect());
    }
    let own = |memory: &confidant_memory::Memory, user: &str| {
        let (tenant, user) =
            (confidant_seal::TenantId::new("default").unwrap(), confidant_seal::UserId::new(user).unwrap());
        memory.of(confidant_memory::Owner { tenant, user }, "test")
    };
    for _ in 0..2 {
        let memory = place.open();
        let checked = memory.verify().await.unwrap();
        assert!(checked.is_sound(), "{checked:?}");
        assert_eq!((checked.memories, checked.artifacts), (3, 3));
        assert_eq!(own(&memory, "alice").export().await.unwrap().len(), 2);
        assert_eq!(own(&memory, "alice").query(&query("quince")).await.unwrap().hits.len(), 1);
        assert_eq!(own(&memory, "bob").query(&query("medlar")).await.unwrap().hits.len(), 1);
    }
    // What it forgot stays forgotten.
    let memory = place.open();
    let file = place.folder.path().join("again.json");
    std::fs::write(
        &file,
        json!({"two": {"session_id": "two", "summary": "Planted quince again."}}).to_string(),
    )
    .unwrap();
    let wish = confidant_memory::api::ImportRequest {
        roots: vec![confidant_memory::import::Root::of(confidant_memory::import::Agent::Fixture, &file)],
        tags: vec![],
        mode: None,
        dry_run: false,
        again: false,
        tell_all: true,
        only: None,
    };
    let report = own(&memory, "alice").import(&wish, |_| std::ops::ControlFlow::Continue(())).await.unwrap();
    assert_eq!((report.forgotten, report.stored), (1, 0));
    // A key of that time that is put back now has no number.
    own(&memory, "bob").forget(&Forget::Session("one".to_owned()), false).await.unwrap();
    drop(memory);
    let old = Connection::open_in_memory().unwrap();
    old.execute_batch(before["keys/memory-keys.db"].as_str().unwrap()).unwrap();
    let keys = Connection::open(place.folder.path().join("keys/memory-keys.db")).unwrap();
    let mut rows = old.prepare("SELECT id, owner, sealed_key FROM artifacts").unwrap();
    let mut rows = rows.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let values: [Vec<u8>; 3] = std::array::from_fn(|at| row.get(at).unwrap());
        keys.execute("INSERT OR IGNORE INTO artifacts (id, owner, sealed_key) VALUES (?1, ?2, ?3)", values)
            .unwrap();
    }
    let checked = place.open().verify().await.unwrap();
    assert!(!checked.is_sound() && checked.memories == 2, "{checked:?}");
    assert!(own(&place.open(), "bob").export().await.unwrap().is_empty());
}

#[test]
fn files_of_a_newer_version_are_refused_and_left_alone() {
    for file in ["memory/memory.db", "keys/memory-keys.db"] {
        let place = Place::new();
        drop(place.open());
        let path = place.folder.path().join(file);
        let newer = Connection::open(&path).unwrap();
        let version: i64 = newer.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        newer.pragma_update(None, "user_version", version + 1).unwrap();
        drop(newer);
        let before = std::fs::read(&path).unwrap();
        let refused = place.try_open().unwrap_err().to_string();
        assert!(refused.contains("was written by a newer version of Confidant"), "{file}: {refused}");
        assert!(std::fs::read(&path).unwrap() == before, "{file} was changed");
    }
}
