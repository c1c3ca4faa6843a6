//! The Discord channel: what people say to a bot there becomes events of the shared runtime, and replies go back.
//!
//! ```text
//! gateway ──▶ shards ──▶ determine (pure: is this for us?) ──▶ Intake
//! REST    ◀── replies, edits, typing ◀── Channel             catch_up: what was said while we were away
//! ```
//!
//! Discord's types end here: scopes, routes and room lines are all that the rest of the program sees. A person's history is
//! keyed `discord_conv:{user_id}` and follows them from room to room; what was said in a direct message is private, and the
//! engine does not recall it where others read. What is easy to get wrong: the gateway tells some things twice and some
//! not at all (a fresh session has no replay), so everything goes through the inbox by its id, and after every fresh
//! session each room is read back to the last event that was stored.

mod catch_up;
mod channel;
mod check;
mod determine;
mod gateway;
mod page;
mod room;
mod route;
mod settings;
mod shards;
mod slash;
mod trouble;

pub use channel::Discord;
pub use settings::{Isolation, Settings, SettingsError};
