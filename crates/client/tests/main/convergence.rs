//! Two devices of one person, whatever happens between them: offline, lost requests, lost and half answers, kills between two
//! writes of a file, credentials and the account key replaced. In the end both have the same chats, nothing waits, and every
//! word is there, was replaced by somebody who saw it, or is a copy.
//!
//! `CONFIDANT_CONVERGENCE_CASES` sets how many runs there are, `CONFIDANT_CONVERGENCE_SEED` which one is first.
//!
//! Easy to get wrong: which recovery code is good after an answer was lost. The person tries both, as a person would.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use confidant_chat_format::{ChatId, MessageId, RecoveryCode, Refused};
use confidant_chat_protocol::{ErrorName, Failure};
use confidant_client::{ChatView, Credential, Device, Error, Phase, Posted, Transport, TransportError};
use parking_lot::Mutex;

use crate::place::Place as Store;
use crate::world::{Between, DRAFTS_MS, MemoryFiles, Passes, Through, World};

/// SplitMix64.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(n).unwrap()).unwrap()
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { Some(&from[self.below(from.len())]) }
    }
}

/// A way to the server that loses things.
#[derive(Default)]
pub(crate) struct Weather {
    pub(crate) is_off: Mutex<bool>,
    /// What becomes of the next frames, the last of these first.
    pub(crate) next: Mutex<Vec<Passes>>,
    /// The same for the next POSTs.
    posts: Mutex<Vec<Passes>>,
    /// Whether the answer to the POST under way is lost.
    unanswered: Mutex<bool>,
    /// How many frames of the server arrive before the connection is gone.
    pub(crate) heard: Mutex<Option<usize>>,
}

impl Weather {
    pub(crate) fn clear(&self) {
        *self.is_off.lock() = false;
        self.next.lock().clear();
        self.posts.lock().clear();
        *self.heard.lock() = None;
    }
}

impl Between for Weather {
    fn sends(&self, _: &[u8]) -> Passes {
        if *self.is_off.lock() { Passes::Lost } else { self.next.lock().pop().unwrap_or(Passes::On) }
    }

    fn reaches(&self, _: &str) -> bool {
        let passes = self.posts.lock().pop().unwrap_or(Passes::On);
        *self.unanswered.lock() = passes == Passes::Unanswered;
        passes != Passes::Lost && !*self.is_off.lock()
    }

    fn posted(&self, _: &str, posted: Posted) -> Result<Posted, TransportError> {
        if std::mem::take(&mut *self.unanswered.lock()) { Err(TransportError::Offline) } else { Ok(posted) }
    }

    fn hears(&self) -> bool {
        let mut heard = self.heard.lock();
        match &mut *heard {
            Some(0) => {
                *heard = None;
                false
            }
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }
}

/// What a word is about: a message, a title, a draft, a piece of data.
type Place = (Option<ChatId>, String);

/// Every word that was written, who wrote it, and every word that somebody saw when writing something else.
#[derive(Default)]
struct Story {
    written: Vec<(Place, String, usize)>,
    replaced: BTreeSet<(Place, String)>,
    chats: Vec<ChatId>,
    doomed: BTreeSet<ChatId>,
    messages: Vec<(ChatId, MessageId)>,
}

struct Hand {
    device: Option<Device>,
    files: Arc<MemoryFiles>,
    weather: Arc<Weather>,
    is_logged_out: bool,
}

struct Case<'a> {
    world: &'a World,
    /// The recovery code; several where nobody knows which one the server has.
    codes: Vec<RecoveryCode>,
    dice: Dice,
    hands: Vec<Hand>,
    story: Story,
    words: u64,
    log: Log,
}

/// What was done, for whoever looks for the reason of a failure.
type Log = Arc<Mutex<Vec<String>>>;

