//! Gateways and workers on a bus that is slow, or moves to another server. Their store is there all the while.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_display::debug_without_content;
use confidant_engine::approval::{Decider, Decision};
use confidant_engine::bus::{BusSettings, Speech};
use confidant_engine::head::{Claim, Digest, HeadState};
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt, ToolCall, ToolSpec};
use confidant_engine::prepare::Harm;
use confidant_engine::tools::{Effect, Invocation, Tool, ToolError, ToolOutput, Toolbox};
use confidant_engine::turn::{
    CarryOut, ClientResult, ClientStep, DataRequest, Ending, MayAsk, MemoryState, Outbound, Piece,
};
use confidant_engine::{Actor, Engine, Error, Keep, Parts, Storage, TenantId, Turn, TurnRequest, UserId};

use crate::proxy::Proxy;
use crate::rig::*;
use crate::server::Server;

const ACCOUNT: &str = "acct_aaaaaaaaaaaaaaaaaaaaaaaaaa";

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
    let settings = BusSettings { patience: Duration::from_secs(60), ..bus(&proxy.url()) };
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

/// A gateway has no model. With its bus away it says so by name; with only the store away, workers answer without memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_that_is_away_is_said_by_name_and_a_store_that_is_away_costs_memory_only() {
    let (Some(mut store), Some(mut meeting)) = (Server::durable(), Server::start(&[])) else { return };
    let model = Recorder::new();
    let worker = engine(&store, Arc::clone(&model) as _).await;
    let _working = works(&worker, &meeting.url()).await;
    let gateway = engine(&store, Arc::clone(&model) as _).await;
    let settings = BusSettings { patience: Duration::from_secs(10), ..bus(&meeting.url()) };
    gateway.become_gateway(settings).await.unwrap();
    assert!(gateway.has_worker().await);
    let ann = session(&gateway, "http:r:main:ann");
    assert_eq!(ann.turn(says("hello")).finish().await.unwrap().metadata.memory, MemoryState::Kept);
    store.kill();
    let bob = session(&gateway, "http:r:main:bob").turn(says("are you there?")).finish().await.unwrap();
    assert_eq!((&*bob.content, bob.metadata.memory), ("noted: are you there?", MemoryState::Unavailable));
    store.start_again();
    meeting.kill();
    let error = ann.turn(says("and now?")).finish().await.unwrap_err();
    assert_eq!(error.code(), "bus_unreachable");
    assert!(error.to_string().contains("bus.url"), "{error}");
}

/// As many askers as places, and more: whoever finds all places taken gets the next that is free, and not one a second later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_worker_takes_the_next_turn_as_soon_as_it_has_room() {
    let Some(server) = Server::start(&[]) else { return };
    let model = Recorder::new();
    let settings = || BusSettings { turns: 2, patience: Duration::from_secs(60), ..bus(&server.url()) };
    let worker = engine(&server, Arc::clone(&model) as _).await;
    let mut work = worker.become_worker(settings()).await.unwrap();
    let _working = tokio::spawn(async move { work.work().await });
    let gateway = engine(&server, Arc::clone(&model) as _).await;
    gateway.become_gateway(settings()).await.unwrap();
    session(&gateway, "http:r:main:warm").turn(says("up")).finish().await.unwrap();
    // All places are taken, and six wait.
    model.take();
    model.shut();
    let id = |n: usize| format!("http:r:main:u{n}");
    let asking: Vec<_> = (0..8).map(|n| session(&gateway, &id(n)).turn(says("hello"))).collect();
    model.until(2).await;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert_eq!(model.take().len(), 2, "no more than there is room for");
    model.open();
    for turn in asking {
        assert_eq!(turn.finish().await.unwrap().content, "noted: hello");
    }
    // Each asks again as soon as it has its answer.
    let askers = (0..2).map(|n| {
        let one = session(&gateway, &id(n));
        tokio::spawn(async move {
            let mut late = 0;
            for _ in 0..40 {
                let began = tokio::time::Instant::now();
                one.turn(says("again")).finish().await.unwrap();
                late += u32::from(began.elapsed() > Duration::from_millis(900));
            }
            late
        })
    });
    for asker in askers.collect::<Vec<_>>() {
        // One that finds no room and is only asked for again a second later is late; a slow machine may be, now and then.
        let late = asker.await.unwrap();
        assert!(late < 20, "{late} of 40");
    }
}

