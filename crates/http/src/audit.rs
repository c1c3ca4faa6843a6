//! The audit log over HTTP: who did what in a tenant, for whoever administers it.

use axum::extract::State;
use axum::response::Response;
use confidant_engine::audit::{Action, AuditLine, Lane};
use confidant_engine::rights::AuditCursor;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::app::App;
use super::auth::Admin;
use super::body::{Params, reply};
use super::error::ApiError;
use super::openapi::Failures;
use super::wire::is_zero;

/// Which records.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditParams {
    /// The `next` of the previous page; if missing, the first page.
    after: Option<String>,
    /// How many at most: 100 if missing, 1000 at most.
    limit: Option<usize>,
    /// The newest records instead, of all lanes and oldest first, on one page. Among many of other tenants, a few may be missing.
    newest: bool,
}

/// A page of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditRecords {
    /// The records, lane by lane and oldest first. A page may have fewer than asked for, and even none, before the end.
    records: Vec<AuditRecord>,
    /// Where the next page begins; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One record: who did what to whose data, without the data.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditRecord {
    /// The lane (chain) it is in; missing for 0.
    #[serde(skip_serializing_if = "is_zero")]
    lane: u32,
    /// Its sequence number in that chain.
    seq: u64,
    /// When, in milliseconds since 1970.
    at: i64,
    /// Who: `token:ID`, `cli`, `system` or a channel.
    actor: String,
    /// What, such as `session.exported`.
    #[schema(value_type = String)]
    action: Action,
    /// To which session or person, as a tag in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    /// In which tenant, as a tag in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    /// How many items it was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// Why, in a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The record's tag in hex, which the next record's seal binds.
    tag: String,
}

impl From<AuditLine> for AuditRecord {
    fn from(line: AuditLine) -> Self {
        let AuditLine { lane, seq, record, tag } = line;
        let confidant_engine::audit::AuditRecord { at, actor, action, subject, tenant, count, reason } =
            record;
        let (lane, at, actor) = (lane.number(), at.0, actor.as_str().to_owned());
        Self { lane, seq, at, actor, action, subject, tenant, count, reason, tag }
    }
}

/// Read the audit log
///
/// The records of the administrator's own tenant, page by page. Records about the whole installation are on its command line
/// (`confidant audit show`). Records of old versions, which did not note the tenant, are not included. Reading is
/// recorded, too.
#[utoipa::path(
    get, path = "/api/v1/audit", operation_id = "read_audit", tag = "server", security(("bearer" = [])),
    params(AuditParams),
    responses((status = 200, description = "A page of the log", body = AuditRecords), Failures)
)]
pub(super) async fn list(
    State(app): State<App>,
    Admin { administrator, tenant }: Admin,
    Params(params): Params<AuditParams>,
) -> Result<Response, ApiError> {
    let limit = params.limit.unwrap_or(100).clamp(1, 1000);
    if params.newest {
        if params.after.is_some() {
            let hint = "give one of them";
            return Err(ApiError::invalid("`newest` and `after` cannot be given together", hint));
        }
        let lines = app.detached(async move { administrator.audit_tail(&tenant, limit).await }).await?;
        return reply(&AuditRecords {
            records: lines.into_iter().map(AuditRecord::from).collect(),
            next: None,
        });
    }
    let after = params.after.as_deref().map(cursor).transpose()?;
    let page = app.detached(async move { administrator.audit_page(&tenant, after, limit).await }).await?;
    let next = page.next.map(|at| format!("{}.{}.{}", at.lane.number(), at.after, at.until));
    let records = page.lines.into_iter().map(AuditRecord::from).collect();
    reply(&AuditRecords { records, next })
}

fn cursor(text: &str) -> Result<AuditCursor, ApiError> {
    let mut parts = text.splitn(3, '.');
    let mut place = || {
        let lane = Lane::new(parts.next()?.parse().ok()?);
        Some(AuditCursor { lane, after: parts.next()?.parse().ok()?, until: parts.next()?.parse().ok()? })
    };
    place().ok_or_else(|| {
        ApiError::invalid(
            "`after` is not the start of a page",
            "give the `next` of the previous page, unchanged",
        )
    })
}
