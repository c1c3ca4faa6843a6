//! Measures client-sealed chats against a real `confidant serve`, and prints one JSON document: `sync`, `sockets`, `logins`,
//! `streams`, `cold`.
//!
//! ```text
//! this process ── devices (confidant-client), people (bare HTTP), sockets ──▶ confidant serve, a process of its own
//!        │                                                                        │
//!        ├── floor: the same rows, read and opened, and nothing else              ├── its memory and CPU, from /proc
//!        └── model: says words, and remembers when ◀──────────────────────────────┘
//! ```
//!
//! `bench/chats.sh` builds both, runs this on SQLite and PostgreSQL, and writes `bench/results/CHATS.md`. Easy to get wrong:
//! who takes the time. Client and server share the machine, so CPU is given for each process.

mod cold;
mod counting;
#[expect(clippy::unwrap_used, reason = "it is theirs")]
#[path = "../../crates/chats-http/tests/chats_http/device.rs"]
mod device;
mod floor;
mod line;
mod logins;
mod model;
mod people;
mod server;
mod sockets;
mod streams;
mod sync;
mod times;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::json;

/// As the program's, so that what is measured is what runs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::print_stderr, reason = "errors of a command")]
fn main() -> ExitCode {
    let ended = Options::parse(std::env::args().skip(1)).and_then(|options| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        // On one of the runtime's own threads, as a program's work is.
        runtime.block_on(runtime.spawn(run(options)))?
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chats-bench: {error:#}\nhint: {USAGE}");
            ExitCode::from(2)
        }
    }
}

const USAGE: &str = "chats-bench --confidant-bin FILE [--quick] [--dir FOLDER] [--postgres URL] \
     [--only sync|sockets|logins|streams|cold]";

/// What the command line says.
#[derive(Clone, Debug, Default)]
struct Options {
    confidant: PathBuf,
    /// A little of everything: proves that it works and measures nothing.
    quick: bool,
    /// Where the data goes; a temporary folder in any case.
    dir: Option<PathBuf>,
    postgres: Option<String>,
    only: Option<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        let mut confidant = None;
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--confidant-bin" => confidant = Some(PathBuf::from(value()?)),
                "--quick" => options.quick = true,
                "--dir" => options.dir = Some(value()?.into()),
                "--postgres" => options.postgres = Some(value()?),
                "--only" => options.only = Some(value()?),
                _ => anyhow::bail!("unknown argument {argument}"),
            }
        }
        let confidant = confidant.context("which program is to be measured is not said")?;
        options.confidant = confidant.canonicalize().context("the program to measure")?;
        Ok(options)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }
}

#[expect(clippy::print_stdout, reason = "the document is this command's data")]
async fn run(options: Options) -> Result<()> {
    let folder = match &options.dir {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir()?,
    };
    let mut document = json!({ "quick": options.quick });
    let binary = &options.confidant;
    if options.wants("sync") {
        let size = if options.quick { sync::Size::SMALL } else { sync::Size::WHOLE };
        say("sync: SQLite");
        let place = sync::Place { binary, folder: &folder.path().join("sync-sqlite"), postgres: None };
        document["sync"]["sqlite"] = json!(sync::measure(place, size).await?);
        if let Some(url) = &options.postgres {
            say("sync: PostgreSQL");
            let place =
                sync::Place { binary, folder: &folder.path().join("sync-postgres"), postgres: Some(url) };
            document["sync"]["postgres"] = json!(sync::measure(place, size).await?);
        }
    }
    if options.wants("sockets") {
        say("sockets");
        let count = if options.quick { 60 } else { 2000 };
        document["sockets"] = json!(sockets::measure(binary, &folder.path().join("sockets"), count).await?);
    }
    if options.wants("logins") {
        say("logins");
        let rounds = if options.quick { logins::Rounds::SHORT } else { logins::Rounds::LONG };
        document["logins"] = json!(logins::measure(binary, &folder.path().join("logins"), rounds).await?);
    }
    if options.wants("streams") {
        say("streams");
        let size = if options.quick { streams::Size::SMALL } else { streams::Size::WHOLE };
        document["streams"] = json!(streams::measure(binary, &folder.path().join("streams"), size).await?);
    }
    if options.wants("cold") {
        say("cold turns");
        let size = if options.quick { cold::Size::SMALL } else { cold::Size::WHOLE };
        document["cold"] = json!(cold::measure(binary, &folder.path().join("cold"), size).await?);
    }
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(())
}

#[expect(clippy::print_stderr, reason = "progress of a command")]
fn say(what: &str) {
    eprintln!("chats-bench: {what}");
}
