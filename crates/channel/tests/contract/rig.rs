//! A platform in memory, a bot on it that can be killed and started again, and a model that records what it is told.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use confidant_channel::*;
use confidant_engine::clock::{Clock, ManualClock, Millis};
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt, ToolCall};
use confidant_engine::room::{Audience, RoomContext, RoomLine};
use confidant_engine::storage::Durability;
use confidant_engine::{Actor, ChannelName, Engine, Parts, Scope, StaticKeys, Storage, TenantId, UserId};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::Instant;

/// One message that the bot sent.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) room: String,
    pub(crate) texts: Vec<String>,
    pub(crate) kind: OutgoingKind,
    pub(crate) reply_to: String,
}

impl Shown {
    pub(crate) fn text(&self) -> &str {
        self.texts.last().unwrap()
    }
}

/// The platform: what is on its server.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) shown: Mutex<Vec<Shown>>,
    nonces: Mutex<HashMap<String, usize>>,
    pub(crate) files: Mutex<Vec<(String, String)>>,
    /// What the next calls of the bot meet.
    pub(crate) troubles: Mutex<VecDeque<Trouble>>,
    /// The next send is carried out, and its sender never hears of it.
    pub(crate) swallow: Mutex<bool>,
    pub(crate) swallowed: Notify,
    /// Somebody was told that the bot is typing.
    pub(crate) typed: Notify,
    /// How long a message takes once it can be seen, until its sender hears so.
    pub(crate) slowness: Mutex<Duration>,
    pub(crate) room: Mutex<Vec<(String, String)>>,
    feed: Mutex<Option<mpsc::UnboundedSender<Event>>>,
    pub(crate) restore: Mutex<Option<usize>>,
    pub(crate) keeping: Mutex<confidant_channel::Keeping>,
    /// Direct rooms that others have come to.
    pub(crate) crowded: Mutex<Vec<String>>,
    changed: Notify,
}

impl World {
    pub(crate) fn texts(&self) -> Vec<String> {
        self.shown.lock().unwrap().iter().map(|shown| shown.text().to_owned()).collect()
    }

    /// Waits until what is shown is as wanted.
    pub(crate) async fn until(&self, wanted: impl Fn(&[Shown]) -> bool) {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                if wanted(&self.shown.lock().unwrap()) {
                    return;
                }
                let _ = tokio::time::timeout(Duration::from_millis(20), changed).await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(180), wait).await.is_err() {
            panic!("not shown in time: {:#?}", self.shown.lock().unwrap());
        }
    }

    fn trouble(&self) -> Result<(), Trouble> {
        self.troubles.lock().unwrap().pop_front().map_or(Ok(()), Err)
    }
}

/// How many events the bot works on side by side.
pub(crate) const CONCURRENCY: usize = 8;

/// A bot's connection to it.
#[derive(Debug)]
pub(crate) struct Double {
    world: Arc<World>,
    intake: Mutex<Option<Intake>>,
    ready: Notify,
}

