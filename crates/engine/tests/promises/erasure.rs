//! Promise 6, forgotten is gone.

use std::time::Duration;

use confidant_engine::access::Role;
use confidant_engine::clock::{Clock as _, ManualClock, SystemClock};
use confidant_engine::rights::Receipt;
use confidant_engine::turn::MemoryState;
use confidant_engine::{Actor, Engine, Parts, TenantId, UserId};
use serde_json::json;

use crate::rig::processing::{plain, setting};
use crate::rig::*;

on_every_store! {
    promise_6_forgotten_is_gone,
    promise_5_what_was_said_after_a_forget_outlives_its_retry,
    promise_5_what_was_said_after_a_forget_outlives_its_retry_in_another_process,
    promise_6_a_person_is_gone_everywhere,
    promise_6_erasing_while_a_turn_runs_keeps_nothing,
    promise_6_what_is_made_of_a_turn_does_not_bring_it_back,
}

async fn promise_6_forgotten_is_gone(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let alice = session(&engine, "!r:x.org:main:@alice:x.org");
    alice.turn(says("my name is Alice")).finish().await.unwrap();
    let answer = alice.turn(says("@bot forget our conversation")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory, MemoryState::Forgotten);
    let receipt = *answer.metadata.receipt.unwrap();
    assert_eq!((receipt.sessions, receipt.keys.len()), (1, 1));
    assert!(alice.export().await.unwrap().is_none());
    alice.turn(says("who am I?")).finish().await.unwrap();
    assert!(!model.last().contains("Alice"));
    let admin = engine.dangerously_administer(Actor::cli());
    admin.verify_receipt(&receipt).await.unwrap();
    for forged in [
        Receipt { sessions: 2, ..receipt.clone() },
        Receipt { subject: "00".repeat(16), ..receipt.clone() },
        Receipt { audit_seq: receipt.audit_seq - 1, ..receipt.clone() },
        Receipt { signature: "00".repeat(32), ..receipt.clone() },
    ] {
        assert_eq!(admin.verify_receipt(&forged).await.unwrap_err().code(), "unverified");
    }
}

async fn promise_5_what_was_said_after_a_forget_outlives_its_retry(place: Place) {
    let engine = place.engine(&Recorder::new()).await;
    let id = "http:r:main:alice";
    let alice = session(&engine, id);
    alice.turn(says("my name is Alice")).finish().await.unwrap();
    let forget = || alice.turn(says_as("f1", "!forget")).finish();
    let first = forget().await.unwrap();
    alice.turn(says("my name is Eve")).finish().await.unwrap();
    // The reply was lost, so the client asks again.
    let again = forget().await.unwrap();
    assert_eq!((again.content, &again.metadata.receipt), (first.content, &first.metadata.receipt));
    assert!(again.metadata.replayed);
    assert_eq!(transcript(&engine, id).await[0], "human:my name is eve");
    // Another message is another wish.
    alice.turn(says_as("f2", "!forget")).finish().await.unwrap();
    assert!(alice.export().await.unwrap().is_none());
}

async fn promise_5_what_was_said_after_a_forget_outlives_its_retry_in_another_process(place: Place) {
    let (ids, model) = (["http:r:main:alice", "http:r:main:bob"], Recorder::new());
    let clock = std::sync::Arc::new(ManualClock::new(SystemClock.now()));
    let open = async || {
        let parts = Parts::new(place.storage().await, keys(&[1]), model.clone() as _);
        Engine::open(Parts { clock: clock.clone(), ..parts }).await.unwrap()
    };
    let forget = async |engine: &Engine, id, name| {
        session(engine, id).turn(says_as(name, "!forget")).finish().await.unwrap()
    };
    let engine = open().await;
    for id in ids {
        session(&engine, id).turn(says("before")).finish().await.unwrap();
    }
    let first = forget(&engine, ids[0], "zq7name").await;
    session(&engine, ids[0]).turn(says("my name is Eve")).finish().await.unwrap();
    stop(engine).await;
    let engine = open().await;
    let again = forget(&engine, ids[0], "zq7name").await;
    assert_eq!((again.content, &again.metadata.receipt), (first.content, &first.metadata.receipt));
    assert!(again.metadata.replayed);
    assert_eq!(transcript(&engine, ids[0]).await[0], "human:my name is eve");
    // The name counts where it was said, and is nowhere to be read.
    assert!(!forget(&engine, ids[1], "zq7name").await.metadata.replayed);
    assert!(session(&engine, ids[1]).export().await.unwrap().is_none());
    assert!(!contains(&place.bytes(), "zq7name"));
    // Many others do not push it out at once; a week does.
    for name in ["f0", "f1", "f2", "f3"] {
        forget(&engine, ids[1], name).await;
    }
    assert!(forget(&engine, ids[0], "zq7name").await.metadata.replayed);
    clock.advance(Duration::from_secs(8 * 86_400));
    engine.sweep().await.unwrap();
    assert!(!forget(&engine, ids[0], "zq7name").await.metadata.replayed);
}

