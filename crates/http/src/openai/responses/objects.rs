//! Responses, conversations and their items, as clients get them.

use std::collections::BTreeMap;

use confidant_engine::turn::{ClientCall, ListedItem, ListedTurn, ListedWhat, Place, TokenUsage, TurnState};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::request::Echo;
use crate::openai::Confidant;
use crate::openai::ids::{ItemId, ResponseId};
use crate::openai::tools::arguments_text;

/// A response.
#[derive(Serialize, ToSchema)]
#[schema(as = Response)]
pub(in crate::openai) struct ResponseObject {
    id: String,
    /// `response`.
    object: &'static str,
    /// Seconds since 1970.
    created_at: i64,
    /// Seconds since 1970, if it is completed.
    completed_at: Option<i64>,
    /// `in_progress`, `completed`, `failed` or `cancelled`.
    status: &'static str,
    /// Always `false`.
    background: bool,
    error: Option<FailureObject>,
    #[schema(value_type = Option<Object>)]
    incomplete_details: Option<()>,
    /// As they were sent. Old responses and long instructions have none.
    instructions: Option<String>,
    max_output_tokens: Option<u32>,
    /// The model that answers here, whatever the request named.
    model: String,
    output: Vec<ItemObject>,
    parallel_tool_calls: bool,
    previous_response_id: Option<String>,
    /// The conversation that the request named.
    conversation: Option<ConversationOf>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    #[schema(value_type = Object)]
    text: Value,
    #[schema(value_type = Value)]
    tool_choice: Value,
    #[schema(value_type = Vec<Object>)]
    tools: Vec<Value>,
    /// `disabled`: the configuration decides what of a long conversation is shown to the model.
    truncation: &'static str,
    usage: Option<UsageObject>,
    user: Option<String>,
    /// As it was sent; kept with the response.
    metadata: BTreeMap<String, String>,
    /// How the answer was made, or the tool call that somebody must approve first.
    #[serde(skip_serializing_if = "Option::is_none")]
    confidant: Option<Confidant>,
}

/// A conversation, by its name.
#[derive(Serialize, ToSchema)]
#[schema(as = ConversationOfResponse)]
struct ConversationOf {
    id: String,
}

/// Why a response failed.
#[derive(Serialize, ToSchema)]
#[schema(as = ResponseFailure)]
pub(in crate::openai) struct FailureObject {
    /// `server_error` or `rate_limit_exceeded`.
    pub(in crate::openai) code: &'static str,
    pub(in crate::openai) message: String,
}

/// Tokens that were spent; none for an answer from the log.
#[derive(Serialize, ToSchema)]
#[schema(as = ResponseUsage)]
pub(in crate::openai) struct UsageObject {
    input_tokens: u32,
    input_tokens_details: InputTokens,
    output_tokens: u32,
    output_tokens_details: OutputTokens,
    total_tokens: u32,
}

/// Tokens of the input; providers do not say what of them was cached.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = ResponseInputTokens)]
struct InputTokens {
    cached_tokens: u32,
    cache_write_tokens: u32,
}

/// Tokens of the output; providers do not say what of them was reasoning.
#[derive(Default, Serialize, ToSchema)]
#[schema(as = ResponseOutputTokens)]
struct OutputTokens {
    reasoning_tokens: u32,
}

impl UsageObject {
    pub(in crate::openai) fn of(usage: Option<TokenUsage>) -> Self {
        let (input_tokens, output_tokens) =
            usage.map_or((0, 0), |usage| (usage.prompt_tokens, usage.completion_tokens));
        Self {
            input_tokens,
            input_tokens_details: InputTokens::default(),
            output_tokens,
            output_tokens_details: OutputTokens::default(),
            total_tokens: input_tokens.saturating_add(output_tokens),
        }
    }
}

/// An item of a conversation.
#[derive(Clone, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ResponseItem)]
pub(in crate::openai) enum ItemObject {
    Message(MessageObject),
    Call(CallObject),
    Result(ResultObject),
}

/// What somebody said.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ResponseMessage)]
pub(in crate::openai) struct MessageObject {
    id: String,
    /// `message`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// `completed` or `in_progress`.
    status: &'static str,
    /// `user` or `assistant`.
    role: &'static str,
    content: Vec<TextObject>,
}

