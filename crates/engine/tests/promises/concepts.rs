//! The promises for concepts in scope: they are kept apart, sealed, forgotten with their person, and never fail a chat.

mod crashes;
mod failure;
mod members;
mod moving;
mod outage;
mod poison;
mod redis_keys;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_concepts::{Graph, SqliteGraph};
use confidant_engine::audit::Action;
use confidant_engine::concepts::{ConceptChoice, ConceptSettings, ContextStatus};
use confidant_engine::model::fresh_fence;
use confidant_engine::room::Audience;
use confidant_engine::turn::MemoryState;
use confidant_engine::{
    Actor, Error, Recovered, Scope, Session, Tampering, TenantId, Turn, TurnRequest, UserId,
};
use serde_json::{Value, json};

use crate::rig::concepts::*;
use crate::rig::*;

on_every_store! {
    promise_10_what_was_private_stays_with_its_person,
    promise_6_forgotten_concepts_are_gone,
    promise_6_what_is_taken_back_is_out_of_scope,
}

async fn promise_10_what_was_private_stays_with_its_person(place: Place) {
    let rig = rig(&place).await;
    let (alice, bob) = (rig.joined("acme", "c1", "alice").await, rig.joined("acme", "c1", "bob").await);
    rig.says(&alice, "in private", Audience::Private, kinds(["SECRET".to_owned()])).await;
    rig.says(&alice, "to all", Audience::Room, kinds(["OPEN".to_owned()])).await;
    assert_eq!(ids(&bob).await, ["TAX:IE:OPEN"]);
    assert_eq!(ids(&alice).await.len(), 2);
    rig.turn(&bob, "tell me", Audience::Private).await;
    assert!(!rig.model.last_text().contains("SECRET") && rig.model.last_text().contains("OPEN"));
    // Not even Alice's own answer tells the room.
    rig.turn(&alice, "tell us", Audience::Room).await;
    assert!(!rig.model.last_text().contains("SECRET"));
    assert_eq!(bob.why_in_scope("TAX:IE:SECRET").await.unwrap(), []);
    assert!(!bob.choose_concept("TAX:IE:SECRET", ConceptChoice::Pin).await.unwrap());
    let why = bob.why_in_scope("TAX:IE:OPEN").await.unwrap();
    assert_eq!((why.len(), why[0].yours, &why[0].request_id), (1, false, &None));
    // Another channel's conversation is its own session, even under a name that looks alike.
    let elsewhere = session(&rig.engine, "http:c1:main:alice");
    assert_eq!(ids(&elsewhere).await, Vec::<String>::new());
}

async fn promise_6_forgotten_concepts_are_gone(place: Place) {
    let rig = rig(&place).await;
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let tenant = TenantId::new("acme").unwrap();
    let (alice, bob) = (rig.joined("acme", "c1", "alice").await, rig.joined("acme", "c1", "bob").await);
    rig.says(&alice, "one", Audience::Room, kinds(["MINE".to_owned(), "OURS".to_owned()])).await;
    rig.says(&bob, "two", Audience::Room, kinds(["OURS".to_owned()])).await;
    let private = session(&rig.engine, "discord_conv:alice");
    rig.says(&private, "three", Audience::Private, kinds(["ALONE".to_owned()])).await;
    assert_eq!(private.export().await.unwrap().unwrap().concepts.len(), 1);
    assert_eq!(admin.candidates(&tenant).await.unwrap().len(), 3);
    let user = UserId::new("alice").unwrap();
    let would = admin.count_derived(&tenant, &user).await.unwrap();
    let receipt = admin.erase_person(&tenant, &user).await.unwrap();
    assert_eq!(would, receipt.derived, "a dry run says the same");
    assert_eq!((receipt.sessions, receipt.derived.get("captures")), (2, Some(&2)), "{receipt:?}");
    // Her sessions' two keys, that of her part in what she shared, and that of the conversation that was hers alone.
    assert_eq!(receipt.keys.len(), 4);
    admin.verify_receipt(&receipt).await.unwrap();
    assert_eq!(ids(&bob).await, ["TAX:IE:OURS"]);
    assert_eq!(ids(&private).await, Vec::<String>::new());
    let left: Vec<String> =
        admin.candidates(&tenant).await.unwrap().into_iter().map(|one| one.concept.id).collect();
    assert_eq!(left, ["TAX:IE:OURS"]);
    // One session alone, and then by a person's own wish.
    let would = bob.count_derived().await.unwrap();
    let gone = bob.erase().await.unwrap();
    assert_eq!(would, gone.derived, "a dry run says the same");
    assert_eq!((gone.derived.get("captures"), gone.keys.len()), (Some(&1), 3));
    assert_eq!(admin.candidates(&tenant).await.unwrap(), []);
    rig.says(&bob, "again", Audience::Private, taxes()).await;
    assert_eq!(bob.forget_concepts().await.unwrap(), 1);
    assert_eq!(ids(&bob).await, Vec::<String>::new());
    assert_eq!(admin.verify_everything().await.unwrap().refused, []);
}

