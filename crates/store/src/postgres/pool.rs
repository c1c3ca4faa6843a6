//! Connections: a few, lent to whoever has something to ask, made again when they break.
//!
//! Everything here is one statement, and so one transaction and one round trip. What was under way when a connection broke,
//! or lost a deadlock, is sent once more: every statement that writes can be. What is easy to get wrong: a write whose reply
//! is lost may have happened, so only one that was never sent may be reported as not written.

use std::collections::HashMap;
use std::time::Duration;

use confidant_display::debug_without_content;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, NoTls, Row, Statement};

use super::PostgresSettings;
use super::address::Tls;
use super::tls::MakeTls;
use crate::Result;
use crate::error::StoreError;

/// The longest that connecting may take.
const CONNECT: Duration = Duration::from_secs(3);
/// How often a connection that nobody uses is asked whether it stands, and how long the network may leave what was sent
/// unacknowledged: without an end to that, a server that vanished is waited for by the quarter of an hour.
const ASKED_EVERY: Duration = Duration::from_secs(10);
const UNACKNOWLEDGED: Duration = Duration::from_secs(8);
/// The longest that a statement may take; the server keeps a shorter limit of its own.
pub(super) const ANSWER: Duration = Duration::from_secs(15);
/// How long a read looks for a connection before it gives up: a turn goes on without its memory then.
const READ_PATIENCE: Duration = Duration::from_secs(2);
/// How long a write does: what it would lose is worth more.
const WRITE_PATIENCE: Duration = Duration::from_secs(6);
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What a statement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    Reading,
    Writing,
}

/// Arguments of a statement.
pub(super) type Args<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The connections of a process.
pub(super) struct Pool {
    config: Config,
    tls: Option<MakeTls>,
    permits: Semaphore,
    idle: Mutex<Vec<Connected>>,
    pub(super) schema: String,
}

/// A connection, with the statements that it knows.
struct Connected {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

/// Why a try did not work.
enum Failed {
    /// No connection could be made.
    Unsent(Error),
    /// Nor was there an answer to the attempt: the driver's own limit ends where the server has taken the call.
    Unanswered,
    /// It was sent.
    Sent(Error),
    /// No reply within the time there is.
    Silent,
}

impl Pool {
    /// Prepares connections. Does not connect yet.
    pub(super) fn new(settings: &PostgresSettings) -> Result<Self> {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if settings.schema.is_empty() || !settings.schema.chars().all(word) {
            return Err(StoreError::Mismatch(
                "store.schema is not a plain word; hint: use lower-case letters, digits and underscores"
                    .to_owned(),
            ));
        }
        let mut config = settings.address.config.clone();
        // The system's, unless a statement narrows its transaction to a tenant.
        let options = format!(
            "-c search_path={} -c confidant.tenant=* -c confidant.tenant_id=* -c statement_timeout=10000 -c lock_timeout=5000",
            settings.schema
        );
        // Where several hosts are given, one that is silent leaves time for the next.
        let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(u32::MAX);
        let each = if hosts > 1 { READ_PATIENCE / hosts } else { CONNECT };
        config.options(&options).application_name("confidant").connect_timeout(each);
        config.keepalives(true).keepalives_idle(ASKED_EVERY).keepalives_interval(ASKED_EVERY / 5);
        config.keepalives_retries(3).tcp_user_timeout(UNACKNOWLEDGED);
        let tls = match settings.address.tls {
            Tls::No => None,
            Tls::Verified => Some(MakeTls::new(settings.ca.as_deref()).ok_or_else(|| {
                StoreError::Mismatch(
                    "the certificates in store.ca_file cannot be read; \
                     hint: the file must hold certificates in PEM format"
                        .to_owned(),
                )
            })?),
        };
        let permits = Semaphore::new(settings.connections.max(1));
        Ok(Self { config, tls, permits, idle: Mutex::default(), schema: settings.schema.clone() })
    }

    /// Runs a statement and gives its rows.
    pub(super) async fn query(&self, what: For, sql: &'static str, args: Args<'_>) -> Result<Vec<Row>> {
        self.try_query(what, sql, args).await?.map_err(|error| failure(&error))
    }

