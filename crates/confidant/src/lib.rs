//! Confidant: the private memory of AI agents. One program: the server, a chat, and everything an operator needs.
//!
//! A library only so that fuzz targets can reach the parsers ([`fuzzing`]); nothing here is a stable interface.

mod channels;
mod cli;
mod config;
mod daemon;
mod files;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod keys;
mod logging;
mod mcp;
mod memory;
mod open;
#[cfg(test)]
mod testing;
mod tools;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

/// The program: reads the command line, does what it says, and says how that ended.
#[must_use]
pub fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4)))
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return cli::fail(&anyhow::Error::new(error)),
    };
    let ended = runtime.block_on(cli::run(cli));
    // Ends what is left, which closes the databases; a thread that waits for a line must not keep us, though.
    runtime.shutdown_timeout(Duration::from_millis(300));
    match ended {
        Ok(outcome) => outcome.into(),
        Err(error) => cli::fail(&error),
    }
}
