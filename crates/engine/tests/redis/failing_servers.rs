//! Servers that are full, read-only, killed, replaced, or not who they should be: a clear outcome each time, and nothing lost.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use confidant_engine::storage::RedisSettings;
use confidant_engine::turn::MemoryState;
use confidant_engine::{Actor, Engine, Error, Parts, Storage, StoreError};

use crate::proxy::Proxy;
use crate::rig::*;
use crate::server::{Server, free_port};

const ID: &str = "http:r:main:alice";

async fn engine_at(url: &str, model: &Arc<Recorder>) -> Engine {
    let storage = Storage::redis(&redis_settings(url)).await.unwrap();
    Engine::open(Parts::new(storage, keys(&[1]), Arc::clone(model) as _)).await.unwrap()
}

async fn refused(settings: &RedisSettings) -> String {
    let refused = Storage::redis(settings).await.unwrap_err().to_string();
    assert!(refused.contains("; hint: "), "{refused}");
    refused
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_costs_memory_not_answers_and_loses_nothing() {
    let Some(server) = Server::start(&["--maxmemory-policy", "noeviction"]) else { return };
    let engine = engine_at(&server.url(), &Recorder::new()).await;
    session(&engine, ID).turn(says_as("r0", "zero")).finish().await.unwrap();
    // As long as it is full: a known session, and a new one, whose key is made first.
    server.ask::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    for id in [ID, "http:r:main:bob"] {
        let answer = session(&engine, id).turn(says_as("r1", "one")).finish().await.unwrap();
        assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
        assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-full"));
    }
    // What is there can be read, by a process that has nothing warm as well, and ended: that takes no room.
    assert_eq!(server.ask::<i64>(&["HGET", "checkpoint:http:r:main:alice:latest", "v"]), 2);
    server.ask::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    for id in [ID, "http:r:main:bob"] {
        let answer = session(&engine, id).turn(says_as("r1", "one")).finish().await.unwrap();
        // Of the known session the log has heard by now.
        assert!(answer.metadata.replayed == (id == ID) && !answer.metadata.resumed);
    }
    assert_eq!(transcript(&engine, ID).await, ["human:zero", "ai:noted: zero", "human:one", "ai:noted: one"]);
    engine.dangerously_administer(Actor::cli()).verify_audit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_throws_keys_away_is_pointed_out() {
    let Some(server) = Server::start(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]) else {
        return;
    };
    let engine = engine_at(&server.url(), &Recorder::new()).await;
    let error = engine.check_storage().await.unwrap_err().to_string();
    assert!(
        error.contains("allkeys-lru") && error.contains("hint: set maxmemory-policy noeviction"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_replica_costs_memory_not_answers_and_loses_nothing() {
    let Some(server) = Server::start(&[]) else { return };
    let model = Recorder::new();
    let engine = engine_at(&server.url(), &model).await;
    session(&engine, ID).turn(says_as("r0", "zero")).finish().await.unwrap();
    // Its master is nowhere; it goes on with what it has, for reading.
    server.ask::<()>(&["REPLICAOF", "127.0.0.1", &free_port().to_string()]);
    let answer = session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-read-only"));
    // Whoever asks whether it is ready learns of it, and of its end.
    while !matches!(engine.ping().await, Err(Error::Store(StoreError::ReadOnly))) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused = Storage::redis(&redis_settings(&server.url())).await.unwrap_err().to_string();
    assert!(refused.contains("read-only replica"), "{refused}");
    server.ask::<()>(&["REPLICAOF", "NO", "ONE"]);
    while engine.ping().await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap();
    assert_eq!(transcript(&engine, ID).await, ["human:zero", "ai:noted: zero", "human:one", "ai:noted: one"]);
}

/// Killed and started again, over and over, while turns run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_lose_and_double_nothing() {
    let Some(mut server) = Server::durable() else { return };
    let model = Recorder::new();
    let engine = engine_at(&server.url(), &model).await;
    let mut turns = Vec::new();
    for n in 0..4 {
        let engine = engine.clone();
        turns.push(tokio::spawn(async move {
            let id = format!("http:r:main:u{n}");
            for i in 0..30 {
                loop {
                    let turn = session(&engine, &id).turn(says_as(&format!("r{i}"), &format!("q{i}")));
                    match turn.finish().await {
                        Ok(answer) if answer.metadata.memory == MemoryState::Kept => break,
                        Ok(_) => {}
                        Err(error) => assert!(error.to_string().contains("; hint: "), "{error}"),
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }));
    }
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(150)).await;
        server.kill();
        tokio::time::sleep(Duration::from_millis(150)).await;
        server.start_again();
    }
    for turn in turns {
        turn.await.unwrap();
    }
    for n in 0..4 {
        let expected: Vec<String> =
            (0..30).flat_map(|i| [format!("human:q{i}"), format!("ai:noted: q{i}")]).collect();
        assert_eq!(transcript(&engine, &format!("http:r:main:u{n}")).await, expected);
    }
    engine.dangerously_administer(Actor::cli()).verify_audit().await.unwrap();
}

/// A server that does not answer, though its connections stand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_costs_memory_not_answers() {
    let Some(server) = Server::start(&[]) else { return };
    let engine = engine_at(&server.url(), &Recorder::new()).await;
    session(&engine, ID).turn(says_as("r0", "zero")).finish().await.unwrap();
    server.signal("STOP");
    let answer = session(&engine, "http:r:main:bob").turn(says("there?")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-unreachable"));
    server.signal("CONT");
    session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap();
    assert_eq!(transcript(&engine, ID).await.len(), 4);
}

/// A sentinel of a test's own.
struct Sentinel {
    process: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Sentinel {
    fn of(master: &Server) -> Self {
        Self::with(master, "")
    }

    /// One with this in its settings as well.
    fn with(master: &Server, more: &str) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let file = folder.path().join("sentinel.conf");
        let settings = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor main 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds main 2000\nsentinel failover-timeout main 3000\n{more}",
            folder.path().display(),
            master.port
        );
        std::fs::write(&file, settings).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test, told by its environment what to run")]
        let program = std::env::var("CONFIDANT_TEST_REDIS_SERVER").unwrap();
        let process = Command::new(program)
            .arg(file)
            .arg("--sentinel")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, port, _folder: folder }
    }

    /// How many replicas it knows of the master.
    fn replicas(&self) -> Option<usize> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).unwrap();
        let mut connection = client.get_connection().ok()?;
        let known: redis::Value =
            redis::cmd("SENTINEL").arg("replicas").arg("main").query(&mut connection).ok()?;
        known.as_sequence().map(<[redis::Value]>::len)
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_is_followed_and_what_was_replicated_is_there() {
    let Some(mut master) = Server::start(&["--repl-diskless-sync-delay", "0"]) else { return };
    let replica = Server::start(&["--replicaof", "127.0.0.1", &master.port.to_string()]).unwrap();
    replica.wait_until(|replica| {
        replica.ask::<String>(&["INFO", "replication"]).contains("master_link_status:up")
    });
    let sentinel = Sentinel::of(&master);
    master.wait_until(|_| sentinel.replicas() == Some(1));
    let model = Recorder::new();
    let engine = engine_at(&format!("redis+sentinel://127.0.0.1:{}/main", sentinel.port), &model).await;
    for i in 0..5 {
        session(&engine, ID).turn(says_as(&format!("r{i}"), &format!("q{i}"))).finish().await.unwrap();
    }
    assert_eq!(master.ask::<i64>(&["WAIT", "1", "5000"]), 1);
    // Redis itself promises no more than what the replica has; a connection of ours must not count for `WAIT`.
    let written: i64 = master.ask(&["HGET", "checkpoint:http:r:main:alice:latest", "v"]);
    replica.wait_until(|replica| {
        replica.ask::<Option<i64>>(&["HGET", "checkpoint:http:r:main:alice:latest", "v"]) == Some(written)
    });
    master.kill();
    // Turns are refused or go without memory until the replica has taken over, and go on then.
    for i in 5..8 {
        loop {
            match session(&engine, ID).turn(says_as(&format!("r{i}"), &format!("q{i}"))).finish().await {
                Ok(answer) if answer.metadata.memory == MemoryState::Kept => break,
                Ok(_) => {}
                Err(error) => assert!(error.to_string().contains("; hint: "), "{error}"),
            }
        }
    }
    assert!(replica.ask::<String>(&["INFO", "replication"]).contains("role:master"));
    let expected: Vec<String> =
        (0..8).flat_map(|i| [format!("human:q{i}"), format!("ai:noted: q{i}")]).collect();
    assert_eq!(transcript(&engine, ID).await, expected);
}

/// Behind one address, as a load balancer or a name has it: connections that stand lead to the old master still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_behind_one_address_is_followed() {
    let Some(old) = Server::start(&["--repl-diskless-sync-delay", "0"]) else { return };
    let new = Server::start(&["--replicaof", "127.0.0.1", &old.port.to_string()]).unwrap();
    let proxy = Proxy::to(old.port).await;
    let engine = engine_at(&proxy.url(), &Recorder::new()).await;
    session(&engine, ID).turn(says_as("r0", "zero")).finish().await.unwrap();
    let written: i64 = old.ask(&["HGET", "checkpoint:http:r:main:alice:latest", "v"]);
    new.wait_until(|new| {
        new.ask::<Option<i64>>(&["HGET", "checkpoint:http:r:main:alice:latest", "v"]) == Some(written)
    });
    new.ask::<()>(&["REPLICAOF", "NO", "ONE"]);
    old.ask::<()>(&["REPLICAOF", "127.0.0.1", &new.port.to_string()]);
    proxy.lead_to(new.port);
    session(&engine, ID).turn(says_as("r1", "one")).finish().await.unwrap();
    assert_eq!(transcript(&engine, ID).await, ["human:zero", "ai:noted: zero", "human:one", "ai:noted: one"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_have_a_password_of_their_own() {
    let Some(master) = Server::start(&["--requirepass", "secret", "--masterauth", "secret"]) else { return };
    let sentinel = Sentinel::with(&master, "sentinel auth-pass main secret\nrequirepass watch\n");
    let at =
        |login: &str| redis_settings(&format!("redis+sentinel://{login}127.0.0.1:{}/main", sentinel.port));
    master.wait_until(|_| std::net::TcpStream::connect(("127.0.0.1", sentinel.port)).is_ok());
    for wrong in [":secret@", ":secret@:CANARY@", "@:watch@"] {
        assert!(!refused(&at(wrong)).await.contains("CANARY"));
    }
    Storage::redis(&at(":secret@:watch@")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_addresses_and_passwords_are_named() {
    let Some(server) = Server::start(&["--requirepass", "secret"]) else { return };
    let at = |login: &str| redis_settings(&format!("redis://{login}127.0.0.1:{}", server.port));
    assert!(refused(&at("")).await.contains("rejected this user (NOAUTH)"));
    let wrong = refused(&at(":CANARY@")).await;
    assert!(wrong.contains("rejected this user") && !wrong.contains("CANARY"), "{wrong}");
    assert!(
        refused(&redis_settings(&format!("redis://127.0.0.1:{}", free_port())))
            .await
            .contains("connection refused")
    );
    Storage::redis(&at(":secret@")).await.unwrap();
    let sentinel =
        refused(&redis_settings(&format!("redis+sentinel://127.0.0.1:{}/main", free_port()))).await;
    assert!(sentinel.contains("cannot be reached"), "{sentinel}");
    let open = Server::start(&[]).unwrap();
    let cluster = refused(&redis_settings(&format!("redis+cluster://127.0.0.1:{}", open.port))).await;
    assert!(cluster.contains("not part of a Cluster"), "{cluster}");
}

/// What the operator's handbook says a user needs is enough, and less is said by name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_with_few_permissions_is_enough() {
    let Some(server) = Server::start(&[]) else { return };
    let rules = ["+@read", "+@write", "+@scripting", "+@connection", "+info", "+time", "~own:*"];
    server.ask::<()>(&[&["ACL", "SETUSER", "confidant", "on", ">secret"][..], &rules].concat());
    let url = format!("redis://confidant:secret@127.0.0.1:{}", server.port);
    let settings = RedisSettings { prefix: "own:".to_owned(), ..redis_settings(&url) };
    let storage = Storage::redis(&settings).await.unwrap();
    let engine = Engine::open(Parts::new(storage, keys(&[1]), Recorder::new() as _)).await.unwrap();
    session(&engine, ID).turn(says("hello")).finish().await.unwrap();
    session(&engine, ID).erase().await.unwrap();
    engine.check_storage().await.unwrap();
    engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
    stop(engine).await;
    server.ask::<()>(&["ACL", "SETUSER", "confidant", "-@scripting"]);
    let storage = Storage::redis(&settings).await.unwrap();
    let engine = Engine::open(Parts::new(storage, keys(&[1]), Recorder::new() as _)).await.unwrap();
    let answer = session(&engine, ID).turn(says("hello")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
    assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-refused"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_certificate_is_refused() {
    #[expect(clippy::disallowed_methods, reason = "a test, told by its environment where servers are")]
    let (url, ca) = (std::env::var("CONFIDANT_TEST_REDIS_TLS"), std::env::var("CONFIDANT_TEST_REDIS_CA"));
    let Some(plain) = Server::start(&[]) else { return };
    let (url, ca) = (url.unwrap(), std::fs::read(ca.unwrap()).unwrap());
    let good =
        RedisSettings { ca: Some(ca.clone()), prefix: "certificates:".to_owned(), ..redis_settings(&url) };
    Storage::redis(&good).await.unwrap();
    // Nobody that the system trusts has signed it.
    let unknown = refused(&RedisSettings { ca: None, ..good.clone() }).await;
    assert!(
        unknown.contains("TLS: the server's certificate is not signed by a trusted authority"),
        "{unknown}"
    );
    // Signed, but for another host.
    let port = url.rsplit_once(':').unwrap().1.parse().unwrap();
    let proxy = Proxy::to_on("127.0.0.2", port).await;
    let elsewhere = url.replace(&format!("127.0.0.1:{port}"), &format!("127.0.0.2:{}", proxy.port));
    let elsewhere = refused(&RedisSettings { ca: Some(ca.clone()), ..redis_settings(&elsewhere) }).await;
    assert!(elsewhere.contains("TLS: the server's certificate is for another host name"), "{elsewhere}");
    // No TLS where it is expected, and TLS where it is not.
    let no_tls =
        refused(&RedisSettings { ca: Some(ca), ..redis_settings(&plain.url().replace("redis", "rediss")) })
            .await;
    assert!(no_tls.contains("cannot be reached"), "{no_tls}");
    let no_plain = refused(&redis_settings(&url.replace("rediss", "redis"))).await;
    assert!(no_plain.contains("cannot be reached"), "{no_plain}");
    let nonsense = refused(&RedisSettings { ca: Some(b"nonsense".to_vec()), ..good }).await;
    assert!(nonsense.contains("ca_file"), "{nonsense}");
}
