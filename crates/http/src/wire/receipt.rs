//! Proof of an erasure.

use std::collections::BTreeMap;

use confidant_engine as engine;
use serde::Serialize;
use utoipa::ToSchema;

use super::is_zero;

/// Proof of an erasure, which `confidant audit verify` checks.
#[derive(Serialize, ToSchema)]
pub(crate) struct Receipt {
    /// What was erased: `session` or `person`.
    erased: String,
    /// Whose data, as a tag.
    subject: String,
    /// When, in milliseconds since 1970.
    at: i64,
    /// The number of this erasure in this installation, from 1. What was asked before it, by the same session or person, ended with it.
    #[serde(skip_serializing_if = "is_zero")]
    epoch: u64,
    /// Sessions that were erased.
    sessions: u64,
    /// Log records that were erased.
    records: u64,
    /// Access tokens of the person that were erased.
    tokens: u64,
    /// Derived data that was erased, by kind, such as `memories`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    derived: BTreeMap<String, u64>,
    /// The data keys that were destroyed, by id.
    keys: Vec<String>,
    /// The audit log's lane with the record of this erasure; 0 if missing.
    #[serde(skip_serializing_if = "is_zero")]
    audit_lane: u32,
    /// That record's sequence number.
    audit_seq: u64,
    /// That record's tag.
    audit_tag: String,
    /// Signature over all of the above.
    signature: String,
    /// True in the reply to DELETE, which also names what was deleted; not covered by the signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<bool>,
    /// The session that was deleted, in the reply to DELETE.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The person who was erased, in the reply to DELETE.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
}

impl Receipt {
    /// The reply to the DELETE of a session. What it has besides the receipt is for clients of the older system that
    /// Confidant replaces.
    pub(crate) fn of_session(receipt: engine::rights::Receipt, session_id: String) -> Self {
        Self { deleted: Some(true), session_id: Some(session_id), ..receipt.into() }
    }

    /// The reply to the DELETE of a person.
    pub(crate) fn of_person(receipt: engine::rights::Receipt, user_id: String) -> Self {
        Self { deleted: Some(true), user_id: Some(user_id), ..receipt.into() }
    }
}

impl From<engine::rights::Receipt> for Receipt {
    fn from(receipt: engine::rights::Receipt) -> Self {
        let engine::rights::Receipt {
            erased,
            subject,
            at,
            epoch,
            sessions,
            records,
            tokens,
            derived,
            keys,
            audit_lane,
            audit_seq,
            audit_tag,
            signature,
        } = receipt;
        Self {
            erased,
            subject,
            at: at.0,
            epoch: epoch.number(),
            sessions,
            records,
            tokens,
            derived,
            keys,
            audit_lane: audit_lane.number(),
            audit_seq,
            audit_tag,
            signature,
            deleted: None,
            session_id: None,
            user_id: None,
        }
    }
}
