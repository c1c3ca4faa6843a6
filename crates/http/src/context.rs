//! What is in scope of a conversation: look at it, pin, ask why, forget. And what waits to become everybody's.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use confidant_display::debug_without_content;
use confidant_engine::concepts::ConceptChoice;
use confidant_engine::{Error, Session, UserId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::auth::{Admin, Caller, ConversationOf, Whole, conversation_session};
use super::body::{Json, Params, reply};
use super::error::ApiError;
use super::openapi::Failures;
use super::wire::{ApprovedConcept, Candidate, ScopeReason, ScopeView};

/// Which person's part of a conversation.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WhoseParams {
    /// The person; not needed with a person's own token.
    pub(super) user_id: Option<String>,
}

/// Show the concepts in scope of a conversation
///
/// As one of its members sees them. The access is recorded in the audit log.
#[utoipa::path(
    get, path = "/api/v1/conversation/{conversation_id}/context", operation_id = "show_context", tag = "concepts", security(("bearer" = [])),
    params(("conversation_id" = String, Path, description = "The conversation's id or a session's, percent-encoded"), WhoseParams),
    responses((status = 200, description = "The concepts in scope", body = ScopeView), Failures)
)]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    ConversationOf(ids): ConversationOf,
    Params(params): Params<WhoseParams>,
) -> Result<Response, ApiError> {
    let session = conversation_session(
        &caller,
        &ids,
        params.user_id.as_deref(),
        confidant_engine::access::Permission::Rights,
    )
    .await?;
    let view = app.detached(async move { session.concepts_in_scope().await }).await?;
    reply(&ScopeView::from(view))
}

/// What was forgotten.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Forgotten {
    /// Records of the capture log that were deleted; 0 if there were none.
    forgotten: u64,
}

/// Forget the concepts in scope of a conversation
///
/// Deletes a person's part and its capture log. An administrator who names no person deletes all parts.
#[utoipa::path(
    delete, path = "/api/v1/conversation/{conversation_id}/context", operation_id = "forget_context", tag = "concepts", security(("bearer" = [])),
    params(("conversation_id" = String, Path, description = "The conversation's id or a session's, percent-encoded"), WhoseParams),
    responses((status = 200, description = "How many records were deleted", body = Forgotten), Failures)
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
            let permission = confidant_engine::access::Permission::Rights;
            let session = conversation_session(&caller, &ids, params.user_id.as_deref(), permission).await?;
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
/// It stays in scope until it is unpinned.
#[utoipa::path(
    put, path = "/api/v1/conversation/{conversation_id}/context/pins/{node_id}", operation_id = "pin_concept", tag = "concepts", security(("bearer" = [])),
    params(
        ("conversation_id" = String, Path, description = "The conversation's id or a session's, percent-encoded"),
        ("node_id" = String, Path, description = "The concept's id, percent-encoded"), WhoseParams,
    ),
    responses((status = 200, description = "The concept is pinned", body = Chosen), Failures)
)]
pub(super) async fn pin(
    State(app): State<App>,
    caller: Caller,
    ConversationOf(ids): ConversationOf,
    Params(params): Params<WhoseParams>,
) -> Result<Response, ApiError> {
    choose(&app, &caller, &ids, &params, ConceptChoice::Pin).await
}

/// Unpin a concept
#[utoipa::path(
    delete, path = "/api/v1/conversation/{conversation_id}/context/pins/{node_id}", operation_id = "unpin_concept", tag = "concepts", security(("bearer" = [])),
    params(
        ("conversation_id" = String, Path, description = "The conversation's id or a session's, percent-encoded"),
        ("node_id" = String, Path, description = "The concept's id, percent-encoded"), WhoseParams,
    ),
    responses((status = 200, description = "The concept is no longer pinned", body = Chosen), Failures)
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
    let permission = confidant_engine::access::Permission::Talk;
    let session: Session = conversation_session(caller, ids, params.user_id.as_deref(), permission).await?;
    let node = ids.get(1).cloned().ok_or_else(ApiError::internal)?;
    let found = app.detached(async move { session.choose_concept(&node, choice).await }).await?;
    if !found {
        return Err(not_in_scope());
    }
    reply(&Chosen { pinned: choice == ConceptChoice::Pin })
}

/// Why a concept is in scope.
#[derive(Serialize, ToSchema)]
pub(super) struct Why {
    /// The concept.
    id: String,
    /// What happened, oldest first.
    reasons: Vec<ScopeReason>,
}

