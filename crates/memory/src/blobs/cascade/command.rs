//! A registrar that runs a program.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use confidant_display::debug_without_content;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::blobs::cascade::{Registered, Registrar, Registration};
use crate::process::Group;
use crate::{Error, Result};

pub(in super::super) fn command(
    argv: Vec<String>,
    hidden: Vec<String>,
    limit: Duration,
) -> Result<Arc<dyn Registrar>> {
    if argv.first().is_none_or(String::is_empty) {
        return Err(Error::invalid(
            "the command that registers uploads on Cascade is empty",
            "give a program and its arguments",
        ));
    }
    Ok(Arc::new(CommandRegistrar { argv, hidden, limit }))
}

struct CommandRegistrar {
    argv: Vec<String>,
    hidden: Vec<String>,
    limit: Duration,
}

// Its arguments may have secrets in them.
debug_without_content!(CommandRegistrar { program: argv.first() });

#[derive(Deserialize)]
struct Reply {
    action_id: String,
    signature: String,
    download_signature: String,
}

#[async_trait]
impl Registrar for CommandRegistrar {
    async fn register(&self, registration: &Registration<'_>) -> Result<Registered> {
        let Registration { data_hash, file_name, size_kbs, data } = registration;
        let mut request = serde_json::json!({
            "data_hash": data_hash,
            "file_name": file_name,
            "size_kbs": size_kbs,
            "data": STANDARD.encode(data),
        })
        .to_string();
        request.push('\n');
        let printed =
            tokio::time::timeout(self.limit, self.run(request.as_bytes())).await.unwrap_or_else(|_| {
                Err(Error::unavailable(
                    "the command that registers uploads on Cascade did not finish in time; it may have paid",
                    "look at the owner's actions on the chain; raise its time limit",
                ))
            })?;
        parse(&printed)
    }
}

/// What the program printed.
pub(super) fn parse(printed: &[u8]) -> Result<Registered> {
    let reply: Reply = serde_json::from_slice(printed).map_err(|_| {
        Error::unavailable(
            "the command that registers uploads on Cascade printed something unexpected; it may have paid",
            "it must print {\"action_id\", \"signature\", \"download_signature\"} as JSON, and nothing else",
        )
    })?;
    let Reply { action_id, signature, download_signature } = reply;
    Ok(Registered { action_id, signature, download_signature })
}

impl CommandRegistrar {
    async fn run(&self, request: &[u8]) -> Result<Vec<u8>> {
        let broken = |_| {
            Error::unavailable(
                "the command that registers uploads on Cascade could not be run",
                "try it by hand",
            )
        };
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut group = Group::start(&mut command, &self.hidden).map_err(|_| {
            Error::unavailable(
                "the command that registers uploads on Cascade cannot be started",
                "check that the program exists and is executable",
            )
        })?;
        let (stdin, stdout) = (group.child.stdin.take(), group.child.stdout.take());
        // Both at once, or a program that prints before it has read everything would wait for ever.
        let write = async {
            if let Some(mut stdin) = stdin {
                // A program that does not read to the end is judged by what it prints.
                let _ = stdin.write_all(request).await;
            }
        };
        let read = async {
            let mut printed = Vec::new();
            if let Some(stdout) = stdout {
                stdout.take(REPLY_LIMIT).read_to_end(&mut printed).await?;
            }
            Ok(printed)
        };
        let ((), printed) = tokio::join!(write, read);
        let printed = printed.map_err(broken)?;
        let status = group.child.wait().await.map_err(broken)?;
        group.is_done = true;
        if status.success() {
            return Ok(printed);
        }
        Err(Error::unavailable(
            match status.code() {
                Some(code) => {
                    format!("the command that registers uploads on Cascade failed with exit status {code}")
                }
                None => "the command that registers uploads on Cascade was ended by a signal".into(),
            },
            "try it by hand; look at the owner's actions on the chain to see whether it paid",
        ))
    }
}

const REPLY_LIMIT: u64 = 64 << 10;
