//! `[history]`: how much of a conversation is kept and recalled.

use confidant_engine::HistoryLimits;
use serde::de::{Deserialize, Deserializer, Error as _};

#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HistorySection {
    #[serde(deserialize_with = "at_least_two")]
    pub(crate) max_messages: usize,
    token_budget: u32,
}

impl HistorySection {
    pub(crate) fn limits(&self) -> HistoryLimits {
        HistoryLimits { max_messages: self.max_messages, token_budget: self.token_budget }
    }
}

impl Default for HistorySection {
    fn default() -> Self {
        Self { max_messages: 100, token_budget: 6000 }
    }
}

fn at_least_two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let messages = usize::deserialize(deserializer)?;
    if messages < 2 {
        return Err(D::Error::custom("fewer than 2 messages is too few; hint: give at least 2"));
    }
    Ok(messages)
}
