//! Errors at every table, connections that are cut in the middle, and callers that go away.

use super::*;

/// The places where a write puts something.
const PLACES: [&str; 14] = [
    "INSERT ON rings",
    "INSERT ON envelopes",
    "UPDATE ON envelopes",
    "INSERT ON items",
    "DELETE ON items",
    "DELETE ON envelopes",
    "INSERT ON tombstones",
    "INSERT ON steps",
    "UPDATE ON chats",
    "UPDATE ON accounts",
    "INSERT ON feed",
    "UPDATE ON floors",
    "UPDATE ON manifests",
    "INSERT ON list_steps",
];

/// Something that happens after each row at a place.
async fn at(place: &Database, what: &str, does: &str) {
    place
        .batch(&format!(
            "CREATE FUNCTION happens() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
                 $$ BEGIN {does}; RETURN NULL; END $$;
             CREATE TRIGGER happens AFTER {what} FOR EACH ROW EXECUTE FUNCTION happens()"
        ))
        .await;
}

#[tokio::test]
async fn a_write_that_fails_at_any_table_leaves_nothing() {
    let Some(place) = place().await else { return };
    let store = &place.store;
    let (mut ana, _, write) = person(store, "ana").await;
    let before = place.dump().await;
    for what in PLACES {
        at(&place, what, "RAISE EXCEPTION 'hush' USING ERRCODE = 'XX000'").await;
        let failed = store.write(write.clone()).await;
        assert!(matches!(failed, Err(StoreError::Failed(_))), "{what}: {failed:?}");
        assert!(!failed.unwrap_err().to_string().contains("hush"));
        place.batch("DROP FUNCTION happens CASCADE").await;
        assert!(place.dump().await == before, "{what} left something");
    }
    ana.pull(store).await;
    store.write(write).await.unwrap();
    ana.pull(store).await;
    place.audit().await;
}

/// The server says that it has not committed, so the transaction is begun again: nothing is there twice, and the caller hears
/// nothing of it.
#[tokio::test]
async fn a_write_whose_connection_is_cut_at_any_table_is_made_once() {
    let Some(place) = place().await else { return };
    let store = &place.store;
    place.batch("CREATE SEQUENCE cuts; GRANT ALL ON SEQUENCE cuts TO PUBLIC").await;
    for (at_place, what) in (1_i64..).zip(PLACES) {
        let (mut ana, _, write) = person(store, what).await;
        // Whatever is counted stays counted, also by what is undone.
        at(
            &place,
            what,
            "IF nextval('cuts') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF",
        )
        .await;
        assert_eq!(store.write(write).await.map(|written| written.rev), Ok(2), "{what}");
        let counted: i64 =
            place.everything.query_one("SELECT last_value FROM cuts", &[]).await.unwrap().get(0);
        assert!(counted > 1, "{what} was not reached a second time");
        place.batch("DROP FUNCTION happens CASCADE; ALTER SEQUENCE cuts RESTART").await;
        ana.pull(store).await;
        place.audit().await;
        assert_eq!(store.count_accounts().await.map(u64::cast_signed), Ok(at_place));
    }
}

/// Connections that hold something in this schema, or wait for it; cuts them.
async fn cut(place: &Database) -> i64 {
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM (
                   SELECT DISTINCT l.pid FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
                   WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = 'chats' AND l.pid <> pg_backend_pid()
               ) AS busy";
    place.everything.query_one(sql, &[]).await.unwrap().get(0)
}

/// Cut before its commit was sent, a transaction is begun again, and its caller hears nothing of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_cut_before_the_commit_is_not_noticed() {
    let Some(place) = place().await else { return };
    let (mut ana, _, write) = person(&place.store, "ana").await;
    place.batch("BEGIN; SELECT 1 FROM accounts FOR UPDATE").await;
    let store = place.store.clone();
    let writing = tokio::spawn(async move { store.write(write).await });
    let waiting = "SELECT count(pg_terminate_backend(l.pid)) FROM pg_locks AS l JOIN pg_locks AS t USING (pid)
                   JOIN pg_class AS c ON c.oid = t.relation
                   WHERE NOT l.granted AND c.relname = 'accounts' AND c.relnamespace = current_schema()::regnamespace";
    while place.everything.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    place.batch("COMMIT").await;
    assert_eq!(writing.await.unwrap().map(|written| written.rev), Ok(2));
    ana.pull(&place.store).await;
    place.audit().await;
}

/// Two devices write while their connections are cut again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_cut_every_write_is_whole_or_not_there() {
    let Some(place) = place().await else { return };
    let mut ana = Device::register(&place.store, "ana").await;
    let chat = ana.create(&place.store, 1).await;
    let other = open(&place.link).await.unwrap();
    let (stored, mut stores) = tokio::sync::watch::channel(());
    let say = |store: PostgresChats, mut device: Device| {
        let (chat, stored) = (chat.clone(), stored.clone());
        tokio::spawn(async move {
            let mut known = 0;
            while known < 40 {
                let puts = vec![message()];
                let edit = Edit { puts, floor: known % 3 == 0, new_key: known % 10 == 9, ..Edit::default() };
                match device.put(&store, &chat, &edit).await {
                    Ok(_) => {
                        known += 1;
                        stored.send_replace(());
                    }
                    Err(StoreError::Conflict { .. } | StoreError::Uncertain | StoreError::Unreachable(_)) => {
                        // Whatever there is now is whole, or this panics.
                        while store.account(&device.id).await.is_err() {}
                        device.pull(&store).await;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        })
    };
    let writers = [say(place.store.clone(), ana.clone()), say(other, ana.clone())];
    drop(stored);
    let mut cuts = 0;
    // After each write that was stored, whatever is under way is cut; not for ever, so that somebody gets on at all.
    while stores.changed().await.is_ok() {
        if cuts < 60 {
            cuts += cut(&place).await;
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(cuts > 0, "nothing was cut");
    ana.pull(&place.store).await;
    assert!(ana.chats[&chat].items.len() >= 81);
    place.audit().await;
}

/// A caller that goes away at any moment: the write ends as a whole, or was never begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_leaves_all_or_nothing() {
    let Some(place) = place().await else { return };
    let store = &place.store;
    let mut ana = Device::register(store, "ana").await;
    let chat = ana.create(store, 1).await;
    for round in 0..30_u64 {
        let (write, _) = ana.write(&chat, &Edit { puts: vec![message()], floor: true, ..Edit::default() });
        let doomed = store.clone();
        let task = tokio::spawn(async move { doomed.write(write).await });
        for _ in 0..round * 20 {
            tokio::task::yield_now().await;
        }
        task.abort();
        let _ = task.await;
        // One that waits for the account's lock behind it ends after it.
        store.trim_feed(&ana.id, 0).await.unwrap();
        ana.pull(store).await;
    }
    place.audit().await;
    let (write, _) = ana.write(&chat, &Edit { puts: vec![message()], ..Edit::default() });
    store.write(write).await.unwrap();
}
