//! Who reads.

use confidant_engine as engine;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who reads a message and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Audience {
    /// Only the person and the agent.
    Private,
    /// Everyone in the room.
    Room,
}

mirrors!(room::Audience { Private, Room });

impl From<Audience> for engine::room::Audience {
    fn from(ours: Audience) -> Self {
        match ours {
            Audience::Private => Self::Private,
            Audience::Room => Self::Room,
        }
    }
}
