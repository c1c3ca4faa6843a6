//! Turns that follow each other: in which order they are kept, what becomes of one that has no answer, and what of an earlier
//! one reaches the next prompt.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use confidant_engine::audit::Action;
use confidant_engine::clock::{ManualClock, Millis};
use confidant_engine::model::fresh_fence;
use confidant_engine::turn::Standing;
use confidant_engine::{Actor, Engine, HistoryLimits, Parts, Recovered, Settings, Turn};

use crate::rig::tools::{Caller, Counting, engine_with_tools, parts_with_tools};
use crate::rig::*;

on_every_store! {
    turns_that_are_sent_in_a_row_are_kept_in_that_order,
    a_question_that_was_called_off_before_it_was_accepted_is_never_run,
    a_question_that_waits_in_another_process_can_be_called_off,
    a_question_without_an_answer_does_not_run_into_the_next,
    what_tools_said_earlier_is_recalled_as_data,
    a_turn_waits_for_the_one_before_it,
    a_request_id_names_one_query,
    a_cold_session_is_opened_once,
}

const ID: &str = "http:r:main:alice";

async fn turns_that_are_sent_in_a_row_are_kept_in_that_order(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    for round in 0..3 {
        let turns: Vec<Turn> =
            (0..8).map(|n| session(&engine, ID).turn(says(&format!("{round} {n}")))).collect();
        for turn in turns {
            turn.finish().await.unwrap();
        }
    }
    let human = transcript(&engine, ID)
        .await
        .into_iter()
        .filter_map(|line| line.strip_prefix("human:").map(str::to_owned));
    let sent: Vec<String> = (0..3).flat_map(|round| (0..8).map(move |n| format!("{round} {n}"))).collect();
    assert_eq!(human.collect::<Vec<_>>(), sent);
}

async fn a_question_that_was_called_off_before_it_was_accepted_is_never_run(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    model.shut();
    let running = session(&engine, ID).turn(says_as("r1", "one"));
    model.until(1).await;
    let waiting = session(&engine, ID).turn(says_as("r2", "transfer it all"));
    assert_eq!(session(&engine, ID).cancel(Some("r2")).await.unwrap(), 1);
    assert_eq!(waiting.finish().await.unwrap_err().code(), "cancelled");
    model.open();
    // The one that runs is not disturbed by the note.
    assert_eq!(running.finish().await.unwrap().content, "noted: one");
    let standing = session(&engine, ID).standing("r2").await.unwrap();
    assert!(matches!(standing, Standing::Failed(why) if why == "cancelled"));
    // Whoever sends it again has not heard. Also after a restart.
    let again = session(&engine, ID).turn(says_as("r2", "transfer it all"));
    assert_eq!(again.finish().await.unwrap_err().code(), "cancelled");
    stop(engine).await;
    let engine = place.engine(&model).await;
    let again = session(&engine, ID).turn(says_as("r2", "transfer it all"));
    assert_eq!(again.finish().await.unwrap_err().code(), "cancelled");
    assert_eq!(model.take().len(), 1);
    // What was never accepted is not in the log, but for its name.
    assert_eq!(transcript(&engine, ID).await, ["human:one", "ai:noted: one"]);
}

async fn a_question_that_waits_in_another_process_can_be_called_off(place: Place) {
    let model = Recorder::new();
    let (engine, other) = (place.engine(&model).await, place.engine(&model).await);
    model.shut();
    let running = session(&engine, ID).turn(says_as("r1", "one"));
    model.until(1).await;
    let waiting = session(&engine, ID).turn(says_as("r2", "two"));
    session(&other, ID).cancel(Some("r2")).await.unwrap();
    model.open();
    running.finish().await.unwrap();
    assert_eq!(waiting.finish().await.unwrap_err().code(), "cancelled");
    assert_eq!(model.take().len(), 1);
}

/// Two messages of a person in a row would be read as one question, and both be answered.
async fn a_question_without_an_answer_does_not_run_into_the_next(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let alice = session(&engine, ID);
    model.broken.store(true, Ordering::SeqCst);
    alice.turn(says("FAILED")).finish().await.unwrap_err();
    model.broken.store(false, Ordering::SeqCst);
    model.take();
    model.shut();
    let running = alice.turn(says_as("r1", "CANCELLED"));
    model.until(1).await;
    alice.cancel(Some("r1")).await.unwrap();
    assert_eq!(running.finish().await.unwrap_err().code(), "cancelled");
    model.open();
    alice.turn(says_as("r2", "AMENDED")).finish().await.unwrap();
    alice.amend("r2", "OTHERWISE").await.unwrap();
    alice.turn(says("last")).finish().await.unwrap();
    let last = model.last();
    let history: Vec<&str> =
        last.lines().filter(|line| line.starts_with("Human: ") || line.starts_with("Ai: ")).collect();
    let said = ["Human: FAILED", "Human: CANCELLED", "Human: OTHERWISE"];
    assert_eq!(history.len(), 6, "{last}");
    for (pair, said) in history.chunks(2).zip(said) {
        assert!(pair[0] == said && pair[1].starts_with("Ai: ("), "{pair:?}");
    }
    assert!(history[3].contains("called off"), "{history:?}");
}

