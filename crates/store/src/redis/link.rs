//! The way to the server: one connection that many tasks share, made again when it breaks.
//!
//! Whoever finds it broken makes it again, one at a time and ever less often while that fails; the others wait for it, as
//! long as their patience lasts. What was under way when it broke is sent once more: every command here can be, see
//! `scripts`. What is easy to get wrong: a write whose reply is lost may have happened, so only one that was never sent
//! may be reported as not written.

use std::borrow::Cow;
use std::time::Duration;

use confidant_display::debug_without_content;
use parking_lot::Mutex;
use redis::aio::{ConnectionLike as _, MultiplexedConnection, PubSub, PubSubSink, PubSubStream};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue,
    IntoConnectionInfo as _, RedisConnectionInfo, RedisError, ServerErrorKind, TlsCertificates, TlsMode,
    Value,
};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::address::{Deployment, RedisAddress, Tls};
use super::scripts::Call;
use crate::Result;
use crate::error::StoreError;

/// The longest that a command may take on a connection that stands.
const ANSWER: Duration = Duration::from_secs(5);
/// The longest that connecting may take.
const CONNECT: Duration = Duration::from_secs(3);
/// How long a read looks for a connection before it gives up: a turn goes on without its memory then.
const READ_PATIENCE: Duration = Duration::from_secs(2);
/// How long a write does: what it would lose is worth more.
const WRITE_PATIENCE: Duration = Duration::from_secs(6);
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    Reading,
    Writing,
}

impl For {
    fn patience(self) -> Duration {
        match self {
            Self::Reading => READ_PATIENCE,
            Self::Writing => WRITE_PATIENCE,
        }
    }
}

/// The connection to the server.
pub struct Link {
    source: Source,
    current: Mutex<Current>,
    /// Held by whoever is connecting.
    connecting: AsyncMutex<()>,
}

/// What makes connections.
enum Source {
    Single(Box<Client>),
    // Asking Sentinels needs exclusive access, which `connecting` gives already.
    Sentinel(Box<AsyncMutex<SentinelClient>>),
    // With its servers one by one: what is published on one is heard on all.
    Cluster(Box<ClusterClient>, Vec<Client>),
}

#[derive(Default)]
struct Current {
    connection: Option<Connection>,
    /// Counts connections, so that one that broke is given up once and a newer one is not.
    number: u64,
    /// How often connecting failed in a row, and when to try again.
    failures: u32,
    again: Option<Instant>,
}

