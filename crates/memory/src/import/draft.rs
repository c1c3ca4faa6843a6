//! A session while it is being read.
//!
//! Owns the form that comes out (`raw_session`) and the bounds on one session. Easy to get wrong: text is never cut,
//! because a secret that is split over a cut escapes the redaction rules. A leaf that is too long is left out whole, and
//! so are messages once the session has too much text; both are counted, in the message and in `metadata.left_out`.

use serde_json::{Map, Value, json};

use super::Agent;
use super::text::{self, Typed};
use super::time::{self, Millis};
use super::todo::Todos;

/// Who said it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
    Tool,
    System,
}

/// What is known of a session so far.
pub(crate) struct Draft {
    agent: Agent,
    id: Option<String>,
    messages: Vec<Message>,
    summary: Option<String>,
    last: Option<Millis>,
    metadata: Map<String, Value>,
    bytes: usize,
    left_out: u64,
    /// What the agent plans to do.
    pub(crate) todos: Todos,
}

struct Message {
    role: Role,
    content: String,
    tool: Option<String>,
    at: Option<Millis>,
    is_request: bool,
    left_out: Option<usize>,
}

impl Draft {
    pub(crate) fn new(agent: Agent) -> Self {
        Self {
            agent,
            id: None,
            messages: Vec::new(),
            summary: None,
            last: None,
            metadata: Map::new(),
            bytes: 0,
            left_out: 0,
            todos: Todos::default(),
        }
    }

    /// The session's id; the first one holds.
    pub(crate) fn name(&mut self, id: &str) {
        if self.id.is_none() && !id.trim().is_empty() {
            self.id = Some(id.trim().to_owned());
        }
    }

    /// What a person wrote, or was said to have written.
    pub(crate) fn user(&mut self, content: &str, at: Option<Millis>) {
        let (content, is_request) = match text::typed(content) {
            Typed::Request(request) => (request.to_owned(), true),
            Typed::Command(command) => (command, false),
            Typed::Nothing => return self.touch(at),
        };
        self.push(Message { role: Role::User, content, tool: None, at, is_request, left_out: None });
    }

    /// What the agent or its program wrote.
    pub(crate) fn say(&mut self, role: Role, content: impl Into<String>, at: Option<Millis>) {
        let content = content.into();
        if content.trim().is_empty() {
            return self.touch(at);
        }
        self.push(Message { role, content, tool: None, at, is_request: false, left_out: None });
    }

    /// A tool's call or result.
    pub(crate) fn tool(&mut self, tool: Option<&str>, content: impl Into<String>, at: Option<Millis>) {
        let (content, tool) = (content.into(), tool.map(str::trim).filter(|tool| is_name(tool)));
        if content.trim().is_empty() && tool.is_none() {
            return self.touch(at);
        }
        let tool = tool.map(str::to_owned);
        self.push(Message { role: Role::Tool, content, tool, at, is_request: false, left_out: None });
    }

    /// The agent's own summary; the last one holds.
    pub(crate) fn sum_up(&mut self, summary: &str) {
        let summary = summary.trim();
        if summary.len() > LONGEST_LEAF {
            self.left_out += 1;
        } else if !summary.is_empty() {
            self.summary = Some(summary.to_owned());
        }
    }

    /// Something was done then.
    pub(crate) fn touch(&mut self, at: Option<Millis>) {
        self.last = self.last.max(at);
    }

