//! Concepts in scope: they are captured, told to the next turn, ranked, archived and made public.

mod members;
mod moving;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use confidant_concepts::skos::{Defaults, Form, import};
use confidant_concepts::{Graph, SqliteGraph};
use confidant_engine::audit::Action;
use confidant_engine::clock::{Clock as _, Millis, SystemClock};
use confidant_engine::concepts::{ConceptChoice, ConceptSettings, Concepts, ContextStatus, Uncertainty};
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt, ToolCall};
use confidant_engine::room::Audience;
use confidant_engine::turn::Outbound;
use confidant_engine::{Actor, Engine, Error, Parts, Session, TenantId, TurnRequest};
use serde_json::{Value, json};

use crate::rig::concepts::*;
use crate::rig::*;

on_every_store! {
    the_next_turn_is_told_what_the_last_one_captured,
    concepts_never_reach_the_reader,
    sixty_four_turns_at_once_lose_no_concept,
    people_can_pin_and_ask_why,
    a_context_is_made_anew_from_its_log,
    contexts_nobody_uses_are_archived_and_say_so,
    a_context_lasts_as_long_as_its_sessions,
    candidates_become_public_only_by_approval,
    superseded_concepts_are_followed_and_vanished_ones_dropped,
    concepts_survive_a_rotation_of_keys,
}

async fn the_next_turn_is_told_what_the_last_one_captured(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    let first = rig.says(&alice, "What do I pay when I import a car?", Audience::Private, taxes()).await;
    assert_eq!(first.metadata.context_status, ContextStatus::Empty);
    let of_turn = first.metadata.concepts.unwrap();
    assert_eq!(of_turn.referenced_nodes, ["TAX:IE:VAT", "TAX:IE:VRT"]);
    assert_eq!(
        (of_turn.jurisdictions, of_turn.uncertainty_level),
        (vec!["IE".to_owned()], Uncertainty::High)
    );
    let second = rig.turn(&alice, "And for a bike?", Audience::Private).await;
    assert_eq!(second.metadata.context_status, ContextStatus::Loaded);
    assert_eq!(rig.model.last_concepts(), LINES);
    let system = rig.model.last_prompt().system;
    assert!(system.ends_with("prefer grounded explanations that reuse these concepts."), "{system}");
    assert!(
        !system.contains("VAT") && !system.contains("VRT"),
        "what others named is not the operator's text"
    );
    // The same conversation id of another tenant is another conversation.
    let stranger = rig.session("other", "c1", "alice");
    let theirs = rig.turn(&stranger, "And for a bike?", Audience::Private).await;
    assert_eq!(
        (theirs.metadata.context_status, rig.model.last_text()),
        (ContextStatus::Empty, String::new())
    );
    // After a restart it is still there.
    stop(rig.engine).await;
    let rig = self::rig(&place).await;
    rig.turn(&rig.session("acme", "c1", "alice"), "And now?", Audience::Private).await;
    assert_eq!(rig.model.last_concepts(), LINES);
}

