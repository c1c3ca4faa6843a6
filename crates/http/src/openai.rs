//! A drop-in for OpenAI clients, with memory.
//!
//! Memory is kept per `user`, or per session named in `X-Confidant-Session`, which goes first; a user's own token means
//! that user. Without any of them, or with `X-Confidant-Memory: off`, a turn goes without memory. The client sends only what
//! is new: its last message is the query, the ones before it are used for this answer and not kept. Calls of its own tools end
//! the answer and not the turn, which goes on with their results. What cannot be honoured is refused by name rather than ignored,
//! unless ignoring it changes nothing. `responses.rs` and `conversations.rs` have the same with names to come back to.

mod attached;
mod conversations;
mod embeddings;
mod ids;
mod messages;
mod request;
mod responses;
mod stream;
mod tools;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use confidant_engine::access::Permission;
use confidant_engine::model::{Attachment, Sampling, ToolSpec};
use confidant_engine::turn::{Ending, MemoryState, TokenUsage};
use confidant_engine::{Error, Session, Turn, TurnRequest, UserId};
use serde::Serialize;
use utoipa::ToSchema;

use super::answers::Running;
use super::app::App;
use super::auth::Caller;
use super::body::{Json, reply};
use super::error::ApiError;
use super::openapi::OpenAiFailures;
use super::wire::{Approval, Metadata};
use request::{ChatRequest, Wanted};
use tools::ToolCallObject;

pub(super) use conversations::{
    __path_create_conversation, __path_create_items, __path_delete_conversation, __path_delete_item,
    __path_list_items, __path_retrieve_conversation, __path_retrieve_item, __path_update_conversation,
    create_conversation, create_items, delete_conversation, delete_item, list_items, retrieve_conversation,
    retrieve_item, update_conversation,
};
#[cfg(feature = "fuzzing")]
pub(super) use embeddings::wanted as wanted_embeddings;
pub(super) use embeddings::{__path_embed, embed};
#[cfg(feature = "fuzzing")]
pub(super) use responses::wanted as wanted_response;
pub(super) use responses::{
    __path_cancel_response, __path_create_response, __path_delete_response, __path_input_items,
    __path_retrieve_response, cancel_response, create_response, delete_response, input_items,
    retrieve_response,
};

/// What a body asks for: the query, and how many messages came before it.
#[cfg(feature = "fuzzing")]
pub(super) fn wanted(bytes: &[u8]) -> Result<(String, usize), ApiError> {
    let wanted = super::body::parse::<ChatRequest>(bytes)?.into_wanted()?;
    Ok((wanted.query, wanted.brought.len()))
}

/// Complete a chat
///
/// Like OpenAI's, streamed or whole. `X-Confidant-Memory` in the answer (unless it is streamed) and `confidant` in its body
/// (in a stream: in the last chunk with a choice) say what memory did. If a tool call needs approval, the answer's text asks
/// for it, and `confidant` has the details; the next message decides: `approve CODE` or `deny CODE`. Errors
/// are in OpenAI's format. A turn continues if the client leaves, unless it is without memory. If the model calls one of the
/// client's `tools`, the answer has `tool_calls`; the turn continues when their results are sent.
#[utoipa::path(
    post, path = "/v1/chat/completions", operation_id = "create_chat_completion", tag = "openai", security(("bearer" = [])),
    params(
        ("X-Confidant-Session" = Option<String>, Header, description = "The session to remember in; takes precedence over `user`"),
        ("X-Confidant-Memory" = Option<String>, Header, description = "`off`: this request is answered without memory, whoever sends it; nothing is recalled or kept"),
        ("Idempotency-Key" = Option<String>, Header, description = "The turn's request_id: a retry gets the recorded answer"),
    ),
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The answer", content((ChatCompletion = "application/json"), (String = "text/event-stream"))),
        OpenAiFailures
    )
)]
pub(super) async fn complete(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Json(body): Json<ChatRequest>,
) -> Result<Response, ApiError> {
    let wanted = body.into_wanted()?;
    can_be_had(&app, &wanted.sampling, &wanted.tools, "response_format")?;
    can_be_taken(&app, &wanted.attachments, "messages")?;
    let session = memory(&caller, &headers, wanted.user.as_deref()).await?;
    let Wanted {
        query, attachments, instructions, brought, results, steps, tools, sampling, streaming, ..
    } = wanted;
    let request_id = header_text(&headers, IDEMPOTENCY_KEY)?.map(str::to_owned);
    let request = TurnRequest {
        request_id,
        query,
        attachments,
        instructions,
        brought,
        results,
        steps,
        tools,
        sampling,
        ..TurnRequest::default()
    };
    let turn = match &session {
        Some(session) => session.turn(request),
        None => app.engine.turn_without_memory(Some(caller.tenant().clone()), request),
    };
    let about = About::of(&app, &turn);
    if let Some(streaming) = streaming {
        return stream::respond(app, turn, about, streaming).await;
    }
    let ending = Running::from(turn).end(&app).await?;
    let memory = memory_header(&ending);
    let mut response = reply(&about.completion(ending))?;
    response.headers_mut().insert(MEMORY, memory);
    Ok(response)
}

