//! Promise 8 where a log can be read, and not written: the turn is answered all the same, says that it is not kept, and is
//! written once that works, unless it was erased meanwhile.
//!
//! The store goes away for writing with plain SQL. What a server that is gone altogether costs is tested beside its stores.

use std::sync::atomic::Ordering;

use confidant_engine::turn::MemoryState;
use confidant_engine::{Actor, Engine, Recovered, TenantId, UserId};
use rusqlite::Connection;

use crate::rig::*;

const ALICE: &str = "http:r:main:alice";

/// Has every write of a log fail, until it is dropped.
struct Away(Connection);

impl Away {
    fn from(place: &Place) -> Self {
        let db = Connection::open(place.file("confidant.db")).unwrap();
        db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        db.execute_batch(
            "CREATE TRIGGER away BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'away'); END",
        )
        .unwrap();
        Self(db)
    }

    fn back(self) {
        self.0.execute_batch("DROP TRIGGER away").unwrap();
    }
}

fn whole(turns: usize) -> Vec<String> {
    (0..turns).flat_map(|i| [format!("human:q{i}"), format!("ai:noted: q{i}")]).collect()
}

async fn says_without_memory(engine: &Engine, id: &str, request: &str, query: &str) {
    let answer = session(engine, id).turn(says_as(request, query)).finish().await.unwrap();
    assert_eq!(answer.content, format!("noted: {query}"));
    assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
    assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-failed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_8_a_warm_session_that_cannot_be_written_is_answered_and_told_later() {
    let place = Place::sqlite();
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    session(&engine, ALICE).turn(says_as("r0", "q0")).finish().await.unwrap();
    let away = Away::from(&place);
    says_without_memory(&engine, ALICE, "r1", "q1").await;
    // One that nobody knows yet, and once more: neither is an error.
    says_without_memory(&engine, "http:r:main:bob", "r1", "hello").await;
    says_without_memory(&engine, ALICE, "r2", "q2").await;
    away.back();
    assert_eq!(engine.recover().await.unwrap(), Recovered { caught_up: 2, ..Recovered::default() });
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    assert_eq!(transcript(&engine, ALICE).await, whole(3));
    model.take();
    let again = session(&engine, ALICE).turn(says_as("r1", "q1")).finish().await.unwrap();
    assert!(again.metadata.replayed && model.take().is_empty());
    engine.dangerously_administer(Actor::cli()).verify_audit().await.unwrap();
    // The next turn tells as well, and before itself.
    let away = Away::from(&place);
    says_without_memory(&engine, ALICE, "r3", "q3").await;
    away.back();
    let kept = session(&engine, ALICE).turn(says_as("r4", "q4")).finish().await.unwrap();
    assert_eq!(kept.metadata.memory, MemoryState::Kept);
    assert!(model.last().contains("q3"), "what was told is recalled");
    assert_eq!(transcript(&engine, ALICE).await, whole(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_8_an_answer_that_cannot_be_written_is_given_and_told_later_once() {
    let place = Place::sqlite();
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    model.shut();
    let turn = session(&engine, ALICE).turn(says_as("r0", "q0"));
    model.until(1).await;
    let away = Away::from(&place);
    model.open();
    let answer = turn.finish().await.unwrap();
    assert_eq!((answer.content.as_str(), answer.metadata.memory), ("noted: q0", MemoryState::Unavailable));
    away.back();
    assert_eq!(engine.recover().await.unwrap(), Recovered { caught_up: 1, ..Recovered::default() });
    assert_eq!(transcript(&engine, ALICE).await, whole(1));
    assert_eq!(model.take().len(), 1, "answered once");
    // Without an answer there is nothing to tell: the turn is open, and is taken up.
    model.shut();
    let turn = session(&engine, ALICE).turn(says_as("r1", "q1"));
    model.until(1).await;
    let away = Away::from(&place);
    model.broken.store(true, Ordering::SeqCst);
    model.open();
    assert_eq!(turn.finish().await.unwrap_err().code(), "storage_failed");
    model.broken.store(false, Ordering::SeqCst);
    away.back();
    assert_eq!(engine.recover().await.unwrap(), Recovered { resumed: 1, ..Recovered::default() });
    assert_eq!(transcript(&engine, ALICE).await, whole(2));
}

/// Promise 6 goes before promise 8: what was said before an erasure is not stored after its receipt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_what_was_erased_meanwhile_is_not_told() {
    for by_another in [false, true] {
        let place = Place::sqlite();
        let model = Recorder::new();
        let engine = place.engine(&model).await;
        session(&engine, ALICE).turn(says_as("r0", "q0")).finish().await.unwrap();
        let away = Away::from(&place);
        says_without_memory(&engine, ALICE, "r1", "q1").await;
        away.back();
        let other = place.engine(&model).await;
        let eraser = if by_another { &other } else { &engine };
        let admin = eraser.dangerously_administer(Actor::cli());
        let (tenant, user) = (TenantId::new("acme").unwrap(), UserId::new("alice").unwrap());
        let receipt = admin.erase_person(&tenant, &user).await.unwrap();
        assert_eq!(engine.recover().await.unwrap(), Recovered::default());
        assert!(transcript(&engine, ALICE).await.is_empty());
        // A new beginning under the same name is another conversation.
        session(&engine, ALICE).turn(says_as("r2", "q2")).finish().await.unwrap();
        assert_eq!(engine.recover().await.unwrap(), Recovered::default());
        assert_eq!(transcript(&engine, ALICE).await, ["human:q2", "ai:noted: q2"]);
        admin.verify_receipt(&receipt).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_what_was_taken_back_meanwhile_is_not_told() {
    let place = Place::sqlite();
    let engine = place.engine(&Recorder::new()).await;
    session(&engine, ALICE).turn(says_as("r0", "q0")).finish().await.unwrap();
    let away = Away::from(&place);
    says_without_memory(&engine, ALICE, "r1", "marker").await;
    away.back();
    assert!(session(&engine, ALICE).remove("r1").await.unwrap());
    engine.recover().await.unwrap();
    assert!(!transcript(&engine, ALICE).await.concat().contains("marker"));
}
