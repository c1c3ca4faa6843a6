//! What is in Redis, under which names, and for how long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use confidant_engine::access::Role;
use confidant_engine::audit::Action;
use confidant_engine::clock::{Clock as _, ManualClock, Millis, SystemClock};
use confidant_engine::rights::{Receipt, ReceiptProof};
use confidant_engine::storage::{RedisNames, RedisSettings};
use confidant_engine::turn::MemoryState;
use confidant_engine::{Actor, Engine, Error, Lifetimes, Parts, Scope, Settings, Storage, TenantId};

use crate::rig::*;
use crate::server::Server;

const ROOM: &str = "!abc123:matrix.org:main:@alice:matrix.org";
const ROOM_KEY: &str = "checkpoint:!abc123:matrix.org:main:@alice:matrix.org:latest";
const DAY: i64 = 86_400_000;

async fn engine(server: &Server, settings: Settings) -> Engine {
    let storage = Storage::redis(&redis_settings(&server.url())).await.unwrap();
    let parts = Parts { settings, ..Parts::new(storage, keys(&[1]), Recorder::new() as _) };
    Engine::open(parts).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_has_its_name_its_lifetime_and_nothing_readable() {
    let Some(server) = Server::start(&[]) else { return };
    let engine = engine(&server, Settings::default()).await;
    for id in [ROOM, "discord_conv:4711"] {
        session(&engine, id).turn(says("the word is CANARY")).finish().await.unwrap();
    }
    assert_eq!(server.ask::<String>(&["TYPE", ROOM_KEY]), "hash");
    let left: i64 = server.ask(&["PTTL", ROOM_KEY]);
    assert!(left > DAY - 120_000 && left <= DAY, "{left}");
    // A turn begins the lifetime anew.
    server.ask::<()>(&["PEXPIRE", ROOM_KEY, "60000"]);
    session(&engine, ROOM).turn(says("and again")).finish().await.unwrap();
    let left: i64 = server.ask(&["PTTL", ROOM_KEY]);
    assert!(left > DAY - 120_000 && left <= DAY, "{left}");
    // A history that follows the person has none.
    assert_eq!(server.ask::<i64>(&["PTTL", "discord_conv:4711"]), -1);
    for key in [ROOM_KEY, "discord_conv:4711"] {
        let bytes: Vec<Vec<u8>> = server.ask(&["HGETALL", key]);
        assert!(
            bytes.len() > 10
                && !bytes.iter().any(|value| contains(value, "CANARY") || contains(value, "alice"))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_but_expiring_keys_remains_after_the_lifetime() {
    let Some(server) = Server::start(&[]) else { return };
    let lifetimes = Lifetimes { place: Some(Duration::from_secs(2)), person: Some(Duration::from_secs(2)) };
    let engine = engine(&server, Settings { lifetimes, ..Settings::default() }).await;
    let admin = engine.dangerously_administer(Actor::cli());
    admin.new_token(&TenantId::new("acme").unwrap(), &Role::Admin).await.unwrap();
    for i in 0..20 {
        let id = if i % 2 == 0 { format!("http:r{i}:main:u{i}") } else { format!("discord_conv:u{i}") };
        session(&engine, &id).turn(says("hello")).finish().await.unwrap();
    }
    session(&engine, "http:r0:main:u0").erase().await.unwrap();
    engine.stop(Duration::ZERO).await;
    drop((engine, admin));
    let begun = Instant::now();
    let session_keys =
        |server: &Server| server.keys().iter().filter(|(key, _)| !key.starts_with("confidant:")).count();
    server.wait_until(|server| session_keys(server) == 0);
    // Before anything that waits for a sweep, which is a minute at most.
    assert!(begun.elapsed() < Duration::from_secs(50));
    // What never expires is a closed list, and none of it is of a session.
    let system = ["format", "tokens", "lanes", "named", "anchors"];
    for (key, left) in server.keys() {
        let name = key.strip_prefix("confidant:").unwrap();
        let is_system = system.contains(&name)
            || name.strip_prefix("lane:{").is_some_and(|rest| rest.ends_with('}'))
            || name.strip_prefix("keys:{").is_some_and(|rest| rest.ends_with('}'));
        // 0: it ends in this very millisecond.
        assert!(left >= 0 || is_system, "{name} has no lifetime: {left}");
        // Key rows and their index wait for a sweep, a minute at most.
        assert!(!name.starts_with("keys:") || is_system || left <= 62_000, "{name} lives for {left} ms");
        assert!(
            !name.starts_with("at:") && !name.starts_with("sessions:") || left <= 2_250,
            "{name} lives for {left} ms"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_redis_ended_begins_anew_and_its_key_goes() {
    let Some(server) = Server::start(&[]) else { return };
    let lifetimes = Lifetimes { place: Some(Duration::from_secs(4)), person: None };
    let engine = engine(&server, Settings { lifetimes, ..Settings::default() }).await;
    session(&engine, ROOM).turn(says("one")).finish().await.unwrap();
    session(&engine, "discord_conv:bob").turn(says("kept")).finish().await.unwrap();
    server.wait_until(|server| server.ask::<i64>(&["EXISTS", ROOM_KEY]) == 0);
    // Warm in this process, gone in the store: neither a conflict for ever nor tampering.
    let answer = session(&engine, ROOM).turn(says("two")).finish().await.unwrap();
    assert_eq!((answer.metadata.memory, answer.metadata.recalled), (MemoryState::Kept, 0));
    server.wait_until(|server| server.ask::<i64>(&["EXISTS", ROOM_KEY]) == 0);
    assert_eq!(engine.key_status().await.unwrap().keys, 2);
    assert_eq!(engine.sweep().await.unwrap(), 1);
    assert_eq!(engine.key_status().await.unwrap().keys, 1);
    assert!(session(&engine, ROOM).export().await.unwrap().is_none());
    let admin = engine.dangerously_administer(Actor::cli());
    let ended = admin
        .audit(100)
        .await
        .unwrap()
        .iter()
        .filter(|line| line.record.action == Action::SessionExpired)
        .count();
    assert_eq!(ended, 2);
    admin.verify_audit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_with_the_same_session_id_have_keys_of_their_own() {
    let Some(server) = Server::start(&[]) else { return };
    let engine = engine(&server, Settings::default()).await;
    for (tenant, words) in [("acme", "from acme"), ("b:c", "from the other")] {
        let scope = Scope::parse(TenantId::new(tenant).unwrap(), ROOM).unwrap();
        engine.session(scope, Actor::cli()).turn(says(words)).finish().await.unwrap();
    }
    let mut keys: Vec<String> = server.ask(&["KEYS", "*checkpoint*"]);
    keys.sort();
    assert_eq!(keys, [ROOM_KEY.to_owned(), format!("tenant:b%3Ac:{ROOM_KEY}")]);
    assert_eq!(transcript(&engine, ROOM).await, ["human:from acme", "ai:noted: from acme"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opaque_names_say_nothing_and_cannot_be_switched_by_accident() {
    let Some(server) = Server::start(&[]) else { return };
    let opaque = RedisSettings { names: RedisNames::Opaque, ..redis_settings(&server.url()) };
    let open = async |settings: &RedisSettings| {
        let storage = Storage::redis(settings).await?;
        Engine::open(Parts::new(storage, keys(&[1]), Recorder::new() as _)).await
    };
    let engine = open(&opaque).await.unwrap();
    for id in [ROOM, "discord_conv:alice"] {
        session(&engine, id).turn(says("hello")).finish().await.unwrap();
    }
    let keys = server.keys();
    assert!(keys.iter().any(|(key, _)| key.starts_with("checkpoint:") && key.ends_with(":latest")));
    assert!(keys.iter().any(|(key, _)| key.starts_with("discord_conv:")));
    assert!(
        keys.iter()
            .all(|(key, _)| !key.contains("alice") && !key.contains("abc123") && !key.contains("matrix"))
    );
    let admin = engine.dangerously_administer(Actor::cli());
    let tenant = TenantId::new("acme").unwrap();
    assert_eq!(admin.sessions(Some(&tenant), 10).await.unwrap().len(), 2);
    stop(engine.clone()).await;
    let refused = open(&redis_settings(&server.url())).await.unwrap_err().to_string();
    assert!(refused.contains("opaque names") && refused.contains("; hint: "), "{refused}");
    let engine = open(&opaque).await.unwrap();
    assert_eq!(transcript(&engine, ROOM).await.len(), 2);
}

/// Commands that come and go write the audit log as well; they must not each leave a lane behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audit_lanes_are_used_again() {
    let Some(server) = Server::start(&[]) else { return };
    for _ in 0..5 {
        let engine = engine(&server, Settings::default()).await;
        let admin = engine.dangerously_administer(Actor::cli());
        admin.sessions(None, 10).await.unwrap();
        admin.verify_audit().await.unwrap();
        stop(engine).await;
    }
    assert_eq!(server.ask::<i64>(&["GET", "confidant:lanes"]), 1);
}

/// A record that is cut off a lane, a lane that is gone, records that go before their time: each is noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_log_is_whole_or_refused() {
    for attack in [
        vec!["RPOP", "LIST"],
        vec!["LPOP", "LIST"],
        vec!["DEL", "LIST"],
        vec!["DEL", "confidant:lane:{0}"],
        vec!["LSET", "LIST", "2", "forged"],
        vec!["HSET", "confidant:lane:{0}", "n", "9"],
    ] {
        let Some(server) = Server::start(&[]) else { return };
        let engine = engine(&server, Settings::default()).await;
        for i in 0..3 {
            session(&engine, ROOM).turn(says(&format!("turn {i}"))).finish().await.unwrap();
        }
        stop(engine.clone()).await;
        drop(engine);
        let list: Vec<String> = server.ask(&["KEYS", "confidant:lane:{0}:*"]);
        let words: Vec<&str> =
            attack.iter().map(|word| if *word == "LIST" { list[0].as_str() } else { word }).collect();
        server.ask::<redis::Value>(&words);
        let engine = self::engine(&server, Settings::default()).await;
        let verified = engine.dangerously_administer(Actor::cli()).verify_audit().await;
        assert!(matches!(verified, Err(Error::Unverified { .. })), "{attack:?}: {verified:?}");
    }
}

/// The audit log lets go of its records in time; a receipt outlives the record that it names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_outlives_its_audit_record() {
    let Some(server) = Server::start(&[]) else { return };
    let engine = engine(&server, Settings::default()).await;
    session(&engine, ROOM).turn(says("hello")).finish().await.unwrap();
    let receipt = session(&engine, ROOM).erase().await.unwrap();
    let admin = engine.dangerously_administer(Actor::cli());
    assert_eq!(admin.verify_receipt(&receipt).await.unwrap(), ReceiptProof::Recorded);
    stop(engine.clone()).await;
    drop((admin, engine));
    // What Redis does when the time is over.
    let lists: Vec<String> = server.ask(&["KEYS", "confidant:lane:{0}:*"]);
    server.ask::<i64>(&["DEL", &lists[0]]);
    let now = self::engine(&server, Settings::default()).await;
    let refused = now.dangerously_administer(Actor::cli()).verify_receipt(&receipt).await;
    assert!(matches!(refused, Err(Error::Unverified { .. })), "before its time: {refused:?}");
    stop(now).await;
    let storage = Storage::redis(&redis_settings(&server.url())).await.unwrap();
    let clock = Arc::new(ManualClock::new(Millis(SystemClock.now().0 + 60 * DAY)));
    let parts = Parts { clock, ..Parts::new(storage, keys(&[1]), Recorder::new() as _) };
    let later = Engine::open(parts).await.unwrap();
    let admin = later.dangerously_administer(Actor::cli());
    assert_eq!(admin.verify_receipt(&receipt).await.unwrap(), ReceiptProof::Outlived);
    let forged = Receipt { sessions: 7, ..receipt };
    assert!(admin.verify_receipt(&forged).await.is_err(), "its signature must hold all the same");
}

/// Whoever can write to the server can destroy, not forge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_4_what_was_tampered_with_is_refused() {
    let other = "checkpoint:!abc123:matrix.org:main:@bob:matrix.org:latest";
    for (attack, code) in [
        (vec![vec!["HDEL", ROOM_KEY, "2"]], "log-truncated"),
        (vec![vec!["HDEL", ROOM_KEY, "6"]], "log-truncated"),
        (vec![vec!["HSET", ROOM_KEY, "3", "{\"kind\":\"accepted\"}"]], "record-refused"),
        (vec![vec!["HSET", ROOM_KEY, "v", "4"], vec!["HDEL", ROOM_KEY, "5", "6"]], "rolled-back"),
        (vec![vec!["HSET", ROOM_KEY, "7", "x"]], "record-refused"),
        (vec![vec!["DEL", ROOM_KEY]], "rolled-back"),
        (vec![vec!["RENAME", other, ROOM_KEY]], "key-gone"),
        (vec![vec!["HSET", ROOM_KEY, "k", "nonsense"]], "key-gone"),
        (vec![vec!["HSET", ROOM_KEY, "f", "x", "c", "6"]], "record-refused"),
    ] {
        let Some(server) = Server::start(&[]) else { return };
        let engine = engine(&server, Settings::default()).await;
        for id in [ROOM, "!abc123:matrix.org:main:@bob:matrix.org"] {
            for i in 0..3 {
                session(&engine, id).turn(says(&format!("turn {i}"))).finish().await.unwrap();
            }
        }
        stop(engine.clone()).await;
        drop(engine);
        for words in &attack {
            server.ask::<redis::Value>(words);
        }
        let engine = self::engine(&server, Settings::default()).await;
        assert_eq!(session(&engine, ROOM).export().await.unwrap_err().code(), code, "{attack:?}");
        let answer = session(&engine, ROOM).turn(says("go on")).finish().await.unwrap();
        assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
        // What cannot be read can be erased.
        session(&engine, ROOM).erase().await.unwrap();
        assert_eq!(server.ask::<i64>(&["EXISTS", ROOM_KEY]), 0, "{attack:?}");
        let answer = session(&engine, ROOM).turn(says("anew")).finish().await.unwrap();
        assert_eq!(answer.metadata.memory, MemoryState::Kept);
    }
}
