//! The client of client-sealed chats: a device of a person's account.
//!
//! It registers and logs in, writes and reads chats, syncs, works offline, and believes the server nothing: what it shows
//! has passed every check of `confidant-chat-format`, in the order of the format; what has not is an [`Error`] with a name.
//!
//! ```text
//!   person ─▶ new_chat, say, edit, delete, ask, retry … ─▶ queue ┐                         [chats, asks, queue]
//!                                                               ▼ flush
//!   person ◀─ chat(id) ◀─ rooms, verified ◀─ checks ◀── Transport, Connection ◀──▶ server  [plan, write, send, sync, live, answers]
//!                            │
//!                            ▼
//!                  files, sealed under the device's key                                    [state, room, files]
//! ```
//!
//! 1. [`Device::register`], [`Device::log_in`] or a pairing ([`Offer`]) make a device; [`Device::open`] opens it again.
//! 2. What a person writes waits in a queue that survives a kill. [`Device::flush`] sends it; an answer that was lost is
//!    no second message. Whoever is stored first wins; what lost is in [`Device::copies`].
//! 3. [`Device::sync`] takes in what changed; [`Device::listen`] takes in what happens now.
//! 4. [`Device::ask`] asks for an answer. Its words come as [`News::Turn`]; whole, it is stored by the next flush. Words leave
//!    the device only for a question that is open, on the socket that it went over; anything else is `unasked`. What the server
//!    asks for besides (settings, similar chats, a search) is given by the person's word or by a switch of the chat ([`Consent`]).
//!    A chat of [`Device::new_temporary`] is in memory only, and nothing of it is stored.
//! 5. [`Device::rotate`] replaces the account key; [`Device::export`] and [`Device::erase`] end it all.
//! 6. [`Device::share_snapshot`] shares a branch as it is now with whoever gets its link, and [`open_snapshot`] opens one.
//! 7. A server that lost the account gets it back ([`Device::restore`]); one that shows an older state gets what is here
//!    written again, if the person says so ([`Device::put_back`]).
//!
//! The caller brings the way to the server ([`Transport`]), the files ([`Files`], or a [`Folder`]) and the time. With the
//! feature `http` the crate has a transport of its own, `Http`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use confidant_chat_format::Origin;
//! use confidant_client::{Connection, Credential, Device, Error, Folder, Posted, SessionKeys, Setup, Transport, TransportError};
//!
//! /// A server that is not there.
//! #[derive(Debug)]
//! struct Nowhere(Origin);
//!
//! #[async_trait]
//! impl Transport for Nowhere {
//!     fn origin(&self) -> &Origin {
//!         &self.0
//!     }
//!     async fn post(&self, _: &str, _: Option<&SessionKeys>, _: Vec<u8>) -> Result<Posted, TransportError> {
//!         Err(TransportError::Offline)
//!     }
//!     async fn connect(&self) -> Result<Box<dyn Connection>, TransportError> {
//!         Err(TransportError::Offline)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let setup = Setup {
//!     transport: Arc::new(Nowhere(Origin::parse("https://chat.example")?)),
//!     files: Arc::new(Folder::open(folder.path())?),
//!     key: None,
//!     clock: Arc::new(|| 1_800_000_000_000),
//! };
//! assert!(Device::open(setup.clone())?.is_none(), "nobody logged in here");
//! let password = Credential::password("ana@example.org", "correct horse battery staple")?;
//! assert_eq!(Device::log_in(setup, &password).await.unwrap_err(), Error::Offline);
//! # Ok(())
//! # }
//! ```

mod account;
mod answers;
mod asks;
mod beside;
mod chats;
mod credential;
mod data_requests;
mod device;
mod error;
mod export;
mod files;
#[cfg(feature = "http")]
mod http;
mod kept;
mod live;
mod pair;
mod plan;
mod put_back;
mod queue;
mod restore;
mod room;
mod rotate;
mod send;
mod snapshots;
mod state;
mod sync;
mod temporary;
mod transport;
mod turns;
mod write;

pub use account::{DeviceLine, Registration, TotpChange, WayIn};
pub use asks::{AskOptions, GivenText, focus_switch};
pub use chats::{ChatView, MessageView};
pub use credential::Credential;
pub use data_requests::{Consent, DataRequest};
pub use device::{Clock, Device, Setup};
pub use error::Error;
pub use export::{
    Exported, ExportedChat, ExportedData, ExportedLetter, ExportedMessage, ExportedSnapshot, ExportedWords,
};
pub use files::{Files, Folder};
#[cfg(feature = "http")]
pub use http::{Http, builder as http_builder};
pub use live::News;
pub use pair::Offer;
pub use put_back::PutBack;
pub use queue::{ConflictedCopy, LossReason, OperationKind, WaitingOperation};
pub use restore::{Rest, Restoration, Restored, RingsBack};
pub use snapshots::{SharedSnapshot, SnapshotOptions, SnapshotView, open_snapshot};
pub use sync::{Phase, Synced};
pub use transport::{Connection, Posted, SessionKeys, Transport, TransportError};
pub use turns::{Approval, Asked, Awaited, Awaiting, TurnEvent, TurnUpdate};
