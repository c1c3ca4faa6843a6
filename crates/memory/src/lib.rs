//! Memory cards of sessions: redacted, sealed, searchable, and gone when forgotten.
//!
//! A session goes one way, and nothing on it can be left out: only what the [`Gate`] passed can become a [`Card`], only
//! a card that passed a second scan can become an artifact, and only sealed bytes reach a store.
//!
//! ```text
//! session ──▶ redact ──▶ derive the card ──▶ scan again ──▶ seal ──▶ outbox ──▶ blobs ──▶ truth ──▶ index
//! [session]   [gate]     [card]              [gate]         [artifact]          [blobs]   [truth]   [index]
//! ```

pub mod api;
mod artifact;
pub mod blobs;
pub mod card;
mod corrections;
pub mod cost;
mod db;
mod documents;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod gate;
pub mod import;
mod importing;
pub mod index;
mod instances;
mod keys;
mod locator;
mod memory;
mod own;
mod owner;
pub mod private;
mod process;
pub mod queue;
mod recall;
pub mod regular;
mod replaced;
pub mod session;
pub mod source;
mod truth;
mod verify;
pub mod when;
mod witness;
mod written;

pub use api::IndexOf;
pub use card::Card;
pub use confidant_seal::{Key, Roots};
pub use error::{Error, Place};
pub use gate::{Gate, Passed, Redacted};
pub use keys::{KeyState, RootSource};
pub use memory::{CardWriter, Erased, Memory, Parts, Recovered, Undone};
pub use own::OwnMemory;
pub use owner::Owner;
pub use recall::{Recalled, project_tag};
pub use session::Session;
pub use verify::{Checked, Damage, Depth, Lost};
pub use witness::{Act, Witness};

/// What most functions here return.
pub type Result<T> = std::result::Result<T, Error>;
