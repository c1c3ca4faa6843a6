//! Devices that come and go while questions are answered: lost frames, kills, logouts, another gateway, a day without anybody. In the end
//! every question has its answer, no turn has two, and both devices show the same.
//!
//! ```text
//! 20 to 60 acts of two devices at two gateways ─▶ the weather clears ─▶ what nobody answers is asked again, as a person would
//!                                                                   ─▶ every reply that was wanted is there, once, for its question
//! ```
//!
//! In SQLite time stands still but for what waits: a day without a device is over at once. `CONFIDANT_AWAY_CASES` sets how many
//! runs there are, `CONFIDANT_AWAY_SEED` which one is first. Easy to get wrong: devices that settle one after the other. One that is
//! connected and does not listen gives no history, and its turn fails.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use confidant_chat_format::{ChatId, MessageId};
use confidant_chat_protocol::{ErrorName, Failure};
use confidant_chats::answerer::MemoryAnswerer;
use confidant_client::{AskOptions, Asked, Awaiting, ChatView, Device, Error, Phase, Transport};
use parking_lot::Mutex;

use crate::convergence::{Dice, Weather, number};
use crate::gateways::{Roaming, Two};
use crate::place::Place;
use crate::world::{MemoryFiles, Passes, Person, Through};

/// How time passes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    /// At once, if nobody has anything to do.
    Stands,
    /// As it does.
    Passes,
}

struct Hand {
    device: Option<Device>,
    files: Arc<MemoryFiles>,
    weather: Arc<Weather>,
    way: Arc<Roaming>,
    is_logged_out: bool,
}

impl Hand {
    fn transport(&self) -> Arc<dyn Transport> {
        let inner: Arc<dyn Transport> = Arc::<Roaming>::clone(&self.way);
        Arc::new(Through { inner, between: Arc::clone(&self.weather) })
    }
}

struct Case {
    two: Arc<Two>,
    time: Time,
    dice: Dice,
    person: Person,
    hands: Vec<Hand>,
    chat: ChatId,
    asked: Vec<Asked>,
    /// Replies that somebody stopped waiting for, and that may come all the same.
    unwanted: BTreeSet<MessageId>,
    log: Log,
}

/// What was done, for whoever looks for the reason of a failure.
type Log = Arc<Mutex<Vec<String>>>;

impl Case {
    async fn new(two: &Arc<Two>, time: Time, seed: u64, log: Log) -> Self {
        let person = Person::new();
        let mut hands = Vec::new();
        for at in 0..2 {
            let (files, weather) = (MemoryFiles::new(), Arc::new(Weather::default()));
            let mut hand = Hand { device: None, files, weather, way: two.way(), is_logged_out: false };
            let login = format!("away-{seed}@example.org");
            hand.device = Some(if at == 0 {
                let way = hand.transport();
                two.world.register(way, &hand.files, &login, vec![person.recovery()]).await.unwrap()
            } else {
                let setup = two.world.setup_over(hand.transport(), &hand.files);
                Device::log_in(setup, &person.recovery()).await.unwrap()
            });
            hands.push(hand);
        }
        let one = hands[0].device.as_mut().unwrap();
        let chat = one.new_chat(None).unwrap();
        one.flush().await.unwrap();
        hands[1].device.as_mut().unwrap().sync(Phase::All).await.unwrap();
        let (two, asked, unwanted) = (Arc::clone(two), Vec::new(), BTreeSet::new());
        Self { two, time, dice: Dice(seed), person, hands, chat, asked, unwanted, log }
    }

    fn note(&self, at: usize, what: &str) {
        self.log.lock().push(format!("{at}: {what}"));
    }

    /// The device, started again if it was killed.
    fn device(&mut self, at: usize) -> &mut Device {
        let hand = &mut self.hands[at];
        if hand.device.is_none() {
            hand.files.revive();
            let opened = Device::open(self.two.world.setup_over(hand.transport(), &hand.files));
            hand.device = Some(opened.unwrap().expect("it was logged in"));
        }
        hand.device.as_mut().unwrap()
    }

