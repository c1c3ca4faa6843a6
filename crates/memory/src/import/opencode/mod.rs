//! `OpenCode`: a database since 1.2, a tree of JSON files before.
//!
//! Owns what both have in common: sessions of messages of parts, as seen in 2026. Easy to get wrong: a session with a
//! parent is a sub-agent's and belongs to that parent; what was reverted is still there and has to be left out.

mod db;
mod pieces;
mod tree;

use serde_json::Value;

use super::SessionFile;
use super::draft::{Draft, Role};
use super::sink::Sink;
use super::text::{self, member};
use super::time::{self, Millis};
use crate::Result;

use pieces::is_info;
pub(crate) use pieces::tree_pieces;
pub(crate) use tree::{has_database, is_tree, tree_sessions};

/// Reads the sessions of a database, or the one session of a file.
pub(crate) fn read(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    if is_info(file.path()) { tree::read(file, sink) } else { db::read(file.path(), sink) }
}

/// Whose session it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Teller {
    Main,
    SubAgent,
}

/// `{id, directory, title, version, time: {created, updated}, revert: {messageID, partID}}`.
fn tell_info(info: &Value, draft: &mut Draft) {
    draft.name(member(info, "id").unwrap_or_default());
    draft.project(member(info, "directory"));
    draft.note("agent_version", member(info, "version"));
    let made_up = |title: &str| title.starts_with("New session - ") || title.starts_with("Child session - ");
    draft.sum_up(member(info, "title").filter(|title| !made_up(title)).unwrap_or_default());
    draft.touch(info.get("time").and_then(|time| time.get("updated")).and_then(time::of));
}

/// Whether a message was taken back. Ids grow with time.
fn is_reverted(info: &Value, message: &str) -> bool {
    let Some(revert) = info.get("revert") else { return false };
    match (member(revert, "messageID"), member(revert, "partID")) {
        (Some(first), None) => message >= first,
        (Some(first), Some(_)) => message > first,
        _ => false,
    }
}

/// What a message says of itself.
struct Said {
    role: Role,
    at: Option<Millis>,
}

fn tell_message(data: &Value, created: Option<Millis>, draft: &mut Draft) -> Said {
    draft.note("model", member(data, "modelID"));
    let times = data.get("time");
    let at = times.and_then(|time| time.get("created")).and_then(time::of).or(created);
    draft.touch(times.and_then(|time| time.get("completed")).and_then(time::of));
    let is_compaction = data.get("summary").and_then(Value::as_bool) == Some(true);
    let role = Role::parse(member(data, "role").unwrap_or_default());
    Said { role: if is_compaction && role == Role::Assistant { Role::System } else { role }, at }
}

fn tell_part(part: &Value, said: &Said, teller: Teller, draft: &mut Draft) {
    let is_true = |name: &str| part.get(name).and_then(Value::as_bool) == Some(true);
    match member(part, "type").unwrap_or_default() {
        "text" if !is_true("synthetic") && !is_true("ignored") => {
            let content = member(part, "text").unwrap_or_default();
            match (said.role, teller) {
                (Role::User, Teller::Main) => draft.user(content, said.at),
                (Role::User, Teller::SubAgent) => {
                    draft.tool((!content.is_empty()).then_some("subagent"), content, said.at);
                }
                (role, _) => draft.say(role, content, said.at),
            }
        }
        "tool" => tell_tool(part, said, draft),
        _ => {}
    }
}

fn tell_tool(part: &Value, said: &Said, draft: &mut Draft) {
    let name = member(part, "tool");
    let Some(state) = part.get("state") else { return };
    let at = state.get("time").and_then(|time| time.get("start")).and_then(time::of).or(said.at);
    let input = state.get("input").unwrap_or(&Value::Null);
    draft.todos.see(name.unwrap_or_default(), input);
    draft.tool(name, text::of_value(input), at);
    if let Some(output) = state.get("output").or_else(|| state.get("error")) {
        draft.tool(name, text::of_result(output), at);
    }
}

/// Sub-agents' sessions by parent, and the sessions that have none.
struct Family {
    roots: Vec<String>,
    children: std::collections::HashMap<String, Vec<String>>,
}

impl Family {
    fn of(sessions: Vec<(String, Option<String>)>) -> Self {
        let known: std::collections::HashSet<String> = sessions.iter().map(|(id, _)| id.clone()).collect();
        let mut family = Self { roots: Vec::new(), children: std::collections::HashMap::new() };
        for (id, parent) in sessions {
            match parent.filter(|parent| known.contains(parent)) {
                Some(parent) => family.children.entry(parent).or_default().push(id),
                None => family.roots.push(id),
            }
        }
        family
    }

    /// All below one, it not among them. Each has one parent, so nothing comes twice.
    fn below(&self, root: &str) -> Vec<String> {
        let mut below: Vec<String> = Vec::new();
        let mut next = 0;
        let mut current = root.to_owned();
        loop {
            below.extend(self.children.get(&current).into_iter().flatten().cloned());
            match below.get(next) {
                Some(id) => current.clone_from(id),
                None => return below,
            }
            next += 1;
        }
    }
}
