//! The state of the parts apart from the engine, for `/readyz`.

use std::sync::Arc;

use async_trait::async_trait;
use confidant_channel::Health;
use serde::Serialize;

/// A part of the server, apart from the engine, that has to answer before the server is ready.
#[async_trait]
pub trait Component: Send + Sync + std::fmt::Debug {
    /// What it is called, such as `chats`.
    fn name(&self) -> &'static str;
    /// Whether it answers; else what is wrong, and what to do.
    async fn ping(&self) -> Result<(), String>;
    /// How many there are of what it counts, for Prometheus.
    fn gauges(&self) -> Vec<Gauge>;
}

/// How many there are of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    /// Its name, without the program's.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// How many there are now.
    pub value: u64,
}

/// The state of the parts apart from the engine.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Asked at each `/readyz` and each scrape.
    pub components: Vec<Arc<dyn Component>>,
    /// The channels.
    pub channels: Health,
    /// Parts of the data that cannot be opened.
    pub damaged: Vec<Damage>,
    /// What data and keys are kept in, where that is known.
    pub stores: Option<Stores>,
}

/// What data and keys are kept in: `sqlite`, `redis`, `postgres` or `memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Stores {
    /// Conversations.
    pub data: &'static str,
    /// Their keys.
    pub keyring: &'static str,
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
