//! Concepts of chats that only their owner can open: off at first, kept for the chat while they are on, and nobody else's.

use std::sync::Arc;

use confidant_concepts::SqliteGraph;
use confidant_engine::concepts::ConceptSettings;
use confidant_engine::{Actor, Keep, Session, TenantId, TurnRequest, UserId};

use crate::rig::concepts::*;
use crate::rig::*;
use crate::web::*;

on_every_store! {
    concepts_of_a_chat_outlive_its_sessions_until_they_are_switched_off,
    concepts_of_a_chat_are_its_owners_alone,
    a_chat_whose_words_are_in_memory_only_keeps_no_concepts,
    what_is_switched_off_during_a_turn_is_not_kept,
    an_account_that_is_erased_leaves_no_concepts,
}

const OTHER: &str = "chat_bbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A turn of a chat that had so many before, with concepts on or off; settled.
async fn asked(rig: &Rig, session: &Session, n: u8, query: &str, capture: bool) {
    let id = format!("{}-t{n}", session.id());
    let request = TurnRequest { capture, ..asks(&id, query, u64::from(n) * 2, n, n + 1) };
    session.turn(request).finish().await.unwrap();
    rig.engine.settle().await;
}

fn is_offered(rig: &Rig) -> bool {
    rig.model.last_prompt().tools.iter().any(|tool| tool.name == "capture_concepts")
}

async fn kept(rig: &Rig, chat: &str) -> Option<usize> {
    web(&rig.engine).export_concepts(ACCOUNT, chat).await.unwrap().map(|kept| kept.len())
}

async fn concepts_of_a_chat_outlive_its_sessions_until_they_are_switched_off(place: Place) {
    let rig = rig(&place).await;
    rig.model.on("What is VAT?", taxes());
    let (web, session) = (web(&rig.engine), chat(&rig.engine, CHAT));
    assert_eq!(kept(&rig, CHAT).await, None);
    assert!(web.keep_concepts(ACCOUNT, CHAT).await.unwrap());
    asked(&rig, &session, 0, "What is VAT?", true).await;
    assert_eq!(kept(&rig, CHAT).await, Some(1));
    asked(&rig, &session, 1, "And then?", true).await;
    assert_eq!(rig.model.last_concepts(), LINES);
    // A turn whose question does not allow it has none of them, and names none.
    asked(&rig, &session, 2, "What is VAT?", false).await;
    assert!(rig.model.last_concepts().is_empty() && !is_offered(&rig));
    assert_eq!(kept(&rig, CHAT).await, Some(1));
    // The session ends; the chat goes on with its history, and its concepts.
    assert!(web.end(ACCOUNT, CHAT).await.unwrap());
    asked(&rig, &session, 0, "Where were we?", true).await;
    assert_eq!(rig.model.last_concepts(), LINES);
    // Off: with a receipt that can be checked, once.
    let receipt = web.forget_concepts(ACCOUNT, CHAT).await.unwrap().unwrap();
    assert_eq!((receipt.erased.as_str(), receipt.derived.get("captures")), ("concepts", Some(&1)));
    assert_eq!(receipt.keys.len(), 2, "the key of the owner's part, and the chat's");
    rig.engine.dangerously_administer(Actor::cli()).verify_receipt(&receipt).await.unwrap();
    assert!(web.forget_concepts(ACCOUNT, CHAT).await.unwrap().is_none());
    asked(&rig, &session, 1, "What is VAT?", true).await;
    assert!(rig.model.last_concepts().is_empty() && !is_offered(&rig));
    assert_eq!(kept(&rig, CHAT).await, None);
    // On again: from the beginning.
    assert!(web.keep_concepts(ACCOUNT, CHAT).await.unwrap());
    assert_eq!(kept(&rig, CHAT).await, Some(0));
    stop(rig.engine).await;
}

async fn concepts_of_a_chat_are_its_owners_alone(place: Place) {
    let rig = rig(&place).await;
    rig.model.on("What is VAT?", taxes());
    let web = web(&rig.engine);
    for chat in [CHAT, OTHER] {
        assert!(web.keep_concepts(ACCOUNT, chat).await.unwrap());
    }
    asked(&rig, &chat(&rig.engine, CHAT), 0, "What is VAT?", true).await;
    // Another chat, another account with a chat of that name, another tenant's, and an application's conversation of that name.
    asked(&rig, &chat(&rig.engine, OTHER), 0, "And here?", true).await;
    assert!(rig.model.last_concepts().is_empty());
    let eve = "acct_eeeeeeeeeeeeeeeeeeeeeeeeee";
    let elsewhere = rig.engine.web_sessions(TenantId::new("other").unwrap());
    for (web, account) in [(&web, eve), (&elsewhere, ACCOUNT)] {
        assert!(web.keep_concepts(account, CHAT).await.unwrap());
        let session = web.session(account, CHAT, Keep::Stored).unwrap();
        asked(&rig, &session, 0, "And here?", true).await;
        assert!(rig.model.last_concepts().is_empty());
        assert!(web.export_concepts(account, CHAT).await.unwrap().unwrap().is_empty());
    }
    let theirs = rig.joined("acme", CHAT, "alice").await;
    rig.turn(&theirs, "And here?", confidant_engine::room::Audience::Private).await;
    assert!(rig.model.last_concepts().is_empty());
    // An administrator is shown nothing of them: neither to approve, nor of the person, also when the session is over.
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let (acme, person) = (TenantId::new("acme").unwrap(), UserId::any(ACCOUNT).unwrap());
    for _ in 0..2 {
        assert_eq!(admin.candidates(&acme).await.unwrap(), []);
        let export = admin.export_person(&acme, &person).await.unwrap();
        assert!(export.sessions.is_empty() && export.derived.is_empty() && export.unreadable.is_empty());
        web.end(ACCOUNT, CHAT).await.unwrap();
    }
    assert_eq!(kept(&rig, CHAT).await, Some(1));
    // The end of one is not that of another.
    assert!(web.forget_concepts(eve, CHAT).await.unwrap().is_some());
    assert!(web.forget_concepts(ACCOUNT, OTHER).await.unwrap().is_some());
    assert_eq!(kept(&rig, CHAT).await, Some(1));
    assert_eq!(admin.verify_everything().await.unwrap().refused, []);
    stop(rig.engine).await;
}

