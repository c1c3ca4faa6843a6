//! `confidant memory import`: what coding agents kept of their sessions, as memories.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use confidant_memory::OwnMemory;
use confidant_memory::import::Agent;
use indicatif::{ProgressBar, ProgressStyle};

use super::super::output::{self, Paint, clean, counted, note};
use super::super::{JsonArg, Outcome, OwnerArgs};
use super::moment;
use crate::mcp::import::{self, Line, Report, Step, Wish};

#[derive(Debug, Args)]
#[command(after_help = "\
Reads session files of Claude Code, Codex, Gemini CLI, Aider, OpenCode, Cursor, and JSON lines. Nothing of theirs is
changed. Sessions that were stored before are not stored again; one with a private key or the like is left out.

Examples:
  confidant memory import --dry-run              what the agents of this home folder left
  confidant memory import --since 2025-12-01 --tag imported
  confidant memory import ~/project/.aider.chat.history.md
  confidant memory import sessions.jsonl --agent generic --json")]
pub(in crate::cli) struct ImportArgs {
    /// A session file, or a folder of such files [default: the agents' places in your home folder]
    path: Option<PathBuf>,
    /// Whose files they are [default: told by content]
    #[arg(long, value_name = "AGENT", requires = "path", value_parser = PossibleValuesParser::new(Agent::ALL.map(Agent::name)))]
    agent: Option<String>,
    /// Only sessions not before this moment, such as 2025-12-21 or 2025-12-21T12:00:00Z
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    since: Option<i64>,
    /// At most so many sessions, those of the newest files first
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// A tag for all of them; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Say what would be stored, and store nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(super) owner: OwnerArgs,
    #[command(flatten)]
    output: JsonArg,
}

pub(super) async fn run(args: ImportArgs, own: &OwnMemory, home: Option<PathBuf>) -> anyhow::Result<Outcome> {
    let wish = Wish {
        root: import::root(args.path, args.agent.as_deref().and_then(Agent::parse), home)?,
        tags: args.tags,
        since: args.since,
        limit: args.limit.unwrap_or(usize::MAX),
        dry_run: args.dry_run,
    };
    let bar = bar();
    let tell = |step: Step| {
        bar.set_length(step.bytes_total);
        bar.set_position(step.bytes_done);
        bar.set_message(counted(step.sessions as u64, "session"));
    };
    let report = import::run(own, wish, &tell).await;
    bar.finish_and_clear();
    let report = report?;
    if args.output.json {
        output::json(&report)?;
    } else {
        told(&report)?;
    }
    if report.found == 0 { Ok(Outcome::NothingFound) } else { Ok(Outcome::Done) }
}

/// A bar, on a terminal only.
fn bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes}  {msg}  {elapsed}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn told(report: &Report) -> anyhow::Result<()> {
    let paint = Paint::of_stdout();
    for line in &report.sessions {
        output::line(&described(line, paint))?;
    }
    let left = report.found.saturating_sub(report.sessions.len());
    if left > 0 {
        note(&format!("and {left} more"));
    }
    let stored = if report.dry_run { "would be stored" } else { "stored" };
    note(&format!(
        "{} in {}: {} {stored}, {} stored before, {} blocked, {} failed",
        counted(report.found as u64, "session"),
        counted(report.files as u64, "file"),
        report.stored,
        report.already_stored,
        report.blocked,
        report.failed
    ));
    if report.unreadable > 0 {
        note(&format!("{} could not be read", counted(report.unreadable as u64, "file")));
    }
    if report.more {
        note("there are more; raise --limit");
    }
    Ok(())
}

fn described(line: &Line, paint: Paint) -> String {
    let outcome = match line.outcome {
        "stored" | "would_store" | "already_stored" => paint.green(line.outcome),
        other => paint.red(other),
    };
    let title = line.title.as_deref().or(line.session_id.as_deref()).unwrap_or("-");
    let mut text = format!("{outcome}  {}  {}", line.agent, clean(title));
    for place in &line.places {
        text.push_str(&format!("\n  {} at {}", place.rule, place.path));
    }
    text
}
