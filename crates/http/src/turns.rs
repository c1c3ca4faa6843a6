//! Turns: say something to a session, and call off what was said.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use confidant_display::debug_without_content;
use confidant_engine::TurnRequest;
use confidant_engine::room::RoomContext;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::{AnswerParams, Running, TurnReply, accepts_events};
use super::app::App;
use super::auth::{LastId, Talk};
use super::body::{Json, Params, reply};
use super::error::ApiError;
use super::openapi::Failures;
use super::wire::{Audience, PastChat, Profile, RoomLine};

/// A person's message, and its context.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TurnRequest)]
pub(super) struct TurnBody {
    /// What the person says.
    query: String,
    /// The turn's id: a second request with the same id gets the recorded answer. Up to 128 visible ASCII characters;
    /// generated if missing.
    #[serde(default)]
    request_id: Option<String>,
    /// What was said in the room just now, oldest first. Goes into this prompt and is never stored.
    #[serde(default)]
    room_context: Option<Vec<RoomLine>>,
    /// The session again, so that a bus message can be sent unchanged. It must be the one in the URL.
    #[serde(default)]
    session_id: Option<String>,
    /// Who will read the answer. If missing: the room, unless the session is keyed by person alone and there is no
    /// room context.
    #[serde(default)]
    audience: Option<Audience>,
    /// Answer as server-sent events, like the query parameter.
    #[serde(default)]
    stream: bool,
    /// Like the query parameter.
    #[serde(default)]
    enrich: bool,
    /// What the person chose to tell for this turn. Never stored.
    #[serde(default)]
    profile: Profile,
    /// The focus mode for this turn; if missing, the conversation's own.
    #[serde(default)]
    focus: Option<String>,
    /// Past conversations that may be similar to this one. Never stored.
    #[serde(default)]
    past_chats: Vec<PastChat>,
    /// Names of settings and memories that the client has. The server asks for those that would help.
    #[serde(default)]
    available_settings: Vec<String>,
    /// Settings and memories that were asked for: an object of texts by name. Never stored.
    #[serde(default)]
    settings: BTreeMap<String, String>,
    /// The conversation's title, if the client has one; then no other is made. Never stored.
    #[serde(default)]
    current_chat_title: Option<String>,
    /// A channel's own notes; accepted so that a bus message can be sent unchanged, but not used or stored.
    #[serde(default, rename = "metadata")]
    #[schema(rename = "metadata", value_type = Option<Object>)]
    _metadata: Option<serde::de::IgnoredAny>,
}

/// Run a turn
///
/// Answers with JSON, or with server-sent events when the client accepts `text/event-stream`: `progress`, `delta` (with
/// `metadata.seq`), then one `final_response`, `hitl_request` or `error`. Each event's data is `{request_id, message_type,
/// content, metadata}`; the deltas of a fresh answer add up to the final content. A recorded answer comes without deltas.
/// A `hitl_request` is a tool call that somebody must approve first: decide it with `POST …/decisions`, or say `approve CODE`
/// or `deny CODE`. `settings_request` names settings of the client that would help (`metadata.settings`); the turn does not
/// wait for them. With `enrich`, the event `enriched` follows the answer. The turn continues if the client leaves: ask again with the same `request_id`.
#[utoipa::path(
    post, path = "/api/v1/session/{session_id}/turns", operation_id = "run_turn", tag = "session", security(("bearer" = [])),
    params(("session_id" = String, Path, description = "The session's id, percent-encoded"), AnswerParams),
    request_body = TurnBody,
    responses(
        (status = 200, description = "The answer, or the tool call that somebody must approve first", content((TurnReply = "application/json"), (String = "text/event-stream"))),
        Failures
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    Talk(session): Talk,
    Params(params): Params<AnswerParams>,
    headers: HeaderMap,
    Json(body): Json<TurnBody>,
) -> Result<Response, ApiError> {
    if body.session_id.as_ref().is_some_and(|id| *id != session.id()) {
        return Err(ApiError::invalid(
            "\"session_id\" is not the session in the URL",
            "put that session's id, percent-encoded, into the URL, or leave session_id out of the body",
        ));
    }
    let room = body.room_context.unwrap_or_default();
    let turn = session.turn(TurnRequest {
        request_id: body.request_id,
        query: body.query,
        audience: body.audience.map(Into::into),
        room: RoomContext::new(room.into_iter().map(Into::into).collect()),
        profile: body.profile.into(),
        focus: body.focus,
        past_chats: body.past_chats.into_iter().map(Into::into).collect(),
        available_settings: body.available_settings,
        settings: body.settings,
        title: body.current_chat_title,
        ..TurnRequest::default()
    });
    let streamed = params.stream || body.stream || accepts_events(&headers);
    Running::from(turn).enriched(params.enrich || body.enrich).respond(app, streamed).await
}

/// What was cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Cancelled {
    /// How many turns were cancelled; 0 if none was running or waiting.
    cancelled: usize,
}

/// Cancel a turn
///
/// A running turn ends with the error `cancelled`; one that waits for an approval is closed without it. What was done
/// before stays done. The same `request_id` sent again ends as `cancelled`, even if it had not been accepted yet.
#[utoipa::path(
    delete, path = "/api/v1/session/{session_id}/turns/{request_id}", operation_id = "cancel_turn", tag = "session", security(("bearer" = [])),
    params(
        ("session_id" = String, Path, description = "The session's id, percent-encoded"),
        ("request_id" = String, Path, description = "The turn's request id, percent-encoded"),
    ),
    responses((status = 200, description = "How many turns were cancelled", body = Cancelled), Failures)
)]
pub(super) async fn cancel(
    State(app): State<App>,
    Talk(session): Talk,
    LastId(request_id): LastId,
) -> Result<Response, ApiError> {
    let cancelled = app.detached(async move { session.cancel(Some(&request_id)).await }).await?;
    reply(&Cancelled { cancelled })
}

debug_without_content!(TurnBody);
