//! Chats that only their owner can open, tied to the engine: its keys seal what the server keeps of an account, its audit log
//! knows of every access, and a person's rights cover them.
//!
//! ```text
//!              Opened ──▶ Service ──▶ store: chats.db or PostgreSQL
//!                            │
//!                            ├──▶ EngineVault ──▶ keyring     an account is erased as the person that it is
//!                            ├──▶ AuditLog ─────▶ audit log
//!                            ├──▶ PostgresNews ─▶ other gateways
//!                            ├──▶ Ahead, or MemoryCache       what devices are about to load, in Redis or here
//!                            └──▶ EngineAnswerer ▶ sessions   running turns of other gateways: over Redis
//!  engine ──▶ Chats (weak) ──▶ Service::remove
//! ```
//!
//! Easy to get wrong: a circle. The service has the engine, so the engine has the service only as long as somebody else does.

pub(crate) mod ahead;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use confidant_chat_format::{AccountId, ChatId, Origin};
use confidant_chat_protocol::{Body as _, RefusedSent};
#[cfg(feature = "postgres")]
use confidant_chats::news::PostgresNews;
use confidant_chats::service::{
    Act, Hooks, MemoryCache, News, Parts, Service, SyncCache, WeakService, Witness,
};
use confidant_chats::store::sqlite::SqliteChats;
use confidant_chats::store::{self, ChatStore, Millis, StoreError};
use confidant_chats::vault::{Key, Tag, Vault, VaultError};
use confidant_chats_http::Settings;
use confidant_engine::audit::Action;
use confidant_engine::clock::{Clock as _, SystemClock};
use confidant_engine::keys::AccountKeys;
use confidant_engine::rights::Derived;
#[cfg(feature = "postgres")]
use confidant_engine::storage::PostgresSettings;
use confidant_engine::storage::{DataPlace, PostgresAddress};
use confidant_engine::{Actor, Engine, Error, TenantId, UserId};
use confidant_http::{Component, Gauge, Router};
use confidant_page::Page;
use serde_json::Value;

use crate::answers::EngineAnswerer;
use crate::config::{ChatsPlace, Loaded};
use crate::files;
use crate::open::Opened;
use ahead::Ahead;

/// A store of chats that is open.
#[derive(Debug)]
pub(crate) struct Stored {
    store: Arc<dyn ChatStore>,
    /// Where other gateways are told what happens, if there may be others.
    #[cfg(feature = "postgres")]
    link: Option<confidant_postgres::Link>,
}

/// Whether there are chats already.
pub(crate) fn is_there(loaded: &Loaded) -> Result<bool, files::LookError> {
    match loaded.config.chats_place() {
        None => Ok(false),
        Some(ChatsPlace::Sqlite(folder)) => files::is_in(Some(folder), FILE),
        // A table that is not there is made: there is no asking without a connection.
        Some(ChatsPlace::Postgres(_)) => Ok(true),
    }
}

/// Opens the store that the settings name; makes it if it is not there.
pub(crate) async fn open(loaded: &Loaded) -> anyhow::Result<Option<Stored>> {
    Ok(match loaded.config.chats_place() {
        None => None,
        Some(ChatsPlace::Sqlite(folder)) => Some(sqlite(&folder)?),
        Some(ChatsPlace::Postgres(address)) => Some(postgres(loaded, &address).await?),
    })
}

fn sqlite(folder: &Path) -> anyhow::Result<Stored> {
    crate::open::make_folder(folder)?;
    let store = Arc::new(SqliteChats::open(folder).context("the chats cannot be opened")?);
    Ok(Stored {
        store,
        #[cfg(feature = "postgres")]
        link: None,
    })
}

#[cfg(feature = "postgres")]
async fn postgres(loaded: &Loaded, address: &PostgresAddress) -> anyhow::Result<Stored> {
    let password = loaded.secrets.postgres_password.as_ref();
    let link = link(loaded.config.store.postgres(address, password)?);
    Ok(Stored { store: Arc::new(connect(&link).await?), link: Some(link) })
}

/// Where chats are in a database that conversations are in, or could be.
#[cfg(feature = "postgres")]
fn link(settings: PostgresSettings) -> confidant_postgres::Link {
    let PostgresSettings { address, ca, schema, connections, .. } = settings;
    confidant_postgres::Link { address, ca, schema, connections }.beside("chats")
}

