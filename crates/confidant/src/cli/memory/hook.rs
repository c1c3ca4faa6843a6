//! What agents' hooks call: a session is put into a queue that a process behind us stores, and a new session is told what
//! is remembered of its folder.
//!
//! Easy to get wrong: an agent waits for us, and some take an exit status for an order. So nothing slow happens here, and
//! whatever goes wrong ends well. And we are started in a project whose files are not ours to obey: settings come from
//! where `memory hooks install` said, never from the folder that we happen to be in ([`leave_the_project`]).

use std::collections::HashSet;
use std::io::{self, IsTerminal as _, Read as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use confidant_engine::keys::KeySource as _;
use confidant_engine::rights::Administrator;
use confidant_engine::{Actor, TenantId, UserId};
use confidant_memory::api::{ImportReport, ImportRequest};
use confidant_memory::import::{Agent, Root};
use confidant_memory::queue::{Entry, Queue, Waiting};
use confidant_memory::{Error, Memory, Owner, project_tag};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::super::shared::{Outcome, OwnerArgs, with_engine};
use super::hooks::HookedAgent;
use super::remembered;
use crate::config::{ConfigError, Loaded};
use crate::damage::Part;
use crate::keys::Keys;
use crate::memory::hooks_folder;
use crate::open::{Opened, Purpose};
use crate::output::{self, note};

#[derive(Debug, Args)]
pub(in crate::cli) struct HookArgs {
    /// The agent that calls
    #[arg(value_enum)]
    agent: HookedAgent,
    /// What happened
    #[arg(value_enum)]
    event: HookEvent,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HookEvent {
    /// A session begins.
    SessionStart,
    /// It is over, or is about to be shortened.
    SessionEnd,
    /// It may go on: some agents do not say when it is over.
    TurnEnd,
}

impl HookEvent {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session-start",
            Self::SessionEnd => "session-end",
            Self::TurnEnd => "turn-end",
        }
    }
}

/// Leaves the folder that an agent started us in, before settings are looked for.
pub(in crate::cli) fn leave_the_project(config: Option<&Path>) -> io::Result<()> {
    // Relative paths in a file of settings are meant from where it is.
    let folder = config.and_then(Path::parent).filter(|folder| folder.is_absolute());
    std::env::set_current_dir(folder.unwrap_or(Path::new("/")))
}

/// Does what a hook asks for. Always ends well.
pub(in crate::cli) async fn run(
    args: &HookArgs,
    loaded: Result<Loaded, ConfigError>,
) -> anyhow::Result<Outcome> {
    told(answer(args, loaded).await)
}

/// Stores what waits. Always ends well.
pub(in crate::cli) async fn work(loaded: Result<Loaded, ConfigError>) -> anyhow::Result<Outcome> {
    told(store_what_waits(loaded).await)
}

fn told(done: anyhow::Result<()>) -> anyhow::Result<Outcome> {
    if let Err(error) = done {
        note(&format!("confidant: {}", output::whole(&error)));
    }
    Ok(Outcome::Done)
}

async fn answer(args: &HookArgs, loaded: Result<Loaded, ConfigError>) -> anyhow::Result<()> {
    let loaded = loaded?.for_a_person();
    let said = Said::read()?;
    match args.event {
        HookEvent::SessionStart => begun(args, &said, &loaded).await,
        HookEvent::SessionEnd | HookEvent::TurnEnd => ended(args, &said, &loaded).await,
    }
}

/// What an agent says of its session.
struct Said(Value);

