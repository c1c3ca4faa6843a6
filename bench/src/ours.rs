//! The engine on SQLite: what a turn costs at each length, and what a conversation takes.
//!
//! Warm turns are measured while conversations of n messages grow to 2n, so that exactly the folds of one doubling are
//! in the mean; `at_length` has the turns within 2 % of n, which is what the peers' numbers are. Cold turns find their
//! session not warm, since only one is kept warm and another is always in between; they are within 2 % of n, as a
//! cold turn's cost does grow with the length.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use confidant_engine::storage::Durability;
use confidant_engine::{Engine, Session};
use serde::Serialize;

use crate::bare::Bare;
use crate::folder::{self, Kind, Said};
use crate::meter::{Cost, Meter, Reading, Sample, Share, middle, rounded, wchar};
use crate::words::Words;

/// How much of one length is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) messages: usize,
    /// Conversations that double, warm.
    pub(crate) warm: usize,
    /// Conversations that take cold turns, at least two; each takes those that fit into 2 % of its length.
    pub(crate) cold: usize,
    pub(crate) kind: Kind,
}

impl Plan {
    /// Whole turns cost more, and fewer of them tell as much.
    pub(crate) fn of_whole_turns(self) -> Self {
        Self { warm: self.warm.div_ceil(5), cold: (self.cold / 4).max(2), kind: Kind::Whole, ..self }
    }
}

/// What was measured at one length.
#[derive(Debug, Serialize)]
pub(crate) struct Point {
    messages: usize,
    warm: Cost,
    /// The warm turns within 2 % of the length.
    at_length: Share,
    cold: Cost,
    /// One conversation alone, with the empty database.
    stored_bytes: u64,
    /// One conversation among many.
    stored_bytes_each: u64,
}

/// Conversations of one length, written once and copied for each measurement.
#[derive(Debug)]
pub(crate) struct Seeded {
    plan: Plan,
    warm: PathBuf,
    cold: PathBuf,
    stored_bytes: u64,
    stored_bytes_each: u64,
}

impl Seeded {
    pub(crate) async fn new(folder: &Path, plan: Plan, empty: u64) -> Result<Self> {
        let (warm, cold) = (folder.join("warm"), folder.join("cold"));
        // The turn that warms a conversation up is its last before it is measured.
        folder::fill(&warm, plan.warm, plan.messages - 2, plan.kind).await?;
        folder::fill(&cold, plan.cold, plan.messages, plan.kind).await?;
        let one = folder.join("one");
        folder::fill(&one, 1, plan.messages, plan.kind).await?;
        let stored_bytes = folder::stored_bytes(&one)?;
        let stored_bytes_each = (folder::stored_bytes(&cold)? - empty) / plan.cold as u64;
        Ok(Self { plan, warm, cold, stored_bytes, stored_bytes_each })
    }

    /// All of one length and durability.
    pub(crate) async fn measure(
        &self,
        scratch: &Path,
        durability: Durability,
        rounds: usize,
    ) -> Result<Point> {
        let (mut warm, mut cold) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let folder = scratch.join(round.to_string());
            folder::copy(&self.warm, &folder.join("warm"))?;
            warm.push(self.warm(&folder.join("warm"), durability).await?);
            folder::copy(&self.cold, &folder.join("cold"))?;
            cold.push(self.cold(&folder.join("cold"), durability).await?);
            std::fs::remove_dir_all(folder)?;
        }
        let (warm, at_length) = middle(warm, |(cost, _)| cost.cpu_ms).context("at least one round")?;
        let cold = middle(cold, |cost| cost.cpu_ms).context("at least one round")?;
        let Self { plan, stored_bytes, stored_bytes_each, .. } = *self;
        Ok(Point { messages: plan.messages, warm, at_length, cold, stored_bytes, stored_bytes_each })
    }

    async fn warm(&self, folder: &Path, durability: Durability) -> Result<(Cost, Share)> {
        let Plan { messages, warm, kind, .. } = self.plan;
        let engine = folder::open(folder, durability, warm + 1).await?;
        let sessions = sessions(&engine, warm)?;
        let mut words = Words::new();
        for session in &sessions {
            folder::turn(session, &Said::new(&mut words), kind).await?;
        }
        let (cost, samples) = rotate(&engine, &sessions, messages / 2, &mut words, kind).await?;
        let near = turns_near(messages) * warm;
        expect_length(&sessions[0], 2 * messages).await?;
        drop(sessions);
        folder::close(engine).await;
        Ok((cost, Share::of(&samples[..near])))
    }

    async fn cold(&self, folder: &Path, durability: Durability) -> Result<Cost> {
        let Plan { messages, cold, kind, .. } = self.plan;
        let engine = folder::open(folder, durability, 1).await?;
        let sessions = sessions(&engine, cold)?;
        // The engine's own first time (connections, statements) is not a session's.
        folder::turn(&folder::session(&engine, usize::MAX)?, &Said::new(&mut Words::new()), kind).await?;
        let turns = turns_near(messages);
        let (cost, _) = rotate(&engine, &sessions, turns, &mut Words::new(), kind).await?;
        expect_length(&sessions[0], messages + 2 * turns).await?;
        drop(sessions);
        folder::close(engine).await;
        Ok(cost)
    }
}

