//! Taking over the conversations of the first system on the Redis that they are on: what was theirs is ours then, and ends with us.

use std::collections::BTreeMap;

use confidant_engine::keys::MasterKeys;
use confidant_engine::storage::{Imported, LeftBecause, RedisSettings, Way, import_checkpoints};
use confidant_engine::{Engine, MasterKey, Parts, Storage, TenantId};

use crate::rig::*;
use crate::server::Server;

const ALICE: &str = "cli:db:main:alice";

/// What the first system sealed, with the key for it.
fn checkpoints() -> (BTreeMap<String, String>, MasterKeys) {
    let rows = include_str!("../../../confidant/tests/cli/fixtures/checkpoints.json");
    let current = MasterKey::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    (serde_json::from_str(rows).unwrap(), MasterKeys { current, retired: vec![] })
}

async fn engine_at(settings: &RedisSettings) -> Engine {
    let storage = Storage::redis(settings).await.unwrap();
    Engine::open(Parts::new(storage, keys(&[1]), Recorder::new() as _)).await.unwrap()
}

async fn import(engine: &Engine, from: &RedisSettings) -> Imported {
    let tenant = TenantId::new("acme").unwrap();
    import_checkpoints(engine, from, &tenant, &checkpoints().1, Way::SetAside, &|_, _| {}).await.unwrap()
}

/// Promise 6: of a conversation that was taken over nothing stays when it is erased, and nothing brings it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_6_what_was_taken_over_is_erased_for_good() {
    let Some(server) = Server::start(&[]) else { return };
    let settings = redis_settings(&server.url());
    for (id, row) in checkpoints().0 {
        server.ask::<()>(&["SET", &format!("checkpoint:{id}:latest"), &row, "EX", "600"]);
    }
    let engine = engine_at(&settings).await;
    let imported = import(&engine, &settings).await;
    assert_eq!((imported.sessions, imported.refused, imported.unknown), (4, 1, 1));
    // What a session holds is nowhere else; what was not taken over is beside it, or where it was if it does not open.
    let mut beside = server.ask::<Vec<String>>(&["KEYS", "legacy:*"]);
    beside.sort();
    // Dave's has what a tool was called with, which is not taken over.
    assert_eq!(
        beside,
        ["dave", "erin", "frank", "grace"].map(|who| format!("legacy:checkpoint:cli:db:main:{who}:latest"))
    );
    assert_eq!(server.ask::<String>(&["TYPE", "checkpoint:cli:db:main:carol:latest"]), "string");
    let said = transcript(&engine, ALICE).await;
    assert!(!said.is_empty());
    let again = import(&engine, &settings).await;
    // What no session has is counted again with the empty one only: the others are here.
    assert_eq!((again.sessions, again.already, again.incomplete), (0, 2, 0));
    assert_eq!(again.left, imported.left);
    session(&engine, ALICE).erase().await.unwrap();
    assert_eq!(import(&engine, &settings).await.sessions, 0);
    assert_eq!(transcript(&engine, ALICE).await, Vec::<String>::new());
    // One that an earlier version set aside and left, and one that was never taken over, end with their sessions, too.
    let row = &checkpoints().0[ALICE];
    for key in ["legacy:checkpoint:cli:db:main:alice:latest", "checkpoint:cli:db:main:alice:latest"] {
        server.ask::<()>(&["SET", key, row]);
        session(&engine, ALICE).erase().await.unwrap();
        assert_eq!(server.ask::<i64>(&["EXISTS", key]), 0, "{key}");
    }
    assert_eq!(import(&engine, &settings).await.sessions, 0);
}

/// Cut off between making way and writing, it is taken over by the next run; one that is here already is not removed unread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_made_way_stays_until_a_session_holds_it() {
    let Some(server) = Server::start(&[]) else { return };
    let settings = redis_settings(&server.url());
    let engine = engine_at(&settings).await;
    let row = &checkpoints().0[ALICE];
    let aside = "legacy:checkpoint:cli:db:main:alice:latest";
    server.ask::<()>(&["SET", aside, row, "EX", "600"]);
    assert_eq!(import(&engine, &settings).await.sessions, 1);
    assert_eq!(server.ask::<i64>(&["EXISTS", aside]), 0);
    // A run that was cut off after writing left it.
    server.ask::<()>(&["SET", aside, row, "EX", "600"]);
    assert_eq!(import(&engine, &settings).await, Imported { already: 1, ..Imported::default() });
    assert_eq!(server.ask::<i64>(&["EXISTS", aside]), 0);
    // Somebody spoke before it was taken over.
    session(&engine, ALICE).erase().await.unwrap();
    session(&engine, ALICE).turn(says("something else")).finish().await.unwrap();
    server.ask::<()>(&["SET", aside, row, "EX", "600"]);
    let apart = Imported { already: 1, incomplete: 1, messages_left: 2, ..Imported::default() };
    assert_eq!(import(&engine, &settings).await, apart);
    assert_eq!(server.ask::<i64>(&["EXISTS", aside]), 1);
    session(&engine, ALICE).erase().await.unwrap();
    assert_eq!(server.ask::<i64>(&["EXISTS", aside]), 0);
}

