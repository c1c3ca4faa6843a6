//! The receipt that proves an erasure.

use std::collections::BTreeMap;

use confidant_seal::{Kid, Tag};
use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::ledger::audit::Lane;
use crate::ledger::epoch::Epoch;

/// Proof of an erasure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// What was erased: `session`, `person`, or `concepts` of a chat that only its owner can open.
    pub erased: String,
    /// Whose, as a tag: only the keyring can tell whom it stands for.
    pub subject: String,
    /// When.
    pub at: Millis,
    /// Which erasure of this installation it was, counted from 1; whatever was asked before it ended with it.
    #[serde(skip_serializing_if = "is_uncounted", default)]
    pub epoch: Epoch,
    /// Sessions that went.
    pub sessions: u64,
    /// Log records that went.
    pub records: u64,
    /// Access tokens of the person that went.
    pub tokens: u64,
    /// What was derived from the person's conversations and went, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub derived: BTreeMap<String, u64>,
    /// The data keys that were destroyed, by id.
    pub keys: Vec<String>,
    /// The lane of the audit log that has the record of it.
    #[serde(skip_serializing_if = "Lane::is_zero", default)]
    pub audit_lane: Lane,
    /// That record's sequence.
    pub audit_seq: u64,
    /// That record's tag.
    pub audit_tag: String,
    /// Signature with the audit key over all of the above.
    pub signature: String,
}

impl Receipt {
    /// Of nothing yet but these keys; not signed.
    pub(super) fn of(erased: &str, subject: Tag, keys: &[Kid]) -> Self {
        Self {
            erased: erased.to_owned(),
            subject: subject.to_string(),
            at: Millis(0),
            epoch: Epoch::default(),
            sessions: 0,
            records: 0,
            tokens: 0,
            derived: BTreeMap::new(),
            keys: keys.iter().map(Kid::to_string).collect(),
            audit_lane: Lane::ZERO,
            audit_seq: 0,
            audit_tag: String::new(),
            signature: String::new(),
        }
    }
}

/// Whether it is a receipt from before erasures were counted.
fn is_uncounted(epoch: &Epoch) -> bool {
    *epoch == Epoch::default()
}
