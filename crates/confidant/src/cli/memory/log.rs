//! `confidant memory log`: what hooks and tools did with somebody's memories, from the audit log.

use clap::{Args, value_parser};
use confidant_engine::Actor;
use confidant_engine::audit::{Action, AuditRecord};
use serde::Serialize;

use super::super::shared::{JsonArg, Outcome, OwnerArgs, with_engine};
use crate::config::Loaded;
use crate::memory::ACTS;
use crate::open::Purpose;
use crate::output::{self, Paint, moment, note};

#[derive(Debug, Args)]
#[command(after_help = "\
Shows when, who (hook:claude-code, mcp, cli, token:…), what, and how many memories. Without content, without names of files.

Examples:
  confidant memory log
  confidant memory log --last 500 --json")]
pub(in crate::cli) struct LogArgs {
    /// How many lines to show
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u64).range(1..=5000))]
    last: u64,
    #[command(flatten)]
    owner: OwnerArgs,
    #[command(flatten)]
    output: JsonArg,
}

/// A line of the log.
#[derive(Debug, Serialize)]
struct Line {
    at: String,
    by: String,
    did: &'static str,
    memories: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(super) async fn run(args: &LogArgs, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let owner = args.owner.owner(loaded)?;
    let last = usize::try_from(args.last).unwrap_or(usize::MAX);
    let records = with_engine(loaded, Purpose::LookAtData, async |opened| {
        let administrator = opened.engine.dangerously_administer(Actor::cli());
        Ok(administrator.audit_of_person(&owner.tenant, &owner.user, &ACTS, last).await?)
    })
    .await?;
    let lines: Vec<Line> = records.iter().map(|line| told(&line.record)).collect();
    if args.output.json {
        output::json(&lines)?;
    } else {
        let paint = Paint::of_stdout();
        for line in &lines {
            output::line(&described(line, paint))?;
        }
    }
    if lines.is_empty() {
        note("nothing was done with memories");
        return Ok(Outcome::NothingFound);
    }
    Ok(Outcome::Done)
}

fn told(record: &AuditRecord) -> Line {
    let did = match record.action {
        Action::MemoryStored => "stored",
        Action::MemoryQueried => "searched",
        Action::MemoryRetrieved => "opened",
        Action::MemoryForgotten => "forgot",
        Action::MemoryRecalled => "recalled",
        _ => "skipped",
    };
    // Of a session that was skipped there is no memory.
    let memories = if did == "skipped" { 0 } else { record.count.unwrap_or(0) };
    let by = record.actor.as_str().to_owned();
    Line { at: moment(record.at), by, did, memories, reason: record.reason.clone() }
}

fn described(line: &Line, paint: Paint) -> String {
    let what = match (line.did, &line.reason) {
        ("skipped", reason) => {
            paint.yellow(&format!("skipped: {}", why(reason.as_deref().unwrap_or_default())))
        }
        (did, _) => format!("{did} {}", memories(line.memories)),
    };
    format!("{}  {}  {what}", paint.dim(&line.at), output::clean(&line.by))
}

fn memories(count: u64) -> String {
    if count == 1 { "1 memory".to_owned() } else { format!("{count} memories") }
}

/// A reason, in words.
fn why(reason: &str) -> &str {
    match reason {
        "blocked" => "the session has a private key, an Authorization header or a bearer token",
        "unclean" => "the second scan found something in the card",
        "unchanged" => "nothing is new since it was last stored",
        "forgotten" => "the session was forgotten; store it by its id to have it back",
        "unreadable" => "the session file cannot be read",
        "not_found" => "the session file is gone",
        "empty" => "the session has no messages",
        "unavailable" => "the store or the disk is not available; it is tried again",
        other => other,
    }
}
