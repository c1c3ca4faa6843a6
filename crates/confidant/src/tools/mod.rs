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

pub(crate) use http::address;
pub(crate) use keep::keep;
pub(crate) use names::{Pattern, ServerName};
pub(crate) use server::{Reach, ServerSettings};
pub(crate) use stdio::Keeper;
pub(crate) use toolbox::{Limits, McpToolbox, Standing, Times};

use anyhow::Context as _;

use crate::config::{ConfigError, Loaded};

/// Begins to connect those servers of the settings that are `wanted`. Those that cannot be used come back with the reason.
pub(crate) fn start(
    loaded: &Loaded,
    wanted: impl Fn(&ServerName) -> bool,
) -> anyhow::Result<(McpToolbox, Vec<ConfigError>)> {
    let section = &loaded.config.tools;
    let (mut usable, mut refused) = (Vec::new(), Vec::new());
    for settings in section.servers(&loaded.secrets.tools) {
        match settings {
            Ok(settings) if wanted(&settings.name) => usable.push(settings),
            Ok(_) => {}
            Err(error) => refused.push(error),
        }
    }
    let limits = Limits { max_result_bytes: section.max_result_bytes.get(), times: Times::default() };
    let keeper =
        Keeper::this_program().context("this program cannot find itself to look after tool servers")?;
    Ok((McpToolbox::start(usable, limits, &keeper), refused))
}
