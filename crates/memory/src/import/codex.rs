//! Codex: a rollout of JSON lines per thread, plain or compressed.
//!
//! Shapes as seen in 2026. Easy to get wrong: most text is there twice, as what went to the model (`response_item`) and
//! as what was shown (`event_msg`); the latter is only taken where the former has none. A fork begins with its parent's
//! lines, so the first `session_meta` is the one that counts. Rollouts of 2025 had no envelope around items.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::draft::{Draft, Role};
use super::file::{is_uuid, stem};
use super::lines::each_object;
use super::sink::Sink;
use super::text::{self, Typed, member};
use super::time::{self, Millis};
use super::{Agent, SessionFile};
use crate::Result;

/// Reads a thread with those that it spawned.
pub(crate) fn read(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    let mut reading = Reading::new();
    reading.read(file.path(), sink)?;
    reading.end_of_file();
    for part in file.parts() {
        reading.in_part = true;
        if reading.read(part, sink).is_err() {
            sink.skip();
        }
        reading.end_of_file();
    }
    let own = stem(file.path());
    let id = own.get(own.len().saturating_sub(36)..).filter(|id| is_uuid(id)).unwrap_or(own);
    reading.draft.name(id);
    sink.finish(reading.draft)
}

struct Reading {
    draft: Draft,
    /// Call to tool.
    tools: HashMap<String, String>,
    /// What was shown, as long as nothing was found of what went to the model.
    shown: Vec<(Role, String, Option<Millis>)>,
    shown_bytes: usize,
    has_items: bool,
    /// In a sub-agent's file, the user is the main agent.
    in_part: bool,
}

impl Reading {
    fn new() -> Self {
        Self {
            draft: Draft::new(Agent::Codex),
            tools: HashMap::new(),
            shown: Vec::new(),
            shown_bytes: 0,
            has_items: false,
            in_part: false,
        }
    }

    fn read(&mut self, path: &Path, sink: &mut Sink<'_>) -> Result<()> {
        each_object(path, sink, |line| self.line(line))
    }

    fn end_of_file(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        if !std::mem::take(&mut self.has_items) {
            shown.into_iter().for_each(|(role, said, at)| self.message(role, &said, at));
        }
    }

    fn line(&mut self, line: &Value) {
        let at = line.get("timestamp").and_then(time::of);
        let kind = member(line, "type").unwrap_or_default();
        let Some(payload) = line.get("payload") else {
            // Without envelope: the first line is the session's, the others are items.
            return if kind.is_empty() { self.meta(line) } else { self.item(line, at) };
        };
        match kind {
            "session_meta" => self.meta(payload),
            "response_item" => self.item(payload, at),
            "event_msg" => self.event(payload, at),
            "turn_context" => {
                self.draft.project(member(payload, "cwd"));
                self.draft.note("model", member(payload, "model"));
            }
            "compacted" => self.draft.say(Role::System, member(payload, "message").unwrap_or_default(), at),
            _ => self.draft.touch(at),
        }
    }

    fn meta(&mut self, meta: &Value) {
        let Some(id) = member(meta, "id").or_else(|| member(meta, "session_id")) else { return };
        let is_first = self.draft.id().is_none();
        self.draft.name(id);
        if is_first {
            self.draft.touch(meta.get("timestamp").and_then(time::of));
            self.draft.project(member(meta, "cwd"));
            self.draft.note("agent_version", member(meta, "cli_version"));
            self.draft.note("git_branch", meta.get("git").and_then(|git| member(git, "branch")));
        }
    }

    fn item(&mut self, item: &Value, at: Option<Millis>) {
        match member(item, "type").unwrap_or_default() {
            "message" => {
                let role = Role::parse(member(item, "role").unwrap_or_default());
                let said = text::of_content(item.get("content").unwrap_or(&Value::Null));
                if role != Role::System {
                    self.item_message(role, &said, at);
                }
            }
            "function_call" => self.call(item, item.get("arguments"), at),
            "custom_tool_call" => self.call(item, item.get("input"), at),
            "local_shell_call" | "web_search_call" | "tool_search_call" => {
                self.call(item, item.get("action"), at)
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.output(item, at)
            }
            _ => self.draft.touch(at),
        }
    }

    fn item_message(&mut self, role: Role, said: &str, at: Option<Millis>) {
        // The environment is always sent as an item, even where the rest is only shown.
        if role == Role::Assistant || text::typed(said) != Typed::Nothing {
            self.has_items = true;
            self.shown = Vec::new();
        }
        self.message(role, said, at);
    }

    fn message(&mut self, role: Role, said: &str, at: Option<Millis>) {
        match role {
            Role::User if self.in_part => match text::typed(said) {
                Typed::Request(request) => self.draft.tool(Some("subagent"), request, at),
                Typed::Command(_) | Typed::Nothing => self.draft.touch(at),
            },
            Role::User => self.draft.user(said, at),
            _ => self.draft.say(role, said, at),
        }
    }

    fn call(&mut self, item: &Value, input: Option<&Value>, at: Option<Millis>) {
        let name = member(item, "name").or_else(|| member(item, "type")?.strip_suffix("_call"));
        // Arguments are JSON in a string.
        let parsed = input.and_then(Value::as_str).and_then(|text| serde_json::from_str::<Value>(text).ok());
        let input = parsed.as_ref().or(input).unwrap_or(&Value::Null);
        if let Some(name) = name {
            self.draft.todos.see(name, input);
            if let Some(id) = member(item, "call_id") {
                self.tools.insert(id.to_owned(), name.to_owned());
            }
        }
        self.draft.tool(name, text::of_value(input), at);
    }

    fn output(&mut self, item: &Value, at: Option<Millis>) {
        let tool = member(item, "call_id").and_then(|id| self.tools.get(id)).cloned();
        let output = item.get("output").unwrap_or(&Value::Null);
        let parsed = output.as_str().filter(|text| text.starts_with('{'));
        let parsed = parsed.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let output = parsed.as_ref().unwrap_or(output);
        // `{output, metadata}`, `{content, success}` or the text itself.
        let inner = output.get("output").or_else(|| output.get("content")).unwrap_or(output);
        self.draft.tool(tool.as_deref(), text::of_result(inner), at);
    }

    fn event(&mut self, event: &Value, at: Option<Millis>) {
        self.draft.touch(at);
        let said = || member(event, "message").unwrap_or_default().to_owned();
        match member(event, "type").unwrap_or_default() {
            "user_message" => self.show(Role::User, said(), at),
            "agent_message" => self.show(Role::Assistant, said(), at),
            "thread_name_updated" if !self.in_part => {
                self.draft.sum_up(member(event, "thread_name").unwrap_or_default());
            }
            "thread_rolled_back" => {
                let turns = event.get("num_turns").and_then(Value::as_u64).unwrap_or(0);
                self.take_back(usize::try_from(turns).unwrap_or(usize::MAX));
            }
            _ => {}
        }
    }

    fn show(&mut self, role: Role, said: String, at: Option<Millis>) {
        if self.has_items {
            return;
        }
        self.shown_bytes += said.len();
        if self.shown_bytes > MOST_SHOWN {
            self.draft.leave_out();
        } else {
            self.shown.push((role, said, at));
        }
    }

    fn take_back(&mut self, turns: usize) {
        if self.in_part {
            return;
        }
        self.draft.take_back(turns);
        for _ in 0..turns.min(self.shown.len()) {
            let Some(at) = self.shown.iter().rposition(|(role, ..)| *role == Role::User) else { break };
            self.shown.truncate(at);
        }
    }
}

const MOST_SHOWN: usize = 64 << 20;