/// A text.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ResponseText)]
pub(in crate::openai) struct TextObject {
    /// `input_text` or `output_text`.
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
    /// None, with `output_text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    annotations: Option<[(); 0]>,
    /// None, with `output_text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    logprobs: Option<[(); 0]>,
}

/// A call that the client is to make.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ResponseCall)]
pub(in crate::openai) struct CallObject {
    id: String,
    /// `function_call`.
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    /// Send it back with the result.
    call_id: String,
    name: String,
    /// JSON, as the model wrote it.
    pub(in crate::openai) arguments: String,
}

/// What a call gave.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ResponseCallResult)]
pub(in crate::openai) struct ResultObject {
    id: String,
    /// `function_call_output`.
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    call_id: String,
    output: String,
}

impl TextObject {
    pub(in crate::openai) fn of_agent(text: String) -> Self {
        Self { kind: "output_text", text, annotations: Some([]), logprobs: Some([]) }
    }

    fn of_user(text: String) -> Self {
        Self { kind: "input_text", text, annotations: None, logprobs: None }
    }
}

impl ItemObject {
    /// An item that the log has.
    pub(in crate::openai) fn of(tag: &str, mark: &str, item: &ListedItem) -> Self {
        let id = ItemId::of(tag, mark, item).to_string();
        match item.what.clone() {
            ListedWhat::Query(text) => Self::Message(MessageObject {
                id,
                kind: "message",
                status: COMPLETED,
                role: "user",
                content: vec![TextObject::of_user(text)],
            }),
            ListedWhat::Said(text) => Self::said(id, COMPLETED, Some(text)),
            ListedWhat::Call(call) => Self::Call(CallObject::of(id, call)),
            ListedWhat::Result(result) => Self::Result(ResultObject {
                id,
                kind: "function_call_output",
                status: COMPLETED,
                call_id: result.id,
                output: result.text,
            }),
        }
    }

    /// A message of the agent; one without words is only beginning.
    pub(in crate::openai) fn said(id: String, status: &'static str, text: Option<String>) -> Self {
        let content = text.map(TextObject::of_agent).into_iter().collect();
        Self::Message(MessageObject { id, kind: "message", status, role: "assistant", content })
    }

    pub(in crate::openai) fn id(&self) -> &str {
        match self {
            Self::Message(message) => &message.id,
            Self::Call(call) => &call.id,
            Self::Result(result) => &result.id,
        }
    }
}

impl CallObject {
    pub(in crate::openai) fn of(id: String, call: ClientCall) -> Self {
        let ClientCall { id: call_id, name, arguments } = call;
        let arguments = arguments_text(arguments);
        Self { id, kind: "function_call", status: COMPLETED, call_id, name, arguments }
    }
}

pub(in crate::openai) const COMPLETED: &str = "completed";
pub(in crate::openai) const IN_PROGRESS: &str = "in_progress";
pub(in crate::openai) const CANCELLED: &str = "cancelled";
pub(in crate::openai) const FAILED: &str = "failed";

/// What every piece of one response repeats.
#[derive(Clone)]
pub(super) struct About {
    pub(super) id: String,
    pub(super) created_at: i64,
    pub(super) model: String,
    pub(super) echo: Echo,
}

/// How a response stands.
#[derive(Default)]
pub(super) struct Standing {
    pub(super) output: Vec<ItemObject>,
    pub(super) completed_at: Option<i64>,
    pub(super) usage: Option<UsageObject>,
    pub(super) error: Option<FailureObject>,
    pub(super) confidant: Option<Confidant>,
}

impl About {
    pub(super) fn response(&self, status: &'static str, standing: Standing) -> ResponseObject {
        let Self { id, created_at, model, echo } = self.clone();
        let Standing { output, completed_at, usage, error, confidant } = standing;
        ResponseObject {
            id,
            object: "response",
            created_at,
            completed_at,
            status,
            background: false,
            error,
            incomplete_details: None,
            instructions: echo.instructions,
            max_output_tokens: echo.max_output_tokens,
            model,
            output,
            parallel_tool_calls: echo.parallel_tool_calls,
            previous_response_id: echo.previous_response_id,
            conversation: echo.conversation.map(|id| ConversationOf { id }),
            temperature: echo.temperature,
            top_p: echo.top_p,
            text: echo.text,
            tool_choice: echo.tool_choice,
            tools: echo.tools,
            truncation: "disabled",
            usage,
            user: echo.user,
            metadata: echo.metadata,
            confidant,
        }
    }
}

