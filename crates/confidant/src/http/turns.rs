//! Turns: say something to a session, and call off what was said.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use confidant_engine::{Audience, PastChat, Profile, RoomContext, TurnRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::App;
use super::answers::{AnswerParams, Running, TurnReply, accepts_events};
use super::auth::{LastId, Talk};
use super::body::{Json, Params, reply};
use super::error::ApiError;
use super::openapi::{AudienceSchema, Failures, PastChatSchema, ProfileSchema, RoomLineSchema};

/// What a person says, and what surrounds it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TurnRequest)]
pub(super) struct TurnBody {
    /// What the person says.
    query: String,
    /// Names the turn: a second request with the same id gets the recorded answer. Up to 128 visible ASCII characters;
    /// made if missing.
    #[serde(default)]
    request_id: Option<String>,
    /// What was said in the room just now, oldest first. Goes into this prompt and is never stored.
    #[serde(default)]
    #[schema(value_type = Vec<RoomLineSchema>)]
    room_context: RoomContext,
    /// Who will read the answer. If missing: the room, unless the session is keyed by person alone and there is no
    /// room context.
    #[serde(default)]
    #[schema(value_type = Option<AudienceSchema>)]
    audience: Option<Audience>,
    /// Answer as server-sent events, like the query parameter.
    #[serde(default)]
    stream: bool,
    /// Like the query parameter.
    #[serde(default)]
    enrich: bool,
    /// What the person chose to have known in this turn. Never stored.
    #[serde(default)]
    #[schema(value_type = ProfileSchema, required = false)]
    profile: Profile,
    /// The focus mode that is on in this turn; if missing, the conversation's own.
    #[serde(default)]
    focus: Option<String>,
    /// Conversations of the past that may be like this one. Never stored.
    #[serde(default)]
    #[schema(value_type = Vec<PastChatSchema>)]
    past_chats: Vec<PastChat>,
    /// Settings and memories that the client has, by name: it is asked for those that would help.
    #[serde(default)]
    available_settings: Vec<String>,
    /// Settings and memories that were asked for: an object of texts by name. Never stored.
    #[serde(default)]
    #[schema(value_type = Object)]
    settings: BTreeMap<String, String>,
    /// A channel's own notes; accepted so that a bus message can be sent as it is, and neither used nor stored.
    #[serde(default, rename = "metadata")]
    #[schema(rename = "metadata", value_type = Option<Object>)]
    _metadata: Option<serde::de::IgnoredAny>,
}

/// Run a turn
///
/// Answers with JSON, or with server-sent events when the client accepts `text/event-stream`: `progress`, `delta` (with
/// `metadata.seq`), then one `final_response`, `hitl_request` or `error`. Each event's data is `{request_id, message_type,
/// content, metadata}`; the deltas of a fresh answer add up to the final content. A recorded answer comes without deltas.
/// A `hitl_request` is a call that somebody must approve first: decide it with `POST …/decisions`, or say `approve CODE`
/// or `deny CODE`. `settings_request` names settings of the client that would help (`metadata.settings`); the turn does not
/// wait for them. With `enrich`, the event `enriched` follows the answer. The turn goes on if the client leaves: ask again with the same `request_id`.
#[utoipa::path(
    post, path = "/api/v1/session/{session_id}/turns", operation_id = "run_turn", tag = "session", security(("bearer" = [])),
    params(("session_id" = String, Path, description = "The session's id, percent-encoded"), AnswerParams),
    request_body = TurnBody,
    responses(
        (status = 200, description = "The answer, or what somebody must approve first", content((TurnReply = "application/json"), (String = "text/event-stream"))),
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
    let turn = session.turn(TurnRequest {
        request_id: body.request_id,
        query: body.query,
        audience: body.audience,
        room: body.room_context,
        profile: body.profile,
        focus: body.focus,
        past_chats: body.past_chats,
        available_settings: body.available_settings,
        settings: body.settings,
        ..TurnRequest::default()
    });
    let streamed = params.stream || body.stream || accepts_events(&headers);
    Running::from(turn).enriched(params.enrich || body.enrich).respond(app, streamed).await
}

/// What was cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Cancelled {
    /// Turns that were; none if there was nothing to cancel any more.
    cancelled: usize,
}

/// Cancel a turn
///
/// One that runs ends with the error `cancelled`; one that waits for an approval is closed without it. What was done
/// before stays done. The same `request_id` can be sent again.
#[utoipa::path(
    delete, path = "/api/v1/session/{session_id}/turns/{request_id}", operation_id = "cancel_turn", tag = "session", security(("bearer" = [])),
    params(
        ("session_id" = String, Path, description = "The session's id, percent-encoded"),
        ("request_id" = String, Path, description = "The turn's name, percent-encoded"),
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

impl std::fmt::Debug for TurnBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnBody").finish_non_exhaustive()
    }
}
