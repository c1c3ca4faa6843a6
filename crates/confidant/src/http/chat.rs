//! `POST /api/chat`: a chat whose conversation an application names, answered with the concepts that it is about.
//!
//! The application owns the conversation's id and says who speaks; the tenant is the token's. Several people may speak in
//! one conversation: what was said to all of them is in scope for each, what was said in private only for its person.

use std::convert::Infallible;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use confidant_engine::{
    ApprovalRequest, Audience, ContextStatus, Ending, Error, MessageRole, Outbound, Profile, PromptMessage,
    Turn, TurnRequest, Uncertainty, UserId, Wish,
};
use futures_util::{FutureExt as _, Stream, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::App;
use super::answers::{Running, accepts_events, cut_off};
use super::auth::Caller;
use super::body::{Json, reply};
use super::error::ApiError;
use super::openapi::{ApprovalSchema, AudienceSchema, ContextStatusSchema, Failures, UncertaintySchema};

/// A chat.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextChatRequest {
    /// The last one is what the person says now. Earlier ones are used for this answer and not kept.
    messages: Vec<ChatTurn>,
    /// Which conversation, and who speaks.
    identity: Identity,
    /// What the person chose to have known in this turn. Never stored.
    #[serde(default)]
    profile: UserProfile,
    /// Names the turn: a second request with the same id gets the recorded answer.
    #[serde(default)]
    request_id: Option<String>,
    /// Who will read the answer [default: private].
    #[serde(default)]
    #[schema(value_type = Option<AudienceSchema>)]
    audience: Option<Audience>,
    /// Answer as server-sent events, as `Accept: text/event-stream` also asks for.
    #[serde(default)]
    stream: bool,
}

/// One message of a chat.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChatTurn {
    /// `user` or `assistant`.
    role: ChatRole,
    /// What was said.
    content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ChatRole {
    User,
    Assistant,
}

/// Which conversation, and who speaks.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Identity {
    /// The tenant; must be the token's, which holds without it.
    #[serde(default)]
    tenant_id: Option<String>,
    /// The conversation, by the application's own id for it.
    conversation_id: String,
    /// Who speaks; a person's own token says so itself.
    #[serde(default)]
    user_id: Option<String>,
}

/// What the person chose to have known.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct UserProfile {
    /// What they are, such as `self-employed`.
    persona_type: Option<String>,
    /// Whose law matters to them, by code, such as `IE`.
    #[schema(required = false)]
    jurisdictions: Vec<String>,
}

/// The answer, and what it is about.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChatResponse {
    /// The whole text.
    answer: String,
    /// Ids of the concepts that were central to it.
    referenced_nodes: Vec<String>,
    /// Whose law it is about.
    jurisdictions: Vec<String>,
    /// How well it stands on concepts that somebody approved. Not a judgement of its truth.
    #[schema(value_type = UncertaintySchema)]
    uncertainty_level: Uncertainty,
    /// Which disclaimer the application should show with it.
    disclaimer_key: String,
    /// What became of the concepts in scope.
    #[serde(rename = "context_status")]
    #[schema(rename = "context_status", value_type = ContextStatusSchema)]
    context_status: ContextStatus,
    /// The turn's name.
    #[serde(rename = "request_id")]
    #[schema(rename = "request_id")]
    request_id: String,
    /// What somebody must approve before there is an answer; `answer` asks for it in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ApprovalSchema>)]
    approval: Option<Box<ApprovalRequest>>,
}

/// Chat with the concepts of the conversation in scope
///
/// Answers with JSON, or with server-sent events: `text` (`{"type":"text","delta":…}`), then `done` with the whole reply, or
/// `error`. What models say of concepts is never among the text. A failure of the concepts' store or graph never fails the
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
    let session = caller.session(Wish::Talk, scope).await?;
    let (query, brought) = said(body.messages)?;
    let jurisdictions = body.profile.jurisdictions.clone();
    let profile = Profile {
        persona: body.profile.persona_type,
        jurisdictions: body.profile.jurisdictions,
        ..Profile::default()
    };
    let turn = session.turn(TurnRequest {
        request_id: body.request_id,
        query,
        brought,
        profile,
        audience: Some(body.audience.unwrap_or(Audience::Private)),
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

/// Who speaks: the token's own person, or whom the application names.
fn speaker(caller: &Caller, identity: &Identity) -> Result<UserId, ApiError> {
    if identity.tenant_id.as_deref().is_some_and(|tenant| tenant != caller.tenant().as_str()) {
        return Err(ApiError::forbidden());
    }
    match (&identity.user_id, caller.own_user()) {
        (Some(user), _) => {
            UserId::new(user).map_err(|error| ApiError::from(Error::from(error)).at("identity.userId"))
        }
        (None, Some(own)) => Ok(own.clone()),
        (None, None) => {
            let hint = "give identity.userId, or use a token of that person's own";
            Err(ApiError::invalid("it is not said who speaks", hint).at("identity.userId"))
        }
    }
}

/// The last message is the query; the ones before it were said elsewhere.
fn said(mut messages: Vec<ChatTurn>) -> Result<(String, Vec<PromptMessage>), ApiError> {
    match messages.pop() {
        Some(ChatTurn { role: ChatRole::User, content }) => {
            let brought = messages.into_iter().map(|message| PromptMessage {
                role: match message.role {
                    ChatRole::User => MessageRole::Human,
                    ChatRole::Assistant => MessageRole::Ai,
                },
                text: message.content,
            });
            Ok((content, brought.collect()))
        }
        _ => Err(ApiError::invalid(
            "the last message is not the person's",
            "end messages with one of role user",
        )
        .at("messages")),
    }
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
                let status = answer.metadata.context_status;
                let mut whole =
                    ChatResponse { context_status: status, ..empty(answer.request_id, answer.content) };
                if let Some(concepts) = answer.metadata.concepts {
                    whole.uncertainty_level = concepts.uncertainty_level;
                    whole.referenced_nodes = concepts.referenced_nodes;
                    if !concepts.jurisdictions.is_empty() {
                        whole.jurisdictions = concepts.jurisdictions;
                    }
                }
                whole
            }
            Ending::Approval(request) => ChatResponse {
                approval: Some(request.clone()),
                ..empty(request.request_id.clone(), request.question.clone())
            },
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
            Some(Outbound::Progress { .. } | Outbound::SettingsWanted { .. } | Outbound::Enriched(_)) => None,
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

impl std::fmt::Debug for ContextChatRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextChatRequest").finish_non_exhaustive()
    }
}