    /// What came of it; a kill ends the device.
    fn done<T>(&mut self, at: usize, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(Error::Offline | Error::Denied { retry_ms: Some(_), .. }) => self.note(at, "  not now"),
            Err(Error::Files(_)) => {
                self.note(at, "  killed");
                self.hands[at].device = None;
            }
            Err(
                Error::LoggedOut(_)
                | Error::NotLoggedIn
                | Error::Denied { error: ErrorName::Request(Failure::Unauthorised), .. },
            ) => {
                self.note(at, "  logged out");
                self.hands[at].is_logged_out = true;
            }
            Err(error) => panic!("{at}: {error:?}"),
        }
        None
    }

    async fn act(&mut self) {
        let at = self.dice.below(2);
        match self.dice.below(27) {
            0..=3 if self.asked.len() < QUESTIONS => self.ask(at),
            4 => self.retry(at),
            5..=9 => {
                self.trouble(at);
                self.note(at, "flush");
                let flushed = self.device(at).flush().await;
                self.done(at, flushed);
            }
            10..=12 => {
                self.trouble(at);
                self.note(at, "sync");
                let synced = self.device(at).sync(Phase::All).await;
                self.done(at, synced);
            }
            13..=16 => {
                self.note(at, "listen");
                self.hear(at, Duration::from_millis(if self.time == Time::Stands { 200 } else { 10 })).await;
            }
            17..=18 => self.two.answerer.let_say(1 + self.dice.below(4)),
            19 => {
                self.note(at, "disconnect");
                self.device(at).disconnect();
            }
            20 => {
                self.note(at, "to the other gateway");
                self.device(at).disconnect();
                self.hands[at].way.turn();
            }
            21 => {
                self.note(at, "restarted");
                self.hands[at].device = None;
            }
            22 => self.log_out_or_in(at).await,
            23 => self.cancel(at).await,
            24 => self.nobody_is_there().await,
            25 => self.a_gateway_dies().await,
            _ if self.dice.one_in(3) => {
                self.note(at, "the cache is lost");
                self.two.answerer.forget();
            }
            _ => self.both_at_once().await,
        }
    }

    fn ask(&mut self, at: usize) {
        let words = match self.dice.one_in(4) {
            true => "the same question".to_owned(),
            false => format!("question {}", self.asked.len()),
        };
        self.note(at, &format!("asks {words}"));
        let chat = self.chat.clone();
        let asked = self.device(at).ask(&chat, &words, &AskOptions::default());
        if let Some(asked) = self.done(at, asked) {
            self.asked.push(asked);
        }
    }

    /// Asks for another answer, whatever became of the first.
    fn retry(&mut self, at: usize) {
        let asked = self.asked.clone();
        let Some(Asked { message, .. }) = self.dice.pick(&asked) else { return };
        if self.asked.len() < QUESTIONS + RETRIES {
            self.retry_of(at, &message.clone());
        }
    }

    fn retry_of(&mut self, at: usize, message: &MessageId) {
        let chat = self.chat.clone();
        let over = self.device(at).unanswered().into_iter().filter(|one| one.message == *message);
        let over: Vec<MessageId> = over.map(|one| one.reply).collect();
        match self.device(at).retry(&chat, message, &AskOptions::default()) {
            // It is not known here yet.
            Err(Error::NoSuchMessage) => {}
            again => {
                if let Some(again) = self.done(at, again) {
                    self.note(at, "retries");
                    self.asked.push(again);
                    self.unwanted.extend(over);
                }
            }
        }
    }

    /// Something goes wrong soon, perhaps.
    fn trouble(&mut self, at: usize) {
        self.device(at);
        match self.dice.below(6) {
            0 => {
                let what = if self.dice.one_in(2) { Passes::Lost } else { Passes::Unanswered };
                let mut next = vec![what];
                next.extend((0..self.dice.below(8)).map(|_| Passes::On));
                self.note(at, &format!("loses {} {}", next.len(), what == Passes::Lost));
                *self.hands[at].weather.next.lock() = next;
            }
            1 => {
                let frames = self.dice.below(10);
                self.note(at, &format!("hears {frames} more"));
                *self.hands[at].weather.heard.lock() = Some(frames);
            }
            2 => {
                let writes = self.dice.below(10);
                self.note(at, &format!("dies after {writes}"));
                self.hands[at].files.kill_after(writes);
            }
            _ => {}
        }
    }

    async fn hear(&mut self, at: usize, most: Duration) {
        while self.device(at).is_connected() {
            let Ok(heard) = tokio::time::timeout(most, self.device(at).listen()).await else { break };
            if self.done(at, heard).is_none() {
                break;
            }
        }
    }

    /// In the middle of whatever is being answered.
    async fn log_out_or_in(&mut self, at: usize) {
        if self.hands[at].is_logged_out {
            return self.log_in(at).await;
        }
        self.note(at, "logs out");
        let done = self.device(at).log_out(false).await;
        if self.done(at, done).is_some() {
            self.hands[at].is_logged_out = true;
        }
    }

    async fn log_in(&mut self, at: usize) {
        self.device(at);
        if self.hands[at].is_logged_out {
            self.note(at, "logs in");
            let by = self.person.recovery();
            let done = self.device(at).log_in_again(&by).await;
            if self.done(at, done).is_some() {
                self.hands[at].is_logged_out = false;
            }
        }
    }

    async fn cancel(&mut self, at: usize) {
        let running =
            |device: &Device| device.awaited().into_iter().find(|one| one.state == Awaiting::Running);
        let Some(one) = running(self.device(at)) else { return };
        self.note(at, "cancels");
        let done = self.device(at).cancel(&one.chat, &one.turn).await;
        self.done(at, done);
        if self.dice.one_in(2) {
            self.note(at, "and is gone");
            self.device(at).disconnect();
        }
    }

    /// The answers of all that was asked go to the mailbox; perhaps it takes so long that the server forgets the chat.
    async fn nobody_is_there(&mut self) {
        for at in 0..2 {
            self.device(at).disconnect();
        }
        let is_a_day = self.dice.one_in(2);
        self.note(0, if is_a_day { "nobody is there for a day" } else { "nobody is there for a while" });
        if self.dice.one_in(2) {
            self.two.answerer.let_say(50);
        }
        tokio::time::sleep(match self.time {
            Time::Stands if is_a_day => Duration::from_secs(86_400),
            Time::Stands => Duration::from_secs(90),
            Time::Passes => Duration::from_millis(30),
        })
        .await;
        if is_a_day {
            self.two.answerer.forget();
        }
    }

    /// In the middle of whatever it answers; whoever answers goes on. Others find what was asked there.
    async fn a_gateway_dies(&mut self) {
        let gateway = self.dice.below(2);
        self.note(gateway, "the gateway dies");
        self.two.kill(gateway);
        for at in 0..2 {
            if self.hands[at].way.at() == gateway {
                self.device(at).disconnect();
                if self.dice.one_in(2) {
                    self.hands[at].way.turn();
                }
            }
        }
        if self.dice.one_in(2) {
            self.two.answerer.let_say(50);
            let a_while = if self.time == Time::Stands { 90_000 } else { 30 };
            tokio::time::sleep(Duration::from_millis(a_while)).await;
        }
        self.two.look_after_answers().await;
    }

    /// Both ask, and what they ask is sent at the same time.
    async fn both_at_once(&mut self) {
        if self.asked.len() + 1 >= QUESTIONS {
            return;
        }
        for at in 0..2 {
            self.ask(at);
        }
        self.note(0, "both flush");
        self.device(0);
        self.device(1);
        let (one, two) = self.hands.split_at_mut(1);
        let flush = async |hand: &mut Hand| hand.device.as_mut().unwrap().flush().await;
        let (one, two) = tokio::join!(flush(&mut one[0]), flush(&mut two[0]));
        self.done(0, one);
        self.done(1, two);
    }

    fn is_quiet(&mut self, at: usize) -> bool {
        let device = self.device(at);
        device.waiting().is_empty() && device.awaited().is_empty()
    }

    /// The weather clears. Both devices load, send and listen until nothing is left to do; a person asks again what nobody answers.
    async fn settle(&mut self) {
        for hand in &self.hands {
            hand.weather.clear();
            hand.files.revive();
        }
        self.two.answerer.let_say(100_000);
        let patience = Duration::from_millis(if self.time == Time::Stands { 1000 } else { 50 });
        for round in 0.. {
            for at in 0..2 {
                self.note(at, &format!("settles, round {round}"));
                self.log_in(at).await;
                let synced = self.device(at).sync(Phase::All).await;
                self.done(at, synced);
                let flushed = self.device(at).flush().await;
                self.done(at, flushed);
                self.hear(at, patience).await;
            }
            if (0..2).all(|at| self.is_quiet(at)) {
                break;
            }
            if round >= ROUNDS {
                let states = [0, 1].map(|at| self.device(at).awaited());
                panic!("something waits for ever: {states:?}");
            }
            if round % 5 == 4 {
                let lost: BTreeSet<_> =
                    self.device(0).unanswered().into_iter().map(|one| one.message).collect();
                for message in lost {
                    self.retry_of(0, &message);
                }
            }
        }
        for at in 0..2 {
            self.device(at).sync(Phase::All).await.unwrap();
        }
    }

    async fn check(&mut self) {
        let chat = self.chat.clone();
        let views: [ChatView; 2] = [0, 1].map(|at| self.device(at).chat(&chat).unwrap());
        assert!(views[0] == views[1], "both have the same");
        let messages = &views[0].messages;
        for message in messages.values().filter(|message| message.model.is_some()) {
            let asked = self.asked.iter().find(|asked| asked.reply == message.id);
            let asked = asked.expect("nobody asked for it");
            assert_eq!(message.parent.as_ref(), Some(&asked.message));
            // Whoever answered had all that was said before the question, and nothing else.
            let question = &messages[&asked.message];
            let before = std::iter::successors(question.parent.as_ref(), |id| messages[*id].parent.as_ref());
            let known = before.count();
            assert_eq!(message.body, format!("known={known}: {}", question.body), "another answer");
        }
        for asked in &self.asked {
            assert!(messages.contains_key(&asked.message), "a question is lost");
            let is_there = messages.contains_key(&asked.reply);
            assert!(is_there || self.unwanted.contains(&asked.reply), "an answer is lost");
            let answers = messages.values().filter(|one| one.parent.as_ref() == Some(&asked.message));
            assert!(answers.filter(|one| one.model.is_some()).count() > 0, "a question has no answer");
        }
        for at in 0..2 {
            assert!(self.device(at).copies().is_empty());
        }
        if self.time == Time::Stands {
            // Whoever still held an answer has let it go.
            tokio::time::sleep(Duration::from_secs(600)).await;
            self.two.world.pass(700_000);
            self.two.look_after_answers().await;
            let account = self.device(0).account_id().clone();
            for letter in self.two.world.store().letters(&account, None, usize::MAX).await.unwrap() {
                assert!(!messages.contains_key(&letter.reply), "a letter for an answer that is stored");
            }
            for asked in &self.asked {
                let mark = self.two.world.store().mark(&account, &chat, &asked.turn).await.unwrap();
                assert!(mark.is_none(), "an answer that came is looked for");
            }
        }
    }
}

