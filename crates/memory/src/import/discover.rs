//! Finding session files, and which belong together.
//!
//! Walks the roots it is given and nothing else; where a home folder is, the caller says. Easy to get wrong: links are
//! not followed (they loop, and lead out of the root), and a sub-agent's file is part of its session, not one of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::FileType;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::detect::{detect, is_aider};
use super::file::is_uuid;
use super::{Agent, SessionFile, gemini, opencode, peek};

/// Where to look.
#[derive(Clone, PartialEq, Eq)]
pub enum Root {
    /// A home folder, in which the agents' usual places are looked at.
    Home(PathBuf),
    /// A file or a folder.
    Path {
        /// Where it is.
        path: PathBuf,
        /// Whose files they are; told by content if not given.
        agent: Option<Agent>,
    },
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// Session files, in the order of their paths.
    pub files: Vec<SessionFile>,
    /// Files and folders that could not be read.
    pub unreadable: usize,
    /// Files that were named, or that lie in a folder that was and are called like session files, but that no agent is
    /// known to write.
    pub unknown: usize,
    /// Whether there is nothing where one of the roots was said to be.
    pub missing: bool,
}

/// Lists the session files below these roots. It blocks.
#[must_use]
pub fn discover(roots: &[Root]) -> Discovery {
    let mut walk = Walk::default();
    for root in roots {
        match root {
            Root::Home(home) => {
                for (agent, place) in places(home) {
                    if place.exists() {
                        walk.root(&place, Some(agent));
                    }
                }
            }
            Root::Path { path, agent } => walk.root(path, *agent),
        }
    }
    walk.finish()
}

impl Root {
    /// A file or a folder whose agent is told by content.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self::Path { path: path.into(), agent: None }
    }

    /// A file or a folder of this agent.
    pub fn of(agent: Agent, path: impl Into<PathBuf>) -> Self {
        Self::Path { path: path.into(), agent: Some(agent) }
    }
}

/// A path is personal data.
impl std::fmt::Debug for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Home(_) => "Root::Home(***)",
            Self::Path { .. } => "Root::Path(***)",
        })
    }
}

/// Where agents keep their sessions, as of 2026. Aider keeps them in each project, which nobody can list.
fn places(home: &Path) -> Vec<(Agent, PathBuf)> {
    let cursor = "Cursor/User/globalStorage/state.vscdb";
    vec![
        (Agent::ClaudeCode, home.join(".claude/projects")),
        (Agent::ClaudeCode, home.join(".config/claude/projects")),
        (Agent::Codex, home.join(".codex/sessions")),
        (Agent::Codex, home.join(".codex/archived_sessions")),
        (Agent::Gemini, home.join(".gemini/tmp")),
        (Agent::OpenCode, home.join(".local/share/opencode")),
        (Agent::Aider, home.join(".aider.chat.history.md")),
        (Agent::Cursor, home.join(".config").join(cursor)),
        (Agent::Cursor, home.join("Library/Application Support").join(cursor)),
        (Agent::Cursor, home.join("AppData/Roaming").join(cursor)),
    ]
}

#[derive(Default)]
struct Walk {
    found: BTreeMap<PathBuf, Agent>,
    /// Files that were named themselves: only what belongs to them is of interest beside them.
    named: BTreeSet<PathBuf>,
    trees: BTreeSet<PathBuf>,
    entries: usize,
    unreadable: usize,
    unknown: usize,
    missing: bool,
}