async fn concepts_never_reach_the_reader(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.model.on("hello", taxes());
    let mut turn = alice.turn(TurnRequest { capture: true, ..says("hello") });
    let mut heard = String::new();
    while let Some(event) = turn.next().await {
        match event {
            Outbound::Progress { text } => heard.push_str(&text),
            Outbound::Delta { text, .. } => heard.push_str(&text),
            Outbound::Final(answer) => {
                assert_eq!((answer.content.as_str(), answer.metadata.tools.len()), ("about 5", 0));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(heard.ends_with("about 5") && !heard.contains("capture") && !heard.contains("VAT"), "{heard}");
    // An answer that came with its concepts costs no second call of the model.
    assert_eq!(rig.model.prompts.lock().unwrap().len(), 1);
    // Where nothing asks for concepts, and none are known, the model is not asked for any.
    rig.session("acme", "c2", "alice").turn(says("hello")).finish().await.unwrap();
    assert!(rig.model.prompts.lock().unwrap()[1].tools.is_empty());
}

async fn sixty_four_turns_at_once_lose_no_concept(place: Place) {
    let rig = rig(&place).await;
    let mut turns = Vec::new();
    for n in 0..64 {
        let query = format!("question {n}");
        rig.model.on(&query, kinds((0..3).map(|k| format!("T{n}X{k}"))));
        let session = rig.joined("acme", "c1", &format!("user{n}")).await;
        let request = TurnRequest { capture: true, audience: Some(Audience::Room), ..says(&query) };
        turns.push(session.turn(request));
    }
    for turn in turns {
        assert_ne!(turn.finish().await.unwrap().metadata.context_status, ContextStatus::SaveFailed);
    }
    let found: BTreeSet<String> = ids(&rig.session("acme", "c1", "user0")).await.into_iter().collect();
    let all = (0..64).flat_map(|n| (0..3).map(move |k| format!("TAX:IE:T{n}X{k}"))).collect();
    assert_eq!(found, all);
}

async fn people_can_pin_and_ask_why(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.says(&alice, "one", Audience::Private, kinds(["OLD".to_owned()])).await;
    rig.clock.advance(Duration::from_secs(30 * 86_400));
    rig.says(&alice, "two", Audience::Private, kinds(["NEW".to_owned()])).await;
    assert_eq!(ids(&alice).await, ["TAX:IE:NEW", "TAX:IE:OLD"], "what was used lately comes first");
    assert!(alice.choose_concept("TAX:IE:OLD", ConceptChoice::Pin).await.unwrap());
    assert!(!alice.choose_concept("TAX:IE:NONE", ConceptChoice::Pin).await.unwrap());
    let view = alice.concepts_in_scope().await.unwrap();
    assert_eq!(view.active_node_ids, ["TAX:IE:OLD", "TAX:IE:NEW"], "what is pinned comes before it");
    assert_eq!((view.concepts[0].pinned, view.concepts[0].label.as_str()), (true, "Tax named OLD"));
    let why: Vec<&str> =
        alice.why_in_scope("TAX:IE:OLD").await.unwrap().iter().map(|reason| reason.what).collect();
    assert_eq!(why, ["used", "pinned"]);
    assert!(alice.choose_concept("TAX:IE:OLD", ConceptChoice::Unpin).await.unwrap());
    assert_eq!(ids(&alice).await, ["TAX:IE:NEW", "TAX:IE:OLD"]);
}

async fn a_context_is_made_anew_from_its_log(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    for n in 0..5 {
        rig.says(&alice, &format!("q{n}"), Audience::Private, kinds([format!("T{n}"), "SAME".to_owned()]))
            .await;
        rig.clock.advance(Duration::from_secs(60));
    }
    alice.choose_concept("TAX:IE:T0", ConceptChoice::Pin).await.unwrap();
    let before = alice.concepts_in_scope().await.unwrap();
    let rebuilt = alice.rebuild_concepts().await.unwrap();
    assert_eq!(rebuilt.active_node_ids, before.active_node_ids);
    assert_eq!(alice.concepts_in_scope().await.unwrap(), before);
}

async fn contexts_nobody_uses_are_archived_and_say_so(place: Place) {
    let rig = rig(&place).await;
    // A session that has no end of its own.
    let alice = session(&rig.engine, "discord_conv:alice");
    rig.says(&alice, "one", Audience::Private, taxes()).await;
    rig.clock.advance(Duration::from_secs(89 * 86_400));
    rig.engine.sweep().await.unwrap();
    assert_eq!(ids(&alice).await.len(), 2);
    rig.clock.advance(Duration::from_secs(2 * 86_400));
    rig.engine.sweep().await.unwrap();
    assert_eq!(ids(&alice).await, Vec::<String>::new());
    let lines = rig.engine.dangerously_administer(Actor::cli()).audit(1000).await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.record.action == Action::ContextArchived).count(), 1);
    // It begins anew, and what is in a session with an end goes with it.
    rig.says(&alice, "two", Audience::Private, kinds(["NEW".to_owned()])).await;
    assert_eq!(ids(&alice).await, ["TAX:IE:NEW"]);
    let short = rig.session("acme", "c1", "alice");
    rig.says(&short, "three", Audience::Private, taxes()).await;
    rig.clock.advance(Duration::from_secs(2 * 86_400));
    assert_eq!(rig.engine.sweep().await.unwrap(), 1);
    assert_eq!(ids(&short).await, Vec::<String>::new());
    assert_eq!(rig.engine.key_status().await.unwrap().keys, 2, "the log's key and the conversation's");
}

/// Turns that name nothing keep what is in scope as they keep the session.
async fn a_context_lasts_as_long_as_its_sessions(place: Place) {
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.says(&alice, "one", Audience::Room, taxes()).await;
    for n in 0..6 {
        rig.clock.advance(Duration::from_secs(20 * 3600));
        rig.turn(&alice, &format!("and then {n}"), Audience::Room).await;
        rig.engine.sweep().await.unwrap();
        assert_eq!(ids(&alice).await.len(), 2);
    }
    rig.clock.advance(Duration::from_secs(25 * 3600));
    rig.engine.sweep().await.unwrap();
    assert_eq!(rig.engine.key_status().await.unwrap().keys, 0);
    assert_eq!(ids(&alice).await, Vec::<String>::new());
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let lines = admin.audit(1000).await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.record.action == Action::ContextErased).count(), 1);
    assert_eq!(admin.candidates(&TenantId::new("acme").unwrap()).await.unwrap(), []);
}