    /// The same; what the server refuses for a reason that the caller may know is given as it is.
    pub(super) async fn try_query(
        &self,
        what: For,
        sql: &'static str,
        args: Args<'_>,
    ) -> Result<std::result::Result<Vec<Row>, Error>> {
        let patience = if what == For::Reading { READ_PATIENCE } else { WRITE_PATIENCE };
        let deadline = Instant::now() + patience;
        let (mut sent, mut pause, mut followed) = (false, SHORTEST_PAUSE, false);
        loop {
            let failed = match self.once(deadline, sql, args).await? {
                Ok(rows) => return Ok(Ok(rows)),
                Err(failed) => failed,
            };
            // It led before, and follows now: another may lead at the same address. Once, since it may just be read-only.
            if matches!(&failed, Failed::Sent(error) if is_read_only(error)) && !followed {
                followed = true;
                continue;
            }
            let lost = match &failed {
                Failed::Silent => true,
                Failed::Sent(error) => error.is_closed() || error.code().is_none(),
                Failed::Unsent(_) | Failed::Unanswered => false,
            };
            sent |= lost;
            let again = match &failed {
                Failed::Silent | Failed::Unanswered => true,
                Failed::Sent(error) | Failed::Unsent(error) => lost || passes(error),
            };
            if again && Instant::now() + pause < deadline {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            return match failed {
                _ if sent && what == For::Writing => Err(StoreError::Uncertain),
                Failed::Silent | Failed::Unanswered => Err(timed_out()),
                Failed::Unsent(error) => Err(failure(&error)),
                Failed::Sent(error) if lost => Err(failure(&error)),
                Failed::Sent(error) => Ok(Err(error)),
            };
        }
    }

    /// A connection of its own, for what is more than one statement.
    pub(super) async fn connect_apart(&self) -> Result<Client> {
        match timeout(CONNECT, self.connect()).await {
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
    ) -> Result<std::result::Result<Vec<Row>, Failed>> {
        let permit = timeout_at(deadline, self.permits.acquire()).await.map_err(|_| StoreError::Busy)?;
        let _permit = permit.map_err(|_| StoreError::Busy)?;
        let idle = self.lock().pop();
        let mut connected = match idle.filter(|idle| !idle.client.is_closed()) {
            Some(connected) => connected,
            None => match timeout_at(deadline.min(Instant::now() + CONNECT), self.connect()).await {
                Ok(Ok(client)) => Connected { client, statements: HashMap::new() },
                Ok(Err(error)) => return Ok(Err(Failed::Unsent(error))),
                Err(_) => return Ok(Err(Failed::Unanswered)),
            },
        };
        let asked = timeout(ANSWER, connected.query(sql, args)).await;
        if matches!(&asked, Ok(Err(error)) if is_read_only(error)) {
            // The others lead to the same server.
            self.lock().clear();
        } else if asked.is_ok() && !connected.client.is_closed() {
            // One that was not answered may be answered later, in the place of something else.
            self.lock().push(connected);
        }
        Ok(match asked {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(Failed::Sent(error)),
            Err(_) => Err(Failed::Silent),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connected>> {
        self.idle.lock()
    }
}

impl Connected {
    async fn query(&mut self, sql: &'static str, args: Args<'_>) -> std::result::Result<Vec<Row>, Error> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(sql).await?;
                self.statements.insert(sql, statement.clone());
                statement
            }
        };
        self.client.query(&statement, args).await
    }
}

debug_without_content!(Pool);

pub(super) fn timed_out() -> StoreError {
    StoreError::Unreachable("timed out".to_owned())
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

fn is_read_only(error: &Error) -> bool {
    error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
}

/// The error in our words. Only codes: a server's message may quote a value.
pub(super) fn failure(error: &Error) -> StoreError {
    let Some(code) = error.code() else { return StoreError::Unreachable(why_not(error)) };
    let is = |codes: &[SqlState]| codes.contains(code);
    if is(&[SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY, SqlState::INSUFFICIENT_RESOURCES]) {
        StoreError::Full
    } else if is(&[SqlState::READ_ONLY_SQL_TRANSACTION]) {
        StoreError::ReadOnly
    } else if is(&[
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ]) {
        StoreError::Refused(code.code().to_owned())
    } else if is(&[SqlState::INVALID_CATALOG_NAME]) {
        StoreError::Mismatch(
            "the database in store.url does not exist; hint: create it with createdb".to_owned(),
        )
    } else if is(&[SqlState::CANNOT_CONNECT_NOW, SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN]) {
        StoreError::Unreachable("the server is starting or stopping".to_owned())
    } else if is(&[
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::TOO_MANY_CONNECTIONS,
    ]) {
        StoreError::Busy
    } else {
        StoreError::Failed(format!("PostgreSQL: {}", code.code()))
    }
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
    if let Some(shown) = crate::certificates::shown(&text) {
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
