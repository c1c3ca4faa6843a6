//! JSON lines of anybody: messages (`{role, content}`, with or without `session_id`), or whole sessions. What model APIs
//! and collections of talks call these (`parts`, `text`, `{from, value}`, `conversations`, `contents`) is understood too.
//!
//! Easy to get wrong: the messages of several sessions may be mixed in one file. A first pass finds each session's last
//! line, so that the second can hand it out as soon as it is complete and memory holds only those that are open.
//! And names: an `id` is a message's own, but a whole session's name. Messages without a name are one session, whole ones
//! without are each their own, counted from the top, so that they keep their names when the file grows.

use std::collections::HashMap;

use confidant_redact::read_json;
use serde_json::{Map, Value};

use super::draft::{Draft, Role};
use super::lines::{Line, Lines, is_json_lines, unreadable, whole_json};
use super::sink::Sink;
use super::text::{self, member};
use super::time;
use super::{Agent, SessionFile, fixture, zstd};
use crate::Result;

/// Whether a record can be nothing else than one of these.
pub(crate) fn is_clearly(members: &Map<String, Value>) -> bool {
    let has = |name: &str| members.contains_key(name);
    match RecordKind::of(members) {
        Some(RecordKind::Message) => CONTENT_NAMES.iter().any(|name| has(name)),
        Some(RecordKind::Session) if list_name(members).is_some() => true,
        // Many things have a summary; a session's has a name with it.
        _ => {
            let is_named =
                ID_NAMES.iter().chain(&OWN_NAMES).any(|name| members.get(*name).and_then(name_of).is_some());
            is_named && has("summary") || has("session_id") && has("tool_name")
        }
    }
}

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
            Line::Text(bytes) => match read_json(bytes) {
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
        let Ok(named) = read_json::<Named>(bytes) else { continue };
        if let Some(id) = named.session_id.as_ref().and_then(name_of) {
            last.insert(id, number);
        }
    }
    Ok(last)
}

/// As much of a record as the first pass needs.
#[derive(serde::Deserialize)]
struct Named {
    #[serde(alias = "sessionId", alias = "conversation_id", alias = "conversationId")]
    session_id: Option<Value>,
}

/// Sessions that are not complete yet.
#[derive(Default)]
struct Open {
    drafts: HashMap<String, Draft>,
    /// In the order in which they began.
    order: Vec<String>,
    /// How many have no name so far.
    nameless: usize,
    /// What the messages without a name are called, once there was one.
    messages: Option<String>,
}

impl Open {
    /// Takes a record; gives back the id of the session it belongs to, if that is still open.
    fn record(&mut self, record: Value, sink: &mut Sink<'_>) -> Result<Option<String>> {
        let Value::Object(members) = record else {
            sink.skip();
            return Ok(None);
        };
        let Some(kind) = RecordKind::of(&members) else {
            sink.skip();
            return Ok(None);
        };
        let named = ID_NAMES.iter().find_map(|name| members.get(*name).and_then(name_of));
        let id = named.unwrap_or_else(|| self.name_here(&members, kind, sink));
        match kind {
            RecordKind::Message => {
                if sink.wants(&id) {
                    self.message(&id, &Value::Object(members));
                }
                Ok(Some(id))
            }
            RecordKind::Session => {
                if sink.wants(&id) {
                    sink.whole(Agent::Generic, &id, in_usual_form(without_ids(members, &id)))?;
                }
                Ok(None)
            }
        }
    }

    /// The name of what says of no session that it is of it.
    fn name_here(&mut self, members: &Map<String, Value>, kind: RecordKind, sink: &mut Sink<'_>) -> String {
        let known = match kind {
            RecordKind::Message => self.messages.clone(),
            RecordKind::Session => OWN_NAMES.iter().find_map(|name| members.get(*name).and_then(name_of)),
        };
        let name = known.unwrap_or_else(|| {
            self.nameless += 1;
            sink.nth(self.nameless)
        });
        if kind == RecordKind::Message {
            self.messages = Some(name.clone());
        }
        sink.named_here(&name);
        name
    }

