//! Measures Confidant and prints one JSON document: `ours`, `bare`, `tokenizer`, `cold_open`, `startup`.
//!
//! The shape is that of `bench/peers/*.py`, which measure the same task, and what `bench/plot.py` draws; `scripts/bench`
//! puts them together. Ours and the bare floor are measured in turns, length by length, so that a machine that becomes
//! slower does so for both.

mod bare;
mod cold_open;
mod folder;
mod meter;
mod ours;
mod startup;
mod stores;
mod tokenizer;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use confidant_engine::storage::Durability;
use serde::Serialize;
use serde_json::{Value, json};

use folder::Kind;
use meter::Cost;
use ours::{Grown, Plan, Point, Seeded, Spaced};

/// As the program's, so that what is measured is what runs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::print_stderr, reason = "progress and errors of a command")]
fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("confidant-bench: {error}\nhint: {USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("confidant-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

const USAGE: &str = "confidant-bench [--quick] [--dir FOLDER] [--confidant-bin FILE] [--only turns|beside|cold-open|startup] [--redis URL] [--postgres URL]";

/// What the command line says.
#[derive(Debug, Default)]
struct Options {
    /// A few turns of everything: proves that it works and measures nothing.
    quick: bool,
    /// Where the databases go; a temporary folder in any case.
    dir: Option<PathBuf>,
    confidant: Option<PathBuf>,
    only: Option<String>,
    /// Servers to measure on, and nothing else.
    servers: stores::Servers,
    /// Nothing but this many warm turns at 100 messages, for a profiler to look at.
    spin: Option<usize>,
    /// Spinning, whole turns instead of appends.
    whole: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| anyhow::anyhow!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--dir" => options.dir = Some(value()?.into()),
                "--confidant-bin" => options.confidant = Some(value()?.into()),
                "--only" => options.only = Some(value()?),
                "--redis" => options.servers.redis = Some(value()?),
                "--postgres" => options.servers.postgres = Some(value()?),
                "--whole" => options.whole = true,
                "--spin" => options.spin = Some(value()?.parse()?),
                _ => anyhow::bail!("unknown argument {argument}"),
            }
        }
        Ok(options)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }

    fn plans(&self) -> Vec<Plan> {
        let plan = |messages, warm, cold| Plan { messages, warm, cold, kind: Kind::Append };
        if self.quick {
            return vec![plan(2, 4, 4), plan(20, 2, 2), plan(100, 1, 2)];
        }
        vec![plan(2, 1000, 400), plan(20, 100, 400), plan(100, 20, 200), plan(500, 4, 40), plan(2000, 2, 10)]
    }

    fn rounds(&self) -> usize {
        if self.quick { 1 } else { 3 }
    }
}

#[expect(clippy::print_stdout, reason = "the document is this command's data")]
fn run(options: &Options) -> Result<()> {
    let folder = match &options.dir {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if let Some(turns) = options.spin {
        let path = folder.path().join("spin");
        let kind = if options.whole { Kind::Whole } else { Kind::Append };
        let cost = on(&runtime, async move { ours::spin(&path, turns, kind).await })?;
        println!("{}", serde_json::to_string_pretty(&cost)?);
        return Ok(());
    }
    if options.servers.any() {
        let document = on(&runtime, stores::measure(options.servers.clone(), options.quick))?;
        println!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(());
    }
    let mut document = json!({ "quick": options.quick });
    // First, while its table is not yet loaded: that is measured, too.
    if options.wants("tokenizer") {
        document["tokenizer"] = json!(tokenizer::measure(if options.quick { 10 } else { 2000 })?);
    }
    if options.wants("startup") {
        document["startup"] = match &options.confidant {
            Some(binary) => {
                say("startup");
                let path = folder.path().join("startup");
                std::fs::create_dir_all(&path)?;
                json!(startup::measure(binary, &path, if options.quick { 2 } else { 20 })?)
            }
            None => json!({ "skipped": "no program was given; --confidant-bin FILE names one" }),
        };
    }
    if options.wants("turns") {
        let (ours, bare) =
            on(&runtime, turns(folder.path().join("turns"), options.plans(), options.rounds()))?;
        document["ours"] = ours;
        document["bare"] = bare;
    }
    if options.only.as_deref() == Some("beside") {
        document["beside"] = on(&runtime, beside(folder.path().join("beside"), options.plans()))?;
    }
    if options.wants("cold-open") {
        say("cold-open");
        let sessions = if options.quick { 20 } else { 10_000 };
        let path = folder.path().join("cold-open");
        document["cold_open"] =
            on(&runtime, async move { Ok(json!(cold_open::measure(&path, sessions, 20).await?)) })?;
    }
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(())
}

/// Runs on one of the runtime's own threads, as a server's turns do.
fn on<T: Send + 'static>(
    runtime: &tokio::runtime::Runtime,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    runtime.block_on(runtime.spawn(work))?
}

