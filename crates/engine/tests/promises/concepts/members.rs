//! Who is in a conversation that an application named, what they share there, and what erasing one of them leaves to the
//! others: nothing of theirs, in whatever copy.

use super::outage::{Outage, ask};
use super::*;

on_every_store! {
    promise_1_nobody_gets_into_a_conversation_by_its_name,
    promise_1_another_persons_words_for_a_concept_stay_theirs,
    promise_6_erased_uses_do_not_come_back_with_older_rows,
    promise_6_a_shared_context_outlives_its_sessions_and_is_erased_with_its_person,
}

fn notice() -> Value {
    json!({ "concepts": [concept("NOTICE", "Rhyme Levy", "a levy on what is not in rhyme.")] })
}

async fn promise_1_nobody_gets_into_a_conversation_by_its_name(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.joined("acme", "c1", "alice").await;
    rig.says(&alice, "one", Audience::Room, kinds(["OPEN".to_owned()])).await;
    // Eve knows what the conversation is called, and that is all.
    let eve = rig.session("acme", "c1", "eve");
    assert!(!eve.is_in_conversation().await.unwrap());
    assert_eq!(ids(&eve).await, Vec::<String>::new());
    assert_eq!(eve.why_in_scope("TAX:IE:OPEN").await.unwrap(), []);
    assert!(!eve.choose_concept("TAX:IE:OPEN", ConceptChoice::Pin).await.unwrap());
    rig.says(&eve, "mine", Audience::Room, notice()).await;
    assert!(!rig.model.last_text().contains("OPEN"), "{}", rig.model.last_text());
    assert_eq!(ids(&eve).await, ["TAX:IE:NOTICE"], "she has the conversation to herself");
    assert_eq!(ids(&alice).await, ["TAX:IE:OPEN"]);
    rig.turn(&alice, "two", Audience::Room).await;
    assert!(!rig.model.last_text().contains("Rhyme Levy"), "{}", rig.model.last_text());
    // Another session of hers in the same place is not in it either, and neither is the same name elsewhere.
    let thread = Scope::parse(TenantId::new("acme").unwrap(), "chat:c1:other:eve").unwrap();
    assert_eq!(ids(&rig.engine.session(thread, Actor::cli())).await, Vec::<String>::new());
    assert!(!rig.session("other", "c1", "alice").is_in_conversation().await.unwrap());
    // Invited, she sees it, and what she names reaches the others as data inside a fence, never as the operator's words.
    assert!(eve.join_conversation().await.unwrap());
    assert_eq!(ids(&eve).await, ["TAX:IE:OPEN"]);
    rig.says(&eve, "ours", Audience::Room, notice()).await;
    rig.turn(&alice, "three", Audience::Room).await;
    let prompt = rig.model.last_prompt();
    assert!(!prompt.system.contains("Rhyme Levy"), "{}", prompt.system);
    let block = prompt.blocks.iter().find(|block| block.label == "concepts").unwrap();
    let text = block.render(&fresh_fence());
    assert!(text.contains("- Rhyme Levy (IE)") && text.ends_with("concepts>>>"), "{text}");
    // Taken out, she has nothing there, and the others have nothing of hers.
    assert!(eve.leave_conversation().await.unwrap());
    assert!(!eve.leave_conversation().await.unwrap());
    assert_eq!(ids(&alice).await, ["TAX:IE:OPEN"]);
    assert!(!eve.is_in_conversation().await.unwrap());
    // A conversation that no application named has nobody to let in.
    assert!(!session(&rig.engine, "discord_conv:alice").join_conversation().await.unwrap());
}