#[async_trait]
impl Channel for Double {
    fn platform(&self) -> &'static str {
        "discord"
    }

    fn label(&self) -> &str {
        "double"
    }

    fn manners(&self) -> Manners {
        Manners {
            limit: 200,
            measure: confidant_channel::Measure::Utf16,
            pace: Pace { first: Duration::ZERO, gap: Duration::ZERO, longest_gap: Duration::ZERO },
            typing_every: Duration::from_secs(5),
            restore: *self.world.restore.lock().unwrap(),
            keeping: *self.world.keeping.lock().unwrap(),
            concurrency: CONCURRENCY,
        }
    }

    async fn sign_in(&self, _vault: &Vault) -> Result<String, Trouble> {
        Ok("bot-1".to_owned())
    }

    async fn listen(&self, intake: &Intake, mut stop: Stop) -> Result<(), Trouble> {
        let (feed, mut events) = mpsc::unbounded_channel();
        *self.world.feed.lock().unwrap() = Some(feed);
        *self.intake.lock().unwrap() = Some(intake.clone());
        intake.up();
        self.ready.notify_one();
        loop {
            tokio::select! {
                () = stop.said() => return Ok(()),
                event = events.recv() => {
                    let Some(event) = event else { return Ok(()) };
                    intake.take(event).await.unwrap();
                }
            }
        }
    }

    async fn room(&self, _route: &Route, _scope: &Scope) -> Result<RoomContext, Trouble> {
        let lines = self.world.room.lock().unwrap();
        let line = |(sender, content): &(String, String)| RoomLine {
            sender: sender.clone(),
            content: content.clone(),
            timestamp: 0,
            is_bot: false,
            event_id: None,
            replaces: None,
            redacted: false,
        };
        Ok(RoomContext::new(lines.iter().map(line).collect()))
    }

    async fn audience(&self, route: &Route) -> Result<Audience, Trouble> {
        let room = route.0.split_once(' ').unwrap().0;
        let alone =
            room.starts_with("dm-") && !self.world.crowded.lock().unwrap().iter().any(|it| it == room);
        Ok(if alone { Audience::Private } else { Audience::Room })
    }

    async fn send(&self, route: &Route, outgoing: Outgoing<'_>) -> Result<MessageId, Trouble> {
        self.world.trouble()?;
        let (room, reply_to) = route.0.split_once(' ').unwrap();
        let id = {
            let mut nonces = self.world.nonces.lock().unwrap();
            let mut shown = self.world.shown.lock().unwrap();
            *nonces.entry(outgoing.nonce.short()).or_insert_with(|| {
                shown.push(Shown {
                    room: room.to_owned(),
                    texts: vec![outgoing.text.to_owned()],
                    kind: outgoing.kind,
                    reply_to: reply_to.to_owned(),
                });
                shown.len() - 1
            })
        };
        self.world.changed.notify_waiters();
        if std::mem::take(&mut *self.world.swallow.lock().unwrap()) {
            self.world.swallowed.notify_one();
            std::future::pending::<()>().await;
        }
        let slowness = *self.world.slowness.lock().unwrap();
        tokio::time::sleep(slowness).await;
        Ok(MessageId(id.to_string()))
    }

    async fn edit(&self, _: &Route, message: &MessageId, outgoing: Outgoing<'_>) -> Result<(), Trouble> {
        self.world.trouble()?;
        {
            let mut shown = self.world.shown.lock().unwrap();
            let one = &mut shown[message.0.parse::<usize>().unwrap()];
            one.texts.push(outgoing.text.to_owned());
            one.kind = outgoing.kind;
        }
        self.world.changed.notify_waiters();
        let slowness = *self.world.slowness.lock().unwrap();
        tokio::time::sleep(slowness).await;
        Ok(())
    }

    async fn typing(&self, _: &Route) -> Result<(), Trouble> {
        self.world.typed.notify_one();
        Ok(())
    }

    async fn send_privately(
        &self,
        _: &Route,
        scope: &Scope,
        _: Nonce,
        document: Document,
    ) -> Result<Private, Trouble> {
        self.world.trouble()?;
        let content = String::from_utf8(document.bytes.to_vec()).unwrap();
        self.world.files.lock().unwrap().push((scope.user().as_str().to_owned(), content));
        Ok(Private::Elsewhere)
    }

    async fn check(&self, _: Option<&Vault>) -> Vec<Finding> {
        Vec::new()
    }
}

/// A bot that runs.
pub(crate) struct Bot {
    pub(crate) engine: Engine,
    pub(crate) inbox: Inbox,
    pub(crate) runtime: Runtime,
    double: Arc<Double>,
    hosted: Hosted,
}

/// Where a bot keeps things, and the platform it is on.
pub(crate) struct Rig {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) world: Arc<World>,
    pub(crate) model: Arc<Recorder>,
    pub(crate) clock: Arc<Running>,
}

/// A clock that runs as time passes, so that what is tried again later is, and can be put forward.
#[derive(Debug)]
pub(crate) struct Running {
    put: ManualClock,
    since: Instant,
}

impl Running {
    pub(crate) fn advance(&self, by: Duration) {
        self.put.advance(by);
    }
}