impl Said {
    fn read() -> anyhow::Result<Self> {
        let mut bytes = Vec::new();
        if !io::stdin().is_terminal() {
            io::stdin().lock().take(LONGEST_INPUT).read_to_end(&mut bytes)?;
        }
        let read = confidant_redact::read_json(&bytes).ok();
        Ok(Self(read.context("the hook's input is not JSON; hint: hooks are called by agents")?))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// The last name of the folder that is worked in. A home folder is no project, and its name says whose it is.
    fn project(&self, home: Option<&Path>) -> Option<&str> {
        let folder = Path::new(self.text("cwd")?);
        if home.is_some_and(|home| crate::files::is_same(home, folder)) {
            return None;
        }
        folder.file_name()?.to_str()
    }

    /// Where the session is, and which one of those that are there; nothing if it is kept nowhere.
    fn place(&self, agent: HookedAgent, loaded: &Loaded) -> Option<(String, Option<String>)> {
        if agent == HookedAgent::Opencode {
            let folder = loaded.data_home.as_ref()?.join("opencode");
            return Some((folder.to_str()?.to_owned(), Some(self.text("session_id")?.to_owned())));
        }
        let path = self.text("transcript_path")?;
        Path::new(path).is_absolute().then(|| (path.to_owned(), None))
    }
}

async fn ended(args: &HookArgs, said: &Said, loaded: &Loaded) -> anyhow::Result<()> {
    let Some((path, session)) = said.place(args.agent, loaded) else { return Ok(()) };
    let owner = args.owner.owner(loaded)?;
    let waiting = Waiting {
        agent: args.agent.files().name().to_owned(),
        path,
        session,
        project: said.project(loaded.home.as_deref()).map(str::to_owned),
        goes_on: args.event == HookEvent::TurnEnd,
        user: owner.user.as_str().to_owned(),
        tenant: owner.tenant.as_str().to_owned(),
        born: 0,
    };
    let Some(folder) = hooks_folder(loaded) else { return Ok(()) };
    let keys = Keys::choose(loaded)?;
    // A program that gives the key, or one that has to be made, is not waited for.
    let quick = if keys.asks_a_program() { None } else { keys.load().ok() };
    match quick {
        Some(keys) => {
            let queue = Queue::new(&folder, &keys.current, &keys.retired);
            // Looked at before it is put: an erasure that comes in between is newer.
            queue.put(&Waiting { born: queue.erasures(), ..waiting })?;
            start_worker(loaded, None).await
        }
        None => start_worker(loaded, Some(&waiting)).await,
    }
}

async fn begun(args: &HookArgs, said: &Said, loaded: &Loaded) -> anyhow::Result<()> {
    if hooks_folder(loaded).is_some_and(|folder| !Queue::is_idle(&folder)) {
        // Somebody was killed.
        start_worker(loaded, None).await?;
    }
    let budget = loaded.config.memory.recall_tokens;
    // A session that is gone on with has it already.
    let Some(project) = said.project(loaded.home.as_deref()) else { return Ok(()) };
    if budget == 0 || said.text("source") == Some("resume") {
        return Ok(());
    }
    let owner = args.owner.owner(loaded)?;
    let recalling = with_engine(loaded, Purpose::LookAtData, async |opened| {
        if let Err(error) = tell_of_erasures(loaded, opened).await {
            note(&format!("confidant: {}", output::whole(&error)));
        }
        let Some(memory) = &opened.memory else { return Ok(Vec::new()) };
        let own = memory.of(owner, &actor(args.agent.files().name()));
        Ok(own.recall(project, MOST_RECALLED).await?)
    });
    let recalled = tokio::time::timeout(PATIENCE, recalling).await.context("the memory took too long")??;
    match remembered::context(&recalled, budget) {
        Some(text) => {
            let event = json!({ "hookEventName": "SessionStart", "additionalContext": text });
            output::line(&json!({ "hookSpecificOutput": event }).to_string())
        }
        None => Ok(()),
    }
}

/// Tells the queue how many erasures there have been, so that what this session puts there is known to be newer than those.
async fn tell_of_erasures(loaded: &Loaded, opened: &Opened) -> anyhow::Result<()> {
    let Some(folder) = hooks_folder(loaded).filter(|_| !opened.keys.asks_a_program()) else { return Ok(()) };
    let keys = opened.keys.load()?;
    let erasures = administrator(opened).erasures().await?;
    Ok(Queue::new(&folder, &keys.current, &keys.retired).note_erasures(erasures.number())?)
}

fn administrator(opened: &Opened) -> Administrator {
    opened.engine.dangerously_administer(Actor::system())
}

/// Starts the process that stores, and does not wait for it. Without a key at hand, it is handed what waits.
async fn start_worker(loaded: &Loaded, handed: Option<&Waiting>) -> anyhow::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(file) = &loaded.file {
        command.arg("--config").arg(std::path::absolute(file)?);
    }
    command.arg("--data-dir").arg(std::path::absolute(&loaded.config.server.data_dir)?);
    command.args(["memory", "hook-worker"]);
    command.stdin(if handed.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // What ends the agent and its hooks does not end it.
    command.process_group(0);
    let mut child = command.spawn().context("the process that stores cannot be started")?;
    if let (Some(handed), Some(mut stdin)) = (handed, child.stdin.take()) {
        stdin.write_all(&serde_json::to_vec(handed)?).await?;
        stdin.shutdown().await?;
    }
    Ok(())
}

async fn store_what_waits(loaded: Result<Loaded, ConfigError>) -> anyhow::Result<()> {
    let loaded = loaded?.for_a_person();
    // Whoever is at the machine goes before.
    let _ = rustix::process::nice(POLITE);
    let mut handed = Vec::new();
    if !io::stdin().is_terminal() {
        io::stdin().lock().take(LONGEST_INPUT).read_to_end(&mut handed)?;
    }
    let mut handed: Option<Waiting> = serde_json::from_slice(&handed).ok();
    if let Some(waiting) = &mut handed {
        // The key may have to be made. Without it, the hook could not look how many erasures there had been.
        waiting.born = with_engine(&loaded, Purpose::SetUp, async |opened| {
            Ok(administrator(opened).erasures().await?.number())
        })
        .await?;
    }
    let Some(folder) = hooks_folder(&loaded) else { return Ok(()) };
    let keys = Keys::choose(&loaded)?.load()?;
    let queue = Queue::new(&folder, &keys.current, &keys.retired);
    if let Some(waiting) = &handed {
        queue.put(waiting)?;
    }
    // Here and not where it was put: an agent waits there.
    if let Err(error) = queue.settle() {
        note(&format!("confidant: {error}"));
    }
    // Whoever puts something into the queue and finds us at work relies on us to look again after we have stopped.
    loop {
        let Some(at_work) = queue.work()? else { return Ok(()) };
        let left = store_all(&queue, &loaded).await?;
        drop(at_work);
        if queue.entries()?.iter().all(|entry| left.contains(entry.name())) {
            return Ok(());
        }
    }
}

/// Stores everything that waits, each when it is time; says what could not be stored now.
async fn store_all(queue: &Queue, loaded: &Loaded) -> anyhow::Result<HashSet<String>> {
    let mut left = HashSet::new();
    let mut since = Instant::now();
    loop {
        let mut waiting = queue.entries()?;
        waiting.retain(|entry| !left.contains(entry.name()));
        if waiting.is_empty() {
            return Ok(left);
        }
        let is_late = since.elapsed() > LONGEST_WAIT;
        waiting.retain(|entry| is_late || is_due(&entry.waiting));
        if waiting.is_empty() {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            continue;
        }
        let work = async |opened: &Opened| store_these(opened, queue, &waiting).await;
        match with_engine(loaded, Purpose::SetUp, work).await {
            Ok(names) => left.extend(names),
            // Nothing is lost: the next one tries again.
            Err(error) => {
                note(&format!("confidant: {}", output::whole(&error)));
                left.extend(waiting.iter().map(|entry| entry.name().to_owned()));
            }
        }
        since = Instant::now();
    }
}

/// Whether nothing has been written to a session for a while, if it may go on.
fn is_due(waiting: &Waiting) -> bool {
    // A time that lies ahead, or none, is not waited for.
    !waiting.goes_on
        || changed(Path::new(&waiting.path))
            .and_then(|at| at.elapsed().ok())
            .is_none_or(|quiet| quiet >= QUIET)
}

/// When something was last written to a file, or to one in a folder.
fn changed(path: &Path) -> Option<SystemTime> {
    let of = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified()).ok();
    let inside =
        std::fs::read_dir(path).into_iter().flatten().flatten().filter_map(|entry| of(&entry.path()));
    inside.chain(of(path)).max()
}