async fn promise_1_another_persons_words_for_a_concept_stay_theirs(place: Place) {
    let rig = rig(&place).await;
    let (alice, bob) = (rig.joined("acme", "c1", "alice").await, rig.joined("acme", "c1", "bob").await);
    let named = |label: &str| json!({ "concepts": [concept("SAME", label, "a tax.")] });
    rig.says(&bob, "one", Audience::Room, named("the name in the room")).await;
    rig.says(&alice, "two", Audience::Private, named("the name in private")).await;
    let label =
        async |session: &Session| session.concepts_in_scope().await.unwrap().concepts[0].label.clone();
    assert_eq!(label(&alice).await, "the name in private");
    assert_eq!(label(&bob).await, "the name in the room");
    rig.turn(&bob, "three", Audience::Private).await;
    assert!(!rig.model.last_text().contains("the name in private"), "{}", rig.model.last_text());
}

/// What is stored of contexts now, put back later.
enum Kept {
    Tables(Outage),
    Redis { url: String, keys: Vec<String> },
}

impl Kept {
    async fn of(place: &Place) -> Self {
        match Outage::of(place).await {
            Outage::Redis { url, context, .. } => {
                let kept = format!("{context}:kept");
                ask::<i64>(&url, &["COPY", &context, &kept, "REPLACE"]).await;
                Self::Redis { url, keys: vec![context, kept] }
            }
            tables => {
                tables
                    .run("CREATE TABLE kept_contexts AS SELECT * FROM conversation_context; CREATE TABLE kept_captures AS SELECT * FROM concept_captures")
                    .await;
                Self::Tables(tables)
            }
        }
    }

    async fn put_back(&self) {
        match self {
            Self::Tables(tables) => {
                let sql = "DELETE FROM conversation_context; DELETE FROM concept_captures;
                    INSERT INTO conversation_context SELECT * FROM kept_contexts;
                    INSERT INTO concept_captures SELECT * FROM kept_captures";
                tables.run(sql).await;
            }
            Self::Redis { url, keys } => {
                ask::<i64>(url, &["COPY", &keys[1], &keys[0], "REPLACE"]).await;
            }
        }
    }

    async fn forget(&self) {
        match self {
            Self::Tables(tables) => tables.run("DROP TABLE kept_contexts; DROP TABLE kept_captures").await,
            Self::Redis { url, keys } => {
                ask::<i64>(url, &["DEL", &keys[1]]).await;
            }
        }
    }
}

async fn promise_6_erased_uses_do_not_come_back_with_older_rows(place: Place) {
    // What is in a process's own memory nobody can put back.
    if place.is_memory() {
        return;
    }
    let graph = SqliteGraph::in_memory().unwrap();
    for seal_context in [true, false] {
        let settings = || ConceptSettings { seal_context, ..ConceptSettings::default() };
        let open = async || rig_with(&place, Arc::new(graph.clone()), graph.clone(), settings()).await;
        let (name, conversation) = (format!("acme{seal_context}"), format!("c{seal_context}"));
        let tenant = TenantId::new(&name).unwrap();
        let rig = open().await;
        let alice = rig.joined(&name, &conversation, "alice").await;
        let bob = rig.joined(&name, &conversation, "bob").await;
        rig.says(&alice, "one", Audience::Room, kinds(["MINE".to_owned(), "OURS".to_owned()])).await;
        rig.says(&bob, "two", Audience::Room, kinds(["OURS".to_owned(), "BOBS".to_owned()])).await;
        assert_eq!(ids(&bob).await.len(), 3);
        let kept = Kept::of(&place).await;
        let admin = rig.engine.dangerously_administer(Actor::cli());
        let receipt = admin.erase_person(&tenant, &UserId::new("alice").unwrap()).await.unwrap();
        assert_eq!(receipt.keys.len(), 2, "her session's key, and that of her part");
        let bobs: BTreeSet<String> = ["TAX:IE:OURS", "TAX:IE:BOBS"].map(str::to_owned).into();
        assert_eq!(ids(&bob).await.into_iter().collect::<BTreeSet<_>>(), bobs);
        drop((alice, bob, admin));
        stop(rig.engine).await;
        // The rows from before are put back, and taken for the truth, as after restoring a backup.
        kept.put_back().await;
        let rig = open().await;
        let [alice, bob] = ["alice", "bob"].map(|user| rig.session(&name, &conversation, user));
        let admin = rig.engine.dangerously_administer(Actor::cli());
        admin.accept_restore().await.unwrap();
        let in_scope = async |session: &Session| ids(session).await.into_iter().collect::<BTreeSet<_>>();
        assert_eq!(in_scope(&bob).await, bobs, "sealed: {seal_context}");
        let view = bob.concepts_in_scope().await.unwrap();
        let ours = view.concepts.iter().find(|one| one.id == "TAX:IE:OURS").unwrap();
        assert_eq!(ours.uses, 1, "hers is gone from what both used");
        assert_eq!(bob.why_in_scope("TAX:IE:MINE").await.unwrap(), []);
        let candidates = admin.candidates(&tenant).await.unwrap().into_iter().map(|one| one.concept.id);
        assert_eq!(candidates.collect::<BTreeSet<_>>(), bobs);
        // Not even when she comes back, nor when it is made anew from its log.
        alice.join_conversation().await.unwrap();
        assert_eq!(in_scope(&alice).await, bobs);
        let rebuilt = bob.rebuild_concepts().await.unwrap().active_node_ids;
        assert_eq!(rebuilt.into_iter().collect::<BTreeSet<_>>(), bobs);
        admin.verify_receipt(&receipt).await.unwrap();
        assert!(admin.erase_conversation_context(&tenant, &conversation).await.unwrap() > 0);
        kept.forget().await;
        drop((alice, bob, admin));
        stop(rig.engine).await;
    }
}