/// Refuses what the model that answers here cannot do; `format` is where the form of the answer is said.
fn can_be_had(
    app: &App,
    sampling: &Sampling,
    tools: &[ToolSpec],
    format: &'static str,
) -> Result<(), ApiError> {
    if let Some(name) = app.engine.refuses(sampling) {
        let name = if name == "response_format" { format } else { name };
        let message = format!("the model that answers here does not support `{name}`");
        return Err(ApiError::invalid(message, "leave it out").at(name));
    }
    if !tools.is_empty() && !app.engine.calls_tools() {
        let hint = "leave `tools` out, or set [model] to one that calls functions";
        return Err(ApiError::invalid("the model that answers here calls no tools", hint).at("tools"));
    }
    Ok(())
}

/// Refuses an image or a file that the model that answers here does not take; `param` is where it was sent.
fn can_be_taken(app: &App, attachments: &[Attachment], param: &'static str) -> Result<(), ApiError> {
    let refused = attachments.iter().find(|attachment| !app.engine.takes(attachment));
    let Some(refused) = refused else { return Ok(()) };
    let what = if refused.is_image() { "such an image" } else { "such a file" };
    let (at, hint) = match refused.is_elsewhere() {
        true => (" at an address", "send it as a data URL"),
        false => ("", "leave it out, or set [model] to one that takes it"),
    };
    let message = format!("the model that answers here does not take {what}{at}");
    Err(ApiError::invalid(message, hint).at(param))
}

/// Where this is remembered: the named session, the named user's own memory, or nowhere.
async fn memory(
    caller: &Caller,
    headers: &HeaderMap,
    user: Option<&str>,
) -> Result<Option<Session>, ApiError> {
    if is_memory_off(headers)? {
        return Ok(None);
    }
    let scope = if let Some(id) = header_text(headers, SESSION)? {
        caller.scope(id).map_err(|error| error.at("X-Confidant-Session"))?
    } else if let Some(user) = user {
        let user = UserId::new(user).map_err(|error| ApiError::from(Error::from(error)).at("user"))?;
        caller.person_scope(CHANNEL, user)?
    } else if let Some(own) = caller.own_user() {
        caller.person_scope(CHANNEL, own.clone())?
    } else {
        return Ok(None);
    };
    caller.session(Permission::Talk, scope).await.map(Some)
}

/// Whether the client wants to be answered as if nobody knew them.
fn is_memory_off(headers: &HeaderMap) -> Result<bool, ApiError> {
    let value = header_text(headers, MEMORY)?.unwrap_or("on").trim();
    // Taken for a misspelling of the other, either would be remembered or forgotten against somebody's will.
    match value {
        _ if value.eq_ignore_ascii_case("off") => Ok(true),
        _ if value.eq_ignore_ascii_case("on") => Ok(false),
        _ => Err(ApiError::invalid(
            "the header X-Confidant-Memory is neither `on` nor `off`",
            "use `off`, or leave it out",
        )
        .at("X-Confidant-Memory")),
    }
}

fn header_text(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, ApiError> {
    let Some(value) = headers.get(&name) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes());
    text.map(Some)
        .map_err(|_| ApiError::invalid(format!("the header {name} is not UTF-8"), "encode it as UTF-8"))
}

const SESSION: HeaderName = HeaderName::from_static("x-confidant-session");
const MEMORY: HeaderName = HeaderName::from_static("x-confidant-memory");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The channel of memories that are kept per `user`.
const CHANNEL: &str = "openai";

fn memory_header(ending: &Ending) -> HeaderValue {
    let memory = match ending {
        Ending::Answer(answer) => answer.metadata.memory,
        // What waits, waits in the log.
        Ending::Approval(_) => MemoryState::Kept,
    };
    HeaderValue::from_static(match memory {
        MemoryState::Kept => "kept",
        MemoryState::Off => "off",
        MemoryState::Unavailable => "unavailable",
        MemoryState::Forgotten => "forgotten",
    })
}

/// What every piece of one answer repeats.
#[derive(Clone, Debug)]
struct About {
    id: String,
    created: i64,
    model: String,
}

impl About {
    fn of(app: &App, turn: &Turn) -> Self {
        let id = format!("chatcmpl-{}", turn.request_id());
        Self { id, created: app.now(), model: app.engine.model_name().to_owned() }
    }

    fn completion(self, ending: Ending) -> ChatCompletion {
        let Reply { content, calls, others, usage, confidant } = ending.into();
        let content = Some(content).filter(|content| calls.is_empty() || !content.is_empty());
        let others = others.into_iter().map(|text| (Some(text), Vec::new()));
        let choices = std::iter::once((content, calls)).chain(others);
        let choices = (0..).zip(choices).map(|(index, (content, calls))| Choice::of(index, content, calls));
        ChatCompletion {
            id: self.id,
            object: "chat.completion",
            created: self.created,
            model: self.model,
            choices: choices.collect(),
            usage,
            confidant,
        }
    }
}

