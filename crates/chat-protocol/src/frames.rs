//! What travels: an event with its number, the same on a socket, as a server-sent event and as a posted body.
//!
//! ```text
//! client ──▶ {"id": 7, "event": {"type": "delete_draft", …}}
//! server ◀── {"re": 7, "seq": 815, "event": {"type": "draft_deleted", …}}
//! ```
//!
//! On a socket a frame is one text message; as a server-sent event it is one `data:` line, with `seq` as `id:`; posted,
//! it is the body, and the answers are the lines of the answer. Easy to get wrong: `id` and `seq`. `id` is the client's
//! own count, on one connection; `seq` is the account's, for good.

use crate::events::{ClientEvent, ServerEvent};
use crate::limits::MAX_FRAME;
use crate::shapes::objects;
use crate::wire::peek;

objects! {
    /// A request of a client.
    pub struct ClientFrame (limit MAX_FRAME) {
        /// The client's number for it; answers have it as `re`.
        pub id: u32,
        /// The event.
        pub event: ClientEvent,
    }

    /// An answer, or news.
    pub struct ServerFrame (limit MAX_FRAME) {
        /// The `id` of the request that it answers; left out for news.
        pub re: Option<u32>,
        /// The number of the change in the account, which grows by one with each; left out where nothing changed.
        pub seq: Option<u64>,
        /// The event.
        pub event: ServerEvent,
    }
}

impl ClientFrame {
    /// The `id` of a frame that could not be read, so that the refusal says what it answers. `None` if it has none
    /// either, or is over the limit.
    pub fn id_of(json: &[u8]) -> Option<u32> {
        if json.len() > MAX_FRAME { None } else { peek(json, &["id"])?.parse().ok() }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal),+ $(,)?) => {
        /// Why a server closes a socket: the code of the close frame, which says nothing else.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum CloseCode {
            $($(#[doc = $doc])+ $name,)+
        }

        impl CloseCode {
            /// Every code, with what it means.
            pub const ALL: &[(Self, &str)] = &[$((Self::$name, concat!($($doc),+))),+];

            /// The number.
            pub const fn code(self) -> u16 {
                match self {
                    $(Self::$name => $code,)+
                }
            }
        }
    };
}

codes! {
    /// The server stops, or the device did not keep up. Connect again, perhaps elsewhere, and sync.
    Stopping = 1001,
    /// A frame was over the limit.
    TooLarge = 1009,
    /// `hello` had no valid ticket, or the first frame was something else.
    Unauthorised = 4401,
    /// The session is over; `force_logout` came before.
    LoggedOut = 4403,
    /// No `hello` within five seconds.
    Late = 4408,
    /// Too many frames.
    Rate = 4429,
}