/// Ours beside the floor, in one process and by turns: a few of one, a few of the other. What a busy machine does to
/// the one it does to the other, so that the ratio holds where milliseconds do not.
#[derive(Debug, Serialize)]
pub(crate) struct Beside {
    messages: usize,
    /// All of ours ÷ all of the floor's, folds and checkpoints included; the median of the rounds.
    ratio: f64,
    /// The median block's.
    ratio_p50: f64,
    ours_cpu_ms: f64,
    bare_cpu_ms: f64,
    ours_wchar: u64,
}

impl Seeded {
    pub(crate) async fn beside(
        &self,
        scratch: &Path,
        durability: Durability,
        rounds: usize,
    ) -> Result<Beside> {
        let mut all = Vec::new();
        for round in 0..rounds {
            let folder = scratch.join(round.to_string());
            folder::copy(&self.warm, &folder)?;
            all.push(self.beside_once(&folder, durability).await?);
            std::fs::remove_dir_all(folder)?;
        }
        middle(all, |beside| beside.ratio).context("at least one round")
    }

    async fn beside_once(&self, folder: &Path, durability: Durability) -> Result<Beside> {
        let Plan { messages, warm, kind, .. } = self.plan;
        let engine = folder::open(folder, durability, warm + 1).await?;
        let sessions = sessions(&engine, warm)?;
        let mut words = Words::new();
        for session in &sessions {
            folder::turn(session, &Said::new(&mut words), kind).await?;
        }
        let mut bare = Bare::open(folder, durability)?;
        bare.round(100)?;
        let order: Vec<&Session> =
            std::iter::repeat_n(&sessions, messages / 2).flat_map(|sessions| sessions.iter()).collect();
        let (mut ours, mut floor, mut wchar, mut ratios) = (0.0, 0.0, 0, Vec::new());
        let mut turns = 0;
        for block in order.chunks(BLOCK) {
            turns += block.len();
            let said: Vec<Said> = block.iter().map(|_| Said::new(&mut words)).collect();
            let mut meter = Meter::start()?;
            for (session, said) in block.iter().zip(&said) {
                meter.begin();
                folder::turn(session, said, kind).await?;
                meter.end();
            }
            if turns == order.len() {
                engine.sweep().await?;
            }
            let (one, _) = meter.finish()?;
            let other = bare.round(block.len())?;
            ours += one.cpu_ms * block.len() as f64;
            floor += other.cpu_ms * block.len() as f64;
            wchar += one.wchar * block.len() as u64;
            ratios.push(one.cpu_ms / other.cpu_ms);
        }
        ratios.sort_by(f64::total_cmp);
        drop(order);
        drop(sessions);
        folder::close(engine).await;
        Ok(Beside {
            messages,
            ratio: rounded(ours / floor),
            ratio_p50: rounded(ratios[ratios.len() / 2]),
            ours_cpu_ms: rounded(ours / turns as f64),
            bare_cpu_ms: rounded(floor / turns as f64),
            ours_wchar: wchar / turns as u64,
        })
    }
}

/// Turns of one before it is the other's turn.
const BLOCK: usize = 25;

/// What a lone conversation has cost when it reached a length, turn by turn from nothing.
#[derive(Debug, Serialize)]
pub(crate) struct Grown {
    variant: &'static str,
    messages: usize,
    stored_bytes: u64,
    wchar_total: u64,
    cpu_ms_total: f64,
}

