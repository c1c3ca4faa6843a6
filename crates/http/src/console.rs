//! What the administrator's page is told: how the server is, in counts. No content, no id of a person, no key, no token.
//!
//! Counts are of the whole server, as `/metrics` has them; sessions are those of the administrator's tenant. Easy to get wrong:
//! the page asks every few seconds. What takes long is kept for a minute, and looking is recorded once for a while.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::Response;
use confidant_channel::{Condition, Status};
use confidant_engine::audit::Action;
use confidant_engine::clock::Millis;
use confidant_engine::keys::KeyStatus;
use confidant_engine::rights::{Administrator, Census, Kept};
use confidant_engine::{Counts, Engine, Error, TenantId, TurnTimes};
use parking_lot::Mutex;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::{App, Shared};
use super::auth::{Admin, Caller};
use super::body::reply;
use super::error::ApiError;
use super::openapi::Failures;
use super::standing::{Damage, Stores};

/// The state of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Console {
    /// The program's version.
    version: &'static str,
    /// The server's time, in milliseconds since 1970.
    at: i64,
    /// Since when this process runs.
    started_at: i64,
    /// The kinds of store for data and keys; missing if they are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    stores: Option<Stores>,
    /// The parts that were checked: the store, the bus, workers, chats.
    checks: Vec<ConsoleCheck>,
    /// Parts of the data that cannot be opened.
    damaged: Vec<Damage>,
    /// The channels.
    channels: Vec<ConsoleChannel>,
    /// Turns since the start.
    turns: ConsoleTurns,
    /// How long turns ran since the start.
    turn_times: ConsoleTimes,
    /// How often what a turn needs was in memory since the start.
    cache: ConsoleCache,
    /// Times since the start that the key or the log of a session did not open.
    failed_openings: u64,
    /// Writes since the start that lost a race with another process and were retried.
    store_conflicts: u64,
    /// Sessions erased since the start.
    sessions_erased: u64,
    /// Sessions of the tenant; missing if they are not counted yet, or if counting failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<ConsoleSessions>,
    /// The state of the key ring; missing in the same cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<ConsoleKeys>,
    /// Why sessions and keys are missing, or are older than they should be: `counting`, or an error's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_counted: Option<&'static str>,
    /// Counts of other parts, such as open sockets.
    gauges: Vec<ConsoleGauge>,
}

/// Whether a part works.
#[derive(Debug, Serialize, ToSchema)]
struct ConsoleCheck {
    /// `store`, `bus`, `workers`, or another part's name.
    part: &'static str,
    /// Whether it works.
    ok: bool,
    /// What is wrong, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

/// The state of a channel.
#[derive(Debug, Serialize, ToSchema)]
struct ConsoleChannel {
    /// `discord`, `matrix`.
    platform: &'static str,
    /// Which one of several.
    label: String,
    /// `starting`, `up`, `down`, `refused` or `stopped`.
    #[schema(value_type = String)]
    condition: Condition,
    /// Since when, in milliseconds since 1970.
    since: i64,
    /// What is wrong, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
    /// Events that are not answered yet: the queue.
    backlog: u64,
    /// Events that were stored.
    received: u64,
    /// Events that were answered completely.
    answered: u64,
    /// Events whose reply could not be delivered.
    undelivered: u64,
    /// How often it had to reconnect.
    reconnects: u64,
}

/// Turns since the start, and those that run.
#[derive(Debug, Serialize, ToSchema)]
struct ConsoleTurns {
    /// Running now.
    running: u64,
    /// Accepted.
    accepted: u64,
    /// Answered.
    answered: u64,
    /// Ended without an answer.
    failed: u64,
    /// Stopped to wait for an approval.
    paused: u64,
    /// Cancelled.
    cancelled: u64,
    /// Answered from the log.
    replayed: u64,
    /// Interrupted and resumed.
    resumed: u64,
    /// Answered without memory, which could not be opened.
    degraded: u64,
    /// Tools called.
    tool_calls: u64,
}

/// How often something took how long.
#[derive(Debug, Serialize, ToSchema)]
struct ConsoleTimes {
    /// Upper bounds, in milliseconds.
    bounds_ms: Vec<u64>,
    /// How many took up to each bound and longer than the one before; the last one, longer than all.
    counts: Vec<u64>,
    /// The total duration, in milliseconds.
    total_ms: u64,
}

/// How often what a turn needs was in memory.
#[derive(Debug, Serialize, ToSchema)]
struct ConsoleCache {
    /// Turns that found their session in memory.
    warm: u64,
    /// Turns whose session was opened from the store.
    cold: u64,
    /// Turns of sealed chats for which the server still had the device's history.
    history_known: u64,
    /// Times that a device was asked for the history of a sealed chat.
    history_asked: u64,
}

/// The sessions of the tenant.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct ConsoleSessions {
    /// When they were counted, in milliseconds since 1970.
    counted_at: i64,
    /// By channel and place, the largest first. Those of small channels are together as `other`.
    by_channel: Vec<ConsoleSessionCount>,
    /// Keys of the whole key ring that do not open.
    unreadable: u64,
}

