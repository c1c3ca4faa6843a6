//! Promise 8 for concepts: with the graph or the table down, slow or emptied, every chat is answered and says so, and what
//! is stored is never lost.

use std::sync::atomic::{AtomicU8, Ordering};

use confidant_concepts::{Cleared, GraphError, Look, Node};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::outage::Outage;
use super::*;

on_every_store! {
    promise_8_a_graph_that_fails_costs_the_paragraph_only,
}

/// A graph that can be taken away.
#[derive(Debug)]
struct Frail {
    graph: SqliteGraph,
    state: AtomicU8,
}

const WELL: u8 = 0;
const DOWN: u8 = 1;
const SLOW: u8 = 2;

impl Frail {
    async fn ask(&self) -> Result<&SqliteGraph, GraphError> {
        match self.state.load(Ordering::SeqCst) {
            DOWN => Err(GraphError::Unavailable("down".to_owned())),
            SLOW => std::future::pending().await,
            _ => Ok(&self.graph),
        }
    }
}

#[async_trait]
impl Graph for Frail {
    async fn nodes(&self, ids: &[String], language: &str) -> Result<Vec<Option<Node>>, GraphError> {
        self.ask().await?.nodes(ids, language).await
    }

    async fn find(&self, look: Look<'_>, language: &str, limit: usize) -> Result<Vec<Node>, GraphError> {
        self.ask().await?.find(look, language, limit).await
    }

    async fn approve(&self, concept: Cleared) -> Result<String, GraphError> {
        self.ask().await?.approve(concept).await
    }

    async fn count(&self) -> Result<u64, GraphError> {
        self.ask().await?.count().await
    }
}

async fn promise_8_a_graph_that_fails_costs_the_paragraph_only(place: Place) {
    let graph = SqliteGraph::in_memory().unwrap();
    let frail = Arc::new(Frail { graph: graph.clone(), state: AtomicU8::new(WELL) });
    let settings = ConceptSettings { graph_timeout: Duration::from_secs(2), ..ConceptSettings::default() };
    let rig = rig_with(&place, Arc::clone(&frail) as _, graph, settings).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.says(&alice, "one", Audience::Private, taxes()).await;
    for (n, state) in [DOWN, SLOW].into_iter().enumerate() {
        frail.state.store(state, Ordering::SeqCst);
        let query = format!("while it is away {n}");
        let answer = rig.says(&alice, &query, Audience::Private, kinds([format!("AWAY{n}")])).await;
        assert_eq!(answer.content, format!("about {}", query.len()));
        assert_eq!(answer.metadata.context_status, ContextStatus::GraphFailed);
        assert_eq!(answer.metadata.failed_aspects, ["conversation_context"]);
        assert!(!rig.model.last_text().contains("in scope"));
        // What was captured meanwhile is kept, under the id that it will have.
        assert_eq!(answer.metadata.concepts.unwrap().referenced_nodes, [format!("TAX:IE:AWAY{n}")]);
    }
    frail.state.store(WELL, Ordering::SeqCst);
    assert_eq!(ids(&alice).await.len(), 4);
    let answer = rig.turn(&alice, "back", Audience::Private).await;
    assert_eq!(answer.metadata.context_status, ContextStatus::Loaded);
}

/// The table behind a running engine, as an outage sees it.
pub(super) struct Table(rusqlite::Connection);

impl Table {
    pub(super) fn of(place: &Place) -> Self {
        let db = rusqlite::Connection::open(place.file("confidant.db")).unwrap();
        db.busy_timeout(Duration::from_secs(10)).unwrap();
        Self(db)
    }

    pub(super) fn run(&self, sql: &str) {
        self.0.execute_batch(sql).unwrap();
    }

