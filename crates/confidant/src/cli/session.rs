//! `confidant session`: what is kept of one conversation, and what its turns wait for.

mod approvals;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use confidant_engine::approval::Decision;
use confidant_engine::rights::{Export, MessageKind, SessionSummary};
use confidant_engine::{Actor, Scope, Session, TenantId};

use super::shared::{JsonArg, Outcome, TenantArg, with_engine};
use crate::config::Loaded;
use crate::open::{Opened, Purpose};
use crate::output::{self, clean, counted, moment, note};
use approvals::{ApprovalsArgs, CancelArgs, DecideArgs};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant session list
  confidant session show cli:db:main:alice
  confidant session export cli_conv:alice --output alice.json
  confidant session delete cli:db:main:alice > receipt.json
  confidant session approvals
  confidant session approve cli:db:main:alice apr-9f… --as alice
  confidant session cancel cli:db:main:alice")]
pub(super) enum SessionCommand {
    /// List sessions, of one tenant or of all
    List(ListArgs),
    /// Show what was said
    Show(OneArgs),
    /// Export what was said as JSON
    Export(ExportArgs),
    /// Delete a session with its key, and print a receipt
    Delete(DeleteArgs),
    /// List tool calls that wait for approval
    Approvals(ApprovalsArgs),
    /// Approve a waiting tool call, and print the turn's result
    Approve(DecideArgs),
    /// Deny a waiting tool call, and print the turn's result
    Deny(DecideArgs),
    /// Cancel running and waiting turns, wherever they run
    Cancel(CancelArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only this tenant's sessions
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct OneArgs {
    /// The session, as `session list` prints it
    session_id: String,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The session, as `session list` prints it
    session_id: String,
    #[command(flatten)]
    tenant: TenantArg,
    /// Write to this file, which only you can read
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(command: SessionCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let look = Purpose::LookAtData;
    match command {
        SessionCommand::List(args) => {
            with_engine(loaded, look, async |opened| list(&args, opened).await).await
        }
        SessionCommand::Show(args) => {
            with_engine(loaded, look, async |opened| show(&args, opened).await).await
        }
        SessionCommand::Export(args) => {
            with_engine(loaded, look, async |opened| export(&args, opened).await).await
        }
        SessionCommand::Delete(args) => {
            with_engine(loaded, look, async |opened| delete(&args, opened).await).await
        }
        SessionCommand::Approvals(args) => {
            with_engine(loaded, look, async |opened| approvals::list(&args, opened).await).await
        }
        SessionCommand::Approve(args) => approvals::decide(&args, Decision::Approve, loaded).await,
        SessionCommand::Deny(args) => approvals::decide(&args, Decision::Deny, loaded).await,
        SessionCommand::Cancel(args) => {
            with_engine(loaded, look, async |opened| approvals::cancel(&args, opened).await).await
        }
    }
}

async fn list(args: &ListArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let tenant = args.tenant.as_deref().map(TenantId::new).transpose()?;
    let administrator = opened.engine.dangerously_administer(Actor::cli());
    let sessions = administrator.sessions(tenant.as_ref(), args.limit).await?;
    if args.output.json {
        output::json(&sessions)?;
    } else {
        print_table(&sessions)?;
    }
    if sessions.is_empty() {
        note("no sessions");
        return Ok(Outcome::NothingFound);
    }
    if sessions.len() == args.limit {
        note("there may be more; raise --limit");
    }
    Ok(Outcome::Done)
}

/// On a terminal in columns under a header; into a pipe a line each, parted by tabs, so that scripts stay simple.
fn print_table(sessions: &[SessionSummary]) -> anyhow::Result<()> {
    let rows: Vec<[String; 5]> = sessions.iter().map(cells).collect();
    if !output::is_for_a_person() {
        for row in &rows {
            let filled = if row[4].is_empty() { &row[..4] } else { &row[..] };
            output::line(&filled.join("\t"))?;
        }
        return Ok(());
    }
    let header = ["SESSION", "TENANT", "SIZE", "EXPIRES", "STATE"].map(str::to_owned);
    let header = Some(header).filter(|_| !rows.is_empty());
    let all: Vec<&[String; 5]> = header.iter().chain(&rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    for row in &all {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        output::line(clean(&padded.collect::<Vec<_>>().join("   ")).trim_end())?;
    }
    Ok(())
}

/// Id first, so that `cut -f1` is enough for a script.
fn cells(session: &SessionSummary) -> [String; 5] {
    let id = session
        .session_id
        .as_deref()
        .map_or_else(|| format!("({}: its key is gone)", session.tag), str::to_owned);
    let tenant = session.tenant.as_deref().unwrap_or("-").to_owned();
    let end = session.expires_at.map_or_else(|| "kept".to_owned(), |at| format!("until {}", moment(at)));
    let open = if session.open_turn { "open turn" } else { "" };
    [id, tenant, counted(session.version, "record"), end, open.to_owned()]
}

async fn show(args: &OneArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let session = session(opened, args.tenant.id()?, &args.session_id)?;
    let Some(export) = session.view().await? else { return Ok(not_found()) };
    if args.output.json {
        output::json(&export)?;
    } else {
        transcript(&export)?;
    }
    Ok(Outcome::Done)
}

async fn export(args: &ExportArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let session = session(opened, args.tenant.id()?, &args.session_id)?;
    match session.export().await? {
        Some(export) => output::json_to(args.output.as_deref(), &export).map(|()| Outcome::Done),
        None => Ok(not_found()),
    }
}

fn transcript(export: &Export) -> anyhow::Result<()> {
    output::line(&format!("{}: {}", export.session_id, counted(export.messages.len() as u64, "message")))?;
    for message in &export.messages {
        let who = match message.kind {
            MessageKind::Human => "human",
            MessageKind::Ai => "ai",
            MessageKind::Tool => "tool",
        };
        let private =
            if message.audience == confidant_engine::room::Audience::Private { " (private)" } else { "" };
        output::line(&format!("\n{} {who}{private}", moment(message.timestamp)))?;
        for line in clean(&message.content).lines() {
            output::line(&format!("  {line}"))?;
        }
        if let Some(reason) = &message.unanswered {
            output::line(&format!("  [no answer: {reason}]"))?;
        }
    }
    Ok(())
}

async fn delete(args: &DeleteArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let tenant = args.one.tenant.id()?;
    let session = session(opened, tenant.clone(), &args.one.session_id)?;
    if args.dry_run {
        let administrator = opened.engine.dangerously_administer(Actor::cli());
        let tag = session.tag();
        let listed = administrator.sessions(Some(&tenant), usize::MAX).await?;
        let Some(found) = listed.into_iter().find(|one| one.tag == tag) else { return Ok(not_found()) };
        let (records, derived) = (found.version, session.count_derived().await?);
        if args.one.output.json {
            let would =
                serde_json::json!({ "dry_run": true, "sessions": 1, "records": records, "derived": derived });
            output::json(&would)?;
        } else {
            let also: String = derived.iter().map(|(name, count)| format!(", {count} {name}")).collect();
            let records = counted(records, "record");
            output::line(&format!("would delete 1 session with {records}{also} and its key"))?;
        }
        return Ok(Outcome::Done);
    }
    let question = format!("Permanently delete the session {} and its key?", clean(&args.one.session_id));
    if !args.yes && !output::is_confirmed(&question)? {
        return Ok(Outcome::NothingFound);
    }
    let receipt = session.erase().await?;
    if receipt.sessions == 0 && receipt.keys.is_empty() {
        return Ok(not_found());
    }
    output::json(&receipt)?;
    note("deleted; keep the receipt: `confidant audit verify --receipt FILE` checks it");
    Ok(Outcome::Done)
}

fn session(opened: &Opened, tenant: TenantId, id: &str) -> anyhow::Result<Session> {
    let scope = Scope::parse(tenant, id).map_err(confidant_engine::Error::from)?;
    Ok(opened.engine.session(scope, Actor::cli()))
}

fn not_found() -> Outcome {
    note("no such session; `confidant session list` lists them");
    Outcome::NothingFound
}
