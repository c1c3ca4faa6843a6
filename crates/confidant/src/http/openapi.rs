//! The machine-readable description of this surface, served at `/openapi.json`.
//!
//! Paths come from the routes themselves (see [`build`](super::build)), so neither can be forgotten. The schemas below
//! stand for types of the engine, which knows nothing of HTTP; a test holds them against what is really sent.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::schema::OneOfBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, OpenApi as Document, Ref, RefOr, ResponseBuilder, Schema};
use utoipa::{IntoResponses, Modify, OpenApi, PartialSchema, ToSchema};

use super::App;
use super::error::{ErrorBody, OpenAiErrorBody};
use super::sessions::WouldErase;

/// The description without its paths, which the routes bring.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "Confidant",
        description = "The private memory of AI agents. Every answer but health and this description wants a bearer \
                       token; the tenant is the token's. Errors say what happened and what to do next.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    tags(
        (name = "session", description = "One conversation: turns, export, erasure"),
        (name = "person", description = "Everything of one person"),
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
        let bearer =
            bearer.description(Some("A token of `confidant token new`, or confidant-data/admin.token"));
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
        ("400", "The request is not acceptable as it is"),
        ("401", "No token, or an unknown one"),
        ("403", "The token may not do that"),
        ("404", "There is nothing of that name"),
        ("408", "The body did not arrive in time"),
        ("409", "The request_id is taken, another turn is running, or the session was erased meanwhile"),
        ("413", "The body is too large"),
        ("415", "The body is not declared as JSON"),
        ("429", "Too many requests; Retry-After says when"),
        ("500", "A fault of this program, or stored data that was altered"),
        ("502", "The model gave no answer"),
        ("503", "Stopping, or the store does not answer"),
        ("504", "Not finished in time; the turn goes on"),
        ("507", "The disk is full"),
    ];
    let response = |text: &str| {
        let content = Content::new(Some(Ref::from_schema_name(schema)));
        ResponseBuilder::new().description(text).content("application/json", content).build()
    };
    texts.into_iter().map(|(status, text)| (status.to_owned(), RefOr::T(response(text)))).collect()
}

/// What an erasure answers: its receipt, or on a dry run what would go.
pub(super) struct Erased;

impl PartialSchema for Erased {
    fn schema() -> RefOr<Schema> {
        let one_of = OneOfBuilder::new().item(Ref::from_schema_name("Receipt"));
        RefOr::T(one_of.item(Ref::from_schema_name("WouldErase")).into())
    }
}

impl ToSchema for Erased {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((ReceiptSchema::name().into_owned(), ReceiptSchema::schema()));
        schemas.push((WouldErase::name().into_owned(), WouldErase::schema()));
    }
}

/// Who reads a message and its answer.
#[derive(ToSchema)]
#[schema(as = Audience, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) enum AudienceSchema {
    /// Only the person and the agent.
    Private,
    /// Everyone in the room.
    Room,
}

/// What memory did in a turn.
#[derive(ToSchema)]
#[schema(as = MemoryState, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) enum MemorySchema {
    /// The turn is in the log.
    Kept,
    /// The turn was asked to go without.
    Off,
    /// The log could not be opened; nothing was recalled and nothing saved over it.
    Unavailable,
    /// The person asked to be forgotten.
    Forgotten,
}

/// How an answer came about.
#[derive(ToSchema)]
#[schema(as = Metadata)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct MetadataSchema {
    /// What memory did in this turn.
    memory: MemorySchema,
    /// Why memory could not be used, by name.
    memory_error: Option<String>,
    /// Who will read the answer.
    audience: AudienceSchema,
    /// The model that answered.
    model: Option<String>,
    /// Messages of the history that the model saw.
    recalled: u64,
    /// Messages that were left out because of the audience.
    #[schema(required = false)]
    withheld: u64,
    /// Room lines that the model saw.
    room_lines: u64,
    /// Whether the answer is the recorded one of an earlier request with the same id.
    #[schema(required = false)]
    replayed: bool,
    /// Whether the turn was cut off before and taken up again.
    #[schema(required = false)]
    resumed: bool,
    /// Parts of the system prompt that failed and were left out.
    #[schema(required = false)]
    failed_aspects: Vec<String>,
    /// Tokens of prompt and answer.
    usage: Option<TokenUsageSchema>,
    /// What was erased, when the person asked to be forgotten.
    receipt: Option<ReceiptSchema>,
}