async fn store_these(opened: &Opened, queue: &Queue, entries: &[Entry]) -> anyhow::Result<Vec<String>> {
    opened.require(Part::Memory)?;
    let memory = opened.memory.as_ref().context("there is no memory where data is not kept")?;
    if let Err(error) = memory.recover().await {
        note(&format!("confidant: {error}"));
    }
    let administrator = administrator(opened);
    queue.note_erasures(administrator.erasures().await?.number())?;
    let mut left = Vec::new();
    for entry in entries {
        queue.take(entry)?;
        if store(memory, &administrator, &entry.waiting).await {
            queue.done(entry)?;
        } else {
            left.push(entry.name().to_owned());
        }
    }
    Ok(left)
}

/// Stores a session; false if it is to be tried again. What became of it is in the log.
async fn store(memory: &Memory, administrator: &Administrator, waiting: &Waiting) -> bool {
    let Waiting { agent, path, session, project, user, tenant, born, .. } = waiting;
    let (Some(files), Ok(user), Ok(tenant)) = (Agent::parse(agent), UserId::new(user), TenantId::new(tenant))
    else {
        return true;
    };
    let owner = Owner { tenant, user };
    let own = memory.of(owner.clone(), &actor(agent)).reading_files();
    let ended = async || {
        let last = administrator.last_erasure_of_person(&owner.tenant, &owner.user).await;
        last.map(|last| last.number() > *born)
    };
    match ended().await {
        Ok(false) => {}
        Ok(true) => {
            own.note_skipped("erased").await;
            return true;
        }
        Err(_) => return false,
    }
    let wish = ImportRequest {
        roots: vec![Root::of(files, PathBuf::from(path))],
        tags: project.as_deref().and_then(project_tag).into_iter().collect(),
        only: session.clone(),
        ..ImportRequest::default()
    };
    let imported = own.import(&wish, |_| ControlFlow::Continue(())).await;
    // An erasure leaves its mark before it ends memories, and we look for marks after we wrote: one of us sees the other.
    match ended().await {
        Ok(false) => {}
        Ok(true) => return memory.erase(&owner).await.is_ok(),
        Err(_) => return false,
    }
    match imported {
        Ok(report) => {
            if let Some(reason) = passed_over(&report) {
                own.note_skipped(reason).await;
            }
            true
        }
        Err(error @ Error::NotFound { .. }) => {
            own.note_skipped(error.code()).await;
            true
        }
        Err(_) => false,
    }
}

