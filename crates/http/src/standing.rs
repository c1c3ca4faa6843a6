//! How what is beside the engine is, for `/readyz`.

use confidant_channel::Health;
use serde::Serialize;

/// How what is beside the engine is.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The channels.
    pub channels: Health,
    /// Parts of the data that cannot be opened.
    pub damaged: Vec<Damage>,
}

/// A part that cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Damage {
    /// `concepts`, `memory`, `channels` or `chats`.
    pub part: Part,
    /// What is wrong with it, and what to do about it.
    pub trouble: String,
}

/// What can be damaged without stopping the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = DamagedPart)]
pub enum Part {
    /// `concepts.db`.
    Concepts,
    /// `memory/memory.db` and `memory-keys.db`.
    Memory,
    /// `channels.db`.
    Channels,
    /// `chats.db`, or where chats are kept otherwise.
    Chats,
}

impl Part {
    /// Its name in `doctor`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Concepts => "concepts",
            Self::Memory => "memory",
            Self::Channels => "channels",
            Self::Chats => "chats",
        }
    }

    /// What it keeps of people, as receipts name it.
    #[must_use]
    pub fn derived(self) -> &'static str {
        match self {
            Self::Concepts => "concepts",
            Self::Memory => "memories",
            Self::Channels => "channel_events",
            Self::Chats => "chats",
        }
    }
}
