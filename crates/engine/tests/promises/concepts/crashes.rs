//! Promise 5 for concepts: what a turn named is in the log with its answer, so it comes into scope whatever becomes of the
//! process, and once.

use std::sync::atomic::{AtomicUsize, Ordering};

use confidant_concepts::{Cleared, GraphError, Look, Node};
use tokio::sync::Semaphore;

use super::*;

on_every_store! {
    promise_5_what_a_turn_named_survives_its_process,
    promise_5_two_who_bring_the_same_into_scope_do_it_once,
    promise_6_what_was_taken_back_does_not_come_into_scope,
}

/// A graph that answers when it is let, and counts who asks. A turn asks it when its answer is in the log.
#[derive(Debug)]
struct Gated {
    graph: SqliteGraph,
    asked: AtomicUsize,
    gate: Semaphore,
}

impl Gated {
    fn shut() -> Arc<Self> {
        let graph = SqliteGraph::in_memory().unwrap();
        Arc::new(Self { graph, asked: AtomicUsize::new(0), gate: Semaphore::new(0) })
    }

    async fn until_asked(&self) {
        while self.asked.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl Graph for Gated {
    async fn nodes(&self, ids: &[String], language: &str) -> Result<Vec<Option<Node>>, GraphError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _permit = self.gate.acquire().await.unwrap();
        self.graph.nodes(ids, language).await
    }

    async fn find(&self, look: Look<'_>, language: &str, limit: usize) -> Result<Vec<Node>, GraphError> {
        self.graph.find(look, language, limit).await
    }

    async fn approve(&self, concept: Cleared) -> Result<String, GraphError> {
        self.graph.approve(concept).await
    }

    async fn count(&self) -> Result<u64, GraphError> {
        self.graph.count().await
    }
}

/// A turn that is in the log and not in scope: it asks the graph, which does not answer.
async fn held_up(place: &Place, user: &str) -> (Rig, Arc<Gated>, Turn) {
    let graph = Gated::shut();
    let settings = ConceptSettings { graph_timeout: Duration::from_secs(3600), ..ConceptSettings::default() };
    let rig = rig_with(place, Arc::clone(&graph) as _, graph.graph.clone(), settings).await;
    rig.model.on("one", taxes());
    let request = TurnRequest {
        capture: true,
        audience: Some(Audience::Private),
        request_id: Some(format!("r-{user}")),
        ..says("one")
    };
    let turn = rig.session("acme", user, user).turn(request);
    graph.until_asked().await;
    (rig, graph, turn)
}

const BOTH: [&str; 2] = ["TAX:IE:VAT", "TAX:IE:VRT"];

async fn uses(session: &Session) -> Vec<u64> {
    session.concepts_in_scope().await.unwrap().concepts.iter().map(|one| one.uses).collect()
}

async fn promise_5_what_a_turn_named_survives_its_process(place: Place) {
    for user in ["alice", "bob"] {
        let (rig, _, turn) = held_up(&place, user).await;
        rig.engine.stop(Duration::ZERO).await;
        assert!(turn.finish().await.is_err());
    }
    let rig = rig(&place).await;
    let (alice, bob) = (rig.session("acme", "alice", "alice"), rig.session("acme", "bob", "bob"));
    assert_eq!(ids(&alice).await, Vec::<String>::new());
    // Her next turn comes before anybody looked after what was left, and is told.
    rig.turn(&alice, "two", Audience::Private).await;
    assert_eq!(rig.model.last_concepts(), LINES);
    assert_eq!(rig.engine.recover().await.unwrap(), Recovered::default());
    for session in [&alice, &bob] {
        assert_eq!(ids(session).await, BOTH);
        assert_eq!(uses(session).await, [1, 1]);
        assert_eq!(session.why_in_scope("TAX:IE:VAT").await.unwrap().len(), 1);
    }
    // Whoever comes later has nothing left to do.
    rig.engine.recover().await.unwrap();
    rig.turn(&bob, "three", Audience::Private).await;
    assert_eq!(uses(&bob).await, [1, 1]);
    // The answer is there, and what it was about.
    let again = TurnRequest { request_id: Some("r-bob".to_owned()), ..says("one") };
    let again = TurnRequest { audience: Some(Audience::Private), ..again };
    let answer = bob.turn(again).finish().await.unwrap();
    assert!(answer.metadata.replayed);
    assert_eq!(answer.metadata.concepts.unwrap().referenced_nodes, BOTH);
}

async fn promise_5_two_who_bring_the_same_into_scope_do_it_once(place: Place) {
    let (slow, graph, turn) = held_up(&place, "alice").await;
    let other = rig(&place).await;
    other.engine.recover().await.unwrap();
    let alice = other.session("acme", "alice", "alice");
    assert_eq!(ids(&alice).await, BOTH);
    graph.gate.add_permits(1000);
    let answer = turn.finish().await.unwrap();
    assert_eq!(answer.metadata.concepts.unwrap().referenced_nodes, BOTH);
    assert_eq!(uses(&alice).await, [1, 1]);
    slow.engine.recover().await.unwrap();
    other.engine.recover().await.unwrap();
    assert_eq!(uses(&alice).await, [1, 1]);
    assert_eq!(uses(&slow.session("acme", "alice", "alice")).await, [1, 1]);
}

async fn promise_6_what_was_taken_back_does_not_come_into_scope(place: Place) {
    let (slow, _, turn) = held_up(&place, "alice").await;
    slow.engine.stop(Duration::ZERO).await;
    assert!(turn.finish().await.is_err());
    let rig = rig(&place).await;
    let alice = rig.session("acme", "alice", "alice");
    assert!(alice.remove("r-alice").await.unwrap());
    rig.engine.recover().await.unwrap();
    assert_eq!(ids(&alice).await, Vec::<String>::new());
}
