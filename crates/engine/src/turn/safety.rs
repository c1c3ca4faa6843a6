//! What is done about harm: the operator's rules, and the words for it.

use confidant_prepare::{Decision, SafetyAction, SafetyRules, SafetyTexts};

/// What is done about harm.
#[derive(Clone, Debug, Default)]
pub struct Safety {
    /// From which score on, what.
    pub rules: SafetyRules,
    /// What the person is told.
    pub texts: SafetyTexts,
}

/// Whether there is no answer but a refusal.
pub(super) fn refuses(decision: &Decision) -> bool {
    decision.has(SafetyAction::TerminateConversation) || decision.has(SafetyAction::RefuseAndRedirect)
}
