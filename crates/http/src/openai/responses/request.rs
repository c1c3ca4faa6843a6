//! What a client asks of `/v1/responses`, and what of that can be had.

use std::collections::BTreeMap;

use confidant_display::debug_without_content;
use confidant_engine::model::{AnswerFormat, Sampling, ToolSpec, ToolUse};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::input::{Input, Spoken};
use crate::error::ApiError;
use crate::openai::request::{JsonSchema, bad};
use crate::openai::tools::{FlatChoice, FlatTool, OfferedTool, ToolChoice, offered};

/// A response to make. Parameters that are not listed are ignored, since ignoring them changes nothing.
#[derive(Deserialize, ToSchema)]
#[schema(as = ResponseRequest)]
pub(crate) struct ResponseRequest {
    /// Any name; the configured model answers.
    model: Option<String>,
    /// A text, or items. The last one is the user's, which is the query, or the result of a call. Earlier ones are kept with the
    /// conversation unless it has them.
    input: Input,
    /// For this response only: the next one needs its own.
    instructions: Option<String>,
    /// The response that this one follows.
    previous_response_id: Option<String>,
    /// The conversation that this belongs to.
    conversation: Option<InConversation>,
    /// `false`: nothing is kept.
    store: Option<bool>,
    /// Whose memory to use, where no conversation is named.
    user: Option<String>,
    /// Answer in events.
    stream: Option<bool>,
    /// 0 to 2.
    temperature: Option<f64>,
    /// 0 to 1.
    top_p: Option<f64>,
    max_output_tokens: Option<u32>,
    /// What form the answer has.
    text: Option<TextForm>,
    /// Tools that the client runs itself: functions, up to 128.
    tools: Option<Vec<FlatTool>>,
    /// Which of them are called.
    tool_choice: Option<FlatChoice>,
    /// Whether several may be called at once.
    parallel_tool_calls: Option<bool>,
    /// Up to 16 names with values, kept with the response.
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    metadata: Option<Value>,
    #[schema(ignore)]
    background: Option<Value>,
    #[schema(ignore)]
    include: Option<Vec<String>>,
    #[schema(ignore)]
    prompt: Option<Value>,
    #[schema(ignore)]
    top_logprobs: Option<Value>,
}

/// A conversation, by its name.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
enum InConversation {
    Name(String),
    Object(ConversationName),
}

/// A conversation.
#[derive(Deserialize, ToSchema)]
struct ConversationName {
    id: String,
}

/// What form the answer has.
#[derive(Deserialize, ToSchema)]
struct TextForm {
    format: Option<TextFormat>,
}

/// `text`, `json_object` or `json_schema`, as far as the model can.
#[derive(Deserialize, ToSchema)]
struct TextFormat {
    #[serde(rename = "type")]
    kind: String,
    /// With `json_schema`: up to 64 letters, digits, dashes and underscores.
    name: Option<String>,
    description: Option<String>,
    /// With `json_schema`: a JSON Schema.
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
    strict: Option<bool>,
}

/// What is wanted, as far as it can be had.
pub(super) struct Wanted {
    pub(super) spoken: Spoken,
    pub(super) instructions: Option<String>,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) sampling: Sampling,
    pub(super) user: Option<String>,
    pub(super) previous: Option<String>,
    pub(super) conversation: Option<String>,
    pub(super) is_stored: bool,
    pub(super) is_streamed: bool,
    pub(super) echo: Echo,
}

/// What a response says of what was asked for. Kept with it in this form.
#[derive(Clone, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Echo {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    pub(super) parallel_tool_calls: bool,
    pub(super) text: Value,
    pub(super) tool_choice: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<String>,
    /// Kept beside it.
    #[serde(skip)]
    pub(super) metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) previous_response_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<String>,
}

impl Echo {
    /// What of it is kept with the response. Long instructions, tools and schemas are not.
    pub(super) fn to_kept(&self) -> Option<Value> {
        let whole = serde_json::to_value(self).ok()?;
        if whole.to_string().len() <= LARGEST_KEPT {
            return Some(whole);
        }
        let Self { text, tool_choice, .. } = Self::default();
        let small = Self { instructions: None, tools: Vec::new(), text, tool_choice, ..self.clone() };
        serde_json::to_value(small).ok()
    }

    /// The same, from what was kept.
    pub(super) fn of_kept(kept: Option<&Value>, metadata: BTreeMap<String, String>) -> Self {
        let known = kept.and_then(|kept| Self::deserialize(kept).ok()).unwrap_or_default();
        Self { metadata, ..known }
    }
}

