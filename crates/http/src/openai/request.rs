//! What an OpenAI client asks for, and what of it can be had.

use confidant_display::debug_without_content;
use confidant_engine::model::{AnswerFormat, AnswerSchema, Attachment, PromptMessage, Sampling, ToolSpec};
use confidant_engine::turn::{ClientStep, ToolSaid};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::messages::{ChatMessage, Spoken};
use super::tools::{OfferedTool, ToolChoice, offered};
use crate::error::ApiError;

/// A chat to complete. Parameters that are not listed are ignored, since ignoring them changes nothing.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ChatRequest {
    /// Any name; the configured model answers.
    model: String,
    /// The last one is the user's, which is the query, or the result of a call. Earlier ones are used for this answer only and
    /// not kept.
    messages: Vec<ChatMessage>,
    /// Whose memory to use.
    user: Option<String>,
    /// Answer in chunks.
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    /// 0 to 2.
    temperature: Option<f64>,
    /// 0 to 1.
    top_p: Option<f64>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    /// How many answers to make, 1 to 8; only 1 with `tools`. The first one is remembered.
    #[schema(value_type = Option<u32>)]
    n: Option<Value>,
    /// `text`, `json_object` or `json_schema`, as far as the model can.
    response_format: Option<ResponseFormat>,
    /// Where the answer ends: a text, or up to four.
    stop: Option<Stop>,
    /// The same for the same answer, as far as the model can.
    seed: Option<i64>,
    /// -2 to 2, if the model supports it.
    presence_penalty: Option<f64>,
    /// -2 to 2, if the model supports it.
    frequency_penalty: Option<f64>,
    /// Tools that the client runs itself: functions, up to 128.
    tools: Option<Vec<OfferedTool>>,
    /// Which of them are called.
    tool_choice: Option<ToolChoice>,
    /// Whether several may be called at once.
    parallel_tool_calls: Option<bool>,
    #[schema(ignore)]
    functions: Option<Value>,
    #[schema(ignore)]
    function_call: Option<Value>,
    #[schema(ignore)]
    logprobs: Option<Value>,
    #[schema(ignore)]
    top_logprobs: Option<Value>,
    #[schema(ignore)]
    logit_bias: Option<Value>,
    #[schema(ignore)]
    modalities: Option<Value>,
    #[schema(ignore)]
    audio: Option<Value>,
    #[schema(ignore)]
    prediction: Option<Value>,
    #[schema(ignore)]
    web_search_options: Option<Value>,
}

/// Where an answer ends.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

/// What form the answer has.
#[derive(Deserialize, ToSchema)]
struct ResponseFormat {
    /// `text`, `json_object` or `json_schema`.
    #[serde(rename = "type")]
    kind: String,
    json_schema: Option<JsonSchema>,
}

/// The schema that the answer is to fit.
#[derive(Deserialize, ToSchema)]
pub(super) struct JsonSchema {
    /// Up to 64 letters, digits, dashes and underscores.
    pub(super) name: String,
    pub(super) description: Option<String>,
    /// A JSON Schema.
    #[schema(value_type = Option<Object>)]
    pub(super) schema: Option<Value>,
    pub(super) strict: Option<bool>,
}

/// What a stream has besides the answer.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
pub(super) struct StreamOptions {
    /// A last chunk without choices says what was spent.
    pub(super) include_usage: bool,
}

/// What is wanted, as far as it can be had.
pub(super) struct Wanted {
    pub(super) user: Option<String>,
    pub(super) query: String,
    /// What came with it.
    pub(super) attachments: Vec<Attachment>,
    pub(super) instructions: Option<String>,
    pub(super) brought: Vec<PromptMessage>,
    /// What the client's tools said before the query.
    pub(super) results: Vec<ToolSaid>,
    /// Calls of them since.
    pub(super) steps: Vec<ClientStep>,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) sampling: Sampling,
    /// `None` for a whole answer.
    pub(super) streaming: Option<StreamOptions>,
}

impl ChatRequest {
    /// Checks the request; names the first parameter that cannot be honoured.
    pub(super) fn into_wanted(mut self) -> Result<Wanted, ApiError> {
        if self.model.trim().is_empty() {
            return Err(bad("model", "`model` is empty", "use the name that GET /v1/models gives"));
        }
        self.refuse_what_cannot_be_honoured()?;
        let tools = offered(self.tools.take().unwrap_or_default())?;
        let parallel_tool_calls = self.parallel_tool_calls.filter(|_| !tools.is_empty());
        let choices = self.n.take().map(|n| choices(&n, &tools)).transpose()?.flatten();
        let sampling = Sampling {
            choices,
            tool_choice: self.tool_choice.take().map(|choice| choice.of(&tools)).transpose()?.flatten(),
            parallel_tool_calls,
            stop: self.stop.take().map(Stop::into_texts).transpose()?.unwrap_or_default(),
            format: self.response_format.take().map(ResponseFormat::into_format).transpose()?.flatten(),
            ..self.sampling()?
        };
        let streaming = self.stream.unwrap_or(false).then(|| self.stream_options.unwrap_or_default());
        let spoken = Spoken::of(self.messages)?;
        let Spoken { instructions, brought, results, steps, query, attachments } = spoken;
        let instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
        let user = self.user;
        Ok(Wanted {
            user,
            query,
            attachments,
            instructions,
            brought,
            results,
            steps,
            tools,
            sampling,
            streaming,
        })
    }

