//! The tool servers of the settings.

use anyhow::Context as _;
use confidant_mcp::tools::{Keeper, Limits, McpToolbox, ServerName, Times};

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
    let keeper = Keeper::this_program()
        .context("this program's own path is unknown, so it cannot start tool servers")?;
    Ok((McpToolbox::start(usable, limits, &keeper), refused))
}
