//! `confidant memory hooks`: agents store their sessions and are told what is remembered, by their own hooks.
//!
//! | agent | where | events |
//! |---|---|---|
//! | Claude Code | `~/.claude/settings.json` | `SessionStart`, `SessionEnd`, `PreCompact` |
//! | Codex | `~/.codex/config.toml` | `SessionStart`, `SessionEnd`, `Stop`, which is after each turn |
//! | Gemini CLI | `~/.gemini/settings.json` | `SessionStart`, `SessionEnd`, `PreCompress` |
//! | `OpenCode` | a plugin of its own | `session.idle`, and the system prompt |
//!
//! Easy to get wrong: the file is the person's. What they wrote stays byte for byte, a file that cannot be read is not
//! written, and every change is read again and held against what it should be before anything is written.

mod diff;
mod json;
mod toml;

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use confidant_memory::import::Agent;
use confidant_memory::regular;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::shared::{JsonArg, Outcome, OwnerArgs, with_engine};
use super::hook::HookEvent;
use crate::config::{Environment, Loaded};
use crate::open::Purpose;
use crate::output::{self, Paint, note};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant memory hooks install claude-code --dry-run     show the change
  confidant memory hooks install claude-code
  confidant memory hooks status
  confidant memory hooks remove claude-code

Then sessions are stored when they end, in the background, and a new session is told what is remembered of its folder
(memory.recall_tokens). What is between <private> and </private> is never read. `confidant memory log` shows what was done.")]
pub(in crate::cli) enum HooksCommand {
    /// Add Confidant's hooks to an agent's settings
    Install(InstallArgs),
    /// Take them out again, and nothing else
    Remove(ChangeArgs),
    /// Say which agents have them
    Status(StatusArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct InstallArgs {
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    owner: OwnerArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ChangeArgs {
    /// The agent
    #[arg(value_enum)]
    agent: HookedAgent,
    /// Its settings file [default: where the agent looks for it]
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Show the change, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StatusArgs {
    /// The agent [default: all]
    #[arg(value_enum)]
    agent: Option<HookedAgent>,
    /// Its settings file [default: where the agent looks for it]
    #[arg(long, value_name = "FILE", requires = "agent")]
    settings: Option<PathBuf>,
    #[command(flatten)]
    output: JsonArg,
}

/// An agent that has hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum HookedAgent {
    // Without help of their own, which would make all of the help long.
    ClaudeCode,
    Codex,
    Gemini,
    Opencode,
}

/// A hook, as an agent's settings have it.
pub(super) struct Hook {
    event: String,
    command: String,
    timeout: u64,
}

impl HookedAgent {
    const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Gemini, Self::Opencode];

    fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
        }
    }

    /// Whose session files they are.
    pub(super) fn files(self) -> Agent {
        match self {
            Self::ClaudeCode => Agent::ClaudeCode,
            Self::Codex => Agent::Codex,
            Self::Gemini => Agent::Gemini,
            Self::Opencode => Agent::OpenCode,
        }
    }

    /// The agent's events, what they are to us, and how long it may wait, in its own unit.
    fn events(self) -> &'static [(&'static str, HookEvent, u64)] {
        use HookEvent::{SessionEnd, SessionStart, TurnEnd};
        match self {
            Self::ClaudeCode => &[
                ("SessionStart", SessionStart, 5),
                ("SessionEnd", SessionEnd, 5),
                ("PreCompact", SessionEnd, 5),
            ],
            // Versions that have no SessionEnd pass it over.
            Self::Codex => {
                &[("SessionStart", SessionStart, 5), ("SessionEnd", SessionEnd, 5), ("Stop", TurnEnd, 5)]
            }
            Self::Gemini => &[
                ("SessionStart", SessionStart, 5000),
                ("SessionEnd", SessionEnd, 5000),
                ("PreCompress", SessionEnd, 5000),
            ],
            Self::Opencode => &[],
        }
    }

    /// Where the agent looks for its settings.
    fn settings(self, loaded: &Loaded) -> anyhow::Result<PathBuf> {
        let environment = Environment::of_this_process();
        let home =
            || loaded.home.clone().context("there is no home folder; hint: set HOME, or give --settings");
        let folder = |variable: &str, usual: &str| match environment.value(variable).map(PathBuf::from) {
            Some(folder) => Ok(folder),
            None => home().map(|home| home.join(usual)),
        };
        Ok(match self {
            Self::ClaudeCode => folder("CLAUDE_CONFIG_DIR", ".claude")?.join("settings.json"),
            Self::Codex => folder("CODEX_HOME", ".codex")?.join("config.toml"),
            Self::Gemini => home()?.join(".gemini/settings.json"),
            Self::Opencode => {
                folder("XDG_CONFIG_HOME", ".config")?.join("opencode/plugin/confidant-memory.js")
            }
        })
    }
}

