//! `confidant store`: moving conversations from one store to another, and taking over those of the first system.

use std::io::IsTerminal as _;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use confidant_engine::audit::Action;
use confidant_engine::keys::KeySource as _;
use confidant_engine::model::Extractive;
use confidant_engine::storage::{
    DataPlace, Imported, KeyringPlace, RedisAddress, Way, copy, import_checkpoints, is_copied,
};
use confidant_engine::{Actor, Engine, Parts, Storage, TenantId};
use indicatif::{ProgressBar, ProgressStyle};

use super::shared::{JsonArg, Outcome, stop, with_engine};
use crate::chats::{self, Copied};
use crate::config::DEFAULT_TENANT;
use crate::config::{KeyringUrl, Loaded, StoreKind};
use crate::keys::Keys;
use crate::open::{self, Purpose};
use crate::output::{self, counted, note};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant store copy --from sqlite: --to redis://redis.example:6379     PGPASSWORD and REDIS_PASSWORD keep passwords out of addresses
  confidant store copy --from redis://old --to postgres://me@db/confidant run it again if interrupted
  confidant store import --from redis://old-system:6379")]
pub(super) enum StoreCommand {
    /// Copy everything, still sealed, to an empty store; stop the servers first
    Copy(CopyArgs),
    /// Import conversations of the older system that Confidant replaces, from its Redis
    Import(ImportArgs),
}

#[derive(Debug, Args)]
pub(super) struct CopyArgs {
    /// The store to copy from: an address as in store.url
    #[arg(long, value_name = "URL")]
    from: String,
    /// The store to copy to
    #[arg(long, value_name = "URL")]
    to: String,
    /// Where the source's keys are [default: beside the data]
    #[arg(long, value_name = "URL")]
    from_keyring: Option<String>,
    /// Where the keys go [default: beside the data]
    #[arg(long, value_name = "URL")]
    to_keyring: Option<String>,
    #[command(flatten)]
    form: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The Redis of the older system
    #[arg(long, value_name = "URL")]
    from: String,
    /// The tenant that gets the conversations
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
    prepare(&from, &to).await?;
    let (source, target) =
        (Storage::open(&from.0, from.1.as_ref()).await?, Storage::open(&to.0, to.1.as_ref()).await?);
    // First: what says that a copy is complete is written with the conversations. Once it says so, chats go on there.
    let chats = match is_copied(&source, &target).await? {
        false => chats::copy(loaded, &from.0, &to.0).await?,
        true => Copied::None,
    };
    let bar = progress_bar("copying {bar:30} {pos}/{len} sessions, {eta} left");
    let progress = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let copied = copy(&source, &target, Arc::clone(&keys) as _, &progress).await;
    bar.finish_and_clear();
    let copied = copied?;
    if copied.complete {
        // The destination may have gone on since, and servers may be at work on it: it is theirs now.
        if args.form.json {
            output::json(&serde_json::json!({ "copied": copied }))?;
        } else {
            output::line("the copy is complete: an earlier run finished it, and nothing was copied now")?;
        }
        note("it lacks what changed at the source since then; to include that, copy to an empty store");
        tell_what_is_next(&keys);
        return Ok(Outcome::Done);
    }
    if chats == Copied::There {
        return Err(anyhow!(
            "there are other chats at the destination, so none were copied; hint: if an earlier copy was interrupted and the \
             source changed since, remove chats.db or the schema of chats there, then run this again"
        ));
    }
    // Everything is opened once where it is now: keys, logs, and the chain of the audit log.
    let engine = Engine::open(Parts::new(target, Arc::clone(&keys) as _, Arc::new(Extractive))).await?;
    let administrator = engine.dangerously_administer(Actor::cli());
    administrator.note_keys(Action::KeysCopied, copied.keys).await?;
    let verified = administrator.verify_everything().await;
    stop(&engine).await;
    let verified = verified?;
    if args.form.json {
        let rows = if let Copied::Rows(rows) = chats { rows } else { 0 };
        output::json(&serde_json::json!({ "copied": copied, "verified": verified, "chat_rows": rows }))?;
    } else {
        if let Copied::Rows(rows) = chats {
            output::line(&format!("chats copied: {}", counted(rows, "row")))?;
        }
        output::line(&format!(
            "{} and {} copied, {} of them in an earlier run; audit log intact: {}",
            counted(copied.sessions, "session"),
            counted(copied.keys, "key"),
            copied.already,
            counted(verified.audit_records, "audit record"),
        ))?;
    }
    for (tag, reason) in &verified.refused {
        output::error(&format!(
            "{tag} does not open ({reason}); hint: check whether it opens in the source store"
        ));
    }
    if let Some(fault) = &verified.audit_fault {
        output::error(fault);
    }
    if !verified.refused.is_empty() || verified.audit_fault.is_some() {
        return Ok(Outcome::Faulty);
    }
    tell_what_is_next(&keys);
    tell_where_chats_are(chats, &to.0);
    Ok(Outcome::Done)
}

