//! What is stored is what was shown, once, and comes back as it was.

use confidant_memory::Error;
use confidant_memory::api::{ArtifactType, Forget, Raw};
use confidant_memory::blobs::Pointer;
use serde_json::json;

use crate::support::{Place, Weather, bug_report, held, of, query, request};

#[tokio::test]
async fn a_session_is_stored_found_and_retrieved() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let stored = own.store(&request("demo-001", &bug_report())).await.unwrap();
    assert_eq!((stored.session_id.as_str(), stored.artifact_type), ("demo-001", ArtifactType::ArtifactOnly));
    assert!(stored.ok && stored.indexed && !stored.already_stored && stored.supersedes.is_none());
    assert_eq!(stored.crypto.enc, "AES-256-GCM");

    let found = own.query(&query("jwt validation rollback")).await.unwrap();
    let [hit] = found.hits.as_slice() else { panic!("{found:?}") };
    assert_eq!((hit.cass_session_id.as_str(), &hit.cascade_uri), ("demo-001", &stored.cascade_uri));
    assert_eq!(hit.tags, ["production", "bug-fix"]);
    assert_eq!(hit.created_at, "2025-12-21T12:00:00Z");
    assert!(hit.score > 0.0 && hit.score < 1.0, "{}", hit.score);
    assert_eq!(hit.title, stored.memory_card.title);

    let retrieved = own.retrieve(&stored.cascade_uri, Some("mock")).await.unwrap();
    assert!(retrieved.crypto.verified);
    assert_eq!(retrieved.artifact["session_id"], "demo-001");
    assert_eq!(retrieved.artifact["timestamp"], "2025-12-21T12:00:00Z");
    assert_eq!(retrieved.artifact["memory_card"], serde_json::to_value(&stored.memory_card).unwrap());
    assert_eq!(retrieved.artifact.get("raw_session"), None);
}

#[tokio::test]
async fn a_dry_run_shows_the_bytes_that_are_then_stored_and_writes_nothing() {
    let place = Place::new();
    let memory = place.open();
    let own = of(&memory, "alice");
    let mut wish = request("demo-001", &bug_report());
    wish.raw = Raw::Acknowledged;
    let before = place.bytes();
    let dry = own.preview(&wish).await.unwrap();
    assert!(dry.dry_run && !dry.preview.would_upload);
    assert!(place.bytes() == before, "a dry run wrote something");
    assert_eq!(Pointer::of(dry.preview.payload_json.as_bytes()).hex(), dry.preview.sha256);
    assert_eq!(dry.preview.bytes, dry.preview.payload_json.len());
    assert!(dry.preview.fields.contains(&"raw_session".to_owned()));

    wish.expect_sha256 = Some(dry.preview.sha256.clone());
    let stored = own.store(&wish).await.unwrap();
    assert_eq!(stored.crypto.plaintext_sha256, dry.preview.sha256);
    let artifact = own.retrieve(&stored.cascade_uri, None).await.unwrap().artifact;
    assert_eq!(artifact, dry.preview.payload);

    let mut changed = bug_report();
    changed["summary"] = json!("Something else happened.");
    let mut other = request("demo-001", &changed);
    other.expect_sha256 = Some(dry.preview.sha256);
    assert_eq!(own.store(&other).await, Err(Error::Changed));
    assert_eq!(place.shelf.len(), 1);
}

#[tokio::test]
async fn storing_the_same_twice_stores_it_once_however_many_try_at_once() {
    let place = Place::new();
    let (first, second) = (place.open(), place.open());
    let wish = request("demo-001", &bug_report());
    let all: Vec<_> = (0..8)
        .map(|at| {
            let (own, wish) = (of(if at % 2 == 0 { &first } else { &second }, "alice"), wish.clone());
            tokio::spawn(async move { own.store(&wish).await.unwrap() })
        })
        .collect();
    let mut stored = Vec::new();
    for one in all {
        stored.push(one.await.unwrap());
    }
    assert!(stored.iter().all(|one| one.cascade_uri == stored[0].cascade_uri), "{stored:?}");
    assert_eq!(stored.iter().filter(|one| !one.already_stored).count(), 1);
    assert_eq!((place.shelf.len(), of(&first, "alice").count().await.unwrap()), (1, 1));
}

