//! Promise 5, accepted is never lost, answered is never doubled.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use confidant_engine::turn::{Ending, MemoryState};
use confidant_engine::{Error, Recovered, Recovery, Settings, Turn};

use crate::rig::tools::{Caller, Counting, engine_with_tools};
use crate::rig::*;

on_every_store! {
    promise_5_a_turn_that_was_cut_off_is_answered_once,
    promise_5_a_turn_that_was_cut_off_is_reported_once,
    promise_5_a_retry_gets_the_recorded_answer,
    promise_5_two_processes_keep_order_and_lose_nothing,
    promise_5_a_turn_that_failed_can_be_tried_again,
    promise_5_a_client_that_goes_away_does_not_take_its_turn_along,
    promise_5_stopping_finishes_or_parks,
    promise_5_a_turn_that_ends_every_process_is_not_tried_for_ever,
    promise_5_turns_that_were_left_are_taken_up_side_by_side,
    promise_6_what_was_erased_elsewhere_is_not_told_again,
    promise_5_what_went_on_elsewhere_is_known_here,
}

const ID: &str = "http:r:main:alice";

/// Cuts a turn off: the engine is gone, its turn is open.
async fn cut_off(place: &Place, model: &Arc<Recorder>) {
    let engine = place.engine(model).await;
    session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap();
    // It is told before its task ends.
    while engine.counts().running > 0 {
        tokio::task::yield_now().await;
    }
    model.shut();
    model.take();
    drop(session(&engine, ID).turn(says_as("r2", "two")));
    model.until(1).await;
    assert_eq!(engine.stop(Duration::ZERO).await.parked, 1);
    model.open();
}

async fn promise_5_a_turn_that_was_cut_off_is_answered_once(place: Place) {
    let model = Recorder::new();
    cut_off(&place, &model).await;
    let engine = place.engine(&model).await;
    assert_eq!(engine.recover().await.unwrap(), Recovered { resumed: 1, ..Recovered::default() });
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    let whole = ["human:one", "ai:noted: one", "human:two", "ai:noted: two"];
    assert_eq!(transcript(&engine, ID).await, whole);
    // The client that was cut off asks again and gets the answer that was recorded.
    let answer = session(&engine, ID).turn(says_as("r2", "two")).finish().await.unwrap();
    assert!(answer.metadata.replayed && answer.content == "noted: two");
    assert_eq!(transcript(&engine, ID).await, whole);
    stop(engine).await;
    // Without a recovery, the next turn of the session takes it up first.
    model.take();
    cut_off_again(&place, &model).await;
    let engine = place.engine(&model).await;
    session(&engine, ID).turn(says_as("r4", "four")).finish().await.unwrap();
    let all = transcript(&engine, ID).await;
    assert_eq!(all[4..], ["human:three", "ai:noted: three", "human:four", "ai:noted: four"]);
}

async fn cut_off_again(place: &Place, model: &Arc<Recorder>) {
    let engine = place.engine(model).await;
    model.shut();
    drop(session(&engine, ID).turn(says_as("r3", "three")));
    model.until(1).await;
    engine.stop(Duration::ZERO).await;
    model.open();
}

async fn promise_5_a_turn_that_was_cut_off_is_reported_once(place: Place) {
    let model = Recorder::new();
    cut_off(&place, &model).await;
    let settings = Settings { recovery: Recovery::Report, ..Settings::default() };
    let engine = place.engine_with(&model, settings).await;
    let mut notices = engine.notices();
    assert_eq!(engine.recover().await.unwrap(), Recovered { reported: 1, ..Recovered::default() });
    // Whoever listens for it is told.
    let notice = notices.try_recv().unwrap();
    assert!(notice.request_id == "r2" && matches!(notice.outcome, Err(Error::Interrupted)));
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    assert_eq!(transcript(&engine, ID).await, ["human:one", "ai:noted: one", "human:two"]);
    let export = session(&engine, ID).export().await.unwrap().unwrap();
    assert_eq!(export.messages[2].unanswered.as_deref(), Some("interrupted"));
}

