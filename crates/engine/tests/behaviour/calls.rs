//! Turns that call tools: whose rights they have, and with what they go on later.

use std::sync::Arc;

use confidant_engine::approval::Decision;
use confidant_engine::clock::{Clock as _, SystemClock};
use confidant_engine::model::{Prompt, Sampling};
use confidant_engine::prepare::{Harm, Measure, PreparedBy, SafetyAction};
use confidant_engine::tools::Verdict;
use confidant_engine::turn::{CarryOut, Ending, Restore};
use confidant_engine::{Engine, TenantId, TurnRequest};

use crate::rig::processing::Small;
use crate::rig::tools::{
    Caller, Counting, alice, asked, engine_with_tools, of_tenant, of_users, parts_with_tools, rule, runs,
};
use crate::rig::*;

on_every_store! {
    a_turn_without_memory_has_no_right_that_its_tenant_or_person_has_not,
    work_that_was_begun_is_not_refused_afterwards,
    a_turn_that_goes_on_later_has_what_it_was_given_and_forgets_settings,
    a_turn_without_memory_ends_with_whoever_listens,
}

const ID: &str = "http:r:main:alice";
const READ: &str = "call files.read {\"path\":\"/a\"}";
const WRITE: &str = "call files.write {\"path\":\"/a\"}";

async fn a_turn_without_memory_has_no_right_that_its_tenant_or_person_has_not(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let policy = vec![
        of_tenant("acme", rule("files.secret", Verdict::Deny)),
        of_users(&["bob"], rule("files.delete", Verdict::Deny)),
    ];
    let engine = engine_with_tools(&place, &model, &tools, policy).await;
    let tenant = |name: &str| Some(TenantId::new(name).unwrap());
    let ask = async |tenant, query: &str| {
        engine.turn_without_memory(tenant, says_as("r1", query)).finish().await.unwrap().content
    };
    let secret = "call files.secret {\"path\":\"/a\"}";
    // Denied to the tenant, and to whoever may be of it.
    for of in [tenant("acme"), None] {
        assert!(ask(of, secret).await.contains("Not called"));
    }
    // Whoever speaks may be Bob; and what changes something needs a log, whatever the rules say.
    assert!(ask(tenant("other"), "call files.delete {\"path\":\"/a\"}").await.contains("Not called"));
    assert!(ask(tenant("other"), WRITE).await.contains("Not called"));
    assert_eq!(runs(&tools), 0);
    let offered: Vec<Vec<String>> = {
        let prompts = model.prompts.lock().unwrap();
        prompts.iter().map(|prompt| prompt.tools.iter().map(|tool| tool.name.clone()).collect()).collect()
    };
    assert!(
        offered.iter().flatten().all(|name| name == "files.read" || name == "files.secret"),
        "{offered:?}"
    );
    // What only looks is called, and two tenants never share a key.
    for of in [tenant("acme"), tenant("other"), None, None] {
        assert!(ask(of, READ).await.contains("content of /a"));
    }
    assert_eq!(tools.runs.lock().unwrap().len(), 4);
}

async fn work_that_was_begun_is_not_refused_afterwards(place: Place) {
    let (model, tools, small) = (Caller::new(), Arc::new(Counting::default()), Small::new());
    small.says(
        "prepare_turn",
        serde_json::json!({
            "language_code": "de", "category": "general", "selected_model": "default",
            "selection_reason": "So it is.", "prompt_injection_chance": 0, "direct_self_harm": 0,
            "indirect_self_harm": 0, "gradual_escalation_patterns": 0, "emotional_distress_indicators": 0,
            "illegal": 1, "tags": [], "relevant_app_skills": ["files.delete"], "relevant_app_focus_modes": [],
            "relevant_app_settings_and_memories": [],
        }),
    );
    let open = async |strict: bool| {
        let mut parts = parts_with_tools(&place, &model, &tools, vec![]).await;
        parts.models = parts.models.with_small(Arc::clone(&small) as _);
        parts.settings.processing.enrich = false;
        if strict {
            parts.safety.rules.replace(
                Harm::Illegal,
                Measure::Turn,
                &[(0.0, SafetyAction::RefuseAndRedirect)],
            );
        }
        Engine::open(parts).await.unwrap()
    };
    let engine = open(false).await;
    let request = asked(&engine, ID, "r1", "call files.delete {\"path\":\"/a\"}").await;
    stop(engine).await;
    // From now on everything is refused, but not what somebody approved.
    let engine = open(true).await;
    let alice_session = session(&engine, ID);
    let turn = alice_session.decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    let answer = turn.finish().await.unwrap();
    assert!(answer.content.contains("content of /a"), "{}", answer.content);
    assert_eq!(runs(&tools), 1);
    // It goes on as it was prepared, and nobody is asked again.
    let prepared = answer.metadata.preparation.unwrap();
    assert_eq!((prepared.by, prepared.language_code.as_str()), (PreparedBy::Model, "de"));
    assert_eq!(small.asked("prepare_turn").len(), 1);
    let refused = alice_session.turn(says("hello")).finish().await.unwrap();
    assert!(refused.metadata.safety.contains(&SafetyAction::RefuseAndRedirect));
}

