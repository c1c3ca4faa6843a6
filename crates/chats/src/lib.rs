//! Chats that only their owner can read, as the server has them.
//!
//! The server keeps envelopes that it cannot open. It sees ids, revisions, key ids, lengths, hashes, times and counts, and
//! checks with them what it can: that every write follows the one before it, and that a list is the one its head seals. What is
//! inside an envelope is said in `docs/FORMAT.md`, section 10; `confidant-chat-format` has the bytes.
//!
//! ```text
//!                 ┌ service ───────────────────────────┐       ┌ store ───────────────────────────────┐
//!  POST, frames ─▶│ proofs, sessions, sockets, sync    │──────▶│ checks: revisions, key ids, list,    │──▶ chats.db, or PostgreSQL
//!  ◀─── answers ──│ seals records and rings ─▶ vault   │◀──────│ chain, sizes; one transaction        │
//!                 └────────────────────────────────────┘       └──────────────────────────────────────┘
//! ```
//!
//! - [`store`]: where accounts, chats, sessions and one-use codes are kept.
//! - [`vault`]: the server's own keys.
//! - [`service`]: accounts, sessions, sockets and sync, on any transport.
//! - [`answerer`]: who answers: the only part that sees words.
//! - `news`, with PostgreSQL: what one gateway does, the sockets of the others hear of.
//!
//! ```
//! use confidant_chat_format::AccountId;
//! use confidant_chats::store::sqlite::SqliteChats;
//! use confidant_chats::store::{ChatStore, Phase, StoreError};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let store: Box<dyn ChatStore> = Box::new(SqliteChats::open(folder.path())?);
//! let nobody = AccountId::random();
//! assert_eq!(store.lines(&nobody, Phase::Recent).await, Err(StoreError::NotFound));
//! # Ok(())
//! # }
//! ```

pub mod answerer;
#[cfg(any(feature = "postgres", feature = "fuzzing"))]
pub mod news;
pub mod service;
pub mod store;
pub mod vault;
