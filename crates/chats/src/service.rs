//! The service: accounts, sessions, sockets and sync, over a store and a vault, on any transport.
//!
//! ```text
//! POST path, body, caller ──▶ Service::answer ──┬─ proofs, delays, sessions  [identity, login, register, credentials, …]
//!                                               │
//! socket: frames ───────────▶ Socket::receive ──┼─ writes, drafts, data      [writes, lists]
//!                                               ├─ answers ──▶ Answerer      [answers]
//!         ◀── news, long answers ── Socket::news┴─ sync in parts             [sync, frames]
//!                                      ▲
//!                         hub: an account's other sockets
//! ```
//!
//! - It never sees plaintext of a chat, but for the words that a device sends to have them answered, and the answer. What it
//!   seals itself (records, ring rows, labels) is in `record` and `rows`; answers that wait for a device are in `letters`, what
//!   it remembers of a chat in `safety`, what is shared by a link in `snapshots`.
//! - Before identity is known, every refusal about it is the same `login-refused`, whether or not there is such an account.
//! - Nothing here reads a clock or opens a port: time, store, keys and frames come from the caller.
//!
//! Easy to get wrong: an answer that is all in memory. Sync and export are made part by part, as they are fetched
//! ([`Frames`]); a person with many chats does not fill the server.
//!
//! ```
//! use std::sync::Arc;
//!
//! use confidant_chat_format::{Login, Origin};
//! use confidant_chat_protocol::{Body as _, Prelogin, PreloginAnswer};
//! use confidant_chats::service::{Body, Caller, Network, Parts, Service, Settings};
//! use confidant_chats::store::{Millis, sqlite::SqliteChats};
//! use confidant_chats::vault::MemoryVault;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let origin = Origin::parse("https://chat.example")?;
//! let service = Service::new(Parts {
//!     store: Arc::new(SqliteChats::open(folder.path())?),
//!     vault: Arc::new(MemoryVault::new()),
//!     clock: Arc::new(|| Millis(1_800_000_000_000)),
//!     settings: Settings::new(origin.clone()),
//! });
//! let caller = Caller { origin, network: Network::of("192.0.2.1".parse()?), session: None, stream: None };
//! let request = Prelogin { login: Login::parse("nobody@example.org")? }.write()?;
//! let answered = service.answer("/account/prelogin", &caller, &request).await.map_err(|refused| refused.error.name())?;
//! let Body::Json(json) = answered.body else { unreachable!() };
//! assert_eq!(PreloginAnswer::read(&json)?.profile, 1);
//! # Ok(())
//! # }
//! ```

mod answers;
mod cache;
mod catalogue;
mod check;
mod credentials;
mod devices;
mod erasure;
mod events;
mod frames;
mod gaps;
mod hub;
mod identity;
mod left_out;
mod letters;
mod lists;
mod login;
mod network;
mod news;
mod order;
mod pairing;
mod parts;
mod rate;
mod record;
mod refusals;
mod register;
mod remembered;
mod restore;
mod rotation;
mod rows;
mod safety;
mod secret;
mod snapshots;
mod socket;
mod sync;
mod totp;
mod witness;
mod writes;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};
use std::time::Duration;

use confidant_chat_format::{AccountId, Origin};
use confidant_chat_protocol::{Done, RefusedSent};
use confidant_display::debug_without_content;

pub use cache::{Envelopes, MemoryCache, SyncCache};
pub use check::Checked;
pub use confidant_seal::Sealed;
pub use frames::Frames;
pub use hub::{AccountEvent, SessionFilter};
pub use network::Network;
pub use news::{News, NewsCounts};
pub use restore::Found;
pub use socket::{Closing, Socket};
pub use witness::{Act, Witness};

use crate::answerer::Answerer;
use crate::store::{ChatStore, Millis};
use crate::vault::Vault;
use answers::running::Answers;
use hub::{GapFiller, Hub, TellOthers};
use left_out::LeftOut;
use rate::Rates;
use refusals::{Answer, login_refused, not_found};
pub(crate) use secret::{hashed, random};

/// What a service is made of.
#[derive(Clone)]
pub struct Parts {
    /// Where everything is kept.
    pub store: Arc<dyn ChatStore>,
    /// The server's own keys.
    pub vault: Arc<dyn Vault>,
    /// What time it is.
    pub clock: Arc<dyn Fn() -> Millis + Send + Sync>,
    /// What the operator decides.
    pub settings: Settings,
}

debug_without_content!(Parts { settings });

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The origins that this server has, as browsers spell them. A proof is good at the one that it was made for.
    pub origins: Vec<Origin>,
    /// Who may register.
    pub registration: Registration,
    /// How long a session lasts.
    pub session: Duration,
    /// How many requests one network may make at once before it has a session; they come back at eight a second.
    pub burst: u32,
    /// How many chats are read ahead for a device that has logged in.
    pub read_ahead: usize,
    /// How long an answer waits for a device to store it, before it goes to the mailbox.
    pub unstored: Duration,
}

