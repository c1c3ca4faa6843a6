//! Whether the process lives, and whether it can work.

use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use confidant_channel::{Condition, Status};
use confidant_display::parted;
use confidant_engine::Error;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::body::reply;
use super::error::{ApiError, ErrorBody};
use crate::standing::Damage;

/// The state of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: &'static str,
    /// The state of each channel. A channel that is down does not make the server unready; it keeps reconnecting.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<ChannelHealth>,
    /// Parts of the data that cannot be opened. The rest works without them, so the server is still ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<Damage>,
}

/// The state of a channel.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChannelHealth {
    /// `discord`, `matrix`.
    platform: &'static str,
    /// Which one of several.
    label: String,
    /// `starting`, `up`, `down`, `refused` or `stopped`.
    condition: &'static str,
    /// Since when, in milliseconds since 1970.
    since: i64,
    /// What is wrong, and what to do about it. A channel that is up can have a problem too.
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

impl ChannelHealth {
    fn of(status: Status) -> Self {
        let condition = match status.condition {
            Condition::Starting => "starting",
            Condition::Up => "up",
            Condition::Down => "down",
            Condition::Refused => "refused",
            Condition::Stopped => "stopped",
        };
        let Status { platform, label, since, trouble, .. } = status;
        Self { platform, label, condition, since: since.0, trouble }
    }
}

/// Whether the process is alive
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "server", responses((status = 200, description = "The process is alive", body = Health)))]
pub(super) async fn healthz() -> Result<Response, ApiError> {
    reply(&Health { status: "ok", channels: Vec::new(), damaged: Vec::new() })
}

/// Whether storage answers and accepts writes. For a gateway or worker also: whether the bus is connected; and for a
/// gateway, whether a worker listens
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "server",
    responses(
        (status = 200, description = "Ready", body = Health),
        (status = 503, description = "Not ready, with the reason", body = ErrorBody),
    )
)]
pub(super) async fn readyz(State(app): State<App>) -> Result<Response, ApiError> {
    if app.stopping.load(Ordering::Relaxed) {
        return Err(Error::Stopping.into());
    }
    if let Err(error) = app.engine.ping().await {
        return Err(ApiError::from(error).with_status(StatusCode::SERVICE_UNAVAILABLE));
    }
    if !app.engine.is_listening() {
        let hint = "check the Redis of bus.url or store.url, and its user's permissions; the log says why";
        let message = "the bus cannot be reached, so no turns arrive";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "bus_unheard", message, hint));
    }
    if !app.engine.has_worker().await {
        return Err(Error::NoWorker.into());
    }
    for part in &app.standing.components {
        if let Err(trouble) = part.ping().await {
            let (what, hint) = parted(&trouble).unwrap_or((&trouble, "run `confidant doctor`"));
            let message = format!("{} cannot be reached: {what}", part.name());
            let hint = hint.to_owned();
            return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "part_unavailable", message, hint));
        }
    }
    let damaged = app.standing.damaged.clone();
    let channels = app.standing.channels.all().into_iter().map(ChannelHealth::of).collect();
    reply(&Health { status: "ok", channels, damaged })
}
