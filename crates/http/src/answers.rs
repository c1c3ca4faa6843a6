//! What becomes of a turn, told whole or as it happens: an answer, or something that somebody must approve first.
//!
//! A turn belongs to the engine, not to the connection: whoever goes away, or waits too long, can ask again with the same
//! `request_id` and gets the recorded answer.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use confidant_engine::turn::{Ending, Final, Outbound};
use confidant_engine::{Error, Turn};
use futures_util::{FutureExt as _, Stream, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::body::reply;
use super::error::ApiError;
use super::wire::{Approval, Enrichment, Metadata, Question};

/// How the answer is wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AnswerParams {
    /// Answer as server-sent events, as `Accept: text/event-stream` also asks for.
    pub(super) stream: bool,
    /// Keep the stream open after the answer for the event `enriched`. It comes only where a small model enriches
    /// turns; otherwise the stream ends without it.
    pub(super) enrich: bool,
}

/// How a turn ended, for now.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum TurnReply {
    /// With an answer.
    Final(FinalResponse),
    /// With a tool call that somebody must approve.
    Asked(HitlRequest),
    /// With a question of a foreign worker, which the next message answers.
    Questioned(ForeignHitlRequest),
}

/// An answer.
#[derive(Serialize, ToSchema)]
pub(super) struct FinalResponse {
    /// The turn's request id.
    request_id: String,
    message_type: FinalKind,
    /// The answer's text.
    content: String,
    /// How the answer was made.
    metadata: Box<Metadata>,
}

/// A tool call that somebody must approve before the turn continues.
#[derive(Serialize, ToSchema)]
pub(super) struct HitlRequest {
    /// The request id of the turn that waits.
    request_id: String,
    message_type: AskedKind,
    /// The question, in words.
    content: String,
    /// The approval to decide on.
    metadata: Box<Approval>,
}

/// A question of a foreign worker (`bus.mode = "compat"`): there is nothing to decide here, the person's next message is the
/// answer.
#[derive(Serialize, ToSchema)]
pub(super) struct ForeignHitlRequest {
    /// The request id of the turn that asks.
    request_id: String,
    message_type: AskedKind,
    /// The question with its options, in words.
    content: String,
    /// The same as structured data.
    metadata: Question,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum FinalKind {
    FinalResponse,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum AskedKind {
    HitlRequest,
}

impl TurnReply {
    /// The same word as `message_type` has.
    fn name(&self) -> &'static str {
        match self {
            Self::Final(_) => "final_response",
            Self::Asked(_) | Self::Questioned(_) => "hitl_request",
        }
    }
}

impl From<Ending> for TurnReply {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Answer(Final { request_id, content, mut metadata }) if metadata.asks.is_some() => {
                let asks = metadata.asks.take().unwrap_or_default();
                Self::Questioned(ForeignHitlRequest {
                    request_id,
                    message_type: AskedKind::HitlRequest,
                    content,
                    metadata: (*asks).into(),
                })
            }
            Ending::Answer(Final { request_id, content, metadata }) => Self::Final(FinalResponse {
                request_id,
                message_type: FinalKind::FinalResponse,
                content,
                metadata: Box::new((*metadata).into()),
            }),
            Ending::Approval(request) => Self::Asked(HitlRequest {
                request_id: request.request_id.clone(),
                message_type: AskedKind::HitlRequest,
                content: request.question.clone(),
                metadata: Box::new((*request).into()),
            }),
        }
    }
}

/// A turn under way, and the name to ask for it again.
#[derive(Debug)]
pub(super) struct Running {
    turn: Turn,
    request_id: String,
    /// Whether the client also waits for what is made of the answer.
    enrich: bool,
}

impl From<Turn> for Running {
    fn from(turn: Turn) -> Self {
        let request_id = turn.request_id().to_owned();
        Self { turn, request_id, enrich: false }
    }
}

impl Running {
    /// A turn that goes on under the name that it had before.
    pub(super) fn named(turn: Turn, request_id: String) -> Self {
        Self { turn, request_id, enrich: false }
    }

    /// The same for a client that also waits for what is made of the answer.
    pub(super) fn enriched(self, enrich: bool) -> Self {
        Self { enrich, ..self }
    }