/// What was done, or would be, or is.
#[derive(Debug, Serialize)]
struct Told {
    agent: &'static str,
    settings: String,
    /// Whether our hooks are there, as this program would put them there.
    installed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diff: Vec<String>,
    /// Why that cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) async fn run(command: HooksCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    match command {
        HooksCommand::Install(args) => {
            let file = File::of(&args.change, loaded)?;
            let after = file.installed(args.change.agent, &program(&args.owner, loaded)?)?;
            if !args.change.dry_run {
                // The data folder and the key are there then, and hooks need not wait for them.
                with_engine(loaded, Purpose::SetUp, async |_| Ok(())).await?;
            }
            let outcome = file.change(&args.change, Some(after), true)?;
            if args.change.agent == HookedAgent::Codex && !args.change.dry_run {
                note("Codex runs new hooks when you have trusted them: type /hooks in Codex");
            }
            Ok(outcome)
        }
        HooksCommand::Remove(args) => {
            let file = File::of(&args, loaded)?;
            let after = file.removed(args.agent)?;
            file.change(&args, after, false)
        }
        HooksCommand::Status(args) => status(&args, loaded),
    }
}

fn status(args: &StatusArgs, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let agents = args.agent.map_or(HookedAgent::ALL.to_vec(), |agent| vec![agent]);
    let mut told = Vec::new();
    for agent in agents {
        let path = match &args.settings {
            Some(path) => path.clone(),
            None => agent.settings(loaded)?,
        };
        let found = File::read(path.clone()).and_then(|file| file.has_hooks(agent));
        let (installed, error) = match found {
            Ok(installed) => (installed, None),
            Err(error) => (false, Some(output::whole(&error))),
        };
        let settings = path.display().to_string();
        told.push(Told {
            agent: agent.name(),
            settings,
            installed,
            changed: None,
            dry_run: None,
            diff: vec![],
            error,
        });
    }
    if args.output.json {
        output::json(&told)?;
    } else {
        let paint = Paint::of_stdout();
        for one in &told {
            let state = match (&one.error, one.installed) {
                (Some(error), _) => paint.red(&output::clean(error)),
                (None, true) => paint.green("installed"),
                (None, false) => paint.dim("not installed"),
            };
            output::line(&format!("{:<12} {state}  {}", one.agent, output::clean(&one.settings)))?;
        }
    }
    Ok(if told.iter().any(|one| one.installed) { Outcome::Done } else { Outcome::NothingFound })
}

/// The program and the place of its data, as arguments: the same wherever an agent calls us from.
fn program(owner: &OwnerArgs, loaded: &Loaded) -> anyhow::Result<Vec<String>> {
    let mut words = vec![text(std::env::current_exe()?.as_os_str())?];
    if let Some(file) = &loaded.file {
        words.extend(["--config".to_owned(), text(std::path::absolute(file)?.as_os_str())?]);
    }
    let data = std::path::absolute(&loaded.config.server.data_dir)?;
    words.extend(["--data-dir".to_owned(), text(data.as_os_str())?]);
    words.extend(["memory".to_owned(), "hook".to_owned()]);
    // Whom it is for is a matter of the arguments; they are checked here.
    owner.owner(loaded)?;
    if let Some(user) = &owner.user {
        words.extend(["--user".to_owned(), user.clone()]);
    }
    if owner.tenant.tenant != crate::config::DEFAULT_TENANT {
        words.extend(["--tenant".to_owned(), owner.tenant.tenant.clone()]);
    }
    Ok(words)
}

