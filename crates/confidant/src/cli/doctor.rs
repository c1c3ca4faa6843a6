//! `confidant doctor`: looks at everything and says what to do about what is wrong. Changes nothing by itself.

mod beside;
mod ready;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use confidant_engine::aspects::Instructions;
use confidant_engine::clock::{Clock as _, Millis, SystemClock};
use confidant_engine::keys::KeySource as _;
use confidant_engine::model::ChosenModel;
use confidant_engine::{Actor, Engine};
use confidant_mcp::tools::Standing;
use confidant_memory::{Depth, Memory, Undone};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::shared::{JsonArg, Outcome, stop};
use crate::config::{ConfigError, Loaded, LogLevel, StoreKind};
use crate::files;
use crate::keys::Keys;
use crate::open::{self, Opened, Purpose};
use crate::output::{self, Paint, counted, note};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  confidant doctor
  confidant doctor --deep              open every artifact of the memory, not only a sample of them
  confidant doctor --ready             is the server on this machine ready? For health checks of containers
  confidant doctor --accept-restore    after restoring a backup of confidant.db on purpose")]
pub(super) struct DoctorArgs {
    /// Accept the data as it is now, as after restoring a backup
    #[arg(long)]
    accept_restore: bool,
    /// Open every artifact of the memory [default: the newest and 63 others, chosen at random]
    #[arg(long)]
    deep: bool,
    /// Ask a running server whether it is ready, and look at nothing else [default: server.listen]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, conflicts_with_all = ["accept_restore", "deep", "json"])]
    ready: Option<Option<SocketAddr>>,
    #[command(flatten)]
    output: JsonArg,
}

impl DoctorArgs {
    fn depth(&self) -> Depth {
        if self.deep { Depth::All } else { Depth::Sample(SAMPLE) }
    }

    /// How many artifacts are named of each kind of damage. A script that wants all gets all.
    fn most_named(&self) -> usize {
        if self.deep && self.output.json { usize::MAX } else { MOST_NAMED }
    }
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warn,
    Fail,
}

impl Check {
    fn ok(name: &'static str, what: impl Into<String>) -> Self {
        Self { name, state: State::Ok, what: what.into(), hint: None }
    }

    fn warn(name: &'static str, message: &str) -> Self {
        Self::with(name, State::Warn, message)
    }

    fn fail(name: &'static str, message: &str) -> Self {
        Self::with(name, State::Fail, message)
    }

    fn with(name: &'static str, state: State, message: &str) -> Self {
        let (what, hint) = output::parted(message);
        Self { name, state, what: what.to_owned(), hint: hint.map(str::to_owned) }
    }
}

pub(super) async fn run(args: &DoctorArgs, loaded: Result<Loaded, ConfigError>) -> anyhow::Result<Outcome> {
    if let Some(address) = args.ready {
        return ready::ask(address.map_or_else(|| loaded.map(|loaded| loaded.config.server.listen), Ok)?)
            .await;
    }
    let mut checks = Vec::new();
    match loaded {
        Err(error) => checks.push(Check::fail("settings", &error.to_string())),
        Ok(loaded) => {
            crate::logging::start(loaded.config.log, LogLevel::Error);
            let file = loaded.file.as_ref().map_or("defaults".to_owned(), |file| file.display().to_string());
            checks.push(Check::ok("settings", file));
            examine(args, &loaded, &mut checks).await;
        }
    }
    tell(args, &checks)
}

