//! What is done about harm: the operator's rules, and the words for it.

use super::prepare::{Decision, SafetyAction, SafetyRules, SafetyTexts};

/// What is done about harm.
#[derive(Clone, Debug, Default)]
pub struct Safety {
    /// From which score on, what.
    pub rules: SafetyRules,
    /// What the person is told.
    pub texts: SafetyTexts,
}

/// What a decision says in place of an answer, if it does.
pub(super) fn refusal(safety: &Safety, decision: &Decision, language: &str) -> Option<String> {
    let does = |action| decision.actions.contains(&action);
    let words = if does(SafetyAction::TerminateConversation) {
        safety.texts.terminated(language)
    } else if does(SafetyAction::RefuseAndRedirect) {
        safety.texts.refusal(language)
    } else {
        return None;
    };
    let help = does(SafetyAction::ProvideCrisisResources).then(|| safety.texts.crisis(language));
    Some(help.map_or(words.clone(), |help| format!("{words}\n\n{help}")))
}

/// What is added to an answer.
pub(super) fn help(safety: &Safety, decision: &Decision, language: &str) -> Option<String> {
    decision.actions.contains(&SafetyAction::ProvideCrisisResources).then(|| safety.texts.crisis(language))
}

/// Whether there is no answer but a refusal.
pub(super) fn refuses(decision: &Decision) -> bool {
    let refusing = [SafetyAction::TerminateConversation, SafetyAction::RefuseAndRedirect];
    decision.actions.iter().any(|action| refusing.contains(action))
}