fn text(path: &OsStr) -> anyhow::Result<String> {
    let text = path.to_str().context("a path is not text; hint: use a folder with another name")?;
    Ok(text.to_owned())
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@,+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn hooks(agent: HookedAgent, program: &[String]) -> Vec<Hook> {
    let words: Vec<String> = program.iter().map(|word| quoted(word)).collect();
    let hook = |(event, ours, timeout): &(&str, HookEvent, u64)| Hook {
        event: (*event).to_owned(),
        command: format!("{} {} {}", words.join(" "), agent.name(), ours.name()),
        timeout: *timeout,
    };
    agent.events().iter().map(hook).collect()
}

/// Whether a command is one of ours, whichever program and folder it names.
fn is_ours(agent: HookedAgent, command: &str) -> bool {
    let ends = |ours: HookEvent| command.ends_with(&format!(" {} {}", agent.name(), ours.name()));
    command.contains(" memory hook ")
        && [HookEvent::SessionStart, HookEvent::SessionEnd, HookEvent::TurnEnd].into_iter().any(ends)
}

/// An agent's settings, as they are.
struct File {
    path: PathBuf,
    /// Nothing if there is no file.
    text: Option<String>,
    mode: u32,
}

impl File {
    fn of(args: &ChangeArgs, loaded: &Loaded) -> anyhow::Result<Self> {
        Self::read(match &args.settings {
            Some(path) => path.clone(),
            None => args.agent.settings(loaded)?,
        })
    }

    fn read(path: PathBuf) -> anyhow::Result<Self> {
        let shown = path.display().to_string();
        let file = match regular::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path, text: None, mode: PRIVATE });
            }
            Err(error) if path.is_symlink() => {
                let to = path.canonicalize().map_err(|_| error)?;
                return Err(anyhow!(
                    "{shown} is a link; hint: if you mean the file that it leads to, give --settings {}",
                    to.display()
                ));
            }
            Err(error) => {
                let why = regular::why(&error);
                return Err(anyhow!("{shown} cannot be read ({why}); hint: check its owner and permissions"));
            }
        };
        let mode = file.metadata()?.permissions().mode() & 0o7777;
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST {
            return Err(anyhow!("{shown} is too long for a file of settings; hint: check what it is"));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| anyhow!("{shown} is not text; hint: repair it; it was not changed"))?;
        Ok(Self { path, text: Some(text), mode })
    }

    fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// What the file says, for comparisons.
    fn value(&self, agent: HookedAgent, text: &str) -> anyhow::Result<Value> {
        let broken = |what: &str| {
            anyhow!(
                "{} is not valid {what}, so it was not changed; hint: repair it, and try again",
                self.path.display()
            )
        };
        if agent == HookedAgent::Codex {
            let table: ::toml::Table = ::toml::from_str(text).map_err(|_| broken("TOML"))?;
            return Ok(serde_json::to_value(table)?);
        }
        if text.trim().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        // Only Gemini CLI allows comments; to the others such a file is broken already.
        let plain = match agent {
            HookedAgent::Gemini => json::without_comments(text).ok_or_else(|| broken("JSON"))?,
            _ => text.to_owned(),
        };
        let value: Value = serde_json::from_str(&plain).map_err(|_| broken("JSON"))?;
        if value.is_object() { Ok(value) } else { Err(broken("JSON of settings")) }
    }

    /// The text with our hooks, once each.
    fn installed(&self, agent: HookedAgent, program: &[String]) -> anyhow::Result<String> {
        if agent == HookedAgent::Opencode {
            self.is_our_plugin()?;
            return plugin(program);
        }
        let wanted = hooks(agent, program);
        let before = self.value(agent, self.text())?;
        let present = commands(&before);
        let mut expected: Vec<(&str, &str)> =
            wanted.iter().map(|hook| (hook.event.as_str(), hook.command.as_str())).collect();
        let mut ours: Vec<(&str, &str)> =
            present.iter().filter(|(_, command)| is_ours(agent, command)).copied().collect();
        expected.sort_unstable();
        ours.sort_unstable();
        if ours == expected {
            return Ok(self.text().to_owned());
        }
        let mut text = self.removed(agent)?.unwrap_or_default();
        for hook in &wanted {
            text = match agent {
                HookedAgent::Codex => toml::add(&text, hook),
                _ => json::add(&text, hook).ok_or_else(|| self.unexpected())?,
            };
        }
        let after = self.value(agent, &text).map_err(|_| self.unexpected())?;
        let mut found: Vec<(&str, &str)> =
            commands(&after).into_iter().filter(|(_, command)| is_ours(agent, command)).collect();
        found.sort_unstable();
        if found != expected || others(agent, after.clone()) != others(agent, before.clone()) {
            return Err(self.unexpected());
        }
        Ok(text)
    }

    /// The text without our hooks; nothing where the file is to be removed.
    fn removed(&self, agent: HookedAgent) -> anyhow::Result<Option<String>> {
        if agent == HookedAgent::Opencode {
            self.is_our_plugin()?;
            return Ok(None);
        }
        let before = self.value(agent, self.text())?;
        let is_ours = |command: &str| is_ours(agent, command);
        let mut text = self.text().to_owned();
        if agent == HookedAgent::Codex {
            text = toml::remove(&text, &is_ours);
        } else {
            while let Some(less) = json::remove_one(&text, &is_ours) {
                text = less;
            }
        }
        let after = self.value(agent, &text).map_err(|_| self.unexpected())?;
        let is_left = commands(&after).iter().any(|&(_, command)| is_ours(command));
        if is_left || others(agent, after) != others(agent, before) {
            return Err(self.unexpected());
        }
        Ok(Some(text))
    }

    fn has_hooks(&self, agent: HookedAgent) -> anyhow::Result<bool> {
        if agent == HookedAgent::Opencode {
            return Ok(self.text.is_some() && self.is_our_plugin().is_ok());
        }
        let value = self.value(agent, self.text())?;
        let there = commands(&value);
        let has = |event: &str| there.iter().any(|(at, command)| *at == event && is_ours(agent, command));
        Ok(agent.events().iter().all(|(event, _, _)| has(event)))
    }

    /// An error if there is another plugin of this name.
    fn is_our_plugin(&self) -> anyhow::Result<()> {
        match &self.text {
            Some(text) if !text.starts_with(MARK) => Err(anyhow!(
                "{} was not made by Confidant, so it was not changed; hint: give it another name",
                self.path.display()
            )),
            _ => Ok(()),
        }
    }

    fn unexpected(&self) -> anyhow::Error {
        anyhow!(
            "{} has hooks in a form that Confidant does not change; hint: docs/MEMORY.md shows what to add by hand",
            self.path.display()
        )
    }

    /// Writes the change, or shows it.
    fn change(&self, args: &ChangeArgs, after: Option<String>, installed: bool) -> anyhow::Result<Outcome> {
        let was = self.has_hooks(args.agent).unwrap_or(false);
        let now = after.as_deref().unwrap_or_default();
        let changed = if after.is_none() { self.text.is_some() } else { now != self.text() };
        let shown = if changed { diff::diff(self.text(), now) } else { Vec::new() };
        if changed && !args.dry_run {
            match &after {
                Some(text) => self.write(text)?,
                None => fs::remove_file(&self.path).with_context(|| self.path.display().to_string())?,
            }
        }
        if args.output.json {
            output::json(&Told {
                agent: args.agent.name(),
                settings: self.path.display().to_string(),
                installed: if args.dry_run { was } else { installed },
                changed: Some(changed && !args.dry_run),
                dry_run: Some(args.dry_run),
                diff: shown,
                error: None,
            })?;
        } else {
            self.tell(args, changed, &shown)?;
        }
        Ok(Outcome::Done)
    }

    fn tell(&self, args: &ChangeArgs, changed: bool, shown: &[String]) -> anyhow::Result<()> {
        let settings = self.path.display().to_string();
        let settings = output::clean(&settings);
        if !changed {
            note(&format!("{settings} needs no change"));
            return Ok(());
        }
        let paint = Paint::of_stdout();
        if args.dry_run {
            output::line(&format!("--- {settings}"))?;
            for line in shown {
                let line = output::clean(line);
                output::line(&match line.chars().next() {
                    Some('+') => paint.green(&line),
                    Some('-') => paint.red(&line),
                    _ => line.into_owned(),
                })?;
            }
            note("nothing was changed");
        } else {
            note(&format!("changed {settings}"));
        }
        Ok(())
    }

    /// Puts the text in the place of what was read, whole or not at all, with the same permissions.
    fn write(&self, text: &str) -> anyhow::Result<()> {
        let shown = || format!("{} cannot be written", self.path.display());
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        crate::files::make_folder(folder).with_context(shown)?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = folder.join(format!(".{name}.confidant-{}", std::process::id()));
        let written = self.write_to(&temporary, text);
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.with_context(shown)
    }

    fn write_to(&self, temporary: &Path, text: &str) -> anyhow::Result<()> {
        let _ = fs::remove_file(temporary);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(temporary)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(self.mode))?;
        file.sync_all()?;
        // The agent may have written its settings meanwhile.
        if Self::read(self.path.clone())?.text != self.text {
            return Err(anyhow!("it was changed by somebody else just now; hint: try again"));
        }
        Ok(fs::rename(temporary, &self.path)?)
    }
}

