//! A session's rights: a portable copy, and its end.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use confidant_engine::Error;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::auth::Own;
use super::body::{Params, reply};
use super::error::ApiError;
use super::openapi::Failures;
use super::wire::{About, Export, Receipt};

/// Whether to erase, or only show what would be erased.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EraseParams {
    /// Erase nothing; show what would be erased.
    pub(super) dry_run: bool,
}

/// The receipt of an erasure, or with `dry_run` what would be erased.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Erased {
    Done(Box<Receipt>),
    DryRun(WouldErase),
}

/// What would be erased.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WouldErase {
    /// Always true: nothing was erased.
    pub(super) dry_run: bool,
    /// `session` or `person`.
    pub(super) erased: &'static str,
    /// Sessions that would be erased.
    pub(super) sessions: u64,
    /// Messages that would be erased, if they can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) messages: Option<u64>,
    /// Derived data that would be erased, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) derived: BTreeMap<String, u64>,
}

/// Export a session
///
/// Decrypted and portable. The export itself is recorded in the audit log.
#[utoipa::path(
    get, path = "/api/v1/session/{session_id}/export", operation_id = "export_session", tag = "session", security(("bearer" = [])),
    params(("session_id" = String, Path, description = "The session's id, percent-encoded")),
    responses((status = 200, description = "The session's content", body = Export), Failures)
)]
pub(super) async fn export(State(app): State<App>, Own(session): Own) -> Result<Response, ApiError> {
    let export = app.detached(async move { session.export().await }).await?;
    reply(&Export::of_session(export.ok_or_else(nothing)?))
}

/// Show what is known about a session as a whole
///
/// Title, icons, category, and enrichment of the last turn: suggestions, summary, tags. The access is recorded in the
/// audit log.
#[utoipa::path(
    get, path = "/api/v1/session/{session_id}/about", operation_id = "about_session", tag = "session", security(("bearer" = [])),
    params(("session_id" = String, Path, description = "The session's id, percent-encoded")),
    responses((status = 200, description = "What is known about the session", body = About), Failures)
)]
pub(super) async fn about(State(app): State<App>, Own(session): Own) -> Result<Response, ApiError> {
    let about = app.detached(async move { session.about().await }).await?;
    reply(&About::from(about.ok_or_else(nothing)?))
}

/// Erase a session
///
/// Destroys its key, its log and every copy in memory. Erasing a missing session is not an error: the receipt says 0.
#[utoipa::path(
    delete, path = "/api/v1/session/{session_id}", operation_id = "erase_session", tag = "session", security(("bearer" = [])),
    params(("session_id" = String, Path, description = "The session's id, percent-encoded"), EraseParams),
    responses((status = 200, description = "The receipt, or what would be erased", body = Erased), Failures)
)]
pub(super) async fn erase(
    State(app): State<App>,
    Own(session): Own,
    Params(params): Params<EraseParams>,
) -> Result<Response, ApiError> {
    if !params.dry_run {
        let session_id = session.id();
        let receipt = app.detached(async move { session.erase().await }).await?;
        return reply(&Erased::Done(Box::new(Receipt::of_session(receipt, session_id))));
    }
    // Looking is reading: the engine records it as such.
    let (sessions, messages) = match session.view().await {
        Ok(Some(export)) => (1, Some(export.messages.len() as u64)),
        Ok(None) => (0, Some(0)),
        Err(Error::Tampered(_)) => (1, None),
        Err(error) => return Err(error.into()),
    };
    let derived = session.count_derived().await?;
    let would = WouldErase { dry_run: true, erased: "session", sessions, messages, derived };
    reply(&Erased::DryRun(would))
}

fn nothing() -> ApiError {
    let hint = "check the session id and the token's tenant; it may also have expired or been erased";
    ApiError::new(StatusCode::NOT_FOUND, "not_found", "nothing is kept under this session id", hint)
}