impl ResponseObject {
    /// A response that the log has; nothing if it has no such response.
    pub(super) fn kept(id: &ResponseId, turn: &ListedTurn, model: &str) -> Option<Self> {
        let answer = turn.answer(id.step)?;
        let seconds = |at: confidant_engine::clock::Millis| at.0 / 1000;
        // What a turn is at says nothing of the responses before.
        let state = if answer.is_last { &turn.state } else { &TurnState::Answered };
        let (status, error) = match state {
            TurnState::Answered | TurnState::Handed | TurnState::Asked => (COMPLETED, None),
            TurnState::Running => (IN_PROGRESS, None),
            TurnState::Cancelled => (CANCELLED, None),
            TurnState::Failed(reason) => (FAILED, Some(FailureObject::of_turn(reason))),
        };
        let output = answer.told.iter().map(|item| ItemObject::of(&id.tag, &turn.mark, item)).collect();
        let label = turn.labels.get(&id.step);
        let metadata = label.map(|label| label.values.clone()).unwrap_or_default();
        let about = About {
            id: id.to_string(),
            created_at: seconds(label.map_or(turn.asked_at, |label| label.asked_at)),
            model: turn.model.clone().unwrap_or_else(|| model.to_owned()),
            echo: Echo::of_kept(label.and_then(|label| label.asked_for.as_ref()), metadata),
        };
        let done_at = label.and_then(|label| label.done_at).or(turn.answered_at);
        let completed_at = done_at.map(seconds).filter(|_| status == COMPLETED);
        let usage = label.and_then(|label| label.usage).filter(|_| status == COMPLETED);
        let usage = usage.map(|usage| UsageObject::of(Some(usage)));
        Some(about.response(status, Standing { output, completed_at, usage, error, ..Standing::default() }))
    }

    /// The same, of a turn that was called off a moment ago.
    pub(super) fn cancelled(mut self) -> Self {
        if self.status == IN_PROGRESS {
            self.status = CANCELLED;
        }
        self
    }
}

impl FailureObject {
    fn of_turn(reason: &str) -> Self {
        Self { code: "server_error", message: format!("the turn ended without an answer: {reason}") }
    }
}

/// Items, a page of them.
#[derive(Serialize, ToSchema)]
pub(in crate::openai) struct ItemList {
    /// `list`.
    object: &'static str,
    data: Vec<ItemObject>,
    /// The first item's name; empty if there is none.
    first_id: String,
    /// The last item's name; empty if there is none.
    last_id: String,
    /// Whether there are more.
    has_more: bool,
}

impl ItemList {
    pub(in crate::openai) fn of(data: Vec<ItemObject>, has_more: bool) -> Self {
        let id = |item: Option<&ItemObject>| item.map(ItemObject::id).unwrap_or_default().to_owned();
        let (first_id, last_id) = (id(data.first()), id(data.last()));
        Self { object: "list", data, first_id, last_id, has_more }
    }
}

/// A conversation.
#[derive(Serialize, ToSchema)]
#[schema(as = Conversation)]
pub(in crate::openai) struct ConversationObject {
    id: String,
    /// `conversation`.
    object: &'static str,
    /// Seconds since 1970.
    created_at: i64,
    metadata: BTreeMap<String, String>,
}

impl ConversationObject {
    pub(in crate::openai) fn of(id: String, created_at: i64, metadata: BTreeMap<String, String>) -> Self {
        Self { id, object: "conversation", created_at, metadata }
    }
}

/// Something that is gone.
#[derive(Serialize, ToSchema)]
pub(in crate::openai) struct Deleted {
    id: String,
    /// What it was.
    object: &'static str,
    /// Always `true`.
    deleted: bool,
}

impl Deleted {
    pub(in crate::openai) fn of(id: String, object: &'static str) -> Self {
        Self { id, object, deleted: true }
    }
}

/// Whether an item is the query, which goes only with all of its turn.
pub(in crate::openai) fn is_query(item: &ListedItem) -> bool {
    item.place == Place::QUERY && matches!(item.what, ListedWhat::Query(_))
}
