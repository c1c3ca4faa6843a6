//! Turns: say something to a session, get the answer whole or as it is made.
//!
//! A turn belongs to the engine, not to the connection: whoever goes away, or waits too long, can ask again with the same
//! `request_id` and gets the recorded answer.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use confidant_engine::{Audience, Error, Final, Metadata, Outbound, RoomContext, Turn, TurnRequest};
use futures_util::{FutureExt as _, Stream, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::App;
use super::auth::Talk;
use super::body::{Json, Params, reply};
use super::error::ApiError;
use super::openapi::{AudienceSchema, Failures, MetadataSchema, RoomLineSchema};

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
    /// A channel's own notes; accepted so that a bus message can be sent as it is, and neither used nor stored.
    #[serde(default, rename = "metadata")]
    #[schema(rename = "metadata", value_type = Option<Object>)]
    _metadata: Option<serde::de::IgnoredAny>,
}

/// How the answer is wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TurnParams {
    /// Answer as server-sent events, as `Accept: text/event-stream` also asks for.
    stream: bool,
}

/// An answer.
#[derive(Serialize, ToSchema)]
#[schema(as = TurnReply)]
pub(super) struct TurnReply {
    /// The turn's name.
    request_id: String,
    /// `final_response`.
    message_type: &'static str,
    /// The answer's text.
    content: String,
    /// How it came about.
    #[schema(value_type = MetadataSchema)]
    metadata: Metadata,
}

impl From<Final> for TurnReply {
    fn from(answer: Final) -> Self {
        let Final { request_id, content, metadata } = answer;
        Self { request_id, message_type: FINAL, content, metadata }
    }
}

const FINAL: &str = "final_response";

/// Run a turn
///
/// Answers with JSON, or with server-sent events when the client accepts `text/event-stream`: `progress`, `delta` (with
/// `metadata.seq`), then one `final_response` or `error`. Each event's data is `{request_id, message_type, content,
/// metadata}`; the deltas of a fresh answer add up to the final content. A recorded answer comes without deltas. The turn
/// goes on if the client leaves: ask again with the same `request_id`.
#[utoipa::path(
    post, path = "/api/v1/session/{session_id}/turns", operation_id = "run_turn", tag = "session", security(("bearer" = [])),
    params(("session_id" = String, Path, description = "The session's id, percent-encoded"), TurnParams),
    request_body = TurnBody,
    responses(
        (status = 200, description = "The answer", content((TurnReply = "application/json"), (String = "text/event-stream"))),
        Failures
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    Talk(session): Talk,
    Params(params): Params<TurnParams>,
    headers: HeaderMap,
    Json(body): Json<TurnBody>,
) -> Result<Response, ApiError> {
    let turn = session.turn(TurnRequest {
        request_id: body.request_id,
        query: body.query,
        audience: body.audience,
        room: body.room_context,
        ..TurnRequest::default()
    });
    if params.stream || body.stream || accepts_events(&headers) {
        let events = Events::start(app, turn)?.into_stream();
        return Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response());
    }
    reply(&TurnReply::from(finish(&app, turn).await?))
}

/// Waits for a turn's answer, as long as the operator allows.
pub(super) async fn finish(app: &App, turn: Turn) -> Result<Final, ApiError> {
    let request_id = turn.request_id().to_owned();
    match tokio::time::timeout(app.settings.request_timeout, turn.finish()).await {
        Ok(Err(Error::Internal)) => Err(cut_off(app).about(request_id)),
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(late(app.settings.request_timeout).about(request_id)),
    }
}

/// Why a turn ended without a word: the server is stopping and parked it, or it broke.
pub(super) fn cut_off(app: &App) -> ApiError {
    if app.stopping.load(Ordering::Relaxed) { Error::Stopping.into() } else { Error::Internal.into() }
}

fn late(limit: Duration) -> ApiError {
    let message = format!("the answer was not there within {} s; the turn goes on", limit.as_secs());
    let hint =
        "ask again with the same request_id, which gets the answer once it is there, or ask for a stream";
    ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout", message, hint)
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|media| {
        media.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// A turn as server-sent events.
struct Events {
    app: App,
    turn: Turn,
    /// What was taken from the turn before the stream began.
    first: Option<Outbound>,
    ended: bool,
}

impl Events {
    /// A request that is refused at once is refused with a status, not with an event.
    fn start(app: App, mut turn: Turn) -> Result<Self, ApiError> {
        match turn.next().now_or_never().flatten() {
            Some(Outbound::Error(error)) => Err(error.into()),
            first => Ok(Self { app, turn, first, ended: false }),
        }
    }

    fn into_stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        stream::unfold(self, |mut events| async move {
            if events.ended {
                return None;
            }
            let outbound = match events.first.take() {
                Some(first) => Some(first),
                None => events.turn.next().await,
            };
            Some((Ok(events.event(outbound)), events))
        })
    }

    fn event(&mut self, outbound: Option<Outbound>) -> Event {
        let request_id = self.turn.request_id();
        let (name, data) = match outbound {
            Some(Outbound::Progress { text }) => {
                ("progress", message(request_id, "progress", text, &json!({})))
            }
            Some(Outbound::Delta { seq, text }) => {
                ("delta", message(request_id, "delta", &text, &json!({ "seq": seq })))
            }
            Some(Outbound::Final(answer)) => {
                self.ended = true;
                (FINAL, serde_json::to_string(&TurnReply::from(answer)).unwrap_or_default())
            }
            end => {
                self.ended = true;
                let error = match end {
                    Some(Outbound::Error(error)) => ApiError::from(error),
                    _ => cut_off(&self.app),
                };
                let metadata = json!({ "code": error.code, "hint": error.hint });
                ("error", message(self.turn.request_id(), "error", &error.message, &metadata))
            }
        };
        Event::default().event(name).data(data)
    }
}

fn message(request_id: &str, kind: &str, content: &str, metadata: &serde_json::Value) -> String {
    json!({ "request_id": request_id, "message_type": kind, "content": content, "metadata": metadata })
        .to_string()
}

impl std::fmt::Debug for TurnBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnBody").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for TurnReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnReply").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}
