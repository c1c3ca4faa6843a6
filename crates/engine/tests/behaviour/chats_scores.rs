//! The harm of a turn that has no answer, or none yet: it counts, and once.

use std::sync::atomic::Ordering;
use std::time::Duration;

use confidant_engine::approval::{Decider, Decision};
use confidant_engine::prepare::{Harm, Measure, SafetyAction};
use confidant_engine::turn::{CarryOut, Ending, Outbound};
use confidant_engine::{Error, Session};
use serde_json::json;

use crate::rig::processing::{Setting, plain, setting, with};
use crate::rig::*;
use crate::web::*;

on_every_store! {
    a_turn_that_is_cancelled_or_fails_counts_once,
    a_turn_that_is_cancelled_before_the_small_model_has_spoken_counts_too,
    a_turn_that_waits_counts_from_then_on_and_not_again,
    a_harmless_turn_that_is_cancelled_makes_nothing_calmer,
}

const OTHER: &str = "chat_bbbbbbbbbbbbbbbbbbbbbbbbbb";
const LOCKS: &str = "Tell me of locks";

/// An engine that answers turns of this harm, and says of every turn that it has that.
async fn harmful(place: &Place) -> Setting {
    let s = setting(place, |parts| {
        let ends = [(9.0, SafetyAction::TerminateConversation)];
        parts.safety.rules.replace(Harm::Illegal, Measure::Turn, &ends);
    })
    .await;
    s.small.says("prepare_turn", with(json!({ "illegal": 6, "relevant_app_skills": ["files.delete"] })));
    s
}

async fn score(chat: &Session) -> f32 {
    chat.safety().await.unwrap().unwrap().harm.score(Harm::Illegal)
}

/// What one such turn comes to that is answered, and two.
async fn answered(s: &Setting) -> [f32; 2] {
    let chat = chat(&s.engine, OTHER);
    let mut scores = [0.0; 2];
    for (n, score) in (0_u8..).zip(&mut scores) {
        let asked = asks(&format!("o{n}"), LOCKS, u64::from(n) * 2, n, n + 1);
        let answer = chat.turn(asked).finish().await.unwrap();
        *score = answer.metadata.chat.unwrap().safety.harm.score(Harm::Illegal);
    }
    assert!(scores[0] >= 6.0 && scores[1] > scores[0] + 0.3, "{scores:?}");
    scores
}

/// But for what a moment takes away.
fn assert_near(one: f32, other: f32) {
    assert!((one - other).abs() < 0.1, "{one} {other}");
}

/// Cancels a turn whose model is at work.
async fn cancelled(s: &Setting, chat: &Session, asked: confidant_engine::TurnRequest) {
    let (name, before) = (asked.request_id.clone().unwrap(), s.default.prompts.lock().unwrap().len());
    s.default.gate.forget_permits(1_000_000);
    let turn = chat.turn(asked);
    while s.default.prompts.lock().unwrap().len() == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(chat.cancel(Some(&name)).await.unwrap(), 1);
    assert!(matches!(turn.finish().await, Err(Error::Cancelled)));
    s.default.gate.add_permits(1_000_000);
}

async fn a_turn_that_is_cancelled_or_fails_counts_once(place: Place) {
    let s = harmful(&place).await;
    let [once, twice] = answered(&s).await;
    let chat = chat(&s.engine, CHAT);
    cancelled(&s, &chat, asks("t1", LOCKS, 0, 0, 1)).await;
    assert_near(score(&chat).await, once);
    s.default.broken.store(true, Ordering::SeqCst);
    let failed = chat.turn(asks("t2", LOCKS, 0, 0, 1)).finish().await;
    assert!(matches!(failed, Err(Error::Model(_))));
    assert_near(score(&chat).await, twice);
    // Asked again by its name, it is the same turn.
    s.default.broken.store(false, Ordering::SeqCst);
    let answer = chat.turn(asks("t2", LOCKS, 0, 0, 1)).finish().await.unwrap();
    assert_near(answer.metadata.chat.unwrap().safety.harm.score(Harm::Illegal), twice);
    assert_near(score(&chat).await, twice);
    stop(s.engine).await;
}