async fn examine(args: &DoctorArgs, loaded: &Loaded, checks: &mut Vec<Check>) {
    let config = &loaded.config;
    let there = match open::data_place(loaded) {
        Ok(place) => place.is_there().await.map_err(anyhow::Error::from),
        Err(error) => Err(error),
    };
    let there = match there {
        Ok(there) => there,
        Err(error) => {
            checks.push(Check::fail("data", &output::whole(&error)));
            return;
        }
    };
    let mut channels = None;
    if there {
        checks.extend(folders(loaded));
        checks.push(key(loaded));
        match open::open(loaded, Purpose::LookAtData).await {
            Err(error) => checks.push(Check::fail("opening", &output::whole(&error))),
            Ok(opened) => {
                if args.accept_restore {
                    checks.push(accept_restore(&opened.engine).await);
                    if let Some(memory) = &opened.memory {
                        checks.push(beside::accept_restore(memory).await);
                    }
                    if let Some(chats) = &opened.chats {
                        checks.push(beside::accept_chats(chats).await);
                    }
                }
                checks.push(age(&opened.engine).await);
                checks.extend(contents(&opened.engine).await);
                checks.extend(opened.damaged.iter().map(|one| Check::fail(one.part.name(), &one.trouble)));
                if let Some(memory) = &opened.memory {
                    checks.extend(beside::memories(memory, args.depth(), args.most_named()).await);
                    checks.extend(undone(memory).await);
                }
                if let Some(inbox) = &opened.inbox {
                    checks.push(beside::inbox(inbox).await);
                }
                if let Some(chats) = &opened.chats {
                    checks.push(beside::chats(chats).await);
                }
                channels = Some(channels_of(loaded, Some(&opened)).await);
                stop(&opened.engine).await;
            }
        }
    } else {
        let what = match &config.store.url {
            StoreKind::Memory => {
                "store.url is memory:, so nothing is kept; hint: use sqlite: to keep data".to_owned()
            }
            StoreKind::Sqlite(_) => {
                format!(
                    "{} has no data yet; hint: the first start creates it",
                    config.server.data_dir.display()
                )
            }
            StoreKind::Redis(address) => {
                checks.push(key(loaded));
                format!("{} answers and has no data yet; hint: the first start creates it", address.shown())
            }
            StoreKind::Postgres(address) => {
                checks.push(key(loaded));
                format!("{} answers and has no data yet; hint: the first start creates it", address.shown())
            }
        };
        checks.push(Check::warn("data", &what));
    }
    checks.extend(instructions(loaded));
    checks.extend(models(loaded).await);
    checks.extend(tools(loaded).await);
    checks.extend(match channels {
        Some(channels) => channels,
        None => channels_of(loaded, None).await,
    });
    checks.push(address(config.server.listen).await);
}

fn folders(loaded: &Loaded) -> Vec<Check> {
    let config = &loaded.config;
    let mut folders = vec![config.server.data_dir.clone()];
    folders.extend(config.data_folder());
    folders.extend(config.keyring_folder());
    folders.dedup();
    folders.iter().map(|folder| folder_check(folder)).collect()
}

fn folder_check(folder: &Path) -> Check {
    let shown = folder.display();
    match files::mode(folder) {
        Err(error) => Check::fail(
            "folder",
            &format!("{shown} cannot be checked ({}); hint: check its owner and permissions", error.kind()),
        ),
        Ok(mode) if mode & 0o077 != 0 => Check::warn(
            "folder",
            &format!("{shown} can be entered by other users (mode {mode:o}); hint: chmod 700 {shown}"),
        ),
        Ok(_) => Check::ok("folder", format!("{shown}, only its owner can enter")),
    }
}

fn key(loaded: &Loaded) -> Check {
    let keys = match Keys::choose(loaded) {
        Ok(keys) => keys,
        Err(error) => return Check::fail("master key", &error.to_string()),
    };
    match keys.load() {
        Ok(found) if found.retired.is_empty() => Check::ok("master key", keys.source()),
        Ok(found) if keys.managed().is_some() => {
            let _ = found;
            Check::warn("master key", "a rotation was interrupted; hint: confidant keys rotate")
        }
        Ok(found) => Check::ok(
            "master key",
            format!("{}, and {}", keys.source(), counted(found.retired.len() as u64, "old one")),
        ),
        Err(error) => Check::fail("master key", &error.to_string()),
    }
}

/// How long ago the keys were last sealed anew.
async fn age(engine: &Engine) -> Check {
    match engine.key_status().await {
        Ok(status) => aged(status.rotated_at, SystemClock.now()),
        Err(error) => Check::fail("rotation", &error.to_string()),
    }
}

fn aged(rotated_at: Option<Millis>, now: Millis) -> Check {
    let Some(at) = rotated_at else { return Check::ok("rotation", "no rotation is recorded yet".to_owned()) };
    let days = now.0.saturating_sub(at.0).max(0).cast_unsigned() / DAY;
    let ago = format!("the keys were last rotated {} ago", counted(days, "day"));
    if days > OLD {
        return Check::warn("rotation", &format!("{ago}; hint: confidant keys rotate (docs/OPERATIONS.md)"));
    }
    Check::ok("rotation", ago)
}

