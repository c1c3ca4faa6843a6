//! Turns of chats that other processes hear word by word: over a Redis that may be lost, under keys that end with the session.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use confidant_engine::bus::{BusSettings, Followed, Following};
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt};
use confidant_engine::turn::{Ending, Outbound, Standing};
use confidant_engine::{Actor, Engine, Error, Parts, Recovered, Session, Storage, TenantId, UserId};
use tokio::sync::Semaphore;

use crate::rig::*;
use crate::server::Server;
use crate::web::{ACCOUNT, CHAT, asks, chat, web};

/// A model that says its word as often as it is let.
#[derive(Debug)]
struct Paced {
    word: &'static str,
    pace: Semaphore,
}

const WORDS: usize = 8;

impl Paced {
    fn new(word: &'static str) -> Arc<Self> {
        Arc::new(Self { word, pace: Semaphore::new(0) })
    }

    fn let_say(&self, words: usize) {
        self.pace.add_permits(words);
    }

    fn words(&self, count: usize) -> String {
        (0..count).map(|at| format!("{}{at} ", self.word)).collect()
    }
}

#[async_trait]
impl Model for Paced {
    fn name(&self) -> &str {
        "paced"
    }

    async fn respond(&self, _: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        for at in 0..WORDS {
            self.pace.acquire().await.unwrap().forget();
            deltas(&format!("{}{at} ", self.word));
        }
        Ok(Answer { text: self.words(WORDS), calls: Vec::new(), model: "paced".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

/// A process on this store, which tells its turns over that Redis.
async fn process(store: &Server, relay: &Server, model: &Arc<Paced>) -> Engine {
    let storage = Storage::redis(&redis_settings(&store.url())).await.unwrap();
    let engine = Engine::open(Parts::new(storage, keys(&[1]), Arc::clone(model) as _)).await.unwrap();
    engine.relay_turns(&redis_settings(&relay.url())).unwrap();
    engine
}

/// What was heard of a turn.
#[derive(Debug, Default)]
struct Heard {
    begun: usize,
    words: String,
    end: Option<String>,
}

impl Heard {
    /// Hears on until something holds. No word comes twice, and none is left out: they are as the model said them.
    async fn until(&mut self, following: &mut Following, holds: impl Fn(&Self) -> bool) {
        let hearing = async {
            while !holds(self) {
                match following.hear().await {
                    Followed::Begun => {
                        self.begun += 1;
                        self.words.clear();
                    }
                    Followed::Event(Outbound::Delta { text, .. }) => self.words.push_str(&text),
                    Followed::Event(Outbound::Final(answer)) => self.end = Some(answer.content),
                    Followed::Event(Outbound::Error(error)) => self.end = Some(error.code().to_owned()),
                    Followed::Event(_) => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), hearing).await.expect("it is not heard");
    }
}

/// Waits until a turn is over in the log.
async fn ended(session: &Session, turn: &str) -> Standing {
    let waiting = async {
        loop {
            match session.standing(turn).await.unwrap() {
                Standing::Running | Standing::Decided => tokio::time::sleep(Duration::from_millis(10)).await,
                ended => return ended,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it does not end")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_that_one_process_begins_go_on_in_another() {
    let (Some(store), Some(relay)) = (Server::start(&[]), Server::start(&[])) else { return };
    let model = Paced::new("alpha");
    let (here, there) = (process(&store, &relay, &model).await, process(&store, &relay, &model).await);
    let mut turn = chat(&here, CHAT).turn(asks("t1", "count", 0, 0, 1));
    model.let_say(3);
    let mut following = chat(&there, CHAT).follow("t1").unwrap();
    let mut heard = Heard::default();
    heard.until(&mut following, |heard| heard.words == model.words(3)).await;
    // Somebody who comes late hears all of it; a turn of another name is not this one.
    let (mut late, mut other) =
        (chat(&there, CHAT).follow("t1").unwrap(), chat(&there, CHAT).follow("t2").unwrap());
    let mut both = Heard::default();
    both.until(&mut late, |heard| heard.words == model.words(3)).await;
    model.let_say(WORDS - 3);
    heard.until(&mut following, |heard| heard.end.is_some()).await;
    both.until(&mut late, |heard| heard.end.is_some()).await;
    for heard in [heard, both] {
        let whole = model.words(WORDS);
        assert_eq!((heard.begun, &heard.words, heard.end.as_ref()), (1, &whole, Some(&whole)));
    }
    let none = tokio::time::timeout(Duration::from_millis(300), other.hear()).await;
    assert!(none.is_err(), "{none:?}");
    while let Some(event) = turn.next().await {
        assert!(!matches!(event, Outbound::Error(_)), "{event:?}");
    }
    // Who asked somewhere else, and whose words are for memory only, are told to nobody.
    model.let_say(2 * WORDS);
    session(&here, "http:r:main:alice").turn(says_as("t1", "count")).finish().await.unwrap();
    let once = web(&here).session(ACCOUNT, CHAT, confidant_engine::Keep::Once).unwrap();
    assert!(once.follow("t1").is_none() && session(&there, "http:r:main:alice").follow("t1").is_none());
    once.turn(asks("t3", "count", 0, 0, 1)).finish().await.unwrap();
    let keys: Vec<_> = relay.keys().into_iter().map(|(key, lives)| (key.ends_with(":ears"), lives)).collect();
    assert!(
        keys.iter().filter(|(ears, _)| !ears).count() == 1 && keys.iter().all(|(_, lives)| *lives > 0),
        "{keys:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_worker_says_is_heard_at_every_gateway_also_when_the_one_that_asked_is_gone() {
    let (Some(store), Some(relay)) = (Server::start(&[]), Server::start(&[])) else { return };
    let model = Paced::new("beta");
    let bus = || BusSettings::new(redis_settings(&relay.url()).into(), TenantId::new("acme").unwrap());
    let worker = process(&store, &relay, &model).await;
    let mut work = worker.become_worker(bus()).await.unwrap();
    let _working = tokio::spawn(async move { work.work().await });
    let (one, two) = (process(&store, &relay, &model).await, process(&store, &relay, &model).await);
    one.become_gateway(bus()).await.unwrap();
    two.become_gateway(bus()).await.unwrap();
    let mut turn = chat(&one, CHAT).turn(asks("t1", "count", 0, 0, 1));
    model.let_say(2);
    while !matches!(turn.next().await.unwrap(), Outbound::Delta { .. }) {}
    one.stop(Duration::ZERO).await;
    drop((turn, one));
    let mut following = chat(&two, CHAT).follow("t1").unwrap();
    let mut heard = Heard::default();
    heard.until(&mut following, |heard| heard.words == model.words(2)).await;
    model.let_say(2);
    heard.until(&mut following, |heard| heard.words == model.words(4)).await;
    model.let_say(WORDS);
    heard.until(&mut following, |heard| heard.end.is_some()).await;
    let whole = model.words(WORDS);
    assert_eq!((heard.begun, &heard.words, heard.end.as_ref()), (1, &whole, Some(&whole)));
    // Cancelled at the other gateway, the worker stops.
    let _turn = chat(&two, CHAT).turn(asks("t2", "again", 2, 1, 2));
    let three = process(&store, &relay, &model).await;
    three.become_gateway(bus()).await.unwrap();
    let mut following = chat(&three, CHAT).follow("t2").unwrap();
    let mut heard = Heard::default();
    // Twelve words were let, and eight were said.
    heard.until(&mut following, |heard| heard.words == model.words(4)).await;
    assert_eq!(chat(&three, CHAT).cancel(Some("t2")).await.unwrap(), 1);
    let Standing::Failed(reason) = ended(&chat(&three, CHAT), "t2").await else { panic!("it was answered") };
    assert_eq!(reason, "cancelled");
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while worker.counts().cancelled == 0 {
        assert!(std::time::Instant::now() < deadline, "the worker goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_elsewhere_a_turn_ends_though_it_says_nothing() {
    let (Some(store), Some(relay)) = (Server::start(&[]), Server::start(&[])) else { return };
    let model = Paced::new("gamma");
    let (here, there) = (process(&store, &relay, &model).await, process(&store, &relay, &model).await);
    let turn = chat(&here, CHAT).turn(asks("t1", "count", 0, 0, 1));
    let mut following = chat(&there, CHAT).follow("t1").unwrap();
    model.let_say(1);
    Heard::default().until(&mut following, |heard| heard.words == model.words(1)).await;
    assert_eq!(chat(&there, CHAT).cancel(Some("t1")).await.unwrap(), 1);
    let end = tokio::time::timeout(Duration::from_secs(60), turn.end()).await.expect("it goes on");
    assert!(matches!(end, Err(Error::Cancelled)), "{end:?}");
    // Nobody takes it for the next one.
    model.let_say(WORDS);
    let answer = chat(&there, CHAT).turn(asks("t2", "count", 0, 0, 1)).finish().await.unwrap();
    assert_eq!(answer.content, model.words(WORDS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_is_taken_up_after_a_kill_begins_anew_for_who_follows_it() {
    let (Some(store), Some(relay)) = (Server::start(&[]), Server::start(&[])) else { return };
    let (first, second) = (Paced::new("old"), Paced::new("new"));
    let (here, there) = (process(&store, &relay, &first).await, process(&store, &relay, &second).await);
    let looks = process(&store, &relay, &second).await;
    let _turn = chat(&here, CHAT).turn(asks("t1", "count", 0, 0, 1));
    first.let_say(3);
    let mut following = chat(&looks, CHAT).follow("t1").unwrap();
    let mut heard = Heard::default();
    heard.until(&mut following, |heard| heard.words == first.words(3)).await;
    here.stop(Duration::ZERO).await;
    let recovering = tokio::spawn(async move { there.recover().await.unwrap() });
    second.let_say(2);
    heard.until(&mut following, |heard| heard.words == second.words(2)).await;
    assert_eq!(heard.begun, 2);
    second.let_say(WORDS);
    heard.until(&mut following, |heard| heard.words == second.words(WORDS)).await;
    assert_eq!(recovering.await.unwrap(), Recovered { resumed: 1, ..Recovered::default() });
    let Standing::Ended(Ending::Answer(answer)) = ended(&chat(&looks, CHAT), "t1").await else { panic!() };
    assert_eq!(answer.content, second.words(WORDS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_lost_costs_words_on_the_way_and_no_answer() {
    let (Some(store), Some(mut relay)) = (Server::start(&[]), Server::start(&[])) else { return };
    let model = Paced::new("delta");
    let (here, there) = (process(&store, &relay, &model).await, process(&store, &relay, &model).await);
    let turn = chat(&here, CHAT).turn(asks("t1", "count", 0, 0, 1));
    let mut following = chat(&there, CHAT).follow("t1").unwrap();
    model.let_say(2);
    Heard::default().until(&mut following, |heard| heard.words == model.words(2)).await;
    relay.kill();
    model.let_say(WORDS);
    let answer =
        tokio::time::timeout(Duration::from_secs(60), turn.finish()).await.expect("it waits").unwrap();
    assert_eq!(answer.content, model.words(WORDS));
    let Standing::Ended(Ending::Answer(found)) = ended(&chat(&there, CHAT), "t1").await else { panic!() };
    assert_eq!(found.content, answer.content);
    // An erasure waits for it no longer than it must, and a chat goes on.
    relay.start_again();
    let mut following = chat(&there, CHAT).follow("t2").unwrap();
    let turn = chat(&here, CHAT).turn(asks("t2", "count", 2, 1, 2));
    let mut heard = Heard::default();
    // Some permits are left from before.
    model.let_say(WORDS);
    heard.until(&mut following, |heard| heard.end.is_some()).await;
    assert_eq!(heard.words, model.words(WORDS));
    turn.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_readable_is_on_the_redis_and_nothing_opens_after_an_erasure() {
    let options = ["--appendonly", "yes", "--rdbcompression", "no", "--aof-use-rdb-preamble", "no"];
    let (Some(store), Some(relay)) = (Server::start(&[]), Server::start(&options)) else { return };
    let model = Paced::new("WORDMARK");
    let (here, there) = (process(&store, &relay, &model).await, process(&store, &relay, &model).await);
    for erase_person in [false, true] {
        let turn = chat(&here, CHAT).turn(asks("t-IDMARK", "WORDMARKquery", 0, 0, 1));
        model.let_say(3);
        let mut following = chat(&there, CHAT).follow("t-IDMARK").unwrap();
        Heard::default().until(&mut following, |heard| heard.words == model.words(3)).await;
        let keys = relay.keys();
        let (buffer, _) = keys.iter().find(|(key, _)| !key.ends_with(":ears")).unwrap();
        assert!(keys.iter().all(|(key, _)| !key.contains(CHAT) && !key.contains(ACCOUNT)), "{keys:?}");
        let copy: Vec<Vec<u8>> = relay.ask(&["LRANGE", buffer, "0", "-1"]);
        assert!(copy.len() >= 2);
        // In the middle of the answer.
        if erase_person {
            let admin = there.dangerously_administer(Actor::cli());
            let (tenant, user) = (TenantId::new("acme").unwrap(), UserId::any(ACCOUNT).unwrap());
            admin.erase_person(&tenant, &user).await.unwrap();
        } else {
            assert!(web(&there).end(ACCOUNT, CHAT).await.unwrap());
        }
        let end = tokio::time::timeout(Duration::from_secs(60), turn.end()).await.expect("it goes on");
        assert!(end.is_err(), "{end:?}");
        relay.wait_until(|relay| relay.ask::<u64>(&["EXISTS", buffer]) == 0);
        // Somebody who has a copy puts it back.
        let client = redis::Client::open(relay.url()).unwrap();
        let mut connection = client.get_connection().unwrap();
        redis::cmd("RPUSH").arg(buffer).arg(&copy).exec(&mut connection).unwrap();
        let mut following = chat(&there, CHAT).follow("t-IDMARK").unwrap();
        let none = tokio::time::timeout(Duration::from_millis(300), following.hear()).await;
        assert!(none.is_err(), "{none:?}");
        redis::cmd("DEL").arg(buffer).exec(&mut connection).unwrap();
    }
    for file in std::fs::read_dir(relay.path()).unwrap().flatten() {
        let files = if file.path().is_dir() {
            std::fs::read_dir(file.path()).unwrap().flatten().collect()
        } else {
            vec![file]
        };
        for file in files {
            let bytes = std::fs::read(file.path()).unwrap();
            for marker in ["WORDMARK", "IDMARK", ACCOUNT, CHAT] {
                assert!(!contains(&bytes, marker), "{marker} is in {}", file.path().display());
            }
        }
    }
}
