//! `confidant store`: moving conversations from one store to another, and taking over those of the first system.

use std::io::IsTerminal as _;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use confidant_engine::{
    Actor, DataPlace, Engine, Extractive, KeySource as _, KeyringPlace, Parts, RedisAddress, Storage,
    TenantId, Way, copy, import_checkpoints,
};
use indicatif::{ProgressBar, ProgressStyle};

use super::output::{self, counted, note};
use super::{DEFAULT_TENANT, JsonArg, Outcome, with_engine};
use crate::config::{KeyringUrl, Loaded, StoreKind};
use crate::keys::Keys;
use crate::open::{self, Purpose};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant store copy --from sqlite: --to redis://redis.example:6379     PGPASSWORD and REDIS_PASSWORD keep passwords out of addresses
  confidant store copy --from redis://old --to postgres://me@db/confidant run it again if it was cut off
  confidant store import --from redis://old-system:6379")]
pub(super) enum StoreCommand {
    /// Copy everything to an empty store, sealed as it is; stop the servers first
    Copy(CopyArgs),
    /// Take over the conversations of the first system from its Redis
    Import(ImportArgs),
}

#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// Where it is: an address as in store.url
    #[arg(long, value_name = "URL")]
    from: String,
    /// Where it goes
    #[arg(long, value_name = "URL")]
    to: String,
    /// Where its keys are [default: beside the data]
    #[arg(long, value_name = "URL")]
    from_keyring: Option<String>,
    /// Where its keys go [default: beside the data]
    #[arg(long, value_name = "URL")]
    to_keyring: Option<String>,
    #[command(flatten)]
    form: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The Redis of the first system
    #[arg(long, value_name = "URL")]
    from: String,
    /// The tenant that the conversations become
    #[arg(long, value_name = "TENANT", default_value = DEFAULT_TENANT)]
    tenant: String,
    #[command(flatten)]
    form: JsonArg,
}

pub(super) async fn run(command: StoreCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    match command {
        StoreCommand::Copy(args) => copy_all(&args, loaded).await,
        StoreCommand::Import(args) => import(&args, loaded).await,
    }
}

async fn copy_all(args: &CopyArgs, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let from = place(loaded, "--from", &args.from, args.from_keyring.as_deref())?;
    let to = place(loaded, "--to", &args.to, args.to_keyring.as_deref())?;
    let keys = Arc::new(match &from.0 {
        DataPlace::Sqlite { folder, .. } => Keys::of_folder(loaded, folder)?,
        _ => Keys::choose(loaded)?,
    });
    if from == to {
        return Err(anyhow!("--from and --to are the same; hint: name another store after --to"));
    }
    if !from.0.is_there().await? {
        return Err(anyhow!("there is no data in the store after --from; hint: check its address"));
    }
    if let DataPlace::Sqlite { folder, .. } = &to.0 {
        open::make_folder(folder)?;
    }
    if let Some(KeyringPlace::Sqlite(folder)) = &to.1 {
        open::make_folder(folder)?;
    }
    let (source, target) =
        (Storage::open(&from.0, from.1.as_ref()).await?, Storage::open(&to.0, to.1.as_ref()).await?);
    let bar = progress_bar("copying {bar:30} {pos}/{len} sessions, {eta} left");
    let progress = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let copied = copy(&source, &target, Arc::clone(&keys) as _, &progress).await;
    bar.finish_and_clear();
    let copied = copied?;
    // Everything is opened once where it is now: keys, logs, and the chain of the audit log.
    let engine = Engine::open(Parts::new(target, Arc::clone(&keys) as _, Arc::new(Extractive))).await?;
    let verified = engine.dangerously_administer(Actor::cli()).verify_everything().await;
    super::stop(&engine).await;
    let verified = verified?;
    if args.form.json {
        output::json(&serde_json::json!({ "copied": copied, "verified": verified }))?;
    } else {
        output::line(&format!(
            "{} and {} copied, {} of them in an earlier run; {} in their places",
            counted(copied.sessions, "session"),
            counted(copied.keys, "key"),
            copied.already,
            counted(verified.audit_records, "audit record"),
        ))?;
    }
    for (tag, reason) in &verified.refused {
        output::error(&format!(
            "{tag} does not open ({reason}); hint: see whether it does where it came from"
        ));
    }
    if let Some(fault) = &verified.audit_fault {
        output::error(fault);
    }
    if !verified.refused.is_empty() || verified.audit_fault.is_some() {
        return Ok(Outcome::Faulty);
    }
    note("set store.url to the new address; the old store still has everything, and its keys");
    if let Some(file) = keys.managed() {
        note(&format!(
            "its master key goes with it: set CHECKPOINT_ENCRYPTION_KEY_FILE={} for every process on it",
            file.display()
        ));
    }
    Ok(Outcome::Done)
}