/// Why nothing was stored, if nothing was and the log does not say so yet.
fn passed_over(report: &ImportReport) -> Option<&'static str> {
    if report.stored + report.blocked + report.refused > 0 {
        return None;
    }
    Some(if report.forgotten > 0 {
        "forgotten"
    } else if report.unchanged + report.unchanged_files > 0 {
        "unchanged"
    } else if report.unreadable_files + report.unknown_files > 0 {
        "unreadable"
    } else {
        "empty"
    })
}

/// The agent, as the audit log names it.
fn actor(agent: &str) -> String {
    format!("hook:{agent}")
}

/// A hook's input can have an answer of a model in it.
const LONGEST_INPUT: u64 = 16 << 20;
/// A few are read; many are passed over.
const MOST_RECALLED: usize = 6;
/// How long the start of a session may wait for what is remembered.
const PATIENCE: Duration = Duration::from_secs(2);
/// A session to which nothing was written for so long is over, or its person is away.
const QUIET: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// How much we give way to others, as `nice` counts.
const POLITE: i32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_folder_is_no_project() {
        let home = tempfile::tempdir().unwrap();
        let of = |folder: &str| Said(json!({ "cwd": folder }));
        let at = home.path().to_str().unwrap();
        assert_eq!(of(at).project(Some(home.path())), None);
        assert_eq!(of(&format!("{at}/my-app")).project(Some(home.path())), Some("my-app"));
        assert_eq!(of("/").project(None), None);
        assert_eq!(Said(json!({})).project(None), None);
    }

    #[test]
    fn a_session_that_may_go_on_is_stored_when_it_is_quiet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let waiting = |goes_on: bool| Waiting {
            agent: "codex".into(),
            path: path.to_str().unwrap().into(),
            session: None,
            project: None,
            goes_on,
            user: "alice".into(),
            tenant: "default".into(),
            born: 0,
        };
        let file = std::fs::File::create(&path).unwrap();
        assert!(!is_due(&waiting(true)) && is_due(&waiting(false)));
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(is_due(&waiting(true)));
        std::fs::remove_file(&path).unwrap();
        assert!(is_due(&waiting(true)), "one that is gone is not waited for");
    }
}
