//! Promise 6 against time: what was asked before an erasure ends with it, wherever it waited meanwhile.

use std::time::Duration;

use confidant_engine::rights::Receipt;
use confidant_engine::storage::copy;
use confidant_engine::{Actor, Engine, Epoch, TenantId, TurnRequest, UserId};

use crate::rig::*;

on_every_store! {
    promise_6_what_waits_when_an_erasure_comes_ends_with_it,
    promise_6_what_waits_when_another_process_erases_ends_with_it,
    promise_6_what_waits_for_a_first_session_ends_with_an_erasure,
    promise_6_what_was_asked_before_an_erasure_ends_as_erased_after_any_restart,
    promise_6_receipts_hold_whatever_races,
    promise_6_marks_move_with_the_data,
}

const ID: &str = "discord_conv:alice";

fn alice() -> (TenantId, UserId) {
    (TenantId::new("acme").unwrap(), UserId::new("alice").unwrap())
}

fn asked_in(epoch: Epoch, query: &str) -> TurnRequest {
    TurnRequest { epoch: Some(epoch), ..says(query) }
}

/// The ways in which a person's session ends.
#[derive(Clone, Copy, Debug)]
enum Way {
    Person,
    Session,
    Forget,
}

async fn erase(engine: &Engine, way: Way) -> Receipt {
    let (tenant, user) = alice();
    match way {
        Way::Person => {
            engine.dangerously_administer(Actor::cli()).erase_person(&tenant, &user).await.unwrap()
        }
        Way::Session => session(engine, ID).erase().await.unwrap(),
        Way::Forget => {
            let forgotten = session(engine, ID).turn(says("!forget")).finish().await.unwrap();
            *forgotten.metadata.receipt.unwrap()
        }
    }
}

/// Nothing of before is there, the receipt holds, and the person can begin anew, which makes no receipt a lie.
async fn is_gone(engine: &Engine, receipt: &Receipt) {
    let admin = engine.dangerously_administer(Actor::cli());
    assert!(session(engine, ID).export().await.unwrap().is_none());
    admin.verify_receipt(receipt).await.unwrap();
    session(engine, ID).turn(says("anew")).finish().await.unwrap();
    assert_eq!(transcript(engine, ID).await, ["human:anew", "ai:noted: anew"]);
    admin.verify_receipt(receipt).await.unwrap();
}

async fn promise_6_what_waits_when_an_erasure_comes_ends_with_it(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    for way in [Way::Person, Way::Session, Way::Forget] {
        session(&engine, ID).turn(says("before")).finish().await.unwrap();
        model.shut();
        model.take();
        let running = session(&engine, ID).turn(says("one"));
        model.until(1).await;
        let waiting = ["two", "three"].map(|query| session(&engine, ID).turn(says(query)));
        let receipt = erase(&engine, way).await;
        model.open();
        for turn in waiting.into_iter().chain([running]) {
            assert_eq!(turn.finish().await.unwrap_err().code(), "erased", "{way:?}");
        }
        is_gone(&engine, &receipt).await;
    }
}

async fn promise_6_what_waits_when_another_process_erases_ends_with_it(place: Place) {
    let model = Recorder::new();
    let (engine, other) = (place.engine(&model).await, place.engine(&model).await);
    for way in [Way::Person, Way::Session, Way::Forget] {
        session(&engine, ID).turn(says("before")).finish().await.unwrap();
        model.shut();
        model.take();
        let running = session(&engine, ID).turn(says("one"));
        model.until(1).await;
        let waiting = session(&engine, ID).turn(says("two"));
        // It has taken its place and looked what time it is, which another process cannot know.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let receipt = erase(&other, way).await;
        // Somebody begins anew before the one that waits gets to write: it must not write into that, either.
        let anew = session(&other, ID).turn(says("begun"));
        model.open();
        anew.finish().await.unwrap();
        for turn in [running, waiting] {
            assert_eq!(turn.finish().await.unwrap_err().code(), "erased", "{way:?}");
        }
        assert_eq!(transcript(&other, ID).await, ["human:begun", "ai:noted: begun"]);
        // What this process has warm is of before the erasure, and what is said to it now is not.
        session(&engine, ID).turn(says("goes on")).finish().await.unwrap();
        assert_eq!(transcript(&engine, ID).await.len(), 4);
        let admin = engine.dangerously_administer(Actor::cli());
        admin.verify_receipt(&receipt).await.unwrap();
        erase(&engine, way).await;
    }
}

