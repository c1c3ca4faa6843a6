//! What preparing a turn finds out, and what it may choose from.

use confidant_display::debug_without_content;
use confidant_model::{OfferedModel, PromptMessage};
use serde::{Deserialize, Serialize};

/// What was found out about a turn. Every name in it exists and is allowed.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    /// The language of the last request, two letters of ISO 639-1 in lower case.
    pub language_code: String,
    /// What it is about: one of the offered categories.
    pub category: String,
    /// Which model is to answer: one of those offered.
    pub selected_model: String,
    /// Why that one, in a sentence.
    pub selection_reason: String,
    /// How harmful the request is, by category, 0 to 10.
    pub harm: HarmScores,
    /// How likely the request or what it quotes tries to take over the agent, 0 to 10.
    pub prompt_injection_chance: f32,
    /// What it is about, in at most 10 tags.
    pub tags: Vec<String>,
    /// Tools that may help.
    pub relevant_app_skills: Vec<String>,
    /// Focus modes that may help.
    pub relevant_app_focus_modes: Vec<String>,
    /// Settings and memories of the person's client that may help.
    pub relevant_app_settings_and_memories: Vec<String>,
    /// A title for the conversation, while it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Icons for it, by their Lucide names, while it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icon_names: Vec<String>,
    /// Who found this out.
    pub by: PreparedBy,
}

/// Who prepared a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreparedBy {
    /// The small model.
    Model,
    /// The local rules.
    Rules,
}

/// A kind of harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Harm {
    /// The person speaks of hurting themself, or asks how.
    DirectSelfHarm,
    /// Hints of it.
    IndirectSelfHarm,
    /// Requests that lead somewhere step by step.
    GradualEscalationPatterns,
    /// Signs of distress.
    EmotionalDistressIndicators,
    /// Something unlawful, or harm to others.
    Illegal,
}

impl Harm {
    /// All of them, in the order of their scores.
    pub const ALL: [Self; 5] = [
        Self::DirectSelfHarm,
        Self::IndirectSelfHarm,
        Self::GradualEscalationPatterns,
        Self::EmotionalDistressIndicators,
        Self::Illegal,
    ];

    /// Its name in settings, forms and metadata.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DirectSelfHarm => "direct_self_harm",
            Self::IndirectSelfHarm => "indirect_self_harm",
            Self::GradualEscalationPatterns => "gradual_escalation_patterns",
            Self::EmotionalDistressIndicators => "emotional_distress_indicators",
            Self::Illegal => "illegal",
        }
    }
}

/// A score from 0 to 10 for every kind of harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HarmScores {
    /// See [`Harm::DirectSelfHarm`].
    pub direct_self_harm: f32,
    /// See [`Harm::IndirectSelfHarm`].
    pub indirect_self_harm: f32,
    /// See [`Harm::GradualEscalationPatterns`].
    pub gradual_escalation_patterns: f32,
    /// See [`Harm::EmotionalDistressIndicators`].
    pub emotional_distress_indicators: f32,
    /// See [`Harm::Illegal`].
    pub illegal: f32,
}

impl HarmScores {
    /// The score of one kind.
    #[must_use]
    pub fn get(&self, harm: Harm) -> f32 {
        match harm {
            Harm::DirectSelfHarm => self.direct_self_harm,
            Harm::IndirectSelfHarm => self.indirect_self_harm,
            Harm::GradualEscalationPatterns => self.gradual_escalation_patterns,
            Harm::EmotionalDistressIndicators => self.emotional_distress_indicators,
            Harm::Illegal => self.illegal,
        }
    }

    /// The score of one kind, to change.
    pub fn get_mut(&mut self, harm: Harm) -> &mut f32 {
        match harm {
            Harm::DirectSelfHarm => &mut self.direct_self_harm,
            Harm::IndirectSelfHarm => &mut self.indirect_self_harm,
            Harm::GradualEscalationPatterns => &mut self.gradual_escalation_patterns,
            Harm::EmotionalDistressIndicators => &mut self.emotional_distress_indicators,
            Harm::Illegal => &mut self.illegal,
        }
    }

    /// The highest of them.
    #[must_use]
    pub fn highest(&self) -> f32 {
        Harm::ALL.into_iter().map(|harm| self.get(harm)).fold(0.0, f32::max)
    }
}

/// What there is to choose from in a turn: nothing else may be chosen.
#[derive(Clone, Default)]
pub struct Offer {
    /// Categories, the first being the one for everything else.
    pub categories: Vec<String>,
    /// Models, the first being the one for everything else.
    pub models: Vec<OfferedModel>,
    /// Tools: name and the first words of the description.
    pub skills: Vec<(String, String)>,
    /// Focus modes.
    pub focus_modes: Vec<String>,
    /// Settings and memories that the person's client says it has, by name.
    pub settings_and_memories: Vec<String>,
}

/// What preparing looks at.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The conversation so far, oldest first.
    pub history: &'a [PromptMessage],
    /// What the person says now.
    pub query: &'a str,
    /// Whether the conversation has no title yet.
    pub wants_title: bool,
}

debug_without_content!(Prepared { by });
debug_without_content!(Offer { categories: categories.len(), models: models.len(), skills: skills.len() });
debug_without_content!(View<'_> { history: history.len() });