/// In milliseconds.
const DAY: u64 = 86_400_000;
/// In days.
const OLD: u64 = 90;

async fn accept_restore(engine: &Engine) -> Check {
    match engine.dangerously_administer(Actor::cli()).accept_restore().await {
        Ok(behind) => Check::ok(
            "restore",
            format!("accepted: {} had been newer before the restore", counted(behind, "session")),
        ),
        Err(error) => Check::fail("restore", &error.to_string()),
    }
}

async fn contents(engine: &Engine) -> Vec<Check> {
    let administrator = engine.dangerously_administer(Actor::cli());
    let files = match engine.check_storage().await {
        Ok((data, keys)) if data == keys => Check::ok("databases", format!("{data} is sound")),
        Ok((data, keys)) => Check::ok("databases", format!("{data} and {keys} are sound")),
        Err(error) => Check::fail("databases", &error.to_string()),
    };
    let verified = match administrator.verify_everything().await {
        Ok(verified) => verified,
        Err(error) => return vec![files, Check::fail("sessions", &error.to_string())],
    };
    let audit = match &verified.audit_fault {
        None => Check::ok(
            "audit log",
            format!("{}, the chain is intact", counted(verified.audit_records, "record")),
        ),
        Some(fault) => Check::fail("audit log", fault),
    };
    let logs = if verified.refused.is_empty() {
        let (keys, logs) = (counted(verified.keys, "key"), counted(verified.sessions, "log"));
        Check::ok("sessions", format!("all open: {keys} and {logs}"))
    } else {
        Check::fail("sessions", &refused(&verified.refused))
    };
    vec![files, logs, audit]
}

/// What a memory has still to do with its stores; nothing if that is nothing.
async fn undone(memory: &Memory) -> Option<Check> {
    match memory.undone().await {
        Ok(Undone { uploads: 0, removals: 0 }) => None,
        Ok(Undone { uploads, removals }) => Some(Check::warn(
            "memory",
            &format!(
                "{} and {} are not finished; hint: `confidant serve` and `confidant mcp` retry every minute, \
                 and so does the next `confidant memory` command that writes",
                counted(uploads, "upload"),
                counted(removals, "removal")
            ),
        )),
        Err(error) => Some(Check::fail("memory", &error.to_string())),
    }
}

fn refused(refused: &[(String, String)]) -> String {
    let named: Vec<String> =
        refused.iter().take(MOST_NAMED).map(|(tag, reason)| format!("{tag} ({reason})")).collect();
    let more = if refused.len() > named.len() { ", …" } else { "" };
    let hint = if refused.iter().any(|(_, reason)| reason == "rolled-back") {
        "if you restored a backup on purpose, run this again with --accept-restore"
    } else if refused.iter().any(|(tag, _)| tag.starts_with("eras")) {
        "the keyring's list of erasures was changed: restore the keyring from its newest backup, then repeat the erasures made since"
    } else {
        "restore the data folder from a backup, or delete these sessions"
    };
    let count = counted(refused.len() as u64, "session");
    format!("{count} refused: {}{more}; hint: {hint}", named.join(", "))
}

fn instructions(loaded: &Loaded) -> Vec<Check> {
    let folder = loaded.config.instructions_folder();
    let instructions = Instructions::open(folder.clone());
    let faults = instructions.faults();
    if faults.is_empty() && instructions.count() == 0 {
        return Vec::new();
    }
    let files = counted(instructions.count() as u64, "file");
    let used = Check::ok("instructions", format!("{files} in {}", folder.display()));
    let faults = faults.iter().map(|fault| Check::warn("instructions", &fault.to_string()));
    std::iter::once(used).chain(faults).collect()
}

async fn models(loaded: &Loaded) -> Vec<Check> {
    let models = match loaded.config.models(&loaded.secrets) {
        Err(error) => return vec![Check::fail("model", &error.to_string())],
        Ok(models) => models,
    };
    let mut checks = Vec::new();
    for ChosenModel { name, model, .. } in models.all() {
        // A plain set-up has one, which needs no name.
        let whose = if models.all().count() > 1 { format!("{name}: ") } else { String::new() };
        checks.push(match model.check().await {
            Ok(()) => Check::ok("model", format!("{whose}{} answers", model.name())),
            Err(error) => Check::fail("model", &format!("{whose}{error}")),
        });
    }
    checks
}

