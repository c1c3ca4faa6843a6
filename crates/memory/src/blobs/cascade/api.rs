//! The requests, and what their answers mean.
//!
//! Answers are JSON, or a stream of events of which each has one. Only the words that are known are taken from them; no
//! message quotes them.

use std::pin::Pin;
use std::time::Duration;

use reqwest::{Client, RequestBuilder, Response, Url};
use serde_json::Value;

use super::is_word;
use crate::blobs::MAX_BYTES;
use crate::blobs::cascade::CascadeSettings;
use crate::blobs::http::{Trouble, base, client};
use crate::blobs::random_hex;
use crate::{Error, Result};

/// Waits; tests do not.
pub(super) type Sleep = fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Debug)]
pub(super) struct Api {
    chain: (Client, Url),
    supernode: (Client, Url),
    pub(super) sleep: Sleep,
}

/// What the chain says about an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// PENDING: the bytes have not come yet.
    Waiting,
    /// PROCESSING: a supernode has them.
    Working,
    /// DONE or APPROVED.
    Kept,
    /// REJECTED, FAILED or EXPIRED; the fee was given back.
    Ended,
}

impl State {
    pub(super) fn of(value: &Value) -> Option<Self> {
        let state = value.pointer("/action/state").and_then(Value::as_str)?;
        match state.strip_prefix("ACTION_STATE_").unwrap_or(state) {
            "PENDING" => Some(Self::Waiting),
            "PROCESSING" => Some(Self::Working),
            "DONE" | "APPROVED" => Some(Self::Kept),
            "REJECTED" | "FAILED" | "EXPIRED" => Some(Self::Ended),
            _ => None,
        }
    }
}

/// How a supernode's task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Done,
    Failed,
}

impl Task {
    fn of(status: &str) -> Option<Self> {
        match status.strip_prefix("sdk:").unwrap_or(status) {
            "completed" | "download_completed" => Some(Self::Done),
            "failed" | "download_failure" | "supernodes_unavailable" => Some(Self::Failed),
            _ => None,
        }
    }
}

impl Api {
    pub(super) fn open(settings: &CascadeSettings) -> Result<Self> {
        let connect = |url: &str, option: &str| -> Result<_> {
            let url = base(url, option, settings.transport)?;
            Ok((client(&url, settings.request_limit)?, url))
        };
        Ok(Self {
            chain: connect(&settings.chain_url, "the address of Cascade's chain")?,
            supernode: connect(&settings.supernode_url, "the address of Cascade's supernode")?,
            sleep: |pause| Box::pin(tokio::time::sleep(pause)),
        })
    }

    /// Whether the chain answers.
    pub(super) async fn parameters(&self) -> Result<()> {
        let reply = self.ask(CHAIN, || self.chain_get("params")).await?;
        json(CHAIN, accepted(CHAIN, reply)?).await?.get("params").map(|_| ()).ok_or_else(|| puzzling(CHAIN))
    }

    /// What so many KB cost, in ulume.
    pub(super) async fn fee(&self, size_kbs: u64) -> Result<u64> {
        let reply = self.ask(CHAIN, || self.chain_get(&format!("get_action_fee/{size_kbs}"))).await?;
        amount(&json(CHAIN, accepted(CHAIN, reply)?).await?).ok_or_else(|| puzzling(CHAIN))
    }

    pub(super) async fn state(&self, action_id: &str) -> Result<State> {
        let reply = self.ask(CHAIN, || self.chain_get(&format!("get_action/{action_id}"))).await?;
        State::of(&json(CHAIN, accepted(CHAIN, reply)?).await?).ok_or_else(|| puzzling(CHAIN))
    }

    /// The state, once no supernode works on it any more.
    pub(super) async fn settled(&self, action_id: &str) -> Result<State> {
        loop {
            match self.state(action_id).await? {
                State::Working => (self.sleep)(PAUSE).await,
                state => return Ok(state),
            }
        }
    }

