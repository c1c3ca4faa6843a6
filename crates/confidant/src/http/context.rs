//! What is in scope of a conversation: look at it, pin, ask why, forget. And what waits to become everybody's.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use confidant_engine::{ApprovedConcept, Candidate, ConceptChoice, Reason, Session};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::App;
use super::auth::{Admin, Caller, ConversationOf, Whole, conversation_session};
use super::body::{Json, Params, reply};
use super::error::ApiError;
use super::openapi::{ApprovedSchema, CandidateSchema, Failures, ReasonSchema, ScopeViewSchema};

/// Whose part of a conversation.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WhoseParams {
    /// Whose; a person's own token says so itself.
    pub(super) user_id: Option<String>,
}

/// Look at what is in scope of a conversation
///
/// As one of those who speak in it sees it. The look is recorded in the audit log.
#[utoipa::path(
    get, path = "/api/v1/conversation/{conversation_id}/context", operation_id = "show_context", tag = "concepts", security(("bearer" = [])),
    params(("conversation_id" = String, Path, description = "The conversation's id or a session's, percent-encoded"), WhoseParams),
    responses((status = 200, description = "What is in scope", body = ScopeViewSchema), Failures)
)]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    ConversationOf(ids): ConversationOf,
    Params(params): Params<WhoseParams>,
) -> Result<Response, ApiError> {
    let session =
        conversation_session(&caller, &ids, params.user_id.as_deref(), confidant_engine::Wish::Rights)
            .await?;
    reply(&app.detached(async move { session.concepts_in_scope().await }).await?)
}

/// What was forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Forgotten {
    /// Records of the capture log that went; 0 if there was nothing.
    forgotten: u64,
}

/// Forget what is in scope of a conversation
///
/// A person's part of it, with the log of how it came about; an administrator who names nobody ends all of it.
#[utoipa::path(
    delete, path = "/api/v1/conversation/{conversation_id}/context", operation_id = "forget_context", tag = "concepts", security(("bearer" = [])),
    params(("conversation_id" = String, Path, description = "The conversation's id or a session's, percent-encoded"), WhoseParams),
    responses((status = 200, description = "How much went", body = Forgotten), Failures)
)]
pub(super) async fn forget(
    State(app): State<App>,
    caller: Caller,
    ConversationOf(ids): ConversationOf,
    Params(params): Params<WhoseParams>,
) -> Result<Response, ApiError> {
    let whole = caller.whole_conversation(&ids, params.user_id.as_deref());
    let forgotten = match whole {
        Some(Whole { administrator, tenant, id }) => {
            app.detached(async move { administrator.erase_conversation_context(&tenant, &id).await }).await?
        }
        None => {
            let wish = confidant_engine::Wish::Rights;
            let session = conversation_session(&caller, &ids, params.user_id.as_deref(), wish).await?;
            app.detached(async move { session.forget_concepts().await }).await?
        }
    };
    reply(&Forgotten { forgotten })
}

/// What was chosen.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Chosen {
    /// Whether it is pinned now.
    pinned: bool,
}

/// Pin a concept in scope
///
/// It stays in scope, whatever else comes.
#[utoipa::path(
    put, path = "/api/v1/conversation/{conversation_id}/context/pins/{node_id}", operation_id = "pin_concept", tag = "concepts", security(("bearer" = [])),
    params(
        ("conversation_id" = String, Path, description = "The conversation's id or a session's, percent-encoded"),
        ("node_id" = String, Path, description = "The concept's id, percent-encoded"), WhoseParams,
    ),
    responses((status = 200, description = "It is pinned", body = Chosen), Failures)
)]
pub(super) async fn pin(
    State(app): State<App>,
    caller: Caller,
    ConversationOf(ids): ConversationOf,
    Params(params): Params<WhoseParams>,
) -> Result<Response, ApiError> {
    choose(&app, &caller, &ids, &params, ConceptChoice::Pin).await
}

/// Let go of a pinned concept
#[utoipa::path(
    delete, path = "/api/v1/conversation/{conversation_id}/context/pins/{node_id}", operation_id = "unpin_concept", tag = "concepts", security(("bearer" = [])),
    params(
        ("conversation_id" = String, Path, description = "The conversation's id or a session's, percent-encoded"),
        ("node_id" = String, Path, description = "The concept's id, percent-encoded"), WhoseParams,
    ),
    responses((status = 200, description = "It goes by its rank again", body = Chosen), Failures)
)]
pub(super) async fn unpin(
    State(app): State<App>,
    caller: Caller,
    ConversationOf(ids): ConversationOf,
    Params(params): Params<WhoseParams>,
) -> Result<Response, ApiError> {
    choose(&app, &caller, &ids, &params, ConceptChoice::Unpin).await
}