/// What cannot be taken over keeps nobody from speaking: it makes way, with what was never answered. Until then it is said
/// what is in the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_taken_over_is_in_nobodys_way() {
    let Some(server) = Server::start(&[]) else { return };
    let settings = redis_settings(&server.url());
    for (id, row) in checkpoints().0 {
        server.ask::<()>(&["SET", &format!("checkpoint:{id}:latest"), &row, "EX", "600"]);
    }
    let engine = engine_at(&settings).await;
    let (erin, frank, grace) = ("cli:db:main:erin", "cli:db:main:frank", "cli:db:main:grace");
    let in_the_way = session(&engine, grace).export().await.unwrap_err().to_string();
    assert!(in_the_way.contains("confidant store import"), "{in_the_way}");
    let imported = import(&engine, &settings).await;
    assert_eq!((imported.sessions, imported.partly, imported.empty, imported.unknown), (4, 2, 1, 1));
    for id in [erin, frank, grace] {
        session(&engine, id).turn(says("I live in Oslo")).finish().await.unwrap();
        assert!(transcript(&engine, id).await.iter().any(|said| said.contains("oslo")), "{id}");
        let aside = format!("legacy:checkpoint:{id}:latest");
        assert_eq!(server.ask::<i64>(&["EXISTS", &aside]), 1, "{id}");
        session(&engine, id).erase().await.unwrap();
        assert_eq!(server.ask::<i64>(&["EXISTS", &aside]), 0, "{id}");
    }
}

const EVE: &str = "cli:db:main:eve";
const EVES: &str = "checkpoint:cli:db:main:eve:latest";

/// A row as the first system seals it: under the key of [`checkpoints`], without associated data.
fn sealed(id: &str, messages: usize) -> String {
    use base64::Engine as _;
    let said = (0..messages).map(|i| {
        serde_json::json!({"type": if i % 2 == 0 { "human" } else { "ai" }, "content": format!("message number {i}")})
    });
    let mut data = serde_json::json!({ "messages": said.collect::<Vec<_>>() }).to_string().into_bytes();
    let master: Vec<u8> = (0..32).collect();
    let mut key = [0; 32];
    let rounds = std::num::NonZeroU32::new(100_000).expect("it is not zero");
    ring::pbkdf2::derive(ring::pbkdf2::PBKDF2_HMAC_SHA256, rounds, id.as_bytes(), &master, &mut key);
    let key = ring::aead::UnboundKey::new(&ring::aead::CHACHA20_POLY1305, &key).expect("keys have 32 bytes");
    let nonce = [7_u8; 12];
    ring::aead::LessSafeKey::new(key)
        .seal_in_place_append_tag(
            ring::aead::Nonce::assume_unique_for_key(nonce),
            ring::aead::Aad::empty(),
            &mut data,
        )
        .expect("it is short enough");
    let whole = [&nonce[..], &data].concat();
    let whole = base64::engine::general_purpose::STANDARD.encode(whole);
    serde_json::json!({"_encrypted": true, "data": whole}).to_string()
}

/// A long conversation loses nothing on its way, though no more than a hundred messages of ours are kept; what is said later
/// goes on from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_of_400_messages_is_taken_over_whole() {
    let Some(server) = Server::start(&[]) else { return };
    let settings = redis_settings(&server.url());
    server.ask::<()>(&["SET", EVES, &sealed(EVE, 400), "EX", "600"]);
    let engine = engine_at(&settings).await;
    assert_eq!(import(&engine, &settings).await, Imported { sessions: 1, ..Imported::default() });
    assert_eq!(server.ask::<Vec<String>>(&["KEYS", "legacy:*"]), Vec::<String>::new());
    let said = async |engine: &Engine| {
        let export = session(engine, EVE).export().await.expect("it opens").expect("it is there");
        export.messages.into_iter().map(|message| message.content).collect::<Vec<_>>()
    };
    let all: Vec<String> = (0..400).map(|i| format!("message number {i}")).collect();
    assert_eq!(said(&engine).await, all);
    // Through folds, too: the newest four hundred.
    for i in 0..40 {
        session(&engine, EVE).turn(says(&format!("more {i}"))).finish().await.expect("it is answered");
    }
    stop(engine).await;
    let after = said(&engine_at(&settings).await).await;
    assert_eq!((after.len(), after[0].as_str()), (400, "message number 80"));
}

