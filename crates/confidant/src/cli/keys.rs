//! `confidant keys`: the master key's life.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use confidant_engine::audit::Action;
use confidant_engine::keys::{KeySource as _, Rotated};
use confidant_engine::{Actor, MasterKey};
use indicatif::{ProgressBar, ProgressStyle};
use zeroize::Zeroizing;

use super::shared::{JsonArg, Outcome, with_engine};
use crate::config::Loaded;
use crate::damage::Part;
use crate::keys::RotationStart;
use crate::open::{Opened, Purpose};
use crate::output::{self, counted, moment, note};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant keys generate --output master.key
  confidant keys rotate            also while a server runs; run it again if it was interrupted
  confidant keys status --json")]
pub(super) enum KeysCommand {
    /// Make a new master key and print it; nothing is changed
    Generate(GenerateArgs),
    /// Re-seal every key under a new master key
    Rotate(JsonArg),
    /// Check that every key and every log opens
    Verify(JsonArg),
    /// Show which master keys are held and what they seal
    Status(JsonArg),
}

#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    /// Write to this file, which only you can read
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    form: JsonArg,
}

/// Makes a key; needs neither settings nor data.
pub(super) fn generate(args: &GenerateArgs) -> anyhow::Result<Outcome> {
    let key = MasterKey::random().dangerously_to_base64();
    if let Some(path) = &args.output {
        output::create(path, Zeroizing::new(format!("{}\n", *key)).as_bytes())?;
        note(&format!("written to {}", path.display()));
    } else if args.form.json {
        output::json(&serde_json::json!({ "key": *key }))?;
    } else {
        output::line(&key)?;
    }
    Ok(Outcome::Done)
}

pub(super) async fn run(command: KeysCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    with_engine(loaded, Purpose::LookAtData, async |opened| match command {
        KeysCommand::Generate(args) => generate(&args),
        KeysCommand::Rotate(args) => rotate(&args, opened).await,
        KeysCommand::Verify(args) => verify(&args, opened).await,
        KeysCommand::Status(args) => status(&args, opened).await,
    })
    .await
}

async fn rotate(args: &JsonArg, opened: &Opened) -> anyhow::Result<Outcome> {
    // Its keys hang on the old key, which is let go of at the end.
    opened.require(Part::Memory)?;
    // The engine is open, so the key in use is the right one: only now may the file change.
    let rotation = opened.keys.begin_rotation()?;
    match &rotation {
        Some(rotation) if rotation.start == RotationStart::Continued => {
            note("an earlier rotation was interrupted; resuming it");
        }
        Some(_) => {}
        None if opened.keys.load()?.retired.is_empty() && !memory_waits(opened).await? => {
            return Err(anyhow!(
                "only one master key is given, so there is nothing to rotate to; hint: put a new one \
                 (confidant keys generate) in its place and the old one into OLD_CHECKPOINT_ENCRYPTION_KEY"
            ));
        }
        None => {}
    }
    let bar = progress_bar();
    let progress = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let rotated = opened.engine.rotate_keys(&Actor::cli(), &progress).await;
    bar.finish_and_clear();
    let rotated = rotated?;
    // Before the old key is let go of: the memory's keys hang on it as well.
    let memories = match &opened.memory {
        Some(memory) => memory.rotate(|_, _| {}).await?,
        None => 0,
    };
    if !rotated.refused.is_empty() {
        tell(args, &rotated, memories)?;
        output::error(&format!(
            "{} not open and stayed under the old key; hint: keep the old key; restore the keyring from a \
             backup, or erase those sessions; then run this again",
            if rotated.refused.len() == 1 {
                "1 key does".to_owned()
            } else {
                format!("{} keys do", rotated.refused.len())
            }
        ));
        return Ok(Outcome::Faulty);
    }
    let after = match rotation {
        Some(rotation) => {
            rotation.end(rotated.root)?;
            "the new key is in use; back it up separately from the data"
        }
        None if opened.shared => {
            "the store and this data folder no longer need the old key; run this on every other machine with \
             its own data folder, since the memories there still need it; then remove it \
             (OLD_CHECKPOINT_ENCRYPTION_KEY)"
        }
        None => "the old key is no longer needed: remove it (OLD_CHECKPOINT_ENCRYPTION_KEY)",
    };
    tell(args, &rotated, memories)?;
    note(after);
    Ok(Outcome::Done)
}

/// Whether the memory's keys hang on another key than the current one.
async fn memory_waits(opened: &Opened) -> anyhow::Result<bool> {
    match &opened.memory {
        Some(memory) => Ok(memory.key_state().await?.under_others > 0),
        None => Ok(false),
    }
}