async fn candidates_become_public_only_by_approval(place: Place) {
    let rig = rig(&place).await;
    let admin = rig.engine.dangerously_administer(Actor::cli());
    let tenant = TenantId::new("acme").unwrap();
    let alice = rig.session("acme", "c1", "alice");
    let mut vat = concept("VAT", "Value-Added Tax", "general indirect tax.");
    vat["altLabels"] = json!(["VAT", "my own words for it"]);
    let named = json!({ "concepts": [vat, concept("VRT", "car thing tax", "a tax on cars.")] });
    rig.says(&alice, "What is VAT, my own words for it, and the car thing tax?", Audience::Private, named)
        .await;
    assert_eq!(rig.graph.count().await.unwrap(), 0, "capturing changes nothing that is shared");
    let candidates = admin.candidates(&tenant).await.unwrap();
    assert_eq!(candidates.len(), 2);
    assert_eq!((candidates[0].said, candidates[0].concept.alt_labels.len()), (false, 0), "{candidates:?}");
    assert!(candidates[1].said, "its label is what she said");
    assert_eq!(admin.candidates(&TenantId::new("other").unwrap()).await.unwrap(), []);
    let approve = async |id: &str, label: Option<&str>| admin.approve_concept(&tenant, id, label, &[]).await;
    assert_eq!(approve("TAX:IE:NONE", None).await.unwrap(), None);
    assert!(matches!(approve("TAX:IE:VRT", None).await, Err(Error::Invalid { .. })));
    assert!(approve("TAX:IE:VRT", Some("mail jane@example.org")).await.is_err());
    assert_eq!(rig.graph.count().await.unwrap(), 0);
    assert!(approve("TAX:IE:VRT", Some("Vehicle Registration Tax")).await.unwrap().is_some());
    approve("TAX:IE:VAT", None).await.unwrap().unwrap();
    assert_eq!(admin.candidates(&tenant).await.unwrap(), []);
    // Now everybody's, under its public name, and an answer that names it stands on it.
    let stranger = rig.session("other", "c9", "bob");
    let label = concept("VRT", "whatever the model calls it", "what it says of it.");
    let theirs = rig.says(&stranger, "hm", Audience::Private, json!({ "concepts": [label] })).await;
    assert_eq!(theirs.metadata.concepts.unwrap().uncertainty_level, Uncertainty::Low);
    let view = stranger.concepts_in_scope().await.unwrap();
    assert_eq!(
        (view.concepts[0].label.as_str(), view.concepts[0].candidate),
        ("Vehicle Registration Tax", false)
    );
}