/// Tokens of a turn.
#[derive(ToSchema)]
#[schema(as = TokenUsage)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct TokenUsageSchema {
    /// Tokens of the prompt.
    prompt_tokens: u32,
    /// Tokens of the answer.
    completion_tokens: u32,
}

/// One message of a room.
#[derive(ToSchema)]
#[schema(as = RoomLine)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct RoomLineSchema {
    /// Who said it, by the platform's own id.
    sender: String,
    /// What was said.
    content: String,
    /// When: Unix time in seconds (milliseconds are recognised).
    #[schema(required = false)]
    timestamp: u64,
    /// Whether the agent itself said it.
    #[schema(required = false)]
    is_bot: bool,
    /// The platform's id of this message, for edits.
    event_id: Option<String>,
    /// The message that this one replaces.
    replaces: Option<String>,
    /// Whether the message was taken back.
    #[schema(required = false)]
    redacted: bool,
}

/// A session's content, decrypted and portable.
#[derive(ToSchema)]
#[schema(as = Export)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ExportSchema {
    /// The form of this document.
    format: String,
    /// Whose memory it is.
    session_id: String,
    /// When it was exported, in milliseconds since 1970.
    exported_at: i64,
    /// The log's version.
    version: u64,
    /// What was said, oldest first.
    messages: Vec<ExportedMessageSchema>,
}

/// One message of an export.
#[derive(ToSchema)]
#[schema(as = ExportedMessage)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ExportedMessageSchema {
    /// `human`, `ai` or `tool`.
    r#type: String,
    /// What was said.
    content: String,
    /// When, in milliseconds since 1970.
    timestamp: i64,
    /// Who could read it.
    audience: AudienceSchema,
    /// The turn it belongs to.
    request_id: String,
    /// The model or tool that spoke.
    name: Option<String>,
    /// Why the message has no answer, if its turn ended without one.
    unanswered: Option<String>,
}

/// Everything that is kept of a person.
#[derive(ToSchema)]
#[schema(as = PersonExport)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct PersonExportSchema {
    /// The form of this document.
    format: String,
    /// Who it is about.
    user_id: String,
    /// When it was exported, in milliseconds since 1970.
    exported_at: i64,
    /// Their sessions.
    sessions: Vec<ExportSchema>,
    /// Sessions of theirs that could not be opened, by the name of the reason.
    #[schema(required = false)]
    unreadable: Vec<String>,
    /// Their memories: cards of sessions, with where the artifacts are.
    #[schema(required = false, value_type = Vec<Object>)]
    memories: Vec<serde_json::Value>,
}

/// Proof of an erasure, which `confidant audit verify` checks.
#[derive(ToSchema)]
#[schema(as = Receipt)]
#[expect(dead_code, reason = "describes a type of the engine")]
pub(super) struct ReceiptSchema {
    /// What was erased: `session` or `person`.
    erased: String,
    /// Whose, as a tag.
    subject: String,
    /// When, in milliseconds since 1970.
    at: i64,
    /// Sessions that went.
    sessions: u64,
    /// Log records that went.
    records: u64,
    /// Access tokens of the person that went.
    tokens: u64,
    /// What was derived from the person's conversations and went, by name, such as `memories`.
    #[schema(required = false)]
    derived: std::collections::BTreeMap<String, u64>,
    /// The data keys that were destroyed, by id.
    keys: Vec<String>,
    /// The lane of the audit log that has the record of it; 0 if missing.
    #[schema(required = false)]
    audit_lane: u32,
    /// That record's sequence.
    audit_seq: u64,
    /// That record's tag.
    audit_tag: String,
    /// Signature over all of the above.
    signature: String,
}
