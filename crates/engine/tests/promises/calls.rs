//! The promises where tools are called: no call is made twice or lost (5 and 9), a turn without memory has no more rights
//! than its person (8), and what was looked up in private stays there (10).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use confidant_engine::approval::{Approver, Decision};
use confidant_engine::model::Calling;
use confidant_engine::room::Audience;
use confidant_engine::tools::Verdict;
use confidant_engine::turn::{CarryOut, MemoryState, Outbound};
use confidant_engine::{Engine, Error, TurnRequest};

use crate::rig::processing::Small;
use crate::rig::tools::*;
use crate::rig::*;

on_every_store! {
    promise_9_an_answer_that_is_made_again_calls_nothing_again,
    promise_5_a_model_that_fails_after_a_call_does_not_lose_the_call,
    promise_5_a_turn_that_is_cancelled_after_a_call_is_not_taken_up_again,
    promise_5_a_call_that_changes_something_is_not_made_twice_after_a_crash,
    promise_10_what_tools_said_in_private_is_not_told_to_a_room,
    promise_10_holds_for_what_a_model_looks_up,
}

const ID: &str = "http:r:main:alice";
const READ: &str = "call files.read {\"path\":\"/a\"}";
const WRITE: &str = "call files.write {\"path\":\"/a\"}";

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

async fn promise_9_an_answer_that_is_made_again_calls_nothing_again(place: Place) {
    let (model, tools, small) = (Caller::new(), Arc::new(Counting::default()), Small::new());
    let approve =
        Verdict::Approve { approvers: vec![Approver::Asker], expires: std::time::Duration::from_secs(60) };
    let mut parts = parts_with_tools(&place, &model, &tools, vec![rule("files.write", approve)]).await;
    parts.models = parts.models.with_small(Arc::clone(&small) as _);
    parts.settings.processing.reprocess_at = Some(7.0);
    let engine = Engine::open(parts).await.unwrap();
    // Every answer is judged harmful: it is made twice, and then refused.
    small.says("enrich_turn", serde_json::json!({ "harmful_response": 9 }));
    let request = asked(&engine, ID, "r1", WRITE).await;
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

async fn promise_5_a_model_that_fails_after_a_call_does_not_lose_the_call(place: Place) {
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
    assert!(answer.content.contains("I had already called files.write"), "{}", answer.content);
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
    assert!(prompt.history.iter().any(|message| message.text.contains("I had already called files.write")));
}

async fn promise_5_a_turn_that_is_cancelled_after_a_call_is_not_taken_up_again(place: Place) {
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
    let request = asked(&engine, ID, "r2", delete).await;
    let deciding = alice_session.decide(&request.approval_id, Decision::Approve, alice(), CarryOut::Here);
    while tools.began.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(alice_session.cancel(Some("r2")).await.unwrap(), 1);
    assert!(matches!(deciding.finish().await, Err(Error::Cancelled)));
    tools.hangs.store(false, Ordering::SeqCst);
    assert!(matches!(alice_session.turn(says_as("r2", delete)).finish().await, Err(Error::Cancelled)));
    let next = asked(&engine, ID, "r3", delete).await;
    assert_eq!((next.arguments["path"].as_str(), runs(&tools)), (Some("/a"), 2));
}

async fn promise_5_a_call_that_changes_something_is_not_made_twice_after_a_crash(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    tools.hangs.store(true, std::sync::atomic::Ordering::SeqCst);
    drop(session(&engine, ID).turn(says_as("r1", "call files.write {\"path\":\"/a\"}")));
    while tools.began.load(std::sync::atomic::Ordering::SeqCst) < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    engine.stop(Duration::ZERO).await;
    tools.hangs.store(false, std::sync::atomic::Ordering::SeqCst);
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    assert_eq!(engine.recover().await.unwrap().resumed, 1);
    let answer = session(&engine, ID)
        .turn(says_as("r1", "call files.write {\"path\":\"/a\"}"))
        .finish()
        .await
        .unwrap();
    assert!(answer.content.contains("whether it was done is not known"), "{}", answer.content);
    assert_eq!(tools.runs.lock().unwrap().values().copied().collect::<Vec<_>>(), [1]);
}

/// What tools said to a private question is told in private alone.
async fn promise_10_what_tools_said_in_private_is_not_told_to_a_room(place: Place) {
    let (model, _, engine) = setting(&place).await;
    let alice = session(&engine, "discord_conv:alice");
    alice.turn(private("call files.read {\"path\":\"/ledger\"}")).finish().await.unwrap();
    for (audience, told) in [(Audience::Private, true), (Audience::Room, false)] {
        let request = TurnRequest { audience: Some(audience), ..says("what was in it?") };
        alice.turn(request).finish().await.unwrap();
        let prompt = model.prompts.lock().unwrap().last().cloned().unwrap();
        assert_eq!(prompt.blocks.iter().any(|block| block.label == "tool_results"), told, "{audience:?}");
    }
}

async fn promise_10_holds_for_what_a_model_looks_up(place: Place) {
    let model = Caller::new();
    let (_engine, alice) = long_talk(&place, &model).await;
    let ask = "call memory.search {\"query\":\"teapot code\"}";
    let answer = alice.turn(private(ask)).finish().await.unwrap();
    assert!(answer.content.contains("kestrel-nine"), "{}", answer.content);
    let public = TurnRequest { audience: Some(Audience::Room), ..says(ask) };
    let answer = alice.turn(public).finish().await.unwrap();
    assert!(!answer.content.contains("kestrel"), "{}", answer.content);
}
