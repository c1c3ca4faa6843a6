//! Connections: a few, lent to whoever has something to ask, made again when they break.
//!
//! [`Pool::query`] is one statement, and so one transaction and one round trip. What was under way when a connection broke,
//! or lost a deadlock, is sent once more: every statement that writes can be. Several statements in one transaction are in
//! `transaction.rs`. What is easy to get wrong: a write whose reply is lost may have happened, so only one that was never sent
//! may be reported as not written.

use std::collections::HashMap;
use std::time::Duration;

use confidant_display::debug_without_content;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, NoTls, Row, Statement};

use super::address::Tls;
use super::error::PostgresError;
use super::link::Link;
use super::tls::MakeTls;

pub(crate) type Result<T> = std::result::Result<T, PostgresError>;

/// The longest that connecting may take, unless the address is waited for longer.
const CONNECT: Duration = Duration::from_secs(3);
/// How often a connection that nobody uses is asked whether it stands, and how long the network may leave what was sent
/// unacknowledged: without an end to that, a server that vanished is waited for by the quarter of an hour.
const ASKED_EVERY: Duration = Duration::from_secs(10);
const UNACKNOWLEDGED: Duration = Duration::from_secs(8);
/// The longest that a statement may take; the server keeps a shorter limit of its own.
pub(crate) const ANSWER: Duration = Duration::from_secs(15);
/// How long a read looks for a connection before it gives up: a turn goes on without its memory then.
const READ_PATIENCE: Duration = Duration::from_secs(2);
/// How long a write does: what it would lose is worth more.
const WRITE_PATIENCE: Duration = Duration::from_secs(6);
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What a statement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// It gives up early: whoever reads goes on without.
    Reading,
    /// It is given more time, and says whether it may have happened.
    Writing,
}

/// Arguments of a statement.
pub type Args<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The connections of a process.
pub struct Pool {
    pub(crate) config: Config,
    pub(crate) tls: Option<MakeTls>,
    permits: Semaphore,
    idle: Mutex<Vec<Connected>>,
    /// What every limit on a connection is at least.
    patience: Duration,
    pub(crate) schema: String,
}

/// A connection, with the statements that it knows.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) statements: HashMap<&'static str, Statement>,
}

/// A connection that somebody has; gone when this is, unless it is given back.
pub(crate) struct Lent<'p> {
    pub(crate) connected: Connected,
    _permit: SemaphorePermit<'p>,
}

/// Why a try did not work.
pub(crate) enum Cause {
    /// No connection could be made.
    Unsent(Error),
    /// Nor was there an answer to the attempt: the driver's own limit ends where the server has taken the call.
    Unanswered,
    /// It was sent.
    Sent(Error),
    /// No reply within the time there is.
    Silent,
}

impl Cause {
    /// Whether it was sent and nobody knows what became of it.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Silent => true,
            Self::Sent(error) => error.is_closed() || error.code().is_none(),
            Self::Unsent(_) | Self::Unanswered => false,
        }
    }

    pub(crate) fn error(&self) -> PostgresError {
        match self {
            Self::Silent | Self::Unanswered => timed_out(),
            Self::Unsent(error) | Self::Sent(error) => failure(error),
        }
    }
}

/// How long it is tried, and how often.
pub(crate) struct Patience {
    pub(crate) deadline: Instant,
    pause: Duration,
    followed: bool,
}

impl Patience {
    fn new(patience: Duration) -> Self {
        Self { deadline: Instant::now() + patience, pause: SHORTEST_PAUSE, followed: false }
    }

