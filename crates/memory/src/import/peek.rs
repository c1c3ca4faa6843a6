//! The beginning of a file: enough to tell whose it is and which session it belongs to.

use std::path::Path;

use confidant_redact::read_json;
use serde_json::Value;

use super::lines::{Line, Lines};
use super::text::member;
use super::zstd;

/// The first JSON lines of a file; damage and other text are passed over.
pub(crate) fn head(path: &Path) -> Vec<Value> {
    let Ok(reader) = zstd::open(path) else { return Vec::new() };
    let mut lines = Lines::of_at_most(reader, LONGEST_LINE);
    let mut values = Vec::new();
    for _ in 0..MOST_LINES {
        match lines.next() {
            Ok(Some(Line::Text(line))) => values.extend(read_json::<Value>(line)),
            Ok(Some(Line::TooLong)) => {}
            Ok(None) | Err(_) => break,
        }
        if values.len() >= ENOUGH {
            break;
        }
    }
    values
}

/// The session that the lines of a Claude Code file say they are of.
pub(crate) fn claude_session(path: &Path) -> Option<String> {
    head(path).iter().find_map(|line| member(line, "sessionId").map(str::to_owned))
}

/// The id of a Codex thread, and of the one that spawned it.
pub(crate) fn codex_thread(path: &Path) -> Option<(String, Option<String>)> {
    head(path).iter().find_map(|line| {
        let meta = if member(line, "type") == Some("session_meta") { line.get("payload")? } else { line };
        let id = member(meta, "id").or_else(|| member(meta, "session_id"))?;
        Some((id.to_owned(), codex_parent(meta, id).map(str::to_owned)))
    })
}

/// The id of a Gemini session.
pub(crate) fn gemini_session(path: &Path) -> Option<String> {
    head(path).iter().find_map(|line| member(line, "sessionId").map(str::to_owned))
}

fn codex_parent<'a>(meta: &'a Value, id: &str) -> Option<&'a str> {
    let spawned = meta.get("source").and_then(|source| source.get("subagent"))?;
    let by_spawn = spawned.get("thread_spawn").and_then(|spawn| member(spawn, "parent_thread_id"));
    let parent = by_spawn.or_else(|| member(meta, "parent_thread_id")).or_else(|| member(meta, "session_id"));
    parent.filter(|parent| *parent != id)
}

const LONGEST_LINE: usize = 1 << 20;
const MOST_LINES: usize = 64;
const ENOUGH: usize = 12;
