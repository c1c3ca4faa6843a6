//! What is known about a conversation as a whole.

use confidant_engine as engine;
use serde::Serialize;
use utoipa::ToSchema;

/// What is known about a conversation as a whole.
#[derive(Serialize, ToSchema)]
pub(crate) struct About {
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Icons for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    icon_names: Vec<String>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    /// Enrichment of its last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    enrichment: Option<Enrichment>,
    /// Whether somebody should look at it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flagged_for_review: bool,
    /// The active focus mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    focus: Option<String>,
    /// Whether it was ended for safety.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    terminated: bool,
}

impl From<engine::About> for About {
    fn from(about: engine::About) -> Self {
        let engine::About { title, icon_names, category, enrichment, flagged_for_review, focus, terminated } =
            about;
        let enrichment = enrichment.map(Enrichment::from);
        Self { title, icon_names, category, enrichment, flagged_for_review, focus, terminated }
    }
}

/// Enrichment of a turn.
#[derive(Serialize, ToSchema)]
pub(crate) struct Enrichment {
    /// Up to 6.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    follow_up_suggestions: Vec<String>,
    /// Up to 6.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    new_chat_suggestions: Vec<String>,
    /// Two or three sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_summary: Option<String>,
    /// At most 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chat_tags: Vec<String>,
    /// For software.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next_step_suggestions: Vec<String>,
    /// 0 to 10.
    harmful_response: f32,
}

impl From<engine::turn::Enrichment> for Enrichment {
    fn from(made: engine::turn::Enrichment) -> Self {
        let engine::turn::Enrichment {
            follow_up_suggestions,
            new_chat_suggestions,
            chat_summary,
            chat_tags,
            next_step_suggestions,
            harmful_response,
        } = made;
        Self {
            follow_up_suggestions,
            new_chat_suggestions,
            chat_summary,
            chat_tags,
            next_step_suggestions,
            harmful_response,
        }
    }
}