/// The sessions of one channel in one place.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct ConsoleSessionCount {
    /// The channel, such as `web`, `matrix` or an application's.
    channel: String,
    /// `store`, or `memory` where nothing is written.
    kept: &'static str,
    /// How many.
    sessions: u64,
}

/// The state of the key ring.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct ConsoleKeys {
    /// When it was looked at, in milliseconds since 1970.
    counted_at: i64,
    /// Master keys that the server holds: one, or two while a rotation is not done.
    masters: u64,
    /// Keys in the ring.
    keys: u64,
    /// Keys that an older master key seals. A rotation is done when there are none.
    under_others: u64,
    /// When the keys were last rotated, or the key ring was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    rotated_at: Option<i64>,
}

/// What another part counts.
#[derive(Debug, Serialize, ToSchema)]
struct ConsoleGauge {
    /// Its name in `/metrics`, without the program's.
    name: &'static str,
    /// What it counts.
    help: &'static str,
    /// How many there are now.
    value: u64,
}

/// Show the state of the server
///
/// For the administrator's page, `/console`. Counts only: no content, no person, no key. The first look of a token is recorded
/// in the audit log, and then one every 15 minutes.
#[utoipa::path(
    get, path = "/api/v1/console", operation_id = "console", tag = "server", security(("bearer" = [])),
    responses((status = 200, description = "The state of the server", body = Console), Failures)
)]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Admin { administrator, tenant }: Admin,
) -> Result<Response, ApiError> {
    app.watch.note(caller.token_id(), &administrator).await?;
    let (checks, (counted, not_counted)) = tokio::join!(checks(&app), counted(&app, tenant));
    let gauges = app.standing.components.iter().flat_map(|part| part.gauges());
    let counts = app.engine.counts();
    reply(&Console {
        version: env!("CARGO_PKG_VERSION"),
        at: app.now_ms(),
        started_at: app.watch.started_at.0,
        stores: app.standing.stores,
        checks,
        damaged: app.standing.damaged.clone(),
        channels: app.standing.channels.all().into_iter().map(ConsoleChannel::from).collect(),
        turns: ConsoleTurns::from(&counts),
        turn_times: ConsoleTimes::from(counts.took),
        cache: ConsoleCache::from(&counts),
        failed_openings: counts.unopened,
        store_conflicts: counts.conflicts,
        sessions_erased: counts.erased,
        sessions: counted.as_ref().map(|counted| counted.sessions.clone()),
        keys: counted.as_ref().map(|counted| counted.keys.clone()),
        not_counted,
        gauges: gauges
            .map(|gauge| ConsoleGauge { name: gauge.name, help: gauge.help, value: gauge.value })
            .collect(),
    })
}