async fn a_chat_whose_words_are_in_memory_only_keeps_no_concepts(place: Place) {
    let rig = rig(&place).await;
    rig.model.on("What is VAT?", taxes());
    let web = web(&rig.engine);
    assert!(web.keep_concepts(ACCOUNT, CHAT).await.unwrap());
    for keep in [Keep::Memory, Keep::Once] {
        let session = web.open(ACCOUNT, CHAT, keep).await.unwrap();
        asked(&rig, &session, 0, "What is VAT?", true).await;
        assert!(!is_offered(&rig) && rig.model.last_concepts().is_empty(), "{keep:?}");
    }
    assert_eq!(kept(&rig, CHAT).await, Some(0));
    stop(rig.engine).await;
}

/// The switch is on a device, and a turn that runs does not know of it.
async fn what_is_switched_off_during_a_turn_is_not_kept(place: Place) {
    let rig = rig(&place).await;
    rig.model.on("What is VAT?", taxes());
    let (web, session) = (web(&rig.engine), chat(&rig.engine, CHAT));
    assert!(web.keep_concepts(ACCOUNT, CHAT).await.unwrap());
    let request = TurnRequest { capture: true, ..asks("t1", "What is VAT?", 0, 0, 1) };
    let turn = session.turn(request);
    let (_, answer) = tokio::join!(web.forget_concepts(ACCOUNT, CHAT), turn.finish());
    answer.unwrap();
    rig.engine.settle().await;
    // Whichever was first: nothing is kept after the last word on it.
    web.forget_concepts(ACCOUNT, CHAT).await.unwrap();
    assert_eq!(kept(&rig, CHAT).await, None);
    let admin = rig.engine.dangerously_administer(Actor::cli());
    assert_eq!(admin.verify_everything().await.unwrap().refused, []);
    stop(rig.engine).await;
}

async fn an_account_that_is_erased_leaves_no_concepts(place: Place) {
    let rig = rig(&place).await;
    rig.model.on("What is VAT?", taxes());
    let web = web(&rig.engine);
    for chat in [CHAT, OTHER] {
        assert!(web.keep_concepts(ACCOUNT, chat).await.unwrap());
        asked(&rig, &crate::web::chat(&rig.engine, chat), 0, "What is VAT?", true).await;
    }
    // One of them without a session, which is over.
    web.end(ACCOUNT, OTHER).await.unwrap();
    let (acme, person) = (TenantId::new("acme").unwrap(), UserId::any(ACCOUNT).unwrap());
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let receipt = admin.erase_person(&acme, &person).await.unwrap();
    assert_eq!(receipt.derived.get("captures"), Some(&2), "{receipt:?}");
    admin.verify_receipt(&receipt).await.unwrap();
    for chat in [CHAT, OTHER] {
        assert_eq!(kept(&rig, chat).await, None);
    }
    assert_eq!(admin.verify_everything().await.unwrap().refused, []);
    stop(rig.engine).await;
}

/// Also where the operator has the ids of other conversations readable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_concept_of_a_chat_is_readable_at_rest() {
    let place = Place::sqlite();
    let graph = SqliteGraph::in_memory().unwrap();
    let settings = ConceptSettings { seal_context: false, ..ConceptSettings::default() };
    let rig = rig_with(&place, Arc::new(graph.clone()), graph, settings).await;
    assert!(web(&rig.engine).keep_concepts(ACCOUNT, CHAT).await.unwrap());
    let session = chat(&rig.engine, CHAT);
    for n in 0..3 {
        let query = format!("MARKquery{n}");
        let named = concept(&format!("MARKkind{n}"), &format!("MARKlabel{n}"), "MARKdefinition");
        rig.model.on(&query, serde_json::json!({ "concepts": [named] }));
        asked(&rig, &session, n, &query, true).await;
    }
    assert_eq!(kept(&rig, CHAT).await, Some(3));
    assert!(!contains(&place.bytes(), "MARK"), "a marker is readable in a file");
    // An application's conversation has them readable, so they would be found.
    let theirs = rig.session("acme", "c1", "alice");
    rig.says(&theirs, "theirs", confidant_engine::room::Audience::Room, kinds(["MARKS".to_owned()])).await;
    assert!(contains(&place.bytes(), "MARKS"));
    web(&rig.engine).forget_concepts(ACCOUNT, CHAT).await.unwrap().unwrap();
    stop(rig.engine).await;
    assert!(!contains(&place.bytes(), "MARKlabel") && !contains(&place.bytes(), "MARKKIND"));
}
