//! Prompts and forms as chat messages, and tool names as providers allow them.

use std::collections::{HashMap, HashSet};

use genai::chat::{
    Binary, ChatMessage, ChatRequest, ChatResponseFormat, ContentPart, JsonSpec, MessageContent, Tool,
    ToolResponse,
};
use serde_json::{Value, json};

use super::FormStyle;
use crate::{Answer, AnswerFormat, Attachment, AttachmentSource, Form, ModelError, Prompt, Role, Sampling};

/// Tool names as providers allow them (`[A-Za-z0-9_-]`, at most 64), and the way back.
pub(super) struct Names {
    wire: HashMap<String, String>,
    ours: HashMap<String, String>,
}

impl Names {
    /// Of what is offered, and of what was called before and is not offered any more.
    pub(super) fn of(prompt: &Prompt) -> Self {
        let mut names = Self { wire: HashMap::new(), ours: HashMap::new() };
        let mut taken = HashSet::new();
        let called = prompt.steps.iter().flat_map(|step| &step.calls).map(|call| &call.name);
        for name in prompt.tools.iter().map(|tool| &tool.name).chain(called) {
            if names.wire.contains_key(name) {
                continue;
            }
            let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
            let plain: String = name.chars().map(allowed).take(LONGEST_NAME).collect();
            let plain = if plain.is_empty() { "_".to_owned() } else { plain };
            let wire = (0..)
                .map(|n| match n {
                    0 => plain.clone(),
                    n => format!("{}_{n}", &plain[..plain.len().min(LONGEST_NAME - 8)]),
                })
                .find(|wire| !taken.contains(wire))
                .unwrap_or_default();
            taken.insert(wire.clone());
            names.ours.insert(wire.clone(), name.clone());
            names.wire.insert(name.clone(), wire);
        }
        names
    }

    /// Our name for what a model called; its own word if there is none, which no tool has.
    pub(super) fn ours(&self, wire: &str) -> String {
        self.ours.get(wire).cloned().unwrap_or_else(|| wire.to_owned())
    }

    pub(super) fn wire<'a>(&'a self, ours: &'a str) -> &'a str {
        self.wire.get(ours).map_or(ours, String::as_str)
    }
}

const LONGEST_NAME: usize = 64;

/// The chat messages of a prompt. Quoted blocks speak as the user, never as the system. Neighbours of the same role
/// become one message, because the templates of many local models refuse two user messages in a row.
pub(super) fn flatten(prompt: &Prompt, names: &Names) -> ChatRequest {
    let blocks = prompt.blocks.iter().map(|block| (Role::Human, block.render(&prompt.fence)));
    let history = prompt.history.iter().map(|message| (message.role, message.text.clone()));
    let query = std::iter::once((Role::Human, prompt.query.clone()));
    let mut merged: Vec<(Role, String)> = Vec::new();
    for (role, text) in blocks.chain(history).chain(query) {
        if text.trim().is_empty() {
            continue;
        }
        match merged.last_mut() {
            Some((last, before)) if *last == role => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            _ => merged.push((role, text)),
        }
    }
    let messages = merged.into_iter().map(|(role, text)| match role {
        Role::Human => ChatMessage::user(text),
        Role::Ai => ChatMessage::assistant(text),
    });
    let mut messages: Vec<ChatMessage> = messages.collect();
    // The query is in the last of them.
    if let Some(asked) = messages.last_mut() {
        prompt.attachments.iter().for_each(|attachment| asked.content.push(part(attachment)));
    }
    for step in &prompt.steps {
        let calls = step.calls.iter().map(|call| genai::chat::ToolCall {
            call_id: call.id.clone(),
            fn_name: names.wire(&call.name).to_owned(),
            fn_arguments: call.arguments.clone(),
            thought_signatures: Some(call.signatures.clone()).filter(|signatures| !signatures.is_empty()),
        });
        let calls: Vec<_> = calls.collect();
        let signatures = calls.first().and_then(|call| call.thought_signatures.clone()).unwrap_or_default();
        let mut parts: Vec<ContentPart> = signatures.into_iter().map(ContentPart::ThoughtSignature).collect();
        if !step.text.trim().is_empty() {
            parts.push(ContentPart::Text(step.text.clone()));
        }
        let results: Vec<ToolResponse> = calls
            .iter()
            .zip(&step.results)
            .map(|(call, result)| ToolResponse::from_tool_call(call, result.clone()))
            .collect();
        parts.extend(calls.into_iter().map(ContentPart::ToolCall));
        messages.push(ChatMessage::assistant(MessageContent::from_parts(parts)));
        messages.extend(results.into_iter().map(ChatMessage::from));
    }
    let tools = prompt.tools.iter().map(|tool| {
        Tool::new(names.wire(&tool.name).to_owned())
            .with_description(tool.description.clone())
            .with_schema(tool.schema.clone())
    });
    let strict = prompt.tools.iter().map(|tool| tool.strict);
    let tools: Vec<Tool> = tools.zip(strict).map(|(tool, strict)| Tool { strict, ..tool }).collect();
    let request = ChatRequest::new(messages);
    let request = if tools.is_empty() { request } else { request.with_tools(tools) };
    if prompt.system.trim().is_empty() { request } else { request.with_system(prompt.system.clone()) }
}

