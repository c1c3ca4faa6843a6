//! A bad network between an engine and its Redis: slow, cut, losing replies, gone for a while.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use confidant_engine::audit::Action;
use confidant_engine::turn::{Final, MemoryState};
use confidant_engine::{Actor, Engine, Parts, Recovered, Storage};

use crate::proxy::Proxy;
use crate::rig::*;
use crate::server::Server;

async fn engine_at(url: &str, model: &Arc<Recorder>) -> Engine {
    let storage = Storage::redis(&redis_settings(url)).await.unwrap();
    Engine::open(Parts::new(storage, keys(&[1]), Arc::clone(model) as _)).await.unwrap()
}

/// Asks until there is an answer, as a client does that was told to send it again.
async fn insist(engine: &Engine, id: &str, request: &str, query: &str) -> Final {
    for _ in 0..1200 {
        match session(engine, id).turn(says_as(request, query)).finish().await {
            Ok(answer) if answer.metadata.memory == MemoryState::Kept => return answer,
            Ok(_) => {}
            Err(error) => assert!(error.to_string().contains("; hint: "), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no answer");
}

/// Lets nobody through any more, and waits until the engine has noticed.
async fn gone(proxy: &Proxy, engine: &Engine) {
    proxy.refuse(true);
    while engine.ping().await.is_ok() {}
}

fn whole(turns: usize) -> Vec<String> {
    (0..turns).flat_map(|i| [format!("human:q{i}"), format!("ai:noted: q{i}")]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_network_costs_time_only() {
    let Some(server) = Server::start(&[]) else { return };
    let proxy = Proxy::to(server.port).await;
    proxy.slow(Duration::from_millis(50));
    let engine = engine_at(&proxy.url(), &Recorder::new()).await;
    let turns = (0..8).map(|n| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for i in 0..3 {
                let id = format!("http:r:main:u{n}");
                let answer = session(&engine, &id)
                    .turn(says_as(&format!("r{i}"), &format!("q{i}")))
                    .finish()
                    .await
                    .unwrap();
                assert_eq!(answer.metadata.memory, MemoryState::Kept);
            }
        })
    });
    for turn in turns.collect::<Vec<_>>() {
        turn.await.unwrap();
    }
    for n in 0..8 {
        assert_eq!(transcript(&engine, &format!("http:r:main:u{n}")).await, whole(3));
    }
    engine.dangerously_administer(Actor::cli()).verify_audit().await.unwrap();
}

/// The reply to a write is lost: it was done, it is recognised as done, and it is done once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_is_neither_a_conflict_nor_a_second_write() {
    let Some(server) = Server::start(&[]) else { return };
    let proxy = Proxy::to(server.port).await;
    let model = Recorder::new();
    let engine = engine_at(&proxy.url(), &model).await;
    let id = "http:r:main:alice";
    session(&engine, id).turn(says_as("r0", "q0")).finish().await.unwrap();
    for i in 1..20 {
        proxy.lose_a_reply();
        let answer =
            session(&engine, id).turn(says_as(&format!("r{i}"), &format!("q{i}"))).finish().await.unwrap();
        assert!(!answer.metadata.replayed && !answer.metadata.resumed, "turn {i}");
    }
    assert_eq!(transcript(&engine, id).await, whole(20));
    assert_eq!(model.take().len(), 20);
    assert_eq!(engine.counts().conflicts, 0);
    let admin = engine.dangerously_administer(Actor::cli());
    let answered =
        admin.audit(1000).await.unwrap().iter().filter(|l| l.record.action == Action::TurnAnswered).count();
    assert_eq!(answered, 20);
    admin.verify_audit().await.unwrap();
}

/// Connections are cut all the time, under many sessions: every turn is answered once and in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_lose_and_double_nothing() {
    let Some(server) = Server::start(&[]) else { return };
    let proxy = Arc::new(Proxy::to(server.port).await);
    let model = Recorder::new();
    let engine = engine_at(&proxy.url(), &model).await;
    let cutting = tokio::spawn({
        let proxy = Arc::clone(&proxy);
        async move {
            for i in 0_u64.. {
                proxy.carries(8 + i * 13 % 30).await;
                if i % 3 == 0 { proxy.lose_a_reply() } else { proxy.cut() }
            }
        }
    });
    let mut turns = Vec::new();
    for n in 0..6 {
        let engine = engine.clone();
        turns.push(tokio::spawn(async move {
            for i in 0..25 {
                insist(&engine, &format!("http:r:main:u{n}"), &format!("r{i}"), &format!("q{i}")).await;
            }
        }));
    }
    for turn in turns {
        turn.await.unwrap();
    }
    cutting.abort();
    for n in 0..6 {
        assert_eq!(transcript(&engine, &format!("http:r:main:u{n}")).await, whole(25));
    }
    engine.dangerously_administer(Actor::cli()).verify_audit().await.unwrap();
}

