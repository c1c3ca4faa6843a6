//! What every channel shares: events are stored before they are worked on, answered once, and told in good manners.
//!
//! A channel (its own crate) speaks to a platform and implements [`Channel`]. It hands in what people say through an
//! [`Intake`]; the rest happens here:
//!
//! ```text
//! platform ──Event──▶ Intake ──▶ Inbox (sealed, once) ──▶ worker ──▶ Session::turn
//!     ▲                                                      │
//!     └──── send · edit · typing ◀── drafts, parts, nonces ◀─┘
//! ```
//!
//! An event is one row, unique by platform, account and event id. Its content is sealed under the session's own key, so
//! that erasing the session ends it; everything else in the row is a keyed tag or sealed under the channels' key. A worker
//! claims the row, runs the turn under a request id that derives from it, and sends replies under nonces that derive
//! from it: killed at any point, the next start does the same again, and nothing is answered twice. What is easy to get
//! wrong: a row is finished only after its last reply was accepted by the platform, never before.
//!
//! Nothing here logs content, names or ids; a platform's own words go into a [`Trouble`] only if they are known to be
//! about the connection.

mod allowed;
mod backoff;
mod channel;
mod commands;
mod health;
mod inbox;
mod intake;
mod pace;
mod reply;
mod runtime;
mod split;
mod stop;
mod waiting;
mod worker;

pub use allowed::Allowed;
pub use backoff::Backoff;
pub use channel::{
    Channel, Document, Edited, Event, Finding, Keeping, Manners, MessageId, Nonce, Outgoing, OutgoingKind,
    Private, Removed, Route, Said, Trouble,
};
pub use health::{Condition, Health, Status};
pub use inbox::{Cursor, Inbox, InboxError, Lock, Taken, Vault};
pub use intake::Intake;
pub use pace::{Pace, Pacer};
pub use runtime::{Hosted, Runtime};
pub use split::{Measure, split};
pub use stop::Stop;