async fn run(two: &Arc<Two>, time: Time, seed: u64, log: Log) {
    two.answerer.hold();
    let mut case = Case::new(two, time, seed, log).await;
    for _ in 0..20 + case.dice.below(40) {
        case.act().await;
    }
    case.settle().await;
    case.check().await;
}

async fn cases(two: Two, time: Time, cases: u64) {
    let two = Arc::new(two);
    let first = number("CONFIDANT_AWAY_SEED", 1);
    let done = AtomicU64::new(0);
    for seed in first..first + cases {
        let (here, log) = (Arc::clone(&two), Log::default());
        let told = Arc::clone(&log);
        let case = tokio::spawn(async move { run(&here, time, seed, told).await });
        if let Err(error) = case.await {
            let log = log.lock().join("\n");
            panic!("{log}\nseed {seed}: {error}; hint: CONFIDANT_AWAY_SEED={seed} CONFIDANT_AWAY_CASES=1");
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    let (begun, answered) = two.answerer.counts();
    assert!(begun > 0 && answered > 0 && done.into_inner() == cases, "nothing was asked");
}

#[tokio::test(start_paused = true)]
async fn every_question_has_one_answer_in_the_end() {
    let two = Two::at(Place::sqlite(), MemoryAnswerer::held(), Duration::from_secs(60)).await;
    cases(two, Time::Stands, number("CONFIDANT_AWAY_CASES", 60)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_question_has_one_answer_on_postgres() {
    let Some(place) = Place::postgres_at("CONFIDANT_TEST_POSTGRES") else { return };
    let two = Two::at(place, MemoryAnswerer::held(), Duration::from_millis(20)).await;
    cases(two, Time::Passes, number("CONFIDANT_AWAY_CASES", 60).div_ceil(10)).await;
}

/// Questions in one run, and answers that are asked for once more.
const QUESTIONS: usize = 6;
const RETRIES: usize = 3;
/// Rounds after which something must have come of everything.
const ROUNDS: usize = 200;
