//! `[room_context]`: how much of a room goes into a prompt.

use std::time::Duration;

use confidant_engine::room::RoomLimits;
use serde::Deserialize;

use super::seconds;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RoomContextSection {
    /// The newest lines to keep; 0 is none.
    pub(crate) limit: usize,
    #[serde(rename = "max_age_seconds", deserialize_with = "seconds::maybe")]
    max_age: Option<Duration>,
}

impl RoomContextSection {
    pub(crate) fn limits(&self) -> RoomLimits {
        RoomLimits { lines: self.limit, max_age_seconds: self.max_age.map(|age| age.as_secs()) }
    }
}

impl Default for RoomContextSection {
    fn default() -> Self {
        Self { limit: 20, max_age: None }
    }
}
