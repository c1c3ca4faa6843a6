//! Gemini CLI: one JSON object per session, or, newer, a log of JSON lines that has to be played back. The first versions
//! kept no more than what was typed, in one list for all sessions of a project.
//!
//! Shapes as seen in 2026. Easy to get wrong: a message is written again each time it changes (the last holds, in the
//! first's place); `$rewindTo` takes back the message it names and all after it, or everything if it names none that is
//! there; `$set` with messages happens at compression too, so it adds and changes, but takes nothing back.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use super::draft::{Draft, Role};
use super::lines::{each_json, is_json_lines, unreadable, whole_json};
use super::sink::Sink;
use super::text::{self, member};
use super::time;
use super::{Agent, SessionFile, zstd};
use crate::{Result, regular};

/// Reads a session with its sub-agents.
pub(crate) fn read(file: &SessionFile, sink: &mut Sink<'_>) -> Result<()> {
    if is_list_of_typed(file.path()) {
        return read_typed(file.path(), sink);
    }
    let mut draft = Draft::new(Agent::Gemini);
    Log::read(file.path(), sink)?.tell(&mut draft, Teller::Main);
    draft.project(project(file.path()).as_deref());
    for part in file.parts() {
        match Log::read(part, sink) {
            Ok(log) => log.tell(&mut draft, Teller::SubAgent),
            Err(_) => sink.skip(),
        }
    }
    draft.name(file.stem());
    sink.finish(draft)
}

/// Whether a file has the name of the list of what was typed.
pub(crate) fn is_list_of_typed(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "logs.json")
}

/// Whether the sessions of a list have files of their own, in which there is more.
pub(crate) fn has_sessions_beside(list: &Path) -> bool {
    list.parent().is_some_and(|folder| folder.join("chats").is_dir())
}

/// Whether a record is of such a list.
pub(crate) fn is_typed(record: &Value) -> bool {
    member(record, "sessionId").is_some()
        && record.get("messageId").is_some()
        && record.get("message").is_some()
}

fn read_typed(path: &Path, sink: &mut Sink<'_>) -> Result<()> {
    let Some(Value::Array(records)) = whole_json(path)? else {
        sink.skip();
        return Ok(());
    };
    let mut sessions: BTreeMap<String, Draft> = BTreeMap::new();
    for record in &records {
        let Some(id) = member(record, "sessionId") else {
            sink.skip();
            continue;
        };
        let draft = sessions.entry(id.to_owned()).or_insert_with(|| Draft::new(Agent::Gemini));
        draft.name(id);
        let at = record.get("timestamp").and_then(time::of);
        draft.user(member(record, "message").unwrap_or_default(), at);
    }
    sessions.into_values().try_for_each(|draft| sink.finish(draft))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Teller {
    Main,
    SubAgent,
}

/// A session as the log leaves it.
#[derive(Default)]
struct Log {
    metadata: Map<String, Value>,
    /// In order; what was taken back is gone.
    messages: Vec<Value>,
    places: HashMap<String, usize>,
}

impl Log {
    fn read(path: &Path, sink: &mut Sink<'_>) -> Result<Self> {
        let mut log = Self::default();
        if !is_json_lines(path)? {
            match whole_json(path)? {
                Some(record) => log.record(record, sink),
                None => sink.skip(),
            }
            return Ok(log);
        }
        let reader = zstd::open(path).map_err(|_| unreadable())?;
        each_json(reader, sink, |record, sink| {
            log.record(record, sink);
            Ok(())
        })?;
        Ok(log)
    }

    fn record(&mut self, record: Value, sink: &mut Sink<'_>) {
        let Value::Object(mut record) = record else { return sink.skip() };
        if let Some(id) = record.get("$rewindTo") {
            self.rewind(id.as_str().unwrap_or_default());
        } else if let Some(Value::Object(patch)) = record.remove("$set") {
            self.patch(patch);
        } else if record.contains_key("type") {
            self.put(Value::Object(record));
        } else {
            self.patch(record);
        }
    }

    fn rewind(&mut self, id: &str) {
        self.messages.truncate(self.places.get(id).copied().unwrap_or(0));
        self.places.retain(|_, place| *place < self.messages.len());
    }

    fn patch(&mut self, mut patch: Map<String, Value>) {
        if let Some(Value::Array(messages)) = patch.remove("messages") {
            messages.into_iter().for_each(|message| self.put(message));
        }
        self.metadata.extend(patch);
    }

    fn put(&mut self, message: Value) {
        let known = member(&message, "id").map(str::to_owned);
        match known.as_ref().and_then(|id| self.places.get(id)) {
            Some(&place) => self.messages[place] = message,
            None => {
                self.places.extend(known.map(|id| (id, self.messages.len())));
                self.messages.push(message);
            }
        }
    }

    fn tell(self, draft: &mut Draft, teller: Teller) {
        let metadata = Value::Object(self.metadata);
        if teller == Teller::Main {
            draft.name(member(&metadata, "sessionId").unwrap_or_default());
            draft.sum_up(member(&metadata, "summary").unwrap_or_default());
            let directory = metadata.get("directories").and_then(|all| all.get(0)).and_then(Value::as_str);
            draft.project(directory);
        }
        draft.touch(metadata.get("lastUpdated").and_then(time::of));
        self.messages.iter().for_each(|message| tell_message(message, draft, teller));
    }
}

fn tell_message(message: &Value, draft: &mut Draft, teller: Teller) {
    let at = message.get("timestamp").and_then(time::of);
    let said = text::of_content(message.get("content").unwrap_or(&Value::Null));
    match member(message, "type").unwrap_or_default() {
        "user" if teller == Teller::SubAgent => {
            draft.tool((!said.is_empty()).then_some("subagent"), said, at);
        }
        "user" => draft.user(&said, at),
        "gemini" | "model" | "assistant" => {
            draft.note("model", member(message, "model"));
            draft.say(Role::Assistant, said, at);
            let calls = message.get("toolCalls").and_then(Value::as_array);
            calls.into_iter().flatten().for_each(|call| tell_call(call, draft, at));
        }
        "error" | "warning" => draft.say(Role::System, said, at),
        _ => draft.touch(at),
    }
}

fn tell_call(call: &Value, draft: &mut Draft, at: Option<time::Millis>) {
    let at = call.get("timestamp").and_then(time::of).or(at);
    let name = member(call, "name");
    let args = call.get("args").unwrap_or(&Value::Null);
    draft.todos.see(name.unwrap_or_default(), args);
    draft.tool(name, text::of_value(args), at);
    let Some(result) = call.get("result") else { return };
    let parts = result.as_array().map_or(std::slice::from_ref(result), Vec::as_slice);
    let said: Vec<String> = parts.iter().map(tell_part).filter(|said| !said.is_empty()).collect();
    if !said.is_empty() {
        draft.tool(name, said.join("\n"), at);
    }
}

/// `{functionResponse: {response: {output}}}`, or text.
fn tell_part(part: &Value) -> String {
    match part.get("functionResponse").and_then(|response| response.get("response")) {
        Some(response) => {
            let inner = response.get("output").or_else(|| response.get("error")).unwrap_or(response);
            text::of_value(inner)
        }
        None => text::of_result(part),
    }
}

/// Newer versions note the project's folder beside `chats`.
fn project(path: &Path) -> Option<String> {
    let chats = path.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "chats"))?;
    let note = chats.parent()?.join(".project_root");
    let mut text = String::new();
    regular::open(&note).ok()?.take(4096).read_to_string(&mut text).ok()?;
    Some(text)
}