/// Grows one conversation through `lengths`.
pub(crate) async fn grow(
    folder: &Path,
    variant: &'static str,
    durability: Durability,
    lengths: &[usize],
) -> Result<Vec<Grown>> {
    let engine = folder::open(folder, durability, 2).await?;
    let session = folder::session(&engine, 0)?;
    let mut words = Words::new();
    let (mut grown, mut messages) = (Vec::new(), 0);
    let (mut cpu_ms_total, mut wchar_total) = (0.0, 0);
    for &target in lengths {
        let said: Vec<Said> = (messages..target).step_by(2).map(|_| Said::new(&mut words)).collect();
        let (before, written) = (Reading::now(), wchar()?);
        for one in &said {
            folder::turn(&session, one, Kind::Append).await?;
        }
        cpu_ms_total += Reading::now().since(before).cpu_ms();
        wchar_total += wchar()? - written;
        messages = target;
        let stored_bytes = folder::stored_bytes(folder)?;
        grown.push(Grown {
            variant,
            messages,
            stored_bytes,
            wchar_total,
            cpu_ms_total: rounded(cpu_ms_total),
        });
    }
    folder::close(engine).await;
    Ok(grown)
}

/// Warm turns and nothing else: ten conversations from 100 messages on.
pub(crate) async fn spin(folder: &Path, turns: usize, kind: Kind) -> Result<Cost> {
    folder::fill(folder, SPINNING, 100, Kind::Append).await?;
    let engine = folder::open(folder, Durability::Process, SPINNING + 1).await?;
    let sessions = sessions(&engine, SPINNING)?;
    let (cost, _) = rotate(&engine, &sessions, turns / SPINNING, &mut Words::new(), kind).await?;
    folder::close(engine).await;
    Ok(cost)
}

const SPINNING: usize = 10;

/// Turns with pauses between them, as people take them.
#[derive(Debug, Serialize)]
pub(crate) struct Spaced {
    variant: &'static str,
    messages: usize,
    pause_ms: u64,
    #[serde(flatten)]
    cost: Cost,
}

/// Measures turns so far apart that each pays alone for what busy ones share: the write of its anchor to the keyring.
pub(crate) async fn spaced(
    folder: &Path,
    variant: &'static str,
    durability: Durability,
    turns: usize,
) -> Result<Spaced> {
    let engine = folder::open(folder, durability, 2).await?;
    let session = folder::session(&engine, 0)?;
    let mut words = Words::new();
    for _ in 0..SPACED_AT / 2 {
        folder::turn(&session, &Said::new(&mut words), Kind::Append).await?;
    }
    tokio::time::sleep(PAUSE).await;
    let mut meter = Meter::start()?;
    for _ in 0..turns {
        let said = Said::new(&mut words);
        meter.begin();
        folder::turn(&session, &said, Kind::Append).await?;
        meter.end();
        tokio::time::sleep(PAUSE).await;
    }
    let (cost, _) = meter.finish()?;
    folder::close(engine).await;
    let pause_ms = u64::try_from(PAUSE.as_millis()).unwrap_or(u64::MAX);
    Ok(Spaced { variant, messages: SPACED_AT, pause_ms, cost })
}

/// Longer than anchors gather.
const PAUSE: Duration = Duration::from_millis(300);
const SPACED_AT: usize = 20;

/// What an engine's folder takes before anything was said.
pub(crate) async fn empty_bytes(folder: &Path) -> Result<u64> {
    folder::fill(folder, 0, 0, Kind::Append).await?;
    folder::stored_bytes(folder)
}

fn sessions(engine: &Engine, count: usize) -> Result<Vec<Session>> {
    (0..count).map(|number| folder::session(engine, number)).collect()
}

/// `turns` turns of every session, each session once in every rotation, and the removal of what folds left behind.
async fn rotate(
    engine: &Engine,
    sessions: &[Session],
    turns: usize,
    words: &mut Words,
    kind: Kind,
) -> Result<(Cost, Vec<Sample>)> {
    let said: Vec<Said> = (0..turns * sessions.len()).map(|_| Said::new(words)).collect();
    let mut said = said.iter();
    let mut meter = Meter::start()?;
    for _ in 0..turns {
        for (session, said) in sessions.iter().zip(&mut said) {
            meter.begin();
            folder::turn(session, said, kind).await?;
            meter.end();
        }
    }
    // A server does this every minute; here it is paid for by the turns that made it necessary.
    engine.sweep().await?;
    meter.finish()
}

/// How many turns a conversation takes while it is within 2 % of its length; at least one.
fn turns_near(messages: usize) -> usize {
    (messages / 100).max(1)
}

async fn expect_length(session: &Session, messages: usize) -> Result<()> {
    let export = session.export().await?.context("the session is there")?;
    let found = export.messages.len();
    anyhow::ensure!(found == messages, "{found} messages where {messages} were written");
    Ok(())
}
