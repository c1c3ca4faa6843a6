//! A database that restarts, goes away, deadlocks, refuses writes or has no connection left: each a clear outcome, nothing lost.

use std::time::Duration;

use confidant_engine::storage::PostgresSettings;
use confidant_engine::turn::MemoryState;
use confidant_engine::{Actor, Error, Storage, StoreError};

use crate::proxy::Proxy;
use crate::rig::*;
use crate::server::*;

const ID: &str = "http:r:main:alice";

/// Down and up again as after a loss of power, over and over, while turns run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_lose_and_double_nothing() {
    let Some(server) = Breakable::take().await else { return };
    let engine = engine_at(&server.settings(), &Recorder::new()).await;
    let mut turns = Vec::new();
    for n in 0..4 {
        let engine = engine.clone();
        turns.push(tokio::spawn(async move {
            for i in 0..20 {
                insist(&engine, &format!("http:r:main:u{n}"), &format!("r{i}"), &format!("q{i}")).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }));
    }
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.turn("restart").await;
    }
    for turn in turns {
        turn.await.unwrap();
    }
    for n in 0..4 {
        assert_eq!(transcript(&engine, &format!("http:r:main:u{n}")).await, whole(20));
    }
    engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
}

/// Promise 8: while the database is away, answers come without memory and say so; then everything is as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_8_a_database_out_of_reach_costs_memory_not_answers() {
    let Some(server) = Breakable::take().await else { return };
    let engine = engine_at(&server.settings(), &Recorder::new()).await;
    session(&engine, ID).turn(says_as("r0", "q0")).finish().await.unwrap();
    server.turn("stop").await;
    let answer = session(&engine, "http:r:main:bob").turn(says("are you there?")).finish().await.unwrap();
    assert_eq!(answer.content, "noted: are you there?");
    assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
    assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-unreachable"));
    // One that is warm is answered just so, the first time and the second.
    for (request, query) in [("r1", "q1"), ("r2", "q2")] {
        let answer = session(&engine, ID).turn(says_as(request, query)).finish().await.unwrap();
        assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
        assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-unreachable"));
    }
    assert!(engine.ping().await.is_err());
    server.turn("start").await;
    insist(&engine, ID, "r3", "q3").await;
    assert_eq!(transcript(&engine, ID).await, whole(4));
    assert!(session(&engine, "http:r:main:bob").export().await.unwrap().is_none());
}

/// The server takes a call and never says a word: neither a start nor a turn waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_is_never_answered_costs_memory_not_answers() {
    let Some(url) = server("CONFIDANT_TEST_POSTGRES") else { return };
    let (before, rest) = url.split_once("127.0.0.1:").unwrap();
    let (port, rest) = rest.split_once('/').unwrap();
    let proxy = Proxy::to(port.parse().unwrap()).await;
    let settings = postgres_settings(&format!("{before}127.0.0.1:{}/{rest}", proxy.port));
    let engine = engine_at(&settings, &Recorder::new()).await;
    session(&engine, ID).turn(says_as("r0", "q0")).finish().await.unwrap();
    proxy.silent(true);
    let answer = session(&engine, "http:r:main:bob").turn(says("are you there?")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-unreachable"));
    let answer = session(&engine, ID).turn(says_as("r1", "q1")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
    let refused = Storage::postgres(&settings).await.unwrap_err().to_string();
    assert!(refused.contains("timed out") && refused.contains("; hint: "), "{refused}");
    proxy.silent(false);
    insist(&engine, ID, "r1", "q1").await;
    assert_eq!(transcript(&engine, ID).await, whole(2));
}

/// A migration waits for a lock for as long as it takes: longer than a turn may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_is_not_held_to_the_limits_of_a_turn() {
    let Some(server) = Breakable::take().await else { return };
    let settings = server.settings();
    stop(engine_at(&settings, &Recorder::new()).await).await;
    let mut client = raw(&server.url, &settings.schema).await;
    // As it was before the last two.
    let back = "DELETE FROM migrations WHERE version >= 8;
                DROP POLICY gone_in_its_time ON audit_records;
                DROP POLICY of_its_tenant ON conversation_context;
                ALTER TABLE conversation_context
                    ALTER COLUMN updated_at DROP DEFAULT,
                    ALTER COLUMN tenant_id TYPE bytea USING as_tag(tenant_id),
                    ALTER COLUMN conversation_id TYPE bytea USING as_tag(conversation_id),
                    ALTER COLUMN context_json TYPE bytea USING context_as_bytes(context_json),
                    ALTER COLUMN updated_at TYPE bigint USING as_millis(updated_at);
                CREATE POLICY of_its_tenant ON conversation_context USING (works_for(tenant_id));
                DROP FUNCTION context_as_json(bytea), context_as_bytes(jsonb), as_uuid(bytea), as_tag(uuid),
                    as_time(bigint), as_millis(timestamptz)";
    client.batch_execute(back).await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute("LOCK TABLE conversation_context IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let starting = tokio::spawn({
        let settings = settings.clone();
        async move { Storage::postgres(&settings).await.map(drop) }
    });
    let watch = raw(&server.url, &settings.schema).await;
    let waited =
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'conversation_context'::regclass
                  AND waitstart < clock_timestamp() - interval '6 seconds'";
    while watch.query_one(waited, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!starting.is_finished(), "{:?}", starting.await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    transaction.rollback().await.unwrap();
    starting.await.unwrap().unwrap();
    let engine = engine_at(&settings, &Recorder::new()).await;
    session(&engine, ID).turn(says_as("r0", "q0")).finish().await.unwrap();
}