    /// The whole reply: events if they are wanted, else JSON.
    pub(super) async fn respond(self, app: App, streamed: bool) -> Result<Response, ApiError> {
        if streamed {
            let events = Events::start(app, self)?.into_stream();
            return Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response());
        }
        reply(&TurnReply::from(self.end(&app).await?))
    }

    /// Waits for the end, as long as the operator allows.
    pub(super) async fn end(self, app: &App) -> Result<Ending, ApiError> {
        match tokio::time::timeout(app.settings.request_timeout, self.turn.end()).await {
            Ok(Err(Error::Internal)) => Err(cut_off(app).about(self.request_id)),
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(late(app.settings.request_timeout).about(self.request_id)),
        }
    }
}

/// Why a turn ended without a word: the server is stopping and parked it, or it broke.
pub(super) fn cut_off(app: &App) -> ApiError {
    if app.stopping.load(Ordering::Relaxed) { Error::Stopping.into() } else { Error::Internal.into() }
}

fn late(limit: Duration) -> ApiError {
    let message = format!("there was no answer within {} s; the turn continues", limit.as_secs());
    let hint = "ask again with the same request_id to get the answer when it is ready, or ask for a stream";
    ApiError::new(StatusCode::GATEWAY_TIMEOUT, "timeout", message, hint)
}

/// Whether a client would rather have events.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|media| {
        media.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// A turn as server-sent events.
struct Events {
    app: App,
    running: Running,
    /// What was taken from the turn before the stream began.
    first: Option<Outbound>,
    /// Whether the answer was sent.
    answered: bool,
    ended: bool,
}

impl Events {
    /// A request that is refused at once is refused with a status, not with an event.
    fn start(app: App, mut running: Running) -> Result<Self, ApiError> {
        match running.turn.next().now_or_never().flatten() {
            Some(Outbound::Error(error)) => Err(error.into()),
            first => Ok(Self { app, running, first, answered: false, ended: false }),
        }
    }

    fn into_stream(self) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
        stream::unfold(self, |mut events| async move {
            if events.ended {
                return None;
            }
            let outbound = match events.first.take() {
                Some(first) => Some(first),
                None => events.running.turn.next().await,
            };
            // Nothing was made of the answer, which is whole without it.
            if outbound.is_none() && events.answered {
                return None;
            }
            Some((Ok(events.event(outbound)), events))
        })
    }

    fn event(&mut self, outbound: Option<Outbound>) -> Event {
        let (name, data) = match outbound {
            Some(Outbound::Progress { text }) => ("progress", self.message("progress", &text, &json!({}))),
            Some(Outbound::Delta { seq, text }) => {
                ("delta", self.message("delta", &text, &json!({ "seq": seq })))
            }
            Some(Outbound::Final(answer)) => self.last(Ending::Answer(answer)),
            Some(Outbound::Approval(request)) => self.last(Ending::Approval(request)),
            Some(Outbound::Error(error)) => self.failed(&error.into()),
            Some(Outbound::SettingsWanted { names }) => {
                ("settings_request", self.message("settings_request", "", &json!({ "settings": names })))
            }
            // Only chats that devices keep want anything of one, and those have another door.
            Some(Outbound::Wanted(_)) => ("progress", self.message("progress", "", &json!({}))),
            Some(Outbound::Enriched(made)) => {
                self.ended = true;
                ("enriched", self.message("enriched", "", &json!(Enrichment::from(*made))))
            }
            None => self.failed(&cut_off(&self.app)),
        };
        Event::default().event(name).data(data)
    }

    fn last(&mut self, ending: Ending) -> (&'static str, String) {
        self.answered = matches!(ending, Ending::Answer(_));
        self.ended = !(self.answered && self.running.enrich);
        let reply = TurnReply::from(ending);
        (reply.name(), serde_json::to_string(&reply).unwrap_or_default())
    }

    fn failed(&mut self, error: &ApiError) -> (&'static str, String) {
        self.ended = true;
        let metadata = json!({ "code": error.code, "hint": error.hint });
        ("error", self.message("error", &error.message, &metadata))
    }

    fn message(&self, kind: &str, content: &str, metadata: &Value) -> String {
        let request_id = &self.running.request_id;
        json!({ "request_id": request_id, "message_type": kind, "content": content, "metadata": metadata })
            .to_string()
    }
}

impl std::fmt::Debug for TurnReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TurnReply").field(&self.name()).finish()
    }
}
