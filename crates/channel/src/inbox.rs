//! The durable inbox: every event is here, sealed, once, before anything is done about it.
//!
//! One plain SQLite file, `channels.db`. A row goes from received to claimed to finished; one that waits for somebody's
//! approval stands aside meanwhile. What identifies people, sessions, rooms and events is there as keyed tags, what was
//! said is sealed under its session's key, and the way back to the place under the channels' key; tags only find, and a
//! sealed [stamp](stamps) says whose each row is. A finished row keeps its
//! tags only, so that the event is not answered again and a later edit finds its session. What is easy to get wrong: erasing
//! someone finishes their rows and does not delete them, or a platform that tells of the event again would revive it.

pub(crate) mod rows;
mod seals;
mod stamps;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use confidant_display::{Hinted as _, debug_without_content};
use confidant_engine::clock::Millis;
use confidant_engine::rights::Derived;
use confidant_engine::{Actor, Engine, Error, Scope, StoreError, TenantId, UserId, WeakEngine};
use confidant_sqlite::{OpenError, PATIENCE, Privacy, make_private, truncate_journal};
use parking_lot::Mutex;
use rusqlite::Connection;
use serde_json::{Value, json};

pub(crate) use rows::{NewRow, Row, RowKind};
pub use seals::Vault;
pub(crate) use seals::{Account, Body, Envelope, Sent, Waits};
use stamps::File;

/// The inbox. Clones share it.
#[derive(Clone, Debug)]
pub struct Inbox {
    db: Arc<Mutex<File>>,
    engine: Arc<OnceLock<WeakEngine>>,
    /// Held by whoever stores an event, and alone by whoever erases a session: what is said after that is not lost with it.
    still: Arc<tokio::sync::RwLock<()>>,
    /// The folder, for the lock; none in memory.
    folder: Option<PathBuf>,
}

/// Why the inbox could not be used. Says nothing of what is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// The file could not be opened, read or written.
    #[error(
        "channels.db failed ({0}); hint: check the data folder's space and permissions, then run `confidant doctor`"
    )]
    Failed(String),
    /// Somebody reads, so what is gone may still be in the journal.
    #[error(
        "erased data may still be in the journal of channels.db, because another process is reading it; \
         hint: close the process that has the file open, then erase again"
    )]
    Read,
    /// A newer version made it.
    #[error("channels.db was written by a newer version of Confidant; hint: upgrade this program")]
    Newer,
    /// Another process serves the channels.
    #[error(
        "another process serves the channels of this data folder; hint: stop it, or give this one another data folder"
    )]
    Taken,
    /// The engine is gone or never was.
    #[error("the engine is not running; hint: start the program again")]
    NoEngine,
    /// Sealing or opening something of a session failed.
    #[error("{0}")]
    Session(String),
}

/// What became of an event that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is stored and will be worked on.
    New,
    /// It was stored before.
    Known,
    /// It concerns nothing that is kept.
    Nothing,
}

/// The last stored event of a room.
#[derive(Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The room's id.
    pub room: String,
    /// The event's id.
    pub event: String,
}

debug_without_content!(Cursor(..));

/// Keeps other processes from serving the same channels; the operating system lets go of it with the process.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held for its lifetime")] Option<std::fs::File>);

impl Inbox {
    /// Opens or makes `channels.db` in a folder.
    pub fn open(folder: &Path) -> Result<Self, InboxError> {
        let connection = KIND.open(&folder.join(FILE)).map_err(refused)?;
        Ok(Self::on(connection, Some(folder.to_owned())))
    }

    /// An inbox that ends with the process, for data that does, too.
    pub fn in_memory() -> Result<Self, InboxError> {
        Ok(Self::on(KIND.in_memory().map_err(refused)?, None))
    }

    /// Whether there is one in this folder.
    #[must_use]
    pub fn is_there(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    fn on(connection: Connection, folder: Option<PathBuf>) -> Self {
        let db = Arc::new(Mutex::new(File::new(connection)));
        Self { db, engine: Arc::default(), still: Arc::default(), folder }
    }

    /// Tells the inbox whose keys it works with. The engine may have been given the inbox before, so it is held weakly.
    pub fn attach(&self, engine: &Engine) {
        let _ = self.engine.set(engine.downgrade());
        self.db.lock().vouch(engine);
    }

    /// Makes this process the one that serves the channels.
    pub fn lock(&self) -> Result<Lock, InboxError> {
        let Some(folder) = &self.folder else { return Ok(Lock(None)) };
        let path = folder.join(LOCK);
        make_private(&path).map_err(|error| not_private(&error))?;
        let file = std::fs::File::options()
            .write(true)
            .open(&path)
            .map_err(|e| InboxError::Failed(e.kind().to_string()))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(Some(file))),
            Err(std::fs::TryLockError::WouldBlock) => Err(InboxError::Taken),
            Err(std::fs::TryLockError::Error(e)) => Err(InboxError::Failed(e.kind().to_string())),
        }
    }

    /// Where the small secrets of an account's connection are kept, for who sets it up outside of a runtime.
    #[must_use]
    pub fn vault(&self, engine: &Engine, platform: &str, label: &str) -> Vault {
        Vault::new(self, engine, platform, label)
    }

    /// Stores something; nobody erases a session meanwhile.
    pub(crate) async fn storing(&self) -> tokio::sync::RwLockReadGuard<'_, ()> {
        self.still.read().await
    }

    /// Erases something; nobody stores an event meanwhile.
    pub(crate) async fn erasing(&self) -> tokio::sync::RwLockWriteGuard<'_, ()> {
        self.still.write().await
    }

    pub(crate) fn engine(&self) -> Result<Engine, InboxError> {
        self.engine.get().and_then(WeakEngine::upgrade).ok_or(InboxError::NoEngine)
    }

    /// Works on the file, on a thread that may block.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut File) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, InboxError> {
        let db = Arc::clone(&self.db);
        let done = tokio::task::spawn_blocking(move || {
            let mut file = db.lock();
            file.settle().and_then(|()| work(&mut file)).map_err(|e| failed(&e))
        });
        done.await.unwrap_or_else(|_| Err(InboxError::Failed("cut off".to_owned())))
    }

    /// Holds everything in the file against what is sealed; says what is not as it was written, and how often.
    pub async fn verify(&self, now: Millis) -> Result<BTreeMap<&'static str, u64>, InboxError> {
        let engine = self.engine()?;
        let vault = engine.channel_keys().key().derive("vault");
        let mut faults = self.with(move |c| stamps::verify(c, &vault, now)).await?;
        let (rows, mut unopened) = self.with(|c| rows::unfinished(c)).await?;
        for (row, _) in rows {
            unopened += u64::from(!seals::opens(&engine, &row).await?);
        }
        if unopened > 0 {
            faults.insert("an event's content cannot be opened", unopened);
        }
        Ok(faults)
    }

    /// Ends what is kept of someone: their rows are finished at once, and nothing in them tells whose they were.
    async fn forget(&self, who: rows::Whose, keep_forget: bool) -> Result<u64, InboxError> {
        let gone = self.with(move |c| rows::forget(c, who, keep_forget)).await?;
        let clean = gone == 0 || self.with(|c| truncate_journal(c, PATIENCE)).await?;
        if clean { Ok(gone) } else { Err(InboxError::Read) }
    }
}

