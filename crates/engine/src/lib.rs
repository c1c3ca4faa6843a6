//! What a conversation is: sessions, their sealed log, and the life of a turn.
//!
//! An [`Engine`] is opened on a [`Storage`] with a [`KeySource`](keys::KeySource) and a [`Model`](model::Model). Ask it for the [`Session`] of a
//! [`Scope`] and run a [`Turn`]; that is all a channel does. A session is the only door to its data: the stores are
//! private to this crate, and another scope's key does not open the row even if a query is wrong.
//!
//! ```
//! # use std::sync::Arc;
//! # use confidant_engine::*;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let keys = StaticKeys::new(MasterKey::random());
//! let parts = Parts::new(Storage::memory(), Arc::new(keys), Arc::new(model::Extractive::default()));
//! let engine = Engine::open(parts).await?;
//! let scope = Scope::parse(TenantId::new("acme")?, "discord_conv:111")?;
//! let session = engine.session(scope, Actor::cli());
//! let say = |query: &str| TurnRequest { query: query.to_owned(), ..TurnRequest::default() };
//! session.turn(say("Hello, I'm Alice and I prefer Rust")).finish().await?;
//! let answer = session.turn(say("What is my name?")).finish().await?;
//! assert!(answer.content.contains("Alice"));
//! # Ok(()) }
//! ```
//!
//! `examples/remember.rs` does the same with files that last.

mod about;
pub mod approval;
pub mod aspects;
mod audience;
pub mod bus;
pub mod concepts;
mod counts;
mod engine;
mod error;
mod fence;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod head;
mod inner;
mod ledger;
mod notices;
pub mod room;
mod running;
mod settings;
mod staff;
pub mod tools;
pub mod turn;
mod web;

use confidant_store as store;

pub use confidant_model as model;
pub use confidant_prepare as prepare;
pub use confidant_store::clock;

pub use ledger::{access, audit, rights, storage};

pub use about::{About, FocusChange};
pub use confidant_seal::{ChannelName, MasterKey, PlaceId, Scope, ScopeError, TenantId, ThreadId, UserId};
pub use counts::{Counts, TurnTimes};
pub use engine::{Engine, Parts, Stopped, WeakEngine};
pub use error::{Error, OpenError, StoreError, Tampering};
pub use fence::{Fence, is_invisible};
pub use ledger::audit::Actor;
pub use ledger::epoch::Epoch;
pub use ledger::keyring::StaticKeys;
pub use ledger::lifetimes::Lifetimes;
pub use ledger::session::Session;
pub use ledger::storage::Storage;
pub use ledger::web_scope::Keep;
pub use notices::Notice;
pub use settings::{HistoryLimits, Processing, Recovery, Settings, WebCache};
pub use turn::{Recovered, Turn, TurnRequest};
pub use web::{WebSession, WebSessions};

/// Where master keys come from, and the state of the keys that they seal.
pub mod keys {
    pub use confidant_seal::{KeyError, Kid};

    pub use crate::engine::KeyStatus;
    pub use crate::error::KeySourceError;
    pub use crate::ledger::accounts::AccountKeys;
    pub use crate::ledger::channel_keys::ChannelKeys;
    pub use crate::ledger::keyring::{KeySource, MasterKeys, Rotated};
}
