//! Connections: accepted, bounded in number and patience, and let go of in good order.
//!
//! ```text
//!  accept ─▶ a place ─▶ requests ─▶ router        stop: accept nothing more, finish what is under way,
//!            [places]   [listen]      │                 tell sockets, wait for them
//!                          upgrade    ▼
//!                          Connection::keep ─▶ Kept: a socket's place, and its stop signal
//! ```
//!
//! This is `axum::serve` with what that leaves out. A client that opens a connection and says nothing, or says it a byte
//! at a time, is not waited for forever and cannot take all the places. Health can be asked for even when they are all
//! taken. A connection that has become a socket still counts, and a stop waits for it.
//!
//! Easy to get wrong: an upgraded connection ends for HTTP. Whoever takes it over must hold its [`Kept`] as long as the
//! socket is open, or it is in nobody's count and a stop cuts it off without a word.

mod kept;
mod listen;
mod places;

pub use kept::{Connection, Kept};
pub use listen::{Crowded, listen};
pub use places::PlaceLimits;
