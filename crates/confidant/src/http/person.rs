//! A person's rights, over all their sessions in a tenant.

use axum::extract::State;
use axum::response::Response;

use super::App;
use super::auth::Person;
use super::body::{Params, reply};
use super::error::ApiError;
use super::openapi::{Erased, Failures, PersonExportSchema};
use super::sessions::{EraseParams, WouldErase};

/// Export everything that is kept of a person
#[utoipa::path(
    get, path = "/api/v1/person/{user_id}/export", operation_id = "export_person", tag = "person", security(("bearer" = [])),
    params(("user_id" = String, Path, description = "The person's id, percent-encoded")),
    responses((status = 200, description = "All their sessions; none if nothing is kept", body = PersonExportSchema), Failures)
)]
pub(super) async fn export(State(app): State<App>, person: Person) -> Result<Response, ApiError> {
    reply(&app.detached(async move { person.export().await }).await?)
}

/// Erase a person everywhere
///
/// Their sessions in every channel, the keys of those, and the tokens that were made for them.
#[utoipa::path(
    delete, path = "/api/v1/person/{user_id}", operation_id = "erase_person", tag = "person", security(("bearer" = [])),
    params(("user_id" = String, Path, description = "The person's id, percent-encoded"), EraseParams),
    responses((status = 200, description = "The receipt, or what would go", body = Erased), Failures)
)]
pub(super) async fn erase(
    State(app): State<App>,
    person: Person,
    Params(params): Params<EraseParams>,
) -> Result<Response, ApiError> {
    if params.dry_run {
        let (sessions, derived) = (person.count().await?, person.count_derived().await?);
        return reply(&WouldErase { dry_run: true, erased: "person", sessions, messages: None, derived });
    }
    reply(&app.detached(async move { person.erase().await }).await?)
}