/// The database refuses writes, as one does that follows another: said by name, and made up for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_database_costs_memory_not_answers_and_loses_nothing() {
    let Some(server) = Breakable::take().await else { return };
    let settings = server.settings();
    let engine = engine_at(&settings, &Recorder::new()).await;
    session(&engine, ID).turn(says_as("r0", "q0")).finish().await.unwrap();
    let client = raw(&server.url, &settings.schema).await;
    client.batch_execute("ALTER ROLE confidant SET default_transaction_read_only = on").await.unwrap();
    // That is for connections which are made from now on.
    server.turn("restart").await;
    let reason = loop {
        // The first may still find its connection gone.
        let answer = session(&engine, ID).turn(says_as("r1", "q1")).finish().await.unwrap();
        let reason = answer.metadata.memory_error.unwrap_or_default();
        if reason != "store-unreachable" {
            break reason;
        }
    };
    assert_eq!(reason, "store-read-only");
    // Whoever asks whether it is ready learns of it, and of its end.
    while !matches!(engine.ping().await, Err(Error::Store(StoreError::ReadOnly))) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let client = raw(&server.url, &settings.schema).await;
    for command in [
        "SET default_transaction_read_only = off",
        "ALTER ROLE confidant RESET default_transaction_read_only",
    ] {
        client.batch_execute(command).await.unwrap();
    }
    server.turn("restart").await;
    insist(&engine, ID, "r1", "q1").await;
    assert_eq!(transcript(&engine, ID).await, whole(2));
    while engine.ping().await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whoever looks for turns that were left open does so every two seconds, and must not read every session for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_turns_are_found_without_reading_every_session() {
    let Some(settings) = settings() else { return };
    let engine = engine_at(&settings, &Recorder::new()).await;
    session(&engine, ID).turn(says_as("r0", "q0")).finish().await.unwrap();
    let client = raw(&server("CONFIDANT_TEST_POSTGRES").unwrap(), &settings.schema).await;
    // With a handful of sessions reading all of them is cheaper.
    client.batch_execute("SET confidant.tenant = '*'; SET enable_seqscan = off").await.unwrap();
    let asked = "EXPLAIN SELECT scope_tag, owner FROM sessions WHERE owner IS NOT NULL ORDER BY scope_tag";
    let plan = client.query(asked, &[]).await.unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    assert!(plan.join("\n").contains("sessions_open"), "{plan:#?}");
}

