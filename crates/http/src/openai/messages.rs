//! The messages of a chat, by what they are for.
//!
//! The last message of the user is the query. What comes before it was said elsewhere; what comes after it are calls of the
//! client's own tools, with their results, and belongs to the same turn. A client need not send the calls that it was handed
//! here again: their results say by their names where they belong.

use std::collections::HashMap;

use confidant_engine::model::{Attachment, PromptMessage, Role as MessageRole};
use confidant_engine::turn::{ClientCall, ClientResult, ClientStep, ToolSaid, may_be_the_clients};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::attached::{Attached, Refusal, file, image};
use super::request::bad;
use super::tools::arguments_read;
use crate::error::ApiError;

/// One message.
#[derive(Deserialize, ToSchema)]
pub(super) struct ChatMessage {
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    role: String,
    /// A text, or parts. Images and files are for the model only if they are in the user's last message; of earlier ones it hears that
    /// there were some.
    #[schema(value_type = Option<Content>)]
    content: Option<Content>,
    /// With `assistant`: the calls of the client's tools.
    tool_calls: Option<Vec<CalledTool>>,
    /// With `tool`: the call that this is the result of.
    tool_call_id: Option<String>,
    #[schema(ignore)]
    function_call: Option<Value>,
}

/// A text, or parts.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of a message.
#[derive(Deserialize, ToSchema)]
struct Part {
    /// `text`; in messages of the user also `image_url` and `file`, as far as the model takes them.
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    image_url: Option<ChatImage>,
    file: Option<ChatFile>,
}

/// An image.
#[derive(Deserialize, ToSchema)]
struct ChatImage {
    /// A data URL. OpenAI's own server also takes https addresses; nothing here fetches them.
    url: String,
}

/// A file.
#[derive(Deserialize, ToSchema)]
struct ChatFile {
    /// A data URL, or base64 with a name that says what it is.
    file_data: Option<String>,
    filename: Option<String>,
}

/// A call, as the client sends it back.
#[derive(Deserialize, ToSchema)]
struct CalledTool {
    id: String,
    /// Only `function`.
    #[serde(rename = "type")]
    kind: Option<String>,
    function: Option<CalledFunction>,
}

/// The function that was called.
#[derive(Deserialize, ToSchema)]
struct CalledFunction {
    name: String,
    /// As JSON.
    arguments: String,
}

/// The messages by what they are for.
#[derive(Default)]
pub(super) struct Spoken {
    pub(super) instructions: Vec<String>,
    pub(super) brought: Vec<PromptMessage>,
    /// What the client's tools said before the query.
    pub(super) results: Vec<ToolSaid>,
    /// The calls since, with what they gave.
    pub(super) steps: Vec<ClientStep>,
    /// Nothing if only results were sent.
    pub(super) query: String,
    /// What came with it.
    pub(super) attachments: Vec<Attachment>,
}

impl Spoken {
    pub(super) fn of(messages: Vec<ChatMessage>) -> Result<Self, ApiError> {
        let speakers = messages.iter().enumerate().map(|(index, message)| message.speaker(index));
        let speakers: Vec<Speaker> = speakers.collect::<Result<_, _>>()?;
        let place = match speakers.last() {
            None => {
                return Err(bad(
                    "messages",
                    "`messages` is empty",
                    "send at least one message, from the user",
                ));
            }
            Some(Speaker::User | Speaker::Tool) => speakers.iter().rposition(|it| *it == Speaker::User),
            Some(Speaker::Operator | Speaker::Assistant) => {
                let at = messages.len() - 1;
                let message = format!(
                    "`messages[{at}].role` is neither `user` nor `tool`, but the last message must be of one of them"
                );
                return Err(bad(
                    "messages",
                    message,
                    "end with a message from the user, or the result of a tool",
                ));
            }
        };
        let mut spoken = Self::default();
        let mut reading = Reading::default();
        for (index, (message, speaker)) in messages.into_iter().zip(speakers).enumerate() {
            match speaker {
                Speaker::Operator => spoken.instructions.push(message.text(index)?),
                Speaker::User if Some(index) == place => {
                    (spoken.query, spoken.attachments) = message.content(index)?;
                }
                Speaker::User => {
                    let (text, _) = message.content(index)?;
                    spoken.brought.push(PromptMessage { role: MessageRole::Human, text });
                }
                Speaker::Assistant if Some(index) < place => {
                    let (text, calls) = message.said(index)?;
                    reading.names.extend(calls.into_iter().map(|call| (call.id, call.name)));
                    if let Some(text) = text {
                        spoken.brought.push(PromptMessage { role: MessageRole::Ai, text });
                    }
                }
                Speaker::Assistant => reading.step(&mut spoken.steps, message.said(index)?, index)?,
                Speaker::Tool => {
                    let result = message.result(index)?;
                    if Some(index) < place {
                        let tool = reading.names.remove(&result.id).unwrap_or_else(|| "tool".to_owned());
                        spoken.results.push(ToolSaid { tool, text: result.text });
                    } else {
                        reading.result(&mut spoken.steps, result, index)?;
                    }
                }
            }
        }
        reading.end(&spoken.steps)?;
        Ok(spoken)
    }
}