#[tokio::test]
async fn a_session_that_went_on_replaces_its_memory_in_searches_and_the_old_one_stays_retrievable() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let before = own.store(&request("demo-001", &bug_report())).await.unwrap();
    let mut later = bug_report();
    later["summary"] = json!("JWT validation is fixed in auth-service v2.3.2.");
    let after = own.store(&request("demo-001", &later)).await.unwrap();
    assert_eq!(after.supersedes, Some(before.cascade_uri.clone()));
    let hits = own.query(&query("JWT")).await.unwrap().hits;
    assert_eq!(hits.iter().map(|hit| &hit.cascade_uri).collect::<Vec<_>>(), [&after.cascade_uri]);
    assert!(own.retrieve(&before.cascade_uri, None).await.is_ok());
}

#[tokio::test]
async fn a_memory_whose_upload_took_long_is_found_like_any_other() {
    let place = Place::new();
    let memory = place.open();
    let own = of(&memory, "alice");
    let slow = held(&place, &own, &request("slow", &bug_report())).await;
    own.store(&request("quick", &json!({"summary": "JWT again, elsewhere."}))).await.unwrap();
    assert_eq!(own.query(&query("JWT")).await.unwrap().hits.len(), 1);
    place.shelf.let_in();
    assert!(slow.await.unwrap().unwrap().indexed);
    // By whoever looked before, and by whoever did not.
    for own in [own, of(&place.open(), "alice")] {
        assert_eq!(own.query(&query("JWT")).await.unwrap().hits.len(), 2);
        assert_eq!(own.list(&query("")).await.unwrap().hits.len(), 2);
    }
}

#[tokio::test]
async fn of_what_was_stored_of_a_session_at_once_the_last_begun_is_found_and_no_other() {
    let mut later = bug_report();
    later["summary"] = json!("JWT validation is fixed in auth-service v2.3.2.");
    let (old, new) = (request("demo-001", &bug_report()), request("demo-001", &later));
    for quick_is_newer in [true, false] {
        let place = Place::new();
        let memory = place.open();
        let own = of(&memory, "alice");
        let first = held(&place, &own, &old).await;
        let second = if quick_is_newer {
            let newer = own.store(&new).await.unwrap();
            place.shelf.let_in();
            let older = first.await.unwrap().unwrap();
            assert_eq!((older.indexed, older.supersedes), (false, None));
            assert!(own.retrieve(&older.cascade_uri, None).await.is_ok());
            newer
        } else {
            let second = held(&place, &own, &new).await;
            place.shelf.let_in();
            let older = first.await.unwrap().unwrap();
            place.shelf.let_in();
            let newer = second.await.unwrap().unwrap();
            assert_eq!(newer.supersedes, Some(older.cascade_uri));
            newer
        };
        let hits = own.query(&query("JWT")).await.unwrap().hits;
        assert_eq!(hits.iter().map(|hit| &hit.cascade_uri).collect::<Vec<_>>(), [&second.cascade_uri]);
    }
}

#[tokio::test]
async fn what_its_store_has_lost_is_put_back_when_it_is_stored_again() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let wish = request("demo-001", &bug_report());
    let before = own.store(&wish).await.unwrap();
    place.shelf.blobs.lock().unwrap().clear();
    assert_eq!(own.retrieve(&before.cascade_uri, None).await.unwrap_err().code(), "not_found");

    // Nobody can say whether it is there, so nobody does. What is known stays known.
    place.shelf.set(Weather::Down);
    assert_eq!(own.store(&wish).await.unwrap_err().code(), "unavailable");
    place.shelf.set(Weather::Fine);
    assert_eq!(own.query(&query("JWT")).await.unwrap().hits.len(), 1);
    own.preview(&wish).await.unwrap();
    assert_eq!((place.shelf.len(), place.outbox("put")), (0, 0), "a dry run writes nothing");

    let again = own.store(&wish).await.unwrap();
    assert_eq!((again.already_stored, again.supersedes), (false, Some(before.cascade_uri)));
    assert!(own.retrieve(&again.cascade_uri, None).await.is_ok());
    let hits = own.query(&query("JWT")).await.unwrap().hits;
    assert_eq!(hits.iter().map(|hit| &hit.cascade_uri).collect::<Vec<_>>(), [&again.cascade_uri]);
    let third = own.store(&wish).await.unwrap();
    assert_eq!((third.already_stored, &third.cascade_uri), (true, &again.cascade_uri));
    assert_eq!(place.shelf.len(), 1);

    // What is there and is not what was put is as good as gone.
    place.shelf.blobs.lock().unwrap().values_mut().for_each(|blob| blob[40] ^= 1);
    let fourth = own.store(&wish).await.unwrap();
    assert!(!fourth.already_stored && own.retrieve(&fourth.cascade_uri, None).await.is_ok());
}

