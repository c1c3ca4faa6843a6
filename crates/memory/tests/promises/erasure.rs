//! Promise 6: forgotten is gone, and so is what rotation retires.

use confidant_memory::api::Forget;
use serde_json::json;

use crate::support::{Place, Weather, bug_report, copy, held, of, owner, query, request};

#[tokio::test]
async fn promise_6_a_forgotten_memory_is_gone_from_rows_index_keys_and_blobs() {
    let place = Place::new();
    let memory = place.open();
    let own = of(&memory, "alice");
    let doomed = own.store(&request("a", &bug_report())).await.unwrap();
    let kept = own.store(&request("b", &json!({"summary": "JWT, but another one."}))).await.unwrap();
    let backup = tempfile::tempdir().unwrap();
    copy(&place.folder.path().join("memory"), &backup.path().join("memory"));
    let blobs = place.shelf.blobs.lock().unwrap().clone();

    let dry = own.forget(&Forget::Session("a".to_owned()), true).await.unwrap();
    assert_eq!((dry.forgotten, dry.dry_run), (1, true));
    assert!(own.retrieve(&doomed.cascade_uri, None).await.is_ok());

    let gone = own.forget(&Forget::Uri(doomed.cascade_uri.clone()), false).await.unwrap();
    assert_eq!((gone.forgotten, gone.pending, gone.permanent), (1, 0, 0));
    assert_eq!(own.retrieve(&doomed.cascade_uri, None).await.unwrap_err().code(), "not_found");
    let hits = own.query(&query("JWT")).await.unwrap().hits;
    assert_eq!(hits.iter().map(|hit| &hit.cascade_uri).collect::<Vec<_>>(), [&kept.cascade_uri]);
    assert_eq!(place.shelf.len(), 1);

    // Yesterday's copy of the data with today's keys opens nothing of it.
    *place.shelf.blobs.lock().unwrap() = blobs;
    drop((own, memory));
    copy(&place.folder.path().join("keys"), &backup.path().join("keys"));
    let restored = of(&place.open_in(backup.path()), "alice");
    assert_eq!(restored.retrieve(&doomed.cascade_uri, None).await.unwrap_err().code(), "not_found");
    assert!(restored.retrieve(&kept.cascade_uri, None).await.is_ok());
    let hits = restored.query(&query("JWT")).await.unwrap().hits;
    assert!(hits.iter().all(|hit| hit.cascade_uri == kept.cascade_uri), "{hits:?}");
}