/// Asks every part how it is, each for a moment only.
async fn checks(app: &Shared) -> Vec<ConsoleCheck> {
    let check = |part, outcome: Result<Result<(), String>, tokio::time::error::Elapsed>| {
        let slow = "it does not answer in time; hint: run `confidant doctor`".to_owned();
        let trouble = outcome.unwrap_or(Err(slow)).err();
        ConsoleCheck { part, ok: trouble.is_none(), trouble }
    };
    let store =
        tokio::time::timeout(PATIENCE, async { app.engine.ping().await.map_err(|error| error.to_string()) });
    let mut all = vec![check("store", store.await)];
    if !app.engine.is_listening() {
        let away = "it cannot be reached, so no turns arrive; hint: check the Redis of bus.url or store.url";
        all.push(ConsoleCheck { part: "bus", ok: false, trouble: Some(away.to_owned()) });
    }
    let workers =
        async { if app.engine.has_worker().await { Ok(()) } else { Err(Error::NoWorker.to_string()) } };
    all.push(check("workers", tokio::time::timeout(PATIENCE, workers).await));
    for part in &app.standing.components {
        all.push(check(part.name(), tokio::time::timeout(PATIENCE, part.ping()).await));
    }
    all
}

/// How long a part may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(3);

/// What takes longer to find out, kept for a while.
#[derive(Debug)]
pub(crate) struct Watch {
    started_at: Millis,
    counted: Mutex<Counted>,
    /// When each token's look was last recorded.
    seen: Mutex<HashMap<String, Instant>>,
}

#[derive(Debug, Default)]
struct Counted {
    last: HashMap<TenantId, (Instant, Outcome)>,
    /// Tenants that are being counted.
    busy: HashSet<TenantId>,
}

#[derive(Clone, Debug)]
struct Outcome {
    counted: Option<Arc<Found>>,
    failed: Option<&'static str>,
    /// How long it stands.
    stands: Duration,
}

#[derive(Debug)]
struct Found {
    sessions: ConsoleSessions,
    keys: ConsoleKeys,
}

impl Watch {
    pub(crate) fn new(started_at: Millis) -> Self {
        Self { started_at, counted: Mutex::default(), seen: Mutex::default() }
    }

    /// Records that somebody looks, unless that stands in the audit log already.
    async fn note(&self, token_id: &str, administrator: &Administrator) -> Result<(), ApiError> {
        let now = Instant::now();
        let is_known = {
            let mut seen = self.seen.lock();
            seen.retain(|_, at| now.duration_since(*at) < RECORDED_EVERY);
            seen.contains_key(token_id)
        };
        if !is_known {
            administrator.note_keys(Action::KeysViewed, 0).await?;
            self.seen.lock().insert(token_id.to_owned(), now);
        }
        Ok(())
    }
}

/// How long one record of a look stands for those that follow.
const RECORDED_EVERY: Duration = Duration::from_secs(15 * 60);

/// What was counted last, and what is wrong with it. Counts again if that is long ago, and waits for it a moment.
async fn counted(app: &App, tenant: TenantId) -> (Option<Arc<Found>>, Option<&'static str>) {
    let begins = {
        let mut counted = app.watch.counted.lock();
        let stands = counted.last.get(&tenant).is_some_and(|(at, last)| at.elapsed() < last.stands);
        !stands && counted.busy.insert(tenant.clone())
    };
    if begins {
        let busy = Busy { app: Arc::clone(app), tenant: tenant.clone() };
        let counting = tokio::spawn(async move {
            let Busy { app, tenant } = &busy;
            let began = Instant::now();
            let found = found(&app.engine, tenant, app.now_ms()).await;
            let mut counted = app.watch.counted.lock();
            let before = counted.last.remove(tenant).and_then(|(_, last)| last.counted);
            let failed = found.as_ref().err().map(Error::code);
            // A large keyring is not read all the time.
            let stands = STANDS.max(began.elapsed() * 20);
            let outcome = Outcome { counted: found.ok().map(Arc::new).or(before), failed, stands };
            counted.last.insert(tenant.clone(), (Instant::now(), outcome));
        });
        let _ = tokio::time::timeout(PATIENCE, counting).await;
    }
    let counted = app.watch.counted.lock();
    match counted.last.get(&tenant) {
        Some((_, Outcome { counted, failed, .. })) => (counted.clone(), *failed),
        None => (None, Some("counting")),
    }
}

