//! What a client sends along with a person's message. None of it is ever stored, so nothing here is `Serialize` or `Clone`.

use std::collections::BTreeMap;

use confidant_engine as engine;
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

/// One message of a room.
#[derive(Deserialize, ToSchema)]
pub(crate) struct RoomLine {
    /// Who said it, by the platform's own id.
    sender: String,
    /// What was said.
    content: String,
    /// When: Unix time in seconds (milliseconds are recognised); or as text, such as `2026-11-16T10:00:00Z`.
    #[serde(default, deserialize_with = "engine::room::room_time")]
    timestamp: u64,
    /// Whether the agent itself said it.
    #[serde(default, deserialize_with = "or_default")]
    is_bot: bool,
    /// The platform's id of this message, for edits.
    #[serde(default)]
    event_id: Option<String>,
    /// The message that this one replaces, or with `redacted` deletes; ignored unless it has the same sender.
    #[serde(default)]
    replaces: Option<String>,
    /// Whether the message was deleted.
    #[serde(default, deserialize_with = "or_default")]
    redacted: bool,
}

/// Some programs write `null` for what they do not know.
fn or_default<'de, D: Deserializer<'de>>(source: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(source)?.unwrap_or_default())
}

impl From<RoomLine> for engine::room::RoomLine {
    fn from(line: RoomLine) -> Self {
        let RoomLine { sender, content, timestamp, is_bot, event_id, replaces, redacted } = line;
        Self { sender, content, timestamp, is_bot, event_id, replaces, redacted }
    }
}

/// What a person chose to tell for a turn.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// How they like to learn.
    #[serde(default)]
    learning_style: Option<String>,
    /// Interests that they chose to show.
    #[serde(default)]
    interests: Vec<String>,
    /// The jurisdictions that matter to them, by code.
    #[serde(default)]
    jurisdictions: Vec<String>,
    /// The person's status, such as `self-employed`.
    #[serde(default)]
    persona: Option<String>,
    /// Anything else that the application has to say about them, by name.
    #[serde(default)]
    more: BTreeMap<String, String>,
}

impl From<Profile> for engine::aspects::Profile {
    fn from(profile: Profile) -> Self {
        let Profile { learning_style, interests, jurisdictions, persona, more } = profile;
        Self { learning_style, interests, jurisdictions, persona, more }
    }
}

/// A conversation of the past.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PastChat {
    /// Its title.
    #[serde(default)]
    title: String,
    /// A short summary.
    summary: String,
}

impl From<PastChat> for engine::turn::PastChat {
    fn from(chat: PastChat) -> Self {
        let PastChat { title, summary } = chat;
        Self { title, summary }
    }
}
