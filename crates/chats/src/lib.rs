//! Chats that only their owner can read, as the server has them.
//!
//! The server keeps envelopes that it cannot open. It sees ids, revisions, key ids, lengths, hashes, times and counts, and
//! checks with them what it can: that every write follows the one before it, and that a list is the one its head seals. What is
//! inside an envelope is said in `docs/FORMAT.md`, section 10; `confidant-chat-format` has the bytes.
//!
//! ```text
//!  device ──write──▶ [checks: revisions, key ids, list, chain, sizes] ──one transaction──▶ chats.db
//!  device ◀──sync─── changes since …, heads, items, trail                                     │
//!                    erase: every row of an account, and its traces in pages and journal ─────┘
//! ```
//!
//! So far the crate has the [`store`]: where accounts, chats, sessions and one-use codes are kept.
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

pub mod store;
