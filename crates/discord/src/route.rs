//! Where replies go, as the inbox keeps it.

use confidant_channel::{Route, Trouble};
use serde::{Deserialize, Serialize};
use twilight_model::id::Id;
use twilight_model::id::marker::{ApplicationMarker, ChannelMarker, MessageMarker};

/// Where replies to something go.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Place {
    /// Under a message.
    Message {
        channel: Id<ChannelMarker>,
        message: Id<MessageMarker>,
        /// Whether it is a direct message.
        direct: bool,
    },
    /// To a slash command, for the one who gave it alone.
    Interaction { application: Id<ApplicationMarker>, token: String },
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