    fn content(&self) -> Vec<Vec<u8>> {
        let mut rows =
            self.0.prepare("SELECT CAST(context_json AS BLOB) FROM conversation_context ORDER BY 1").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_8_a_failed_load_is_never_saved_over() {
    let place = Place::sqlite();
    let rig = rig(&place).await;
    let alice = rig.session("acme", "c1", "alice");
    rig.says(&alice, "one", Audience::Private, taxes()).await;
    let table = Table::of(&place);
    let before = table.content();
    table.run("ALTER TABLE conversation_context RENAME TO away");
    let answer = rig.says(&alice, "two", Audience::Private, kinds(["LOST".to_owned()])).await;
    assert_eq!(answer.metadata.context_status, ContextStatus::LoadFailed);
    assert_eq!(answer.metadata.memory, MemoryState::Kept, "the log is as well as ever");
    table.run("ALTER TABLE away RENAME TO conversation_context");
    assert_eq!(table.content(), before);
    // Saving fails while loading does not.
    table.run(
        "CREATE TRIGGER full BEFORE UPDATE ON conversation_context BEGIN SELECT RAISE(ABORT, 'full'); END",
    );
    let answer = rig.says(&alice, "three", Audience::Private, kinds(["LOST".to_owned()])).await;
    assert_eq!(answer.metadata.context_status, ContextStatus::SaveFailed);
    assert!(rig.model.last_text().contains("Value-Added Tax"));
    table.run("DROP TRIGGER full");
    assert_eq!(table.content(), before);
    // Tampered with: refused, named, and left as it is.
    for damage in ["X'00'", "'{\"activeNodeIds\":[\"TAX:IE:FORGED\"]}'"] {
        table.run(&format!("UPDATE conversation_context SET context_json = {damage}"));
        let damaged = table.content();
        let answer = rig.says(&alice, &format!("four {damage}"), Audience::Private, taxes()).await;
        assert_eq!(answer.metadata.context_status, ContextStatus::LoadFailed);
        assert!(!rig.model.last_text().contains("FORGED"));
        assert_eq!(table.content(), damaged);
        assert!(matches!(alice.concepts_in_scope().await, Err(Error::Tampered(Tampering::RecordRefused))));
    }
    // Erasing works on what cannot be read, too.
    alice.erase().await.unwrap();
    assert!(table.content().is_empty());
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Capture { user: u8, kinds: Vec<u8> },
    Look(u8),
    Pin(u8),
    LoadsFail(bool),
    SavesFail(bool),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kinds = proptest::collection::vec(0..40_u8, 1..4);
    let step = prop_oneof![
        6 => (0..3_u8, kinds).prop_map(|(user, kinds)| Step::Capture { user, kinds }),
        2 => (0..3_u8).prop_map(Step::Look),
        1 => (0..40_u8).prop_map(Step::Pin),
        1 => any::<bool>().prop_map(Step::LoadsFail),
        1 => any::<bool>().prop_map(Step::SavesFail),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..24)
}

/// Runs the steps and checks that what was said to be saved is there, and what could not be comes later.
async fn nothing_stored_is_lost(place: Place, steps: Vec<Step>) {
    let mut rig = rig(&place).await;
    let (mut saved, mut later, mut loads, mut saves) = (BTreeSet::new(), BTreeSet::new(), true, true);
    if place.is_served() {
        let first = rig.joined("acme", "c1", "user0").await;
        rig.says(&first, "first", Audience::Room, kinds(["FIRST".to_owned()])).await;
        saved.insert("TAX:IE:FIRST".to_owned());
    }
    let outage = Outage::of(&place).await;
    for (n, step) in steps.into_iter().enumerate() {
        match step {
            Step::Capture { user, kinds: wanted } => {
                let session = rig.joined("acme", "c1", &format!("user{user}")).await;
                let names: BTreeSet<String> = wanted.iter().map(|kind| format!("K{kind}")).collect();
                let answer = rig.says(&session, &format!("q{n}"), Audience::Room, kinds(names.clone())).await;
                match answer.metadata.context_status {
                    ContextStatus::Empty | ContextStatus::Loaded => {
                        assert!(loads && saves, "it says that it saved, and could not have");
                        saved.extend(names.iter().map(|name| format!("TAX:IE:{name}")));
                        continue;
                    }
                    ContextStatus::LoadFailed => assert!(!loads),
                    ContextStatus::SaveFailed => assert!(!saves),
                    other => panic!("{other:?}"),
                }
                later.extend(names.iter().map(|name| format!("TAX:IE:{name}")));
            }
            Step::Look(user) => {
                let session = rig.joined("acme", "c1", &format!("user{user}")).await;
                rig.turn(&session, &format!("look {n}"), Audience::Room).await;
            }
            Step::Pin(kind) => {
                let session = rig.joined("acme", "c1", "user0").await;
                let _ = session.choose_concept(&format!("TAX:IE:K{kind}"), ConceptChoice::Pin).await;
            }
            Step::LoadsFail(fail) if fail == loads => {
                outage.loads(!fail).await;
                loads = !fail;
            }
            Step::SavesFail(fail) if fail == saves && loads => {
                outage.saves(!fail).await;
                saves = !fail;
            }
            Step::Restart => {
                stop(rig.engine).await;
                rig = self::rig(&place).await;
            }
            Step::LoadsFail(_) | Step::SavesFail(_) => {}
        }
    }
    if !loads {
        outage.loads(true).await;
    }
    let found: BTreeSet<String> = ids(&rig.joined("acme", "c1", "user0").await).await.into_iter().collect();
    assert!(found.is_superset(&saved), "{found:?} {saved:?}");
    if !saves {
        outage.saves(true).await;
    }
    rig.engine.recover().await.unwrap();
    let found: BTreeSet<String> = ids(&rig.joined("acme", "c1", "user0").await).await.into_iter().collect();
    saved.append(&mut later);
    assert_eq!(found, saved);
}

/// Many times on new places; nothing where there are none.
fn try_steps(cases: u32, place: fn() -> Option<Place>) {
    let mut runner = TestRunner::new(ProptestConfig { cases, ..ProptestConfig::default() });
    let tried = runner.run(&steps(), |steps| {
        let Some(place) = place() else { return Ok(()) };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(nothing_stored_is_lost(place, steps));
        Ok(())
    });
    tried.unwrap();
}

macro_rules! lose_no_id {
    ($($test:ident: $cases:literal, $place:expr;)*) => {$(
        #[test]
        fn $test() {
            try_steps($cases, || $place);
        }
    )*};
}

lose_no_id! {
    promise_8_random_failures_lose_no_id_on_sqlite: 24, Some(Place::sqlite());
    promise_8_random_failures_lose_no_id_on_redis: 12, Place::redis_at("CONFIDANT_TEST_REDIS");
    promise_8_random_failures_lose_no_id_on_a_cluster: 6, Place::redis_at("CONFIDANT_TEST_REDIS_CLUSTER");
    promise_8_random_failures_lose_no_id_on_postgres: 6, Place::postgres_at("CONFIDANT_TEST_POSTGRES");
}
