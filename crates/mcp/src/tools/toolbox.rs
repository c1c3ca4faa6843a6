//! All servers together, as the engine knows them: a toolbox.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use confidant_engine::tools::{Invocation, Tool, ToolError, ToolOutput, Toolbox};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;

use super::names::ServerName;
use super::server::{self, ServerSettings, State};
use super::stdio::Keeper;
use super::trouble::Trouble;

/// The tools of MCP servers. Dropping it ends the connections and the programs behind them; [`McpToolbox::stop`] also
/// waits for that.
pub struct McpToolbox {
    pub(super) servers: BTreeMap<ServerName, watch::Receiver<State>>,
    limits: Limits,
    /// A word, or its end, means to stop.
    stop: watch::Sender<()>,
    tasks: Mutex<JoinSet<()>>,
}

/// How much is taken from servers, and how long they are waited for.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Of one result.
    pub max_result_bytes: usize,
    /// For each step.
    pub times: Times,
}

/// How long things take, at most or at least.
#[derive(Clone, Debug)]
pub struct Times {
    /// To connect. Long: a program may have to be fetched first.
    pub connect: Duration,
    /// To answer what every server can answer at once.
    pub answer: Duration,
    /// Between the first two tries.
    pub first_pause: Duration,
    /// Between any two, at most.
    pub last_pause: Duration,
    /// After this, a connection has been a good one, and the pauses begin anew.
    pub steady: Duration,
    /// Between two looks at a server that does not tell when it changes or goes.
    pub look: Duration,
    /// Between word of a change and a look at it: changes come in flocks.
    pub gather: Duration,
}

/// How a server is doing, for people.
#[derive(Clone, Debug)]
pub struct Status {
    /// The server.
    pub name: ServerName,
    /// How it is doing.
    pub standing: Standing,
}

/// The state of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not there yet.
    Connecting,
    /// With this many tools.
    Ready(usize),
    /// Away, for this reason.
    Away(Trouble),
}

impl McpToolbox {
    /// Begins to connect the servers, each in the background.
    pub fn start(servers: Vec<ServerSettings>, limits: Limits, keeper: &Keeper) -> Self {
        let (stop, stopped) = watch::channel(());
        let (mut states, mut tasks) = (BTreeMap::new(), JoinSet::new());
        for settings in servers {
            let (sender, state) = watch::channel(State::Connecting);
            states.insert(settings.name.clone(), state);
            let limits = limits.clone();
            tasks.spawn(server::supervise(settings, limits, keeper.clone(), sender, stopped.clone()));
        }
        Self { servers: states, limits, stop, tasks: Mutex::new(tasks) }
    }

    /// Waits until every server has been reached or has failed to be, but no longer than this, and says how they are.
    pub async fn settle(&self, patience: Duration) -> Vec<Status> {
        let _ = tokio::time::timeout(patience, self.settled()).await;
        self.statuses()
    }

    /// How the servers are now.
    pub fn statuses(&self) -> Vec<Status> {
        let status = |(name, state): (&ServerName, &watch::Receiver<State>)| {
            let standing = match &*state.borrow() {
                State::Connecting => Standing::Connecting,
                State::Ready(connection) => Standing::Ready(connection.catalogue.len()),
                State::Away(trouble) => Standing::Away(*trouble),
            };
            Status { name: name.clone(), standing }
        };
        self.servers.iter().map(status).collect()
    }

    /// Ends all connections and programs, and waits for them.
    pub async fn stop(&self) {
        let _ = self.stop.send(());
        let mut tasks = self.tasks.lock().await;
        while tasks.join_next().await.is_some() {}
    }
}

#[async_trait]
impl Toolbox for McpToolbox {
    async fn tools(&self) -> Vec<Tool> {
        let mut tools = Vec::new();
        for state in self.servers.values() {
            if let State::Ready(connection) = &*state.borrow() {
                tools.extend(connection.catalogue.tools().cloned());
            }
        }
        tools
    }

    async fn settled(&self) {
        for state in self.servers.values() {
            let mut state = state.clone();
            let _ = state.wait_for(|state| !matches!(state, State::Connecting)).await;
        }
    }

    async fn call(&self, call: Invocation<'_>) -> Result<ToolOutput, ToolError> {
        let server = call.tool.split_once('.').and_then(|(server, _)| {
            self.servers.iter().find(|(name, _)| name.as_str() == server).map(|(_, state)| state)
        });
        let connection = match &*server.ok_or(ToolError::Unknown)?.borrow() {
            State::Ready(connection) => connection.clone(),
            State::Connecting | State::Away(_) => return Err(ToolError::Unreachable),
        };
        connection.call(call, call.max_bytes.min(self.limits.max_result_bytes)).await
    }
}

impl fmt::Debug for McpToolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let standings = self.statuses().into_iter().map(|status| (status.name, status.standing));
        f.debug_map().entries(standings).finish()
    }
}

impl Default for Times {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(120),
            answer: Duration::from_secs(10),
            first_pause: Duration::from_secs(1),
            last_pause: Duration::from_secs(60),
            steady: Duration::from_secs(60),
            look: Duration::from_secs(60),
            gather: Duration::from_millis(500),
        }
    }
}
