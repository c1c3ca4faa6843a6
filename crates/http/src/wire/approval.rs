//! Tool calls that somebody must approve, and what they decide.

use confidant_engine as engine;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Audience;

/// A tool call that somebody must approve.
#[derive(Serialize, ToSchema)]
pub(crate) struct Approval {
    /// The approval's id.
    approval_id: String,
    /// What to say where there are no buttons: `approve CODE` or `deny CODE`.
    code: String,
    /// The question, in words.
    question: String,
    /// The answers to it.
    options: [Decision; 2],
    /// The tool that would be called.
    tool: String,
    /// With exactly these arguments.
    arguments: Value,
    /// The hash of the call; a decision that includes it applies to this call only.
    hash: String,
    /// Until when it can be decided, in milliseconds since 1970.
    expires_at: i64,
    /// The turn that waits for it.
    request_id: String,
    /// Who was to read the turn's answer.
    audience: Audience,
}

impl From<engine::approval::ApprovalRequest> for Approval {
    fn from(request: engine::approval::ApprovalRequest) -> Self {
        let engine::approval::ApprovalRequest {
            approval_id,
            code,
            question,
            options,
            tool,
            arguments,
            hash,
            expires_at,
            request_id,
            audience,
        } = request;
        Self {
            approval_id,
            code,
            question,
            options: options.map(Decision::from),
            tool,
            arguments,
            hash,
            expires_at: expires_at.0,
            request_id,
            audience: audience.into(),
        }
    }
}

/// What a person decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    /// The call is made.
    Approve,
    /// It is not.
    Deny,
}

mirrors!(approval::Decision { Approve, Deny });

impl From<Decision> for engine::approval::Decision {
    fn from(ours: Decision) -> Self {
        match ours {
            Decision::Approve => Self::Approve,
            Decision::Deny => Self::Deny,
        }
    }
}