/// An agent's settings with our hooks, and with them taken out again; or what a person would read.
#[cfg(feature = "fuzzing")]
pub(crate) fn tried(agent: &str, text: &str) -> Result<(String, String), String> {
    let agent = HookedAgent::from_str(agent, false)?;
    let program = ["/opt/confidant", "memory", "hook"].map(str::to_owned);
    let of =
        |text: &str| File { path: PathBuf::from("settings"), text: Some(text.to_owned()), mode: PRIVATE };
    let with = of(text).installed(agent, &program).map_err(|error| format!("{error:#}"))?;
    let without = of(&with).removed(agent).map_err(|error| format!("{error:#}"))?;
    Ok((with, without.unwrap_or_default()))
}

/// Every event with what it runs.
fn commands(settings: &Value) -> Vec<(&str, &str)> {
    let events = settings.get("hooks").and_then(Value::as_object).into_iter().flatten();
    let mut found = Vec::new();
    for (event, groups) in events {
        let handlers =
            groups.as_array().into_iter().flatten().filter_map(|group| group.get("hooks")?.as_array());
        let each = handlers.flatten().filter_map(|handler| handler.get("command")?.as_str());
        found.extend(each.map(|command| (event.as_str(), command)));
    }
    found
}

/// The settings without what is ours, and without what is empty then.
fn others(agent: HookedAgent, mut settings: Value) -> Value {
    let ours = |handler: &Value| {
        handler.get("command").and_then(Value::as_str).is_some_and(|command| is_ours(agent, command))
    };
    if let Some(Value::Object(events)) = settings.get_mut("hooks") {
        for groups in events.values_mut().filter_map(Value::as_array_mut) {
            groups.retain_mut(|group| match group.get_mut("hooks").and_then(Value::as_array_mut) {
                Some(handlers) => {
                    let before = handlers.len();
                    handlers.retain(|handler| !ours(handler));
                    handlers.len() == before || !handlers.is_empty()
                }
                None => true,
            });
        }
        events.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
    }
    let is_empty = settings.get("hooks").and_then(Value::as_object).is_some_and(Map::is_empty);
    if let (true, Value::Object(members)) = (is_empty, &mut settings) {
        members.remove("hooks");
    }
    settings
}

