//! `POST /api/chat`: a chat whose conversation an application names, answered with the concepts that it is about.
//!
//! The application owns the conversation's id and says who speaks, if it likes; the tenant is the token's. Several people
//! may speak in one conversation: what the application says is shared is in scope for each of them, everything else only for
//! its person. A person gets in by an agent or an administrator who speaks for them or invites them, never by their own
//! token alone: with that they have the conversation to themselves.

use std::convert::Infallible;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use confidant_display::debug_without_content;
use confidant_engine::access::Permission;
use confidant_engine::aspects::Profile;
use confidant_engine::model::{PromptMessage, Role as MessageRole};
use confidant_engine::turn::{Ending, Outbound};
use confidant_engine::{Error, Turn, TurnRequest, UserId};
use futures_util::{FutureExt as _, Stream, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::answers::{Running, accepts_events, cut_off};
use super::app::App;
use super::auth::{Caller, nobody};
use super::body::{Json, reply};
use super::error::ApiError;
use super::openapi::Failures;
use super::wire::{Approval, Audience, ContextStatus, Uncertainty};

/// A chat.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextChatRequest {
    /// The last one is the person's message. Earlier ones are used for this answer only and not kept.
    messages: Vec<ChatTurn>,
    /// Which conversation, and who speaks.
    identity: Identity,
    /// What the person chose to tell for this turn. Never stored.
    #[serde(default)]
    profile: UserProfile,
    /// The turn's id: a second request with the same id gets the recorded answer.
    #[serde(default)]
    request_id: Option<String>,
    /// Whether the conversation is shared: concepts of this turn are in scope for everybody in it. Nobody else sees the words
    /// [default: false].
    #[serde(default)]
    shared: bool,
    /// Who will read the answer [default: private].
    #[serde(default)]
    audience: Option<Audience>,
    /// Answer as server-sent events, as `Accept: text/event-stream` also asks for.
    #[serde(default)]
    stream: bool,
}

/// One message of a chat. Other fields, such as an application's own ids, are ignored.
#[derive(Deserialize, ToSchema)]
struct ChatTurn {
    /// `user`, `assistant` or `system`. A message of role `system` is the application's own instruction for this answer.
    role: ChatRole,
    /// What was said.
    content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ChatRole {
    User,
    Assistant,
    #[serde(alias = "developer")]
    System,
}

/// Which conversation, and who speaks.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Identity {
    /// The tenant; must be the token's. If missing, the token's is used.
    #[serde(default)]
    tenant_id: Option<String>,
    /// The conversation, by the application's own id for it.
    conversation_id: String,
    /// Who speaks; not needed with a person's own token. If missing, the conversation as a whole.
    #[serde(default)]
    user_id: Option<String>,
}

/// What the person chose to tell. Other keys reach the model too, if they are a word, a number, or a list of these.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase")]
struct UserProfile {
    /// The person's status, such as `self-employed`.
    persona_type: Option<String>,
    /// The jurisdictions that matter to them, by code, such as `IE`.
    #[schema(required = false)]
    jurisdictions: Vec<String>,
    #[serde(flatten)]
    more: std::collections::BTreeMap<String, Value>,
}

/// The answer, and what it is about.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChatResponse {
    /// The whole text.
    answer: String,
    /// Ids of the concepts that were central to it.
    referenced_nodes: Vec<String>,
    /// The jurisdictions it is about.
    jurisdictions: Vec<String>,
    /// How well approved concepts support it. Not a judgement of its truth.
    uncertainty_level: Uncertainty,
    /// Which disclaimer the application should show with it.
    disclaimer_key: String,
    /// What happened to the concepts in scope.
    #[serde(rename = "context_status")]
    context_status: ContextStatus,
    /// The turn's request id.
    #[serde(rename = "request_id")]
    request_id: String,
    /// The tool call that somebody must approve first; `answer` then asks for it in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Box<Approval>>,
}

