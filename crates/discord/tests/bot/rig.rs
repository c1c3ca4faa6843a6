//! A bot that can be stopped, killed and started again on the same folder, and a model that records what it is told.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use confidant_channel::{Allowed, Channel, Condition, Hosted, Inbox, Runtime, Status};
use confidant_discord::{Discord, Isolation, Settings};
use confidant_engine::clock::SystemClock;
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt};
use confidant_engine::storage::Durability;
use confidant_engine::{Actor, Engine, Parts, Scope, StaticKeys, Storage, TenantId};
use tokio::sync::Semaphore;

use crate::fake::{Fake, TOKEN};

/// Where a bot keeps things, and the Discord that it is on.
pub(crate) struct Rig {
    pub(crate) fake: Fake,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) model: Arc<Recorder>,
}

/// A bot that runs.
pub(crate) struct Bot {
    pub(crate) engine: Engine,
    pub(crate) inbox: Inbox,
    pub(crate) runtime: Runtime,
    pub(crate) discord: Arc<Discord>,
    hosted: Hosted,
}

impl Rig {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { fake: Fake::start().await, folder, model: Recorder::new() }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            label: "bot-1".to_owned(),
            token: TOKEN.into(),
            guild_id: None,
            allowed: Allowed::new(&["*".to_owned()]),
            listen_to_bots: false,
            mention_only: true,
            load_past_conversations: 20,
            keeping: confidant_channel::Keeping::Conversations,
            isolation: Isolation::Person,
            api_url: Some(format!("http://{}", self.fake.rest)),
            gateway_url: Some(format!("ws://{}", self.fake.gateway)),
            shards: None,
            room_lines: 20,
            concurrency: 16,
        }
    }

    /// Starts a bot and waits until it listens.
    pub(crate) async fn start(&self) -> Bot {
        self.start_with(|_| ()).await
    }

    pub(crate) async fn start_with(&self, change: impl FnOnce(&mut Settings)) -> Bot {
        let bot = self.begin(change).await;
        bot.until(Condition::Up).await;
        bot
    }

    /// Starts a bot.
    pub(crate) async fn begin(&self, change: impl FnOnce(&mut Settings)) -> Bot {
        let mut settings = self.settings();
        change(&mut settings);
        self.host(vec![settings]).await
    }

    /// Starts a bot and another one in the same process.
    pub(crate) async fn start_beside(&self, change: impl FnOnce(&mut Settings)) -> Bot {
        let mut settings = self.settings();
        change(&mut settings);
        self.host(vec![self.settings(), settings]).await
    }

    async fn host(&self, all: Vec<Settings>) -> Bot {
        let bots = all.into_iter().map(|settings| Arc::new(Discord::new(settings).unwrap()));
        let bots: Vec<Arc<Discord>> = bots.collect();
        let folder = self.folder.path();
        let storage = Storage::sqlite(folder, folder, Durability::Process).unwrap();
        let inbox = Inbox::open(folder).unwrap();
        let parts = Parts::new(storage, keys(), Arc::clone(&self.model) as _);
        let parts = Parts { derived: vec![Arc::new(inbox.clone())], ..parts };
        let engine = Engine::open(parts).await.unwrap();
        inbox.attach(&engine);
        let clock = Arc::new(SystemClock);
        let runtime = Runtime::new(engine.clone(), inbox.clone(), clock, tenant());
        let hosted = runtime.host(bots.iter().map(|bot| Arc::clone(bot) as Arc<dyn Channel>).collect());
        Bot { engine, inbox, runtime, discord: Arc::clone(&bots[0]), hosted }
    }

    /// Whether this is in a file.
    pub(crate) fn has(&self, marker: &str) -> bool {
        read_all(self.folder.path()).windows(marker.len()).any(|window| window == marker.as_bytes())
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
    pub(crate) fn status(&self) -> Status {
        self.runtime.health().all().remove(0)
    }

    pub(crate) async fn until(&self, condition: Condition) {
        let wait = async {
            while self.runtime.health().all().first().is_none_or(|status| status.condition != condition) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let came = tokio::time::timeout(Duration::from_secs(180), wait).await;
        assert!(came.is_ok(), "never {condition:?}: {:?}", self.runtime.health().all());
    }

    /// Ends it as a kill does.
    pub(crate) async fn kill(self) {
        drop(self.hosted);
        self.engine.stop(Duration::ZERO).await;
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
        tokio::time::timeout(Duration::from_secs(120), wait).await.expect("everything is done in time");
        self.engine.settle().await;
    }

    pub(crate) async fn sessions(&self) -> Vec<String> {
        let administrator = self.engine.dangerously_administer(Actor::cli());
        let sessions = administrator.sessions(Some(&tenant()), 1000).await.unwrap();
        let mut ids: Vec<String> = sessions.into_iter().filter_map(|session| session.session_id).collect();
        ids.sort();
        ids
    }

    pub(crate) async fn transcript(&self, session_id: &str) -> Vec<String> {
        let scope = Scope::parse(tenant(), session_id).unwrap();
        let export = self.engine.session(scope, Actor::cli()).export().await.unwrap();
        let messages = export.map_or_else(Vec::new, |export| export.messages);
        messages.iter().map(|m| format!("{:?}:{}", m.kind, m.content).to_lowercase()).collect()
    }
}

pub(crate) fn tenant() -> TenantId {
    TenantId::new("acme").unwrap()
}

/// One key, the same for every test.
fn keys() -> Arc<StaticKeys> {
    Arc::new(StaticKeys::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap())
}

/// Keeps every prompt it gets, by its query, and answers "noted: <query>", when it is let.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) prompts: Mutex<Vec<(String, String)>>,
    pub(crate) gate: Semaphore,
    /// How many it is working on, and the most it ever was.
    running: Mutex<(usize, usize)>,
    /// What to answer instead.
    pub(crate) answer: Mutex<Option<String>>,
}

impl Recorder {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            prompts: Mutex::default(),
            gate: Semaphore::new(1_000_000),
            running: Mutex::default(),
            answer: Mutex::default(),
        })
    }

    pub(crate) fn shut(&self) {
        self.gate.forget_permits(1_000_000);
    }

    pub(crate) fn open(&self) {
        self.gate.add_permits(1_000_000);
    }

    /// The last prompt with this query.
    pub(crate) fn prompt(&self, query: &str) -> String {
        let prompts = self.prompts.lock().unwrap();
        let found = prompts.iter().rfind(|(asked, _)| asked == query);
        found.map(|(_, prompt)| prompt.clone()).unwrap_or_else(|| panic!("never asked: {query}"))
    }

    /// The most that it was asked at once.
    pub(crate) fn most(&self) -> usize {
        self.running.lock().unwrap().1
    }

    pub(crate) fn asked(&self) -> usize {
        self.prompts.lock().unwrap().len()
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
        self.prompts.lock().unwrap().push((prompt.query.clone(), whole));
        let text = self.answer.lock().unwrap().clone().unwrap_or_else(|| format!("noted: {}", prompt.query));
        let (head, tail) = text.split_at(text.floor_char_boundary(text.len() / 2));
        deltas(head);
        {
            let mut running = self.running.lock().unwrap();
            *running = (running.0 + 1, running.1.max(running.0 + 1));
        }
        let _permit = self.gate.acquire().await.unwrap();
        self.running.lock().unwrap().0 -= 1;
        deltas(tail);
        Ok(Answer { text: text.clone(), calls: Vec::new(), model: "recorder".into(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}