    /// Hands the bytes to a supernode; gives the task that stores them.
    pub(super) async fn upload(
        &self,
        action_id: &str,
        signature: &str,
        file_name: &str,
        bytes: &[u8],
    ) -> Result<String> {
        let boundary = random_hex()?;
        let body = form(&boundary, &[("action_id", action_id), ("signature", signature)], file_name, bytes);
        let kind = format!("multipart/form-data; boundary={boundary}");
        let reply = self
            .ask(SUPERNODE, || {
                self.supernode
                    .0
                    .post(self.at("actions/cascade"))
                    .header("content-type", &kind)
                    .body(body.clone())
            })
            .await?;
        task_id(accepted(SUPERNODE, reply)?).await
    }

    pub(super) async fn uploaded(&self, task: &str) -> Result<Task> {
        self.ended(&self.at(&format!("actions/cascade/tasks/{task}/status"))).await
    }

    /// Asks a supernode to fetch the bytes; gives the task that does.
    pub(super) async fn request_download(&self, action_id: &str, signature: &str) -> Result<String> {
        let body = serde_json::json!({ "signature": signature }).to_string();
        let reply = self
            .ask(SUPERNODE, || {
                let url = self.at(&format!("actions/cascade/{action_id}/downloads"));
                self.supernode.0.post(url).header("content-type", "application/json").body(body.clone())
            })
            .await?;
        task_id(found(reply)?).await
    }

    pub(super) async fn downloaded(&self, task: &str) -> Result<Task> {
        self.ended(&self.at(&format!("downloads/cascade/{task}/status"))).await
    }

    pub(super) async fn file(&self, task: &str) -> Result<Vec<u8>> {
        let url = self.at(&format!("downloads/cascade/{task}/file"));
        let reply = self.ask(SUPERNODE, || self.supernode.0.get(&url)).await?;
        limited(SUPERNODE, found(reply)?, MAX_BYTES).await?.ok_or_else(|| {
            Error::tampered(
                "what Cascade has in place of the artifact was not written by this program",
                "try again with another supernode, or forget the memory",
            )
        })
    }

    /// Asks for a task's status until it has ended.
    async fn ended(&self, url: &str) -> Result<Task> {
        loop {
            let reply = self.ask(SUPERNODE, || self.supernode.0.get(url)).await?;
            if let Some(task) = status(accepted(SUPERNODE, reply)?).await {
                return Ok(task);
            }
            (self.sleep)(PAUSE).await;
        }
    }

    /// Asks until there is an answer that is not a fault of the server, or it was tried often enough.
    async fn ask(&self, service: &str, request: impl Fn() -> RequestBuilder) -> Result<Response> {
        let mut left = TRIES;
        loop {
            left -= 1;
            let error = match request().send().await {
                Ok(reply) if reply.status().is_server_error() => faulty(service),
                Ok(reply) => return Ok(reply),
                Err(error) => {
                    let trouble = Trouble::of(&error);
                    left = if trouble.may_pass() { left } else { 0 };
                    trouble.error(service)
                }
            };
            if left == 0 {
                return Err(error);
            }
            (self.sleep)(PAUSE).await;
        }
    }

    fn chain_get(&self, path: &str) -> RequestBuilder {
        let (client, base) = &self.chain;
        client.get(format!("{}/LumeraProtocol/lumera/action/v1/{path}", base.as_str().trim_end_matches('/')))
    }

    fn at(&self, path: &str) -> String {
        format!("{}/api/v1/{path}", self.supernode.1.as_str().trim_end_matches('/'))
    }
}

fn accepted(service: &str, reply: Response) -> Result<Response> {
    match reply.status().as_u16() {
        200..=299 => Ok(reply),
        401 | 403 => Err(Error::unavailable(
            format!("{service} does not accept the signature"),
            "check that the registrar signs with the owner's key, and as the network expects",
        )),
        413 | 507 => Err(Error::unavailable(
            format!("{service} has no room for the artifact"),
            "try again later, or use another supernode",
        )),
        status => Err(Error::unavailable(
            format!("{service} refused the request (HTTP status {status})"),
            "check that its address is the right one",
        )),
    }
}

fn found(reply: Response) -> Result<Response> {
    if reply.status().as_u16() == 404 {
        return Err(Error::not_found(
            "Cascade has no such artifact",
            "was it stored on another network? check the addresses, or forget the memory",
        ));
    }
    accepted(SUPERNODE, reply)
}