/// Chat with the concepts of the conversation in scope
///
/// Answers with JSON, or with server-sent events: `text` (`{"type":"text","delta":…}`), then `done` with the whole reply, or
/// `error`. Concept data of the model is never part of the text. A failure of the concepts' store or graph never fails the
/// chat: `context_status` says what happened.
#[utoipa::path(
    post, path = "/api/chat", operation_id = "chat_with_concepts", tag = "concepts", security(("bearer" = [])),
    request_body = ContextChatRequest,
    responses(
        (status = 200, description = "The answer", content((ChatResponse = "application/json"), (String = "text/event-stream"))),
        Failures
    )
)]
pub(super) async fn chat(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Json(body): Json<ContextChatRequest>,
) -> Result<Response, ApiError> {
    let user = speaker(&caller, &body.identity)?;
    let scope = caller.conversation_scope(&body.identity.conversation_id, user)?;
    let session = caller.session(Permission::Talk, scope).await?;
    if body.shared && caller.own_user().is_some() && !session.is_in_conversation().await.unwrap_or(false) {
        let hint = "ask whoever runs the application to invite you, or leave out `shared`";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "not_in_conversation", NOT_IN, hint).at("shared"));
    }
    let Said { query, brought, instructions } = said(body.messages)?;
    let jurisdictions = body.profile.jurisdictions.clone();
    let profile = body.profile.told();
    let turn = session.turn(TurnRequest {
        request_id: body.request_id,
        query,
        brought,
        instructions,
        shared: body.shared,
        profile,
        audience: Some(body.audience.unwrap_or(Audience::Private).into()),
        capture: true,
        ..TurnRequest::default()
    });
    let key = app.engine.concepts().settings().map(|settings| settings.disclaimer_key.clone());
    let form = ReplyForm { jurisdictions, disclaimer_key: key.unwrap_or_default() };
    if body.stream || accepts_events(&headers) {
        return Ok(Events::start(app, turn, form)?.respond());
    }
    reply(&form.whole(Running::from(turn).end(&app).await?))
}

const NOT_IN: &str = "you are not in this conversation, so nothing of yours can be shared there";

impl UserProfile {
    /// What the model is told of it.
    fn told(self) -> Profile {
        let word = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(on) => Some(on.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        let words = |value: &Value| match value {
            Value::Array(items) => Some(items.iter().filter_map(word).collect::<Vec<_>>().join(", ")),
            value => word(value),
        };
        let more = self.more.iter().filter_map(|(name, value)| Some((name.clone(), words(value)?)));
        Profile {
            persona: self.persona_type,
            more: more.collect(),
            jurisdictions: self.jurisdictions,
            ..Profile::default()
        }
    }
}

/// Who speaks: the token's own person, or whom the application names; else the conversation as a whole.
fn speaker(caller: &Caller, identity: &Identity) -> Result<UserId, ApiError> {
    if identity.tenant_id.as_deref().is_some_and(|tenant| tenant != caller.tenant().as_str()) {
        return Err(ApiError::forbidden());
    }
    match (&identity.user_id, caller.own_user()) {
        (Some(user), _) => {
            UserId::new(user).map_err(|error| ApiError::from(Error::from(error)).at("identity.userId"))
        }
        (None, Some(own)) => Ok(own.clone()),
        (None, None) => nobody(),
    }
}

/// The messages by what they are for.
struct Said {
    query: String,
    brought: Vec<PromptMessage>,
    instructions: Option<String>,
}

/// The last message is the query; the ones before it were said elsewhere, or are the application's own instructions.
fn said(mut messages: Vec<ChatTurn>) -> Result<Said, ApiError> {
    let Some(ChatTurn { role: ChatRole::User, content: query }) = messages.pop() else {
        let hint = "end `messages` with one whose role is `user`";
        return Err(ApiError::invalid("the last message is not from the user", hint).at("messages"));
    };
    let (mut brought, mut instructions) = (Vec::new(), Vec::new());
    for ChatTurn { role, content: text } in messages {
        match role {
            ChatRole::User => brought.push(PromptMessage { role: MessageRole::Human, text }),
            ChatRole::Assistant => brought.push(PromptMessage { role: MessageRole::Ai, text }),
            ChatRole::System => instructions.push(text),
        }
    }
    let instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
    Ok(Said { query, brought, instructions })
}

/// What every reply to one request has in common.
#[derive(Clone, Debug)]
struct ReplyForm {
    /// Those of the profile, where the answer names none.
    jurisdictions: Vec<String>,
    disclaimer_key: String,
}

impl ReplyForm {
    fn whole(&self, ending: Ending) -> ChatResponse {
        let empty = |request_id: String, answer: String| ChatResponse {
            answer,
            referenced_nodes: Vec::new(),
            jurisdictions: self.jurisdictions.clone(),
            uncertainty_level: Uncertainty::High,
            disclaimer_key: self.disclaimer_key.clone(),
            context_status: ContextStatus::Off,
            request_id,
            approval: None,
        };
        match ending {
            Ending::Answer(answer) => {
                let status = answer.metadata.context_status.into();
                let mut whole =
                    ChatResponse { context_status: status, ..empty(answer.request_id, answer.content) };
                if let Some(concepts) = answer.metadata.concepts {
                    whole.uncertainty_level = concepts.uncertainty_level.into();
                    whole.referenced_nodes = concepts.referenced_nodes;
                    if !concepts.jurisdictions.is_empty() {
                        whole.jurisdictions = concepts.jurisdictions;
                    }
                }
                whole
            }
            Ending::Approval(request) => {
                let whole = empty(request.request_id.clone(), request.question.clone());
                ChatResponse { approval: Some(Box::new((*request).into())), ..whole }
            }
        }
    }
}

/// A chat as server-sent events.
struct Events {
    app: App,
    turn: Turn,
    form: ReplyForm,
    /// What was taken from the turn before the stream began.
    first: Option<Outbound>,
    /// Whether any of the answer was sent.
    spoken: bool,
    /// What is sent next.
    next: Option<Event>,
    ended: bool,
}

impl Events {
    /// A request that is refused at once is refused with a status, not with an event.
    fn start(app: App, mut turn: Turn, form: ReplyForm) -> Result<Self, ApiError> {
        match turn.next().now_or_never().flatten() {
            Some(Outbound::Error(error)) => Err(error.into()),
            first => Ok(Self { app, turn, form, first, spoken: false, next: None, ended: false }),
        }
    }

