//! What every part that talks to PostgreSQL needs. It knows no table: each part brings its own migrations and statements.
//!
//! ```text
//!  PostgresAddress, Link     where a database is, and how it is used
//!        │
//!        ▼                   ┌ query: one statement, one round trip
//!      Pool ─── connections ─┤
//!        │                   └ tries: a transaction of a few batches, begun again when it was in somebody's way
//!        ├─ migrate, is_there, check
//!        └─ listen: what others say, on a connection of its own
//! ```
//!
//! - Connections are encrypted and the server's certificate is checked, unless the server is this machine.
//! - What fails is said in our words and by the server's codes: a server's message may quote a value.
//!
//! Without the feature `driver` there is an address that nobody can have, so that programs are built without PostgreSQL and
//! say so.
//!
//! What is easy to get wrong: a write whose reply is lost may have happened. Only one that was never sent, or whose commit was
//! never sent, may be reported as not written.

#[cfg_attr(not(feature = "driver"), path = "disabled.rs")]
mod address;
mod error;
mod link;
#[cfg(feature = "driver")]
mod listen;
#[cfg(feature = "driver")]
mod migrations;
#[cfg(feature = "driver")]
mod pool;
#[cfg(feature = "driver")]
mod tls;
#[cfg(feature = "driver")]
mod transaction;

pub use address::PostgresAddress;
pub use error::PostgresError;
pub use link::Link;
#[cfg(feature = "driver")]
pub use listen::{Ear, Voice};
#[cfg(feature = "driver")]
pub use migrations::{is_there, migrate};
#[cfg(feature = "driver")]
pub use pool::{Args, For, Pool, check, failure};
#[cfg(feature = "driver")]
pub use transaction::{Ask, Failed, Transaction, Tries};