/// A count that is under way, until it ends, however it ends.
struct Busy {
    app: App,
    tenant: TenantId,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.app.watch.counted.lock().busy.remove(&self.tenant);
    }
}

/// How long a count stands at least.
const STANDS: Duration = Duration::from_secs(60);

async fn found(engine: &Engine, tenant: &TenantId, now: i64) -> Result<Found, Error> {
    let status = engine.key_status().await?;
    let census = engine.census(tenant).await?;
    Ok(Found { sessions: sessions(census, now), keys: keys(&status, now) })
}

fn sessions(census: Census, counted_at: i64) -> ConsoleSessions {
    let mut all: Vec<_> = census.sessions.into_iter().collect();
    all.sort_by_key(|(_, sessions)| std::cmp::Reverse(*sessions));
    let small: u64 = all.iter().skip(MOST_CHANNELS).map(|(_, sessions)| sessions).sum();
    all.truncate(MOST_CHANNELS);
    let count = |((channel, kept), sessions)| {
        let kept = match kept {
            Kept::Stored => "store",
            Kept::Memory => "memory",
        };
        ConsoleSessionCount { channel, kept, sessions }
    };
    let mut by_channel: Vec<_> = all.into_iter().map(count).collect();
    if small > 0 {
        by_channel.push(ConsoleSessionCount { channel: "other".to_owned(), kept: "store", sessions: small });
    }
    ConsoleSessions { counted_at, by_channel, unreadable: census.unreadable }
}

/// Applications name their channels: a list of them may be long.
const MOST_CHANNELS: usize = 12;

fn keys(status: &KeyStatus, counted_at: i64) -> ConsoleKeys {
    ConsoleKeys {
        counted_at,
        masters: status.held.len() as u64,
        keys: status.keys,
        under_others: status.under_others,
        rotated_at: status.rotated_at.map(|at| at.0),
    }
}

impl From<Status> for ConsoleChannel {
    fn from(status: Status) -> Self {
        let Status { platform, label, condition, since, trouble, backlog, .. } = status;
        let Status { received, answered, undelivered, reconnects, .. } = status;
        let since = since.0;
        Self {
            platform,
            label,
            condition,
            since,
            trouble,
            backlog,
            received,
            answered,
            undelivered,
            reconnects,
        }
    }
}

impl From<&Counts> for ConsoleTurns {
    fn from(counts: &Counts) -> Self {
        Self {
            running: counts.running,
            accepted: counts.accepted,
            answered: counts.answered,
            failed: counts.failed,
            paused: counts.paused,
            cancelled: counts.cancelled,
            replayed: counts.replayed,
            resumed: counts.resumed,
            degraded: counts.degraded,
            tool_calls: counts.tool_calls,
        }
    }
}

impl From<TurnTimes> for ConsoleTimes {
    fn from(times: TurnTimes) -> Self {
        let bounds_ms = TurnTimes::BOUNDS_MS.to_vec();
        Self { bounds_ms, counts: times.counts.to_vec(), total_ms: times.total_ms }
    }
}

impl From<&Counts> for ConsoleCache {
    fn from(counts: &Counts) -> Self {
        let Counts { warm, cold, history_known, history_asked, .. } = *counts;
        Self { warm, cold, history_known, history_asked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_channels_are_together() {
        let entry = |n: u64| ((format!("app{n}"), Kept::Stored), n);
        let census = Census { sessions: (1..=15).map(entry).collect(), unreadable: 2 };
        let sessions = sessions(census, 7);
        assert_eq!((sessions.by_channel.len(), sessions.unreadable), (MOST_CHANNELS + 1, 2));
        assert_eq!((sessions.by_channel[0].channel.as_str(), sessions.by_channel[0].sessions), ("app15", 15));
        let last = sessions.by_channel.last().unwrap();
        assert_eq!((last.channel.as_str(), last.sessions), ("other", 1 + 2 + 3));
    }
}