async fn import(args: &ImportArgs, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let address = RedisAddress::parse(&args.from).map_err(|error| anyhow!("--from: {error}"))?;
    let tenant = TenantId::new(&args.tenant).context("--tenant")?;
    let from = loaded.config.store.redis(&address, loaded.secrets.redis_password.as_ref())?;
    let way = match &loaded.config.store.url {
        StoreKind::Redis(store) if *store == address => Way::SetAside,
        _ => Way::ReadOnly,
    };
    with_engine(loaded, Purpose::SetUp, async |opened| {
        let bar = progress_bar("taking over {bar:30} {pos}/{len} checkpoints, {eta} left");
        let progress = |done, all| {
            bar.set_length(all);
            bar.set_position(done);
        };
        let imported =
            import_checkpoints(&opened.engine, &from, &tenant, &opened.keys.load()?, way, &progress).await;
        bar.finish_and_clear();
        let imported = imported?;
        if args.form.json {
            output::json(&imported)?;
        } else {
            output::line(&format!(
                "{} taken over, {} here already, {} without an answer",
                counted(imported.sessions, "session"),
                imported.already,
                imported.empty
            ))?;
        }
        if imported.partly > 0 {
            output::note(&format!(
                "{} had words without an answer or before the first question, which are left out{}",
                counted(imported.partly, "session"),
                if way == Way::SetAside { "; they stay as `legacy:…` until they expire or the session is erased" } else { "" },
            ));
        }
        if imported.refused > 0 {
            output::error(&format!(
                "{} not taken over; hint: give the key they were made with as CHECKPOINT_ENCRYPTION_KEY or in \
                 OLD_CHECKPOINT_ENCRYPTION_KEY; those that were changed, or are not encrypted, are not trusted",
                counted(imported.refused, "checkpoint")
            ));
        }
        if imported.unknown > 0 {
            output::error(&format!(
                "{} opened and not understood; hint: they hold no messages in a form that is known, or their session ids have none; \
                 they are left where they are",
                counted(imported.unknown, "checkpoint")
            ));
        }
        if imported.refused + imported.unknown > 0 {
            return Ok(Outcome::Faulty);
        }
        Ok(if imported == Default::default() { Outcome::NothingFound } else { Outcome::Done })
    })
    .await
}

/// Where an address leads, with what the settings say of such stores.
fn place(
    loaded: &Loaded,
    flag: &str,
    url: &str,
    keyring: Option<&str>,
) -> anyhow::Result<(DataPlace, Option<KeyringPlace>)> {
    let kind = StoreKind::try_from(url.to_owned()).map_err(|error| anyhow!("{flag}: {error}"))?;
    if kind == StoreKind::Memory {
        return Err(anyhow!("{flag}: memory: ends with its process; hint: name a store that is kept"));
    }
    let keyring = keyring
        .map(|url| KeyringUrl::try_from(url.to_owned()).map_err(|error| anyhow!("{flag}-keyring: {error}")));
    Ok((open::place_of(loaded, &kind)?, open::keyring_at(loaded, keyring.transpose()?.as_ref())?))
}

/// Draws on a terminal and nowhere else.
fn progress_bar(form: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(form);
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
