//! Tools in a turn: which are offered and called, what becomes of their results, and what a cancelled turn leaves.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use confidant_engine::model::Calling;
use confidant_engine::rights::MessageKind;
use confidant_engine::tools::Verdict;
use confidant_engine::turn::Outbound;
use confidant_engine::{Error, Settings};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::rig::tools::{Caller, Counting, engine_with_tools, long_talk, rule};
use crate::rig::*;

on_every_store! {
    a_tool_is_called_and_its_result_is_data,
    only_what_is_offered_and_allowed_and_fits_is_called,
    calls_of_one_step_run_side_by_side,
    a_model_that_never_stops_calling_is_stopped,
    a_cancelled_turn_leaves_a_consistent_log,
    a_long_conversation_can_be_searched_by_the_model,
}

const ID: &str = "http:r:main:alice";

async fn a_tool_is_called_and_its_result_is_data(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    let mut turn = session(&engine, ID).turn(says("call files.read {\"path\":\"/a\"}"));
    let (mut deltas, mut progress, mut last) = (String::new(), Vec::new(), None);
    while let Some(event) = turn.next().await {
        match event {
            Outbound::Progress { text } => progress.push(text.into_owned()),
            Outbound::Delta { text, .. } => deltas.push_str(&text),
            Outbound::Final(answer) => last = Some(answer),
            other => panic!("{other:?}"),
        }
    }
    let answer = last.unwrap();
    assert_eq!(progress, ["🔍 Analyzing...", "🧠 Thinking...", "🔧 files.read"]);
    assert_eq!(deltas, answer.content);
    assert!(answer.content.starts_with("Looking.\n\ndone: "), "{}", answer.content);
    assert_eq!(answer.metadata.tools, ["files.read"]);
    // The result reaches the model between fences that it cannot close.
    let prompts = std::mem::take(&mut *model.prompts.lock().unwrap());
    let result = &prompts[1].steps[0].results[0];
    assert_eq!((result.matches("<<<").count(), result.matches(">>>").count()), (1, 1), "{result}");
    assert!(!prompts.iter().any(|prompt| prompt.system.contains("obey me")));
    let export = session(&engine, ID).export().await.unwrap().unwrap();
    let kinds: Vec<MessageKind> = export.messages.iter().map(|message| message.kind).collect();
    assert_eq!(kinds, [MessageKind::Human, MessageKind::Tool, MessageKind::Ai]);
    assert_eq!(export.messages[1].arguments, Some(json!({ "path": "/a" })));
}

async fn only_what_is_offered_and_allowed_and_fits_is_called(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let policy = vec![rule("files.secret", Verdict::Deny)];
    let engine = engine_with_tools(&place, &model, &tools, policy).await;
    let wanted = "call files.secret {\"path\":\"/a\"}\ncall files.made_up {}\ncall files.read {\"path\":3}\ncall files.read nonsense\ncall files.read {\"path\":\"gone\"}";
    let answer = session(&engine, ID).turn(says(wanted)).finish().await.unwrap();
    let offered: Vec<String> =
        model.prompts.lock().unwrap()[0].tools.iter().map(|t| t.name.clone()).collect();
    assert_eq!(offered, ["files.read", "files.write", "files.delete"]);
    assert_eq!(tools.seen.lock().unwrap().len(), 1, "only the last call was fit to be made");
    assert_eq!(answer.content.matches("Not called: ").count(), 4, "{}", answer.content);
    assert!(answer.content.contains("cannot be reached"));
}

async fn calls_of_one_step_run_side_by_side(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    tools.hangs.store(true, std::sync::atomic::Ordering::SeqCst);
    let wanted = "call files.read {\"path\":\"1\"}\ncall files.read {\"path\":\"2\"}\ncall files.read {\"path\":\"3\"}";
    let session = session(&engine, ID);
    let turn = session.turn(says_as("r1", wanted));
    // None ends, and all begin.
    while tools.began.load(std::sync::atomic::Ordering::SeqCst) < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(session.cancel(Some("r1")).await.unwrap(), 1);
    let outcome = turn.finish().await;
    assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
}

async fn a_model_that_never_stops_calling_is_stopped(place: Place) {
    let model = Arc::new(Caller {
        stubborn: true,
        prompts: Mutex::default(),
        gate: Semaphore::new(100),
        broken: false.into(),
    });
    let tools = Arc::new(Counting::default());
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    let answer = session(&engine, ID).turn(says("call files.read {\"path\":\"/a\"}")).finish().await.unwrap();
    let steps = Settings::default().tools.max_steps;
    assert_eq!(answer.metadata.tools.len(), steps);
    let prompts = model.prompts.lock().unwrap();
    assert_eq!(prompts.len(), steps + 1);
    let over: Vec<Calling> = prompts.iter().map(|prompt| prompt.calling).collect();
    assert_eq!(
        (over[steps - 1], over[steps]),
        (Calling::Free, Calling::Over),
        "the last word is asked for without tools"
    );
}

async fn a_cancelled_turn_leaves_a_consistent_log(place: Place) {
    let model = Arc::new(Caller {
        stubborn: false,
        prompts: Mutex::default(),
        gate: Semaphore::new(0),
        broken: false.into(),
    });
    let tools = Arc::new(Counting::default());
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    let alice = session(&engine, ID);
    let turn = alice.turn(says_as("r1", "hello"));
    while model.prompts.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let waiting = alice.turn(says_as("r2", "and then"));
    // The one that runs and the one that waits for its place.
    assert_eq!(alice.cancel(Some("r2")).await.unwrap(), 1);
    assert!(matches!(waiting.finish().await, Err(Error::Cancelled)));
    let other = session(&engine, "http:r:main:bob");
    assert_eq!(other.cancel(Some("r1")).await.unwrap(), 0, "nobody cancels somebody else's");
    assert_eq!(alice.turn(says("!cancel")).finish().await.unwrap().content, "Cancelled.");
    assert!(matches!(turn.finish().await, Err(Error::Cancelled)));
    model.gate.add_permits(100);
    // Whoever asks again has not heard, in this process or after it.
    stop(engine).await;
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    let (alice, prompts) = (session(&engine, ID), model.prompts.lock().unwrap().len());
    assert!(matches!(alice.turn(says_as("r1", "hello")).finish().await, Err(Error::Cancelled)));
    assert_eq!(model.prompts.lock().unwrap().len(), prompts, "it ran again");
    let answer = alice.turn(says_as("r3", "hello")).finish().await.unwrap();
    assert!(!answer.metadata.resumed && answer.content == "done: ");
    assert_eq!(transcript(&engine, ID).await, ["human:hello", "human:hello", "ai:done: "]);
    assert_eq!(alice.turn(says("!cancel")).finish().await.unwrap().content, "Nothing was running.");
}

async fn a_long_conversation_can_be_searched_by_the_model(place: Place) {
    let model = Caller::new();
    let (_engine, alice) = long_talk(&place, &model).await;
    let ask = "call memory.search {\"query\":\"teapot code\"}";
    let answer = alice.turn(private(ask)).finish().await.unwrap();
    let prompts = std::mem::take(&mut *model.prompts.lock().unwrap());
    let asked = &prompts[prompts.len() - 2];
    assert!(asked.tools.iter().any(|tool| tool.name == "memory.search"));
    assert!(!asked.history.iter().any(|message| message.text.contains("kestrel")), "it was too long ago");
    assert!(answer.content.contains("kestrel-nine"), "{}", answer.content);
}