/// Of what is kept with each of the newest responses of a conversation, in bytes.
const LARGEST_KEPT: usize = 16 << 10;

impl Default for Echo {
    fn default() -> Self {
        Self {
            instructions: None,
            max_output_tokens: None,
            temperature: None,
            top_p: None,
            parallel_tool_calls: true,
            text: json!({ "format": { "type": "text" } }),
            tool_choice: json!("auto"),
            tools: Vec::new(),
            user: None,
            metadata: BTreeMap::new(),
            previous_response_id: None,
            conversation: None,
        }
    }
}

impl ResponseRequest {
    /// Checks the request; names the first parameter that cannot be honoured.
    pub(super) fn into_wanted(mut self) -> Result<Wanted, ApiError> {
        self.refuse_what_cannot_be_honoured()?;
        let tools = self.tools.take().unwrap_or_default().into_iter().map(OfferedTool::flat).collect();
        let tools = offered(tools)?;
        let choice = self.tool_choice.take().map(|choice| ToolChoice::from(choice).of(&tools));
        let format = self.text.take().and_then(|text| text.format).map(TextFormat::into_format);
        let sampling = Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            max_tokens: self.max_output_tokens,
            tool_choice: choice.transpose()?.flatten(),
            format: format.transpose()?.flatten(),
            parallel_tool_calls: self.parallel_tool_calls.filter(|_| !tools.is_empty()),
            ..Sampling::default()
        };
        let metadata = checked_metadata(self.metadata.take())?;
        let conversation = self.conversation.take().map(InConversation::into_id);
        let echo = Echo {
            instructions: self.instructions.clone(),
            max_output_tokens: self.max_output_tokens,
            temperature: self.temperature,
            top_p: self.top_p,
            parallel_tool_calls: self.parallel_tool_calls.unwrap_or(true),
            text: json!({ "format": shown_format(sampling.format.as_ref()) }),
            tool_choice: shown_choice(sampling.tool_choice.as_ref()),
            tools: tools.iter().map(shown_tool).collect(),
            user: self.user.clone(),
            metadata,
            previous_response_id: self.previous_response_id.clone(),
            conversation: conversation.clone(),
        };
        let spoken = Spoken::of(self.input)?;
        let instructions = self.instructions.into_iter().chain(spoken.instructions.iter().cloned());
        let instructions: Vec<String> = instructions.filter(|text| !text.trim().is_empty()).collect();
        Ok(Wanted {
            spoken,
            instructions: (!instructions.is_empty()).then(|| instructions.join("\n\n")),
            tools,
            sampling,
            user: self.user,
            previous: self.previous_response_id,
            conversation,
            is_stored: self.store.unwrap_or(true),
            is_streamed: self.stream.unwrap_or(false),
            echo,
        })
    }

    fn refuse_what_cannot_be_honoured(&self) -> Result<(), ApiError> {
        if self.model.as_ref().is_some_and(|model| model.trim().is_empty()) {
            return Err(bad("model", "`model` is empty", "use the name that GET /v1/models gives"));
        }
        if self.conversation.is_some() && self.previous_response_id.is_some() {
            let message = "`conversation` and `previous_response_id` are both there";
            return Err(bad("previous_response_id", message, "send one of them"));
        }
        let within = |value: Option<f64>, most: f64| value.is_none_or(|value| (0.0..=most).contains(&value));
        if !within(self.temperature, 2.0) {
            return Err(bad("temperature", "`temperature` is out of range", "use 0 to 2"));
        }
        if !within(self.top_p, 1.0) {
            return Err(bad("top_p", "`top_p` is out of range", "use 0 to 1"));
        }
        if self.max_output_tokens == Some(0) {
            let hint = "use at least 1, or leave it out";
            return Err(bad("max_output_tokens", "`max_output_tokens` is 0", hint));
        }
        let wants_logprobs =
            self.include.iter().flatten().any(|include| include == "message.output_text.logprobs");
        let is_off = |value: &Value| value == &Value::Bool(false);
        let is_zero = |value: &Value| value.as_f64() == Some(0.0);
        let refused = [
            ("background", self.background.as_ref().is_some_and(|value| !is_off(value))),
            ("include", wants_logprobs),
            ("prompt", self.prompt.is_some()),
            ("top_logprobs", self.top_logprobs.as_ref().is_some_and(|value| !is_zero(value))),
        ];
        match refused.into_iter().find(|(_, is_refused)| *is_refused) {
            Some(("background", _)) => {
                let message =
                    "`background` is not supported here: a response is made while its request is open";
                Err(bad("background", message, "leave it out; with `stream`, the answer begins at once"))
            }
            Some((name, _)) => {
                let message = format!("`{name}` with this value is not supported here");
                Err(bad(name, message, "leave it out"))
            }
            None => Ok(()),
        }
    }
}