async fn promise_6_what_is_taken_back_is_out_of_scope(place: Place) {
    let rig = rig(&place).await;
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let (alice, bob) = (rig.joined("acme", "c1", "alice").await, rig.joined("acme", "c1", "bob").await);
    let named = |names: &[&str]| kinds(names.iter().map(|name| (*name).to_owned()));
    let one = rig.says(&alice, "one", Audience::Room, named(&["MINE", "OURS"])).await;
    rig.says(&bob, "two", Audience::Room, named(&["OURS"])).await;
    let three = rig.says(&alice, "three", Audience::Room, named(&["LATER"])).await;
    let in_scope = async |session: &Session| ids(session).await.into_iter().collect::<BTreeSet<_>>();
    let only = |names: &[&str]| names.iter().map(|name| format!("TAX:IE:{name}")).collect::<BTreeSet<_>>();
    assert_eq!(in_scope(&bob).await, only(&["MINE", "OURS", "LATER"]));
    // Removed: what nobody else named is gone, with the reason; what somebody else named stays.
    assert!(alice.remove(&one.request_id).await.unwrap());
    assert_eq!(in_scope(&bob).await, only(&["OURS", "LATER"]));
    assert!(alice.why_in_scope("TAX:IE:MINE").await.unwrap().is_empty());
    assert_eq!(alice.export().await.unwrap().unwrap().concepts.len(), 1);
    let tenant = TenantId::new("acme").unwrap();
    let candidates = admin.candidates(&tenant).await.unwrap().into_iter().map(|one| one.concept.id);
    assert_eq!(candidates.collect::<BTreeSet<_>>(), only(&["OURS", "LATER"]));
    // Changed: the answer went with it, and so does what it named. Asked for again, nothing more goes.
    for _ in 0..2 {
        assert!(alice.amend(&three.request_id, "three, otherwise").await.unwrap());
        assert_eq!(in_scope(&bob).await, only(&["OURS"]));
    }
    // Nothing is left: then there is no context.
    let private = session(&rig.engine, "discord_conv:alice");
    let alone = rig.says(&private, "four", Audience::Private, named(&["ALONE"])).await;
    assert!(private.remove(&alone.request_id).await.unwrap());
    assert_eq!(in_scope(&private).await, only(&[]));
    rig.says(&private, "five", Audience::Private, named(&["NEW"])).await;
    assert_eq!(in_scope(&private).await, only(&["NEW"]));
    assert_eq!(admin.verify_everything().await.unwrap().refused, []);
}

/// Promise 2, for what is captured: labels, definitions, ids and the conversation's own name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_2_no_concept_is_readable_at_rest() {
    let place = Place::sqlite();
    let rig = rig(&place).await;
    for user in 0..3 {
        let session = rig.session("MARKtenant", "MARKconversation", &format!("MARKuser{user}"));
        for n in 0..20 {
            let named = json!({ "concepts": [concept(&format!("MARKkind{n}"), &format!("MARKlabel{n}"), "MARKdefinition")] });
            rig.says(&session, &format!("MARKquery{user}x{n}"), Audience::Room, named).await;
        }
        session.choose_concept("TAX:IE:MARKKIND3", ConceptChoice::Pin).await.unwrap();
        session.rebuild_concepts().await.unwrap();
        assert_eq!(ids(&session).await.len(), 20);
    }
    assert!(!contains(&place.bytes(), "MARK"), "a marker is readable in a file");
    stop(rig.engine).await;
    assert!(!contains(&place.bytes(), "MARK"), "a marker is readable in a file");
}
