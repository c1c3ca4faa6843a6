//! Promise 6 for concepts that move to another store: what was forgotten meanwhile stays forgotten.

use confidant_engine::storage::copy;

use super::*;

on_every_store! {
    promise_6_concepts_that_are_forgotten_during_a_move_stay_so,
}

async fn promise_6_concepts_that_are_forgotten_during_a_move_stay_so(place: Place) {
    let first = Place::sqlite();
    let origin = rig(&first).await;
    for user in ["alice", "bob", "carol"] {
        let private = session(&origin.engine, &format!("discord_conv:{user}"));
        origin.says(&private, user, Audience::Private, taxes()).await;
    }
    stop(origin.engine).await;
    let (from, there) = (first.storage().await, place.storage().await);
    // Cut off when contexts and sessions are there.
    let cut = Arc::new(tokio::sync::Notify::new());
    let enough = Arc::clone(&cut);
    let progress = move |done: u64, _: u64| {
        if done == 3 {
            enough.notify_one();
        }
    };
    tokio::select! {
        biased;
        () = cut.notified() => {}
        done = copy(&from, &there, keys(&[1]), &progress) => panic!("{done:?}"),
    }
    drop((from, there));
    let origin = rig(&first).await;
    session(&origin.engine, "discord_conv:alice").erase().await.unwrap();
    session(&origin.engine, "discord_conv:bob").forget_concepts().await.unwrap();
    stop(origin.engine).await;
    let copied = copy(&first.storage().await, &place.storage().await, keys(&[1]), &|_, _| {}).await.unwrap();
    assert_eq!((copied.sessions, copied.contexts), (2, 1));
    let there = rig(&place).await;
    for (user, count) in [("alice", 0), ("bob", 0), ("carol", 2)] {
        assert_eq!(
            ids(&session(&there.engine, &format!("discord_conv:{user}"))).await.len(),
            count,
            "{user}"
        );
    }
    let candidates = there.engine.dangerously_administer(Actor::cli());
    let candidates = candidates.candidates(&TenantId::new("acme").unwrap()).await.unwrap();
    assert!(candidates.iter().all(|one| one.captures == 1), "{candidates:?}");
}
