//! The Matrix channel: what people say to the account becomes events of the shared runtime, and replies go back.
//!
//! ```text
//! sync ──▶ listen ──▶ heard (parse) ──▶ determine (pure: is this for us?) ──▶ Intake
//! send ◀── replies, edits, typing ◀── Channel             catch_up: what was said while we were away
//! ```
//!
//! Matrix's types end here: scopes, routes and room lines are all that the rest of the program sees. A person's history is
//! keyed `{room_id}:{thread or main}:{user_id}`. The SDK keeps keys and room states in its own databases under a key of
//! ours; who we are signed in as, and the recovery key, are in the vault. What is easy to get wrong: the SDK notes how far
//! it has read before anybody has worked on what it read, so after every start each room is read back to the last event
//! that was stored, and everything goes through the inbox by its id.
#![recursion_limit = "256"]

mod believed;
mod catch_up;
mod channel;
mod check;
mod content;
mod determine;
mod heard;
mod html;
mod identity;
mod invites;
mod listen;
mod people;
mod room;
mod route;
mod settings;
mod sign_in;
mod trouble;
mod undecrypted;
mod verification;
mod walk;

pub use channel::{LogIn, Matrix};
pub use identity::RecoveryKey;
pub use people::People;
pub use settings::{Credential, Settings, SettingsError};
pub use sign_in::SignedIn;
