//! Promise 5 for memories: nothing is orphaned, nothing doubled, whatever breaks off.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use confidant_memory::api::StoreRequest;
use confidant_memory::blobs::local::Local;

use crate::support::{Place, Weather, bug_report, of, query, request};

fn wish() -> StoreRequest {
    request("demo-001", &bug_report())
}

#[tokio::test]
async fn an_upload_that_fails_leaves_nothing() {
    for weather in [Weather::Down, Weather::LostAnswer] {
        let place = Place::new();
        let memory = place.open();
        let own = of(&memory, "alice");
        place.shelf.set(weather);
        assert_eq!(own.store(&wish()).await.unwrap_err().code(), "unavailable");
        assert_eq!((own.count().await.unwrap(), own.query(&query("JWT")).await.unwrap().hits.len()), (0, 0));
        place.shelf.set(Weather::Fine);
        // What arrived although it was not answered for is cleared away.
        memory.recover().await.unwrap();
        assert_eq!(place.shelf.len(), 0, "{weather:?}");
        assert!(!own.store(&wish()).await.unwrap().already_stored);
        assert_eq!((place.shelf.len(), own.count().await.unwrap()), (1, 1));
    }
}

#[tokio::test]
async fn a_folder_that_fails_leaves_nothing_and_says_what_to_do() {
    let place = Place::new();
    let blobs = place.folder.path().join("blobs");
    let local = Local::open(&blobs).unwrap();
    let memory = place.open_with(|parts| drop(parts.stores.insert("mock".to_owned(), Arc::new(local))));
    let own = of(&memory, "alice");
    std::fs::write(blobs.join("incoming"), "in the way").unwrap();
    let error = own.store(&wish()).await.unwrap_err().to_string();
    assert!(error.contains("there is a file where a folder must be; hint: move that file"), "{error}");
    assert_eq!((own.count().await.unwrap(), place.outbox("put")), (0, 0));
    std::fs::remove_file(blobs.join("incoming")).unwrap();
    assert!(!own.store(&wish()).await.unwrap().already_stored);
    memory.recover().await.unwrap();
    assert_eq!((own.count().await.unwrap(), place.outbox("put"), place.outbox("remove")), (1, 0, 0));
    assert_eq!(own.query(&query("JWT")).await.unwrap().hits.len(), 1);
}

#[cfg(feature = "cloud")]
#[tokio::test]
async fn a_bucket_that_cannot_be_reached_leaves_nothing_and_says_what_to_do() {
    use confidant_memory::blobs::object::{Credentials, Limits, ObjectSettings, open};
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let limits = Limits { retries: 0, ..Limits::default() };
    let settings = ObjectSettings {
        endpoint: Some(url),
        limits,
        ..ObjectSettings::new("s3://bucket", Credentials::Anonymous)
    };
    let place = Place::new();
    let bucket = open(&settings).unwrap();
    let memory = place.open_with(|parts| drop(parts.stores.insert("mock".to_owned(), bucket)));
    let own = of(&memory, "alice");
    let error = own.store(&wish()).await.unwrap_err().to_string();
    assert!(error.starts_with("the object store cannot be reached; hint: "), "{error}");
    assert_eq!((own.count().await.unwrap(), place.outbox("put")), (0, 0));
}

#[tokio::test]
async fn an_upload_that_was_paid_for_is_kept_and_gone_on_with_by_the_same_process() {
    let place = Place::new();
    let memory = place.open();
    let own = of(&memory, "alice");
    place.shelf.set(Weather::Paid);
    // Again does not wait for a stranger who is not there: it goes on with what was begun.
    for _ in 0..2 {
        let error = own.store(&wish()).await.unwrap_err().to_string();
        assert!(
            error.contains("does not answer") && error.contains("hint: try again; the upload is kept"),
            "{error}"
        );
    }
    assert_eq!(memory.recover().await.unwrap().waiting, 1);
    assert_eq!((own.count().await.unwrap(), place.outbox("put")), (0, 1));
    place.shelf.set(Weather::Fine);
    assert_eq!(memory.recover().await.unwrap().finished, 1);
    assert!(own.store(&wish()).await.unwrap().already_stored);
    let paid = place.shelf.paid.load(Ordering::SeqCst);
    assert_eq!((paid, place.shelf.len(), place.outbox("put")), (1, 1, 0));
}

#[test]
fn a_process_that_dies_during_an_upload_has_it_finished_by_the_next() {
    let place = Place::new();
    place.shelf.set(Weather::Hangs);
    let first = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    first.block_on(async {
        let memory = place.open();
        let own = of(&memory, "alice");
        let storing = tokio::spawn(async move { own.store(&wish()).await });
        // Until it is written down; the upload then never ends.
        while place.outbox("put") == 0 {
            tokio::task::yield_now().await;
        }
        let own = of(&memory, "alice");
        assert_eq!(own.query(&query("JWT")).await.unwrap().hits.len(), 0, "pending is not there yet");
        storing.abort();
    });
    first.shutdown_background();
    place.shelf.set(Weather::Fine);
    let second = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    second.block_on(async {
        let memory = place.open();
        let mut recovered = memory.recover().await.unwrap();
        // The first process ends when its threads do, which is soon.
        while recovered.finished == 0 {
            tokio::task::yield_now().await;
            recovered = memory.recover().await.unwrap();
        }
        let own = of(&memory, "alice");
        assert_eq!(own.query(&query("JWT")).await.unwrap().hits.len(), 1);
        assert!(own.store(&wish()).await.unwrap().already_stored);
        assert_eq!((place.shelf.len(), own.count().await.unwrap(), place.outbox("put")), (1, 1, 0));
        assert_eq!(memory.recover().await.unwrap(), confidant_memory::Recovered::default());
    });
}

#[tokio::test]
async fn lost_keys_are_an_error_and_lose_nothing_more() {
    let place = Place::new();
    let stored = of(&place.open(), "alice").store(&wish()).await.unwrap();
    let (keys, aside) = (place.folder.path().join("keys"), place.folder.path().join("aside"));
    std::fs::rename(&keys, &aside).unwrap();
    let error = place.try_open().unwrap_err();
    assert!(error.to_string().contains("memory-keys.db is empty"), "{error}");
    std::fs::remove_dir_all(&keys).unwrap();
    std::fs::rename(&aside, &keys).unwrap();
    let memory = place.open();
    memory.recover().await.unwrap();
    assert!(of(&memory, "alice").retrieve(&stored.cascade_uri, None).await.is_ok());
}

#[tokio::test]
async fn an_erasure_that_was_cut_off_is_gone_on_with() {
    let place = Place::new();
    let memory = place.open();
    of(&memory, "alice").store(&wish()).await.unwrap();
    let his = of(&memory, "bob").store(&wish()).await.unwrap();
    // Cut off behind its first steps: the rows do not go.
    let db = rusqlite::Connection::open(place.folder.path().join("memory/memory.db")).unwrap();
    let stays = "CREATE TRIGGER stays BEFORE DELETE ON memories BEGIN SELECT RAISE(ABORT, 'not now'); END";
    db.execute_batch(stays).unwrap();
    assert!(memory.erase(&crate::support::owner("alice")).await.is_err());
    db.execute_batch("DROP TRIGGER stays").unwrap();
    memory.recover().await.unwrap();
    assert_eq!((of(&memory, "alice").count().await.unwrap(), place.shelf.len()), (0, 1));
    assert!(of(&memory, "bob").retrieve(&his.cascade_uri, None).await.is_ok());
    let left: i64 = db.query_row("SELECT count(*) FROM erasing", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}