#[async_trait]
impl Derived for Inbox {
    fn name(&self) -> &'static str {
        "channel_events"
    }

    async fn count(&self, tenant: &TenantId, user: &UserId) -> Result<u64, Error> {
        let person = self.engine()?.channel_keys().person_tag(tenant, user);
        Ok(self.with(move |c| rows::count(c, rows::Whose::Person(person), false)).await?)
    }

    async fn export(&self, tenant: &TenantId, user: &UserId) -> Result<Vec<Value>, Error> {
        let engine = self.engine()?;
        let person = engine.channel_keys().person_tag(tenant, user);
        let mut exported = Vec::new();
        for row in self.with(move |c| rows::unfinished_of(c, person)).await? {
            let Some(envelope) = Envelope::open(&engine, &row) else { continue };
            let scope = envelope.scope()?;
            // What a row says of whose it is is one thing, and who is in it another.
            if (scope.tenant(), scope.user()) != (tenant, user) {
                continue;
            }
            let session = engine.session(scope, Actor::system());
            let body = Body::open(&engine, &session, &row).await?;
            let text = body.map(|body| body.text);
            exported
                .push(json!({ "received_at": row.received_at, "session_id": session.id(), "text": text }));
        }
        Ok(exported)
    }

    async fn erase(&self, tenant: &TenantId, user: &UserId) -> Result<u64, Error> {
        let person = self.engine()?.channel_keys().person_tag(tenant, user);
        Ok(self.forget(rows::Whose::Person(person), false).await?)
    }

    async fn count_session(&self, scope: &Scope) -> Result<u64, Error> {
        let session = self.engine()?.channel_keys().session_tag(scope);
        Ok(self.with(move |c| rows::count(c, rows::Whose::Session(session), true)).await?)
    }

    async fn erase_session(&self, scope: &Scope) -> Result<u64, Error> {
        let session = self.engine()?.channel_keys().session_tag(scope);
        Ok(self.forget(rows::Whose::Session(session), true).await?)
    }
}

impl From<InboxError> for Error {
    fn from(error: InboxError) -> Self {
        let (what, hint) = error.what_and_hint("run `confidant doctor`");
        Self::Derived { what, hint }
    }
}

impl From<Error> for InboxError {
    fn from(error: Error) -> Self {
        Self::Session(error.to_string())
    }
}

impl From<StoreError> for InboxError {
    fn from(error: StoreError) -> Self {
        Self::Session(error.to_string())
    }
}

/// What a failure of SQLite means; its code only, since a message may quote.
fn failed(error: &rusqlite::Error) -> InboxError {
    match error {
        rusqlite::Error::SqliteFailure(cause, _) => {
            InboxError::Failed(format!("code {}", cause.extended_code))
        }
        _ => InboxError::Failed("a row is damaged or was changed".to_owned()),
    }
}

fn refused(error: OpenError) -> InboxError {
    match error {
        OpenError::Newer => InboxError::Newer,
        OpenError::Private(error) => not_private(&error),
        OpenError::Sqlite(error) => failed(&error),
    }
}

fn not_private(error: &std::io::Error) -> InboxError {
    InboxError::Failed(error.kind().to_string())
}

/// How long the tags of finished events are kept, and how many: longer than any platform tells of an event again, and than
/// people think of what they should not have said.
pub(crate) const KEPT: std::time::Duration = std::time::Duration::from_secs(400 * 86_400);
pub(crate) const MOST_KEPT: i64 = 1_000_000;

pub(crate) fn older_than(now: Millis) -> Millis {
    Millis(now.0.saturating_sub(i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX)))
}

const KIND: confidant_sqlite::File = confidant_sqlite::File {
    steps: rows::STEPS,
    pragmas: &["synchronous = FULL", "secure_delete = ON"],
    statements: 16,
    privacy: Privacy::Required,
};
const FILE: &str = "channels.db";
const LOCK: &str = "channels.lock";