    fn message(&mut self, id: &str, message: &Value) {
        if !self.drafts.contains_key(id) {
            self.order.push(id.to_owned());
        }
        let draft = self.drafts.entry(id.to_owned()).or_insert_with(|| Draft::new(Agent::Generic));
        draft.name(id);
        let at = TIME_NAMES.iter().find_map(|name| message.get(name)).and_then(time::of);
        let content = CONTENT_NAMES.iter().find_map(|name| message.get(name).filter(|said| !said.is_null()));
        let content = content.unwrap_or(&Value::Null);
        let said = || text::of_content(content);
        draft.note("model", member(message, "model"));
        draft.project(member(message, "cwd"));
        let role = ROLE_NAMES.iter().find_map(|name| member(message, name));
        match Role::parse(role.unwrap_or_default()) {
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

/// What a record is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordKind {
    Message,
    Session,
}

impl RecordKind {
    fn of(members: &Map<String, Value>) -> Option<Self> {
        let has = |name: &str| members.contains_key(name);
        let says = |name: &&str| members.get(*name).is_some_and(Value::is_string);
        if list_name(members).is_some() {
            return Some(Self::Session);
        }
        if has("role") || ["from", "value"].iter().all(says) {
            return Some(Self::Message);
        }
        ["summary", "output", "error_message"].iter().any(says).then_some(Self::Session)
    }
}

/// What a session calls the list of its messages, if it has one.
fn list_name(members: &Map<String, Value>) -> Option<&'static str> {
    let list = |name: &&str| members.get(*name).and_then(Value::as_array);
    let is_talk = |messages: &Vec<Value>| {
        messages.first().is_some_and(|first| ROLE_NAMES.iter().any(|name| first.get(name).is_some()))
    };
    LIST_NAMES.into_iter().find(|name| list(name).is_some_and(|all| *name == "messages" || is_talk(all)))
}

/// Messages as `messages` of `{role, content}`; all else stays as it is.
fn in_usual_form(mut members: Map<String, Value>) -> Map<String, Value> {
    let Some(mut list) = list_name(&members).and_then(|name| members.remove(name)) else { return members };
    for message in list.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        let role = ROLE_NAMES[1..].iter().find(|name| message.get(**name).is_some_and(Value::is_string));
        if let (false, Some(name)) = (message.contains_key("role"), role) {
            let role = message.remove(*name);
            let role = role.as_ref().and_then(Value::as_str).map_or(Role::System, Role::parse);
            message.insert("role".to_owned(), role.name().into());
        }
        let said = CONTENT_NAMES[1..].iter().find(|name| message.contains_key(**name));
        if let (true, Some(name)) = (message.get("content").is_none_or(Value::is_null), said) {
            let said = message.remove(*name).unwrap_or_default();
            let text = text::of_content(&said);
            let text = if text.is_empty() { text::of_value(&said) } else { text };
            message.insert("content".to_owned(), text.into());
        }
    }
    members.insert("messages".to_owned(), list);
    members
}

/// A name: a word, or a whole number.
fn name_of(value: &Value) -> Option<String> {
    match value {
        Value::String(name) => Some(name.trim().to_owned()).filter(|name| !name.is_empty()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}

/// The id goes in under one name.
fn without_ids(mut members: Map<String, Value>, id: &str) -> Map<String, Value> {
    for name in ID_NAMES {
        members.remove(name);
    }
    for name in OWN_NAMES {
        if members.get(name).and_then(name_of).as_deref() == Some(id) {
            members.remove(name);
        }
    }
    members
}

const ID_NAMES: [&str; 4] = ["session_id", "sessionId", "conversation_id", "conversationId"];
/// What a whole session may call itself, where nothing else names it.
const OWN_NAMES: [&str; 2] = ["id", "uuid"];
const LIST_NAMES: [&str; 5] = ["messages", "conversations", "conversation", "contents", "chat_messages"];
const ROLE_NAMES: [&str; 3] = ["role", "from", "sender"];
const CONTENT_NAMES: [&str; 4] = ["content", "parts", "text", "value"];
const TIME_NAMES: [&str; 4] = ["timestamp", "created_at", "time", "ts"];