#[cfg(feature = "postgres")]
async fn connect(link: &confidant_postgres::Link) -> anyhow::Result<store::postgres::PostgresChats> {
    store::postgres::open(link).await.context("the chats cannot be opened")
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "with the feature it waits")]
async fn postgres(_: &Loaded, _: &PostgresAddress) -> anyhow::Result<Stored> {
    Err(anyhow::anyhow!(
        "this program was built without PostgreSQL; hint: `scripts/run --all` or `cargo build --release -p confidant` builds it, \
         or set web.url to sqlite:"
    ))
}

/// What became of chats when conversations were copied to another store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// There are none, or `web.url` says where they are.
    None,
    /// They stay where they are, and are found there from either store.
    Stay,
    /// There were some at the destination already.
    There,
    /// So many rows went over, as they are.
    Rows(u64),
}

/// Copies the chats of a server that has its conversations at `from` to where it looks for them with conversations at `to`.
pub(crate) async fn copy(loaded: &Loaded, from: &DataPlace, to: &DataPlace) -> anyhow::Result<Copied> {
    if loaded.config.web.is_elsewhere() {
        return Ok(Copied::None);
    }
    let (from, to) = (Where::of(loaded, from), Where::of(loaded, to));
    let Some(source) = from.open(false).await? else { return Ok(Copied::None) };
    if let (Where::File(from), Where::File(to)) = (&from, &to)
        && files::is_same(from, to)
    {
        return Ok(Copied::Stay);
    }
    let Some(target) = to.open(true).await? else { return Ok(Copied::Stay) };
    match store::copy(&*source, &*target).await {
        Ok(rows) => Ok(Copied::Rows(rows)),
        Err(StoreError::NotEmpty) => Ok(Copied::There),
        Err(error) => Err(error).context("the chats cannot be copied"),
    }
}

/// Where chats are, of a server that has its conversations somewhere.
enum Where {
    /// In this folder.
    File(PathBuf),
    #[cfg(feature = "postgres")]
    Database(Box<confidant_postgres::Link>),
    Nowhere,
}

impl Where {
    fn of(loaded: &Loaded, place: &DataPlace) -> Self {
        match place {
            DataPlace::Memory => Self::Nowhere,
            DataPlace::Sqlite { folder, .. } => Self::File(folder.clone()),
            #[cfg(feature = "postgres")]
            DataPlace::Postgres(settings) if !loaded.config.web.is_a_file() => {
                Self::Database(Box::new(link(settings.clone())))
            }
            _ => Self::File(loaded.config.server.data_dir.clone()),
        }
    }

    /// The chats there; made only if `make`.
    async fn open(&self, make: bool) -> anyhow::Result<Option<Box<dyn store::Copied>>> {
        Ok(match self {
            Self::File(folder) if make || files::is_in(Some(folder.clone()), FILE)? => {
                crate::open::make_folder(folder)?;
                Some(Box::new(SqliteChats::open(folder).context("the chats cannot be opened")?))
            }
            #[cfg(feature = "postgres")]
            Self::Database(link) => Some(Box::new(connect(link).await?)),
            _ => None,
        })
    }
}

/// The service over a store, with the engine's keys and audit log.
pub(crate) fn serve(loaded: &Loaded, engine: &Engine, stored: Stored) -> anyhow::Result<Service> {
    let web = &loaded.config.web;
    let tenant = web.tenant()?;
    let witness = AuditLog { engine: engine.clone(), tenant: tenant.clone() };
    let keys = engine.account_keys(tenant.clone());
    let cache: Arc<dyn SyncCache> = match loaded.redis()? {
        Some(redis) => Arc::new(Ahead::open(&redis, web, &keys)?),
        None => Arc::new(MemoryCache::new(web.sync_cache)),
    };
    let vault: Arc<dyn Vault> = Arc::new(EngineVault { keys, engine: engine.clone() });
    let news = stored.news(&vault)?;
    let parts = Parts {
        store: stored.store,
        vault,
        clock: Arc::new(|| Millis(SystemClock.now().0.try_into().unwrap_or_default())),
        settings: web.settings(loaded.config.server.listen)?,
    };
    let (witness, cache): (Option<Arc<dyn Witness>>, _) = (Some(Arc::new(witness)), Some(cache));
    let answerer = EngineAnswerer::new(engine.web_sessions(tenant), web.kept_where());
    let hooks = Hooks { news, witness, cache, answerer: Some(Arc::new(answerer)) };
    Ok(Service::with_hooks(parts, hooks))
}