/// A tool that cuts its process off from the store while it runs.
struct Cutting(Arc<Proxy>, std::sync::atomic::AtomicUsize);

debug_without_content!(Cutting);

#[async_trait]
impl Toolbox for Cutting {
    async fn tools(&self) -> Vec<Tool> {
        let schema = serde_json::json!({ "type": "object" });
        let spec =
            ToolSpec { name: "files.delete".into(), description: "Deletes.".into(), schema, strict: None };
        vec![Tool { spec, effect: Effect::Destroys }]
    }

    async fn call(&self, _: Invocation<'_>) -> Result<ToolOutput, ToolError> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.0.refuse(true);
        Ok(ToolOutput { text: "deleted".into(), failed: false, cut: false })
    }
}

/// A model that calls this tool, and says what came of it.
#[derive(Debug)]
struct Calling {
    tool: &'static str,
    /// What it says before it calls.
    before: &'static str,
}

#[async_trait]
impl Model for Calling {
    fn name(&self) -> &str {
        "deleting"
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        let (name, id) = (self.tool.to_owned(), "c".to_owned());
        let call = ToolCall { id, name, arguments: serde_json::json!({}), signatures: Vec::new() };
        let (text, calls) =
            if prompt.steps.is_empty() { (self.before, vec![call]) } else { ("All is done.", Vec::new()) };
        deltas(text);
        Ok(Answer { text: text.to_owned(), calls, model: "deleting".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

/// A tool of the client is called through a gateway, and what it gave goes on with the turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_clients_tools_and_their_results_go_over_the_bus() {
    for speech in [Speech::Sealed, Speech::Plain] {
        let Some(server) = Server::start(&[]) else { return };
        let settings = || BusSettings { speech, ..bus(&server.url()) };
        let worker = engine(&server, Arc::new(Calling { tool: "get_weather", before: "Looking." })).await;
        let mut working = worker.become_worker(settings()).await.unwrap();
        let _working = tokio::spawn(async move { working.work().await });
        let gateway = engine(&server, Arc::new(Calling { tool: "get_weather", before: "Looking." })).await;
        gateway.become_gateway(settings()).await.unwrap();
        let tool = ToolSpec {
            name: "get_weather".into(),
            description: String::new(),
            schema: serde_json::json!({ "type": "object" }),
            strict: None,
        };
        let alice = session(&gateway, "http:r:main:alice");
        let asked = TurnRequest { tools: vec![tool.clone()], ..says("what is it like?") };
        let first = alice.turn(asked).finish().await.unwrap();
        let calls = first.metadata.calls;
        assert_eq!(calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["get_weather"]);
        let given = || {
            let result = ClientResult { id: calls[0].id.clone(), text: "rain".into() };
            let step = ClientStep { results: vec![result], ..ClientStep::default() };
            TurnRequest { steps: vec![step], tools: vec![tool.clone()], ..says("") }
        };
        for _ in 0..2 {
            let last = alice.turn(given()).finish().await.unwrap();
            assert!(last.metadata.calls.is_empty() && last.content == "All is done.", "{}", last.content);
        }
        let told = transcript(&gateway, "http:r:main:alice").await;
        assert_eq!(told.len(), 4, "{told:?}");
    }
}

/// The approver hears that the decision stands though the store failed after it, and who repeats it that it counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_whose_store_fails_afterwards_stands_and_says_so() {
    let Some(server) = Server::start(&[]) else { return };
    let proxy = Arc::new(Proxy::to(server.port).await);
    let tools = Arc::new(Cutting(Arc::clone(&proxy), Default::default()));
    let storage = Storage::redis(&redis_settings(&proxy.url())).await.unwrap();
    let parts = Parts {
        toolbox: Arc::clone(&tools) as _,
        ..Parts::new(
            storage,
            keys(&[1]),
            Arc::new(Calling { tool: "files.delete", before: "" }) as Arc<dyn Model>,
        )
    };
    let engine = Engine::open(parts).await.unwrap();
    let alice = session(&engine, "http:r:main:alice");
    let Ending::Approval(asked) = alice.turn(says_as("r1", "delete it")).end().await.unwrap() else {
        panic!("it did not ask")
    };
    let by = || Decider::Person("alice".into());
    let decide = || alice.decide(&asked.approval_id, Decision::Approve, by(), CarryOut::Here);
    // What came of it is told, and that it could not be kept.
    let told = decide().finish().await.unwrap();
    assert_eq!((&*told.content, told.metadata.memory), ("All is done.", MemoryState::Unavailable));
    proxy.refuse(false);
    let mut again = decide().finish().await;
    while matches!(again, Err(Error::Store(_) | Error::Unloaded(_))) {
        again = decide().finish().await;
    }
    assert!(matches!(again, Err(Error::DecidedByYou("approved"))), "{again:?}");
    assert_eq!(tools.1.load(std::sync::atomic::Ordering::SeqCst), 1);
}

/// A worker has a turn and dies, its person is erased, and another worker comes: nothing of before is stored again. The turn that
/// waited behind it at the gateway ends with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_asked_before_an_erasure_ends_as_erased_though_its_worker_died() {
    for speech in [Speech::Sealed, Speech::Plain] {
        let Some(server) = Server::start(&[]) else { return };
        let settings = || BusSettings {
            speech,
            patience: Duration::from_secs(60),
            silence: Duration::from_secs(1),
            ..bus(&server.url())
        };
        let (tenant, user) = (TenantId::new("acme").unwrap(), UserId::new("alice").unwrap());
        let model = Recorder::new();
        let gateway = engine(&server, Arc::clone(&model) as _).await;
        gateway.become_gateway(settings()).await.unwrap();
        let first = engine(&server, Arc::clone(&model) as _).await;
        let mut work = first.become_worker(settings()).await.unwrap();
        let working = tokio::spawn(async move { work.work().await });
        model.shut();
        let id = "http:r:main:alice";
        let accepted = session(&gateway, id).turn(says("my name is Alice"));
        model.until(1).await;
        let waiting = session(&gateway, id).turn(says("and I like tea"));
        tokio::time::sleep(Duration::from_millis(300)).await;
        working.abort();
        first.stop(Duration::ZERO).await;
        let admin = gateway.dangerously_administer(Actor::cli());
        let receipt = admin.erase_person(&tenant, &user).await.unwrap();
        model.open();
        let second = engine(&server, Arc::clone(&model) as _).await;
        let mut work = second.become_worker(settings()).await.unwrap();
        let _working = tokio::spawn(async move { work.work().await });
        for turn in [accepted, waiting] {
            assert_eq!(turn.finish().await.unwrap_err().code(), "erased", "{speech:?}");
        }
        assert!(session(&gateway, id).export().await.unwrap().is_none());
        admin.verify_receipt(&receipt).await.unwrap();
        // The person is not locked out.
        session(&gateway, id).turn(says("anew")).finish().await.unwrap();
        assert_eq!(transcript(&gateway, id).await, ["human:anew", "ai:noted: anew"]);
        admin.verify_receipt(&receipt).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_that_are_sent_in_a_row_at_a_gateway_are_kept_in_that_order() {
    let Some(server) = Server::start(&[]) else { return };
    let model = Recorder::new();
    let worker = engine(&server, Arc::clone(&model) as _).await;
    let _working = works(&worker, &server.url()).await;
    let gateway = engine(&server, Arc::clone(&model) as _).await;
    gateway.become_gateway(bus(&server.url())).await.unwrap();
    let id = "http:r:main:alice";
    let turns: Vec<Turn> = (0..8).map(|n| session(&gateway, id).turn(says(&format!("turn {n}")))).collect();
    // One that is called off while it waits is not run, here or at a worker.
    let off = session(&gateway, id).turn(says_as("off", "not this"));
    assert_eq!(session(&gateway, id).cancel(Some("off")).await.unwrap(), 1);
    assert_eq!(off.finish().await.unwrap_err().code(), "cancelled");
    for turn in turns {
        turn.finish().await.unwrap();
    }
    let again = session(&gateway, id).turn(says_as("off", "not this"));
    assert_eq!(again.finish().await.unwrap_err().code(), "cancelled");
    let said = transcript(&gateway, id).await;
    let human: Vec<&str> = said.iter().filter_map(|line| line.strip_prefix("human:")).collect();
    assert_eq!(human, (0..8).map(|n| format!("turn {n}")).collect::<Vec<_>>());
}

/// A model that searches once, and says what was found.
#[derive(Debug)]
struct Searching;

#[async_trait]
impl Model for Searching {
    fn name(&self) -> &str {
        "searching"
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        let call = ToolCall {
            id: "1".into(),
            name: "memory.search".into(),
            arguments: serde_json::json!({ "query": "harbour" }),
            signatures: Vec::new(),
        };
        let found: Vec<String> = prompt.steps.iter().flat_map(|step| step.results.clone()).collect();
        let calls = if found.is_empty() { vec![call] } else { Vec::new() };
        let text = found.join(" ");
        deltas(&text);
        Ok(Answer { text, calls, model: "searching".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

/// What a turn wants of a device goes from the worker to the gateway, and what is given goes back; it is in no store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_turn_wants_of_a_device_is_asked_for_at_the_gateway() {
    let Some(server) = Server::start(&[]) else { return };
    let worker = engine(&server, Arc::new(Searching)).await;
    let _working = works(&worker, &server.url()).await;
    let gateway = engine(&server, Arc::new(Searching)).await;
    gateway.become_gateway(bus(&server.url())).await.unwrap();
    let chats = gateway.web_sessions(TenantId::new("acme").unwrap());
    let chat = chats.session(ACCOUNT, "chat_a", Keep::Stored).unwrap();
    let digest = |n: u8| Digest::from_bytes([n; 32]);
    for (n, given) in [(0, true), (1, false)] {
        let request = TurnRequest {
            claim: Some(Claim { count: u64::from(n) * 2, before: digest(n), after: digest(n + 1) }),
            asks: MayAsk { search: true, ..MayAsk::default() },
            ..says_as(&format!("t{n}"), "What of the harbour?")
        };
        let mut turn = chat.turn(request);
        let (mut data_requests, mut answer) = (Vec::new(), None);
        while let Some(event) = turn.next().await {
            match event {
                Outbound::Wanted(wanted) => {
                    data_requests.push(wanted.data_request.clone());
                    if given {
                        let text = format!("marker-harbour-{n}");
                        wanted.give(vec![Piece { name: "Trip".to_owned(), text }]);
                    }
                }
                Outbound::Final(last) => answer = Some(last.content),
                Outbound::Error(error) => panic!("{error}"),
                _ => {}
            }
        }
        assert!(data_requests == [DataRequest::Search("harbour".to_owned())], "{data_requests:?}");
        let answer = answer.unwrap();
        assert_eq!(answer.contains(&format!("Trip: marker-harbour-{n}")), given, "{answer}");
    }
}

/// A worker has words of a chat in its memory where they are kept nowhere else. They go with the chat, with its cache and with its
/// account, though all of these end at a gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_workers_have_of_a_chat_in_memory_ends_at_the_gateways_word() {
    const OTHER: &str = "acct_bbbbbbbbbbbbbbbbbbbbbbbbbb";
    let Some(server) = Server::start(&[]) else { return };
    let worker = engine(&server, Arc::new(Halting)).await;
    let _working = works(&worker, &server.url()).await;
    let gateway = engine(&server, Arc::new(Halting)).await;
    gateway.become_gateway(bus(&server.url())).await.unwrap();
    let acme = TenantId::new("acme").unwrap();
    let (chats, there) = (gateway.web_sessions(acme.clone()), worker.web_sessions(acme.clone()));
    let asked = async |account: &str, chat: &str| {
        let claim =
            Claim { count: 0, before: Digest::from_bytes([0; 32]), after: Digest::from_bytes([1; 32]) };
        let request = TurnRequest { claim: Some(claim), ..says_as("t1", "Hello") };
        let session = chats.open(account, chat, Keep::Memory).await.unwrap();
        session.turn(request).finish().await.unwrap();
    };
    let has = async |account: &str, chat: &str| {
        let session = there.session(account, chat, Keep::Memory).unwrap();
        session.head().await.unwrap() != HeadState::Missing
    };
    let gone = async |account: &str, chat: &str| {
        let ends = async {
            while has(account, chat).await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(120), ends).await.expect("the worker keeps it");
    };
    for chat in ["chat_a", "chat_b", "chat_c"] {
        asked(ACCOUNT, chat).await;
        assert!(has(ACCOUNT, chat).await);
    }
    asked(OTHER, "chat_a").await;

    // The chat is deleted; its cache is switched off; the account is erased.
    chats.end(ACCOUNT, "chat_a").await.unwrap();
    gone(ACCOUNT, "chat_a").await;
    assert!(has(ACCOUNT, "chat_b").await && has(OTHER, "chat_a").await);
    chats.open(ACCOUNT, "chat_b", Keep::Once).await.unwrap();
    gone(ACCOUNT, "chat_b").await;
    assert!(has(ACCOUNT, "chat_c").await);
    let person = UserId::any(ACCOUNT).unwrap();
    gateway.dangerously_administer(Actor::cli()).erase_person(&acme, &person).await.unwrap();
    gone(ACCOUNT, "chat_c").await;
    assert!(has(OTHER, "chat_a").await, "somebody else's stays");
}

/// Where the words of a chat are in a worker's memory only, so is what its turns scored. One that has no answer says so to its gateway,
/// however it ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_turn_without_an_answer_scored_at_a_worker_is_known_at_its_gateway() {
    let Some(server) = Server::start(&[]) else { return };
    let model = Recorder::new();
    let worker = engine(&server, Arc::clone(&model) as _).await;
    let _working = works(&worker, &server.url()).await;
    let gateway = engine(&server, Arc::clone(&model) as _).await;
    gateway.become_gateway(bus(&server.url())).await.unwrap();
    let chats = gateway.web_sessions(TenantId::new("acme").unwrap());
    let claim = Claim { count: 0, before: Digest::from_bytes([0; 32]), after: Digest::from_bytes([1; 32]) };
    let asked = || TurnRequest { claim: Some(claim), ..says_as("t1", "I want to kill myself") };
    for keep in Keep::ALL {
        let failing = chats.session(ACCOUNT, "chat_a", keep).unwrap();
        model.broken.store(true, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(failing.turn(asked()).finish().await.unwrap_err().code(), "model_failed");
        model.broken.store(false, std::sync::atomic::Ordering::SeqCst);

        let cancelled = chats.session(ACCOUNT, "chat_b", keep).unwrap();
        model.take();
        model.shut();
        let turn = cancelled.turn(asked());
        model.until(1).await;
        assert_eq!(cancelled.cancel(Some("t1")).await.unwrap(), 1);
        assert_eq!(turn.finish().await.unwrap_err().code(), "cancelled");
        model.open();
        for session in [failing, cancelled] {
            let safety = session.safety().await.unwrap().expect("nothing is known");
            assert!(safety.harm.score(Harm::DirectSelfHarm) >= 7.5, "{keep:?}: {safety:?}");
        }
    }
}