/// What is known while messages are read one after the other.
#[derive(Default)]
struct Reading {
    /// The tools that were called before the query, by the names of the calls.
    names: HashMap<String, String>,
    /// What the model said without calling anything.
    said: Vec<String>,
    /// Where the last calls stand.
    called_at: usize,
}

impl Reading {
    fn step(
        &mut self,
        steps: &mut Vec<ClientStep>,
        (text, calls): (Option<String>, Vec<ClientCall>),
        index: usize,
    ) -> Result<(), ApiError> {
        self.said.extend(text);
        if calls.is_empty() {
            return Ok(());
        }
        self.end(steps)?;
        self.called_at = index;
        let text = std::mem::take(&mut self.said).join("\n\n");
        steps.push(ClientStep { text, calls, results: Vec::new() });
        Ok(())
    }

    fn result(
        &self,
        steps: &mut Vec<ClientStep>,
        result: ClientResult,
        index: usize,
    ) -> Result<(), ApiError> {
        if steps.is_empty() {
            // The calls are known here.
            steps.push(ClientStep::default());
        }
        let Some(step) = steps.last_mut() else { return Ok(()) };
        let is_twice = step.results.iter().any(|known| known.id == result.id);
        let is_known = step.calls.is_empty() || step.calls.iter().any(|call| call.id == result.id);
        if is_twice || !is_known {
            let message = format!("`messages[{index}].tool_call_id` names none of the calls before it");
            return Err(bad("messages", message, "send one result for each call, behind the calls"));
        }
        step.results.push(result);
        Ok(())
    }

