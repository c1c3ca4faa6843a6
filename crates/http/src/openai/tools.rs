//! The client's own tools, as it offers them, and the calls of them as it gets them.

use confidant_engine::model::{ToolSpec, ToolUse};
use confidant_engine::turn::{ClientCall, may_be_the_clients};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::request::bad;
use crate::error::ApiError;

/// A tool that the client runs itself.
#[derive(Deserialize, ToSchema)]
pub(super) struct OfferedTool {
    /// Only `function`.
    #[serde(rename = "type")]
    kind: String,
    function: Option<OfferedFunction>,
}

/// What a model is told of it.
#[derive(Deserialize, ToSchema)]
struct OfferedFunction {
    /// Up to 64 letters, digits, dashes and underscores.
    name: String,
    description: Option<String>,
    /// A JSON Schema.
    #[schema(value_type = Option<Object>)]
    parameters: Option<Value>,
    /// Whether the provider holds the model to it.
    strict: Option<bool>,
}

impl OfferedTool {
    /// A tool as it is offered for responses, where nothing stands around a function.
    pub(super) fn flat(tool: FlatTool) -> Self {
        let FlatTool { kind, name, description, parameters, strict } = tool;
        let function = name.map(|name| OfferedFunction { name, description, parameters, strict });
        Self { kind, function }
    }
}

/// A tool that the client runs itself, as it is offered for responses.
#[derive(Deserialize, ToSchema)]
pub(super) struct FlatTool {
    /// Only `function`.
    #[serde(rename = "type")]
    kind: String,
    /// Up to 64 letters, digits, dashes and underscores.
    name: Option<String>,
    description: Option<String>,
    /// A JSON Schema.
    #[schema(value_type = Option<Object>)]
    parameters: Option<Value>,
    /// Whether the provider holds the model to it.
    strict: Option<bool>,
}

/// Which tools are called, for responses: `auto`, `none`, `required`, or one by its name.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
pub(super) enum FlatChoice {
    Mode(String),
    Named(FlatName),
}

/// One tool, for responses.
#[derive(Deserialize, ToSchema)]
pub(super) struct FlatName {
    /// Only `function`.
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
}

impl From<FlatChoice> for ToolChoice {
    fn from(choice: FlatChoice) -> Self {
        match choice {
            FlatChoice::Mode(mode) => Self::Mode(mode),
            FlatChoice::Named(FlatName { kind, name }) => {
                Self::Named(NamedTool { kind, function: name.map(|name| NamedFunction { name }) })
            }
        }
    }
}

/// Which tools are called: `auto`, `none`, `required`, or one by its name.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
pub(super) enum ToolChoice {
    Mode(String),
    Named(NamedTool),
}

/// One tool.
#[derive(Deserialize, ToSchema)]
pub(super) struct NamedTool {
    /// Only `function`.
    #[serde(rename = "type")]
    kind: String,
    function: Option<NamedFunction>,
}

/// Its name.
#[derive(Deserialize, ToSchema)]
struct NamedFunction {
    name: String,
}

/// Checks what is offered.
pub(super) fn offered(tools: Vec<OfferedTool>) -> Result<Vec<ToolSpec>, ApiError> {
    if tools.len() > MOST_TOOLS {
        return Err(bad("tools", format!("`tools` has more than {MOST_TOOLS}"), "offer fewer"));
    }
    let mut specs: Vec<ToolSpec> = Vec::with_capacity(tools.len());
    let mut size = 0;
    for (at, tool) in tools.into_iter().enumerate() {
        let refused = |what: &str, hint| Err(bad("tools", format!("`tools[{at}]` {what}"), hint));
        let Some(function) = tool.function.filter(|_| tool.kind == "function") else {
            return refused("is not a function", "offer tools of type function, with a `function`");
        };
        let OfferedFunction { name, description, parameters, strict } = function;
        if !may_be_the_clients(&name) || specs.iter().any(|known| known.name == name) {
            let hint = "use up to 64 letters, digits, dashes and underscores, each name once, and not \
                        `capture_concepts`";
            return refused("has a name that it may not have", hint);
        }
        let schema = parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
        let description = description.unwrap_or_default();
        size += schema.to_string().len() + description.len();
        if !schema.is_object() || size > LARGEST_TOOLS {
            return refused(
                "has `parameters` that are no object, or too large",
                "send a JSON Schema; all tools may have 256 KiB",
            );
        }
        specs.push(ToolSpec { name, description, schema, strict });
    }
    Ok(specs)
}

const MOST_TOOLS: usize = 128;
/// They are kept with the turn until that is answered.
const LARGEST_TOOLS: usize = 256 << 10;

impl ToolChoice {
    /// What is to be done with these tools; nothing if the model decides.
    pub(super) fn of(self, tools: &[ToolSpec]) -> Result<Option<ToolUse>, ApiError> {
        let refused = |message: &'static str, hint| Err(bad("tool_choice", message, hint));
        match self {
            Self::Mode(mode) => match mode.as_str() {
                "auto" => Ok(None),
                "none" => Ok(Some(ToolUse::Nothing).filter(|_| !tools.is_empty())),
                "required" if tools.is_empty() => refused(
                    "`tool_choice` is `required`, but there are no `tools`",
                    "offer some, or use auto",
                ),
                "required" => Ok(Some(ToolUse::Any)),
                _ => refused(
                    "`tool_choice` with this value is not supported here",
                    "use auto, none or required",
                ),
            },
            Self::Named(NamedTool { kind, function }) => {
                let name = function.filter(|_| kind == "function").map(|function| function.name);
                match name.filter(|name| tools.iter().any(|tool| tool.name == *name)) {
                    Some(name) => Ok(Some(ToolUse::Named(name))),
                    None => {
                        refused("`tool_choice` names none of the `tools`", "name a function that is offered")
                    }
                }
            }
        }
    }
}

/// A call that the client is to make.
#[derive(Serialize, ToSchema)]
pub(super) struct ToolCallObject {
    /// Send it back with the result.
    id: String,
    /// `function`.
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionCall,
}

/// The function to call.
#[derive(Serialize, ToSchema)]
struct FunctionCall {
    name: String,
    /// JSON, as the model wrote it.
    arguments: String,
}

impl From<ClientCall> for ToolCallObject {
    fn from(call: ClientCall) -> Self {
        let arguments = arguments_text(call.arguments);
        Self { id: call.id, kind: "function", function: FunctionCall { name: call.name, arguments } }
    }
}

/// What a tool is called with, as a client reads it.
pub(super) fn arguments_text(arguments: Value) -> String {
    match arguments {
        Value::String(text) if !text.trim().is_empty() => text,
        Value::String(_) | Value::Null => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// The same, as a client sends it.
pub(super) fn arguments_read(text: String) -> Value {
    serde_json::from_str(&text).ok().filter(Value::is_object).unwrap_or(Value::String(text))
}
