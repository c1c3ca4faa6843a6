//! Where replies go, as the inbox keeps it.

use confidant_channel::{Route, Trouble};
use matrix_sdk::ruma::{OwnedEventId, OwnedRoomId, OwnedUserId};
use serde::{Deserialize, Serialize};

/// Where replies to something go.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) room: OwnedRoomId,
    /// What was said.
    pub(crate) event: OwnedEventId,
    /// The first event of the thread that the reply belongs to; none in the main timeline.
    pub(crate) thread: Option<OwnedEventId>,
    /// Who said it.
    pub(crate) asker: OwnedUserId,
    /// Whether nobody else reads there.
    pub(crate) private: bool,
}

impl Place {
    pub(crate) fn route(&self) -> Route {
        Route(serde_json::to_string(self).expect("ids and strings are always JSON"))
    }

    pub(crate) fn of(route: &Route) -> Result<Self, Trouble> {
        // One that does not read was written by another version; nobody can be told.
        serde_json::from_str(&route.0).map_err(|_| Trouble::Gone)
    }
}