    /// Looks whether every call has its result.
    fn end(&self, steps: &[ClientStep]) -> Result<(), ApiError> {
        let last = steps.last().filter(|step| !step.calls.is_empty());
        if last.is_some_and(|step| step.results.len() < step.calls.len()) {
            let message = format!("a call in `messages[{}].tool_calls` has no result", self.called_at);
            return Err(bad("messages", message, "send a message of role tool for each call"));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Operator,
    User,
    Assistant,
    Tool,
}

impl ChatMessage {
    fn speaker(&self, index: usize) -> Result<Speaker, ApiError> {
        let calls = self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty());
        if self.function_call.is_some() || (calls && self.role != "assistant") {
            let name = if calls { "tool_calls" } else { "function_call" };
            let message = format!("`messages[{index}].{name}` is not supported here");
            return Err(bad("messages", message, "send calls as `tool_calls` of the assistant"));
        }
        match self.role.as_str() {
            "system" | "developer" => Ok(Speaker::Operator),
            "user" => Ok(Speaker::User),
            "assistant" => Ok(Speaker::Assistant),
            "tool" => Ok(Speaker::Tool),
            _ => {
                let message = format!("`messages[{index}].role` is not supported here");
                Err(bad("messages", message, "use system, developer, user, assistant or tool"))
            }
        }
    }

    fn text(self, index: usize) -> Result<String, ApiError> {
        let (text, attachments) = self.content(index)?;
        if attachments.is_empty() {
            return Ok(text);
        }
        let message = format!("`messages[{index}]` has an image or a file, but is not of the user");
        Err(bad("messages", message, "send it in a message of role user"))
    }

    /// The text, with a line for each image and file, and these.
    fn content(self, index: usize) -> Result<(String, Vec<Attachment>), ApiError> {
        match self.content {
            Some(Content::Text(text)) => Ok((text, Vec::new())),
            Some(Content::Parts(parts)) => joined(parts, index),
            None => Err(bad("messages", format!("`messages[{index}].content` is missing"), "give it text")),
        }
    }

    /// What the assistant said, and what it called.
    fn said(mut self, index: usize) -> Result<(Option<String>, Vec<ClientCall>), ApiError> {
        let calls = self.tool_calls.take().unwrap_or_default();
        let text = match (&self.content, calls.is_empty()) {
            (None, false) => None,
            _ => Some(self.text(index)?),
        };
        let calls: Option<Vec<ClientCall>> = calls.into_iter().map(CalledTool::call).collect();
        let Some(calls) = calls else {
            let message = format!("`messages[{index}].tool_calls` has a call that is not one of a function");
            return Err(bad("messages", message, "send calls as they were received"));
        };
        Ok((text.filter(|text| !text.trim().is_empty() || calls.is_empty()), calls))
    }

    /// The result of a call.
    fn result(mut self, index: usize) -> Result<ClientResult, ApiError> {
        match self.tool_call_id.take().filter(|id| (1..=LONGEST_ID).contains(&id.len())) {
            Some(id) => Ok(ClientResult { id, text: self.text(index)? }),
            None => {
                let message = format!("`messages[{index}].tool_call_id` is missing, or no name of a call");
                Err(bad("messages", message, "say which call this is the result of"))
            }
        }
    }
}

impl CalledTool {
    fn call(self) -> Option<ClientCall> {
        let Self { id, kind, function } = self;
        let CalledFunction { name, arguments } = function?;
        let is_fit = kind.is_none_or(|kind| kind == "function")
            && (1..=LONGEST_ID).contains(&id.len())
            && may_be_the_clients(&name);
        is_fit.then(|| ClientCall { id, name, arguments: arguments_read(arguments) })
    }
}

/// In bytes; names of calls are short everywhere.
pub(super) const LONGEST_ID: usize = 256;

fn joined(parts: Vec<Part>, index: usize) -> Result<(String, Vec<Attachment>), ApiError> {
    let (mut texts, mut attachments) = (Vec::with_capacity(parts.len()), Vec::new());
    for (at, part) in parts.into_iter().enumerate() {
        let refused = |(what, hint): Refusal| {
            bad("messages", format!("`messages[{index}].content[{at}]` {what}"), hint)
        };
        match part.read().map_err(refused)? {
            Read::Text(text) => texts.push(text),
            Read::Attached(Attached { attachment, line }) => {
                texts.push(line);
                attachments.push(attachment);
            }
        }
    }
    Ok((texts.join("\n"), attachments))
}

/// What a part is.
enum Read {
    Text(String),
    Attached(Attached),
}

impl Part {
    fn read(self) -> Result<Read, Refusal> {
        let Self { kind, text, image_url, file: sent } = self;
        match (kind.as_str(), text, image_url, sent) {
            ("text", Some(text), ..) => Ok(Read::Text(text)),
            ("image_url", _, Some(ChatImage { url }), _) => image(&url).map(Read::Attached),
            ("file", _, _, Some(ChatFile { file_data: Some(data), filename })) => {
                file(&data, filename.as_deref()).map(Read::Attached)
            }
            ("file", ..) => {
                Err(("is a file without `file_data`", "send the file itself: none are stored here"))
            }
            ("input_audio", ..) => {
                Err(("is audio, which is not supported here", "send text, images or files"))
            }
            _ => {
                let hint = "send parts of type text with a `text`, image_url or file";
                Err(("is not a part that is supported here", hint))
            }
        }
    }
}
