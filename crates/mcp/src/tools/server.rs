//! The life of one server: connected in the background, listed, watched over, and connected again when it went away.
//!
//! Nobody waits for any of this. Who needs a tool looks at [`State`], which says what is there now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use rmcp::ClientHandler;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams, ProtocolVersion,
    SubscriptionFilter,
};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, Peer, RunningService,
    Subscription,
};
use secrecy::SecretString;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::catalogue::Catalogue;
use super::connection::{Connection, Link};
use super::contain::Contained;
use super::names::{Pattern, ServerName};
use super::stdio::{Keeper, Process};
use super::trim::Wire;
use super::trouble::Trouble;
use super::{Limits, http};

/// What is known of a server before it is connected.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// What it is called in the settings.
    pub name: ServerName,
    /// How it is reached.
    pub reach: Reach,
    /// The tools that are taken from it, by pattern; all when missing.
    pub only: Option<Vec<Pattern>>,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Reach {
    /// A program to start, with its variables.
    Process {
        /// The program and its arguments.
        command: Vec<String>,
        /// Its whole environment.
        variables: BTreeMap<String, SecretString>,
    },
    /// An address, with a bearer token.
    Http {
        /// Where it is.
        url: Url,
        /// The bearer token that it wants.
        token: Option<SecretString>,
    },
}

/// How things stand with a server.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// It has not been reached yet, and has not failed to be.
    Connecting,
    /// It answers.
    Ready(Arc<Connection>),
    /// It does not, and will be tried again.
    Away(Trouble),
}

/// Connects the server, and again when it went away, until `stop` says so or is gone.
pub(super) async fn supervise(
    settings: ServerSettings,
    limits: Limits,
    keeper: Keeper,
    state: watch::Sender<State>,
    mut stop: watch::Receiver<()>,
) {
    let mut pause = limits.times.first_pause;
    let mut attempt =
        Attempt { settings: &settings, limits: &limits, keeper: &keeper, manner: Manner::Initialize };
    let mut known = None;
    loop {
        let started = Instant::now();
        let life = attempt.live_either_way(&state, &mut stop).await;
        if matches!(life, Life::Stopped) {
            return;
        }
        let trouble = life.trouble();
        state.send_replace(State::Away(trouble));
        if started.elapsed() >= limits.times.steady {
            (pause, known) = (limits.times.first_pause, None);
        }
        if known.replace(trouble) != Some(trouble) {
            tracing::warn!(tools.server = %settings.name, reason = %trouble, "a tool server is not available");
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stop.changed() => return,
        }
        pause = (pause * 2).min(limits.times.last_pause);
    }
}

/// How one connection went.
enum Life {
    /// It did not come about.
    NotBegun(Trouble),
    /// It did, and ended.
    Over(Trouble),
    /// We are to stop.
    Stopped,
}

impl Life {
    /// Why the server is away now.
    fn trouble(&self) -> Trouble {
        match self {
            Self::NotBegun(trouble) | Self::Over(trouble) => *trouble,
            Self::Stopped => Trouble::Ended,
        }
    }
}

/// How a conversation with a server is begun.
///
/// Servers of before July 2026 know the first way only, and some of them nothing else before it. Those that know only the
/// second refuse the first at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Initialize,
    Discover,
}

impl Manner {
    fn other(self) -> Self {
        match self {
            Self::Initialize => Self::Discover,
            Self::Discover => Self::Initialize,
        }
    }

    fn mode(self) -> ClientLifecycleMode {
        match self {
            Self::Initialize => ClientLifecycleMode::Initialize,
            Self::Discover => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
        }
    }
}

/// Tries at a connection.
struct Attempt<'a> {
    settings: &'a ServerSettings,
    limits: &'a Limits,
    keeper: &'a Keeper,
    manner: Manner,
}