impl Settings {
    /// For this origin; by invitation only, with sessions of 30 days.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self {
            origins: vec![origin],
            registration: Registration::Invited,
            session: Duration::from_secs(30 * 24 * 3600),
            burst: 120,
            read_ahead: 100,
            unstored: Duration::from_secs(60),
        }
    }
}

/// Who may register. The first account always needs the code that the server prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// Nobody.
    Closed,
    /// Whoever has an invite.
    Invited,
    /// Anybody.
    Open,
}

/// Who asks, as far as the transport knows.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The origin that the request was made at. The transport has checked that it comes from a page of this origin.
    pub origin: Origin,
    /// Where it comes from.
    pub network: Network,
    /// The session's two secrets, if there are both.
    pub session: Option<SessionSecrets>,
    /// The number of the stream of news on which it hears ([`Socket::number`]). It counts only for a stream of the same session.
    pub stream: Option<u64>,
}

/// What a session is shown by: one secret in the cookie, one in a header.
#[derive(Clone)]
pub struct SessionSecrets {
    /// From the cookie.
    pub id: [u8; 32],
    /// From the header `Confidant-Session`.
    pub secret: [u8; 32],
}

debug_without_content!(SessionSecrets(***));

/// An answer, and what becomes of the cookie.
#[derive(Debug)]
pub struct Answered {
    /// What is sent.
    pub body: Body,
    /// The cookie, where it changes.
    pub session: Option<Cookie>,
}

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    /// One JSON value.
    Json(Vec<u8>),
    /// Frames, one per line, made as they are fetched.
    Frames(Box<Frames>),
}

/// What becomes of the session's cookie.
#[derive(Clone, PartialEq, Eq)]
pub enum Cookie {
    /// It has this value until then.
    Set {
        /// The session's id.
        id: [u8; 32],
        /// When the session ends.
        expires_at: Millis,
    },
    /// It goes.
    Clear,
}

debug_without_content!(Cookie(***));

/// What others are told, or asked, as the service works.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Hears of every change, to tell other gateways.
    pub news: Option<Arc<dyn News>>,
    /// Hears who did what, for an audit log.
    pub witness: Option<Arc<dyn Witness>>,
    /// Keeps what is read ahead for a device that has logged in.
    pub cache: Option<Arc<dyn SyncCache>>,
    /// Answers messages; without it chats are only stored.
    pub answerer: Option<Arc<dyn Answerer>>,
}

debug_without_content!(Hooks);

/// A service that may be gone: for what the service itself keeps alive.
#[derive(Clone, Debug)]
pub struct WeakService(Weak<Inner>);

impl WeakService {
    /// The service, if it is still there.
    #[must_use]
    pub fn upgrade(&self) -> Option<Service> {
        self.0.upgrade().map(|inner| Service { inner })
    }
}

/// The service. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn ChatStore>,
    pub(crate) vault: Arc<dyn Vault>,
    clock: Arc<dyn Fn() -> Millis + Send + Sync>,
    pub(crate) settings: Settings,
    pub(crate) hooks: Hooks,
    pub(crate) hub: Hub,
    pub(crate) answers: Answers,
    pub(crate) rates: Rates,
    /// Of whoever opens snapshots.
    pub(crate) snapshot_rates: Rates,
    pub(crate) left_out: LeftOut,
}

debug_without_content!(Inner { settings });

