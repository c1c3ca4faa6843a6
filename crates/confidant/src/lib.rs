//! Confidant: the private memory of AI agents. One program: the server, a chat, and everything an operator needs.
//!
//! A library only so that fuzz targets can reach the parsers (feature `fuzzing`); nothing here is a stable interface.

mod answers;
mod channels;
mod chats;
mod cli;
mod concepts;
mod config;
mod daemon;
mod damage;
mod files;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod keys;
mod logging;
mod memory;
mod open;
mod output;
mod patience;
mod process;
mod served;
mod space;
#[cfg(test)]
#[expect(dead_code, reason = "shared with the tests of HTTP, which use the rest of it")]
#[path = "../../http/src/testing.rs"]
mod testing;
mod tools;
mod words;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};

/// The program: reads the command line, does what it says, and says how that ended.
#[must_use]
pub fn main() -> ExitCode {
    // Before there is a key to keep, and for every command: most of them have one in hand.
    process::keep_to_itself();
    let cli = cli::Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4)))
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return cli::fail(&anyhow::Error::new(error)),
    };
    if !cli.hears_interrupts() && is_interrupt_ignored() {
        // Where Ctrl-C would end us, it does, also if whoever started us (a shell, in the background) had it ignored.
        runtime.spawn(async {
            if let Ok(mut interrupts) = signal(SignalKind::interrupt()) {
                interrupts.recv().await;
                std::process::exit(INTERRUPTED);
            }
        });
    }
    let ended = runtime.block_on(cli::run(cli));
    // Ends what is left, which closes the databases; a thread that waits for a line must not keep us, though.
    runtime.shutdown_timeout(Duration::from_millis(300));
    match ended {
        Ok(outcome) => outcome.into(),
        Err(error) => cli::fail(&error),
    }
}

/// Whether this process was started with Ctrl-C ignored; where that cannot be told, it may have been.
fn is_interrupt_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_none_or(|mask| mask & (1 << (INTERRUPT - 1)) != 0)
}

/// The number of the signal that Ctrl-C sends.
const INTERRUPT: u32 = 2;
/// The exit status of a program that Ctrl-C ended, as shells have it.
const INTERRUPTED: i32 = 130;