/// Names and values of an application's own, if they are as `OpenAI` takes them. Read here, since an error may not quote a name.
pub(in crate::openai) fn checked_metadata(
    metadata: Option<Value>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let fits = |(name, value): (&String, &String)| {
        name.chars().count() <= LONGEST_NAME && value.chars().count() <= LONGEST_VALUE
    };
    let metadata = metadata.map_or(Ok(BTreeMap::new()), serde_json::from_value::<BTreeMap<String, String>>);
    match metadata {
        Ok(metadata) if metadata.len() <= MOST_LABELS && metadata.iter().all(fits) => Ok(metadata),
        _ => {
            let message = "`metadata` is not made of texts, or has too many, or one that is too long";
            let hint = "send up to 16 names of 64 characters, with values of 512";
            Err(bad("metadata", message, hint))
        }
    }
}

const MOST_LABELS: usize = 16;
const LONGEST_NAME: usize = 64;
const LONGEST_VALUE: usize = 512;

impl InConversation {
    fn into_id(self) -> String {
        match self {
            Self::Name(id) | Self::Object(ConversationName { id }) => id,
        }
    }
}

impl TextFormat {
    fn into_format(self) -> Result<Option<AnswerFormat>, ApiError> {
        let Self { kind, name, description, schema, strict } = self;
        match (kind.as_str(), name) {
            ("text", _) => Ok(None),
            ("json_object", _) => Ok(Some(AnswerFormat::Json)),
            ("json_schema", Some(name)) => {
                JsonSchema { name, description, schema, strict }.into_format(FORMAT).map(Some)
            }
            ("json_schema", None) => {
                Err(bad(FORMAT, "`text.format.name` is missing", "give the schema a name"))
            }
            _ => {
                let hint = "use text, json_object or json_schema";
                Err(bad(FORMAT, "`text.format.type` is not supported here", hint))
            }
        }
    }
}

/// Where the form of the answer is said.
pub(super) const FORMAT: &str = "text.format";

fn shown_format(format: Option<&AnswerFormat>) -> Value {
    match format {
        None => json!({ "type": "text" }),
        Some(AnswerFormat::Json) => json!({ "type": "json_object" }),
        Some(AnswerFormat::Schema(schema)) => {
            let (name, inner) = (&schema.name, &schema.schema);
            let mut shown = json!({ "type": "json_schema", "name": name, "schema": inner });
            if let Some(description) = &schema.description {
                shown["description"] = json!(description);
            }
            if let Some(strict) = schema.strict {
                shown["strict"] = json!(strict);
            }
            shown
        }
    }
}

fn shown_choice(choice: Option<&ToolUse>) -> Value {
    match choice {
        None => json!("auto"),
        Some(ToolUse::Nothing) => json!("none"),
        Some(ToolUse::Any) => json!("required"),
        Some(ToolUse::Named(name)) => json!({ "type": "function", "name": name }),
    }
}

fn shown_tool(tool: &ToolSpec) -> Value {
    let ToolSpec { name, description, schema, strict } = tool;
    json!({ "type": "function", "name": name, "description": description, "parameters": schema, "strict": strict })
}

debug_without_content!(ResponseRequest);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back_and_long_texts_are_left_out() {
        let tools = vec![json!({ "type": "function", "name": "get" })];
        let instructions = Some("be brief".to_owned());
        let (temperature, conversation) = (Some(0.5), Some("conv_1".to_owned()));
        let echo = Echo { instructions, temperature, tools, conversation, ..Echo::default() };
        let metadata = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
        let back = |echo: &Echo| Echo::of_kept(echo.to_kept().as_ref(), metadata.clone());
        let same = back(&echo);
        assert_eq!((same.instructions.as_deref(), same.temperature), (Some("be brief"), Some(0.5)));
        assert_eq!((&same.tools, &same.metadata), (&echo.tools, &metadata));
        assert_eq!(same.conversation, echo.conversation);
        let long = Echo { instructions: Some("x".repeat(LARGEST_KEPT)), ..echo };
        let kept = long.to_kept().unwrap();
        assert!(kept.to_string().len() < 200, "{kept}");
        let short = back(&long);
        assert_eq!((short.instructions, short.tools.len(), short.temperature), (None, 0, Some(0.5)));
        let nothing = Echo::of_kept(None, BTreeMap::new());
        assert_eq!((nothing.tool_choice, nothing.parallel_tool_calls), (json!("auto"), true));
    }
}
