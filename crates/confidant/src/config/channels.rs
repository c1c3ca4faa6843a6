//! `[channels]`: where people talk to the agent. A channel's settings are in a file of its own.

mod discord;
mod matrix;
mod token;

use serde::Deserialize;

pub(crate) use discord::DiscordSection;
pub(crate) use matrix::MatrixSection;

/// The section.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChannelsSection {
    /// Bots on Discord, one table for each.
    pub(crate) discord: Vec<DiscordSection>,
    /// The account on Matrix, if there is one.
    pub(crate) matrix: Option<MatrixSection>,
}

impl ChannelsSection {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.discord.is_empty() && self.matrix.is_none()
    }
}