impl Case<'_> {
    async fn new<'a>(world: &'a World, seed: u64, log: Log) -> Case<'a> {
        let mut case = Case {
            world,
            codes: vec![RecoveryCode::random()],
            dice: Dice(seed),
            hands: Vec::new(),
            story: Story::default(),
            words: 0,
            log,
        };
        for at in 0..2 {
            let (files, weather) = (MemoryFiles::new(), Arc::new(Weather::default()));
            let way: Arc<dyn Transport> =
                Arc::new(Through { inner: world.transport(), between: Arc::clone(&weather) });
            let login = format!("somebody-{seed}@example.org");
            let code = Credential::Recovery(case.codes[0].clone());
            let device = if at == 0 {
                world.register(way, &files, &login, vec![code]).await.unwrap()
            } else {
                Device::log_in(world.setup_over(way, &files), &code).await.unwrap()
            };
            case.hands.push(Hand { device: Some(device), files, weather, is_logged_out: false });
        }
        case
    }

    fn word(&mut self) -> String {
        self.words += 1;
        format!("w{}", self.words)
    }

    /// The device, started again if it was killed.
    fn device(&mut self, at: usize) -> &mut Device {
        let hand = &mut self.hands[at];
        if hand.device.is_none() {
            hand.files.revive();
            let way: Arc<dyn Transport> =
                Arc::new(Through { inner: self.world.transport(), between: Arc::clone(&hand.weather) });
            let opened = Device::open(self.world.setup_over(way, &hand.files));
            hand.device = Some(opened.unwrap().expect("it was logged in"));
        }
        hand.device.as_mut().unwrap()
    }

    fn note(&self, what: impl Into<String>) {
        self.log.lock().push(what.into());
    }

    /// Whether it was done; a kill ends the device.
    fn done<T>(&mut self, at: usize, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => return Some(value),
            Err(Error::Offline) => {}
            Err(Error::Files(_)) => {
                self.note(format!("{at}: killed"));
                self.hands[at].device = None;
            }
            Err(Error::LoggedOut(_) | Error::NotLoggedIn) => {
                self.note(format!("{at}: logged out"));
                self.hands[at].is_logged_out = true;
            }
            Err(Error::Denied { error: ErrorName::Request(Failure::Unauthorised), .. }) => {
                self.note(format!("{at}: unauthorised"));
                self.hands[at].is_logged_out = true;
            }
            // A device began to replace the account key, and was cut off.
            Err(Error::Frozen) => self.note(format!("{at}: frozen")),
            Err(error) => panic!("{error:?}"),
        }
        None
    }

    /// Logs a device in again whose session ended, if it can.
    async fn log_in(&mut self, at: usize) {
        self.device(at);
        if !self.hands[at].is_logged_out {
            return;
        }
        let code = Credential::Recovery(self.code().await);
        self.note(format!("{at}: logs in"));
        let done = self.device(at).log_in_again(&code).await;
        if self.done(at, done).is_some() {
            self.hands[at].is_logged_out = false;
        }
    }

    /// The recovery code that the server has.
    async fn code(&mut self) -> RecoveryCode {
        if self.codes.len() > 1 {
            let mut good = Vec::new();
            for code in std::mem::take(&mut self.codes) {
                let setup = self.world.setup(&MemoryFiles::new());
                match Device::log_in(setup, &Credential::Recovery(code.clone())).await {
                    Ok(_) => good.push(code),
                    Err(error) => assert_eq!(error.name(), "login-refused"),
                }
            }
            self.codes = good;
        }
        assert_eq!(self.codes.len(), 1, "one code is good");
        self.codes[0].clone()
    }

    /// Replaces the recovery code, and the account key with it or not.
    async fn renew(&mut self, at: usize, is_rotation: bool) {
        self.log_in(at).await;
        let (old, new) = (self.code().await, RecoveryCode::random());
        self.trouble(at);
        self.note(format!("{at}: renews, with the key: {is_rotation}"));
        let (by, next) = (Credential::Recovery(old.clone()), [Credential::Recovery(new.clone())]);
        let device = self.device(at);
        let renewed = match is_rotation {
            true => device.rotate(&by, &next).await,
            false => device.change_credentials(&by, &next, None).await,
        };
        // Whatever came back, the server may have either.
        self.codes = if renewed.is_ok() { vec![new] } else { vec![old, new] };
        match renewed {
            // Another device is at it, or has done it meanwhile.
            Err(Error::Denied { error: ErrorName::Content(Refused::Conflict), .. }) => {
                self.note(format!("{at}: in conflict"));
            }
            renewed => drop(self.done(at, renewed)),
        }
    }

    fn write(&mut self, at: usize, place: Place, saw: Option<String>, word: Option<String>) {
        if let Some(saw) = saw {
            self.story.replaced.insert((place.clone(), saw));
        }
        if let Some(word) = word {
            self.story.written.push((place, word, at));
        }
    }

    async fn act(&mut self) {
        let at = self.dice.below(2);
        match self.dice.below(32) {
            0 => {
                let (word, title) = (self.word(), self.dice.one_in(2));
                let made = self.device(at).new_chat(title.then_some(word.as_str()));
                self.log.lock().push(format!("{at}: new chat {title}"));
                if let Some(chat) = self.done(at, made) {
                    if title {
                        self.write(at, (Some(chat.clone()), "title".to_owned()), None, Some(word));
                    }
                    self.story.chats.push(chat);
                }
            }
            1..=6 => self.say(at),
            7..=10 => self.edit(at),
            11..=12 => self.delete(at),
            13 => self.set(at, "title"),
            14..=15 => self.set(at, "draft"),
            16 => self.set(at, "data"),
            17 if self.dice.one_in(3) => self.delete_chat(at),
            17..=22 => {
                self.trouble(at);
                self.log.lock().push(format!("{at}: flush"));
                let flushed = self.device(at).flush().await;
                self.done(at, flushed);
            }
            23..=25 => {
                self.trouble(at);
                self.log.lock().push(format!("{at}: sync"));
                let synced = self.device(at).sync(Phase::All).await;
                self.done(at, synced);
            }
            26..=27 => {
                self.log.lock().push(format!("{at}: listen"));
                while let Ok(news) = tokio::time::timeout(Duration::ZERO, self.device(at).listen()).await {
                    if self.done(at, news).is_none() {
                        break;
                    }
                }
            }
            28 => {
                let off = !*self.hands[at].weather.is_off.lock();
                self.log.lock().push(format!("{at}: off {off}"));
                *self.hands[at].weather.is_off.lock() = off;
                self.device(at).disconnect();
            }
            29 => {
                self.log.lock().push(format!("{at}: restarted"));
                self.hands[at].device = None;
            }
            30 if self.dice.one_in(2) => self.renew(at, true).await,
            31 if self.dice.one_in(3) => self.renew(at, false).await,
            30 if self.dice.one_in(2) => self.world.pass(FREEZE_MS),
            _ => self.log_in(at).await,
        }
    }

    /// Something goes wrong soon, perhaps.
    fn trouble(&mut self, at: usize) {
        self.device(at);
        if self.dice.one_in(3) {
            let what = if self.dice.one_in(2) { Passes::Lost } else { Passes::Unanswered };
            let mut next = vec![what];
            next.extend((0..self.dice.below(6)).map(|_| Passes::On));
            self.log.lock().push(format!("{at}: loses {} {}", next.len(), what == Passes::Lost));
            let weather = Arc::clone(&self.hands[at].weather);
            match self.dice.below(3) {
                0 => *weather.posts.lock() = next,
                1 => *weather.heard.lock() = Some(next.len()),
                _ => *weather.next.lock() = next,
            }
        } else if self.dice.one_in(3) {
            let writes = self.dice.below(8);
            self.log.lock().push(format!("{at}: dies after {writes}"));
            self.hands[at].files.kill_after(writes);
        }
    }

    fn chat(&mut self, at: usize) -> Option<ChatView> {
        let chats = self.story.chats.clone();
        let chat = self.dice.pick(&chats)?;
        self.device(at).chat(chat).ok()
    }

    fn message(&mut self, at: usize) -> Option<(ChatId, MessageId, String)> {
        let messages = self.story.messages.clone();
        let (chat, message) = self.dice.pick(&messages)?.clone();
        let body = self.device(at).chat(&chat).ok()?.messages.get(&message)?.body.clone();
        Some((chat, message, body))
    }

    fn say(&mut self, at: usize) {
        let Some(view) = self.chat(at) else { return };
        let (word, branches) = (self.word(), self.dice.one_in(4));
        let parent = view.branch.first().map(|message| message.id.clone());
        self.log.lock().push(format!("{at}: says {word} {branches}"));
        let device = self.device(at);
        let said = if branches {
            device.branch_off(&view.id, parent.as_ref(), &word)
        } else {
            device.say(&view.id, &word)
        };
        if let Some(id) = self.done_or_gone(at, said) {
            self.write(at, (Some(view.id.clone()), id.as_str().to_owned()), None, Some(word));
            self.story.messages.push((view.id, id));
        }
    }

    fn edit(&mut self, at: usize) {
        let Some((chat, id, saw)) = self.message(at) else { return };
        let word = self.word();
        self.log.lock().push(format!("{at}: edits {saw} to {word}"));
        let edited = self.device(at).edit(&chat, &id, &word);
        if self.done_or_gone(at, edited).is_some() {
            self.write(at, (Some(chat), id.as_str().to_owned()), Some(saw), Some(word));
        }
    }

    fn delete(&mut self, at: usize) {
        let Some((chat, id, saw)) = self.message(at) else { return };
        self.log.lock().push(format!("{at}: deletes {saw}"));
        let deleted = self.device(at).delete(&chat, &id);
        if self.done_or_gone(at, deleted).is_some() {
            self.write(at, (Some(chat), id.as_str().to_owned()), Some(saw), None);
        }
    }

    fn set(&mut self, at: usize, what: &str) {
        let word = if what == "title" || !self.dice.one_in(3) { Some(self.word()) } else { None };
        self.log.lock().push(format!("{at}: sets {what} to {word:?}"));
        if what == "data" {
            let saw = self.device(at).data("settings", "theme").unwrap();
            let set = self.device(at).set_data("settings", "theme", word.as_deref());
            if self.done(at, set).is_some() {
                self.write(at, (None, what.to_owned()), saw, word);
            }
            return;
        }
        let Some(view) = self.chat(at) else { return };
        let device = self.device(at);
        let (saw, set) = match (what, &word) {
            ("title", Some(word)) => (view.title().map(ToOwned::to_owned), device.rename(&view.id, word)),
            _ => (view.draft.clone(), device.set_draft(&view.id, word.as_deref())),
        };
        if self.done_or_gone(at, set).is_some() {
            self.write(at, (Some(view.id), what.to_owned()), saw, word);
        }
    }

    fn delete_chat(&mut self, at: usize) {
        let Some(view) = self.chat(at) else { return };
        self.log.lock().push(format!("{at}: deletes a chat"));
        let deleted = self.device(at).delete_chat(&view.id);
        if self.done_or_gone(at, deleted).is_some() {
            self.story.doomed.insert(view.id);
        }
    }

    fn done_or_gone<T>(&mut self, at: usize, result: Result<T, Error>) -> Option<T> {
        match result {
            Err(Error::NoSuchChat | Error::NoSuchMessage) => None,
            result => self.done(at, result),
        }
    }

    /// The weather clears, and both devices send and load until nothing is left to do.
    async fn settle(&mut self) {
        for hand in &self.hands {
            hand.weather.clear();
            hand.files.revive();
        }
        self.world.pass(FREEZE_MS);
        for round in 0..3 {
            self.world.pass(DRAFTS_MS);
            for at in 0..2 {
                self.log.lock().push(format!("{at}: settles, round {round}"));
                let synced = self.device(at).sync(Phase::All).await;
                if self.done(at, synced).is_none() {
                    // A session that ended while nobody looked; or a connection that did.
                    self.log_in(at).await;
                    self.device(at).sync(Phase::All).await.unwrap();
                }
                self.device(at).flush().await.unwrap();
            }
            if (0..2).all(|at| self.device(at).waiting().is_empty()) {
                break;
            }
        }
        for at in 0..2 {
            self.device(at).sync(Phase::All).await.unwrap();
            assert!(self.device(at).waiting().is_empty(), "something waits for ever");
        }
    }

    async fn check(&mut self) {
        let views: Vec<BTreeMap<ChatId, ChatView>> = (0..2)
            .map(|at| {
                let device = self.device(at);
                device.chats().into_iter().map(|chat| (chat.clone(), device.chat(&chat).unwrap())).collect()
            })
            .collect();
        if views[0] != views[1] {
            let told: Vec<Vec<String>> = views.iter().map(|view| view.values().map(tell).collect()).collect();
            panic!("the devices differ: {told:#?}");
        }
        // Somebody who remembers nothing sees the same, from the floors up.
        let code = Credential::Recovery(self.code().await);
        let mut third = Device::log_in(self.world.setup(&MemoryFiles::new()), &code).await.unwrap();
        third.sync(Phase::All).await.unwrap();
        let generations = [&third, self.device(0)].map(|device| device.generation());
        assert_eq!(generations, [self.device(1).generation(); 2], "an old account key is in use");
        let fresh: BTreeMap<ChatId, ChatView> =
            third.chats().into_iter().map(|chat| (chat.clone(), third.chat(&chat).unwrap())).collect();
        assert!(fresh == views[0], "a new device sees something else");
        for (chat, view) in &views[0] {
            assert!(!self.story.doomed.contains(chat), "a deleted chat is there");
            let bodies: BTreeSet<_> = view.messages.values().map(|message| &message.body).collect();
            assert_eq!(bodies.len(), view.messages.len(), "something was written twice");
        }
        for chat in &self.story.chats {
            assert!(self.story.doomed.contains(chat) || views[0].contains_key(chat), "a chat is lost");
        }
        let theme = self.device(0).data("settings", "theme").unwrap();
        assert_eq!(theme, self.device(1).data("settings", "theme").unwrap());
        for ((chat, what), word, by) in &self.story.written {
            if chat.as_ref().is_some_and(|chat| self.story.doomed.contains(chat)) {
                continue;
            }
            let view = chat.as_ref().and_then(|chat| views[0].get(chat));
            let now = match (what.as_str(), view) {
                ("data", _) => theme.clone(),
                ("title", Some(view)) => view.title().map(ToOwned::to_owned),
                ("draft", Some(view)) => view.draft.clone(),
                (id, Some(view)) => {
                    view.messages.get(&MessageId::parse(id).unwrap()).map(|message| message.body.clone())
                }
                _ => None,
            };
            let is_replaced = self.story.replaced.contains(&((chat.clone(), what.clone()), word.clone()));
            let copies = self.hands[*by].device.as_ref().unwrap().copies();
            let is_kept = copies.iter().any(|copy| copy.text.as_ref() == Some(word));
            assert!(now.as_ref() == Some(word) || is_replaced || is_kept, "{word} by {by} is lost");
        }
    }
}

