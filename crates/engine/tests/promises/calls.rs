//! Calls in turns that do not run straight through: without a log, judged and made again, failed half-way, cut off.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use confidant_engine::*;

use crate::on_every_store;
use crate::processing::Small;
use crate::rig::*;
use crate::tools::{Caller, Counting, engine_with_tools, parts_with_tools, rule};

on_every_store! {
    a_turn_without_memory_has_no_right_that_its_tenant_or_person_has_not,
    an_answer_that_is_made_again_calls_nothing_again,
    a_model_that_fails_after_a_call_does_not_lose_the_call,
    a_turn_that_is_cancelled_after_a_call_is_not_taken_up_again,
    work_that_was_begun_is_not_refused_afterwards,
    a_turn_that_goes_on_later_has_what_it_was_given_and_forgets_settings,
    a_turn_without_memory_ends_with_whoever_listens,
}

const ID: &str = "http:r:main:alice";
const READ: &str = "call files.read {\"path\":\"/a\"}";
const WRITE: &str = "call files.write {\"path\":\"/a\"}";

fn runs(tools: &Counting) -> usize {
    tools.runs.lock().unwrap().values().sum()
}

fn of_tenant(tenant: &str, rule: ToolRule) -> ToolRule {
    ToolRule { tenant: Some(tenant.to_owned()), ..rule }
}

fn of_users(users: &[&str], rule: ToolRule) -> ToolRule {
    ToolRule { users: Some(users.iter().map(|user| (*user).to_owned()).collect()), ..rule }
}

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_8_a_turn_whose_log_does_not_open_has_the_rights_of_its_person() {
    let place = Place::sqlite();
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let policy = || {
        vec![
            of_tenant("acme", rule("files.secret", Verdict::Deny)),
            of_users(&["alice"], rule("files.read", Verdict::Deny)),
        ]
    };
    let engine = engine_with_tools(&place, &model, &tools, policy()).await;
    session(&engine, ID).turn(says("hello")).finish().await.unwrap();
    stop(engine).await;
    rusqlite::Connection::open(place.file("confidant.db"))
        .unwrap()
        .execute_batch("UPDATE records SET sealed = zeroblob(200) WHERE log IS NOT NULL")
        .unwrap();
    let engine = engine_with_tools(&place, &model, &tools, policy()).await;
    for query in [READ, WRITE, "call files.secret {\"path\":\"/a\"}", "call files.delete {\"path\":\"/a\"}"] {
        let answer = session(&engine, ID).turn(says(query)).finish().await.unwrap();
        assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
        assert!(answer.content.contains("Not called"), "{query}: {}", answer.content);
    }
    assert_eq!(runs(&tools), 0);
}

async fn asked(engine: &Engine, request: &str, query: &str) -> ApprovalRequest {
    match session(engine, ID).turn(says_as(request, query)).end().await.unwrap() {
        Ending::Approval(request) => *request,
        Ending::Answer(answer) => panic!("answered: {}", answer.content),
    }
}

fn alice() -> Decider {
    Decider::Person("alice".into())
}

async fn an_answer_that_is_made_again_calls_nothing_again(place: Place) {
    let (model, tools, small) = (Caller::new(), Arc::new(Counting::default()), Small::new());
    let approve =
        Verdict::Approve { approvers: vec![Approver::Asker], expires: std::time::Duration::from_secs(60) };
    let mut parts = parts_with_tools(&place, &model, &tools, vec![rule("files.write", approve)]).await;
    parts.models = parts.models.with_small(Arc::clone(&small) as _);
    parts.settings.processing.reprocess_at = Some(7.0);
    let engine = Engine::open(parts).await.unwrap();
    // Every answer is judged harmful: it is made twice, and then refused.
    small.says("enrich_turn", serde_json::json!({ "harmful_response": 9 }));
    let request = asked(&engine, "r1", WRITE).await;
    let alice_session = session(&engine, ID);
    let turn = alice_session.decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    let answer = turn.finish().await.unwrap();
    assert_eq!(answer.metadata.model.as_deref(), Some("confidant"));
    assert_eq!(
        (runs(&tools), tools.seen.lock().unwrap().len()),
        (1, 1),
        "what was approved once is called once"
    );
    assert_eq!(answer.metadata.tools, ["files.write"]);
    let last = model.prompts.lock().unwrap().last().cloned().unwrap();
    assert!(last.system.contains("judged harmful"));
    assert_eq!((last.steps.len(), last.calling), (1, Calling::Over));
    assert!(last.steps[0].text.is_empty(), "the words of the first draft are not given back");
    // The log has the call, though the answer was refused.
    let export = alice_session.export().await.unwrap().unwrap();
    assert!(export.messages.iter().any(|message| message.name.as_deref() == Some("files.write")));
    // What only looks is not looked at twice either.
    alice_session.turn(says(READ)).finish().await.unwrap();
    assert_eq!(runs(&tools), 2);
}