impl Walk {
    fn root(&mut self, named: &Path, agent: Option<Agent>) {
        let path = match named.canonicalize() {
            Ok(path) => path,
            Err(error) => {
                self.missing |= matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
                self.unreadable += 1;
                return;
            }
        };
        if path.is_dir() {
            return self.folder(path, agent);
        }
        // A link to a folder is somebody's arrangement of their home; one to a file would have us read what was not named.
        if named.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            self.unreadable += 1;
            return;
        }
        if let Some(agent) = agent.or_else(|| self.told(&path)) {
            if agent == Agent::ClaudeCode {
                self.named.insert(path.clone());
            }
            self.found.insert(path, agent);
        }
    }

    /// Whose file it is; what cannot be told is counted.
    fn told(&mut self, path: &Path) -> Option<Agent> {
        let agent = detect(path);
        match agent {
            Some(_) => {}
            None if crate::regular::open(path).is_err() => self.unreadable += 1,
            None => self.unknown += 1,
        }
        agent
    }

    fn folder(&mut self, root: PathBuf, agent: Option<Agent>) {
        let mut folders = vec![(root, 0)];
        while let Some((folder, depth)) = folders.pop() {
            if agent.is_none_or(|agent| agent == Agent::OpenCode) && opencode::is_tree(&folder) {
                self.trees.insert(folder);
                continue;
            }
            for (path, kind) in self.list(&folder) {
                if kind.is_dir() && depth < DEEPEST && !is_passed_over(&path) {
                    folders.push((path, depth + 1));
                } else if kind.is_file() {
                    self.file(path, agent);
                }
            }
        }
    }

    /// What is in a folder, links aside.
    fn list(&mut self, folder: &Path) -> Vec<(PathBuf, FileType)> {
        let Ok(entries) = std::fs::read_dir(folder) else {
            self.unreadable += 1;
            return Vec::new();
        };
        let mut out = Vec::new();
        for entry in entries.take(MOST_ENTRIES.saturating_sub(self.entries)) {
            self.entries += 1;
            match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
                Ok(entry) => out.push(entry),
                Err(_) => self.unreadable += 1,
            }
        }
        out
    }

    fn file(&mut self, path: PathBuf, agent: Option<Agent>) {
        if gemini::is_list_of_typed(&path) && gemini::has_sessions_beside(&path) {
            return;
        }
        let agent = match agent {
            Some(agent) => may_be(&path, agent).then_some(agent),
            None if Agent::ALL.into_iter().any(|agent| may_be(&path, agent)) => self.told(&path),
            None => None,
        };
        if let Some(agent) = agent {
            self.found.insert(path, agent);
        }
    }

    fn finish(mut self) -> Discovery {
        self.add_subagents_of_named();
        let mut units: BTreeMap<PathBuf, (Agent, Vec<PathBuf>)> = BTreeMap::new();
        let mut parts = Vec::new();
        let owners = Owners::of(&self.found);
        for (path, agent) in &self.found {
            match owners.owner(path, *agent) {
                Some(owner) if owner != *path => parts.push((owner, path.clone())),
                _ => {
                    units.insert(path.clone(), (*agent, Vec::new()));
                }
            }
        }
        for (owner, part) in parts {
            if let Some((_, parts)) = units.get_mut(&owner) {
                parts.push(part);
            } else if let Some(agent) = self.found.get(&part) {
                // Its owner is a part itself, of a kind that is not known yet.
                units.insert(part, (*agent, Vec::new()));
            }
        }
        // The database was filled from the tree beside it.
        for tree in self.trees.iter().filter(|tree| !opencode::has_database(tree)) {
            for (path, children) in opencode::tree_sessions(tree) {
                units.insert(path, (Agent::OpenCode, children));
            }
        }
        let mut discovery = Discovery {
            unknown: self.unknown,
            unreadable: self.unreadable,
            missing: self.missing,
            ..Discovery::default()
        };
        for (path, (agent, parts)) in units {
            match SessionFile::open(agent, path, parts) {
                Ok(file) => discovery.files.push(file),
                Err(_) => discovery.unreadable += 1,
            }
        }
        discovery
    }

    /// A session that was named comes with its sub-agents, but not with its neighbours.
    fn add_subagents_of_named(&mut self) {
        for main in std::mem::take(&mut self.named) {
            let Some(folder) = main.parent() else { continue };
            let beside =
                self.list(folder).into_iter().filter(|(path, kind)| kind.is_file() && is_claude_agent(path));
            let mut candidates: Vec<PathBuf> = beside.map(|(path, _)| path).collect();
            let within = main.with_extension("").join("subagents");
            if within.is_dir() {
                let listed = self.list(&within).into_iter().filter(|(_, kind)| kind.is_file());
                candidates.extend(listed.map(|(path, _)| path));
            }
            for path in candidates {
                if may_be(&path, Agent::ClaudeCode) && claude_owner(&path).as_ref() == Some(&main) {
                    self.found.insert(path, Agent::ClaudeCode);
                }
            }
        }
    }
}

/// Which file a sub-agent's file belongs to.
struct Owners<'a> {
    found: &'a BTreeMap<PathBuf, Agent>,
    /// Codex: thread to file and parent.
    threads: BTreeMap<String, (PathBuf, Option<String>)>,
    /// Codex: file to the thread that spawned its own.
    parents: BTreeMap<PathBuf, String>,
    /// Claude Code: the first of those whose main file is gone stands for all.
    orphans: BTreeMap<PathBuf, PathBuf>,
    /// Gemini: folder and session to file.
    gemini: BTreeMap<(PathBuf, String), PathBuf>,
}

