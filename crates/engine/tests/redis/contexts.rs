//! What is in scope of conversations, and for how long Redis has it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_concepts::SqliteGraph;
use confidant_engine::clock::{Clock, ManualClock, SystemClock};
use confidant_engine::concepts::{ConceptSettings, Concepts, ContextStatus};
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt, ToolCall};
use confidant_engine::{Engine, Lifetimes, Parts, Settings, Storage, TurnRequest};
use serde_json::json;

use crate::rig::*;
use crate::server::Server;

/// So long that a slow machine finds the keys before they end.
const LIFETIME: Duration = Duration::from_secs(8);

/// Names one tax in every answer to a query that asks for it.
#[derive(Debug)]
struct Namer;

#[async_trait]
impl Model for Namer {
    fn name(&self) -> &str {
        "namer"
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        deltas("noted");
        let concept =
            json!({ "domain": "TAX", "kind": "VAT", "jurisdiction": "IE", "prefLabel": "Value-Added Tax" });
        let call = ToolCall {
            id: "c1".into(),
            name: "capture_concepts".into(),
            arguments: json!({ "concepts": [concept] }),
            signatures: vec![],
        };
        let calls = if prompt.query.starts_with("tax") { vec![call] } else { vec![] };
        Ok(Answer { text: "noted".into(), calls, model: "namer".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

async fn engine(server: &Server, lifetimes: Lifetimes) -> Engine {
    engine_at(server, lifetimes, Arc::new(SystemClock)).await
}

async fn engine_at(server: &Server, lifetimes: Lifetimes, clock: Arc<dyn Clock>) -> Engine {
    let storage = Storage::redis(&redis_settings(&server.url())).await.unwrap();
    let graph = Arc::new(SqliteGraph::in_memory().unwrap());
    let parts = Parts {
        concepts: Concepts::new(graph, ConceptSettings::default()),
        settings: Settings { lifetimes, ..Settings::default() },
        clock,
        ..Parts::new(storage, keys(&[1]), Arc::new(Namer))
    };
    Engine::open(parts).await.unwrap()
}

fn tax(query: &str) -> TurnRequest {
    TurnRequest { capture: true, ..says(query) }
}

/// Keys of contexts and of what finds them, each with what is left of its life.
fn left(server: &Server) -> Vec<(String, i64)> {
    let kinds = ["context:", "contexts:", "captured:", "used:"];
    let ours = |key: &str| kinds.iter().any(|kind| key.starts_with(&format!("confidant:{kind}")));
    server.keys().into_iter().filter(|(key, _)| ours(key)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contexts_end_where_nobody_sweeps() {
    let Some(server) = Server::start(&[]) else { return };
    let lifetimes = Lifetimes { place: Some(LIFETIME), person: None };
    let engine = engine(&server, lifetimes).await;
    session(&engine, "http:r:main:alice").turn(tax("tax me")).finish().await.unwrap();
    engine.settle().await;
    let keys = left(&server);
    assert_eq!(keys.len(), 4, "{keys:?}");
    let most = i64::try_from(LIFETIME.as_millis()).unwrap() * 2;
    assert!(keys.iter().all(|(_, left)| *left > 0 && *left <= most), "{keys:?}");
    engine.stop(Duration::from_secs(5)).await;
    drop(engine);
    server.wait_until(|server| left(server).is_empty());
    // Whoever comes then finds an empty conversation, not a damaged one.
    let engine = self::engine(&server, lifetimes).await;
    let alice = session(&engine, "http:r:main:alice");
    let answer = alice.turn(tax("tax me again")).finish().await.unwrap();
    assert_eq!(answer.metadata.context_status, ContextStatus::Empty);
    assert_eq!(alice.concepts_in_scope().await.unwrap().active_node_ids, ["TAX:IE:VAT"]);
    engine.stop(Duration::from_secs(5)).await;
}

/// Turns that name nothing keep the context as they keep the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_that_is_used_does_not_end() {
    let Some(server) = Server::start(&[]) else { return };
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let engine = engine_at(&server, Lifetimes::default(), Arc::clone(&clock) as _).await;
    let alice = session(&engine, "http:r:main:alice");
    alice.turn(tax("tax me")).finish().await.unwrap();
    let days = |server: &Server| {
        left(server).iter().map(|(_, left)| *left as f64 / 86_400_000.0).collect::<Vec<_>>()
    };
    assert!(days(&server).iter().all(|days| (1.9..=2.0).contains(days)), "{:?}", left(&server));
    for _ in 0..2 {
        clock.advance(Duration::from_secs(20 * 3600));
        let answer = alice.turn(says("hello")).finish().await.unwrap();
        assert_eq!(answer.metadata.context_status, ContextStatus::Loaded);
        engine.settle().await;
    }
    assert_eq!(left(&server).len(), 4);
    assert!(days(&server).iter().all(|days| (3.5..=3.7).contains(days)), "{:?}", left(&server));
    // One that belongs to a session without an end has none either.
    session(&engine, "discord_conv:bob").turn(tax("tax me")).finish().await.unwrap();
    let keys = left(&server);
    assert!(keys.iter().any(|(key, left)| key.starts_with("confidant:context:") && *left == -1), "{keys:?}");
    engine.stop(Duration::from_secs(5)).await;
}
