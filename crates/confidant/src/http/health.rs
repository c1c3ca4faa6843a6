//! Whether the process lives, and whether it can work.

use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use confidant_channel::{Condition, Status};
use confidant_engine::Error;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::body::reply;
use super::error::{ApiError, ErrorBody};

/// How the server is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: &'static str,
    /// How each channel is. One that is down does not make the server unready: it is tried again for ever.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<ChannelHealth>,
}

/// How a channel is.
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
    /// What is wrong, and what to do about it. One that is up may lack something all the same.
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

/// Whether the process lives
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "server", responses((status = 200, description = "It does", body = Health)))]
pub(super) async fn healthz() -> Result<Response, ApiError> {
    reply(&Health { status: "ok", channels: Vec::new() })
}

/// Whether storage answers and takes writes, and turns are taken: for a gateway or worker, whether the bus is heard
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
        let hint = "check the Redis of bus.url, or store.url, and what its user may do: the log says why";
        let message = "the bus cannot be heard, so no turn comes through";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "bus_unheard", message, hint));
    }
    let channels = app.channels.all().into_iter().map(ChannelHealth::of).collect();
    reply(&Health { status: "ok", channels })
}