/// Promise 8: while the store is away, answers come without memory and say so; then everything is as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_8_a_store_out_of_reach_costs_memory_not_answers() {
    let Some(server) = Server::start(&[]) else { return };
    let proxy = Proxy::to(server.port).await;
    let model = Recorder::new();
    let engine = engine_at(&proxy.url(), &model).await;
    session(&engine, "http:r:main:alice").turn(says_as("r0", "q0")).finish().await.unwrap();
    proxy.refuse(true);
    // One that is not warm here, and one that nobody has seen.
    for id in ["http:r:main:bob", "http:r:main:carol"] {
        let answer = session(&engine, id).turn(says("are you there?")).finish().await.unwrap();
        assert_eq!(answer.content, "noted: are you there?");
        assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
        assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-unreachable"));
    }
    // One that is warm is answered just so, the first time and the second.
    for (request, query) in [("r1", "q1"), ("r2", "q2")] {
        let turn = session(&engine, "http:r:main:alice").turn(says_as(request, query));
        let answer = turn.finish().await.unwrap();
        assert_eq!(answer.content, format!("noted: {query}"));
        assert_eq!(answer.metadata.memory, MemoryState::Unavailable);
        assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-unreachable"));
    }
    assert!(engine.ping().await.is_err());
    proxy.refuse(false);
    // Its log hears of it when that can be done.
    while engine.recover().await.map_or(0, |found| found.caught_up) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    insist(&engine, "http:r:main:alice", "r3", "q3").await;
    assert_eq!(transcript(&engine, "http:r:main:alice").await, whole(4));
    assert!(session(&engine, "http:r:main:bob").export().await.unwrap().is_none());
    engine.ping().await.unwrap();
    assert_eq!(engine.counts().degraded, 4);
}

/// Nobody asks again, and the process that has the turn lives on: it makes up for it by itself, once, and others hear of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_a_living_process_left_open_is_taken_up_by_it() {
    let Some(server) = Server::start(&[]) else { return };
    let proxy = Proxy::to(server.port).await;
    let model = Recorder::new();
    let engine = engine_at(&proxy.url(), &model).await;
    let id = "http:r:main:alice";
    let left_open = async |request: &str, query: &str| {
        model.shut();
        let turn = session(&engine, id).turn(says_as(request, query));
        model.until(1).await;
        gone(&proxy, &engine).await;
        // Without an answer: one that is there is told later.
        model.broken.store(true, Ordering::SeqCst);
        model.open();
        assert_eq!(turn.finish().await.unwrap_err().code(), "storage_failed");
        model.broken.store(false, Ordering::SeqCst);
        proxy.refuse(false);
        while engine.ping().await.is_err() {}
        assert_eq!(model.take().len(), 1);
    };
    left_open("r0", "q0").await;
    assert_eq!(engine.recover().await.unwrap(), Recovered { resumed: 1, ..Recovered::default() });
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    let other = engine_at(&server.url(), &model).await;
    let answer = session(&other, id).turn(says_as("r0", "q0")).finish().await.unwrap();
    assert!(answer.metadata.replayed);
    assert_eq!(model.take().len(), 1);
    // One that is asked for again is at work, and is not begun beside that.
    left_open("r1", "q1").await;
    model.shut();
    let turn = session(&engine, id).turn(says_as("r1", "q1"));
    model.until(1).await;
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    model.open();
    assert!(turn.finish().await.unwrap().metadata.resumed);
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    assert_eq!(model.take().len(), 1);
    assert_eq!(transcript(&engine, id).await, whole(2));
}

/// The server takes a call and never says a word: neither a start nor a turn waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_is_never_answered_costs_memory_not_answers() {
    let Some(server) = Server::start(&[]) else { return };
    let proxy = Proxy::to(server.port).await;
    let engine = engine_at(&proxy.url(), &Recorder::new()).await;
    session(&engine, "http:r:main:alice").turn(says_as("r0", "q0")).finish().await.unwrap();
    proxy.silent(true);
    let answer = session(&engine, "http:r:main:bob").turn(says("are you there?")).finish().await.unwrap();
    assert_eq!(answer.metadata.memory_error.as_deref(), Some("store-unreachable"));
    let refused = Storage::redis(&redis_settings(&proxy.url())).await.unwrap_err().to_string();
    assert!(refused.contains("; hint: "), "{refused}");
    proxy.silent(false);
    insist(&engine, "http:r:main:alice", "r1", "q1").await;
    assert_eq!(transcript(&engine, "http:r:main:alice").await, whole(2));
}

/// The answer is there and the store is not: it is given, says that it is not kept, and is kept later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_fails_costs_no_answer_and_is_made_up_for() {
    let Some(server) = Server::start(&[]) else { return };
    let proxy = Proxy::to(server.port).await;
    let model = Recorder::new();
    let engine = engine_at(&proxy.url(), &model).await;
    let id = "http:r:main:alice";
    model.shut();
    let turn = session(&engine, id).turn(says_as("r0", "q0"));
    model.until(1).await;
    gone(&proxy, &engine).await;
    model.open();
    let answer = turn.finish().await.unwrap();
    assert_eq!((answer.content.as_str(), answer.metadata.memory), ("noted: q0", MemoryState::Unavailable));
    proxy.refuse(false);
    let answer = insist(&engine, id, "r0", "q0").await;
    assert!(answer.metadata.replayed, "it was answered, so it is told again");
    assert_eq!(model.take().len(), 1);
    assert_eq!(transcript(&engine, id).await, whole(1));
    // A process that ends in between leaves it to the next.
    model.shut();
    model.take();
    let turn = session(&engine, id).turn(says_as("r1", "q1"));
    model.until(1).await;
    gone(&proxy, &engine).await;
    model.open();
    assert_eq!(turn.finish().await.unwrap().metadata.memory, MemoryState::Unavailable);
    proxy.refuse(false);
    engine.stop(Duration::ZERO).await;
    let engine = engine_at(&server.url(), &model).await;
    assert_eq!(engine.recover().await.unwrap(), Recovered { resumed: 1, ..Recovered::default() });
    assert_eq!(engine.recover().await.unwrap(), Recovered::default());
    assert_eq!(transcript(&engine, id).await, whole(2));
}