/// What a client gets to see of a turn's end.
struct Reply {
    content: String,
    /// What the client is to call before there is an answer.
    calls: Vec<ToolCallObject>,
    /// Other answers to the same.
    others: Vec<String>,
    usage: Usage,
    confidant: Confidant,
}

impl From<Ending> for Reply {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Answer(mut answer) => {
                let usage = Usage::of(answer.metadata.usage);
                let calls = std::mem::take(&mut answer.metadata.calls);
                let others = std::mem::take(&mut answer.metadata.others);
                let confidant = Confidant::Answer(Box::new((*answer.metadata).into()));
                let calls = calls.into_iter().map(ToolCallObject::from).collect();
                let others = others.into_iter().map(|other| other.text).collect();
                Self { content: answer.content, calls, others, usage, confidant }
            }
            Ending::Approval(request) => {
                let content = request.question.clone();
                let confidant = Confidant::Approval(Box::new((*request).into()));
                let usage = Usage::default();
                Self { content, calls: Vec::new(), others: Vec::new(), usage, confidant }
            }
        }
    }
}

/// How an answer was made, or the tool call that somebody must approve first.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Confidant {
    Answer(Box<Metadata>),
    Approval(Box<Approval>),
}

/// A whole answer.
#[derive(Serialize, ToSchema)]
struct ChatCompletion {
    id: String,
    /// `chat.completion`.
    object: &'static str,
    /// Seconds since 1970.
    created: i64,
    /// The model that answers here, whatever the request named.
    model: String,
    choices: Vec<Choice>,
    usage: Usage,
    /// How the answer was made, or the tool call that somebody must approve first.
    confidant: Confidant,
}

/// One of the answers. The first is the one that is remembered.
#[derive(Serialize, ToSchema)]
struct Choice {
    index: u32,
    message: AssistantMessage,
    #[schema(value_type = Option<Object>)]
    logprobs: Option<()>,
    /// `stop`, or `tool_calls` if the client is to call something first.
    finish_reason: &'static str,
}

impl Choice {
    fn of(index: u32, content: Option<String>, tool_calls: Vec<ToolCallObject>) -> Self {
        let finish_reason = if tool_calls.is_empty() { "stop" } else { "tool_calls" };
        let message = AssistantMessage { role: "assistant", content, refusal: None, tool_calls };
        Self { index, message, logprobs: None, finish_reason }
    }
}

/// What the agent says.
#[derive(Serialize, ToSchema)]
struct AssistantMessage {
    role: &'static str,
    content: Option<String>,
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCallObject>,
}

/// Tokens that were spent; none for an answer from the log.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
struct Usage {
    prompt_tokens: u32,
    completion_tokens: u32,
    total_tokens: u32,
}

impl Usage {
    fn of(usage: Option<TokenUsage>) -> Self {
        let Some(usage) = usage else { return Self::default() };
        let total_tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
        Self { prompt_tokens: usage.prompt_tokens, completion_tokens: usage.completion_tokens, total_tokens }
    }
}

/// The models that answer here.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelList {
    /// `list`.
    object: &'static str,
    data: Vec<ModelObject>,
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Model)]
pub(super) struct ModelObject {
    id: String,
    /// `model`.
    object: &'static str,
    /// Seconds since 1970; unknown here, so 0.
    created: i64,
    owned_by: &'static str,
}

impl ModelObject {
    /// The model that answers, then the one that makes embeddings, if there is one.
    fn all(app: &App) -> Vec<Self> {
        let model = app.engine.models().default_model();
        let mut names = vec![app.engine.model_name()];
        names.extend(model.embedding_model().filter(|name| *name != app.engine.model_name()));
        let object =
            |id: &str| Self { id: id.to_owned(), object: "model", created: 0, owned_by: "confidant" };
        names.into_iter().map(object).collect()
    }
}

/// List the models
#[utoipa::path(
    get, path = "/v1/models", operation_id = "list_models", tag = "openai", security(("bearer" = [])),
    responses(
        (status = 200, description = "The model that answers here, and the one that makes embeddings if there is one", body = ModelList),
        OpenAiFailures
    )
)]
pub(super) async fn models(State(app): State<App>, _: Caller) -> Result<Response, ApiError> {
    reply(&ModelList { object: "list", data: ModelObject::all(&app) })
}

/// Show a model
#[utoipa::path(
    get, path = "/v1/models/{id}", operation_id = "retrieve_model", tag = "openai", security(("bearer" = [])),
    params(("id" = String, Path, description = "The model's id, percent-encoded")),
    responses((status = 200, description = "The model", body = ModelObject), OpenAiFailures)
)]
pub(super) async fn model(
    State(app): State<App>,
    _: Caller,
    id: Result<Path<String>, axum::extract::rejection::PathRejection>,
) -> Result<Response, ApiError> {
    let named = id.ok().and_then(|Path(id)| ModelObject::all(&app).into_iter().find(|model| model.id == id));
    if let Some(model) = named {
        return reply(&model);
    }
    let hint = "GET /v1/models names the models that there are here";
    let error = ApiError::new(StatusCode::NOT_FOUND, "model_not_found", "there is no such model", hint);
    Err(error.at("model"))
}