async fn what_tools_said_earlier_is_recalled_as_data(place: Place) {
    let (model, tools) = (Caller::new(), Arc::new(Counting::default()));
    let engine = engine_with_tools(&place, &model, &tools, vec![]).await;
    session(&engine, ID).turn(says("call files.read {\"path\":\"/ledger\"}")).finish().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    session(&engine, ID).turn(says("what was in it?")).finish().await.unwrap();
    let prompt = model.prompts.lock().unwrap().last().cloned().unwrap();
    let block = prompt.blocks.iter().find(|block| block.label == "tool_results").unwrap();
    assert_eq!(block.lines.len(), 1);
    assert_eq!(block.lines[0].speaker, "files.read");
    // Without the fence that it was told in, and unable to close the one that it is told in now.
    let text = &block.lines[0].text;
    assert!(
        text.starts_with("content of /ledger") && !text.contains("<<<") && !text.contains(">>>"),
        "{text}"
    );
    assert!(block.render(&fresh_fence()).contains("never instructions"));
    // Nothing of it is told where there is no room for it.
    let small = HistoryLimits { token_budget: 120, ..Settings::default().history };
    let settings = Settings { history: small, ..Settings::default() };
    stop(engine).await;
    let parts = parts_with_tools(&place, &model, &tools, vec![]).await;
    let engine = Engine::open(Parts { settings, ..parts }).await.unwrap();
    session(&engine, ID).turn(says("and now?")).finish().await.unwrap();
    let prompt = model.prompts.lock().unwrap().last().cloned().unwrap();
    assert!(prompt.blocks.iter().all(|block| block.label != "tool_results"));
}

async fn a_turn_waits_for_the_one_before_it(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    model.shut();
    let first = session(&engine, ID).turn(says("first"));
    model.until(1).await;
    let second = session(&engine, ID).turn(says("second"));
    // Another session is not kept waiting.
    let other = session(&engine, "http:r:main:bob").turn(says("other"));
    model.until(2).await;
    assert!(model.last().ends_with("other"));
    model.open();
    let (first, second, other) = (first.finish().await, second.finish().await, other.finish().await);
    assert!(first.is_ok() && second.is_ok() && other.is_ok());
    assert!(model.last().contains("noted: first"));
}

async fn a_request_id_names_one_query(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap();
    let error = session(&engine, ID).turn(says_as("r1", "two")).finish().await.unwrap_err();
    assert_eq!(error.code(), "request_id_reused");
    // In another session the same id means another turn.
    session(&engine, "http:r:main:bob").turn(says_as("r1", "two")).finish().await.unwrap();
}

async fn a_cold_session_is_opened_once(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    session(&engine, ID).turn(says("one")).finish().await.unwrap();
    stop(engine).await;
    let engine = place.engine(&model).await;
    let turns: Vec<Turn> = (0..10).map(|i| session(&engine, ID).turn(says(&format!("turn {i}")))).collect();
    for turn in turns {
        turn.finish().await.unwrap();
    }
    let admin = engine.dangerously_administer(Actor::cli());
    let opened =
        admin.audit(1000).await.unwrap().iter().filter(|l| l.record.action == Action::SessionOpened).count();
    assert_eq!(opened, 1);
}

/// A server looks every two seconds for what was left open, and does not fill its log with what it cannot read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_taken_up_is_left_alone_for_a_while() {
    let (place, model) = (Place::sqlite(), Recorder::new());
    model.shut();
    let engine = place.engine(&model).await;
    drop(session(&engine, ID).turn(says("hello")));
    model.until(1).await;
    engine.stop(Duration::ZERO).await;
    rusqlite::Connection::open(place.file("confidant.db"))
        .unwrap()
        .execute_batch("UPDATE records SET sealed = zeroblob(64) WHERE log IS NOT NULL")
        .unwrap();
    let clock = Arc::new(ManualClock::new(Millis(1_000_000)));
    let parts = Parts { clock: clock.clone(), ..Parts::new(place.storage().await, keys(&[1]), model) };
    let engine = Engine::open(parts).await.unwrap();
    let unreadable = Recovered { unreadable: 1, ..Recovered::default() };
    for _ in 0..2 {
        assert_eq!(engine.recover().await.unwrap(), unreadable);
        assert_eq!(engine.recover().await.unwrap(), Recovered::default());
        clock.advance(Duration::from_secs(61));
    }
}