/// Checks that there is something to copy, and makes the folders that it goes to.
async fn prepare(
    from: &(DataPlace, Option<KeyringPlace>),
    to: &(DataPlace, Option<KeyringPlace>),
) -> anyhow::Result<()> {
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
    Ok(())
}

/// Says it where the address of the new store does not.
fn tell_where_chats_are(chats: Copied, to: &DataPlace) {
    match (chats, to) {
        (Copied::Stay, _) => note(
            "chats that only their owner can open stay in chats.db of the data folder: keep that file when you erase the old store",
        ),
        (Copied::Rows(_), DataPlace::Redis(_)) => note(
            "chats that only their owner can open are in chats.db of this machine's data folder: serve from here, or set web.url",
        ),
        _ => {}
    }
}

/// What is left to do once a copy is complete.
fn tell_what_is_next(keys: &Keys) {
    note("set store.url to the new address; the old store still has everything, and its keys");
    if let Some(file) = keys.managed() {
        note(&format!(
            "the new store needs the same master key: set CHECKPOINT_ENCRYPTION_KEY_FILE={} for every \
             process on it",
            file.display()
        ));
    }
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
        let bar = progress_bar("importing {bar:30} {pos}/{len} checkpoints, {eta} left");
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
                "{} imported, {} already here, {} without an answer",
                counted(imported.sessions, "session"),
                imported.already,
                imported.empty
            ))?;
        }
        report(&imported, way);
        if imported.refused + imported.unknown + imported.unreadable + imported.incomplete > 0 {
            return Ok(Outcome::Faulty);
        }
        Ok(if imported == Imported::default() { Outcome::NothingFound } else { Outcome::Done })
    })
    .await
}

/// Says what was not taken over, and where it is.
fn report(imported: &Imported, way: Way) {
    let stays = match way {
        Way::SetAside => "the originals stay as `legacy:…` until they expire or the session is erased",
        Way::ReadOnly => "the originals stay where they are",
    };
    if imported.partly > 0 {
        output::note(&format!(
            "{} had messages that are not imported: questions without an answer, text before the first \
             question, pictures, arguments of tool calls; {stays}",
            counted(imported.partly, "session"),
        ));
    }
    if imported.incomplete > 0 {
        output::error(&format!(
            "{} here without all messages of the original; {stays}; hint: history.max_messages = 0 keeps \
             nothing; the import does not change a session that was used before or since",
            counted(imported.incomplete, "session"),
        ));
    }
    if imported.messages_left > 0 {
        output::note(&format!("{} not imported in total", counted(imported.messages_left, "message")));
    }
    if imported.refused > 0 {
        output::error(&format!(
            "{} not imported; hint: give the key they were made with as CHECKPOINT_ENCRYPTION_KEY or in \
             OLD_CHECKPOINT_ENCRYPTION_KEY; changed or unencrypted ones are not trusted",
            counted(imported.refused, "checkpoint")
        ));
    }
    if imported.unknown > 0 {
        output::error(&format!(
            "{} opened but not understood; hint: their messages or session ids have an unknown format; they \
             stay where they are",
            counted(imported.unknown, "checkpoint")
        ));
    }
    if imported.unreadable > 0 {
        output::error(&format!(
            "{} named like a checkpoint, but of another type; hint: checkpoints of the older system are \
             strings; look at them with redis-cli; they stay where they are",
            counted(imported.unreadable, "key")
        ));
    }
    for row in imported.left.iter().take(MOST_NAMED) {
        output::note(&format!("  left: {} ({}): {}", row.name, row.kind, row.why));
    }
    if imported.left.len() > MOST_NAMED {
        output::note(&format!("  and {} more; hint: --json lists all", imported.left.len() - MOST_NAMED));
    }
}

/// How many rows that were left are named on a terminal.
const MOST_NAMED: usize = 20;

/// Where an address leads, with what the settings say of such stores.
fn place(
    loaded: &Loaded,
    flag: &str,
    url: &str,
    keyring: Option<&str>,
) -> anyhow::Result<(DataPlace, Option<KeyringPlace>)> {
    let kind = StoreKind::try_from(url.to_owned()).map_err(|error| anyhow!("{flag}: {error}"))?;
    if kind == StoreKind::Memory {
        return Err(anyhow!(
            "{flag}: a memory: store ends with its process; hint: name a store that is kept"
        ));
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