impl Clock for Running {
    fn now(&self) -> Millis {
        self.put.now().plus(self.since.elapsed())
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            world: Arc::default(),
            model: Recorder::new(),
            clock: Arc::new(Running {
                put: ManualClock::new(Millis(1_700_000_000_000)),
                since: Instant::now(),
            }),
        }
    }

    pub(crate) async fn start(&self) -> Bot {
        self.start_with(|parts| parts).await
    }

    pub(crate) async fn start_with(&self, change: impl FnOnce(Parts) -> Parts) -> Bot {
        self.start_after(change, async |_| ()).await
    }

    /// The same, with something that the engine does before the channel is up.
    pub(crate) async fn start_after(
        &self,
        change: impl FnOnce(Parts) -> Parts,
        first: impl AsyncFnOnce(Engine),
    ) -> Bot {
        // A restart is a later moment.
        self.clock.advance(Duration::from_secs(1));
        let folder = self.folder.path();
        let storage = Storage::sqlite(folder, folder, Durability::Process).unwrap();
        let inbox = Inbox::open(folder).unwrap();
        let parts = Parts::new(storage, keys(), Arc::clone(&self.model) as _);
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let parts = Parts { derived: vec![Arc::new(inbox.clone())], clock: Arc::clone(&clock), ..parts };
        let engine = Engine::open(change(parts)).await.unwrap();
        inbox.attach(&engine);
        first(engine.clone()).await;
        let runtime = Runtime::new(engine.clone(), inbox.clone(), clock, tenant());
        let double = Arc::new(Double {
            world: Arc::clone(&self.world),
            intake: Mutex::default(),
            ready: Notify::new(),
        });
        let hosted = runtime.host(vec![Arc::clone(&double) as _]);
        double.ready.notified().await;
        Bot { engine, inbox, runtime, double, hosted }
    }

    /// Another process on a copy of the data, with its inbox and without the channel.
    pub(crate) async fn looks_at(&self, folder: &Path) -> (Engine, Inbox) {
        let storage = Storage::sqlite(folder, folder, Durability::Process).unwrap();
        let inbox = Inbox::open(folder).unwrap();
        let parts = Parts::new(storage, keys(), Arc::clone(&self.model) as _);
        let parts =
            Parts { derived: vec![Arc::new(inbox.clone())], clock: Arc::clone(&self.clock) as _, ..parts };
        let engine = Engine::open(parts).await.unwrap();
        inbox.attach(&engine);
        (engine, inbox)
    }

    /// Another process on the same data, without the channel.
    pub(crate) async fn beside(&self, change: impl FnOnce(Parts) -> Parts) -> Engine {
        let folder = self.folder.path();
        let storage = Storage::sqlite(folder, folder, Durability::Process).unwrap();
        let parts = Parts::new(storage, keys(), Arc::clone(&self.model) as _);
        let parts = Parts { clock: Arc::clone(&self.clock) as _, ..parts };
        Engine::open(change(parts)).await.unwrap()
    }

    /// Every byte that is in a file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        read_all(self.folder.path())
    }

    pub(crate) fn has(&self, marker: &str) -> bool {
        self.bytes().windows(marker.len()).any(|window| window == marker.as_bytes())
    }
}

fn read_all(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(read_all(&entry.path())),
            false => all.extend(std::fs::read(entry.path()).unwrap_or_default()),
        }
    }
    all
}

impl Bot {
    pub(crate) fn feed(&self, event: Event) {
        self.double.world.feed.lock().unwrap().as_ref().unwrap().send(event).unwrap();
    }

    /// Hands an event in and waits until it is stored.
    pub(crate) async fn take(&self, event: Event) -> Taken {
        let intake = self.double.intake.lock().unwrap().clone().unwrap();
        intake.take(event).await.unwrap()
    }

    pub(crate) async fn cursors(&self) -> Vec<Cursor> {
        let intake = self.double.intake.lock().unwrap().clone().unwrap();
        intake.cursors().await.unwrap()
    }

    /// Ends it as a kill does: nothing is finished, nothing is noted.
    pub(crate) async fn kill(self) {
        drop(self.hosted);
        self.engine.stop(Duration::ZERO).await;
        // The tasks end a moment later, and with them the lock.
        while self.inbox.lock().is_err() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) async fn stop(self) {
        let grace = Duration::from_secs(20);
        tokio::join!(self.hosted.stop(grace), self.engine.stop(grace));
    }

    /// Waits until nothing is left to do.
    pub(crate) async fn idle(&self) {
        let wait = async {
            while self.runtime.backlog().await.unwrap() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(180), wait).await.expect("everything is done in time");
        self.engine.settle().await;
    }

