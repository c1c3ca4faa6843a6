//! Who will read a message, which decides what may be recalled for it (promise 10).

use serde::{Deserialize, Serialize};

/// Who reads a message and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Only the person and the agent.
    Private,
    /// Everyone in the room.
    Room,
}

impl Audience {
    /// Whether something said to `self` may be recalled in an answer that `reader` will read.
    ///
    /// What a room heard may be recalled anywhere; what was said in private stays private, unless the person chose
    /// otherwise for their own memory.
    #[must_use]
    pub fn may_reach(self, reader: Self, sharing: Sharing) -> bool {
        match (self, reader) {
            (Self::Private, Self::Room) => sharing == Sharing::PrivateInRooms,
            _ => true,
        }
    }
}

/// What a person allows for their own memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// What was said in private is left out when a room reads the answer.
    #[default]
    KeepPrivate,
    /// The person switched on that private words may be recalled in rooms.
    PrivateInRooms,
}
