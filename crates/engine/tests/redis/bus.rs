//! Gateways and workers on a bus that is slow, or moves to another server. Their store is there all the while.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_engine::*;

use crate::proxy::Proxy;
use crate::rig::*;
use crate::server::Server;

async fn engine(store: &Server, model: Arc<dyn Model>) -> Engine {
    let storage = Storage::redis(&redis_settings(&store.url())).await.unwrap();
    Engine::open(Parts::new(storage, keys(&[1]), model)).await.unwrap()
}

fn bus(url: &str) -> BusSettings {
    BusSettings::new(redis_settings(url).into(), TenantId::new("acme").unwrap())
}

async fn works(engine: &Engine, url: &str) -> tokio::task::JoinHandle<()> {
    let mut worker = engine.become_worker(bus(url)).await.unwrap();
    tokio::spawn(async move { worker.work().await })
}

/// A model that says what it says in many small pieces.
#[derive(Debug)]
struct Halting;

const PIECES: usize = 400;

#[async_trait]
impl Model for Halting {
    fn name(&self) -> &str {
        "halting"
    }

    async fn respond(&self, _: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        let mut text = String::new();
        for i in 0..PIECES {
            let piece = format!("{i} ");
            deltas(&piece);
            text.push_str(&piece);
        }
        Ok(Answer { text, calls: Vec::new(), model: "halting".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

/// How often somebody has said something on the bus.
fn published(server: &Server) -> usize {
    let stats: String = server.ask(&["INFO", "commandstats"]);
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_publish:calls="));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}

/// On a bus that takes its time, an answer of many pieces takes a few of its times, and not one for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_that_come_while_one_is_being_said_are_said_together() {
    let Some(server) = Server::start(&[]) else { return };
    let proxy = Proxy::to(server.port).await;
    let worker = engine(&server, Arc::new(Halting)).await;
    let _working = works(&worker, &proxy.url()).await;
    let gateway = engine(&server, Arc::new(Halting)).await;
    gateway.become_gateway(bus(&server.url())).await.unwrap();
    proxy.slow(Duration::from_millis(20));
    for id in ["http:r:main:alice", "http:r:main:bob"] {
        let mut turn = session(&gateway, id).turn(says("count"));
        let (mut pieces, mut whole) = (String::new(), None);
        while let Some(event) = turn.next().await {
            match event {
                Outbound::Delta { text, .. } => pieces.push_str(&text),
                Outbound::Final(answer) => whole = Some(answer.content),
                Outbound::Error(error) => panic!("{error}"),
                _ => assert!(whole.is_none(), "the end is the last"),
            }
        }
        assert_eq!(Some(pieces), whole);
    }
    let published = published(&server);
    assert!(published < PIECES, "{published} messages for two answers");
}

/// The address leads to another server, and the old one goes on as its replica: nothing but a write tells that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_follows_the_workers_to_the_server_that_took_over() {
    let (Some(store), Some(old), Some(new)) =
        (Server::start(&[]), Server::start(&[]), Server::start(&["--repl-diskless-sync-delay", "0"]))
    else {
        return;
    };
    let proxy = Proxy::to(old.port).await;
    let model = Recorder::new();
    let gateway = engine(&store, Arc::clone(&model) as _).await;
    let settings = BusSettings { patience: Duration::from_secs(20), ..bus(&proxy.url()) };
    gateway.become_gateway(settings).await.unwrap();
    let first = engine(&store, Arc::clone(&model) as _).await;
    let working = works(&first, &old.url()).await;
    session(&gateway, "http:r:main:alice").turn(says("before")).finish().await.unwrap();
    working.abort();
    old.ask::<()>(&["REPLICAOF", "127.0.0.1", &new.port.to_string()]);
    old.wait_until(|old| old.ask::<String>(&["INFO", "replication"]).contains("master_link_status:up"));
    proxy.lead_to(new.port);
    let second = engine(&store, Arc::clone(&model) as _).await;
    let _working = works(&second, &proxy.url()).await;
    let answer = session(&gateway, "http:r:main:alice").turn(says("after")).finish().await.unwrap();
    assert_eq!(answer.content, "noted: after");
    assert_eq!(model.take().len(), 2);
}

/// A request id is any word, and on a plain bus everybody hears every answer: each is told their own, under their own name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_people_whose_messages_have_the_same_name_are_each_answered() {
    let Some(server) = Server::start(&[]) else { return };
    let model = Recorder::new();
    let plain = || BusSettings { speech: Speech::Plain, ..bus(&server.url()) };
    let worker = engine(&server, Arc::clone(&model) as _).await;
    let mut work = worker.become_worker(plain()).await.unwrap();
    let _working = tokio::spawn(async move { work.work().await });
    let mut gateways = Vec::new();
    for _ in 0..2 {
        let gateway = engine(&server, Arc::clone(&model) as _).await;
        gateway.become_gateway(plain()).await.unwrap();
        gateways.push(gateway);
    }
    for (round, other) in [&gateways[0], &gateways[1]].into_iter().enumerate() {
        let name = format!("name{round}");
        model.shut();
        let ann = session(&gateways[0], "http:r:main:ann").turn(says_as(&name, "I am ann"));
        let bob = session(other, "http:r:main:bob").turn(says_as(&name, "I am bob"));
        model.until(2).await;
        model.open();
        let (ann, bob) = tokio::join!(ann.finish(), bob.finish());
        let (ann, bob) = (ann.unwrap(), bob.unwrap());
        assert_eq!([&*ann.content, &*bob.content], ["noted: I am ann", "noted: I am bob"]);
        assert_eq!([&*ann.request_id, &*bob.request_id], [&*name, &*name]);
        assert_eq!(model.take().len(), 2);
    }
    // The log knows them by the name that their person gave them, and answers at once or when their claim is over.
    let again = session(&gateways[1], "http:r:main:ann").turn(says_as("name1", "I am ann"));
    assert!(again.finish().await.unwrap().metadata.replayed);
    assert_eq!(model.take().len(), 0);
}
