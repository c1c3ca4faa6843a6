//! Opening many sessions that are not warm, once each, on an engine that has just started.
//!
//! Through `Session::export`, the one public way that reads a session and adds nothing to it: it fetches and opens the
//! key, loads the log, opens every record, writes an audit record in a commit of its own, and copies the messages out.

use std::path::Path;

use anyhow::{Context as _, Result};
use confidant_engine::storage::Durability;
use serde::Serialize;

use crate::folder;
use crate::meter::{Reading, rounded};

#[derive(Debug, Serialize)]
pub(crate) struct ColdOpen {
    sessions: usize,
    messages: usize,
    by: &'static str,
    cpu_ms_per_session: f64,
    wall_ms_per_session: f64,
    cpu_ms_total: f64,
    wall_ms_total: f64,
    stored_bytes: u64,
}

/// Makes `sessions` sessions of `messages` messages and opens each once.
pub(crate) async fn measure(folder: &Path, sessions: usize, messages: usize) -> Result<ColdOpen> {
    folder::fill(folder, sessions, messages, folder::Kind::Append).await?;
    let stored_bytes = folder::stored_bytes(folder)?;
    let engine = folder::open(folder, Durability::Power, 1).await?;
    let before = Reading::now();
    for number in 0..sessions {
        let export = folder::session(&engine, number)?.export().await?.context("the session is there")?;
        anyhow::ensure!(
            export.messages.len() == messages,
            "a session came back with other messages than it had"
        );
    }
    let total = Reading::now().since(before);
    folder::close(engine).await;
    let each = |ms: f64| rounded(ms / sessions as f64);
    Ok(ColdOpen {
        sessions,
        messages,
        by: "Session::export, durability power: key, log, one audit commit, copy",
        cpu_ms_per_session: each(total.cpu_ms()),
        wall_ms_per_session: each(total.wall_ms()),
        cpu_ms_total: rounded(total.cpu_ms()),
        wall_ms_total: rounded(total.wall_ms()),
        stored_bytes,
    })
}