async fn tools(loaded: &Loaded) -> Vec<Check> {
    let (toolbox, refused) = match crate::tools::start(loaded, |_| true) {
        Ok(started) => started,
        Err(error) => return vec![Check::fail("tools", &output::whole(&error))],
    };
    let statuses = toolbox.settle(super::tools::PATIENCE).await;
    toolbox.stop().await;
    let answering = statuses.iter().map(|status| match status.standing {
        Standing::Ready(count) => {
            Check::ok("tools", format!("{} answers, {}", status.name, counted(count as u64, "tool")))
        }
        other => {
            let trouble = super::tools::trouble(other).unwrap_or_default();
            Check::fail("tools", &format!("{}: {trouble}", status.name))
        }
    });
    let unusable = refused.iter().map(|error| Check::fail("tools", &error.to_string()));
    answering.chain(unusable).collect()
}

/// How the channels are, with what they have kept, if that could be opened.
async fn channels_of(loaded: &Loaded, opened: Option<&Opened>) -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, channel) in crate::channels::configured(loaded) {
        match channel {
            Err(error) => checks.push(Check::fail("channel", &format!("{name}: {}", output::whole(&error)))),
            Ok(channel) => {
                let vault = opened.and_then(|opened| {
                    let inbox = opened.inbox.as_ref()?;
                    Some(inbox.vault(&opened.engine, channel.platform(), channel.label()))
                });
                let found = channel.check(vault.as_ref()).await;
                checks.extend(found.into_iter().map(|finding| Check {
                    name: "channel",
                    state: if finding.good { State::Ok } else { State::Fail },
                    what: format!("{name}: {}", finding.what),
                    hint: finding.hint,
                }));
            }
        }
    }
    checks
}

async fn address(listen: SocketAddr) -> Check {
    match TcpListener::bind(listen).await {
        Ok(_) => Check::ok("address", format!("{listen} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            if tokio::time::timeout(PATIENCE, is_ours(listen)).await.unwrap_or(false) {
                Check::ok("address", format!("a server answers on {listen}"))
            } else {
                Check::fail(
                    "address",
                    &format!(
                        "{listen} is in use by another program; hint: choose another address with server.listen"
                    ),
                )
            }
        }
        Err(error) => Check::fail(
            "address",
            &format!("cannot listen on {listen} ({}); hint: change server.listen", error.kind()),
        ),
    }
}

/// Whether what listens there answers as a server of ours does.
async fn is_ours(listen: SocketAddr) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(listen).await?;
        stream
            .write_all(
                format!("GET /healthz HTTP/1.1\r\nHost: {listen}\r\nConnection: close\r\n\r\n").as_bytes(),
            )
            .await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        Ok::<bool, std::io::Error>(answer.ends_with(b" 200"))
    };
    asked.await.unwrap_or(false)
}

fn tell(args: &DoctorArgs, checks: &[Check]) -> anyhow::Result<Outcome> {
    let failed = checks.iter().filter(|check| check.state == State::Fail).count();
    if args.output.json {
        output::json(&checks)?;
    } else {
        let paint = Paint::of_stdout();
        for check in checks {
            let state = match check.state {
                State::Ok => paint.green("ok  "),
                State::Warn => paint.yellow("warn"),
                State::Fail => paint.red("fail"),
            };
            output::line(&format!("{state}  {}: {}", check.name, check.what))?;
            if let Some(hint) = &check.hint {
                output::line(&format!("      hint: {hint}"))?;
            }
        }
    }
    if failed > 0 {
        note(&format!("{failed} of {} checks failed", checks.len()));
        return Ok(Outcome::Faulty);
    }
    Ok(Outcome::Done)
}

const PATIENCE: Duration = Duration::from_secs(2);
/// So many artifacts are opened quickly in any store. The help says it too.
const SAMPLE: usize = 64;
/// More would flood whoever asked; the counts are complete.
const MOST_NAMED: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_keys_are_warned_of() {
        let after = |days: u64| aged(Some(Millis(7)), Millis(i64::try_from(days * DAY).unwrap() + 7));
        assert_eq!((after(0).state, after(90).state, after(91).state), (State::Ok, State::Ok, State::Warn));
        assert!(after(91).hint.is_some_and(|hint| hint.contains("keys rotate")));
        assert_eq!(aged(Some(Millis(7)), Millis(0)).state, State::Ok, "a clock that went back");
    }
}