async fn promise_5_a_retry_gets_the_recorded_answer(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let first = session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap();
    // At once, twenty times side by side, and after a restart.
    let alice = session(&engine, ID);
    let retries: Vec<Turn> = (0..20).map(|_| alice.turn(says_as("r1", "one"))).collect();
    for retry in retries {
        let answer = retry.finish().await.unwrap();
        assert_eq!((answer.content.as_str(), answer.metadata.replayed), (first.content.as_str(), true));
    }
    stop(engine).await;
    let engine = place.engine(&model).await;
    assert!(session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap().metadata.replayed);
    assert_eq!((model.take().len(), transcript(&engine, ID).await.len()), (1, 2));
}

/// Two engines on one store, as two processes are: same session, same request ids, all at once.
async fn promise_5_two_processes_keep_order_and_lose_nothing(place: Place) {
    let model = Recorder::new();
    let engines = [place.engine(&model).await, place.engine(&model).await];
    let mut tasks = Vec::new();
    for (side, engine) in engines.iter().enumerate() {
        for lane in 0..3 {
            let alice = session(engine, ID);
            tasks.push(tokio::spawn(async move {
                for i in 0..8 {
                    // Lane 0 asks the same on both sides: one of them gets the other's answer.
                    let id = if lane == 0 { format!("both-{i}") } else { format!("{side}-{lane}-{i}") };
                    let answer = alice.turn(says_as(&id, &id)).finish().await.unwrap();
                    assert_eq!(answer.content, format!("noted: {id}"));
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    for engine in &engines {
        let all = transcript(engine, ID).await;
        let queries: Vec<&str> = all.iter().filter_map(|line| line.strip_prefix("human:")).collect();
        assert_eq!((queries.len(), all.len()), (40, 80));
        for (i, query) in queries.iter().enumerate() {
            assert_eq!(all[2 * i + 1], format!("ai:noted: {query}"));
        }
        // Each asker's own order is the log's order.
        for lane in ["0-1", "0-2", "1-1", "1-2", "both"] {
            let own: Vec<&&str> = queries.iter().filter(|query| query.starts_with(lane)).collect();
            let expected: Vec<String> = (0..8).map(|i| format!("{lane}-{i}")).collect();
            assert_eq!(
                own,
                expected.iter().map(String::as_str).collect::<Vec<_>>().iter().collect::<Vec<_>>()
            );
        }
    }
    assert_eq!(model.take().len(), 40, "a request was answered twice");
}

async fn promise_5_a_turn_that_failed_can_be_tried_again(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    model.broken.store(true, Ordering::SeqCst);
    let error = session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap_err();
    assert_eq!(error.code(), "model_failed");
    model.broken.store(false, Ordering::SeqCst);
    session(&engine, ID).turn(says_as("r2", "two")).finish().await.unwrap();
    assert!(model.last().contains("Human: one"), "what the person said counts, answered or not");
    let answer = session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap();
    assert!(answer.metadata.resumed);
    // The answer stands by its question, though it came later.
    let whole = ["human:one", "ai:noted: one", "human:two", "ai:noted: two"];
    assert_eq!(transcript(&engine, ID).await, whole);
}

async fn promise_5_a_client_that_goes_away_does_not_take_its_turn_along(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    drop(session(&engine, ID).turn(says_as("r1", "one")));
    let answer = session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap();
    assert_eq!((answer.content.as_str(), model.take().len()), ("noted: one", 1));
}

async fn promise_5_stopping_finishes_or_parks(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    model.shut();
    let turn = session(&engine, ID).turn(says("one"));
    model.until(1).await;
    let stopping = tokio::spawn({
        let engine = engine.clone();
        async move { engine.stop(Duration::from_secs(120)).await }
    });
    // A turn that comes before the stop hangs like the first; one that comes after is refused at once.
    loop {
        let late = session(&engine, "http:r:main:bob").turn(says("late")).finish();
        match tokio::time::timeout(Duration::from_millis(200), late).await {
            Err(_) => {}
            Ok(refused) => break assert!(matches!(refused, Err(Error::Stopping))),
        }
    }
    model.open();
    assert_eq!(turn.finish().await.unwrap().content, "noted: one");
    assert_eq!(stopping.await.unwrap().parked, 0);
}

async fn promise_6_what_was_erased_elsewhere_is_not_told_again(place: Place) {
    let model = Recorder::new();
    let (here, there) = (place.engine(&model).await, place.engine(&model).await);
    let alice = session(&here, ID);
    alice.turn(says_as("r1", "one")).finish().await.unwrap();
    session(&there, ID).erase().await.unwrap();
    // It is warm here, and it is gone.
    let answer = alice.turn(says_as("r1", "one")).finish().await.unwrap();
    assert!(!answer.metadata.replayed, "the recorded answer was erased");
    assert_eq!((answer.metadata.memory, model.take().len()), (MemoryState::Kept, 2));
    session(&there, ID).erase().await.unwrap();
    // The id is free for another query, too.
    let answer = alice.turn(says_as("r1", "another one")).finish().await.unwrap();
    assert_eq!(answer.content, "noted: another one");
    assert!(!session(&there, ID).amend("never", "x").await.unwrap());
}

async fn promise_5_what_went_on_elsewhere_is_known_here(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let here = engine_with_tools(&place, &model, &tools, vec![]).await;
    let there = engine_with_tools(&place, &model, &tools, vec![]).await;
    let delete = "call files.delete {\"path\":\"/a\"}";
    let (alice, elsewhere) = (session(&here, ID), session(&there, ID));
    assert!(matches!(alice.turn(says_as("r1", delete)).end().await.unwrap(), Ending::Approval(_)));
    // Decided and carried out there; a retry here gets the answer and not the question.
    let told = elsewhere.turn(says("approve")).finish().await.unwrap();
    let answer = alice.turn(says_as("r1", delete)).finish().await.unwrap();
    assert_eq!((answer.content, answer.metadata.replayed), (told.content, true));
    // Asked there; the words that decide it are understood here.
    assert!(matches!(elsewhere.turn(says_as("r2", delete)).end().await.unwrap(), Ending::Approval(_)));
    assert!(alice.turn(says("approve")).finish().await.unwrap().content.contains("content of /a"));
    // Said there, changed here.
    elsewhere.turn(says_as("r3", "my name is Bob")).finish().await.unwrap();
    assert!(alice.amend("r3", "my name is Alice").await.unwrap());
}

async fn promise_5_a_turn_that_ends_every_process_is_not_tried_for_ever(place: Place) {
    let model = Recorder::new();
    model.shut();
    for _ in 0..3 {
        // Somebody asks for it, and the process ends; it is not recovered, but asked for again.
        let engine = place.engine(&model).await;
        drop(session(&engine, ID).turn(says_as("r1", "poison")));
        model.until(1).await;
        model.take();
        engine.stop(Duration::ZERO).await;
    }
    let engine = place.engine(&model).await;
    for _ in 0..3 {
        let outcome = session(&engine, ID).turn(says_as("r1", "poison")).finish().await;
        assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
    }
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    assert!(model.take().is_empty(), "no model saw it again");
    model.open();
    assert!(session(&engine, ID).turn(says_as("r2", "hello")).finish().await.is_ok());
}

async fn promise_5_turns_that_were_left_are_taken_up_side_by_side(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    model.shut();
    for n in 0..5 {
        drop(session(&engine, &format!("http:r:main:alice{n}")).turn(says_as("r1", "one")));
    }
    model.until(5).await;
    engine.stop(Duration::ZERO).await;
    model.take();
    // No answer comes, and yet all are asked for.
    let engine = place.engine(&model).await;
    let recovering = tokio::spawn({
        let engine = engine.clone();
        async move { engine.recover().await.unwrap() }
    });
    model.until(5).await;
    model.open();
    assert_eq!(recovering.await.unwrap(), Recovered { resumed: 5, ..Recovered::default() });
}