/// Lets other processes hear the turns of chats that run here, and hears theirs, if there is a Redis that they share.
pub(crate) fn relay(loaded: &Loaded, engine: &Engine) -> anyhow::Result<()> {
    if let Some(redis) = loaded.redis()?.filter(|_| loaded.config.chats_place().is_some()) {
        engine.relay_turns(&redis)?;
    }
    Ok(())
}

impl Stored {
    /// How gateways on the same database hear of each other's changes; nothing for a store that only this process has.
    #[cfg(feature = "postgres")]
    fn news(&self, vault: &Arc<dyn Vault>) -> anyhow::Result<Option<Arc<dyn News>>> {
        let Some(link) = &self.link else { return Ok(None) };
        let news = PostgresNews::new(link, Arc::clone(vault)).context("the chats cannot be opened")?;
        Ok(Some(Arc::new(news)))
    }

    #[cfg(not(feature = "postgres"))]
    #[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
    fn news(&self, _: &Arc<dyn Vault>) -> anyhow::Result<Option<Arc<dyn News>>> {
        Ok(None)
    }
}

/// The routes of chats; none where there are none.
pub(crate) fn router(loaded: &Loaded, opened: &Opened) -> Router {
    let Some(service) = &opened.chats else { return page(loaded, &[]).console_router() };
    let origins = service.settings().origins.clone();
    let page = page(loaded, &origins);
    let settings = Settings {
        proxies: loaded.config.web.proxies.clone(),
        page: page.release().map(str::to_owned),
        ..Settings::new(origins)
    };
    confidant_chats_http::router(service.clone(), settings).merge(page.router())
}

/// The page: the one in this program, or that of a folder.
pub(crate) fn page(loaded: &Loaded, origins: &[Origin]) -> Page {
    let mut page = Page::built();
    if let Some(folder) = &loaded.config.web.page_folder {
        page = page.in_folder(folder.clone());
    }
    let is_secure =
        !origins.is_empty() && origins.iter().all(|origin| origin.as_str().starts_with("https://"));
    if is_secure { page.secure() } else { page }
}

/// How chats are, for `/readyz` and `/metrics`.
pub(crate) fn components(opened: &Opened) -> Vec<Arc<dyn Component>> {
    opened.chats.iter().map(|service| Arc::new(Part(service.clone())) as Arc<dyn Component>).collect()
}

#[derive(Debug)]
struct Part(Service);

#[async_trait]
impl Component for Part {
    fn name(&self) -> &'static str {
        "chats"
    }

    async fn ping(&self) -> Result<(), String> {
        self.0.count_accounts().await.map(drop).map_err(|refused| told(&refused))
    }

    fn gauges(&self) -> Vec<Gauge> {
        let gauge = |name, help, value| Gauge { name, help, value };
        let mut all = vec![gauge("chats_sockets", "Sockets of chats that are open", self.0.count_sockets())];
        if let Some(news) = self.0.news_counts() {
            let connected = "Whether news of other gateways are heard";
            let malformed = "Messages on the channel of news that this gateway could not read";
            let lost =
                "Times that news may have been lost, after which sockets were checked against the store";
            all.extend([
                gauge("chats_news_connected", connected, news.is_connected.into()),
                gauge("chats_news_malformed", malformed, news.malformed),
                gauge("chats_news_lost", lost, news.lost),
            ]);
        }
        all
    }
}

/// Does what is due: now, and once a minute. Between, it tells other gateways what happens here, and hears from them.
pub(crate) async fn keep(service: Service) {
    tokio::join!(service.listen(), look_after(&service), look_after_answers(&service));
}

async fn look_after(service: &Service) {
    let mut ticks = tokio::time::interval(ROUNDS);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(refused) = service.upkeep().await {
            tracing::warn!(reason = refused.error.name(), "the upkeep of chats failed; it is tried again");
        }
    }
}