/// There is no log and no key that an erasure could find.
async fn promise_6_what_waits_for_a_first_session_ends_with_an_erasure(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let epoch = engine.epoch().await;
    let receipt = erase(&engine, Way::Person).await;
    assert_eq!(receipt.sessions, 0);
    let late = session(&engine, ID).turn(asked_in(epoch, "my name is Alice"));
    assert_eq!(late.finish().await.unwrap_err().code(), "erased");
    assert_eq!(engine.key_status().await.unwrap().keys, 0);
    // Another person's erasure ends nothing of this one.
    let bob = session(&engine, "discord_conv:bob");
    bob.turn(asked_in(epoch, "hello")).finish().await.unwrap();
    is_gone(&engine, &receipt).await;
}

async fn promise_6_what_was_asked_before_an_erasure_ends_as_erased_after_any_restart(place: Place) {
    let model = Recorder::new();
    let mut engine = place.engine(&model).await;
    for way in [Way::Person, Way::Session, Way::Forget] {
        session(&engine, ID).turn(says("before")).finish().await.unwrap();
        let epoch = engine.epoch().await;
        let receipt = erase(&engine, way).await;
        stop(engine).await;
        engine = place.engine(&model).await;
        for query in ["late", "!share-private on"] {
            let late = session(&engine, ID).turn(asked_in(epoch, query));
            assert_eq!(late.finish().await.unwrap_err().code(), "erased", "{way:?}");
        }
        is_gone(&engine, &receipt).await;
        // There is a session again; what is late has no place in it.
        let late = session(&engine, ID).turn(asked_in(epoch, "later"));
        assert_eq!(late.finish().await.unwrap_err().code(), "erased", "{way:?}");
        assert_eq!(transcript(&engine, ID).await, ["human:anew", "ai:noted: anew"]);
        let now = engine.epoch().await;
        session(&engine, ID).turn(asked_in(now, "in time")).finish().await.unwrap();
    }
}

async fn promise_6_receipts_hold_whatever_races(place: Place) {
    let model = Recorder::new();
    let engines = [place.engine(&model).await, place.engine(&model).await];
    let (tenant, user) = alice();
    for round in 0..12 {
        let (asking, erasing) = (&engines[round % 2], &engines[(round / 2) % 2]);
        let turn = session(asking, ID).turn(says("a first word"));
        tokio::time::sleep(Duration::from_micros(400 * round as u64)).await;
        let admin = erasing.dangerously_administer(Actor::cli());
        let receipt = admin.erase_person(&tenant, &user).await.unwrap();
        match turn.finish().await {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.code(), "erased");
                assert!(transcript(asking, ID).await.is_empty());
            }
        }
        admin.verify_receipt(&receipt).await.unwrap();
    }
}

async fn promise_6_marks_move_with_the_data(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    session(&engine, ID).turn(says("before")).finish().await.unwrap();
    let epoch = engine.epoch().await;
    let receipt = erase(&engine, Way::Person).await;
    stop(engine).await;
    let elsewhere = Place::sqlite();
    copy(&place.storage().await, &elsewhere.storage().await, keys(&[1]), &|_, _| {}).await.unwrap();
    let engine = elsewhere.engine(&model).await;
    let late = session(&engine, ID).turn(asked_in(epoch, "late"));
    assert_eq!(late.finish().await.unwrap_err().code(), "erased");
    is_gone(&engine, &receipt).await;
}