fn part(attachment: &Attachment) -> ContentPart {
    let Attachment { media_type, name, source } = attachment.clone();
    // `OpenAI` wants one for every file.
    let name = name.or_else(|| (!attachment.is_image()).then(|| "file".to_owned()));
    ContentPart::Binary(match source {
        AttachmentSource::Data(data) => Binary::from_base64(media_type, data, name),
        AttachmentSource::Address(url) => Binary::from_url(media_type, url, name),
    })
}

/// A form as a request: the instructions as the system, the material as the user.
pub(super) fn form_request(form: &Form, style: FormStyle) -> ChatRequest {
    let request = ChatRequest::from_user(form.material.clone()).with_system(form.system.clone());
    match style {
        FormStyle::Function => request.append_tool(
            Tool::new(form.name.to_owned())
                .with_description(form.description)
                .with_schema(form.schema.clone()),
        ),
        FormStyle::JsonSchema => request,
    }
}

/// What `OpenAI`'s form has and `genai` does not pass on as it is: a schema, for one, is to stay as the client wrote it.
pub(super) fn openai_options(model: &str, sampling: &Sampling) -> Value {
    let mut options = json!({ "model": model });
    if let Some(seed) = sampling.seed {
        options["seed"] = json!(seed);
    }
    if let Some(parallel) = sampling.parallel_tool_calls {
        options["parallel_tool_calls"] = json!(parallel);
    }
    for (name, penalty) in
        [("presence_penalty", sampling.presence_penalty), ("frequency_penalty", sampling.frequency_penalty)]
    {
        if let Some(penalty) = penalty {
            options[name] = json!(penalty);
        }
    }
    match &sampling.format {
        None => {}
        Some(AnswerFormat::Json) => options["response_format"] = json!({ "type": "json_object" }),
        Some(AnswerFormat::Schema(schema)) => {
            options["response_format"] = json!({ "type": "json_schema", "json_schema": schema });
        }
    }
    options
}

/// The form of an answer, for other providers.
pub(super) fn answer_format(format: &AnswerFormat) -> ChatResponseFormat {
    match format {
        AnswerFormat::Json => ChatResponseFormat::JsonMode,
        AnswerFormat::Schema(schema) => JsonSpec::new(schema.name.clone(), schema.schema.clone()).into(),
    }
}

/// The object that a model filled in, wherever it put it: as a call, or as text with or without a code fence.
pub(super) fn filled(answer: Answer) -> Result<Value, ModelError> {
    if let Some(call) = answer.calls.into_iter().next()
        && call.arguments.is_object()
    {
        return Ok(call.arguments);
    }
    let text = answer.text.trim();
    let from = text.find('{').ok_or(ModelError::Malformed)?;
    // Whatever stands behind the object is talk.
    let mut values = serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>();
    match values.next() {
        Some(Ok(value)) if value.is_object() => Ok(value),
        _ => Err(ModelError::Malformed),
    }
}
