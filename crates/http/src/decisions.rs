//! Approvals: what waits, and deciding it.
//!
//! Whose word a decision is follows from the token: a person's own, an agent's for the person it speaks for, an
//! administrator's. Somebody who may decide but whose conversation it is not learns what they decide and that it was
//! decided, and nothing of the conversation; to anyone else there is no such approval, whether there is one or not.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use confidant_display::debug_without_content;
use confidant_engine::approval::Decider;
use confidant_engine::turn::CarryOut;
use confidant_engine::{Error, Session};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::{AnswerParams, Running, TurnReply, accepts_events};
use super::app::App;
use super::auth::{Caller, LastId, Reach, Talk};
use super::body::{Json, Params, reply};
use super::error::ApiError;
use super::openapi::Failures;
use super::wire::{Approval, Decision};

/// A decision.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DecisionRequest)]
pub(super) struct DecisionBody {
    /// The approval, as `hitl_request` named it.
    approval_id: String,
    decision: Decision,
    /// Who decides. With a user token: that user only. With an agent token: the person it speaks for, or
    /// else the session's own user. With an admin token: if missing, the administrator.
    #[serde(default)]
    user_id: Option<String>,
    /// The hash of the call as it was shown; a decision on any other call is refused.
    #[serde(default)]
    hash: Option<String>,
    /// Answer as server-sent events, like the query parameter.
    #[serde(default)]
    stream: bool,
}

/// Approvals that wait in a session.
#[derive(Serialize, ToSchema)]
pub(super) struct ApprovalList {
    /// Oldest first.
    approvals: Vec<Approval>,
}

/// List the approvals that wait in a session
#[utoipa::path(
    get, path = "/api/v1/session/{session_id}/approvals", operation_id = "list_approvals", tag = "session", security(("bearer" = [])),
    params(("session_id" = String, Path, description = "The session's id, percent-encoded")),
    responses((status = 200, description = "The waiting approvals", body = ApprovalList), Failures)
)]
pub(super) async fn list(Talk(session): Talk) -> Result<Response, ApiError> {
    let waiting = session.approvals().await?;
    reply(&ApprovalList { approvals: waiting.into_iter().map(Approval::from).collect() })
}

/// Decide an approval of a session
///
/// Only the first decision counts. The turn continues where it stopped, and the reply is that of a turn: JSON or
/// server-sent events, ending with its `final_response` or the next `hitl_request`.
#[utoipa::path(
    post, path = "/api/v1/session/{session_id}/decisions", operation_id = "decide", tag = "session", security(("bearer" = [])),
    params(("session_id" = String, Path, description = "The session's id, percent-encoded"), AnswerParams),
    request_body = DecisionBody,
    responses(
        (status = 200, description = "The turn's result", content((TurnReply = "application/json"), (String = "text/event-stream"))),
        Failures
    )
)]
pub(super) async fn decide(
    State(app): State<App>,
    caller: Caller,
    Talk(session): Talk,
    Params(params): Params<AnswerParams>,
    headers: HeaderMap,
    Json(body): Json<DecisionBody>,
) -> Result<Response, ApiError> {
    let by = caller.whose(body.user_id.as_deref()).await?.decider(&session);
    let running = decided(&session, &body, by, Reach::Conversation).await?;
    running.respond(app, params.stream || body.stream || accepts_events(&headers)).await
}

/// Show an approval
///
/// For everyone who may decide it or use its session.
#[utoipa::path(
    get, path = "/api/v1/approvals/{approval_id}", operation_id = "get_approval", tag = "approval", security(("bearer" = [])),
    params(("approval_id" = String, Path, description = "The approval's id, percent-encoded")),
    responses((status = 200, description = "The approval", body = Approval), Failures)
)]
pub(super) async fn show(caller: Caller, LastId(id): LastId) -> Result<Response, ApiError> {
    let (session, reach) = caller.session_of_approval(&id).await?;
    let request = match reach {
        Reach::Conversation => {
            let mut waiting = session.approvals().await?.into_iter();
            waiting.find(|one| one.approval_id == id).ok_or(Error::NoSuchApproval)?
        }
        Reach::ApprovalOnly => {
            let by = caller.whose(None).await?.decider(&session);
            session.approval(&id, &by).await.map_err(|error| told(error, reach))?
        }
    };
    reply(&Approval::from(request))
}

/// Decide an approval, in any session
///
/// For approvers other than the session's own user, with their own token. An approver who may not use the session learns that
/// the decision counts; the answer goes to the session.
#[utoipa::path(
    post, path = "/api/v1/decisions", operation_id = "decide_anywhere", tag = "approval", security(("bearer" = [])),
    params(AnswerParams),
    request_body = DecisionBody,
    responses(
        (status = 200, description = "The turn's result, or that the decision counts", content((TurnReply = "application/json"), (String = "text/event-stream"))),
        Failures
    )
)]
pub(super) async fn decide_anywhere(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<AnswerParams>,
    headers: HeaderMap,
    Json(body): Json<DecisionBody>,
) -> Result<Response, ApiError> {
    // Before the approval is looked for: a refusal must not say that there is one.
    let whose = caller.whose(body.user_id.as_deref()).await?;
    let (session, reach) = caller.session_of_approval(&body.approval_id).await?;
    let running = decided(&session, &body, whose.decider(&session), reach).await?;
    running.respond(app, params.stream || body.stream || accepts_events(&headers)).await
}

/// Decides; the turn goes on as the returned one, as far as the decider may hear of it.
async fn decided(
    session: &Session,
    body: &DecisionBody,
    by: Decider,
    reach: Reach,
) -> Result<Running, ApiError> {
    let asked = match session.approval(&body.approval_id, &by).await {
        Ok(asked) => Some(asked),
        // Deciding closes it, and says so. Who repeats themself has it carried out, or hears that it was.
        Err(Error::ApprovalExpired | Error::DecidedByYou(_)) => None,
        Err(error) => return Err(told(error, reach)),
    };
    if let (Some(hash), Some(asked)) = (&body.hash, &asked)
        && *hash != asked.hash
    {
        let hint = "read the approval again, and decide on the call it shows";
        let message = "the hash does not match the waiting call, so nothing was decided";
        return Err(ApiError::new(StatusCode::CONFLICT, "hash_mismatch", message, hint));
    }
    let carry_out = match reach {
        Reach::Conversation => CarryOut::Here,
        Reach::ApprovalOnly => CarryOut::Elsewhere,
    };
    let turn = session.decide(&body.approval_id, body.decision.into(), by, carry_out);
    Ok(match asked {
        Some(asked) => Running::named(turn, asked.request_id),
        None => turn.into(),
    })
}

/// An error as far as the caller may know of it.
fn told(error: Error, reach: Reach) -> ApiError {
    match (error, reach) {
        (Error::NotYourApproval, Reach::ApprovalOnly) => Error::NoSuchApproval.into(),
        (error, _) => error.into(),
    }
}

debug_without_content!(DecisionBody { decision });