#[tokio::test]
async fn promise_6_an_erased_person_is_gone_everywhere_and_others_are_not() {
    let place = Place::new();
    let memory = place.open();
    let (alice, bob) = (of(&memory, "alice"), of(&memory, "bob"));
    for at in 0..5 {
        alice.store(&request(&format!("a{at}"), &bug_report())).await.unwrap();
    }
    let his = bob.store(&request("b", &bug_report())).await.unwrap();
    let backup = tempfile::tempdir().unwrap();
    copy(&place.folder.path().join("memory"), &backup.path().join("memory"));

    let erased = memory.erase(&owner("alice")).await.unwrap();
    assert_eq!(erased.memories, 5);
    assert!(alice.export().await.unwrap().is_empty());
    assert!(alice.query(&query("JWT")).await.unwrap().hits.is_empty());
    assert_eq!(place.shelf.len(), 1);
    assert!(bob.retrieve(&his.cascade_uri, None).await.is_ok());
    drop((alice, bob, memory));
    copy(&place.folder.path().join("keys"), &backup.path().join("keys"));
    let restored = place.open_in(backup.path());
    assert!(of(&restored, "alice").query(&query("JWT")).await.unwrap().hits.is_empty());
    assert_eq!(of(&restored, "bob").query(&query("JWT")).await.unwrap().hits.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_removed_now_is_removed_later_and_opens_no_more_meanwhile() {
    let place = Place::new();
    let memory = place.open();
    let own = of(&memory, "alice");
    let stored = own.store(&request("a", &bug_report())).await.unwrap();
    place.shelf.set(Weather::Down);
    let gone = own.forget(&Forget::Uri(stored.cascade_uri.clone()), false).await.unwrap();
    assert_eq!((gone.forgotten, gone.pending), (1, 1));
    place.shelf.set(Weather::Fine);
    assert_eq!(own.retrieve(&stored.cascade_uri, None).await.unwrap_err().code(), "not_found");
    assert_eq!(place.shelf.len(), 1);
    assert_eq!(memory.recover().await.unwrap().removed, 1);
    assert_eq!(place.shelf.len(), 0);
}

#[tokio::test]
async fn after_a_rotation_the_old_root_is_not_needed_and_opens_nothing() {
    let place = Place::new();
    let memory = place.open();
    let stored = of(&memory, "alice").store(&request("a", &bug_report())).await.unwrap();
    *place.safe.0.lock().unwrap() = vec![[8; 32], [7; 32]];
    let rotated = memory.rotate(|_, _| {}).await.unwrap();
    assert_eq!(rotated, 2, "the names key and one owner");
    assert_eq!(memory.key_state().await.unwrap().under_others, 0);
    *place.safe.0.lock().unwrap() = vec![[8; 32]];
    assert!(of(&place.open(), "alice").retrieve(&stored.cascade_uri, None).await.is_ok());
    // A process that opened before the rotation goes on.
    assert!(of(&memory, "alice").retrieve(&stored.cascade_uri, None).await.is_ok());
    *place.safe.0.lock().unwrap() = vec![[7; 32]];
    assert!(of(&place.open(), "alice").retrieve(&stored.cascade_uri, None).await.is_err());
}

#[tokio::test]
async fn what_is_forgotten_or_erased_during_its_upload_is_not_there_afterwards() {
    for erased in [false, true] {
        let place = Place::new();
        let memory = place.open();
        let own = of(&memory, "alice");
        // Somebody who has nothing yet has no key either.
        own.store(&request("b", &json!({"summary": "Another session."}))).await.unwrap();
        let storing = held(&place, &own, &request("a", &bug_report())).await;
        if erased {
            memory.erase(&owner("alice")).await.unwrap();
        } else {
            own.forget(&Forget::Session("a".to_owned()), false).await.unwrap();
        }
        place.shelf.let_in();
        let error = storing.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("forgotten while it was being stored"), "{error}");
        let left = if erased { 0 } else { 1 };
        assert_eq!((place.shelf.len(), own.count().await.unwrap()), (left, left as u64));
        assert_eq!((place.outbox("put"), place.outbox("remove")), (0, 0));
        let keys = rusqlite::Connection::open(place.folder.path().join("keys/memory-keys.db")).unwrap();
        let kept: usize = keys.query_row("SELECT count(*) FROM artifacts", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, left);
    }
}

#[tokio::test]
async fn forgetting_a_memory_forgets_the_earlier_ones_that_it_stands_in_for() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let mut uris = Vec::new();
    for at in 0..3 {
        let session = json!({"summary": format!("JWT validation, attempt {at}.")});
        uris.push(own.store(&request("a", &session)).await.unwrap().cascade_uri);
    }
    own.store(&request("b", &bug_report())).await.unwrap();
    // One that is not the latest goes alone.
    let gone = own.forget(&Forget::Uri(uris[0].clone()), false).await.unwrap();
    assert_eq!((gone.forgotten, own.count().await.unwrap()), (1, 3));
    let dry = own.forget(&Forget::Uri(uris[2].clone()), true).await.unwrap();
    let gone = own.forget(&Forget::Uri(uris[2].clone()), false).await.unwrap();
    assert_eq!((&gone.cascade_uris, gone.forgotten), (&dry.cascade_uris, 2));
    assert_eq!((own.count().await.unwrap(), place.shelf.len()), (1, 1));
    for uri in &uris {
        assert_eq!(own.retrieve(uri, None).await.unwrap_err().code(), "not_found");
    }
}