impl<'a> Owners<'a> {
    fn of(found: &'a BTreeMap<PathBuf, Agent>) -> Self {
        let (mut threads, mut parents) = (BTreeMap::new(), BTreeMap::new());
        let (mut orphans, mut gemini) = (BTreeMap::new(), BTreeMap::new());
        let chats: BTreeSet<&Path> =
            found.keys().filter_map(|path| gemini_parent(path)).map(|(chats, _)| chats).collect();
        for (path, agent) in found {
            match agent {
                Agent::Codex => {
                    if let Some((id, parent)) = peek::codex_thread(path) {
                        parents.extend(parent.clone().map(|parent| (path.clone(), parent)));
                        threads.entry(id).or_insert((path.clone(), parent));
                    }
                }
                Agent::ClaudeCode => {
                    if let Some(owner) = claude_owner(path).filter(|owner| !found.contains_key(owner)) {
                        orphans.entry(owner).or_insert_with(|| path.clone());
                    }
                }
                Agent::Gemini if path.parent().is_some_and(|folder| chats.contains(folder)) => {
                    if let (Some(folder), Some(id)) = (path.parent(), peek::gemini_session(path)) {
                        gemini.insert((folder.to_owned(), id), path.clone());
                    }
                }
                _ => {}
            }
        }
        Self { found, threads, parents, orphans, gemini }
    }

    fn owner(&self, path: &Path, agent: Agent) -> Option<PathBuf> {
        match agent {
            Agent::ClaudeCode => {
                let owner = claude_owner(path)?;
                if self.found.contains_key(&owner) { Some(owner) } else { self.orphans.get(&owner).cloned() }
            }
            Agent::Codex => self.root_thread(path),
            Agent::Gemini => {
                let (chats, session) = gemini_parent(path)?;
                self.gemini.get(&(chats.to_owned(), session.to_owned())).cloned()
            }
            _ => None,
        }
    }

    /// Sub-agents may have spawned others; a circle of parents has no root. A copy of a thread is no part of it.
    fn root_thread(&self, path: &Path) -> Option<PathBuf> {
        let mut parent = self.parents.get(path)?;
        for _ in 0..DEEPEST {
            let (file, next) = self.threads.get(parent)?;
            match next {
                Some(next) if self.threads.contains_key(next) => parent = next,
                _ => return Some(file.clone()),
            }
        }
        None
    }
}

/// The main file of a Claude Code sub-agent, whether it is there or not.
fn claude_owner(path: &Path) -> Option<PathBuf> {
    let within = path.ancestors().find(|folder| name(folder) == "subagents");
    // A project may lie in a folder of that name; a session's folder has an id for a name.
    if let Some(session) = within.and_then(Path::parent).filter(|session| is_uuid(name(session))) {
        return Some(with_jsonl(session));
    }
    if !is_claude_agent(path) {
        return None;
    }
    let session = peek::claude_session(path)?;
    // An id out of a file becomes part of a path: it must be a name and nothing else.
    let is_name = session.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_name.then(|| path.with_file_name(format!("{session}.jsonl")))
}

fn with_jsonl(session: &Path) -> PathBuf {
    let mut name = session.file_name().unwrap_or_default().to_owned();
    name.push(".jsonl");
    session.with_file_name(name)
}

fn is_claude_agent(path: &Path) -> bool {
    name(path).starts_with("agent-") && has_extension(path, "jsonl")
}

/// `chats/<parent session>/<file>`: the folder `chats`, and the parent.
fn gemini_parent(path: &Path) -> Option<(&Path, &str)> {
    let folder = path.parent()?;
    let chats = folder.parent()?;
    let session = folder.file_name()?.to_str()?;
    (chats.file_name()? == "chats" && session != "chats").then_some((chats, session))
}

/// Whether a file in a folder is worth opening, by its name.
fn may_be(path: &Path, agent: Agent) -> bool {
    let json = has_extension(path, "json");
    let lines = has_extension(path, "jsonl");
    match agent {
        Agent::ClaudeCode => lines,
        Agent::Codex => lines || has_extension(path, "zst") || has_extension(path, "zstd"),
        Agent::Gemini => {
            let in_chats = path.components().any(|part| part.as_os_str() == "chats");
            (json || lines) && in_chats || gemini::is_list_of_typed(path)
        }
        Agent::Aider => is_aider(path),
        Agent::OpenCode => name(path).starts_with("opencode") && has_extension(path, "db"),
        Agent::Cursor => name(path) == "state.vscdb",
        Agent::Generic => lines || json,
        Agent::Fixture => json,
    }
}

fn is_passed_over(folder: &Path) -> bool {
    matches!(name(folder), "node_modules" | ".git")
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

const DEEPEST: usize = 24;
const MOST_ENTRIES: usize = 1_000_000;