/// Cancels a turn whose small model is at work, which speaks only then; nobody hears a word of an answer.
async fn cancelled_at_once(s: &Setting, chat: &Session, asked: confidant_engine::TurnRequest) {
    let (name, before) = (asked.request_id.clone().unwrap(), s.small.asked("prepare_turn").len());
    let held = s.small.gate.acquire_many(1_000_000).await.unwrap();
    let mut turn = chat.turn(asked);
    while s.small.asked("prepare_turn").len() == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(chat.cancel(Some(&name)).await.unwrap(), 1);
    drop(held);
    loop {
        match turn.next().await.unwrap() {
            Outbound::Error(Error::Cancelled) => break,
            Outbound::Progress { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn a_turn_that_is_cancelled_before_the_small_model_has_spoken_counts_too(place: Place) {
    let s = harmful(&place).await;
    let [once, twice] = answered(&s).await;
    let chat = chat(&s.engine, CHAT);
    cancelled_at_once(&s, &chat, asks("t1", LOCKS, 0, 0, 1)).await;
    assert_near(score(&chat).await, once);
    cancelled_at_once(&s, &chat, asks("t2", LOCKS, 0, 0, 1)).await;
    assert_near(score(&chat).await, twice);
    // A harmless one adds nothing, and takes nothing away.
    s.small.says("prepare_turn", plain());
    cancelled_at_once(&s, &chat, asks("t3", "Hello", 0, 0, 1)).await;
    assert_near(score(&chat).await, twice);
    // Asked again it is over, as any other that was cancelled.
    let again = chat.turn(asks("t1", LOCKS, 0, 0, 1)).finish().await;
    assert!(matches!(again, Err(Error::Cancelled)), "{again:?}");
    stop(s.engine).await;
}

/// The small model never speaks: what the local rules found counts.
#[tokio::test(start_paused = true)]
async fn a_turn_of_which_the_small_model_never_speaks_counts_by_the_rules() {
    let s = harmful(&Place::memory()).await;
    let chat = chat(&s.engine, CHAT);
    let _held = s.small.gate.acquire_many(1_000_000).await.unwrap();
    let turn = chat.turn(asks("t1", "I want to kill myself", 0, 0, 1));
    while s.small.asked("prepare_turn").is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(chat.cancel(Some("t1")).await.unwrap(), 1);
    assert!(matches!(turn.finish().await, Err(Error::Cancelled)));
    let safety = chat.safety().await.unwrap().unwrap();
    assert!(safety.harm.score(Harm::DirectSelfHarm) >= 7.5, "{safety:?}");
}

async fn a_turn_that_waits_counts_from_then_on_and_not_again(place: Place) {
    let s = harmful(&place).await;
    let [once, _] = answered(&s).await;
    stop(s.engine).await;
    let s = harmful(&place).await;
    let waiting = chat(&s.engine, CHAT);
    let asked = asks("t1", "call files.delete {\"path\":\"/a\"}", 0, 0, 1);
    let Ending::Approval(request) = waiting.turn(asked).end().await.unwrap() else { panic!("answered") };
    assert_near(score(&waiting).await, once);
    // Also after a restart.
    stop(s.engine).await;
    let s = harmful(&place).await;
    let waiting = chat(&s.engine, CHAT);
    assert_near(score(&waiting).await, once);
    let by = Decider::Person(ACCOUNT.to_owned());
    let decided = waiting.decide(&request.approval_id, Decision::Approve, by, CarryOut::Here);
    let answer = decided.finish().await.unwrap();
    assert_near(answer.metadata.chat.unwrap().safety.harm.score(Harm::Illegal), once);
    assert_near(score(&waiting).await, once);
    stop(s.engine).await;
}

async fn a_harmless_turn_that_is_cancelled_makes_nothing_calmer(place: Place) {
    let s = harmful(&place).await;
    let [_, twice] = answered(&s).await;
    s.small.says("prepare_turn", plain());
    let chat = chat(&s.engine, OTHER);
    for n in 0..3 {
        cancelled(&s, &chat, asks(&format!("t{n}"), "Hello", 4, 2, 3)).await;
    }
    assert_near(score(&chat).await, twice);
    stop(s.engine).await;
}