async fn promise_6_a_person_is_gone_everywhere(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let (tenant, alice) = (TenantId::new("acme").unwrap(), UserId::new("alice").unwrap());
    let ids = ["discord_conv:alice", "http:a:main:alice", "http:b:t1:alice", "openai_conv:alice"];
    for id in ids.iter().chain(&["discord_conv:bob"]) {
        session(&engine, id).turn(says("remember me")).finish().await.unwrap();
    }
    let admin = engine.dangerously_administer(Actor::cli());
    let (_, token) = admin.new_token(&tenant, &Role::User(alice.clone())).await.unwrap();
    let token = secrecy::ExposeSecret::expose_secret(&token).to_owned();
    assert!(engine.authenticate(&token).await.unwrap().is_some());
    assert_eq!(admin.export_person(&tenant, &alice).await.unwrap().sessions.len(), 4);
    let receipt = admin.erase_person(&tenant, &alice).await.unwrap();
    assert_eq!((receipt.sessions, receipt.keys.len(), receipt.tokens), (4, 4, 1));
    assert!(admin.export_person(&tenant, &alice).await.unwrap().sessions.is_empty());
    assert!(engine.authenticate(&token).await.unwrap().is_none());
    for id in ids {
        assert!(session(&engine, id).export().await.unwrap().is_none());
    }
    assert_eq!(transcript(&engine, "discord_conv:bob").await.len(), 2);
    admin.verify_receipt(&receipt).await.unwrap();
    // Somebody who is not there is erased without fuss.
    let nobody = admin.erase_person(&tenant, &UserId::new("nobody").unwrap()).await.unwrap();
    assert_eq!(nobody.sessions, 0);
}

/// Yesterday's `confidant.db` beside today's `keyring.db` does not open what was erased since; and no table or file has
/// a trace of the rows or of the key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_a_backup_of_the_data_is_dead_once_its_keys_are() {
    let place = Place::sqlite();
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    for id in ["discord_conv:alice", "discord_conv:bob"] {
        session(&engine, id).turn(says("remember me")).finish().await.unwrap();
    }
    let tag = session(&engine, "discord_conv:alice").tag();
    stop(engine.clone()).await;
    drop(engine);
    std::fs::copy(place.file("confidant.db"), place.file("yesterday")).unwrap();
    let row = |file: &str, sql: &str| -> Vec<u8> {
        let db = rusqlite::Connection::open(place.file(file)).unwrap();
        db.query_row(&sql.replace("$alice", &format!("x'{tag}'")), [], |row| row.get(0)).unwrap()
    };
    let sealed_key = row("keyring.db", "SELECT sealed_key FROM session_keys WHERE scope_tag = $alice");
    let entry = row(
        "confidant.db",
        "SELECT sealed FROM records WHERE id = (SELECT head FROM sessions WHERE scope_tag = $alice)",
    );

    let engine = place.engine(&model).await;
    let (tenant, alice) = (TenantId::new("acme").unwrap(), UserId::new("alice").unwrap());
    let admin = engine.dangerously_administer(Actor::cli());
    let receipt = admin.erase_person(&tenant, &alice).await.unwrap();
    // No trace, while the engine still runs: not in the tables, not in free pages, not in the write-ahead logs.
    for file in ["confidant.db", "confidant.db-wal", "keyring.db", "keyring.db-wal"] {
        let bytes = std::fs::read(place.file(file)).unwrap_or_default();
        for trace in [&sealed_key[70..], &entry[70..]] {
            assert!(!bytes.windows(trace.len()).any(|window| window == trace), "a trace in {file}");
        }
    }
    stop(engine).await;
    drop(admin);
    std::fs::copy(place.file("yesterday"), place.file("confidant.db")).unwrap();
    let engine = place.engine(&model).await;
    assert_eq!(session(&engine, "discord_conv:alice").export().await.unwrap_err().code(), "key-gone");
    let admin = engine.dangerously_administer(Actor::cli());
    let export = admin.export_person(&tenant, &alice).await.unwrap();
    assert_eq!((export.sessions.len(), export.unreadable), (0, vec!["key-gone".to_owned()]));
    assert_eq!(transcript(&engine, "discord_conv:bob").await.len(), 2);
    // The receipt says which keys are gone, and they are.
    assert_eq!(receipt.keys.len(), 1);
}

async fn promise_6_erasing_while_a_turn_runs_keeps_nothing(place: Place) {
    let model = Recorder::new();
    let engine = place.engine(&model).await;
    let alice = session(&engine, "discord_conv:alice");
    alice.turn(says("one")).finish().await.unwrap();
    model.shut();
    model.take();
    let running = alice.turn(says("two"));
    model.until(1).await;
    alice.erase().await.unwrap();
    model.open();
    assert_eq!(running.finish().await.unwrap_err().code(), "erased");
    assert!(alice.export().await.unwrap().is_none());
    assert_eq!(engine.key_status().await.unwrap().keys, 0);
}

async fn promise_6_what_is_made_of_a_turn_does_not_bring_it_back(place: Place) {
    let s = setting(&place, |parts| parts.settings.processing.enrich = true).await;
    s.small.says("prepare_turn", plain());
    s.small.says("enrich_turn", json!({ "chat_summary": "They greeted each other." }));
    let alice = session(&s.engine, "http:r:main:alice");
    alice.turn(says("Hello")).finish().await.unwrap();
    s.engine.settle().await;
    *s.small.held.lock().unwrap() = Some("enrich_turn");
    let stopped = s.small.gate.acquire_many(1_000_000).await.unwrap();
    alice.turn(says("Bye")).finish().await.unwrap();
    while s.small.asked("enrich_turn").len() < 2 {
        tokio::task::yield_now().await;
    }
    alice.erase().await.unwrap();
    drop(stopped);
    s.engine.settle().await;
    assert!(alice.export().await.unwrap().is_none());
}