/// Where nothing is to be kept, the original stays, and that is said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_stays_and_is_counted() {
    let Some(server) = Server::start(&[]) else { return };
    let settings = redis_settings(&server.url());
    server.ask::<()>(&["SET", EVES, &sealed(EVE, 400), "EX", "600"]);
    let storage = Storage::redis(&settings).await.expect("it is there");
    let mut parts = Parts::new(storage, keys(&[1]), Recorder::new() as _);
    parts.settings.history.max_messages = 0;
    let engine = Engine::open(parts).await.expect("it opens");
    let shortened = Imported { sessions: 1, incomplete: 1, messages_left: 400, ..Imported::default() };
    assert_eq!(import(&engine, &settings).await, shortened);
    assert_eq!(server.ask::<i64>(&["EXISTS", &format!("legacy:{EVES}")]), 1);
    // With room for them it is here, as long as nothing was folded.
    stop(engine).await;
    let engine = engine_at(&settings).await;
    assert_eq!(import(&engine, &settings).await, Imported { already: 1, ..Imported::default() });
    assert_eq!(server.ask::<i64>(&["EXISTS", &format!("legacy:{EVES}")]), 0);
}

/// Whatever has the name of a checkpoint and is none is named, by its beginning, and left; sessions of ours are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_cannot_be_read_are_named_and_left() {
    let Some(server) = Server::start(&[]) else { return };
    let settings = redis_settings(&server.url());
    let engine = engine_at(&settings).await;
    session(&engine, ALICE).turn(says("I am ours")).finish().await.expect("it is answered");
    let key = |who: &str| format!("checkpoint:cli:db:main:{who}:latest");
    server.ask::<()>(&["HSET", &key("hanna"), "data", "x"]);
    server.ask::<()>(&["RPUSH", &key("ivan"), "x"]);
    server.ask::<()>(&[
        "SET",
        &key("judy"),
        r#"{"messages": [{"type": "human", "content": "in the clear"}]}"#,
    ]);
    server.ask::<()>(&["SET", "checkpoint::latest", &sealed("", 2)]);
    let imported = import(&engine, &settings).await;
    assert_eq!((imported.sessions, imported.already), (0, 0));
    assert_eq!((imported.unreadable, imported.refused, imported.unknown), (2, 1, 1));
    let left: Vec<_> = imported.left.iter().map(|row| (row.kind.as_str(), row.why)).collect();
    let expected = [
        ("hash", LeftBecause::OtherType),
        ("list", LeftBecause::OtherType),
        ("string", LeftBecause::NoSession),
        ("string", LeftBecause::NotEncrypted),
    ];
    assert_eq!(left, expected);
    for row in &imported.left {
        assert!(row.name.starts_with("check") && row.name.ends_with('*'), "{}", row.name);
        assert!(!["hanna", "ivan", "judy"].iter().any(|who| row.name.contains(who)), "{}", row.name);
    }
    for who in ["hanna", "ivan", "judy"] {
        assert_eq!(server.ask::<i64>(&["EXISTS", &key(who)]), 1, "{who}");
    }
}

/// On a Cluster they are on all servers, and make way from one to another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_on_a_cluster_are_taken_over() {
    let Some(url) = server("CONFIDANT_TEST_REDIS_CLUSTER") else { return };
    let settings = redis_settings(&url);
    let nodes: Vec<String> =
        url.trim_start_matches("redis+cluster://").split(',').map(|node| format!("redis://{node}")).collect();
    let client = redis::cluster::ClusterClient::new(nodes.clone()).unwrap();
    let mut cluster = client.get_connection().unwrap();
    let mut ask = |words: &[&str]| -> redis::Value {
        let mut cmd = redis::Cmd::new();
        for word in words {
            cmd.arg(*word);
        }
        cmd.query(&mut cluster).unwrap()
    };
    for (id, row) in checkpoints().0 {
        ask(&["SET", &format!("checkpoint:{id}:latest"), &row, "EX", "600"]);
    }
    let engine = engine_at(&settings).await;
    let imported = import(&engine, &settings).await;
    assert_eq!((imported.sessions, imported.refused, imported.unknown), (4, 1, 1));
    assert!(!transcript(&engine, ALICE).await.is_empty());
    for (id, _) in checkpoints().0 {
        let stays = ["dave", "erin", "frank", "grace"].iter().any(|who| id.ends_with(who));
        let key = format!("legacy:checkpoint:{id}:latest");
        assert_eq!(ask(&["EXISTS", &key]), redis::Value::Int(stays.into()), "{key}");
    }
    for (id, _) in checkpoints().0 {
        session(&engine, &id).erase().await.unwrap();
        assert_eq!(ask(&["EXISTS", &format!("checkpoint:{id}:latest")]), redis::Value::Int(0), "{id}");
    }
    assert_eq!(import(&engine, &settings).await, Imported::default());
    // One of its servers alone is not enough, and what is said of it leads to where it works.
    let one = Storage::redis(&redis_settings(&nodes[0])).await.unwrap_err().to_string();
    assert!(one.contains("redis+cluster://"), "{one}");
    stop(engine).await;
}
