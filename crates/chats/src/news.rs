//! News between gateways that share a PostgreSQL: what one of them stores, the sockets of the others hear of.
//!
//! ```text
//! Service ─▶ happened ─▶ outbox ─▶ NOTIFY ─▶ PostgreSQL ─▶ LISTEN ─▶ senders ─▶ Service::hear
//!                        (bounded)                                    (what is lost is noticed)
//! ```
//!
//! - Nobody waits for news to be sent, and nothing is lost without a word: what finds no room becomes "sync". After a connection
//!   broke, what may have been heard is said again, and the service holds its sockets against the store.
//! - The channel has a name that only the server's key makes, and every message a tag under it: whoever else is let into the database
//!   finds nothing to listen to, and says nothing that counts.
//! - A gateway hears what it says itself, too. It leaves that aside, and knows by it that it is connected.
//!
//! Easy to get wrong: a pooler between this and the server. One that lends connections for single transactions loses what
//! is said on them; the gateway then does not hear itself, and says so.

#[cfg(feature = "postgres")]
mod outbox;
#[cfg(feature = "postgres")]
mod postgres;
mod senders;
mod wire;

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

#[cfg(feature = "postgres")]
pub use postgres::PostgresNews;
