//! What a person changes, how far back a turn may look, and when a session ends by itself.

use std::time::Duration;

use confidant_engine::clock::{Clock as _, ManualClock, Millis, SystemClock};
use confidant_engine::turn::Restore;
use confidant_engine::{Engine, Error, Parts, TurnRequest};

use crate::rig::*;

on_every_store! {
    what_is_changed_is_changed_and_its_answer_forgotten,
    what_never_was_cannot_be_changed,
    a_new_beginning_recalls_only_so_much_and_deletes_nothing,
    a_session_ends_with_its_lifetime,
}

const ID: &str = "discord_conv:111";

async fn what_is_changed_is_changed_and_its_answer_forgotten(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let one = session(&engine, ID);
    one.turn(says_as("r1", "I am Alice")).finish().await.unwrap();
    one.turn(says_as("r2", "I like tea")).finish().await.unwrap();
    assert!(one.amend("r1", "I am Alicia").await.unwrap());
    assert!(one.amend("r1", "I am Alina").await.unwrap());
    let want = ["human:i am alina", "human:i like tea", "ai:noted: i like tea"];
    assert_eq!(transcript(&engine, ID).await, want);
    assert!(matches!(one.turn(says_as("r1", "I am Alice")).finish().await, Err(Error::RequestReused)));
    assert!(matches!(one.turn(says_as("r1", "I am Alina")).finish().await, Err(Error::AnswerGone)));
    assert!(matches!(one.amend("r1", " ").await, Err(Error::Invalid { .. })));
    stop(engine).await;
    let engine = place.engine(&model).await;
    assert_eq!(transcript(&engine, ID).await, want);
}

async fn what_never_was_cannot_be_changed(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let one = session(&engine, ID);
    assert!(!one.amend("r1", "x").await.unwrap() && !one.remove("r1").await.unwrap());
    one.turn(says_as("r1", "hello")).finish().await.unwrap();
    assert!(!one.remove("r2").await.unwrap());
    let other = session(&engine, "discord_conv:222");
    assert!(!other.remove("r1").await.unwrap(), "another session's");
    assert_eq!(transcript(&engine, ID).await.len(), 2);
}

async fn a_new_beginning_recalls_only_so_much_and_deletes_nothing(place: Place) {
    let model = Recorder::new();
    let clock = std::sync::Arc::new(ManualClock::new(Millis(1_000)));
    let parts = Parts::new(place.storage().await, keys(&[1]), std::sync::Arc::clone(&model) as _);
    let engine = Engine::open(Parts { clock: std::sync::Arc::clone(&clock) as _, ..parts }).await.unwrap();
    let one = session(&engine, ID);
    for n in 1..=10 {
        one.turn(says(&format!("word-{n}."))).finish().await.unwrap();
    }
    clock.advance(std::time::Duration::from_secs(5));
    let since = clock.now();
    let asks = |messages| TurnRequest { restore: Some(Restore { since, messages }), ..says("and?") };
    for (messages, first) in [(5, 6), (0, 11), (1, 10), (100, 1)] {
        one.turn(asks(messages)).finish().await.unwrap();
        let prompt = model.last();
        for n in 1..=10 {
            assert_eq!(prompt.contains(&format!("word-{n}.")), n >= first, "{messages}: word-{n}\n{prompt}");
        }
        let found: Vec<usize> =
            (first..=10).filter_map(|n| prompt.find(&format!("Human: word-{n}."))).collect();
        assert!(found.is_sorted() && found.len() == 11 - first, "in their order");
    }
    assert_eq!(transcript(&engine, ID).await.len(), 28, "nothing was deleted");
}

async fn a_session_ends_with_its_lifetime(place: Place) {
    let model = Recorder::new();
    let clock = std::sync::Arc::new(ManualClock::new(SystemClock.now()));
    let hour = Duration::from_secs(3600);
    let parts =
        Parts { clock: clock.clone(), ..Parts::new(place.storage().await, keys(&[1]), model.clone() as _) };
    let engine = Engine::open(parts).await.unwrap();
    let (room, person) = ("http:r:main:alice", "discord_conv:alice");
    for id in [room, person] {
        session(&engine, id).turn(says("BEFORE")).finish().await.unwrap();
    }
    clock.advance(23 * hour);
    session(&engine, room).turn(says("still here")).finish().await.unwrap();
    assert!(model.last().contains("BEFORE"));
    clock.advance(23 * hour);
    assert_eq!(engine.sweep().await.unwrap(), 0);
    clock.advance(2 * hour);
    // Over is over, whether or not the sweeper has come by.
    session(&engine, room).turn(says("anybody?")).finish().await.unwrap();
    assert!(!model.last().contains("BEFORE") && !model.last().contains("still here"));
    clock.advance(25 * hour);
    assert_eq!(engine.sweep().await.unwrap(), 1);
    assert!(session(&engine, room).export().await.unwrap().is_none());
    // Histories keyed by person have no end by themselves.
    assert_eq!(transcript(&engine, person).await.len(), 2);
    let status = engine.key_status().await.unwrap();
    assert_eq!(status.keys, 1);
}
