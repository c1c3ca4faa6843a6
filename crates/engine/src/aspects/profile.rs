//! What a person chose to have known of them, for one turn.

use serde::{Deserialize, Serialize};

/// What the person's client sends along, and nothing that it does not. Never stored.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// How they like to learn, such as `visual`.
    pub learning_style: Option<String>,
    /// Interests that they chose to show now.
    pub interests: Vec<String>,
    /// Whose law matters to them, by code, such as `IE`.
    pub jurisdictions: Vec<String>,
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile").finish_non_exhaustive()
    }
}