    pub(crate) async fn transcript(&self, user: &str) -> Vec<String> {
        let export = self.engine.session(person(user), Actor::cli()).export().await.unwrap();
        let messages = export.map_or_else(Vec::new, |export| export.messages);
        messages.iter().map(|m| format!("{:?}:{}", m.kind, m.content).to_lowercase()).collect()
    }
}

pub(crate) fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

pub(crate) fn person(user: &str) -> Scope {
    Scope::person(tenant(), ChannelName::new("discord").unwrap(), UserId::new(user).unwrap())
}

/// Something said in a room.
pub(crate) fn says(event: &str, user: &str, text: &str) -> Event {
    said(event, user, "hall-8833", text, Audience::Room)
}

pub(crate) fn whispers(event: &str, user: &str, text: &str) -> Event {
    said(event, user, &format!("dm-{user}"), text, Audience::Private)
}

fn said(event: &str, user: &str, room: &str, text: &str, audience: Audience) -> Event {
    Event::Said(Said {
        event: event.to_owned(),
        room: room.to_owned(),
        order: Some(event.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)),
        scope: person(user),
        audience,
        route: Route(format!("{room} {event}")),
        text: text.to_owned(),
        note: None,
    })
}

/// One key, the same for every test.
fn keys() -> Arc<StaticKeys> {
    Arc::new(StaticKeys::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap())
}

/// Keeps every prompt it gets, and answers "noted: <query>", when it is let.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) prompts: Mutex<Vec<String>>,
    pub(crate) gate: Semaphore,
    /// What to answer instead.
    pub(crate) answer: Mutex<Option<String>>,
    /// A tool to call before answering, so often.
    pub(crate) call: Mutex<Option<String>>,
    pub(crate) calls: Mutex<usize>,
    /// Whether it says something before a call, and then waits to be let.
    pub(crate) aloud: Mutex<bool>,
    /// How often it fails after a call.
    pub(crate) failures: Mutex<usize>,
}

impl Recorder {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            prompts: Mutex::default(),
            gate: Semaphore::new(1_000_000),
            answer: Mutex::default(),
            call: Mutex::default(),
            calls: Mutex::new(1),
            aloud: Mutex::default(),
            failures: Mutex::default(),
        })
    }

    pub(crate) fn shut(&self) {
        self.gate.forget_permits(1_000_000);
    }

    pub(crate) fn open(&self) {
        self.gate.add_permits(1_000_000);
    }

    pub(crate) fn last(&self) -> String {
        self.prompts.lock().unwrap().last().cloned().unwrap_or_default()
    }

    pub(crate) async fn until(&self, prompts: usize) {
        while self.prompts.lock().unwrap().len() < prompts {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

#[async_trait]
impl Model for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    async fn respond(&self, prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        let mut whole = String::new();
        for block in &prompt.blocks {
            whole.push_str(&block.render(&prompt.fence));
        }
        for message in &prompt.history {
            whole.push_str(&format!("{:?}: {}\n", message.role, message.text));
        }
        whole.push_str(&prompt.query);
        self.prompts.lock().unwrap().push(whole);
        let call =
            self.call.lock().unwrap().clone().filter(|_| prompt.steps.len() < *self.calls.lock().unwrap());
        if let Some(name) = call {
            if *self.aloud.lock().unwrap() {
                deltas("Let me see.");
                let _permit = self.gate.acquire().await.unwrap();
            }
            let arguments = serde_json::json!({ "path": format!("notes-{}.txt", prompt.steps.len()) });
            let call = ToolCall { id: "1".to_owned(), name, arguments, signatures: Vec::new() };
            let model = "recorder".into();
            return Ok(Answer { text: String::new(), calls: vec![call], model, usage: None });
        }
        if !prompt.steps.is_empty() && *self.failures.lock().unwrap() > 0 {
            *self.failures.lock().unwrap() -= 1;
            return Err(ModelError::CutOff);
        }
        let text = self.answer.lock().unwrap().clone().unwrap_or_else(|| format!("noted: {}", prompt.query));
        let (head, tail) = text.split_at(text.floor_char_boundary(text.len() / 2));
        deltas(head);
        let _permit = self.gate.acquire().await.unwrap();
        deltas(tail);
        Ok(Answer { text: text.clone(), calls: Vec::new(), model: "recorder".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}