/// Everything measured of one contender, as `bench/plot.py` reads it.
#[derive(Serialize)]
struct Contender<P> {
    variants: Vec<Variant<P>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    grown: Vec<Grown>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spaced: Vec<Spaced>,
    /// CPU milliseconds of a fixed piece of work, between the lengths: how steady the machine was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calibration_cpu_ms: Vec<f64>,
}

#[derive(Serialize)]
struct Variant<P> {
    name: &'static str,
    points: Vec<P>,
}

#[derive(Serialize)]
struct BarePoint {
    messages: usize,
    warm: Cost,
}

const VARIANTS: [(&str, Durability); 2] = [("power", Durability::Power), ("process", Durability::Process)];

impl<P> Contender<P> {
    fn new() -> Self {
        let variants = VARIANTS.iter().map(|&(name, _)| Variant { name, points: Vec::new() }).collect();
        Self { variants, grown: Vec::new(), spaced: Vec::new(), calibration_cpu_ms: Vec::new() }
    }
}

/// The cost of a turn: ours and the floor's, at every length.
async fn turns(folder: PathBuf, plans: Vec<Plan>, rounds: usize) -> Result<(Value, Value)> {
    let (mut ours, mut bare) = (Contender::<Point>::new(), Contender::<BarePoint>::new());
    ours.variants.push(Variant { name: "whole turn", points: Vec::new() });
    let empty = ours::empty_bytes(&folder.join("empty")).await?;
    for &plan in &plans {
        let messages = plan.messages;
        let here = folder.join(messages.to_string());
        say(&format!("turns: {messages} messages"));
        ours.calibration_cpu_ms.push(meter::calibrate());
        let seeded = Seeded::new(&here, plan, empty).await?;
        for (i, &(name, durability)) in VARIANTS.iter().enumerate() {
            ours.variants[i].points.push(seeded.measure(&here.join(name), durability, rounds).await?);
            let warm = floor(&here.join(name), durability, rounds)?;
            bare.variants[i].points.push(BarePoint { messages, warm });
        }
        let whole = here.join("whole");
        let seeded = Seeded::new(&whole, plan.of_whole_turns(), empty).await?;
        let point = seeded.measure(&whole.join("rounds"), Durability::Power, rounds).await?;
        ours.variants[VARIANTS.len()].points.push(point);
        std::fs::remove_dir_all(here)?;
    }
    let lengths: Vec<usize> = plans.iter().map(|plan| plan.messages).collect();
    for (name, durability) in VARIANTS {
        say(&format!("turns: growing, {name}"));
        ours.grown.extend(ours::grow(&folder.join("grown").join(name), name, durability, &lengths).await?);
        let turns = if rounds == 1 { 2 } else { 20 };
        ours.spaced.push(ours::spaced(&folder.join("spaced").join(name), name, durability, turns).await?);
    }
    Ok((serde_json::to_value(ours)?, serde_json::to_value(bare)?))
}

/// Ours and the floor by turns, for a machine that is not quiet. Not part of the report.
async fn beside(folder: PathBuf, plans: Vec<Plan>) -> Result<Value> {
    let mut found = json!({});
    for &plan in &plans {
        let here = folder.join(plan.messages.to_string());
        say(&format!("beside: {} messages", plan.messages));
        let seeded = Seeded::new(&here, plan, 0).await?;
        for (name, durability) in VARIANTS {
            let one = seeded.beside(&here.join(name), durability, BESIDE_ROUNDS).await?;
            found[name][plan.messages.to_string()] = json!(one);
        }
        std::fs::remove_dir_all(here)?;
    }
    Ok(found)
}

const BESIDE_ROUNDS: usize = 5;

fn floor(folder: &Path, durability: Durability, rounds: usize) -> Result<Cost> {
    let turns = if rounds == 1 { 20 } else { 1000 };
    bare::measure(folder, durability, turns, rounds)
}

#[expect(clippy::print_stderr, reason = "progress of a command")]
fn say(what: &str) {
    eprintln!("confidant-bench: {what}");
}
