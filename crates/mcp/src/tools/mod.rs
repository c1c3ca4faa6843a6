//! Tools of MCP servers, for the engine to offer to models.
//!
//! ```text
//! McpToolbox ── supervise ── Listener, rmcp ── Contained ── Trim ── Process ── keeper ── the server's program
//!   call, tools    connect,     the            what may      less of   or Http ─────────── the server
//!                  list, again  protocol       come through  it
//! ```
//!
//! A server is somebody else's code, and what it sends may have been written by anybody. So nothing of it is believed
//! further than needed: messages are cut while they are read, requests from it are refused, one that hangs, floods or
//! dies takes nothing with it but its own tools, and nothing that it says reaches a log. What its tools may be used for
//! is not decided here: the engine offers, asks the rules, checks arguments and fences results.

mod catalogue;
mod connection;
mod contain;
mod http;
mod keep;
mod names;
mod result;
mod server;
mod stdio;
mod toolbox;
mod trim;
mod trouble;

#[cfg(test)]
mod tests;

pub use http::address;
pub use keep::keep;
pub use names::{Pattern, ServerName};
pub use server::{Reach, ServerSettings};
pub use stdio::Keeper;
pub use toolbox::{Limits, McpToolbox, Standing, Status, Times};
pub use trouble::Trouble;
