//! JSON lines of anybody: messages (`{role, content}`, with or without `session_id`), or whole sessions.
//!
//! Easy to get wrong: the messages of several sessions may be mixed in one file. A first pass finds each session's last
//! line, so that the second can hand it out as soon as it is complete and memory holds only those that are open.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::draft::{Draft, Role};
use super::lines::{Line, Lines, is_json_lines, unreadable, whole_json};
use super::sink::Sink;
use super::text::{self, member};
use super::time;
use super::{Agent, SessionFile, fixture, zstd};
use crate::Result;

/// Reads the sessions of a file.
pub(crate) fn read(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    if !is_json_lines(file.path())? {
        return match whole_json(file.path())? {
            Some(Value::Array(records)) => read_records(records, sink),
            Some(record) if fixture::is_map(&record) => fixture::read(file, sink),
            Some(record) => read_records(vec![record], sink),
            None => read_lines(file, sink),
        };
    }
    read_lines(file, sink)
}

fn read_records(records: Vec<Value>, sink: &mut Sink<'_>) -> Result<()> {
    let mut open = Open::default();
    for record in records {
        open.record(record, sink)?;
    }
    open.finish(sink)
}

fn read_lines(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    let last = last_lines(file)?;
    let mut open = Open::default();
    let mut lines = Lines::new(zstd::open(file.path()).map_err(|_| unreadable())?);
    let mut number = 0_u64;
    while let Some(line) = super::lines::or_end(lines.next(), sink)? {
        number += 1;
        match line {
            Line::Text(bytes) if bytes.trim_ascii().is_empty() => {}
            Line::Text(bytes) => match serde_json::from_slice(bytes) {
                Ok(record) => {
                    let id = open.record(record, sink)?;
                    if let Some(id) = id.filter(|id| last.get(id) == Some(&number)) {
                        open.close(&id, sink)?;
                    }
                }
                Err(_) => sink.skip(),
            },
            Line::TooLong => sink.skip(),
        }
        // No stop at the one that is wanted: a session may be written again as it goes on, and the last one holds.
    }
    open.finish(sink)
}

/// The number of each session's last line.
fn last_lines(file: &SessionFile) -> Result<HashMap<String, u64>> {
    let mut last = HashMap::new();
    let mut lines = Lines::new(zstd::open(file.path()).map_err(|_| unreadable())?);
    let mut number = 0;
    // An error here is met again, and dealt with, in the second pass.
    while let Ok(Some(line)) = lines.next() {
        number += 1;
        let Line::Text(bytes) = line else { continue };
        let Ok(named) = serde_json::from_slice::<Named>(bytes) else { continue };
        if let Some(Value::String(id)) = named.session_id {
            last.insert(id.trim().to_owned(), number);
        }
    }
    Ok(last)
}

/// As much of a record as the first pass needs.
#[derive(serde::Deserialize)]
struct Named {
    #[serde(alias = "sessionId", alias = "conversation_id")]
    session_id: Option<Value>,
}

/// Sessions that are not complete yet.
#[derive(Default)]
struct Open {
    drafts: HashMap<String, Draft>,
    /// In the order in which they began.
    order: Vec<String>,
}

impl Open {
    /// Takes a record; gives back the id of the session it belongs to, if that is still open.
    fn record(&mut self, record: Value, sink: &mut Sink<'_>) -> Result<Option<String>> {
        let named = ID_NAMES.iter().find_map(|name| member(&record, name));
        let id = named.unwrap_or_else(|| sink.unnamed()).to_owned();
        let Value::Object(members) = record else {
            sink.skip();
            return Ok(None);
        };
        if members.contains_key("role") {
            if sink.wants(&id) {
                self.message(&id, &Value::Object(members));
            }
            return Ok(Some(id));
        }
        if is_session(&members) {
            if sink.wants(&id) {
                sink.whole(Agent::Generic, &id, without_ids(members))?;
            }
        } else {
            sink.skip();
        }
        Ok(None)
    }

    fn message(&mut self, id: &str, message: &Value) {
        if !self.drafts.contains_key(id) {
            self.order.push(id.to_owned());
        }
        let draft = self.drafts.entry(id.to_owned()).or_insert_with(|| Draft::new(Agent::Generic));
        draft.name(id);
        let at = TIME_NAMES.iter().find_map(|name| message.get(name)).and_then(time::of);
        let content = message.get("content").unwrap_or(&Value::Null);
        let said = || text::of_content(content);
        draft.note("model", member(message, "model"));
        draft.note_once("project", member(message, "cwd"));
        match Role::parse(member(message, "role").unwrap_or_default()) {
            Role::User => draft.user(&said(), at),
            Role::Tool => {
                let tool = member(message, "tool").or_else(|| member(message, "name"));
                draft.tool(tool, text::of_result(content), at);
            }
            role => draft.say(role, said(), at),
        }
        self.calls(id, message);
    }

    /// `tool_calls` as model APIs have them.
    fn calls(&mut self, id: &str, message: &Value) {
        let Some(draft) = self.drafts.get_mut(id) else { return };
        let calls = message.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            let call = call.get("function").unwrap_or(call);
            let input = call.get("arguments").or_else(|| call.get("input")).unwrap_or(&Value::Null);
            let parsed = input.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            let input = parsed.as_ref().unwrap_or(input);
            let name = member(call, "name");
            draft.todos.see(name.unwrap_or_default(), input);
            draft.tool(name, text::of_value(input), None);
        }
    }

    fn close(&mut self, id: &str, sink: &mut Sink<'_>) -> Result<()> {
        match self.drafts.remove(id) {
            Some(draft) => sink.finish(draft),
            None => Ok(()),
        }
    }

    fn finish(mut self, sink: &mut Sink<'_>) -> Result<()> {
        for id in std::mem::take(&mut self.order) {
            self.close(&id, sink)?;
        }
        Ok(())
    }
}

fn is_session(members: &Map<String, Value>) -> bool {
    members.get("messages").is_some_and(Value::is_array)
        || ["summary", "output", "error_message"]
            .iter()
            .any(|name| members.get(*name).is_some_and(Value::is_string))
}

/// The id goes in under one name.
fn without_ids(mut members: Map<String, Value>) -> Map<String, Value> {
    for name in ID_NAMES {
        members.remove(name);
    }
    members
}

const ID_NAMES: [&str; 3] = ["session_id", "sessionId", "conversation_id"];
const TIME_NAMES: [&str; 4] = ["timestamp", "created_at", "time", "ts"];