async fn superseded_concepts_are_followed_and_vanished_ones_dropped(place: Place) {
    let rig = rig(&place).await;
    let turtle = |more: &str| {
        format!(
            "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix c: <urn:confidant:ns:> .
             @prefix d: <http://purl.org/dc/terms/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
             <urn:x:old> a skos:Concept ; skos:prefLabel \"Old Tax\"@en ; c:domain \"TAX\" ; c:jurisdiction \"IE\" ; c:kind \"OLD\" .
             <urn:x:new> a skos:Concept ; skos:prefLabel \"New Tax\"@en ; c:domain \"TAX\" ; c:jurisdiction \"IE\" ; c:kind \"NEW\" .
             <urn:x:end> a skos:Concept ; skos:prefLabel \"End Tax\"@en ; c:domain \"TAX\" ; c:jurisdiction \"IE\" ; c:kind \"END\" .
             {more}"
        )
    };
    let take = |text: &str| {
        import(&rig.graph, Form::Turtle, text.as_bytes(), text.as_bytes(), &Defaults::default(), &|_, _| ())
            .unwrap()
    };
    assert_eq!(take(&turtle("")).concepts, 3);
    let alice = rig.session("acme", "c1", "alice");
    let named = json!({ "concepts": [concept("OLD", "Old Tax", ""), concept("END", "End Tax", "")] });
    let first = rig.says(&alice, "one", Audience::Private, named).await;
    assert_eq!(first.metadata.concepts.unwrap().uncertainty_level, Uncertainty::Low);
    take(&turtle("<urn:x:old> d:isReplacedBy <urn:x:new> . <urn:x:end> owl:deprecated true ."));
    assert_eq!(ids(&alice).await, ["TAX:IE:NEW"]);
    rig.turn(&alice, "two", Audience::Private).await;
    let system = rig.model.last_text();
    assert!(system.contains("- New Tax (IE)") && !system.contains("Old Tax") && !system.contains("End Tax"));
    // The next capture writes down what the graph said.
    rig.says(&alice, "three", Audience::Private, kinds(["MORE".to_owned()])).await;
    let stored = alice.rebuild_concepts().await.unwrap().active_node_ids;
    assert!(stored.contains(&"TAX:IE:OLD".to_owned()), "the log keeps what was captured as it was");
}

async fn concepts_survive_a_rotation_of_keys(place: Place) {
    let (graph, keys) = (SqliteGraph::in_memory().unwrap(), keys(&[1]));
    let settings = ConceptSettings::default();
    let rig = rig_at(&place, Arc::new(graph.clone()), graph, settings, SystemClock.now(), &keys).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.says(&alice, "one", Audience::Private, taxes()).await;
    keys.set(&[2, 1]);
    rig.engine.rotate_keys(&Actor::cli(), &|_, _| ()).await.unwrap();
    assert_eq!(ids(&alice).await.len(), 2);
    rig.says(&alice, "two", Audience::Private, kinds(["MORE".to_owned()])).await;
    assert_eq!(ids(&alice).await.len(), 3);
}

/// Where the operator chose readable contexts, they are JSON as in the seed; the log of them stays sealed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contexts_are_readable_only_by_choice() {
    let place = Place::sqlite();
    let graph = SqliteGraph::in_memory().unwrap();
    let settings = ConceptSettings { seal_context: false, ..ConceptSettings::default() };
    let rig = rig_with(&place, Arc::new(graph.clone()), graph, settings).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.says(&alice, "one", Audience::Private, taxes()).await;
    rig.turn(&alice, "two", Audience::Private).await;
    assert_eq!(rig.model.last_concepts(), LINES);
    let db = rusqlite::Connection::open(place.file("confidant.db")).unwrap();
    let json: Vec<u8> =
        db.query_row("SELECT context_json FROM conversation_context", [], |row| row.get(0)).unwrap();
    let stored: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(stored["activeNodeIds"], json!(["TAX:IE:VAT", "TAX:IE:VRT"]));
}