    fn respond(self) -> Response {
        Sse::new(self.into_stream()).keep_alive(KeepAlive::default()).into_response()
    }

    fn into_stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        stream::unfold(self, |mut events| async move {
            loop {
                if let Some(event) = events.next.take() {
                    return Some((Ok(event), events));
                }
                if events.ended {
                    return None;
                }
                let outbound = match events.first.take() {
                    Some(first) => Some(first),
                    None => events.turn.next().await,
                };
                if let Some(event) = events.event(outbound) {
                    return Some((Ok(event), events));
                }
            }
        })
    }

    /// What is told of an event; most of what happens on the way is not.
    fn event(&mut self, outbound: Option<Outbound>) -> Option<Event> {
        match outbound {
            Some(Outbound::Delta { text, .. }) => Some(self.text(&text)),
            Some(Outbound::Final(answer)) => Some(self.last(Ending::Answer(answer))),
            Some(Outbound::Approval(request)) => Some(self.last(Ending::Approval(request))),
            Some(Outbound::Error(error)) => Some(self.failed(&error.into())),
            Some(
                Outbound::Progress { .. }
                | Outbound::SettingsWanted { .. }
                | Outbound::Wanted(_)
                | Outbound::Enriched(_),
            ) => None,
            None => Some(self.failed(&cut_off(&self.app))),
        }
    }

    fn text(&mut self, text: &str) -> Event {
        self.spoken = true;
        Event::default().event("text").data(json!({ "type": "text", "delta": text }).to_string())
    }

    fn last(&mut self, ending: Ending) -> Event {
        self.ended = true;
        let whole = self.form.whole(ending);
        let mut data = serde_json::to_value(&whole).unwrap_or_default();
        data["type"] = json!("done");
        let done = Event::default().event("done").data(data.to_string());
        // An answer from the log, or one that no model made, comes without pieces.
        if self.spoken {
            return done;
        }
        self.next = Some(done);
        self.text(&whole.answer)
    }

    fn failed(&mut self, error: &ApiError) -> Event {
        self.ended = true;
        let data =
            json!({ "type": "error", "code": error.code, "message": error.message, "hint": error.hint });
        Event::default().event("error").data(data.to_string())
    }
}

debug_without_content!(ContextChatRequest);