/// After a failover behind one address: old connections lead to a server that follows now, new ones to the one that leads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_a_server_that_became_read_only_are_not_kept() {
    let Some(server) = Breakable::take().await else { return };
    let settings = server.settings();
    let engine = engine_at(&settings, &Recorder::new()).await;
    let client = raw(&server.url, &settings.schema).await;
    client.batch_execute("ALTER ROLE confidant SET default_transaction_read_only = on").await.unwrap();
    server.turn("restart").await;
    // Several connections are made under that rule.
    let turns: Vec<_> = (0..8)
        .map(|n| {
            let session = session(&engine, &format!("http:r:main:u{n}"));
            tokio::spawn(async move { session.turn(says_as("r0", "q0")).finish().await })
        })
        .collect();
    for turn in turns {
        let _ = turn.await.unwrap();
    }
    let client = raw(&server.url, &settings.schema).await;
    for command in [
        "SET default_transaction_read_only = off",
        "ALTER ROLE confidant RESET default_transaction_read_only",
    ] {
        client.batch_execute(command).await.unwrap();
    }
    // No restart: whoever connects anew may write, and the first that is refused has all others made anew.
    session(&engine, ID).turn(says_as("r0", "q0")).finish().await.unwrap();
    assert_eq!(transcript(&engine, ID).await, whole(1));
}

/// Somebody else's transaction and ours wait for each other: the database ends ours, and it is made again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_got_over() {
    let Some(settings) = settings() else { return };
    let url = server("CONFIDANT_TEST_POSTGRES").unwrap();
    let model = Recorder::new();
    let engine = engine_at(&settings, &model).await;
    session(&engine, ID).turn(says_as("r0", "q0")).finish().await.unwrap();
    let (mut client, watch) = (raw(&url, &settings.schema).await, raw(&url, &settings.schema).await);
    client.batch_execute("SET confidant.tenant = '*'").await.unwrap();
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%append_session%'
                   AND application_name = 'confidant' AND pid IN (SELECT pid FROM pg_locks WHERE relation = 'audit_lanes'::regclass)";
    let (mut turns, mut ended) = (1, 0);
    while ended == 0 {
        assert!(turns < 30, "ours was never the one that the database ended");
        let transaction = client.transaction().await.unwrap();
        transaction.batch_execute("SELECT 1 FROM audit_lanes FOR UPDATE").await.unwrap();
        let turn = tokio::spawn({
            let session = session(&engine, ID);
            let request = says_as(&format!("r{turns}"), &format!("q{turns}"));
            async move { session.turn(request).finish().await }
        });
        // Ours has the session and waits for the lane; now the other way round.
        while watch.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
        let theirs = transaction.batch_execute("UPDATE sessions SET version = version").await;
        ended += usize::from(theirs.is_ok());
        transaction.rollback().await.unwrap();
        turn.await.unwrap().unwrap();
        turns += 1;
    }
    assert_eq!(transcript(&engine, ID).await, whole(turns));
    assert_eq!(model.take().len(), turns);
    engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
}

/// Every connection that there may be is waiting for somebody: reads go on without memory, writes are refused, and nothing
/// of that is kept waiting for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_pool_is_said_and_passes() {
    let Some(settings) = settings() else { return };
    let settings = PostgresSettings { connections: 2, ..settings };
    let engine = engine_at(&settings, &Recorder::new()).await;
    // Many at once share few connections.
    let turns: Vec<_> = (0..48)
        .map(|n| {
            let engine = engine.clone();
            let id = format!("http:r:main:u{}", n % 16);
            let request = says_as(&format!("r{n}"), &format!("q{n}"));
            tokio::spawn(async move { session(&engine, &id).turn(request).finish().await })
        })
        .collect();
    for turn in turns {
        assert_eq!(turn.await.unwrap().unwrap().metadata.memory, MemoryState::Kept);
    }
    // Now all of them wait.
    let mut client = raw(&server("CONFIDANT_TEST_POSTGRES").unwrap(), &settings.schema).await;
    let transaction = client.transaction().await.unwrap();
    transaction.batch_execute("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let stuck: Vec<_> = (0..4)
        .map(|n| {
            let engine = engine.clone();
            tokio::spawn(async move {
                session(&engine, &format!("http:r:main:new{n}"))
                    .turn(says_as("r", "are you there?"))
                    .finish()
                    .await
            })
        })
        .collect();
    for turn in stuck {
        let answer = turn.await.unwrap().unwrap();
        assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
        assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-busy"));
    }
    let answer = session(&engine, "http:r:main:u0").turn(says_as("late", "late")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-busy"));
    transaction.rollback().await.unwrap();
    insist(&engine, "http:r:main:u0", "late", "late").await;
    let said = transcript(&engine, "http:r:main:u0").await;
    assert_eq!((said.len(), said.last().unwrap().as_str()), (8, "ai:noted: late"));
}