async fn task_id(reply: Response) -> Result<String> {
    let value = json(SUPERNODE, reply).await?;
    task(&value).map(str::to_owned).ok_or_else(|| puzzling(SUPERNODE))
}

/// The name of a task. It goes into paths, so it is looked at first.
pub(super) fn task(value: &Value) -> Option<&str> {
    let id = value.get("task_id").or_else(|| value.get("taskId")).and_then(Value::as_str)?;
    is_word(id).then_some(id)
}

/// A number, or a string of one with or without its unit.
pub(super) fn amount(value: &Value) -> Option<u64> {
    match value.get("amount")? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.strip_suffix("ulume").unwrap_or(text).parse().ok(),
        _ => None,
    }
}

async fn json(service: &str, reply: Response) -> Result<Value> {
    let bytes = limited(service, reply, ANSWER_LIMIT).await?;
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(|| puzzling(service))
}

/// The body, if it is not longer than that.
async fn limited(service: &str, mut reply: Response, limit: u64) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    loop {
        match reply.chunk().await {
            Ok(Some(chunk)) if (bytes.len() + chunk.len()) as u64 > limit => return Ok(None),
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return Ok(Some(bytes)),
            Err(error) => return Err(Trouble::of(&error).error(service)),
        }
    }
}

/// How the task ended, if the answer says that it did. A stream that breaks off says nothing; it is asked for again.
async fn status(mut reply: Response) -> Option<Task> {
    let mut events = Events::default();
    let mut read = 0;
    while let Ok(Some(chunk)) = reply.chunk().await {
        read += chunk.len() as u64;
        if let Some(task) = events.take(&chunk) {
            return Some(task);
        }
        if read > ANSWER_LIMIT {
            return None;
        }
    }
    events.end()
}

/// Reads server-sent events, or one JSON value, piece by piece.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    /// Lines that are of no event: the answer may be plain JSON.
    plain: Vec<u8>,
}

impl Events {
    pub(super) fn take(&mut self, chunk: &[u8]) -> Option<Task> {
        for &byte in chunk {
            match byte {
                b'\n' => {
                    if let Some(task) = self.line_ended() {
                        return Some(task);
                    }
                }
                byte => self.line.push(byte),
            }
        }
        None
    }

    pub(super) fn end(mut self) -> Option<Task> {
        self.line_ended().or_else(|| said(&self.data)).or_else(|| said(&self.plain))
    }

    fn line_ended(&mut self) -> Option<Task> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if line.is_empty() {
            return said(&std::mem::take(&mut self.data));
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            self.data.extend_from_slice(data);
            self.data.push(b'\n');
        } else {
            self.plain.extend_from_slice(line);
        }
        None
    }
}

/// How a task ended, by a status or the last of several.
fn said(json: &[u8]) -> Option<Task> {
    let value: Value = serde_json::from_slice(json).ok()?;
    let last = value.as_array().map_or(Some(&value), |all| all.last())?;
    Task::of(last.get("status")?.as_str()?)
}

/// A form of plain fields and one file.
fn form(boundary: &str, fields: &[(&str, &str)], file_name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(bytes.len() + 1024);
    for (name, value) in fields {
        let part =
            format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let head = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{file_name}\"\r\n\
         content-type: application/octet-stream\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(bytes);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    body
}

fn faulty(service: &str) -> Error {
    Error::unavailable(format!("{service} has an error or is overloaded"), "try again later")
}

fn puzzling(service: &str) -> Error {
    Error::unavailable(
        format!("{service} gave an answer that does not fit its API"),
        "check that its address is the right one",
    )
}

pub(super) fn slow() -> Error {
    Trouble::Slow.error("Cascade")
}

const CHAIN: &str = "Cascade's chain";
const SUPERNODE: &str = "Cascade's supernode";
/// A supernode may answer with a fault for some seconds after an upload, until the network has settled.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(1);
/// More of an answer that is not a file is not read.
const ANSWER_LIMIT: u64 = 1 << 20;