#[tokio::test]
async fn what_cannot_be_put_back_is_still_found_and_can_be_later() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let wish = request("demo-001", &bug_report());
    let before = own.store(&wish).await.unwrap();
    place.shelf.blobs.lock().unwrap().clear();
    place.shelf.set(Weather::Full);
    assert_eq!(own.store(&wish).await.unwrap_err().code(), "unavailable");
    let hits = own.query(&query("JWT")).await.unwrap().hits;
    assert_eq!(hits.iter().map(|hit| &hit.cascade_uri).collect::<Vec<_>>(), [&before.cascade_uri]);
    place.shelf.set(Weather::Fine);
    let again = own.store(&wish).await.unwrap();
    assert!(!again.already_stored && own.retrieve(&again.cascade_uri, None).await.is_ok());
}

#[tokio::test]
async fn a_session_stored_with_its_transcript_too_is_found_once() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let card = own.store(&request("demo-001", &bug_report())).await.unwrap();
    let mut wish = request("demo-001", &bug_report());
    wish.raw = Raw::Acknowledged;
    let raw = own.store(&wish).await.unwrap();
    assert_eq!(raw.supersedes, Some(card.cascade_uri.clone()));
    for found in [own.query(&query("JWT")).await.unwrap(), own.list(&query("")).await.unwrap()] {
        let uris: Vec<&str> = found.hits.iter().map(|hit| hit.cascade_uri.as_str()).collect();
        assert_eq!(uris, [&raw.cascade_uri]);
    }
    assert!(own.retrieve(&card.cascade_uri, None).await.is_ok(), "until it is forgotten");
    let gone = own.forget(&Forget::Uri(raw.cascade_uri), false).await.unwrap();
    assert_eq!((gone.forgotten, place.shelf.len()), (2, 0), "and it is not left behind");
}

#[tokio::test]
async fn modes_that_are_not_allowed_and_ids_that_are_not_known_are_named_clearly() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let mut wish = request("demo-001", &bug_report());
    wish.mode = Some("live".to_owned());
    assert_eq!(own.store(&wish).await.unwrap_err().code(), "not_allowed");
    wish.mode = None;
    wish.session = None;
    assert_eq!(own.store(&wish).await.unwrap_err().code(), "not_found");
    for uri in ["cascade://abc", "http://x", "", "cascade://ZZ"] {
        assert_eq!(own.retrieve(uri, None).await.unwrap_err().code(), "invalid", "{uri}");
    }
    let unknown = format!("cascade://{}", "0".repeat(64));
    assert_eq!(own.retrieve(&unknown, None).await.unwrap_err().code(), "not_found");
    place.shelf.set(Weather::Down);
    let error = own.store(&request("demo-001", &bug_report())).await.unwrap_err();
    assert_eq!(error.code(), "unavailable");
}

#[tokio::test]
async fn a_tag_of_one_word_stays_what_it_is_and_is_found() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let mut wish = request("maria", &json!({ "summary": "The nightly export to the warehouse was moved." }));
    wish.tags =
        ["maria", "jenkins", "production", "Maria Kowalska", "nora@mail.example"].map(str::to_owned).to_vec();
    let stored = own.store(&wish).await.unwrap();
    assert_eq!(stored.session_id, "maria");
    let mut by_tag = query("export");
    by_tag.tags = vec!["maria".to_owned()];
    let [hit] = &own.query(&by_tag).await.unwrap().hits[..] else { panic!("not found by its tag") };
    assert_eq!(hit.tags[..3], ["maria", "jenkins", "production"]);
    assert!(hit.tags[3..].iter().all(|tag| tag.starts_with("<REDACTED:")), "{:?}", hit.tags);
}