fn tell(args: &JsonArg, rotated: &Rotated, memories: u64) -> anyhow::Result<()> {
    if args.json {
        return output::json(&serde_json::json!({
            "root": rotated.root.to_string(),
            "keys": rotated.keys,
            "rewrapped": rotated.rewrapped,
            "refused": rotated.refused,
            "memory_keys_rewrapped": memories,
        }));
    }
    output::line(&format!(
        "{} now sealed under root {}, {} of them re-sealed in this run",
        counted(rotated.keys, "session key"),
        rotated.root,
        rotated.rewrapped
    ))?;
    for tag in &rotated.refused {
        output::line(&format!("{tag}\tkey-refused"))?;
    }
    if memories > 0 {
        output::line(&format!("{} re-sealed", counted(memories, "memory key")))?;
    }
    Ok(())
}

/// Draws on a terminal and nowhere else.
fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("re-sealing {bar:30} {pos}/{len} keys, {eta} left");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

async fn verify(args: &JsonArg, opened: &Opened) -> anyhow::Result<Outcome> {
    let verified = opened.engine.dangerously_administer(Actor::cli()).verify_everything().await?;
    if args.json {
        output::json(&verified)?;
    } else {
        output::line(&format!(
            "all open: {} and {}; audit log intact: {}",
            counted(verified.keys, "key"),
            counted(verified.sessions, "session"),
            counted(verified.audit_records, "audit record")
        ))?;
        for (tag, reason) in &verified.refused {
            output::line(&format!("{tag}\t{reason}"))?;
        }
    }
    if let Some(fault) = &verified.audit_fault {
        output::error(fault);
        return Ok(Outcome::Faulty);
    }
    opened.require(Part::Memory)?;
    if let Some(memory) = &opened.memory {
        let checked = memory.verify().await?;
        if !checked.refused.is_empty() {
            output::error(&format!(
                "{} not open; hint: restore memory.db and memory-keys.db from a backup, or forget them; \
                 `confidant doctor` names them",
                match checked.refused.len() {
                    1 => "1 memory does".to_owned(),
                    many => format!("{many} memories do"),
                }
            ));
            return Ok(Outcome::Faulty);
        }
    }
    if !chats_open(opened).await? {
        return Ok(Outcome::Faulty);
    }
    if verified.refused.is_empty() {
        return Ok(Outcome::Done);
    }
    output::error(&format!(
        "{} not open; hint: `confidant doctor` says what to do",
        if verified.refused.len() == 1 {
            "1 session does".to_owned()
        } else {
            format!("{} sessions do", verified.refused.len())
        }
    ));
    Ok(Outcome::Faulty)
}

/// Whether what the server sealed of accounts opens; says so if it does not.
async fn chats_open(opened: &Opened) -> anyhow::Result<bool> {
    opened.require(Part::Chats)?;
    let Some(chats) = &opened.chats else { return Ok(true) };
    let checked = chats.check().await.map_err(|refused| anyhow!("{}", crate::chats::told(&refused)))?;
    if !checked.refused.is_empty() {
        output::error(&format!(
            "{} not open; hint: restore the chats and the keyring from the same backup; `confidant doctor` names them",
            match checked.refused.len() {
                1 => "1 account does".to_owned(),
                many => format!("{many} accounts do"),
            }
        ));
    }
    Ok(checked.refused.is_empty())
}

async fn status(args: &JsonArg, opened: &Opened) -> anyhow::Result<Outcome> {
    let status = opened.engine.key_status().await?;
    opened.engine.dangerously_administer(Actor::cli()).note_keys(Action::KeysViewed, status.keys).await?;
    let memory = match &opened.memory {
        Some(memory) => Some(memory.key_state().await?),
        None => None,
    };
    let held: Vec<String> = status.held.iter().map(ToString::to_string).collect();
    if args.json {
        output::json(&serde_json::json!({
            "source": opened.keys.source(),
            "current": status.current.to_string(),
            "held": held,
            "keys": status.keys,
            "under_others": status.under_others,
            "rotated_at": status.rotated_at,
            "memory_keys": memory.map_or(0, |state| state.keys),
            "memory_keys_under_others": memory.map_or(0, |state| state.under_others),
        }))?;
    } else {
        output::line(&format!("master key from  {}", opened.keys.source()))?;
        output::line(&format!("current root     {}", status.current))?;
        output::line(&format!("roots held       {}", held.join(", ")))?;
        output::line(&format!(
            "session keys     {}, {} under other roots",
            status.keys, status.under_others
        ))?;
        if let Some(at) = status.rotated_at {
            output::line(&format!("last rotation    {}", moment(at)))?;
        }
        if let Some(state) = memory {
            output::line(&format!(
                "memory keys      {}, {} under other roots",
                state.keys, state.under_others
            ))?;
        }
    }
    if status.under_others + memory.map_or(0, |state| state.under_others) > 0 {
        note("a rotation is unfinished; `confidant keys rotate` resumes it");
    }
    Ok(Outcome::Done)
}
