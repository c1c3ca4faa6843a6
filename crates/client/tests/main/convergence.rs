//! Two devices of one person, whatever happens between them: offline, lost requests, lost answers, kills between two
//! writes of a file. In the end both have the same chats, nothing waits, and every word is there, was replaced by somebody
//! who saw it, or is a copy.
//!
//! `CONFIDANT_CONVERGENCE_CASES` sets how many runs there are, `CONFIDANT_CONVERGENCE_SEED` which one is first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use confidant_chat_format::{ChatId, MessageId};
use confidant_client::{ChatView, Device, Error, Phase, Transport};
use parking_lot::Mutex;

use crate::world::{Between, MemoryFiles, Passes, Person, Through, World};

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(n).unwrap()).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { Some(&from[self.below(from.len())]) }
    }
}

/// A way to the server that loses things.
#[derive(Default)]
pub(crate) struct Weather {
    pub(crate) is_off: Mutex<bool>,
    /// What becomes of the next frames, the last of these first.
    pub(crate) next: Mutex<Vec<Passes>>,
}

impl Between for Weather {
    fn sends(&self, _: &[u8]) -> Passes {
        if *self.is_off.lock() { Passes::Lost } else { self.next.lock().pop().unwrap_or(Passes::On) }
    }

    fn reaches(&self, _: &str) -> bool {
        !*self.is_off.lock()
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
}

struct Case<'a> {
    world: &'a World,
    person: Person,
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
        let person = Person::new();
        let mut case = Case {
            world,
            person,
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
            let device = if at == 0 {
                world.register(way, &files, &login, vec![case.person.recovery()]).await.unwrap()
            } else {
                Device::log_in(world.setup_over(way, &files), &case.person.recovery()).await.unwrap()
            };
            case.hands.push(Hand { device: Some(device), files, weather });
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

    /// Whether it was done; a kill ends the device.
    fn done<T>(&mut self, at: usize, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(Error::Offline) => None,
            Err(Error::Files(_)) => {
                self.log.lock().push(format!("{at}: killed"));
                self.hands[at].device = None;
                None
            }
            Err(error) => panic!("{error:?}"),
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
        match self.dice.below(30) {
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
            _ => {
                self.log.lock().push(format!("{at}: restarted"));
                self.hands[at].device = None;
            }
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
            *self.hands[at].weather.next.lock() = next;
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
            *hand.weather.is_off.lock() = false;
            hand.weather.next.lock().clear();
            hand.files.revive();
        }
        for round in 0..3 {
            for at in 0..2 {
                self.log.lock().push(format!("{at}: settles, round {round}"));
                self.device(at).sync(Phase::All).await.unwrap();
                self.device(at).flush().await.unwrap();
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
        let third = self.world.second(&self.person).await;
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
    let acts = 20 + case.dice.below(80);
    for _ in 0..acts {
        case.act().await;
    }
    case.settle().await;
    case.check().await;
}

fn number(name: &str, otherwise: u64) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is no setting of the program")]
    let value = std::env::var(name);
    value.ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[tokio::test]
async fn two_devices_converge_and_no_word_is_lost() {
    let cases = number("CONFIDANT_CONVERGENCE_CASES", 64);
    let first = number("CONFIDANT_CONVERGENCE_SEED", 1);
    let world = Arc::new(World::new().await);
    for seed in first..first + cases {
        let here = Arc::clone(&world);
        let log = Log::default();
        let told = Arc::clone(&log);
        let case = tokio::spawn(async move { run(&here, seed, told).await });
        if let Err(error) = case.await {
            let log = log.lock().join("\n");
            panic!(
                "{log}\nseed {seed}: {error}; hint: CONFIDANT_CONVERGENCE_SEED={seed} CONFIDANT_CONVERGENCE_CASES=1"
            );
        }
    }
}