    /// A member of `metadata`; the last one holds.
    pub(crate) fn note(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) =
            value.map(str::trim).filter(|value| !value.is_empty() && value.len() <= LONGEST_NOTE)
        {
            self.metadata.insert(name.to_owned(), value.into());
        }
    }

    /// The folder that was worked in, by its last name: what is above it tells who did.
    pub(crate) fn project(&mut self, path: Option<&str>) {
        let name = path.and_then(|path| path.split(['/', '\\']).rfind(|part| !part.trim().is_empty()));
        self.note_once("project", name);
    }

    /// As [`Self::note`], but the first one holds.
    pub(crate) fn note_once(&mut self, name: &str, value: Option<&str>) {
        if !self.metadata.contains_key(name) {
            self.note(name, value);
        }
    }

    /// Something was left out before it got here.
    pub(crate) fn leave_out(&mut self) {
        self.left_out += 1;
    }

    /// Takes back the person's last requests and all that followed them.
    pub(crate) fn take_back(&mut self, requests: usize) {
        for _ in 0..requests {
            let Some(at) = self.messages.iter().rposition(|message| message.is_request) else { return };
            self.messages.truncate(at);
        }
    }

    pub(crate) fn agent(&self) -> Agent {
        self.agent
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Its id, its members without the time, and the time of the last thing that happened.
    pub(crate) fn finish(self) -> (String, Map<String, Value>, Option<Millis>) {
        let id = self.id.unwrap_or_default();
        let mut members = Map::new();
        members.insert("session_id".to_owned(), id.as_str().into());
        members.insert("tool_name".to_owned(), self.agent.name().into());
        let request = self.messages.iter().find(|message| message.is_request && message.left_out.is_none());
        if let Some(summary) = self.summary.or_else(|| request.map(|message| message.content.clone())) {
            members.insert("summary".to_owned(), summary.into());
        }
        let messages: Vec<Value> = self.messages.into_iter().map(Message::into_value).collect();
        members.insert("messages".to_owned(), messages.into());
        let mut metadata = self.metadata;
        if self.left_out > 0 {
            metadata.insert("left_out".to_owned(), self.left_out.into());
        }
        if !metadata.is_empty() {
            members.insert("metadata".to_owned(), metadata.into());
        }
        let todos = self.todos.open();
        if !todos.is_empty() {
            members.insert("todos".to_owned(), todos.into());
        }
        (id, members, self.last)
    }

    fn push(&mut self, mut message: Message) {
        self.touch(message.at);
        let length = message.content.len();
        let most = if message.role == Role::Tool { MOST_TOOL_TEXT } else { MOST_TEXT };
        if self.bytes + length > most || self.messages.len() >= MOST_MESSAGES {
            self.left_out += 1;
            return;
        }
        if length > LONGEST_LEAF {
            self.left_out += 1;
            message.left_out = Some(length);
            message.content = String::new();
        }
        self.bytes += message.content.len();
        self.messages.push(message);
    }
}

impl Message {
    fn into_value(self) -> Value {
        let mut value = json!({"role": self.role.name(), "content": self.content});
        let mut also = |name: &str, member: Option<Value>| {
            if let Some(member) = member {
                value[name] = member;
            }
        };
        also("tool", self.tool.map(Value::from));
        also("timestamp", self.at.map(time::format).map(Value::from));
        also("left_out", self.left_out.map(Value::from));
        value
    }
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::System => "system",
        }
    }

    /// The role that others call by many names.
    pub(crate) fn parse(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "user" | "human" => Self::User,
            "assistant" | "ai" | "agent" | "bot" | "gemini" | "model" | "gpt" | "chatgpt" => Self::Assistant,
            "tool" | "function" | "tool_use" | "tool_result" | "function_call" | "observation" => Self::Tool,
            _ => Self::System,
        }
    }
}

fn is_name(tool: &str) -> bool {
    !tool.is_empty() && tool.len() <= LONGEST_NOTE
}

/// The longest text of one message.
pub(crate) const LONGEST_LEAF: usize = 1 << 20;
const LONGEST_NOTE: usize = 4096;
/// The most text of one session, and how much of it may be there when a tool's is added: what people say goes before.
const MOST_TEXT: usize = 64 << 20;
const MOST_TOOL_TEXT: usize = 48 << 20;
const MOST_MESSAGES: usize = 200_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_left_out_whole_and_counted() {
        let mut draft = Draft::new(Agent::Generic);
        draft.name("s");
        draft.tool(Some("Bash"), "x".repeat(LONGEST_LEAF + 1), None);
        draft.user("fix it", Some(0));
        let (id, members, last) = draft.finish();
        assert_eq!(id, "s");
        assert_eq!(last, Some(0));
        assert_eq!(
            Value::Object(members),
            json!({"session_id": "s", "tool_name": "generic", "summary": "fix it", "metadata": {"left_out": 1},
                "messages": [{"role": "tool", "tool": "Bash", "content": "", "left_out": LONGEST_LEAF + 1},
                    {"role": "user", "content": "fix it", "timestamp": "1970-01-01T00:00:00Z"}]})
        );
    }

    #[test]
    fn requests_can_be_taken_back() {
        let mut draft = Draft::new(Agent::Codex);
        for text in ["one", "two", "three"] {
            draft.user(text, None);
            draft.say(Role::Assistant, "done", None);
        }
        draft.take_back(2);
        assert_eq!(draft.messages.len(), 2);
        draft.take_back(9);
        assert!(draft.is_empty());
    }
}