/// The plugin for `OpenCode`.
fn plugin(program: &[String]) -> anyhow::Result<String> {
    let mut words = program.to_vec();
    words.push(HookedAgent::Opencode.name().to_owned());
    Ok(PLUGIN.replace(
        "const COMMAND = [] // filled in",
        &format!("const COMMAND = {}", serde_json::to_string(&words)?),
    ))
}

const PLUGIN: &str = include_str!("hooks/opencode.js");
/// How the plugin begins.
const MARK: &str = "// Made by `confidant memory hooks install opencode`";
/// For a file that was not there.
const PRIVATE: u32 = 0o600;
const LONGEST: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_words_to_a_shell() {
        for (word, expected) in [
            ("/usr/bin/confidant", "/usr/bin/confidant"),
            ("/a b/c", "'/a b/c'"),
            ("it's", r"'it'\''s'"),
            ("$(x)", "'$(x)'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn our_commands_are_known_whatever_they_name() {
        let program = ["/opt/my apps/confidant", "--data-dir", "/d", "memory", "hook"].map(str::to_owned);
        for agent in HookedAgent::ALL {
            for hook in hooks(agent, &program) {
                assert!(is_ours(agent, &hook.command), "{}", hook.command);
                let another = HookedAgent::ALL.into_iter().filter(|other| *other != agent);
                assert!(another.into_iter().all(|other| !is_ours(other, &hook.command)));
            }
        }
        for command in ["confidant memory hook", "say memory hook claude-code", "confidant memory list"] {
            assert!(!is_ours(HookedAgent::ClaudeCode, command));
        }
        let words = serde_json::to_string(&program).unwrap();
        let plugin = plugin(&program).unwrap();
        assert!(plugin.starts_with(MARK) && plugin.contains(words.trim_end_matches(']')));
    }
}