    /// Whether another try is worth it; waits for its moment.
    pub(crate) async fn again(&mut self, cause: &Cause) -> bool {
        // It led before, and follows now: another may lead at the same address. Once, since it may just be read-only.
        if matches!(cause, Cause::Sent(error) if is_read_only(error)) && !self.followed {
            self.followed = true;
            return true;
        }
        let again = match cause {
            Cause::Silent | Cause::Unanswered => true,
            Cause::Sent(error) | Cause::Unsent(error) => cause.is_lost() || passes(error),
        };
        if !again || Instant::now() + self.pause >= self.deadline {
            return false;
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

impl Pool {
    /// Prepares connections, whose sessions begin with these settings. Does not connect yet.
    pub fn new(link: &Link, settings: &[(&str, &str)]) -> Result<Self> {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if link.schema.is_empty() || !link.schema.chars().all(word) {
            return Err(PostgresError::Mismatch(
                "store.schema is not a plain word; hint: use lower-case letters, digits and underscores"
                    .to_owned(),
            ));
        }
        let mut config = link.address.config.clone();
        let mut options =
            format!("-c search_path={} -c statement_timeout=10000 -c lock_timeout=5000", link.schema);
        for (name, value) in settings {
            options.extend([" -c ", name, "=", value]);
        }
        // Where several hosts are given, one that is silent leaves time for the next.
        let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX);
        let each = if hosts > 1 { READ_PATIENCE / hosts } else { CONNECT };
        let patience = link.address.patience;
        config.options(&options).application_name("confidant").connect_timeout(each.max(patience));
        config.keepalives(true).keepalives_idle(ASKED_EVERY).keepalives_interval(ASKED_EVERY / 5);
        config.keepalives_retries(3).tcp_user_timeout(UNACKNOWLEDGED);
        let tls = match link.address.tls {
            Tls::No => None,
            Tls::Verified => Some(MakeTls::new(link.ca.as_deref()).ok_or_else(|| {
                PostgresError::Mismatch(
                    "the certificates in store.ca_file cannot be read; \
                     hint: the file must hold certificates in PEM format"
                        .to_owned(),
                )
            })?),
        };
        let permits = Semaphore::new(link.connections.max(1));
        let schema = link.schema.clone();
        Ok(Self { config, tls, permits, idle: Mutex::default(), patience, schema })
    }

    /// How long something is tried.
    pub(crate) fn patience(&self, what: For) -> Patience {
        let patience = if what == For::Reading { READ_PATIENCE } else { WRITE_PATIENCE };
        Patience::new(patience.max(self.patience))
    }

    /// The longest that connecting may take.
    pub(crate) fn connecting(&self) -> Duration {
        CONNECT.max(self.patience)
    }

    /// Runs a statement and gives its rows.
    pub async fn query(&self, what: For, sql: &'static str, args: Args<'_>) -> Result<Vec<Row>> {
        self.try_query(what, sql, args).await?.map_err(|error| failure(&error))
    }

    /// The same; what the server refuses for a reason that the caller may know is given as it is.
    pub async fn try_query(
        &self,
        what: For,
        sql: &'static str,
        args: Args<'_>,
    ) -> Result<std::result::Result<Vec<Row>, Error>> {
        let (mut patience, mut sent) = (self.patience(what), false);
        loop {
            let cause = match self.once(patience.deadline, sql, args).await? {
                Ok(rows) => return Ok(Ok(rows)),
                Err(cause) => cause,
            };
            sent |= cause.is_lost();
            if patience.again(&cause).await {
                continue;
            }
            return match cause {
                _ if sent && what == For::Writing => Err(PostgresError::Uncertain),
                Cause::Sent(error) if error.code().is_some() && !error.is_closed() => Ok(Err(error)),
                cause => Err(cause.error()),
            };
        }
    }

    /// A connection of its own, for what is more than one statement.
    pub async fn connect_apart(&self) -> Result<Client> {
        match timeout(self.connecting(), self.connect()).await {
            Ok(made) => made.map_err(|error| failure(&error)),
            Err(_) => Err(timed_out()),
        }
    }

    /// A new connection. May take for ever: whoever asks has a limit.
    async fn connect(&self) -> std::result::Result<Client, Error> {
        // The task ends with the connection; what went wrong is told to whoever asks next.
        match &self.tls {
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(async move { drop(connection.await) });
                Ok(client)
            }
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                tokio::spawn(async move { drop(connection.await) });
                Ok(client)
            }
        }
    }

    /// One try. The outer error says that the pool is exhausted.
    async fn once(
        &self,
        deadline: Instant,
        sql: &'static str,
        args: Args<'_>,
    ) -> Result<std::result::Result<Vec<Row>, Cause>> {
        let mut lent = match self.lend(deadline).await? {
            Ok(lent) => lent,
            Err(cause) => return Ok(Err(cause)),
        };
        let asked = timeout(ANSWER, lent.connected.query(sql, args)).await;
        if matches!(&asked, Ok(Err(error)) if is_read_only(error)) {
            self.forget();
        } else if asked.is_ok() {
            // One that was not answered may be answered later, in the place of something else.
            self.give_back(lent);
        }
        Ok(match asked {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(Cause::Sent(error)),
            Err(_) => Err(Cause::Silent),
        })
    }