async fn a_model_that_fails_after_a_call_does_not_lose_the_call(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    let alice_session = session(&engine, ID);
    model.broken.store(true, Ordering::SeqCst);
    // Where nothing was done, it is a failure like any other.
    assert!(matches!(alice_session.turn(says_as("r0", READ)).finish().await, Err(Error::Model(_))));
    let mut turn = alice_session.turn(says_as("r1", WRITE));
    let (mut heard, mut last) = (String::new(), None);
    while let Some(event) = turn.next().await {
        match event {
            Outbound::Delta { text, .. } => heard.push_str(&text),
            Outbound::Final(answer) => last = Some(answer),
            Outbound::Error(error) => panic!("{error}"),
            _ => {}
        }
    }
    // The person hears what was done, at once and when they ask again.
    let answer = last.unwrap();
    assert!(answer.content.contains("I had called files.write"), "{}", answer.content);
    assert_eq!(
        (answer.metadata.tools.as_slice(), heard.as_str()),
        (&["files.write".to_owned()][..], &*answer.content)
    );
    model.broken.store(false, Ordering::SeqCst);
    let again = alice_session.turn(says_as("r1", WRITE)).finish().await.unwrap();
    assert!(again.metadata.replayed && again.content == answer.content);
    assert_eq!(runs(&tools), 2, "one look, one write");
    let export = alice_session.export().await.unwrap().unwrap();
    assert!(export.messages.iter().any(|message| message.name.as_deref() == Some("files.write")));
    // The next turn knows of it.
    alice_session.turn(says("what now?")).finish().await.unwrap();
    let prompt = model.prompts.lock().unwrap().last().cloned().unwrap();
    assert!(prompt.history.iter().any(|message| message.text.contains("I had called files.write")));
}

async fn a_turn_that_is_cancelled_after_a_call_is_not_taken_up_again(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    let alice_session = session(&engine, ID);
    let stopped = model.gate.acquire_many(1_000_000).await.unwrap();
    let turn = alice_session.turn(says_as("r1", WRITE));
    while model.prompts.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(alice_session.cancel(Some("r1")).await.unwrap(), 1);
    assert!(matches!(turn.finish().await, Err(Error::Cancelled)));
    drop(stopped);
    assert!(matches!(alice_session.turn(says_as("r1", WRITE)).finish().await, Err(Error::Cancelled)));
    assert_eq!((runs(&tools), model.prompts.lock().unwrap().len()), (1, 2));
    // An approval that was given for a turn that was cancelled is not given for the next.
    tools.hangs.store(true, Ordering::SeqCst);
    let delete = "call files.delete {\"path\":\"/a\"}\ncall files.delete {\"path\":\"/b\"}";
    let request = asked(&engine, "r2", delete).await;
    let deciding = alice_session.decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    while tools.began.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(alice_session.cancel(Some("r2")).await.unwrap(), 1);
    assert!(matches!(deciding.finish().await, Err(Error::Cancelled)));
    tools.hangs.store(false, Ordering::SeqCst);
    assert!(matches!(alice_session.turn(says_as("r2", delete)).finish().await, Err(Error::Cancelled)));
    let next = asked(&engine, "r3", delete).await;
    assert_eq!((next.arguments["path"].as_str(), runs(&tools)), (Some("/a"), 2));
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
    let request = asked(&engine, "r1", "call files.delete {\"path\":\"/a\"}").await;
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
