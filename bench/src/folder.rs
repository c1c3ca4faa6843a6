//! Engines on folders: opened for measuring, filled, copied.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use confidant_engine::model::{Answer, Deltas, Model, ModelError, Prompt};
use confidant_engine::room::Audience;
use confidant_engine::storage::Durability;
use confidant_engine::turn::MemoryState;
use confidant_engine::{
    Actor, Engine, HistoryLimits, Parts, Scope, Session, Settings, StaticKeys, Storage, TenantId, TurnRequest,
};

use crate::words::Words;

/// An engine that keeps every message and as many warm sessions as asked for.
pub(crate) async fn open(folder: &Path, durability: Durability, warm_sessions: usize) -> Result<Engine> {
    std::fs::create_dir_all(folder)?;
    open_on(Storage::sqlite(folder, folder, durability)?, warm_sessions).await
}

/// The same on any storage.
pub(crate) async fn open_on(storage: Storage, warm_sessions: usize) -> Result<Engine> {
    let mut parts = Parts::new(storage, keys(), Arc::new(Parrot::new()));
    let history = HistoryLimits { max_messages: 1_000_000, ..Settings::default().history };
    parts.settings = Settings { history, warm_sessions, ..Settings::default() };
    Ok(Engine::open(parts).await?)
}

/// Stops an engine; what was written is folded into the files when the last handle goes.
pub(crate) async fn close(engine: Engine) {
    engine.stop(Duration::from_secs(1)).await;
}

/// The session of the conversation with this number.
pub(crate) fn session(engine: &Engine, number: usize) -> Result<Session> {
    session_in(engine, "room", number)
}

/// The same among conversations of another name.
pub(crate) fn session_in(engine: &Engine, name: &str, number: usize) -> Result<Session> {
    let id = format!("!{name}{number}:example.org:main:@user{number}:example.org");
    Ok(engine.session(Scope::parse(TenantId::new("acme")?, &id)?, Actor::system()))
}

/// What is measured as a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Load, append two messages, save: the task that the goals are about.
    Append,
    /// All that a person's turn does beside the model's own work: accepted in a commit of its own, history recalled,
    /// tokens counted, prompt composed, answered in a second commit, run as a task.
    Whole,
}

/// One turn.
pub(crate) async fn turn(session: &Session, said: &Said, kind: Kind) -> Result<()> {
    match kind {
        Kind::Append => session.record_exchange(Audience::Room, &said.human, &said.ai, "bench").await?,
        Kind::Whole => {
            let request = TurnRequest { query: said.human.clone(), ..TurnRequest::default() };
            let answer = session.turn(request).finish().await?;
            anyhow::ensure!(answer.metadata.memory == MemoryState::Kept, "a turn was not kept");
        }
    }
    Ok(())
}

/// What a turn adds.
#[derive(Debug)]
pub(crate) struct Said {
    human: String,
    ai: String,
}

impl Said {
    pub(crate) fn new(words: &mut Words) -> Self {
        Self { human: words.message(), ai: words.message() }
    }
}

/// Fills a folder with conversations, many at a time so that they share commits.
pub(crate) async fn fill(folder: &Path, conversations: usize, messages: usize, kind: Kind) -> Result<()> {
    let engine = open(folder, Durability::Process, 1024).await?;
    let mut words = Words::new();
    let mut running = tokio::task::JoinSet::new();
    for number in 0..conversations {
        let said: Vec<Said> = (0..messages / 2).map(|_| Said::new(&mut words)).collect();
        let session = session(&engine, number)?;
        running.spawn(async move {
            for one in &said {
                turn(&session, one, kind).await?;
            }
            anyhow::Ok(())
        });
        if running.len() >= AT_ONCE
            && let Some(done) = running.join_next().await
        {
            done??;
        }
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    close(engine).await;
    Ok(())
}

const AT_ONCE: usize = 32;

/// Copies the database files of a closed folder.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for file in std::fs::read_dir(from)? {
        let file = file?;
        if file.file_type()?.is_file() {
            std::fs::copy(file.path(), to.join(file.file_name()))?;
        }
    }
    Ok(())
}

/// What a folder's databases take on disk with their logs folded in, which this does first.
pub(crate) fn stored_bytes(folder: &Path) -> Result<u64> {
    let mut total = 0;
    for name in ["confidant.db", "keyring.db"] {
        let path = folder.join(name);
        let connection = rusqlite::Connection::open(&path)?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        total += std::fs::metadata(&path)?.len();
        total += std::fs::metadata(folder.join(format!("{name}-wal"))).map_or(0, |wal| wal.len());
    }
    Ok(total)
}

/// One fixed key: every engine of a run must open what the one before wrote.
fn keys() -> Arc<StaticKeys> {
    Arc::new(StaticKeys::from_base64("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").expect("32 bytes"))
}

/// A model that costs nothing: one fixed answer of a message's length.
#[derive(Debug)]
struct Parrot(String);

impl Parrot {
    fn new() -> Self {
        Self(Words::new().message())
    }
}

#[async_trait]
impl Model for Parrot {
    fn name(&self) -> &'static str {
        "bench"
    }

    async fn respond(&self, _prompt: &Prompt, deltas: Deltas<'_>) -> Result<Answer, ModelError> {
        deltas(&self.0);
        Ok(Answer { text: self.0.clone(), calls: Vec::new(), model: "bench".to_owned(), usage: None })
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}
