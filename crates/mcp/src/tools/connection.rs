//! A connection that works: the tools behind it, and one call of one of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use confidant_engine::tools::{Invocation, ToolError, ToolOutput};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, CallToolResponse, RequestMetaObject};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::catalogue::Catalogue;
use super::trim::Wire;
use super::{result, trouble};

/// A server that answers, and what it had when it was last asked.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) link: Arc<Link>,
    pub(super) catalogue: Catalogue,
}

/// The connection itself, which outlives a list of tools.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) peer: Peer<RoleClient>,
    pub(super) wire: Arc<Wire>,
    /// Calls that wait for an answer.
    calls: AtomicUsize,
    /// A call ended in a way that makes one wonder whether anybody is there.
    doubt: Notify,
    /// Whether the connection is over, and with it all calls.
    over: watch::Sender<bool>,
}

impl Link {
    pub(super) fn new(peer: Peer<RoleClient>, wire: Arc<Wire>) -> Self {
        Self { peer, wire, calls: AtomicUsize::new(0), doubt: Notify::new(), over: watch::Sender::new(false) }
    }

    pub(super) async fn doubted(&self) {
        self.doubt.notified().await;
    }

    /// Ends all calls that wait, and those to come.
    pub(super) fn end(&self) {
        self.over.send_replace(true);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.calls.load(Ordering::Acquire) == 0
    }
}

impl Connection {
    /// Calls a tool. Dropping the future tells the server so.
    pub(super) async fn call(&self, call: Invocation<'_>, most: usize) -> Result<ToolOutput, ToolError> {
        let own = self.catalogue.own_name(call.tool).ok_or(ToolError::Unknown)?;
        let link = &self.link;
        let mut over = link.over.subscribe();
        if *over.borrow() || link.peer.is_transport_closed() {
            return Err(ToolError::Unreachable);
        }
        let mut request = CallToolRequestParams::new(own.to_owned());
        request.arguments = match call.arguments {
            Value::Object(arguments) => Some(arguments.clone()),
            Value::Null => None,
            _ => return Err(ToolError::Refused),
        };
        let mut meta = RequestMetaObject::new();
        meta.insert(KEY.to_owned(), call.key.into());
        request.meta = Some(meta);

        let shortened = link.wire.shortened();
        let mut waiting = Waiting::new(link);
        let answer = tokio::select! {
            answer = link.peer.call_tool_once(request) => answer,
            _ = over.wait_for(|over| *over) => Err(ServiceError::TransportClosed),
        };
        waiting.is_doubtful =
            matches!(answer, Err(ServiceError::TransportSend(_) | ServiceError::TransportClosed));
        match answer {
            Ok(CallToolResponse::Complete(answer)) => {
                let mut output = result::output(answer, most);
                output.cut |= link.wire.shortened() != shortened;
                Ok(output)
            }
            // It wants to ask somebody something, and nobody is there to be asked.
            Ok(CallToolResponse::InputRequired(_)) => Err(ToolError::Refused),
            Ok(_) => Err(ToolError::Malformed),
            Err(ServiceError::McpError(error)) => result::refusal(&error.message, most),
            Err(error) => Err(trouble::of_call(&error)),
        }
    }
}

/// A call that waits, until this is dropped: with the answer, or because nobody wants it any more.
struct Waiting<'a> {
    link: &'a Link,
    is_doubtful: bool,
}

impl<'a> Waiting<'a> {
    fn new(link: &'a Link) -> Self {
        link.calls.fetch_add(1, Ordering::AcqRel);
        Self { link, is_doubtful: true }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.link.calls.fetch_sub(1, Ordering::AcqRel);
        if self.is_doubtful {
            self.link.doubt.notify_one();
        }
    }
}

/// Where a call's key stands in its `_meta`, for servers that do nothing twice.
const KEY: &str = "confidant/idempotencyKey";