/// Ask why a concept is in scope
///
/// The turns that used it, and pins made by hand, as far as the person may see them.
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
    let permission = confidant_engine::access::Permission::Rights;
    let session = conversation_session(&caller, &ids, params.user_id.as_deref(), permission).await?;
    let id = ids.get(1).cloned().ok_or_else(ApiError::internal)?;
    let asked = id.clone();
    let reasons = app.detached(async move { session.why_in_scope(&asked).await }).await?;
    if reasons.is_empty() {
        return Err(not_in_scope());
    }
    reply(&Why { id, reasons: reasons.into_iter().map(ScopeReason::from).collect() })
}

/// Whether somebody is in a conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Member {
    /// Whether they are now.
    member: bool,
}

/// Invite somebody into a conversation
///
/// Shared concepts are in scope for them from now on. For agents, administrators and members. An agent or
/// administrator that speaks for a person adds that person automatically.
#[utoipa::path(
    put, path = "/api/v1/conversation/{conversation_id}/members/{user_id}", operation_id = "invite_member", tag = "concepts", security(("bearer" = [])),
    params(
        ("conversation_id" = String, Path, description = "The conversation's id, percent-encoded"),
        ("user_id" = String, Path, description = "The person, percent-encoded"),
    ),
    responses((status = 200, description = "The person is in the conversation", body = Member), Failures)
)]
pub(super) async fn invite(
    caller: Caller,
    ConversationOf(ids): ConversationOf,
) -> Result<Response, ApiError> {
    let (id, user) = member(&ids)?;
    reply(&Member { member: caller.invite(id, user).await? })
}

/// Remove somebody from a conversation
///
/// With the concepts they added there. For agents, administrators and the person.
#[utoipa::path(
    delete, path = "/api/v1/conversation/{conversation_id}/members/{user_id}", operation_id = "remove_member", tag = "concepts", security(("bearer" = [])),
    params(
        ("conversation_id" = String, Path, description = "The conversation's id, percent-encoded"),
        ("user_id" = String, Path, description = "The person, percent-encoded"),
    ),
    responses((status = 200, description = "The person is not in the conversation", body = Member), Failures)
)]
pub(super) async fn remove(
    State(app): State<App>,
    caller: Caller,
    ConversationOf(ids): ConversationOf,
) -> Result<Response, ApiError> {
    let (id, user) = member(&ids)?;
    let session = caller.leaving(id, user).await?;
    app.detached(async move { session.leave_conversation().await }).await?;
    reply(&Member { member: false })
}

fn member(ids: &[String]) -> Result<(&str, UserId), ApiError> {
    let [id, user] = ids else { return Err(ApiError::internal()) };
    let user = UserId::new(user).map_err(|error| ApiError::from(Error::from(error)).at("user_id"))?;
    Ok((id.as_str(), user))
}

fn not_in_scope() -> ApiError {
    let hint = "GET …/context lists those that are; percent-encode the concept's id";
    ApiError::new(
        StatusCode::NOT_FOUND,
        "not_in_scope",
        "this concept is not in scope of the conversation",
        hint,
    )
}

/// Concepts that wait to be approved.
#[derive(Serialize, ToSchema)]
pub(super) struct Candidates {
    /// By id.
    candidates: Vec<Candidate>,
}

/// List captured concepts that are not in the shared graph
///
/// For administrators; the access is recorded in the audit log.
#[utoipa::path(
    get, path = "/api/v1/concepts/candidates", operation_id = "list_candidates", tag = "concepts", security(("bearer" = [])),
    responses((status = 200, description = "The candidates", body = Candidates), Failures)
)]
pub(super) async fn candidates(State(app): State<App>, admin: Admin) -> Result<Response, ApiError> {
    let candidates = app.detached(async move { admin.administrator.candidates(&admin.tenant).await }).await?;
    reply(&Candidates { candidates: candidates.into_iter().map(Candidate::from).collect() })
}

/// How a candidate becomes public.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ApproveBody {
    /// Its label in the graph; needed where the captured label is a person's own words.
    label: Option<String>,
    /// Other labels; captured ones are not copied.
    #[schema(required = false)]
    alt_labels: Vec<String>,
}

/// Approve a candidate into the shared graph
///
/// For administrators. A concept with personal data in it is refused.
#[utoipa::path(
    post, path = "/api/v1/concepts/{node_id}/approve", operation_id = "approve_concept", tag = "concepts", security(("bearer" = [])),
    params(("node_id" = String, Path, description = "The concept's id, percent-encoded")),
    request_body = ApproveBody,
    responses((status = 200, description = "The concept is in the shared graph", body = ApprovedConcept), Failures)
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
    let approved = app.detached(approving).await?;
    let none = || {
        let hint = "GET /api/v1/concepts/candidates lists them";
        ApiError::new(StatusCode::NOT_FOUND, "no_such_candidate", "no such concept waits for approval", hint)
    };
    reply(&ApprovedConcept::from(approved.ok_or_else(none)?))
}

debug_without_content!(ApproveBody);