async fn promise_6_a_shared_context_outlives_its_sessions_and_is_erased_with_its_person(place: Place) {
    let rig = rig(&place).await;
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let tenant = TenantId::new("acme").unwrap();
    let (alice, bob) = (rig.joined("acme", "c1", "alice").await, rig.joined("acme", "c1", "bob").await);
    rig.says(&alice, "one", Audience::Room, kinds(["HERS".to_owned()])).await;
    rig.says(&bob, "two", Audience::Room, kinds(["HIS".to_owned()])).await;
    // Their sessions live for a day; the conversation is the application's.
    rig.clock.advance(Duration::from_secs(30 * 86_400));
    rig.engine.sweep().await.unwrap();
    assert_eq!(alice.export().await.unwrap(), None, "her session is over");
    assert_eq!(ids(&alice).await.len(), 2);
    assert!(alice.choose_concept("TAX:IE:HERS", ConceptChoice::Pin).await.unwrap());
    assert_eq!(ids(&alice).await[0], "TAX:IE:HERS");
    // No session of hers is left, and still all of it is found: for her copy, for the count, and for its end.
    let alices = UserId::new("alice").unwrap();
    let export = admin.export_person(&tenant, &alices).await.unwrap();
    assert_eq!((export.sessions.len(), export.derived["concepts"].len()), (0, 2));
    let would = admin.count_derived(&tenant, &alices).await.unwrap();
    let receipt = admin.erase_person(&tenant, &alices).await.unwrap();
    assert_eq!((receipt.derived.get("captures"), would.get("captures")), (Some(&2), Some(&2)));
    assert_eq!(ids(&bob).await, ["TAX:IE:HIS"]);
    assert!(!alice.is_in_conversation().await.unwrap());
    // Nobody uses it any more: out of use first, then gone, keys and all.
    rig.clock.advance(Duration::from_secs(91 * 86_400));
    rig.engine.sweep().await.unwrap();
    assert!(bob.is_in_conversation().await.unwrap());
    rig.clock.advance(Duration::from_secs(90 * 86_400));
    rig.engine.settle().await;
    rig.engine.sweep().await.unwrap();
    rig.engine.sweep().await.unwrap();
    assert!(!bob.is_in_conversation().await.unwrap());
    assert_eq!(rig.engine.key_status().await.unwrap().keys, 0);
    assert_eq!(admin.candidates(&tenant).await.unwrap(), []);
}
