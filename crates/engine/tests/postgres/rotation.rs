//! Rotating the keys of many sessions while turns run, and what that writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use confidant_engine::room::Audience;
use confidant_engine::turn::MemoryState;
use confidant_engine::{Actor, Engine, Parts, Storage};
use tokio_postgres::Client;

use crate::rig::*;
use crate::server::*;

/// How many sessions: a few, unless `CONFIDANT_ROTATED_SESSIONS` says how many.
fn sessions() -> usize {
    #[expect(clippy::disallowed_methods, reason = "a test that is a measurement when it is told to be")]
    let told = std::env::var("CONFIDANT_ROTATED_SESSIONS");
    told.ok().and_then(|count| count.parse().ok()).unwrap_or(150)
}

/// Makes sessions that say something of this length each.
async fn fill(engine: &Engine, count: usize, length: usize) {
    let mut tasks = Vec::new();
    for part in 0..8 {
        let engine = engine.clone();
        tasks.push(tokio::spawn(async move {
            for n in (part..count).step_by(8) {
                let said = "x".repeat(length);
                let session = session(&engine, &format!("http:r:main:u{n}"));
                session.record_exchange(Audience::Room, &said, "noted", "test").await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// The bytes that the server has written to its log so far.
async fn written(client: &Client) -> i64 {
    let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotation_writes_as_much_as_there_are_sessions_and_fails_no_turn() {
    let Some(server) = Breakable::take().await else { return };
    let count = sessions();
    let mut bytes = Vec::new();
    for length in [10, 20_000] {
        let settings = server.settings();
        let source = keys(&[1]);
        let storage = Storage::postgres(&settings).await.unwrap();
        let engine =
            Engine::open(Parts::new(storage, source.clone() as _, Recorder::new() as _)).await.unwrap();
        fill(&engine, count, length).await;
        // Nothing else writes: so much does the rotation itself.
        let client = raw(&server.url, &settings.schema).await;
        client.batch_execute("VACUUM session_keys").await.unwrap();
        source.set(&[2, 1]);
        let before = written(&client).await;
        let rotated = engine.rotate_keys(&Actor::cli(), &|_, _| {}).await.unwrap();
        bytes.push(written(&client).await - before);
        assert_eq!((rotated.keys, rotated.rewrapped), (count as u64, count as u64));
        // Now beside turns, of old sessions and of new ones.
        source.set(&[3, 2, 1]);
        let done = Arc::new(AtomicBool::new(false));
        let turns: Vec<_> = (0..4)
            .map(|n| {
                let (engine, done) = (engine.clone(), Arc::clone(&done));
                tokio::spawn(async move {
                    let mut turns = 0;
                    while !done.load(Ordering::SeqCst) || turns < 5 {
                        for id in [format!("http:r:main:u{n}"), format!("http:r:main:new{n}x{turns}")] {
                            let answer = session(&engine, &id).turn(says("and now?")).finish().await.unwrap();
                            assert_eq!(answer.metadata.memory, MemoryState::Kept);
                        }
                        turns += 1;
                    }
                    turns
                })
            })
            .collect();
        let rotated = engine.rotate_keys(&Actor::cli(), &|_, _| {}).await;
        done.store(true, Ordering::SeqCst);
        let mut ran = 0;
        for turn in turns {
            ran += turn.await.unwrap();
        }
        rotated.unwrap();
        assert_eq!(engine.key_status().await.unwrap().under_others, 0);
        let verified = engine.dangerously_administer(Actor::cli()).verify_everything().await.unwrap();
        assert!(verified.refused.is_empty() && verified.keys == (count + ran) as u64, "{verified:?}");
        stop(engine).await;
    }
    let each = bytes[0] / i64::try_from(count).unwrap();
    #[expect(clippy::print_stderr, reason = "it is a measurement, too")]
    {
        eprintln!(
            "rotating {count} sessions wrote {} and {} bytes, {each} for each session",
            bytes[0], bytes[1]
        );
    }
    // Two thousand times the content, and the same to write.
    assert!(bytes[1] < bytes[0] * 2 && bytes[0] < bytes[1] * 2, "{bytes:?}");
}
