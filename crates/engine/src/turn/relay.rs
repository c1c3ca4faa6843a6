//! A turn that other processes can hear as well: where its words go besides whoever asked for them here.
//!
//! ```text
//! Outlet ──▶ the one who asked
//!    └──▶ Tap ──▶ Relay: sealed, on a server that processes share ──▶ Session::follow, elsewhere
//! ```
//!
//! Nothing rides on it: how a turn ends is in the log. Which turns are told is decided in `share`. Easy to get wrong: waiting here. A turn
//! says its words at the speed of its model, whatever becomes of them elsewhere.

use std::sync::Arc;

use confidant_display::debug_without_content;
use confidant_seal::{Key, Tag};
use futures_util::future::BoxFuture;

use super::outbound::Outbound;
use crate::store::redis::Buffers;

/// Lets other processes hear turns that run here.
pub(crate) trait Relay: Send + Sync + std::fmt::Debug {
    /// Tells a turn, from now on, to whoever can open its session.
    fn tell(&self, turn: RelayedTurn) -> Box<dyn Tap>;
    /// Nobody hears a turn of this session any more, and who tells one finds out.
    fn silence(&self, scope: Tag) -> BoxFuture<'_, ()>;
    /// Where what is told lies.
    fn buffers(&self) -> &Arc<Buffers>;
}

/// Hears what a turn says.
pub(crate) trait Tap: Send + Sync + std::fmt::Debug {
    /// Says this.
    fn say(&self, event: &Outbound);
}

/// A running turn whose words and events go to everybody who follows it.
pub(crate) struct RelayedTurn {
    /// Its session.
    pub(crate) scope: Tag,
    /// The session's key.
    pub(crate) key: Key,
    /// Its name.
    pub(crate) request_id: String,
    /// What is done when somebody has ended the telling.
    pub(crate) silenced: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>,
}

debug_without_content!(RelayedTurn);
