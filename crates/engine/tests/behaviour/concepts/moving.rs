//! Moving to another store takes what is in scope along.

use confidant_engine::storage::copy;

use super::*;

on_every_store! {
    concepts_move_with_their_conversations,
    concepts_that_are_over_stay_behind,
}

async fn concepts_move_with_their_conversations(place: Place) {
    let (first, last) = (Place::sqlite(), Place::sqlite());
    let origin = rig(&first).await;
    let tenant = TenantId::new("acme").unwrap();
    let people = |rig: &Rig| ["alice", "bob"].map(|user| rig.session("acme", "c1", user));
    let [alice, bob] = people(&origin);
    for session in [&alice, &bob] {
        session.join_conversation().await.unwrap();
    }
    origin.says(&alice, "one", Audience::Private, taxes()).await;
    origin.says(&bob, "two", Audience::Room, kinds(["OURS".to_owned()])).await;
    origin.says(&session(&origin.engine, "discord_conv:carol"), "three", Audience::Private, taxes()).await;
    alice.choose_concept("TAX:IE:VRT", ConceptChoice::Pin).await.unwrap();
    let views = async |rig: &Rig| {
        let [alice, bob] = people(rig);
        let why = alice.why_in_scope("TAX:IE:VRT").await.unwrap();
        (alice.concepts_in_scope().await.unwrap(), bob.concepts_in_scope().await.unwrap(), why)
    };
    let expected = views(&origin).await;
    assert_eq!((expected.0.concepts.len(), expected.1.concepts.len(), expected.2.len()), (3, 1, 2));
    stop(origin.engine).await;
    for (from, to) in [(&first, &place), (&place, &last)] {
        let copied = copy(&from.storage().await, &to.storage().await, keys(&[1]), &|_, _| {}).await.unwrap();
        assert_eq!((copied.sessions, copied.keys, copied.contexts), (3, 7, 2));
        let there = rig(to).await;
        assert_eq!(views(&there).await, expected);
        let admin = there.engine.dangerously_administer(Actor::cli());
        assert_eq!(admin.candidates(&tenant).await.unwrap().len(), 3);
        assert_eq!(admin.verify_everything().await.unwrap().refused, []);
        stop(there.engine).await;
    }
    // They go on, and are forgotten, where they are now.
    let there = rig(&last).await;
    let [alice, bob] = people(&there);
    there.says(&alice, "four", Audience::Room, kinds(["MORE".to_owned()])).await;
    assert_eq!((ids(&alice).await.len(), ids(&bob).await.len()), (4, 2));
    let receipt = alice.erase().await.unwrap();
    assert_eq!(receipt.derived.get("captures"), Some(&3), "{receipt:?}");
    assert_eq!(ids(&bob).await, ["TAX:IE:OURS"]);
}

/// A context whose time is over goes along only if a session that had a part in it does.
async fn concepts_that_are_over_stay_behind(place: Place) {
    let first = Place::sqlite();
    let graph = SqliteGraph::in_memory().unwrap();
    let settings = ConceptSettings::default();
    let ago = Millis(SystemClock.now().0 - 5 * 86_400_000);
    let origin = rig_at(&first, Arc::new(graph.clone()), graph, settings, ago, &keys(&[1])).await;
    for conversation in ["over", "on"] {
        origin.says(&origin.session("acme", conversation, "alice"), "one", Audience::Room, taxes()).await;
    }
    origin.says(&session(&origin.engine, "discord_conv:bob"), "two", Audience::Private, taxes()).await;
    // One session is used until today, without a word of concepts.
    for _ in 0..6 {
        origin.clock.advance(Duration::from_secs(20 * 3600));
        origin.turn(&origin.session("acme", "on", "alice"), "go on", Audience::Room).await;
    }
    stop(origin.engine).await;
    let copied = copy(&first.storage().await, &place.storage().await, keys(&[1]), &|_, _| {}).await.unwrap();
    assert_eq!((copied.sessions, copied.keys, copied.contexts, copied.expired), (2, 4, 2, 1));
    let there = rig(&place).await;
    let count = async |session: Session| ids(&session).await.len();
    let [over, on] = ["over", "on"].map(|one| there.session("acme", one, "alice"));
    assert_eq!((count(over).await, count(on).await), (0, 2));
    assert_eq!(count(session(&there.engine, "discord_conv:bob")).await, 2);
    let admin = there.engine.dangerously_administer(Actor::cli());
    assert_eq!(admin.verify_everything().await.unwrap().refused, []);
}
