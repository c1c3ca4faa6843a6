//! A person's rights, over all their sessions in a tenant.

use axum::extract::State;
use axum::response::Response;

use super::app::App;
use super::auth::Person;
use super::body::{Params, reply};
use super::error::ApiError;
use super::openapi::Failures;
use super::sessions::{EraseParams, Erased, WouldErase};
use super::wire::{PersonExport, Receipt};

/// Export everything that is kept about a person
#[utoipa::path(
    get, path = "/api/v1/person/{user_id}/export", operation_id = "export_person", tag = "person", security(("bearer" = [])),
    params(("user_id" = String, Path, description = "The person's id, percent-encoded")),
    responses((status = 200, description = "All their sessions; none if nothing is kept", body = PersonExport), Failures)
)]
pub(super) async fn export(State(app): State<App>, person: Person) -> Result<Response, ApiError> {
    let export = app.detached(async move { person.export().await }).await?;
    reply(&PersonExport::from(export))
}

/// Erase a person everywhere
///
/// Their sessions in every channel, the keys of these sessions, and the person's tokens.
#[utoipa::path(
    delete, path = "/api/v1/person/{user_id}", operation_id = "erase_person", tag = "person", security(("bearer" = [])),
    params(("user_id" = String, Path, description = "The person's id, percent-encoded"), EraseParams),
    responses((status = 200, description = "The receipt, or what would be erased", body = Erased), Failures)
)]
pub(super) async fn erase(
    State(app): State<App>,
    person: Person,
    Params(params): Params<EraseParams>,
) -> Result<Response, ApiError> {
    if params.dry_run {
        let (sessions, derived) = (person.count().await?, person.count_derived().await?);
        let would = WouldErase { dry_run: true, erased: "person", sessions, messages: None, derived };
        return reply(&Erased::DryRun(would));
    }
    let user_id = person.user_id().to_owned();
    let receipt = app.detached(async move { person.erase().await }).await?;
    reply(&Erased::Done(Box::new(Receipt::of_person(receipt, user_id))))
}
