//! Measures search: how fast it is and how well it finds, ours beside plain FTS5, in one run.
//!
//! `bench/search.sh latency [--sizes 10000,100000]` and `bench/search.sh quality [--among N] [--locomo FILE]` print Markdown.

mod cards;
mod fts;
mod latency;
mod quality;
mod sessions;
mod truth;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What the command line says.
#[derive(Debug, Default)]
struct Options {
    command: String,
    sizes: Vec<u64>,
    locomo: Option<PathBuf>,
    questions: Option<PathBuf>,
    among: usize,
    folder: PathBuf,
    mixes: bool,
}

#[expect(clippy::print_stderr, reason = "errors of a command")]
fn main() -> ExitCode {
    let done = Options::parse(std::env::args().skip(1)).and_then(|options| match options.command.as_str() {
        "latency" => latency::run(&options.sizes),
        "quality" => quality::run(options.questions.as_deref(), options.locomo.as_deref(), options.among),
        "sessions" => sessions::run(&options.folder, options.mixes),
        _ => Err("which one: latency, quality or sessions?".into()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "search: {error}\nhint: latency [--sizes N,N] [--sessions] | quality [--questions FILE] [--among N] [--locomo FILE] | sessions [--folder F] [--mixes]"
            );
            ExitCode::from(2)
        }
    }
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let command = arguments.next().unwrap_or_default();
        let (sizes, folder) = (vec![10_000, 100_000, 1_000_000], PathBuf::from("bench/search/sessions"));
        let mut options = Self { command, sizes, among: 3000, folder, ..Self::default() };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--sizes" => {
                    let sizes: std::result::Result<_, _> = value()?.split(',').map(str::parse).collect();
                    options.sizes = sizes?;
                }
                "--folder" => options.folder = value()?.into(),
                "--mixes" => options.mixes = true,
                "--sessions" => cards::SESSIONS.store(true, Ordering::Relaxed),
                "--among" => options.among = value()?.parse()?,
                "--locomo" => options.locomo = Some(value()?.into()),
                "--questions" => options.questions = Some(value()?.into()),
                _ => return Err(format!("unknown argument {argument}").into()),
            }
        }
        Ok(options)
    }
}

#[expect(clippy::print_stdout, reason = "the report is this command's data")]
fn print(line: &str) {
    println!("{line}");
}