    /// A connection that nobody uses, or a new one. The outer error says that the pool is exhausted.
    pub(crate) async fn lend(&self, deadline: Instant) -> Result<std::result::Result<Lent<'_>, Cause>> {
        let permit = timeout_at(deadline, self.permits.acquire()).await.map_err(|_| PostgresError::Busy)?;
        let _permit = permit.map_err(|_| PostgresError::Busy)?;
        let idle = self.lock().pop();
        let connected = match idle.filter(|idle| !idle.client.is_closed()) {
            Some(connected) => connected,
            None => {
                match timeout_at(deadline.min(Instant::now() + self.connecting()), self.connect()).await {
                    Ok(Ok(client)) => Connected { client, statements: HashMap::new() },
                    Ok(Err(error)) => return Ok(Err(Cause::Unsent(error))),
                    Err(_) => return Ok(Err(Cause::Unanswered)),
                }
            }
        };
        Ok(Ok(Lent { connected, _permit }))
    }

    /// Keeps a connection for the next one, unless it broke.
    pub(crate) fn give_back(&self, lent: Lent<'_>) {
        if !lent.connected.client.is_closed() {
            self.lock().push(lent.connected);
        }
    }

    /// Forgets the connections that nobody uses: they lead to a server that follows now.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connected>> {
        self.idle.lock()
    }
}

impl Connected {
    async fn query(&mut self, sql: &'static str, args: Args<'_>) -> std::result::Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, args).await
    }

    pub(crate) async fn prepared(&mut self, sql: &'static str) -> std::result::Result<Statement, Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }
}

debug_without_content!(Pool);

pub(crate) fn timed_out() -> PostgresError {
    PostgresError::Unreachable("timed out".to_owned())
}

/// Whether an error passes by itself: deadlocks, servers that start or stop, too many connections for the moment.
fn passes(error: &Error) -> bool {
    let Some(code) = error.code() else {
        // Connecting failed below the database.
        return !why_not(error).starts_with("TLS");
    };
    [
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
    ]
    .contains(code)
}

pub(crate) fn is_read_only(error: &Error) -> bool {
    error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
}

/// The error in our words. Only codes: a server's message may quote a value.
#[must_use]
pub fn failure(error: &Error) -> PostgresError {
    let Some(code) = error.code() else { return PostgresError::Unreachable(why_not(error)) };
    let is = |codes: &[SqlState]| codes.contains(code);
    if is(&[SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY, SqlState::INSUFFICIENT_RESOURCES]) {
        PostgresError::Full
    } else if is(&[SqlState::READ_ONLY_SQL_TRANSACTION]) {
        PostgresError::ReadOnly
    } else if is(&[
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ]) {
        PostgresError::Refused(code.code().to_owned())
    } else if is(&[SqlState::INVALID_CATALOG_NAME]) {
        PostgresError::Mismatch(
            "the database in store.url does not exist; hint: create it with createdb".to_owned(),
        )
    } else if is(&[SqlState::CANNOT_CONNECT_NOW, SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN]) {
        PostgresError::Unreachable("the server is starting or stopping".to_owned())
    } else if is(&[
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::TOO_MANY_CONNECTIONS,
    ]) {
        PostgresError::Busy
    } else {
        PostgresError::Failed(format!("PostgreSQL: {}", code.code()))
    }
}

/// Whether the database answers, and whether row-level security holds for us; says what it is.
pub async fn check(pool: &Pool) -> Result<String> {
    let sql = "SELECT current_setting('server_version'), rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user";
    let rows = pool.query(For::Reading, sql, &[]).await?;
    let odd = || PostgresError::Failed("PostgreSQL: an unexpected reply".to_owned());
    let row = rows.first().ok_or_else(odd)?;
    let version: String = row.try_get(0).map_err(|_| odd())?;
    let bypasses: bool = row.try_get(1).map_err(|_| odd())?;
    if bypasses {
        return Err(PostgresError::Mismatch(
            "the database user is a superuser or bypasses row-level security, so it protects nothing; \
             hint: give Confidant its own role, without SUPERUSER and BYPASSRLS, that owns its schema"
                .to_owned(),
        ));
    }
    Ok(format!("PostgreSQL {}", version.split_whitespace().next().unwrap_or_default()))
}

/// Why a connection could not be made, in a few words.
fn why_not(error: &Error) -> String {
    use std::error::Error as _;
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::ConnectionRefused
        {
            return "connection refused".to_owned();
        }
        text = cause.to_string();
        source = cause.source();
    }
    if let Some(shown) = confidant_display::certificate_problem(&text) {
        format!("TLS: {shown}")
    } else if text.contains("does not support TLS") {
        "TLS: the server does not speak TLS, see sslmode".to_owned()
    } else if text.contains("timed out") || text.contains("timeout") {
        "timed out".to_owned()
    } else if text.contains("password") || text.contains("authentication") {
        "no password was given".to_owned()
    } else {
        "connection lost".to_owned()
    }
}
