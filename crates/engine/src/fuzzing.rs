//! Inner doors for the fuzz targets. No stable interface.

use crate::clock::Millis;
use crate::model::Block;
use crate::room::{Asker, RoomContext, RoomLimits, is_invisible};

/// The block that a model would read of a room, with its tokens; the present is `now`.
#[must_use]
pub fn room_block(
    room: RoomContext,
    user: &str,
    query: &str,
    now: Millis,
    limits: RoomLimits,
    budget: u32,
) -> Option<(Block, u32)> {
    room.into_block(&Asker { user, query, now }, limits, budget)
}

/// Whether a model sees this character and a person does not.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    is_invisible(c)
}
