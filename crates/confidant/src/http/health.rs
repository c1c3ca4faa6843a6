//! Whether the process lives, and whether it can work.

use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::Response;
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
}

const FINE: Health = Health { status: "ok" };

/// Whether the process lives
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "server", responses((status = 200, description = "It does", body = Health)))]
pub(super) async fn healthz() -> Result<Response, ApiError> {
    reply(&FINE)
}

/// Whether storage answers and turns are taken
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
    app.engine.ping().await?;
    reply(&FINE)
}
