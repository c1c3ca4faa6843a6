//! Claude Code: a file of JSON lines per session, and one per sub-agent.
//!
//! Shapes as seen in 2026; there is no documentation. Easy to get wrong: lines are written again when a session is
//! resumed (a `uuid` counts once), summaries at the top of a file may be of other sessions (their `leafUuid` is not in
//! this one), and a sub-agent's "user" is the main agent.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::Value;

use super::draft::{Draft, Role};
use super::file::{is_uuid, stem};
use super::lines::each_object;
use super::sink::Sink;
use super::text::{self, member};
use super::time::{self, Millis};
use super::{Agent, SessionFile};
use crate::Result;

/// Reads a session with its sub-agents.
pub(crate) fn read(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    let mut reading = Reading::new();
    let own = stem(file.path());
    if is_uuid(own) {
        reading.draft.name(own);
    }
    reading.read(file.path(), sink)?;
    reading.take_summary();
    for part in file.parts() {
        // A sub-agent whose file is gone is no reason to lose the session.
        if reading.read(part, sink).is_err() {
            sink.skip();
        }
    }
    if reading.draft.id().is_none() {
        reading.draft.name(own);
    }
    sink.finish(reading.draft)
}

struct Reading {
    draft: Draft,
    seen: HashSet<String>,
    /// Tool call to tool.
    tools: HashMap<String, String>,
    /// Leaf and summary.
    summaries: Vec<(Option<String>, String)>,
    title: Option<String>,
}

impl Reading {
    fn new() -> Self {
        Self {
            draft: Draft::new(Agent::ClaudeCode),
            seen: HashSet::new(),
            tools: HashMap::new(),
            summaries: Vec::new(),
            title: None,
        }
    }

    fn read(&mut self, path: &Path, sink: &mut Sink<'_>) -> Result<()> {
        each_object(path, sink, |line| self.line(line))
    }

    fn line(&mut self, line: &Value) {
        let kind = member(line, "type").unwrap_or_default();
        match kind {
            "user" | "assistant" => {}
            "summary" => return self.summary(line),
            "custom-title" => return self.title = member(line, "customTitle").map(str::to_owned),
            "ai-title" if self.title.is_none() => {
                return self.title = member(line, "aiTitle").map(str::to_owned);
            }
            _ => return,
        }
        if member(line, "uuid").is_some_and(|uuid| !self.seen.insert(uuid.to_owned())) {
            return;
        }
        self.context(line);
        let at = line.get("timestamp").and_then(time::of);
        let is_true = |name: &str| line.get(name).and_then(Value::as_bool) == Some(true);
        let Some(message) = line.get("message") else { return };
        let content = message.get("content").unwrap_or(&Value::Null);
        if kind == "assistant" {
            self.assistant(message, content, at);
        } else if is_true("isCompactSummary") {
            self.draft.say(Role::System, text::of_content(content), at);
        } else if !is_true("isMeta") {
            self.results(content, at);
            let said = text::of_content(content);
            if is_true("isSidechain") {
                self.draft.tool((!said.is_empty()).then_some("subagent"), said, at);
            } else {
                self.draft.user(&said, at);
            }
        }
    }

    fn context(&mut self, line: &Value) {
        if let Some(session) = member(line, "sessionId") {
            self.draft.name(session);
        }
        self.draft.project(member(line, "cwd"));
        self.draft.note("git_branch", member(line, "gitBranch").filter(|branch| *branch != "HEAD"));
        self.draft.note("agent_version", member(line, "version"));
    }

    fn assistant(&mut self, message: &Value, content: &Value, at: Option<Millis>) {
        self.draft.note("model", member(message, "model").filter(|model| *model != "<synthetic>"));
        self.draft.say(Role::Assistant, text::of_content(content), at);
        for call in blocks(content, "tool_use") {
            let name = member(call, "name");
            let input = call.get("input").unwrap_or(&Value::Null);
            if let Some(name) = name {
                self.draft.todos.see(name, input);
                if let Some(id) = member(call, "id") {
                    self.tools.insert(id.to_owned(), name.to_owned());
                }
            }
            self.draft.tool(name, text::of_value(input), at);
        }
    }

    fn results(&mut self, content: &Value, at: Option<Millis>) {
        for result in blocks(content, "tool_result") {
            let tool = member(result, "tool_use_id").and_then(|id| self.tools.get(id));
            let said = text::of_result(result.get("content").unwrap_or(&Value::Null));
            self.draft.tool(tool.map(String::as_str), said, at);
        }
    }

    fn summary(&mut self, line: &Value) {
        if let Some(summary) = member(line, "summary") {
            self.summaries.push((member(line, "leafUuid").map(str::to_owned), summary.to_owned()));
        }
    }

    fn take_summary(&mut self) {
        let summaries = std::mem::take(&mut self.summaries);
        let is_ours = |leaf: &Option<String>| leaf.as_ref().is_none_or(|leaf| self.seen.contains(leaf));
        let summary = summaries.into_iter().rfind(|(leaf, _)| is_ours(leaf)).map(|(_, summary)| summary);
        if let Some(summary) = summary.or_else(|| self.title.take()) {
            self.draft.sum_up(&summary);
        }
    }
}

fn blocks<'a>(content: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter(move |block| block.get("type").and_then(Value::as_str) == Some(kind))
}