async fn a_turn_that_goes_on_later_has_what_it_was_given_and_forgets_settings(place: Place) {
    let (model, tools, small) = (Caller::new(), Arc::new(Counting::default()), Small::new());
    small.says("enrich_turn", serde_json::json!({ "chat_summary": "They live in Markerville." }));
    let open = async || {
        let mut parts = parts_with_tools(&place, &model, &tools, vec![]).await;
        parts.models = parts.models.with_small(Arc::clone(&small) as _);
        parts.settings.processing.prepare = false;
        Engine::open(parts).await.unwrap()
    };
    let engine = open().await;
    session(&engine, ID).turn(says("I was born in Marienbad.")).finish().await.unwrap();
    engine.settle().await;
    let summed_up = small.asked("enrich_turn").len();
    assert_eq!(summed_up, 1);
    // A new beginning: nothing from before is looked at.
    let since = SystemClock.now();
    let given = |id: &str, query: &str| TurnRequest {
        restore: Some(Restore { since, messages: 0 }),
        sampling: Sampling { temperature: Some(0.25), ..Sampling::default() },
        settings: std::collections::BTreeMap::from([("home".to_owned(), "Markerville".to_owned())]),
        ..says_as(id, query)
    };
    let last = || model.prompts.lock().unwrap().last().cloned().unwrap();
    let is_as_given =
        |prompt: &Prompt| prompt.history.is_empty() && prompt.sampling.temperature == Some(0.25);
    let request = given("r1", "call files.delete {\"path\":\"/a\"}");
    let Ending::Approval(asked) = session(&engine, ID).turn(request).end().await.unwrap() else { panic!() };
    assert!(is_as_given(&last()));
    stop(engine).await;
    let engine = open().await;
    let alice_session = session(&engine, ID);
    let turn = alice_session.decide(&asked.approval_id, Decision::Approve, alice(), CarryOut::Here);
    turn.finish().await.unwrap();
    assert!(is_as_given(&last()), "after an approval");
    engine.settle().await;
    assert_eq!(
        small.asked("enrich_turn").len(),
        summed_up,
        "nothing is made of words that may hold a setting"
    );
    // The same for one that was cut off before it had called anything.
    let stopped = model.gate.acquire_many(1_000_000).await.unwrap();
    let seen = model.prompts.lock().unwrap().len();
    drop(alice_session.turn(given("r2", "and now?")));
    while model.prompts.lock().unwrap().len() == seen {
        tokio::task::yield_now().await;
    }
    engine.stop(std::time::Duration::ZERO).await;
    drop(stopped);
    let engine = open().await;
    assert_eq!(engine.recover().await.unwrap().resumed, 1);
    let prompt = last();
    assert!(prompt.sampling.temperature == Some(0.25));
    assert!(!prompt.history.iter().any(|message| message.text.contains("Marienbad")), "after a restart");
}

async fn a_turn_without_memory_ends_with_whoever_listens(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    model.shut();
    let turn = engine.turn_without_memory(None, says("hello"));
    model.until(1).await;
    assert_eq!(engine.counts().running, 1);
    drop(turn);
    while engine.counts().running > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(engine.counts().cancelled, 1);
    model.open();
    assert!(engine.turn_without_memory(None, says("hello")).finish().await.is_ok());
}