/// Leaves letters of answers whose process went before a device had them.
async fn look_after_answers(service: &Service) {
    let mut ticks = tokio::time::interval(service.answers_due().max(Duration::from_millis(100)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(refused) = service.look_after_answers().await {
            tracing::warn!(
                reason = refused.error.name(),
                "answers on their way to the mailbox could not be looked after; it is tried again"
            );
        }
    }
}

/// The engine's keys, as chats ask for them.
#[derive(Debug)]
struct EngineVault {
    keys: AccountKeys,
    engine: Engine,
}

#[async_trait]
impl Vault for EngineVault {
    fn tag(&self, label: &str, bytes: &[u8]) -> Tag {
        self.keys.tag(label, bytes)
    }

    async fn key(&self, account: &AccountId, chat: Option<&ChatId>) -> Result<Option<Key>, VaultError> {
        self.keys.key(account.as_str(), chat.map(ChatId::as_str)).await.map_err(said)
    }

    async fn key_or_new(&self, account: &AccountId, chat: Option<&ChatId>) -> Result<Key, VaultError> {
        self.keys.key_or_new(account.as_str(), chat.map(ChatId::as_str)).await.map_err(said)
    }

    async fn anchor(&self, account: &AccountId) -> Result<u32, VaultError> {
        let rev = self.keys.anchor(account.as_str()).await.map_err(said)?;
        Ok(u32::try_from(rev).unwrap_or(u32::MAX))
    }

    async fn raise(&self, account: &AccountId, rev: u32) -> Result<(), VaultError> {
        self.keys.raise(account.as_str(), rev.into()).await.map_err(said)
    }

    async fn accept(&self, account: &AccountId, rev: u32) -> Result<(), VaultError> {
        self.keys.accept(account.as_str(), rev.into()).await.map_err(said)
    }

    async fn chat_anchor(&self, account: &AccountId, chat: &ChatId) -> Result<u32, VaultError> {
        let rev = self.keys.anchor_of(account.as_str(), Some(chat.as_str())).await.map_err(said)?;
        Ok(u32::try_from(rev).unwrap_or(u32::MAX))
    }

    async fn raise_chat(&self, account: &AccountId, chat: &ChatId, rev: u32) -> Result<(), VaultError> {
        self.keys.raise_of(account.as_str(), Some(chat.as_str()), rev.into()).await.map_err(said)
    }

    async fn accept_chat(&self, account: &AccountId, chat: &ChatId, rev: u32) -> Result<(), VaultError> {
        self.keys.accept_of(account.as_str(), Some(chat.as_str()), rev.into()).await.map_err(said)
    }

    async fn was_destroyed(&self, account: &AccountId) -> Result<bool, VaultError> {
        self.keys.was_erased(account.as_str()).await.map_err(said)
    }

    async fn discard(&self, account: &AccountId) -> Result<(), VaultError> {
        self.keys.discard(account.as_str()).await.map_err(said)
    }

    async fn destroy_chats(&self, account: &AccountId, chats: &[ChatId]) -> Result<(), VaultError> {
        let chats: Vec<&str> = chats.iter().map(ChatId::as_str).collect();
        self.keys.destroy_chats(account.as_str(), &chats).await.map_err(said)
    }

    /// The account is a person: what else is kept of it goes as well, and the engine signs for all of it.
    async fn destroy_account(&self, account: &AccountId) -> Result<Option<String>, VaultError> {
        let user = UserId::any(account.as_str()).map_err(|error| VaultError(error.to_string()))?;
        let administrator = self.engine.dangerously_administer(Actor::named(ACTOR));
        let receipt = administrator.erase_person(self.keys.tenant(), &user).await.map_err(said)?;
        serde_json::to_string(&receipt).map(Some).map_err(|error| VaultError(error.to_string()))
    }
}

/// The engine's audit log.
#[derive(Debug)]
struct AuditLog {
    engine: Engine,
    tenant: TenantId,
}

#[async_trait]
impl Witness for AuditLog {
    async fn witness(&self, account: &AccountId, act: Act) -> Result<(), VaultError> {
        self.witness_many(account, act, 1).await
    }

    async fn witness_many(&self, account: &AccountId, act: Act, times: u64) -> Result<(), VaultError> {
        let action = match act {
            Act::Registered => Action::AccountRegistered,
            Act::LoggedIn => Action::AccountLoggedIn,
            Act::Refused => Action::AccountRefused,
            Act::LoggedOut => Action::AccountLoggedOut,
            Act::CredentialsChanged => Action::AccountCredentials,
            Act::Recovered => Action::AccountRecovered,
            Act::Restored => Action::AccountRestored,
            Act::KeyRotated => Action::AccountRotated,
            Act::DevicePaired => Action::DevicePaired,
            Act::DeviceRevoked => Action::DeviceRevoked,
            Act::SessionRevoked => Action::DeviceSessionEnded,
            Act::Exported => Action::AccountExported,
            Act::ChatDeleted => Action::ChatDeleted,
            Act::SnapshotMade => Action::SnapshotMade,
            Act::SnapshotRevoked => Action::SnapshotRevoked,
        };
        let user = UserId::any(account.as_str()).map_err(|error| VaultError(error.to_string()))?;
        let administrator = self.engine.dangerously_administer(Actor::named(ACTOR));
        administrator.note_derived(action, &self.tenant, &user, times).await.map_err(said)
    }
}

fn said(error: Error) -> VaultError {
    VaultError(error.code().to_owned())
}

/// What the engine knows of chats, once there are any: it asks for them when a person is exported or erased.
#[derive(Clone, Debug)]
pub(crate) struct Chats {
    tenant: TenantId,
    service: Arc<OnceLock<WeakService>>,
}

impl Chats {
    pub(crate) fn of(tenant: TenantId) -> Self {
        Self { tenant, service: Arc::default() }
    }

    /// From now on there are.
    pub(crate) fn attach(&self, service: &Service) {
        let _first = self.service.set(service.downgrade());
    }

    /// The service and the account, if this person can have one here.
    fn find(&self, tenant: &TenantId, user: &UserId) -> Option<(Service, AccountId)> {
        let service = self.service.get().and_then(WeakService::upgrade)?;
        let account = AccountId::parse(user.as_str()).ok().filter(|_| *tenant == self.tenant)?;
        Some((service, account))
    }
}

#[async_trait]
impl Derived for Chats {
    fn name(&self) -> &'static str {
        "chats"
    }

    async fn count(&self, tenant: &TenantId, user: &UserId) -> Result<u64, Error> {
        let Some((service, account)) = self.find(tenant, user) else { return Ok(0) };
        service.count_chats(&account).await.map_err(|error| unreached(&error))
    }

    async fn export(&self, tenant: &TenantId, user: &UserId) -> Result<Vec<Value>, Error> {
        let Some((service, account)) = self.find(tenant, user) else { return Ok(Vec::new()) };
        if service.count_chats(&account).await.map_err(|error| unreached(&error))? == 0 {
            return Ok(Vec::new());
        }
        let mut frames = service.export_account(&account).await.map_err(|error| unreached(&error))?;
        let mut all = Vec::new();
        while let Some(frame) = frames.next().await {
            let json = frame.write().map_err(|error| unreached(&error.into()))?;
            all.push(serde_json::from_slice(&json).unwrap_or_default());
        }
        Ok(all)
    }

    async fn erase(&self, tenant: &TenantId, user: &UserId) -> Result<u64, Error> {
        let Some((service, account)) = self.find(tenant, user) else { return Ok(0) };
        Ok(service.remove(&account).await.map_err(|error| unreached(&error))?.chats)
    }
}

/// A refusal, as errors are said here.
pub(crate) fn told(refused: &RefusedSent) -> String {
    format!("{}; hint: {}", refused.what.as_str(), refused.hint.as_str())
}

fn unreached(refused: &RefusedSent) -> Error {
    Error::Derived {
        what: format!("chats cannot be reached: {}", refused.what.as_str()),
        hint: refused.hint.as_str().to_owned(),
    }
}

const FILE: &str = "chats.db";
/// Who it was, in the audit log; which account is its subject.
const ACTOR: &str = "account";
const ROUNDS: Duration = Duration::from_secs(60);
