//! What a turn took of a model.

use confidant_model::Usage;
use serde::{Deserialize, Serialize};

/// Tokens of a turn, as counted here or by the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the answer.
    pub completion_tokens: u32,
}

impl TokenUsage {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
        }
    }
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self { prompt_tokens: usage.prompt, completion_tokens: usage.completion }
    }
}
