//! The machine-readable description of this surface, served at `/openapi.json`.
//!
//! Paths come from the routes themselves (see [`build`](super::build)) and schemas from the types that handlers read and
//! send, so neither can be forgotten. Those that stand for the engine's own types are in [`wire`](super::wire).

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi};

use super::app::App;
use super::error::{ErrorBody, OpenAiErrorBody};

/// The description without its paths, which the routes bring.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "Confidant",
        description = "Private memory for AI agents. Every route except health and this description needs a \
                       bearer token, which also decides the tenant. Errors say what happened and what to do \
                       next.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    tags(
        (name = "session", description = "One conversation: turns, decisions, export, erasure"),
        (name = "approval", description = "Tool calls that somebody must approve, in any session"),
        (name = "person", description = "Everything about one person"),
        (name = "openai", description = "Drop-in for OpenAI clients, with memory per `user` or per session"),
        (name = "server", description = "The server itself"),
    ),
    components(schemas(ErrorBody, OpenAiErrorBody)),
    modifiers(&BearerToken)
)]
pub(super) struct Description;

struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut Document) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let bearer = bearer.description(Some(
            "A token made by `confidant token new`, or the one in confidant-data/admin.token",
        ));
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
    }
}

/// This description
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "server",
    responses((status = 200, description = "An OpenAPI 3.1 document", body = Object))
)]
pub(super) async fn document(State(app): State<App>) -> Response {
    let media = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, media)], app.description.clone()).into_response()
}

/// What any route of ours can answer besides success.
pub(super) struct Failures;

impl IntoResponses for Failures {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        failures("Error")
    }
}

/// The same, in OpenAI's form.
pub(super) struct OpenAiFailures;

impl IntoResponses for OpenAiFailures {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        failures("OpenAiError")
    }
}

fn failures(schema: &str) -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
    let texts = [
        ("400", "The request is not valid"),
        ("401", "No token, or an unknown one"),
        ("403", "The token may not do that"),
        ("404", "Not found"),
        ("408", "The body did not arrive in time"),
        (
            "409",
            "The request_id is taken, another turn is running, the approval is decided or expired, or the \
             turn was cancelled, or its session was erased, in the meantime",
        ),
        ("413", "The body is too large"),
        ("415", "The body is not declared as JSON"),
        ("429", "Too many requests; Retry-After says when"),
        ("500", "An internal error, or stored data that was altered"),
        ("502", "The model gave no answer"),
        ("503", "The server is stopping, or the store does not answer"),
        ("504", "Not finished in time; the turn continues"),
        ("507", "The disk is full"),
    ];
    let response = |text: &str| {
        let content = Content::new(Some(Ref::from_schema_name(schema)));
        ResponseBuilder::new().description(text).content("application/json", content).build()
    };
    texts.into_iter().map(|(status, text)| (status.to_owned(), RefOr::T(response(text)))).collect()
}
