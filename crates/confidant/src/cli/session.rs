//! `confidant session`: what is kept of one conversation, and what its turns wait for.

mod approvals;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use confidant_engine::{Actor, Decision, Export, MessageKind, Scope, Session, SessionSummary, TenantId};

use super::output::{self, clean, counted, moment, note};
use super::{JsonArg, Outcome, TenantArg, with_engine};
use crate::config::Loaded;
use crate::open::{Opened, Purpose};
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
    /// List what turns wait for somebody to approve
    Approvals(ApprovalsArgs),
    /// Approve what a turn waits for, and print how it went on
    Approve(DecideArgs),
    /// Deny what a turn waits for, and print how it went on
    Deny(DecideArgs),
    /// Cancel what is running or waiting, wherever it runs
    Cancel(CancelArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only this tenant's
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// The most to list
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
        for session in &sessions {
            output::line(&summary(session))?;
        }
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

/// Id first, so that `cut -f1` is enough for a script.
fn summary(session: &SessionSummary) -> String {
    let id = session
        .session_id
        .as_deref()
        .map_or_else(|| format!("({}: its key is gone)", session.tag), str::to_owned);
    let tenant = session.tenant.as_deref().unwrap_or("-");
    let end = session.expires_at.map_or_else(|| "kept".to_owned(), |at| format!("until {}", moment(at)));
    let open = if session.open_turn { "\topen turn" } else { "" };
    format!("{id}\t{tenant}\t{}\t{end}{open}", counted(session.version, "record"))
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
        let private = if message.audience == confidant_engine::Audience::Private { " (private)" } else { "" };
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
    note("no such session; `confidant session list` prints those there are");
    Outcome::NothingFound
}
