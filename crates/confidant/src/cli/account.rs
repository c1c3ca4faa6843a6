//! `confidant account`: accounts of chats that only their owner can open. What is in them is not for an operator to see.

use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use confidant_chat_format::AccountId;
use confidant_chat_protocol::RefusedSent;
use confidant_chats::service::{Found, Service};

use super::shared::{JsonArg, Outcome, with_engine};
use crate::config::Loaded;
use crate::damage::Part;
use crate::open::{Opened, Purpose};
use crate::output::{self, counted, note};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
To erase an account, erase it as a person: `confidant person erase acct_…`.

Examples:
  confidant account invite
  confidant account invite --days 1 --json
  confidant account count
  confidant account restore acct_…     after the keyring or the chats were lost")]
pub(super) enum AccountCommand {
    /// Print a code that lets one person register
    Invite(InviteArgs),
    /// Count the accounts
    Count(CountArgs),
    /// Print a code with which a device restores an account that was lost or no longer opens
    Restore(RestoreArgs),
}

#[derive(Debug, Args)]
pub(super) struct InviteArgs {
    /// How long the code is valid
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=365))]
    days: u64,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct CountArgs {
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// The account, as its owner's device names it (`confidant chat --server URL --restore`)
    #[arg(value_name = "ACCT")]
    account: String,
    /// How long the code is valid
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=720))]
    hours: u64,
    #[command(flatten)]
    output: JsonArg,
}

pub(super) async fn run(command: AccountCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    with_engine(loaded, Purpose::LookAtData, async |opened| match command {
        AccountCommand::Invite(args) => invite(&args, opened).await,
        AccountCommand::Count(args) => count(&args, opened).await,
        AccountCommand::Restore(args) => restore(&args, opened).await,
    })
    .await
}

async fn invite(args: &InviteArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let service = service(opened)?;
    if service.count_accounts().await.map_err(said)? == 0 {
        return Err(anyhow!(
            "nobody has an account yet, and the first account needs another code; hint: `confidant serve` prints that code when it starts"
        ));
    }
    let code = service.invite(Duration::from_secs(args.days * 86_400)).await.map_err(said)?;
    if args.output.json {
        output::json(&serde_json::json!({ "invite": code.as_str(), "days": args.days }))?;
    } else {
        output::line(&code)?;
        note(&format!("valid once, for {}; give it to one person only", counted(args.days, "day")));
    }
    Ok(Outcome::Done)
}

async fn count(args: &CountArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let accounts = match &opened.chats {
        Some(service) => service.count_accounts().await.map_err(said)?,
        None => {
            opened.require(Part::Chats)?;
            0
        }
    };
    if args.output.json {
        output::json(&serde_json::json!({ "accounts": accounts }))?;
    } else {
        output::line(&counted(accounts, "account"))?;
    }
    Ok(if accounts == 0 { Outcome::NothingFound } else { Outcome::Done })
}

/// A code for an account that its owner cannot reach any more, and for no other.
async fn restore(args: &RestoreArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let service = service(opened)?;
    let account = AccountId::parse(&args.account).map_err(|_| {
        anyhow!("this is not the id of an account; hint: it begins with acct_, followed by 26 characters")
    })?;
    match service.find_account(&account).await.map_err(said)? {
        Found::Alive => {
            return Err(anyhow!(
                "this account still opens, so it cannot be restored; hint: its owner logs in with the password or the recovery code; \
                 if you restored older chats on purpose: confidant doctor --accept-restore"
            ));
        }
        Found::Erased => {
            return Err(anyhow!(
                "this account was erased and cannot be restored; hint: its owner can register a new one"
            ));
        }
        Found::Locked | Found::Missing => {}
    }
    let code = service.restore_code(&account, Duration::from_secs(args.hours * 3_600)).await.map_err(said)?;
    if args.output.json {
        output::json(&serde_json::json!({ "code": code.as_str(), "hours": args.hours }))?;
    } else {
        output::line(&code)?;
        note(&format!(
            "valid once, for {}, and for this account only; give it to the owner and to nobody else: \
             confidant chat --server URL --login NAME --restore CODE",
            counted(args.hours, "hour")
        ));
    }
    Ok(Outcome::Done)
}

fn service(opened: &Opened) -> anyhow::Result<&Service> {
    opened.require(Part::Chats)?;
    opened.chats.as_ref().ok_or_else(|| {
        anyhow!(
            "there are no chats here yet; hint: start `confidant serve`, which makes them unless web.enabled is false"
        )
    })
}

fn said(refused: RefusedSent) -> anyhow::Error {
    anyhow!("{}", crate::chats::told(&refused))
}