async fn choose(
    app: &App,
    caller: &Caller,
    ids: &[String],
    params: &WhoseParams,
    choice: ConceptChoice,
) -> Result<Response, ApiError> {
    let wish = confidant_engine::Wish::Talk;
    let session: Session = conversation_session(caller, ids, params.user_id.as_deref(), wish).await?;
    let node = ids.get(1).cloned().ok_or_else(ApiError::internal)?;
    let found = app.detached(async move { session.choose_concept(&node, choice).await }).await?;
    if !found {
        return Err(not_in_scope());
    }
    reply(&Chosen { pinned: choice == ConceptChoice::Pin })
}

/// Why a concept is in scope.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Why {
    /// The concept.
    id: String,
    /// What happened, oldest first.
    #[schema(value_type = Vec<ReasonSchema>)]
    reasons: Vec<Reason>,
}

/// Ask why a concept is in scope
///
/// The turns that used it and what was done by hand, as far as the person may know them.
#[utoipa::path(
    get, path = "/api/v1/conversation/{conversation_id}/context/why/{node_id}", operation_id = "why_in_scope", tag = "concepts", security(("bearer" = [])),
    params(
        ("conversation_id" = String, Path, description = "The conversation's id or a session's, percent-encoded"),
        ("node_id" = String, Path, description = "The concept's id, percent-encoded"), WhoseParams,
    ),
    responses((status = 200, description = "The reasons", body = Why), Failures)
)]
pub(super) async fn why(
    State(app): State<App>,
    caller: Caller,
    ConversationOf(ids): ConversationOf,
    Params(params): Params<WhoseParams>,
) -> Result<Response, ApiError> {
    let wish = confidant_engine::Wish::Rights;
    let session = conversation_session(&caller, &ids, params.user_id.as_deref(), wish).await?;
    let id = ids.get(1).cloned().ok_or_else(ApiError::internal)?;
    let asked = id.clone();
    let reasons = app.detached(async move { session.why_in_scope(&asked).await }).await?;
    if reasons.is_empty() {
        return Err(not_in_scope());
    }
    reply(&Why { id, reasons })
}

fn not_in_scope() -> ApiError {
    let hint = "GET …/context lists what is; percent-encode the concept's id";
    ApiError::new(
        StatusCode::NOT_FOUND,
        "not_in_scope",
        "this concept is not in scope of the conversation",
        hint,
    )
}

/// Concepts that wait to be approved.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Candidates {
    /// By id.
    #[schema(value_type = Vec<CandidateSchema>)]
    candidates: Vec<Candidate>,
}

/// List what was captured and is not in the shared graph
///
/// For administrators; the look is recorded in the audit log.
#[utoipa::path(
    get, path = "/api/v1/concepts/candidates", operation_id = "list_candidates", tag = "concepts", security(("bearer" = [])),
    responses((status = 200, description = "What waits", body = Candidates), Failures)
)]
pub(super) async fn candidates(State(app): State<App>, admin: Admin) -> Result<Response, ApiError> {
    let candidates = app.detached(async move { admin.administrator.candidates(&admin.tenant).await }).await?;
    reply(&Candidates { candidates })
}

/// How a candidate becomes public.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ApproveBody {
    /// What it is called from now on; needed where the captured label is what a person said.
    label: Option<String>,
    /// What else it is called; what was captured is not taken over.
    #[schema(required = false)]
    alt_labels: Vec<String>,
}

/// Approve a candidate into the shared graph
///
/// For administrators. What has personal data in it is refused.
#[utoipa::path(
    post, path = "/api/v1/concepts/{node_id}/approve", operation_id = "approve_concept", tag = "concepts", security(("bearer" = [])),
    params(("node_id" = String, Path, description = "The concept's id, percent-encoded")),
    request_body = ApproveBody,
    responses((status = 200, description = "It is in the shared graph", body = ApprovedSchema), Failures)
)]
pub(super) async fn approve(
    State(app): State<App>,
    admin: Admin,
    ConversationOf(ids): ConversationOf,
    Json(body): Json<ApproveBody>,
) -> Result<Response, ApiError> {
    let id = ids.first().cloned().ok_or_else(ApiError::internal)?;
    let approving = async move {
        let ApproveBody { label, alt_labels } = body;
        admin.administrator.approve_concept(&admin.tenant, &id, label.as_deref(), &alt_labels).await
    };
    let approved: Option<ApprovedConcept> = app.detached(approving).await?;
    let none = || {
        let hint = "GET /api/v1/concepts/candidates lists those there are";
        ApiError::new(
            StatusCode::NOT_FOUND,
            "no_such_candidate",
            "no such concept waits to be approved",
            hint,
        )
    };
    reply(&approved.ok_or_else(none)?)
}

impl std::fmt::Debug for ApproveBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApproveBody").finish_non_exhaustive()
    }
}