#[derive(Clone)]
enum Connection {
    Direct(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Link {
    /// Prepares connections to `address`. Does not connect yet.
    pub(super) fn new(address: &RedisAddress, ca: Option<&[u8]>) -> Result<Self> {
        let source = Source::new(address, ca).map_err(|error| {
            // The only thing that can be wrong here: an address was checked when it was read.
            let _ = error;
            StoreError::Mismatch(
                "the certificates in store.ca_file cannot be read; \
                 hint: the file must hold certificates in PEM format"
                    .to_owned(),
            )
        })?;
        Ok(Self { source, current: Mutex::default(), connecting: AsyncMutex::default() })
    }

    /// Whether keys live on several servers, so that one script reaches one slot only.
    pub fn is_cluster(&self) -> bool {
        matches!(self.source, Source::Cluster(..))
    }

    /// Runs one command.
    pub async fn run<T: FromRedisValue>(&self, what: For, cmd: Cmd) -> Result<T> {
        let cmds = [cmd];
        let mut values = self.retrying(what, |_| Cow::Borrowed(&cmds)).await?;
        convert(values.pop().unwrap_or(Value::Nil))
    }

    /// Subscribes to a channel, on a separate connection.
    pub async fn subscribe(&self, channel: &str) -> Result<(PubSubSink, PubSubStream)> {
        let made = timeout(CONNECT, async {
            let (mut sink, stream) = self.source.pubsub().await?.split();
            sink.subscribe(channel).await?;
            Ok((sink, stream))
        });
        let made = made.await.map_err(|_| StoreError::Unreachable("timed out".to_owned()))?;
        made.map_err(|error| failure(&error))
    }

    /// What the servers say of themselves, each for itself.
    pub(super) async fn info(&self, section: &str) -> Result<Vec<String>> {
        let mut cmd = redis::cmd("INFO");
        cmd.arg(section);
        match self.run(For::Reading, cmd).await? {
            Value::Map(servers) => servers.into_iter().map(|(_, info)| convert(info)).collect(),
            one => Ok(vec![convert(one)?]),
        }
    }

    /// The names of all keys that fit a pattern, on every server; only those of one type if `kind` names it.
    pub(super) async fn names(&self, pattern: &str, kind: Option<&str>) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for server in self.servers().await? {
            let mut cursor = 0_u64;
            loop {
                let mut scan = redis::cmd("SCAN");
                scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(500);
                if let Some(kind) = kind {
                    scan.arg("TYPE").arg(kind);
                }
                let scanned = match &server {
                    Some(server) => self.run_on(server, scan).await?,
                    None => self.run(For::Reading, scan).await?,
                };
                let (next, names): (u64, Vec<Vec<u8>>) = convert(scanned)?;
                found.extend(names);
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// The servers of a Cluster that have keys; one without a name where it is none.
    async fn servers(&self) -> Result<Vec<Option<RoutingInfo>>> {
        let mut cmd = redis::cmd("INFO");
        cmd.arg("server");
        let Value::Map(servers) = self.run(For::Reading, cmd).await? else { return Ok(vec![None]) };
        let address = |name: Value| {
            let name: String = convert(name)?;
            let (host, port) = name.rsplit_once(':').ok_or_else(odd)?;
            let (host, port) = (host.to_owned(), port.parse().map_err(|_| odd())?);
            Ok(Some(RoutingInfo::SingleNode(SingleNodeRoutingInfo::ByAddress { host, port })))
        };
        servers.into_iter().map(|(name, _)| address(name)).collect()
    }

    /// Runs a command on one server of a Cluster, which only reads.
    async fn run_on(&self, server: &RoutingInfo, cmd: Cmd) -> Result<Value> {
        let (_, connection) = self.connection(Instant::now() + READ_PATIENCE).await?;
        let Connection::Cluster(mut connection) = connection else { return Err(odd()) };
        connection.route_command(cmd, server.clone()).await.map_err(|error| failure(&error))
    }

    /// Calls one script, which writes.
    pub(super) async fn call<T: FromRedisValue>(&self, call: Call) -> Result<T> {
        self.calls(&[call]).await?.pop().map_or(Err(odd()), convert)
    }

    /// Calls scripts one after the other, in one round trip where keys are on one server.
    pub(super) async fn calls(&self, calls: &[Call]) -> Result<Vec<Value>> {
        if !self.is_cluster() {
            return self.retrying(For::Writing, |whole| commands(calls, whole)).await;
        }
        let mut values = Vec::with_capacity(calls.len());
        for call in calls {
            values.extend(self.retrying(For::Writing, |whole| Cow::Owned(vec![call.command(whole)])).await?);
        }
        Ok(values)
    }

    /// Calls scripts that have nothing to do with each other, all at once.
    pub(super) async fn calls_together(&self, calls: &[Call]) -> Result<Vec<Value>> {
        self.retrying(For::Writing, |whole| commands(calls, whole)).await
    }

    /// Runs commands that have nothing to do with each other, all at once.
    pub async fn all<T: FromRedisValue>(&self, what: For, cmds: &[Cmd]) -> Result<Vec<T>> {
        let values = self.retrying(what, |_| Cow::Borrowed(cmds)).await?;
        values.into_iter().map(convert).collect()
    }

    /// Sends commands until they are answered, as long as there is patience. `commands` is told whether scripts must be
    /// sent whole.
    async fn retrying<'a>(&self, what: For, commands: impl Fn(bool) -> Cow<'a, [Cmd]>) -> Result<Vec<Value>> {
        let mut cmds = commands(false);
        if cmds.is_empty() {
            return Ok(Vec::new());
        }
        let deadline = Instant::now() + what.patience();
        let (mut whole, mut sent, mut pause, mut followed) = (false, false, SHORTEST_PAUSE, false);
        loop {
            let (number, mut connection) = self.connection(deadline).await.map_err(|error| match error {
                StoreError::Unreachable(_) if sent && what == For::Writing => StoreError::Uncertain,
                other => other,
            })?;
            let error = match connection.send(&cmds).await {
                Ok(values) => return Ok(values),
                Err(error) => error,
            };
            match Remedy::of(&error) {
                Remedy::SendWhole if !whole => {
                    whole = true;
                    cmds = commands(true);
                    continue;
                }
                Remedy::Reconnect => {
                    sent = true;
                    self.give_up(number);
                }
                // A server that was master is none any more: ask the Sentinels again.
                Remedy::None if is_read_only(&error) && matches!(self.source, Source::Sentinel(_)) => {
                    self.give_up(number)
                }
                // Another may be master at the same address. Once, since this may be a replica for good.
                Remedy::None if is_read_only(&error) => {
                    self.give_up(number);
                    if std::mem::replace(&mut followed, true) {
                        return Err(failure(&error));
                    }
                    continue;
                }
                Remedy::Wait => {}
                Remedy::SendWhole | Remedy::None => return Err(failure(&error)),
            }
            if Instant::now() + pause >= deadline {
                let lost = Remedy::of(&error) == Remedy::Reconnect && what == For::Writing;
                return Err(if lost { StoreError::Uncertain } else { failure(&error) });
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The connection, made if there is none.
    async fn connection(&self, deadline: Instant) -> Result<(u64, Connection)> {
        if let Some(found) = self.lock().found() {
            return Ok(found);
        }
        let unreachable = |why: &str| StoreError::Unreachable(why.to_owned());
        let waiting = tokio::time::timeout_at(deadline, self.connecting.lock());
        let _connecting = waiting.await.map_err(|_| unreachable("no connection"))?;
        loop {
            if let Some(found) = self.lock().found() {
                return Ok(found);
            }
            let again = self.lock().again;
            if let Some(again) = again {
                if again >= deadline {
                    return Err(unreachable("no connection"));
                }
                sleep_until(again).await;
            }
            let made = timeout(CONNECT, self.source.connect()).await;
            let mut current = self.lock();
            match made {
                Ok(Ok(connection)) => {
                    current.connection = Some(connection);
                    current.number += 1;
                    (current.failures, current.again) = (0, None);
                }
                failed => {
                    current.failures += 1;
                    let pause = SHORTEST_PAUSE * 2_u32.pow(current.failures.min(6));
                    let again = Instant::now() + pause.min(LONGEST_PAUSE);
                    current.again = Some(again);
                    let why = match failed {
                        Ok(Err(error)) => failure(&error),
                        _ => unreachable("timed out"),
                    };
                    // A wrong password or certificate will be as wrong in a second.
                    if again >= deadline || !matches!(Remedy::of_connecting(&why), Remedy::Wait) {
                        return Err(why);
                    }
                }
            }
        }
    }

    fn give_up(&self, number: u64) {
        let mut current = self.lock();
        if current.number == number && !self.is_cluster() {
            current.connection = None;
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Current> {
        self.current.lock()
    }
}

debug_without_content!(Link);

impl Current {
    fn found(&self) -> Option<(u64, Connection)> {
        self.connection.clone().map(|connection| (self.number, connection))
    }
}

impl Source {
    fn new(address: &RedisAddress, ca: Option<&[u8]>) -> redis::RedisResult<Self> {
        let RedisAddress { kind, nodes, tls, user, password, database, sentinel } = address;
        // Another crate of the program may have brought a second provider; a second time it is there already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificates = TlsCertificates { client_tls: None, root_cert: ca.map(<[u8]>::to_vec) };
        let mut settings = RedisConnectionInfo::default().set_db(*database);
        if let Some(user) = user {
            settings = settings.set_username(user);
        }
        if let Some(password) = password {
            settings = settings.set_password(password.as_str());
        }
        let addresses = nodes.iter().map(|(host, port)| match tls {
            Tls::No => ConnectionAddr::Tcp(host.clone(), *port),
            Tls::Yes => {
                ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
            }
        });
        let infos = addresses
            .clone()
            .map(|addr| Ok(addr.into_connection_info()?.set_redis_settings(settings.clone())))
            .collect::<redis::RedisResult<Vec<ConnectionInfo>>>()?;
        match kind {
            Deployment::Single => {
                let info = infos.into_iter().next().ok_or((ErrorKind::InvalidClientConfig, "no host"))?;
                Ok(Self::Single(Box::new(match tls {
                    Tls::No => Client::open(info)?,
                    Tls::Yes => Client::build_with_tls(info, certificates)?,
                })))
            }
            Deployment::Cluster => {
                let (infos_again, certificates_again) = (infos.clone(), certificates.clone());
                let mut builder = ClusterClient::builder(infos)
                    .retries(4)
                    .min_retry_wait(20)
                    .max_retry_wait(500)
                    .connection_timeout(CONNECT)
                    .response_timeout(ANSWER);
                if *tls == Tls::Yes {
                    builder = builder.tls(TlsMode::Secure).certs(certificates);
                }
                let servers = infos_again.into_iter().map(|info| match tls {
                    Tls::No => Client::open(info),
                    Tls::Yes => Client::build_with_tls(info, certificates_again.clone()),
                });
                Ok(Self::Cluster(Box::new(builder.build()?), servers.collect::<redis::RedisResult<_>>()?))
            }
            Deployment::Sentinel(service) => {
                let mut builder = SentinelClientBuilder::new(addresses, service, SentinelServerType::Master)?
                    .set_client_to_redis_db(*database);
                if *tls == Tls::Yes {
                    builder = builder
                        .set_client_to_redis_tls_mode(TlsMode::Secure)
                        .set_client_to_redis_certificates(certificates.clone())
                        .set_client_to_sentinel_tls_mode(TlsMode::Secure)
                        .set_client_to_sentinel_certificates(certificates);
                }
                if let Some(user) = user {
                    builder = builder.set_client_to_redis_username(user);
                }
                if let Some(password) = password {
                    builder = builder.set_client_to_redis_password(password.as_str());
                }
                if let Some(user) = &sentinel.0 {
                    builder = builder.set_client_to_sentinel_username(user);
                }
                if let Some(password) = &sentinel.1 {
                    builder = builder.set_client_to_sentinel_password(password.as_str());
                }
                Ok(Self::Sentinel(Box::new(AsyncMutex::new(builder.build()?))))
            }
        }
    }

    async fn connect(&self) -> redis::RedisResult<Connection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(ANSWER))
            .set_pipeline_buffer_size(1024);
        match self {
            Self::Single(client) => {
                client.get_multiplexed_async_connection_with_config(&config).await.map(Connection::Direct)
            }
            Self::Sentinel(client) => {
                client.lock().await.get_async_connection_with_config(&config).await.map(Connection::Direct)
            }
            Self::Cluster(client, _) => client.get_async_connection().await.map(Connection::Cluster),
        }
    }
}

impl Source {
    async fn pubsub(&self) -> redis::RedisResult<PubSub> {
        match self {
            Self::Single(client) => client.get_async_pubsub().await,
            Self::Sentinel(client) => client.lock().await.async_get_client().await?.get_async_pubsub().await,
            Self::Cluster(_, servers) => {
                let mut last = RedisError::from((ErrorKind::Io, "no server"));
                for server in servers {
                    match server.get_async_pubsub().await {
                        Ok(pubsub) => return Ok(pubsub),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }
}

impl Connection {
    async fn send(&mut self, cmds: &[Cmd]) -> redis::RedisResult<Vec<Value>> {
        let values = match self {
            Self::Direct(connection) if cmds.len() == 1 => {
                vec![connection.req_packed_command(&cmds[0]).await?]
            }
            Self::Direct(connection) => {
                let mut pipeline = redis::Pipeline::with_capacity(cmds.len());
                for cmd in cmds {
                    pipeline.add_command(cmd.clone());
                }
                connection.req_packed_commands(&pipeline, 0, cmds.len()).await?
            }
            Self::Cluster(connection) => {
                // Each goes to the server of its slot.
                let sent = cmds.iter().map(|cmd| {
                    let mut connection = connection.clone();
                    async move { connection.req_packed_command(cmd).await }
                });
                futures_util::future::try_join_all(sent).await?
            }
        };
        // In a batch, an error is a value among others.
        values.into_iter().map(Value::extract_error).collect()
    }
}

/// What may help against an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// The server does not know the script.
    SendWhole,
    Reconnect,
    /// The server is not ready yet.
    Wait,
    None,
}

impl Remedy {
    fn of(error: &RedisError) -> Self {
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::NoScript) => Self::SendWhole,
            ErrorKind::Server(
                ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown,
            ) => Self::Wait,
            ErrorKind::Io | ErrorKind::Parse | ErrorKind::ClusterConnectionNotFound => Self::Reconnect,
            _ => Self::None,
        }
    }

    fn of_connecting(error: &StoreError) -> Self {
        match error {
            StoreError::Unreachable(why) if !why.starts_with("TLS") => Self::Wait,
            _ => Self::None,
        }
    }
}

fn commands<'a>(calls: &[Call], whole: bool) -> Cow<'a, [Cmd]> {
    Cow::Owned(calls.iter().map(|call| call.command(whole)).collect())
}

fn is_read_only(error: &RedisError) -> bool {
    failure(error) == StoreError::ReadOnly
}

/// The error in our words. Only codes and kinds: a server's message may quote a key.
fn failure(error: &RedisError) -> StoreError {
    let detail = error.detail().unwrap_or_default();
    // Older servers put the reason why a script stopped into the text of a general error.
    let is = |code: &str| error.code() == Some(code) || detail.contains(&format!("-{code} "));
    if is("OOM") || is("MISCONF") || detail.contains("OOM command not allowed") {
        return StoreError::Full;
    }
    if is("READONLY") || is("NOREPLICAS") {
        return StoreError::ReadOnly;
    }
    for code in ["WRONGPASS", "NOAUTH", "NOPERM"] {
        if is(code) {
            return StoreError::Refused(code.to_owned());
        }
    }
    if detail.contains("cluster support disabled") {
        let what =
            "the Redis server is not part of a Cluster; hint: write redis:// or rediss:// in store.url";
        return StoreError::Mismatch(what.to_owned());
    }
    if is("WRONGTYPE") {
        let what = "a key in the store holds data that Confidant did not write, most likely a checkpoint of the earlier \
                    Python bots; hint: import those with `confidant store import --from` and the address in store.url";
        return StoreError::Mismatch(what.to_owned());
    }
    match error.kind() {
        ErrorKind::AuthenticationFailed => StoreError::Refused("wrong user or password".to_owned()),
        ErrorKind::Server(ServerErrorKind::BusyLoading) => {
            StoreError::Unreachable("the server is still loading its data".to_owned())
        }
        ErrorKind::Server(ServerErrorKind::ClusterDown) => {
            StoreError::Unreachable("the Cluster is down".to_owned())
        }
        ErrorKind::MasterNameNotFoundBySentinel => {
            StoreError::Unreachable("no Sentinel knows a master with this name".to_owned())
        }
        ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => StoreError::Unreachable(why_not(error)),
        _ if is("BUSY") => StoreError::Busy,
        _ => StoreError::Failed(format!("Redis: {}", error.code().unwrap_or_else(|| error.category()))),
    }
}

/// Why a connection could not be made, in a few words.
fn why_not(error: &RedisError) -> String {
    let text = error.to_string();
    if error.is_connection_refusal() {
        "connection refused".to_owned()
    } else if let Some(shown) = confidant_display::certificate_problem(&text) {
        format!("TLS: {shown}")
    } else if error.is_timeout() {
        "timed out".to_owned()
    } else {
        "connection lost".to_owned()
    }
}

pub(super) fn convert<T: FromRedisValue>(value: Value) -> Result<T> {
    T::from_redis_value(value).map_err(|_| odd())
}

/// A reply that no store of ours gives: somebody put something else there.
pub(super) fn odd() -> StoreError {
    StoreError::Failed("Redis: an unexpected reply".to_owned())
}