    fn refuse_what_cannot_be_honoured(&self) -> Result<(), ApiError> {
        let is_zero = |value: &Value| value.as_f64() == Some(0.0);
        let is_empty = |value: &Value| match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(items) => items.is_empty(),
            _ => false,
        };
        let is_no_choice = |value: &Value| matches!(value.as_str(), Some("none" | "auto"));
        let is_text_only =
            |value: &Value| value.as_array().is_some_and(|kinds| kinds.iter().all(|kind| kind == "text"));
        let never = |_: &Value| false;
        let table: [(&'static str, &Option<Value>, IsDefault<'_>); 9] = [
            ("functions", &self.functions, &is_empty),
            ("function_call", &self.function_call, &is_no_choice),
            ("logprobs", &self.logprobs, &|on| on == &Value::Bool(false)),
            ("top_logprobs", &self.top_logprobs, &is_zero),
            ("logit_bias", &self.logit_bias, &is_empty),
            ("modalities", &self.modalities, &is_text_only),
            ("audio", &self.audio, &never),
            ("prediction", &self.prediction, &never),
            ("web_search_options", &self.web_search_options, &never),
        ];
        for (name, value, is_default) in table {
            if value.as_ref().is_some_and(|value| !is_default(value)) {
                let message = format!("`{name}` with this value is not supported here");
                return Err(bad(name, message, "leave it out"));
            }
        }
        Ok(())
    }

    fn sampling(&self) -> Result<Sampling, ApiError> {
        let within = |value: Option<f64>, most: f64| value.is_none_or(|value| (0.0..=most).contains(&value));
        if !within(self.temperature, 2.0) {
            return Err(bad("temperature", "`temperature` is out of range", "use 0 to 2"));
        }
        if !within(self.top_p, 1.0) {
            return Err(bad("top_p", "`top_p` is out of range", "use 0 to 1"));
        }
        for (name, penalty) in
            [("presence_penalty", self.presence_penalty), ("frequency_penalty", self.frequency_penalty)]
        {
            if penalty.is_some_and(|penalty| !(-2.0..=2.0).contains(&penalty)) {
                return Err(bad(name, format!("`{name}` is out of range"), "use -2 to 2"));
            }
        }
        for (name, value) in
            [("max_tokens", self.max_tokens), ("max_completion_tokens", self.max_completion_tokens)]
        {
            if value == Some(0) {
                return Err(bad(name, format!("`{name}` is 0"), "use at least 1, or leave it out"));
            }
        }
        let max_tokens = self.max_completion_tokens.or(self.max_tokens);
        Ok(Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            max_tokens,
            seed: self.seed,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            ..Sampling::default()
        })
    }
}

/// How many answers are wanted; nothing if it is one.
fn choices(n: &Value, tools: &[ToolSpec]) -> Result<Option<u32>, ApiError> {
    let count = n.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=MOST_CHOICES).contains(n));
    match count {
        Some(1) => Ok(None),
        Some(_) if !tools.is_empty() => {
            let message = "`n` is more than 1, but only one answer can call `tools`";
            Err(bad("n", message, "leave one of the two out"))
        }
        Some(count) => Ok(Some(count)),
        None => Err(bad("n", "`n` is not a number from 1 to 8", "ask for up to 8 answers")),
    }
}

impl Stop {
    fn into_texts(self) -> Result<Vec<String>, ApiError> {
        let texts = match self {
            Self::One(text) => vec![text],
            Self::Several(texts) => texts,
        };
        let fits = |text: &String| (1..=LONGEST_STOP).contains(&text.len());
        if texts.len() > MOST_STOPS || !texts.iter().all(fits) {
            let message =
                format!("`stop` has more than {MOST_STOPS} texts, or one that is empty or too long");
            return Err(bad("stop", message, "send up to 4 texts of up to 256 bytes"));
        }
        Ok(texts)
    }
}

impl ResponseFormat {
    fn into_format(self) -> Result<Option<AnswerFormat>, ApiError> {
        let refused = |message: &'static str, hint| Err(bad("response_format", message, hint));
        match (self.kind.as_str(), self.json_schema) {
            ("text", _) => Ok(None),
            ("json_object", _) => Ok(Some(AnswerFormat::Json)),
            ("json_schema", Some(schema)) => schema.into_format("response_format").map(Some),
            ("json_schema", None) => {
                refused("`response_format.json_schema` is missing", "send a name and a schema in it")
            }
            _ => refused(
                "`response_format.type` is not supported here",
                "use text, json_object or json_schema",
            ),
        }
    }
}

impl JsonSchema {
    /// Checks it; `param` is where it was sent.
    pub(super) fn into_format(self, param: &'static str) -> Result<AnswerFormat, ApiError> {
        let Self { name, description, schema, strict } = self;
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
            let hint = "use up to 64 letters, digits, dashes and underscores";
            return Err(bad(param, format!("the name of the schema in `{param}` is not valid"), hint));
        }
        let schema = schema.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        if !schema.is_object() || schema.to_string().len() > LARGEST_SCHEMA {
            let hint = "send a JSON Schema, an object of up to 64 KiB";
            return Err(bad(param, format!("the schema in `{param}` is not a usable schema"), hint));
        }
        Ok(AnswerFormat::Schema(AnswerSchema { name, description, schema, strict }))
    }
}

const MOST_CHOICES: u32 = 8;
const MOST_STOPS: usize = 4;
const LONGEST_STOP: usize = 256;
/// It is kept with the turn until that is answered.
const LARGEST_SCHEMA: usize = 64 << 10;

/// Whether a value asks for nothing that is not done anyway.
type IsDefault<'a> = &'a dyn Fn(&Value) -> bool;

pub(super) fn bad(
    param: &'static str,
    message: impl Into<std::borrow::Cow<'static, str>>,
    hint: &'static str,
) -> ApiError {
    ApiError::invalid(message, hint).at(param)
}

debug_without_content!(ChatRequest);
