//! What was found out about a turn, and what was done about harm.

use confidant_engine as engine;
use serde::Serialize;
use utoipa::ToSchema;

/// What was found out about a turn before it was answered.
#[derive(Serialize, ToSchema)]
pub(crate) struct Preparation {
    /// The language of the request, two letters.
    language_code: String,
    /// What it is about.
    category: String,
    /// The model that answers, by its name in the settings.
    selected_model: String,
    /// Why that model.
    selection_reason: String,
    /// How harmful the request is, by kind of harm, 0 to 10.
    harm: Harm,
    /// How likely it is that it tries to manipulate the agent (prompt injection), 0 to 10.
    prompt_injection_chance: f32,
    /// At most 10.
    tags: Vec<String>,
    /// Tools that may help.
    relevant_app_skills: Vec<String>,
    /// Focus modes that may help.
    relevant_app_focus_modes: Vec<String>,
    /// Settings and memories that may help.
    relevant_app_settings_and_memories: Vec<String>,
    /// A title for the conversation, while it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Icons for it, by their Lucide names, while it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    icon_names: Vec<String>,
    /// `model` or `rules`.
    by: PreparedBy,
}

impl From<engine::prepare::Prepared> for Preparation {
    fn from(prepared: engine::prepare::Prepared) -> Self {
        let engine::prepare::Prepared {
            language_code,
            category,
            selected_model,
            selection_reason,
            harm,
            prompt_injection_chance,
            tags,
            relevant_app_skills,
            relevant_app_focus_modes,
            relevant_app_settings_and_memories,
            title,
            icon_names,
            by,
        } = prepared;
        Self {
            language_code,
            category,
            selected_model,
            selection_reason,
            harm: harm.into(),
            prompt_injection_chance,
            tags,
            relevant_app_skills,
            relevant_app_focus_modes,
            relevant_app_settings_and_memories,
            title,
            icon_names,
            by: by.into(),
        }
    }
}

/// Who found it out.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PreparedBy {
    /// The small model.
    Model,
    /// The local rules.
    Rules,
}

mirrors!(prepare::PreparedBy { Model, Rules });

/// A score from 0 to 10 for every kind of harm.
#[derive(Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Harm {
    direct_self_harm: f32,
    indirect_self_harm: f32,
    gradual_escalation_patterns: f32,
    emotional_distress_indicators: f32,
    illegal: f32,
}

impl From<engine::prepare::HarmScores> for Harm {
    fn from(scores: engine::prepare::HarmScores) -> Self {
        let engine::prepare::HarmScores {
            direct_self_harm,
            indirect_self_harm,
            gradual_escalation_patterns,
            emotional_distress_indicators,
            illegal,
        } = scores;
        Self {
            direct_self_harm,
            indirect_self_harm,
            gradual_escalation_patterns,
            emotional_distress_indicators,
            illegal,
        }
    }
}

/// What is done about harmful content.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SafetyAction {
    /// The answer names where to find help.
    ProvideCrisisResources,
    /// A person is asked to look.
    FlagForHumanReview,
    /// The request is declined, and something better offered.
    RefuseAndRedirect,
    /// The conversation takes no more turns.
    TerminateConversation,
}

mirrors!(prepare::SafetyAction {
    ProvideCrisisResources,
    FlagForHumanReview,
    RefuseAndRedirect,
    TerminateConversation,
});
