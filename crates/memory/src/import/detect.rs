//! Whose file it is, by what is in it.
//!
//! The name is not asked, but for Aider's, whose files are plain text. Easy to get wrong: the first lines of a session
//! are often not messages, so several are looked at, and the first that only one agent writes decides.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::lines::{whole_json, without_mark};
use super::{Agent, fixture, gemini, generic, peek, sqlite, zstd};
use crate::regular;

/// The agent that wrote a file, if it can be told.
pub(crate) fn detect(path: &Path) -> Option<Agent> {
    let mut first = Vec::new();
    regular::open(path).ok()?.take(FIRST).read_to_end(&mut first).ok()?;
    if first.starts_with(sqlite::MAGIC) {
        return database(path);
    }
    if first.starts_with(&zstd::MAGIC) {
        return peek::head(path).iter().find_map(of_line).or(Some(Agent::Codex));
    }
    let first = without_mark(&first);
    if is_aider(path) || String::from_utf8_lossy(first).trim_start().starts_with("# aider chat started at ") {
        return Some(Agent::Aider);
    }
    if let Some(agent) = peek::head(path).iter().find_map(of_line) {
        return Some(agent);
    }
    // JSON over several lines, or a list of records.
    match first.trim_ascii_start().first() {
        Some(b'{') => of_line(&whole_json(path).ok()??),
        Some(b'[') => {
            let records = whole_json(path).ok()??;
            let mut first = records.as_array()?.iter().take(ENOUGH);
            first.find_map(|record| match of_line(record) {
                _ if gemini::is_list_of_typed(path) && gemini::is_typed(record) => Some(Agent::Gemini),
                agent => agent.filter(|agent| *agent == Agent::Generic),
            })
        }
        _ => None,
    }
}

/// Whether the file has the name that Aider gives its files.
pub(crate) fn is_aider(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".aider.chat.history.md")
}

fn database(path: &Path) -> Option<Agent> {
    let tables = sqlite::tables(path).ok()?;
    let has = |name: &str| tables.iter().any(|table| table == name);
    if has("cursorDiskKV") {
        return Some(Agent::Cursor);
    }
    (has("session") && has("message") && has("part")).then_some(Agent::OpenCode)
}

/// The agent that writes such a line.
fn of_line(line: &Value) -> Option<Agent> {
    let members = line.as_object()?;
    let has = |name: &str| members.contains_key(name);
    let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
    if (has("sessionId") && (has("projectHash") || has("startTime"))) || has("$set") || has("$rewindTo") {
        return Some(Agent::Gemini);
    }
    let is_claude = has("uuid") && has("parentUuid") || has("leafUuid") || kind == "file-history-snapshot";
    if is_claude || (has("sessionId") && matches!(kind, "user" | "assistant")) {
        return Some(Agent::ClaudeCode);
    }
    let is_codex = has("payload") && has("type") || has("record_type");
    // The first rollouts had no envelope.
    if is_codex || (has("id") && has("timestamp") && has("instructions")) {
        return Some(Agent::Codex);
    }
    if generic::is_clearly(members) {
        return Some(Agent::Generic);
    }
    fixture::is_map(line).then_some(Agent::Fixture)
}

const FIRST: u64 = 4096;
/// Records of a list that are looked at.
const ENOUGH: usize = 12;
