//! The engine on Redis and on PostgreSQL: many conversations at once, and one turn after another beside the floor.
//!
//! A turn is loading, appending two messages of 300 bytes, saving, sealed (`Session::record_exchange`); a whole turn is what
//! a person's is. The floor is one round trip that writes two sealed records on the same client library: on Redis a
//! pipeline of one HSET and one EXPIRE, on PostgreSQL an upsert that is its own transaction. It keeps no version, no chain and
//! no audit record. CPU is of this process; what the server takes is counted apart, by whoever starts it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use confidant_engine::storage::{PostgresAddress, PostgresSettings, RedisAddress, RedisSettings};
use confidant_engine::{Engine, Session, Storage, TenantId};
use confidant_seal::{Context, Key, Suite, seal};
use serde::Serialize;
use serde_json::{Value, json};

use crate::folder::{self, Kind, Said};
use crate::meter::{Cost, Meter, Reading, middle, millis, rounded};
use crate::words::Words;

/// Where to measure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers {
    pub(crate) redis: Option<String>,
    pub(crate) postgres: Option<String>,
}

impl Servers {
    pub(crate) fn any(&self) -> bool {
        self.redis.is_some() || self.postgres.is_some()
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Plan {
    sessions: usize,
    messages: usize,
    turns: usize,
    rounds: usize,
}

/// Measures on every server that was named.
pub(crate) async fn measure(servers: Servers, quick: bool) -> Result<Value> {
    let plan = match quick {
        true => Plan { sessions: 4, messages: 20, turns: 4, rounds: 1 },
        false => Plan { sessions: 64, messages: 100, turns: 60, rounds: 3 },
    };
    let mut document = json!({ "quick": quick, "sessions": plan.sessions, "messages": plan.messages });
    if let Some(url) = &servers.redis {
        let settings = RedisSettings::new(parsed(RedisAddress::parse(url))?, TenantId::new("acme")?);
        let storage = || async { Ok(Storage::redis(&settings).await?) };
        document["redis"] = on_server(plan, storage, Trips::on_redis(url).await?).await?;
        let mut floor = RedisFloor::connect(url).await?;
        document["redis"]["floor"] = json!(beside(plan, storage, &mut floor).await?);
    }
    if let Some(url) = &servers.postgres {
        let settings = PostgresSettings::new(parsed(PostgresAddress::parse(url))?);
        let storage = || async { Ok(Storage::postgres(&settings).await?) };
        document["postgres"] = on_server(plan, storage, Trips::None).await?;
        let mut floor = PostgresFloor::connect(url).await?;
        document["postgres"]["floor"] = json!(beside(plan, storage, &mut floor).await?);
    }
    Ok(document)
}

fn parsed<T>(address: std::result::Result<T, String>) -> Result<T> {
    address.map_err(|error| anyhow::anyhow!(error))
}

/// Everything about one server, the floor aside.
async fn on_server<S: Future<Output = Result<Storage>>>(
    plan: Plan,
    storage: impl Fn() -> S,
    mut trips: Trips,
) -> Result<Value> {
    let mut found = json!({});
    for (name, kind) in [("append", Kind::Append), ("whole", Kind::Whole)] {
        let engine = folder::open_on(storage().await?, plan.sessions + 1).await?;
        let sessions = sessions(&engine, plan.sessions, name)?;
        at_once(&sessions, plan.messages / 2, Kind::Append).await?;
        found[name]["at_once"] = json!(busiest(&sessions, plan, kind).await?);
        let before = trips.count().await?;
        found[name]["alone"] = json!(alone(&sessions, plan.turns.min(20), kind).await?);
        if let (Some(before), Some(after)) = (before, trips.count().await?) {
            // With what the process does now and then beside turns (its leases), which is little.
            let turns = (sessions.len() * plan.turns.min(20)) as f64;
            found[name]["round_trips_a_turn"] = json!(rounded((after - before) as f64 / turns));
        }
        drop(sessions);
        folder::close(engine).await;
        // One session is kept warm, and another is always in between.
        let engine = folder::open_on(storage().await?, 1).await?;
        let sessions = self::sessions(&engine, plan.sessions, name)?;
        found[name]["cold"] = json!(alone(&sessions, 2, kind).await?);
        drop(sessions);
        folder::close(engine).await;
    }
    Ok(found)
}

fn sessions(engine: &Engine, count: usize, name: &str) -> Result<Vec<Session>> {
    (0..count).map(|number| folder::session_in(engine, name, number)).collect()
}

/// Many conversations at once.
#[derive(Debug, Serialize)]
struct Busy {
    turns: usize,
    turns_a_second: f64,
    cpu_ms: f64,
    wall_p50_ms: f64,
    wall_p99_ms: f64,
}

async fn busiest(sessions: &[Session], plan: Plan, kind: Kind) -> Result<Busy> {
    let mut rounds = Vec::new();
    for _ in 0..plan.rounds {
        rounds.push(at_once(sessions, plan.turns, kind).await?);
    }
    middle(rounds, |busy| busy.cpu_ms).context("at least one round")
}

/// `turns` turns of every session, all sessions side by side.
async fn at_once(sessions: &[Session], turns: usize, kind: Kind) -> Result<Busy> {
    let mut words = Words::new();
    let mut running = tokio::task::JoinSet::new();
    let gate = Arc::new(tokio::sync::Barrier::new(sessions.len() + 1));
    for session in sessions {
        let said: Vec<Said> = (0..turns).map(|_| Said::new(&mut words)).collect();
        let (session, gate) = (session.clone(), Arc::clone(&gate));
        running.spawn(async move {
            gate.wait().await;
            let mut took = Vec::with_capacity(said.len());
            for one in &said {
                let began = std::time::Instant::now();
                folder::turn(&session, one, kind).await?;
                took.push(began.elapsed());
            }
            anyhow::Ok(took)
        });
    }
    gate.wait().await;
    let before = Reading::now();
    let mut took: Vec<Duration> = Vec::new();
    while let Some(done) = running.join_next().await {
        took.extend(done??);
    }
    let all = Reading::now().since(before);
    took.sort_unstable();
    let at = |share: usize| took.get(took.len() * share / 100).map_or(0.0, |one| rounded(millis(*one)));
    let count = took.len();
    Ok(Busy {
        turns: count,
        turns_a_second: (count as f64 / all.wall_ms() * 1e3).round(),
        cpu_ms: rounded(all.cpu_ms() / count.max(1) as f64),
        wall_p50_ms: at(50),
        wall_p99_ms: at(99),
    })
}

/// One turn after another, each of the next conversation.
async fn alone(sessions: &[Session], turns: usize, kind: Kind) -> Result<Cost> {
    let mut words = Words::new();
    let mut meter = Meter::start()?;
    for _ in 0..turns {
        for session in sessions {
            let said = Said::new(&mut words);
            meter.begin();
            folder::turn(session, &said, kind).await?;
            meter.end();
        }
    }
    Ok(meter.finish()?.0)
}

/// Ours and the floor by turns, a few of one and a few of the other: what a busy machine does to the one it does to the
/// other.
#[derive(Debug, Serialize)]
struct Beside {
    cpu_ratio: f64,
    wall_ratio: f64,
    ours_cpu_ms: f64,
    floor_cpu_ms: f64,
    ours_wall_p50_ms: f64,
    floor_wall_p50_ms: f64,
}

async fn beside<S: Future<Output = Result<Storage>>>(
    plan: Plan,
    storage: impl Fn() -> S,
    floor: &mut impl Floor,
) -> Result<Beside> {
    let engine = folder::open_on(storage().await?, plan.sessions + 1).await?;
    let sessions = sessions(&engine, plan.sessions, "append")?;
    alone(&sessions, 1, Kind::Append).await?;
    let (mut words, mut ours, mut bare) = (Words::new(), Vec::new(), Vec::new());
    for _ in 0..plan.turns {
        let said: Vec<Said> = sessions.iter().map(|_| Said::new(&mut words)).collect();
        let mut meter = Meter::start()?;
        for (session, said) in sessions.iter().zip(&said) {
            meter.begin();
            folder::turn(session, said, Kind::Append).await?;
            meter.end();
        }
        ours.push(meter.finish()?.0);
        let said: Vec<[Vec<u8>; 2]> = sessions.iter().map(|_| crate::bare::entries(&mut words)).collect();
        let mut meter = Meter::start()?;
        for (number, two) in said.iter().enumerate() {
            meter.begin();
            floor.turn(number, two).await?;
            meter.end();
        }
        bare.push(meter.finish()?.0);
    }
    drop(sessions);
    folder::close(engine).await;
    let mean = |costs: &[Cost]| costs.iter().map(|cost| cost.cpu_ms).sum::<f64>() / costs.len().max(1) as f64;
    let wall = |costs: Vec<Cost>| middle(costs, |cost| cost.wall_ms).map_or(0.0, |cost| cost.wall_ms);
    let (ours_cpu, floor_cpu) = (mean(&ours), mean(&bare));
    let (ours_wall, floor_wall) = (wall(ours), wall(bare));
    Ok(Beside {
        cpu_ratio: rounded(ours_cpu / floor_cpu),
        wall_ratio: rounded(ours_wall / floor_wall),
        ours_cpu_ms: rounded(ours_cpu),
        floor_cpu_ms: rounded(floor_cpu),
        ours_wall_p50_ms: ours_wall,
        floor_wall_p50_ms: floor_wall,
    })
}

/// One bare round trip.
trait Floor {
    async fn turn(&mut self, number: usize, two: &[Vec<u8>; 2]) -> Result<()>;
}

struct RedisFloor {
    connection: redis::aio::MultiplexedConnection,
    key: Key,
    seq: u64,
}

impl RedisFloor {
    async fn connect(url: &str) -> Result<Self> {
        let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        Ok(Self { connection, key: Key::random(), seq: 0 })
    }
}

impl Floor for RedisFloor {
    async fn turn(&mut self, number: usize, two: &[Vec<u8>; 2]) -> Result<()> {
        self.seq += 1;
        let name = format!("bench:floor:{number}");
        let sealed = two.each_ref().map(|one| seal(&self.key, SUITE, &CONTEXT, 1, one));
        let mut pipeline = redis::pipe();
        pipeline.cmd("HSET").arg(&name);
        for (place, one) in sealed.iter().enumerate() {
            pipeline.arg(format!("{}:{place}", self.seq)).arg(one.as_bytes());
        }
        pipeline.ignore().cmd("EXPIRE").arg(&name).arg(3600).ignore();
        Ok(pipeline.query_async(&mut self.connection).await?)
    }
}

struct PostgresFloor {
    client: tokio_postgres::Client,
    insert: tokio_postgres::Statement,
    key: Key,
    seq: i64,
}

impl PostgresFloor {
    async fn connect(url: &str) -> Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        let made = "CREATE TABLE IF NOT EXISTS bench_floor (session int8, seq int8, sealed bytea, PRIMARY KEY (session, seq))";
        client.batch_execute(made).await?;
        let insert = "INSERT INTO bench_floor VALUES ($1, $2, $3), ($1, $2 + 1, $4)
                      ON CONFLICT (session, seq) DO UPDATE SET sealed = excluded.sealed";
        let insert = client.prepare(insert).await?;
        Ok(Self { client, insert, key: Key::random(), seq: 0 })
    }
}

impl Floor for PostgresFloor {
    async fn turn(&mut self, number: usize, two: &[Vec<u8>; 2]) -> Result<()> {
        self.seq += 2;
        let [one, other] = two.each_ref().map(|one| seal(&self.key, SUITE, &CONTEXT, 1, one));
        let session = i64::try_from(number)?;
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&session, &self.seq, &one.as_bytes(), &other.as_bytes()];
        self.client.execute(&self.insert, &values).await?;
        Ok(())
    }
}

/// How often a server has heard from its clients.
enum Trips {
    Redis(redis::aio::MultiplexedConnection),
    None,
}

impl Trips {
    async fn on_redis(url: &str) -> Result<Self> {
        Ok(Self::Redis(redis::Client::open(url)?.get_multiplexed_async_connection().await?))
    }

    /// Reads of a client's socket: one client that waits for each answer has one for each round trip.
    async fn count(&mut self) -> Result<Option<u64>> {
        let Self::Redis(connection) = self else { return Ok(None) };
        let info: String = redis::cmd("INFO").arg("stats").query_async(connection).await?;
        let reads = info.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
        Ok(Some(reads.context("Redis counts no reads")?.trim().parse()?))
    }
}

const SUITE: Suite = Suite::ChaCha20Poly1305;
const CONTEXT: Context<'_> = crate::bare::CONTEXT;
