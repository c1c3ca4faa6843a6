//! Logs: structured, on stderr, and only our own.
//!
//! Libraries are left out on purpose. Some of them quote what they send and receive, and a log must hold no content,
//! key, token or raw id at any level.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{LogFormat, LogLevel, LogSection};

/// Starts logging, `most` being the most that this command says.
pub(crate) fn start(section: LogSection, most: LogLevel) {
    let level = level(section.level).min(level(most));
    let ours = Targets::new().with_target("confidant", level);
    let registry = tracing_subscriber::registry().with(ours);
    let form = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let started = match section.format {
        LogFormat::Text => registry.with(form).try_init(),
        LogFormat::Json => registry.with(form.json().flatten_event(true)).try_init(),
    };
    // Only a test that runs several commands in one process has a logger already.
    drop(started);
}

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