impl Service {
    /// A service that tells nobody else.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self::with_hooks(parts, Hooks::default())
    }

    /// A service that tells these.
    #[must_use]
    pub fn with_hooks(parts: Parts, hooks: Hooks) -> Self {
        let Parts { store, vault, clock, settings } = parts;
        let inner = Arc::new_cyclic(|service: &Weak<Inner>| {
            let tell = hooks.news.clone().map(|news| -> TellOthers {
                Arc::new(move |account: &AccountId, happened: &AccountEvent| news.happened(account, happened))
            });
            let service: Weak<dyn GapFiller> = Weak::<Inner>::clone(service);
            let hub = Hub::new(tell, service);
            let answers = Answers::new(hooks.answerer.clone());
            let (rates, snapshot_rates, left_out) = (Rates::default(), Rates::default(), LeftOut::default());
            Inner { store, vault, clock, settings, hooks, hub, answers, rates, snapshot_rates, left_out }
        });
        Self { inner }
    }

    /// What the operator decided.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// A handle that does not keep the service alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakService {
        WeakService(Arc::downgrade(&self.inner))
    }

    /// Answers a POST to one of [`confidant_chat_protocol::ROUTES`]. The body is as received; the caller has applied the route's
    /// limit.
    pub async fn answer(&self, path: &str, caller: &Caller, body: &[u8]) -> Result<Answered, RefusedSent> {
        let this = &*self.inner;
        this.own_origin(&caller.origin)?;
        match path {
            "/account/prelogin" => this.prelogin(caller, body),
            "/account/challenge" => this.challenge(caller, body).await,
            "/account/register/begin" => this.begin_registration(caller, body).await,
            "/account/register" => this.register(caller, body).await,
            "/account/login" => this.login(caller, body).await.map(|begun| self.begun(begun)),
            "/account/logout" => this.logout(caller, body).await,
            "/account/credentials" => this.change_credentials(caller, body).await,
            "/account/credentials/list" => this.list_credentials(caller, body).await,
            "/account/recover" => this.recover(caller, body).await,
            "/account/rotation/begin" => this.begin_rotation(caller, body).await,
            "/account/rotation/stage" => this.stage(caller, body).await,
            "/account/rotation/commit" => this.commit_rotation(caller, body).await,
            "/account/pair/offer" => this.offer(caller, body).await,
            "/account/pair/take" => this.take(caller, body).await,
            "/account/pair/send" => this.send(caller, body).await,
            "/account/pair/fetch" => this.fetch(caller, body).await.map(|begun| self.begun(begun)),
            "/account/devices" => this.list_devices(caller, body).await,
            "/account/devices/revoke" => this.revoke_device(caller, body).await,
            "/account/sessions/revoke" => this.revoke_session(caller, body).await,
            "/account/export" => self.export(caller, body).await,
            "/account/erase" => this.erase(caller, body).await,
            "/account/restore/begin" => this.begin_restore(caller, body).await,
            "/account/restore" => this.restore(caller, body).await,
            "/account/restore/rings" => this.restore_rings(caller, body).await,
            "/chats/catalogue" => this.catalogue(caller, body).await,
            "/chats/ticket" => this.ticket(caller, body).await,
            "/chats/snapshots" => this.list_snapshots(caller, body).await,
            "/chats/snapshots/make" => this.make_snapshot(caller, body).await,
            "/chats/snapshots/open" => this.open_snapshot(caller, body).await,
            "/chats/snapshots/revoke" => this.revoke_snapshot(caller, body).await,
            "/chats/events" => self.posted(caller, body).await,
            _ => Err(not_found()),
        }
    }

    /// A socket whose first frame has not come yet.
    #[must_use]
    pub fn connect(&self, origin: Origin, network: Network) -> Socket {
        Socket::new(self.clone(), origin, network)
    }

    /// How many sockets have said who they are, in this process.
    #[must_use]
    pub fn count_sockets(&self) -> u64 {
        self.inner.hub.count()
    }

    /// How many accounts there are.
    pub async fn count_accounts(&self) -> Result<u64, RefusedSent> {
        Ok(self.inner.store.count_accounts().await?)
    }

    /// What is due once a minute: what has expired goes, sockets whose session is over are closed, erasures that were cut off
    /// are finished, refusals that were only counted are written down.
    pub async fn upkeep(&self) -> Result<(), RefusedSent> {
        let this = &*self.inner;
        this.store.expire(this.now()).await?;
        this.rates.forget(this.now());
        this.snapshot_rates.forget(this.now());
        this.witness_left_out().await;
        this.finish_erasures().await?;
        self.catch_up().await
    }

    /// Holds sockets against the store: those whose session is over are closed, and those that missed something hear of it, or
    /// are closed so that their devices sync. For when news of other gateways may have been lost.
    pub async fn catch_up(&self) -> Result<(), RefusedSent> {
        self.inner.check_sockets().await?;
        self.inner.check_news().await
    }

    /// Takes in what another gateway did, so that sockets of this one hear of it.
    pub fn hear(&self, account: &AccountId, happened: &AccountEvent) {
        self.inner.hub.hear(account, happened);
    }

    /// Tells other gateways what happens here and hears from them, if there may be any, for as long as there is a service.
    pub async fn listen(&self) {
        if let Some(news) = &self.inner.hooks.news {
            news.listen(self.downgrade()).await;
        }
    }

    /// How news travel between gateways; nothing where there is only one.
    #[must_use]
    pub fn news_counts(&self) -> Option<NewsCounts> {
        self.inner.hooks.news.as_ref().map(|news| news.counts())
    }
}

impl Inner {
    pub(crate) fn now(&self) -> Millis {
        (self.clock)()
    }

    fn own_origin(&self, origin: &Origin) -> Answer<()> {
        if self.settings.origins.contains(origin) { Ok(()) } else { Err(login_refused()) }
    }
}

impl Answered {
    pub(crate) fn json<T: confidant_chat_protocol::Body>(body: &T) -> Answer<Self> {
        Ok(Self { body: Body::Json(body.write()?), session: None })
    }

    pub(crate) fn done() -> Answer<Self> {
        Self::json(&Done {})
    }

    pub(crate) fn with(self, cookie: Cookie) -> Self {
        Self { session: Some(cookie), ..self }
    }
}
