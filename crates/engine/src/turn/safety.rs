//! What is done about harm: the operator's rules, and the words for it.

use confidant_prepare::{Decision, RunningHarm, SafetyAction, SafetyRules, SafetyTexts};
use serde::{Deserialize, Serialize};

/// What is done about harm.
#[derive(Clone, Debug, Default)]
pub struct Safety {
    /// From which score on, what.
    pub rules: SafetyRules,
    /// What the person is told.
    pub texts: SafetyTexts,
}

/// How harmful a conversation has been, without a word of it: for whoever keeps that longer than its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SafetyRecord {
    /// The running scores.
    pub harm: RunningHarm,
    /// Whether somebody should look at it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub flagged_for_review: bool,
    /// Whether it was ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub terminated: bool,
}

impl SafetyRecord {
    /// What two records of one conversation come to: the scores of the later, and all that was ever done.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            harm: self.harm.later(other.harm),
            flagged_for_review: self.flagged_for_review || other.flagged_for_review,
            terminated: self.terminated || other.terminated,
        }
    }
}

/// Whether there is no answer but a refusal.
pub(super) fn refuses(decision: &Decision) -> bool {
    decision.has(SafetyAction::TerminateConversation) || decision.has(SafetyAction::RefuseAndRedirect)
}
