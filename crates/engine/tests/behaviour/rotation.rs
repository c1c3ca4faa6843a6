//! Key rotation beside running turns, and wrong keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use confidant_engine::clock::{ManualClock, Millis};
use confidant_engine::{Actor, Engine, OpenError, Parts, TenantId};

use crate::rig::*;

on_every_store! {
    a_rotation_runs_beside_turns_and_leaves_nothing_to_the_old_key,
    a_rotation_that_was_cut_off_goes_on,
    a_wrong_key_is_refused_and_nothing_lost,
    a_keyring_knows_its_age,
    keys_of_accounts_move_to_a_new_root,
}

async fn engine_with(place: &Place, source: &Arc<TestKeys>) -> Result<Engine, OpenError> {
    Engine::open(Parts::new(place.storage().await, Arc::clone(source) as _, Recorder::new() as _)).await
}

async fn a_rotation_runs_beside_turns_and_leaves_nothing_to_the_old_key(place: Place) {
    let source = keys(&[1]);
    let server = engine_with(&place, &source).await.unwrap();
    for i in 0..300 {
        session(&server, &format!("http:r:main:u{i}")).turn(says("before")).finish().await.unwrap();
    }
    let done = Arc::new(AtomicBool::new(false));
    let mut talkers = Vec::new();
    for lane in 0..4 {
        let (server, done) = (server.clone(), Arc::clone(&done));
        talkers.push(tokio::spawn(async move {
            let mut turns = 0;
            while !done.load(Ordering::SeqCst) || turns < 50 {
                // Old sessions, warm and cold, and ever new ones.
                let id = format!(
                    "http:r:main:{}{}",
                    if turns % 2 == 0 { "u" } else { "new" },
                    lane * 1000 + turns
                );
                session(&server, &id).turn(says("during")).finish().await.unwrap();
                turns += 1;
            }
        }));
    }
    // As `keys rotate` does it: another process, the source has the new key first and the old one still.
    source.set(&[2, 1]);
    let rotator = engine_with(&place, &source).await.unwrap();
    let rotated = rotator.rotate_keys(&Actor::cli(), &|_, _| {}).await.unwrap();
    assert!(rotated.rewrapped >= 300);
    source.set(&[2]);
    tokio::task::yield_now().await;
    done.store(true, Ordering::SeqCst);
    for talker in talkers {
        talker.await.unwrap();
    }
    stop(server).await;
    stop(rotator).await;
    let old = engine_with(&place, &keys(&[1])).await;
    assert!(matches!(old, Err(OpenError::WrongKey { .. })));
    let new = engine_with(&place, &keys(&[2])).await.unwrap();
    let verified = new.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
    assert!(verified.refused.is_empty() && verified.sessions >= 300, "{verified:?}");
    assert_eq!(new.key_status().await.unwrap().under_others, 0);
}

async fn a_rotation_that_was_cut_off_goes_on(place: Place) {
    let source = keys(&[1]);
    let engine = engine_with(&place, &source).await.unwrap();
    for i in 0..600 {
        session(&engine, &format!("http:r:main:u{i}")).turn(says("before")).finish().await.unwrap();
    }
    stop(engine).await;
    source.set(&[2, 1]);
    let engine = engine_with(&place, &source).await.unwrap();
    // Cut off after the first batch: the task is dropped at its first progress report past the start.
    let task = tokio::spawn({
        let engine = engine.clone();
        async move {
            let stop_here = |done: u64, _: u64| assert!(done == 0, "cut off");
            engine.rotate_keys(&Actor::cli(), &stop_here).await
        }
    });
    assert!(task.await.is_err());
    let status = engine.key_status().await.unwrap();
    assert!(status.under_others > 0 && status.under_others < 600, "{status:?}");
    // Everything works in between, for readers old and new.
    session(&engine, "http:r:main:u5").turn(says("between")).finish().await.unwrap();
    session(&engine, "http:r:main:u599").turn(says("between")).finish().await.unwrap();
    stop(engine).await;
    let engine = engine_with(&place, &source).await.unwrap();
    let rotated = engine.rotate_keys(&Actor::cli(), &|_, _| {}).await.unwrap();
    assert!(rotated.rewrapped > 0 && rotated.rewrapped < 600);
    stop(engine).await;
    let engine = engine_with(&place, &keys(&[2])).await.unwrap();
    let verified = engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
    assert_eq!((verified.sessions, verified.refused.len()), (600, 0));
}

async fn a_wrong_key_is_refused_and_nothing_lost(place: Place) {
    let engine = engine_with(&place, &keys(&[1])).await.unwrap();
    session(&engine, "discord_conv:a").turn(says("hello")).finish().await.unwrap();
    stop(engine).await;
    let error = engine_with(&place, &keys(&[9])).await.unwrap_err();
    assert!(error.to_string().contains("wrong master key") && error.to_string().contains("hint: "));
    // Rotating away from a key that is not given is refused before anything is touched.
    let engine = engine_with(&place, &keys(&[1])).await.unwrap();
    assert_eq!(transcript(&engine, "discord_conv:a").await.len(), 2);
}

async fn a_keyring_knows_its_age(place: Place) {
    let clock = Arc::new(ManualClock::new(Millis(1_000_000)));
    let source = keys(&[1]);
    let open = async || {
        let parts = Parts::new(place.storage().await, Arc::clone(&source) as _, Recorder::new() as _);
        Engine::open(Parts { clock: clock.clone(), ..parts }).await.unwrap()
    };
    let age = async |engine: &Engine| engine.key_status().await.unwrap().rotated_at;
    stop(open().await).await;
    clock.advance(std::time::Duration::from_secs(1));
    let engine = open().await;
    assert_eq!(age(&engine).await, Some(Millis(1_000_000)), "from its first start on");
    source.set(&[2, 1]);
    engine.rotate_keys(&Actor::cli(), &|_, _| {}).await.unwrap();
    assert_eq!(age(&engine).await, Some(Millis(1_001_000)));
    stop(engine).await;
}

async fn keys_of_accounts_move_to_a_new_root(place: Place) {
    let source = keys(&[1]);
    let account = "acct_aeaqcaibaeaqcaibaeaqcaibae";
    let engine = engine_with(&place, &source).await.unwrap();
    let before = engine.account_keys(TenantId::new("acme").unwrap());
    let (key, login) = (before.key_or_new(account, None).await.unwrap(), before.tag("login", b"alice"));
    source.set(&[2, 1]);
    engine.rotate_keys(&Actor::cli(), &|_, _| {}).await.unwrap();
    stop(engine).await;
    // The old master key is not there any more.
    source.set(&[2]);
    let engine = engine_with(&place, &source).await.unwrap();
    let after = engine.account_keys(TenantId::new("acme").unwrap());
    assert_eq!(after.key(account, None).await.unwrap().map(|key| key.kid()), Some(key.kid()));
    assert_eq!(after.tag("login", b"alice"), login, "everybody still logs in");
    stop(engine).await;
}