impl Attempt<'_> {
    /// The same as [`Self::live`]. If the server does not like how it is addressed, it is addressed the other way at once.
    async fn live_either_way(
        &mut self,
        state: &watch::Sender<State>,
        stop: &mut watch::Receiver<()>,
    ) -> Life {
        let first = self.live(state, stop).await;
        let Life::NotBegun(Trouble::NoMcp | Trouble::Refused | Trouble::Status(400..500)) = first else {
            return first;
        };
        self.manner = self.manner.other();
        let second = self.live(state, stop).await;
        let Life::NotBegun(_) = second else { return second };
        self.manner = self.manner.other();
        first
    }

    /// Connects, and keeps the connection for as long as it is good.
    async fn live(&self, state: &watch::Sender<State>, stop: &mut watch::Receiver<()>) -> Life {
        let wire = Arc::new(Wire::default());
        let listener = Listener { changed: Arc::default() };
        let changed = Arc::clone(&listener.changed);
        let connected = tokio::select! {
            connected = tokio::time::timeout(self.limits.times.connect, self.connect(listener, &wire)) => connected,
            overrun = wire.overrun() => return Life::NotBegun(overrun.into()),
            _ = stop.changed() => return Life::Stopped,
        };
        let running = match connected {
            Ok(Ok(running)) => running,
            Ok(Err(trouble)) => return Life::NotBegun(trouble),
            Err(_) => return Life::NotBegun(Trouble::Silent),
        };
        let link = Arc::new(Link::new(running.peer().clone(), Arc::clone(&wire)));
        let (end, mut ended) = (running.cancellation_token(), std::pin::pin!(running.waiting()));
        let (life, is_closed) = tokio::select! {
            life = self.attend(&link, &changed, state, stop) => (life, false),
            overrun = wire.overrun() => (Life::Over(overrun.into()), false),
            _ = &mut ended => (Life::Over(wire.overrun_so_far().map_or(Trouble::Ended, Trouble::from)), true),
        };
        // Those who have the connection are not to wait for it, and its processes are gone before there are others.
        link.end();
        state.send_replace(State::Away(life.trouble()));
        if !is_closed {
            end.cancel();
            let _ = tokio::time::timeout(CLOSING, ended).await;
        }
        life
    }

    async fn connect(
        &self,
        listener: Listener,
        wire: &Arc<Wire>,
    ) -> Result<RunningService<RoleClient, Listener>, Trouble> {
        // One more than is asked for, to know whether there was more; and the protocol's own words are not cut.
        let longest = self.limits.max_result_bytes.saturating_add(1).max(SHORTEST);
        let mode = self.manner.mode();
        let connected = match &self.settings.reach {
            Reach::Process { command, variables } => {
                let process = Process::start(command, variables, self.keeper, longest, Arc::clone(wire))
                    .map_err(|error| Trouble::NotStarted(error.kind()))?;
                listener.serve_with_lifecycle(Contained::new(process, Arc::clone(wire)), mode).await
            }
            Reach::Http { url, token } => {
                let transport = http::transport(url, token.as_ref(), longest, Arc::clone(wire))?;
                listener.serve_with_lifecycle(Contained::new(transport, Arc::clone(wire)), mode).await
            }
        };
        connected.map_err(|error| Trouble::at_start(&error))
    }

    /// Lists the tools, and again when there is reason to, for as long as that works.
    async fn attend(
        &self,
        link: &Arc<Link>,
        changed: &Notify,
        state: &watch::Sender<State>,
        stop: &mut watch::Receiver<()>,
    ) -> Life {
        let times = &self.limits.times;
        // A lost connection to an address shows only when it is used.
        let mut look_often = matches!(self.settings.reach, Reach::Http { .. });
        let mut subscription = None;
        if self.manner == Manner::Discover {
            let wanted = SubscriptionFilter::builder().tools_list_changed().build();
            let listening = tokio::time::timeout(times.answer, link.peer.listen(wanted)).await;
            subscription = listening.ok().and_then(Result::ok);
            look_often |= subscription.is_none();
        }
        let mut due = Some(Instant::now());
        let mut listed = None;
        loop {
            tokio::select! {
                () = until(due) => {
                    let shortened = link.wire.shortened();
                    let list = tokio::time::timeout(times.answer, list(&link.peer));
                    let tools = tokio::select! {
                        tools = list => tools,
                        _ = stop.changed() => return Life::Stopped,
                    };
                    match tools {
                        Ok(Ok(tools)) => {
                            if link.wire.shortened() != shortened {
                                tracing::warn!(tools.server = %self.settings.name, "a list of tools was too long and was truncated");
                            }
                            self.publish(tools, link, &mut listed, state);
                        }
                        Ok(Err(trouble)) => return Life::Over(trouble),
                        Err(_) => return Life::Over(Trouble::Silent),
                    }
                    due = look_often.then(|| Instant::now() + times.look);
                }
                () = changed.notified() => due = Some(Instant::now() + times.gather),
                more = next(&mut subscription) => {
                    look_often |= !more;
                    due = Some(Instant::now() + times.gather);
                }
                // While it works for others, that it does not answer one is no reason to end it.
                () = link.doubted() => if link.is_idle() { due = Some(Instant::now()) },
                _ = stop.changed() => return Life::Stopped,
            }
        }
    }

    /// Makes the tools known that are listed now.
    fn publish(
        &self,
        tools: Vec<rmcp::model::Tool>,
        link: &Arc<Link>,
        listed: &mut Option<Catalogue>,
        state: &watch::Sender<State>,
    ) {
        let (catalogue, refused) = Catalogue::new(&self.settings.name, self.settings.only.as_deref(), tools);
        if listed.as_ref() == Some(&catalogue) {
            return;
        }
        tracing::info!(tools.server = %self.settings.name, tools.count = catalogue.len(), "a tool server is available");
        if refused.any() {
            tracing::warn!(
                tools.server = %self.settings.name,
                names = refused.names,
                duplicates = refused.duplicates,
                schemas = refused.schemas,
                surplus = refused.surplus,
                "tools were left out: names that are empty or too long, duplicate names, schemas that are \
                 too large, or too many of them"
            );
        }
        *listed = Some(catalogue.clone());
        state.send_replace(State::Ready(Arc::new(Connection { link: Arc::clone(link), catalogue })));
    }
}

/// Hears that tools have changed, and nothing else.
struct Listener {
    changed: Arc<Notify>,
}

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("confidant", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// All tools, page by page.
async fn list(peer: &Peer<RoleClient>) -> Result<Vec<rmcp::model::Tool>, Trouble> {
    if peer.peer_info().is_none_or(|info| info.capabilities.tools.is_none()) {
        return Ok(Vec::new());
    }
    peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
    let (mut tools, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(page)).await.map_err(|error| Trouble::of_request(&error))?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() > MOST_LISTED {
            break;
        }
    }
    Ok(tools)
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Waits for word that tools have changed; whether there will be more of it.
async fn next(subscription: &mut Option<Subscription>) -> bool {
    let Some(open) = subscription else { return std::future::pending().await };
    if matches!(open.next().await, Ok(Some(_))) {
        return true;
    }
    *subscription = None;
    false
}

/// What a text may have at least, however little of it is asked for.
const SHORTEST: usize = 4096;
/// More than are taken, so that it can be said how many were not.
const MOST_LISTED: usize = 1024;
const MOST_PAGES: usize = 64;
/// How long the end of a connection may take, at most.
const CLOSING: Duration = Duration::from_secs(10);
