//! Promise 2 on what Redis writes to its disk.

use std::path::Path;

use confidant_engine::access::Role;
use confidant_engine::storage::RedisNames;
use confidant_engine::{Actor, Engine, Keep, Parts, Storage, TenantId, TurnRequest, UserId};

use crate::rig::*;
use crate::server::Server;

/// Every byte of every file below a folder.
fn bytes(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(bytes(&entry.path())),
            false => all.extend(std::fs::read(entry.path()).unwrap()),
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_2_nothing_readable_in_dumps_and_append_only_files() {
    for opaque in [false, true] {
        // Uncompressed, so that what is in a dump is seen there.
        let Some(server) =
            Server::start(&["--appendonly", "yes", "--rdbcompression", "no", "--aof-use-rdb-preamble", "no"])
        else {
            return;
        };
        let mut settings = redis_settings(&server.url());
        if opaque {
            settings.names = RedisNames::Opaque;
        }
        let model = Recorder::new();
        let storage = Storage::redis(&settings).await.unwrap();
        let engine = Engine::open(Parts::new(storage, keys(&[1]), model.clone() as _)).await.unwrap();
        let admin = engine.dangerously_administer(Actor::cli());
        let user = Role::User(UserId::new("@IDMARKuser:x.org").unwrap());
        admin.new_token(&TenantId::new("acme").unwrap(), &user).await.unwrap();
        for room in 0..3 {
            let alice = session(&engine, &format!("!IDMARKroom{room}:x.org:main:@IDMARKuser:x.org"));
            for i in 0..40 {
                let room = serde_json::from_value(serde_json::json!([
                    {"sender": "@WORDMARKbob:x.org", "content": format!("room line WORDMARKline{i}")}
                ]))
                .unwrap();
                let request = says_as(
                    &format!("WORDMARKrequest{i}"),
                    &format!("WORDMARKquery{i} {}", "long ".repeat(200)),
                );
                alice.turn(TurnRequest { room, ..request }).finish().await.unwrap();
            }
            alice.export().await.unwrap().unwrap();
        }
        model.shut();
        model.take();
        let hanging =
            session(&engine, "!IDMARKroom9:x.org:main:@IDMARKuser:x.org").turn(says("WORDMARKcutoff"));
        model.until(1).await;
        server.ask::<()>(&["SAVE"]);
        let found = bytes(server.path());
        assert!(found.len() > 100_000 && contains(&found, "confidant:format"), "the files are there");
        assert!(!contains(&found, "WORDMARK"), "a word is readable in a file");
        // Ids are in the names of keys, as the first systems had them, unless those are opaque.
        assert_eq!(contains(&found, "IDMARK"), !opaque);
        let mut own = server.keys();
        own.retain(|(key, _)| key.starts_with("confidant:"));
        assert!(own.len() > 5);
        for (key, _) in own {
            let value: Vec<u8> = server.ask(&["DUMP", &key]);
            assert!(!contains(&value, "IDMARK") && !key.contains("IDMARK"), "an id is readable in {key}");
        }
        drop(hanging);
        engine.stop(std::time::Duration::ZERO).await;
        // The tester's tester.
        server.ask::<()>(&["SET", "note", "a WORDMARK"]);
        server.ask::<()>(&["SAVE"]);
        assert!(contains(&bytes(server.path()), "WORDMARK"));
    }
}

/// As the first systems called it, so that operators find it; an opaque one tells nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_2_a_chats_session_is_called_by_what_it_is_unless_names_are_opaque() {
    for opaque in [false, true] {
        let Some(server) = Server::start(&[]) else { return };
        let mut settings = redis_settings(&server.url());
        if opaque {
            settings.names = RedisNames::Opaque;
        }
        let storage = Storage::redis(&settings).await.unwrap();
        let engine = Engine::open(Parts::new(storage, keys(&[1]), Recorder::new() as _)).await.unwrap();
        for (tenant, chat) in [("acme", "chat_a"), ("other", "chat_b")] {
            let chats = engine.web_sessions(TenantId::new(tenant).unwrap());
            let session = chats.session("acct_a", chat, Keep::Stored).unwrap();
            session.turn(says("Hello")).finish().await.unwrap();
            assert_eq!(chats.list("acct_a").await.unwrap().len(), 1);
        }
        let names: Vec<String> = server.keys().into_iter().map(|(key, _)| key).collect();
        for name in
            ["user:acct_a:chat:chat_a:messages:ai", "tenant:other:user:acct_a:chat:chat_b:messages:ai"]
        {
            assert_eq!(names.iter().any(|key| key == name), !opaque, "{name}");
        }
        assert_eq!(names.iter().any(|key| key.contains("acct_a")), !opaque);
        engine.stop(std::time::Duration::ZERO).await;
    }
}