/// A chat with its words, which are the test's own.
fn tell(view: &ChatView) -> String {
    let branch: Vec<_> = view.branch.iter().map(|message| (&message.body, message.rev)).collect();
    let all: BTreeSet<_> = view.messages.values().map(|message| (&message.body, message.rev)).collect();
    let id = view.id.as_str();
    format!("{id} {} {:?} {branch:?} {all:?} {:?} {}", view.rev, view.fields, view.draft, view.updated_at)
}

async fn run(world: &World, seed: u64, log: Log) {
    let mut case = Case::new(world, seed, log).await;
    let acts = 12 + case.dice.below(48);
    for _ in 0..acts {
        case.act().await;
    }
    case.settle().await;
    case.check().await;
}

pub(crate) fn number(name: &str, otherwise: u64) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is no setting of the program")]
    let value = std::env::var(name);
    value.ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// Runs cases on so many servers at once; which case runs on which does not matter.
async fn converge(places: Vec<Store>, cases: u64) {
    let first = number("CONFIDANT_CONVERGENCE_SEED", 1);
    let next = Arc::new(AtomicU64::new(first));
    let mut servers = Vec::new();
    for place in places {
        let (world, next) = (Arc::new(World::at(place).await), Arc::clone(&next));
        servers.push(tokio::spawn(async move {
            loop {
                let seed = next.fetch_add(1, Ordering::SeqCst);
                if seed >= first + cases {
                    return;
                }
                one(&world, seed).await;
            }
        }));
    }
    for server in servers {
        server.await.unwrap();
    }
}

async fn one(world: &Arc<World>, seed: u64) {
    let (here, log) = (Arc::clone(world), Log::default());
    let told = Arc::clone(&log);
    let case = tokio::spawn(async move { run(&here, seed, told).await });
    if let Err(error) = case.await {
        let log = log.lock().join("\n");
        panic!(
            "{log}\nseed {seed}: {error}; hint: CONFIDANT_CONVERGENCE_SEED={seed} CONFIDANT_CONVERGENCE_CASES=1"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_devices_converge_and_no_word_is_lost() {
    let cases = number("CONFIDANT_CONVERGENCE_CASES", 200);
    converge(vec![Store::sqlite(), Store::sqlite()], cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_devices_converge_on_postgres() {
    let places = [(); 2].map(|()| Store::postgres_at("CONFIDANT_TEST_POSTGRES"));
    let cases = number("CONFIDANT_CONVERGENCE_CASES", 200).div_ceil(20);
    converge(places.into_iter().flatten().collect(), cases).await;
}

/// How long keys are frozen for a rotation that nobody ends.
const FREEZE_MS: u64 = 600_000;
