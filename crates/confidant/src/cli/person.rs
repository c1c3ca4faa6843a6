//! `confidant person`: what is kept of one person, in every channel and room.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use confidant_engine::{Actor, UserId};

use super::shared::{JsonArg, Outcome, TenantArg, with_engine};
use crate::config::{Loaded, StoreKind};
use crate::open::{Opened, Purpose};
use crate::output::{self, counted, note};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant person export alice --output alice.json
  confidant person erase alice --dry-run
  confidant person erase alice > receipt.json")]
pub(super) enum PersonCommand {
    /// Export everything that is kept about a person as JSON
    Export(ExportArgs),
    /// Erase everything about a person with its keys, and print a receipt
    Erase(EraseArgs),
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The person's id on their channel
    user: String,
    #[command(flatten)]
    tenant: TenantArg,
    /// Write to this file, which only you can read
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct EraseArgs {
    /// The person's id on their channel
    user: String,
    #[command(flatten)]
    tenant: TenantArg,
    /// Say what would be erased, and erase nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    output: JsonArg,
}

pub(super) async fn run(command: PersonCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    with_engine(loaded, Purpose::LookAtData, async |opened| match command {
        PersonCommand::Export(args) => export(&args, opened).await,
        PersonCommand::Erase(args) => erase(&args, opened, loaded).await,
    })
    .await
}

async fn export(args: &ExportArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let administrator = opened.engine.dangerously_administer(Actor::cli());
    let export = administrator.export_person(&args.tenant.id()?, &UserId::new(&args.user)?).await?;
    output::json_to(args.output.as_deref(), &export)?;
    if !export.unreadable.is_empty() {
        note(&format!(
            "{} could not be opened, so the export is incomplete; see `confidant doctor`",
            counted(export.unreadable.len() as u64, "part")
        ));
        return Ok(Outcome::Faulty);
    }
    let unfetched = |(_, list): (_, &Vec<serde_json::Value>)| {
        list.iter().filter(|one| one.get("unreadable").is_some()).count() as u64
    };
    let unfetched: u64 = export.derived.iter().map(unfetched).sum();
    if unfetched > 0 {
        note(&format!(
            "{} could not be fetched completely; try again when the store answers",
            counted(unfetched, "item")
        ));
        return Ok(Outcome::Faulty);
    }
    if export.sessions.is_empty() && export.derived.values().all(Vec::is_empty) {
        note("nothing is kept about this person");
        return Ok(Outcome::NothingFound);
    }
    Ok(Outcome::Done)
}

async fn erase(args: &EraseArgs, opened: &Opened, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let (tenant, user, left) = (args.tenant.id()?, UserId::any(&args.user)?, what_is_left(loaded));
    let administrator = opened.engine.dangerously_administer(Actor::cli());
    if args.dry_run {
        let sessions = administrator.count_person(&tenant, &user).await?;
        let derived = administrator.count_derived(&tenant, &user).await?;
        if args.output.json {
            output::json(&serde_json::json!({ "dry_run": true, "sessions": sessions, "derived": derived }))?;
        } else {
            let also: String = derived
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(name, count)| format!(", {count} {name}"))
                .collect();
            output::line(&format!("would erase {}{also} and their keys", counted(sessions, "session")))?;
        }
        left.inspect(|left| note(left));
        let nothing = sessions == 0 && derived.values().all(|count| *count == 0);
        return Ok(if nothing { Outcome::NothingFound } else { Outcome::Done });
    }
    let question = format!(
        "Permanently erase everything that is kept about {}, and its keys?",
        output::clean(&args.user)
    );
    if !args.yes && !output::is_confirmed(&question)? {
        return Ok(Outcome::NothingFound);
    }
    if let Err(error) = meet_workers(opened, loaded, &user).await {
        note(&format!(
            "workers could not be told, and keep words of this account in their memory until they are restarted: {error}"
        ));
    }
    let receipt = administrator.erase_person(&tenant, &user).await?;
    output::json(&receipt)?;
    left.inspect(|left| note(left));
    if receipt.sessions == 0 && receipt.tokens == 0 && receipt.derived.values().all(|count| *count == 0) {
        note("nothing was kept about this person");
        return Ok(Outcome::NothingFound);
    }
    note("erased; keep the receipt: `confidant audit verify --receipt FILE` checks it");
    Ok(Outcome::Done)
}

/// Workers may have words of an account's chats in their memory. They hear of its end over the bus, as from a gateway.
async fn meet_workers(opened: &Opened, loaded: &Loaded, user: &UserId) -> anyhow::Result<()> {
    // Only accounts have names that nobody else may have.
    let has_chats = UserId::new(user.as_str()).is_err();
    if has_chats && loaded.redis()?.is_some() {
        opened.engine.become_gateway(loaded.bus()?).await?;
    }
    Ok(())
}

/// What an erasure does not reach from here: where the store is shared, what is not in it has to be ended where it is.
fn what_is_left(loaded: &Loaded) -> Option<&'static str> {
    let shared = matches!(loaded.config.store.url, StoreKind::Redis(_) | StoreKind::Postgres(_));
    shared.then_some(
        "this covers the sessions of every server on this store, but memories and channel messages of this \
         machine only; run it on every other machine with its own data folder, too",
    )
}
