//! `confidant memory import`: what coding agents kept of their sessions, as memories.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use confidant_mcp::import_root;
use confidant_memory::OwnMemory;
use confidant_memory::api::{ImportOutcome, ImportReport, ImportRequest, ImportedSession};
use confidant_memory::import::{Agent, Progress};
use indicatif::{ProgressBar, ProgressStyle};

use super::super::shared::{JsonArg, Outcome, OwnerArgs};
use super::ModeArg;
use crate::output::{self, Paint, clean, counted, note};

#[derive(Debug, Args)]
#[command(after_help = "\
Reads session files of Claude Code, Codex, Gemini CLI, Aider, OpenCode, Cursor, and JSON lines, without changing
them. It is safe to repeat: unchanged files are skipped, blocked and refused sessions are tried again,
and forgotten sessions stay forgotten.

On a terminal, a bar says how far it is, and only sessions that were not stored are listed.

Examples:
  confidant memory import --dry-run              what the agents in this home folder have
  confidant memory import --tag imported
  confidant memory import --verbose              list what was stored, too
  confidant memory import ~/project/.aider.chat.history.md
  confidant memory import sessions.jsonl --agent generic --json")]
pub(in crate::cli) struct ImportArgs {
    /// A session file, or a folder of them [default: the agents' usual folders in your home folder]
    path: Option<PathBuf>,
    /// The agent that wrote the files [default: detected from their content]
    #[arg(long, value_name = "AGENT", requires = "path", value_parser = PossibleValuesParser::new(Agent::ALL.map(Agent::name)))]
    agent: Option<String>,
    /// A tag for all of them; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    #[command(flatten)]
    mode: ModeArg,
    /// Say what would be stored, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Read unchanged files too, as after a change of rules or tags
    #[arg(long)]
    again: bool,
    /// List every session, on a terminal and in JSON too
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    pub(super) owner: OwnerArgs,
    #[command(flatten)]
    output: JsonArg,
}

impl ImportArgs {
    /// Whether each session is listed. A dry run is there to be read, and a script may read the lines.
    fn lists_all(&self) -> bool {
        self.verbose || self.dry_run || !output::is_for_a_person()
    }
}

pub(super) fn request(args: &ImportArgs, home: Option<PathBuf>) -> anyhow::Result<ImportRequest> {
    let agent = args.agent.as_deref().and_then(Agent::parse);
    Ok(ImportRequest {
        roots: vec![import_root(args.path.clone(), agent, home)?],
        tags: args.tags.clone(),
        mode: args.mode.name().map(str::to_owned),
        dry_run: args.dry_run,
        again: args.again,
        // JSON is a summary, with the first sessions and those that were not stored.
        tell_all: args.verbose || args.dry_run || !args.output.json,
        only: None,
    })
}

pub(super) async fn run(
    args: &ImportArgs,
    request: &ImportRequest,
    own: &OwnMemory,
) -> anyhow::Result<Outcome> {
    let bar = bar();
    let shown = bar.clone();
    let report = own
        .import(request, move |progress| {
            show(&shown, progress);
            ControlFlow::Continue(())
        })
        .await;
    bar.finish_and_clear();
    let report = report?;
    if args.output.json {
        output::json(&report)?;
    } else {
        told(&report, args.lists_all())?;
    }
    let nothing = report.files + report.unchanged_files == 0;
    Ok(if nothing { Outcome::NothingFound } else { Outcome::Done })
}

/// A bar, on a terminal only.
fn bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes}  {msg}, {eta} left");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_length(progress.bytes_total);
    bar.set_position(progress.bytes_done);
    bar.set_message(format!(
        "{} in {} of {}",
        counted(progress.sessions_done as u64, "session"),
        progress.files_done,
        counted(progress.files_total as u64, "file")
    ));
}

fn told(report: &ImportReport, lists_all: bool) -> anyhow::Result<()> {
    let paint = Paint::of_stdout();
    for item in report.items.iter().filter(|item| lists_all || is_left(item)) {
        output::line(&described(item, paint))?;
    }
    let stored = if report.dry_run { "would be stored" } else { "stored" };
    note(&format!(
        "{} in {}: {} {stored}, {} unchanged, {} blocked, {} refused, {} forgotten before",
        counted(report.sessions, "session"),
        counted(report.files, "file"),
        report.stored,
        report.unchanged,
        report.blocked,
        report.refused,
        report.forgotten
    ));
    if !lists_all && report.items.iter().any(|item| !is_left(item)) {
        note("--verbose lists every session; `confidant memory list` shows the newest");
    }
    if report.unchanged_files > 0 {
        note(&format!("{} unchanged since the last import", counted(report.unchanged_files, "file")));
    }
    let not_read = report.unreadable_files + report.unknown_files;
    if not_read > 0 {
        note(&format!("{} skipped: unreadable, or not written by a known agent", counted(not_read, "file")));
    }
    Ok(())
}

/// Whether somebody may have to do something about it.
fn is_left(item: &ImportedSession) -> bool {
    matches!(item.outcome, ImportOutcome::Blocked | ImportOutcome::Refused)
}

fn described(item: &ImportedSession, paint: Paint) -> String {
    let outcome = match item.outcome {
        ImportOutcome::Stored => paint.green("stored"),
        ImportOutcome::WouldStore => paint.green("would store"),
        ImportOutcome::Unchanged => paint.dim("unchanged"),
        ImportOutcome::Forgotten => paint.dim("forgotten before"),
        ImportOutcome::Blocked => paint.red("blocked"),
        ImportOutcome::Refused => paint.yellow("refused"),
    };
    let title = item.title.as_deref().unwrap_or(&item.session_id);
    let why: String = item
        .places
        .iter()
        .take(MOST_PLACES)
        .map(|place| format!("  {} at {}", place.rule, clean(&place.path)))
        .collect();
    format!("{outcome}  {}  {}{}", item.agent, clean(title), paint.dim(&why))
}

/// As many as are told of one session.
const MOST_PLACES: usize = 3;
