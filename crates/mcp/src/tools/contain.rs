//! What may come through from a server: answers to what was asked, and word that its tools have changed.
//!
//! A server may also ask things of its client: to have a model write something, to ask the person, to name folders. None
//! of that is served here, and each request is answered so at once. It is answered before anything else is read, so that a
//! server which asks and never listens stops itself instead of filling our memory. Everything else is dropped unread.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientResult, ElicitResult, ElicitationAction, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerNotification, ServerRequest,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::trim::Wire;

/// A transport through which a server can do no more than it should.
pub(super) struct Contained<T: Transport<RoleClient>> {
    /// Gone once it is closed.
    inner: Option<T>,
    wire: Arc<Wire>,
    /// A reply on its way out. Kept here, since whoever waits for a message may stop waiting at any time.
    reply: Option<Sending<T::Error>>,
}

type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

impl<T: Transport<RoleClient>> Contained<T> {
    pub(super) fn new(inner: T, wire: Arc<Wire>) -> Self {
        Self { inner: Some(inner), wire, reply: None }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Contained<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sending = self.inner.as_mut().map(|inner| inner.send(message));
        async {
            match sending {
                Some(sending) => sending.await,
                // Whoever waits for this waits for the connection to be over, which it is about to be.
                None => std::future::pending().await,
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(reply) = &mut self.reply {
                let sent = reply.await;
                self.reply = None;
                sent.ok()?;
            }
            let inner = self.inner.as_mut()?;
            match inner.receive().await? {
                JsonRpcMessage::Request(asked) => {
                    self.reply = Some(Box::pin(inner.send(answer(&asked.request, asked.id))));
                }
                JsonRpcMessage::Notification(said) if is_wanted(&said.notification) => {
                    return Some(JsonRpcMessage::Notification(said));
                }
                JsonRpcMessage::Notification(_) => {}
                answer => return Some(answer),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        let Some(mut inner) = self.inner.take() else { return Ok(()) };
        // A transport that still has messages for us waits for somebody to take them, and nobody will. Dropping it ends it,
        // and there is no reason to be polite to a server that sends too much.
        if self.wire.overrun_so_far().is_some() {
            return Ok(());
        }
        tokio::time::timeout(PATIENCE, inner.close()).await.unwrap_or(Ok(()))
    }
}

/// How long a connection may take to end as it should. More than a program has to.
const PATIENCE: Duration = Duration::from_secs(6);

fn is_wanted(notification: &ServerNotification) -> bool {
    matches!(
        notification,
        ServerNotification::ToolListChangedNotification(_)
            | ServerNotification::SubscriptionsAcknowledgedNotification(_)
            // Of a subscription: the server ends it.
            | ServerNotification::CancelledNotification(_)
    )
}

fn answer(request: &ServerRequest, id: RequestId) -> TxJsonRpcMessage<RoleClient> {
    match request {
        ServerRequest::PingRequest(_) => JsonRpcMessage::response(ClientResult::empty(()), id),
        ServerRequest::ElicitRequest(_) => {
            let declined = ElicitResult::new(ElicitationAction::Decline);
            JsonRpcMessage::response(ClientResult::ElicitResult(declined), id)
        }
        _ => {
            let refused = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "not supported by this client", None);
            JsonRpcMessage::error(refused, Some(id))
        }
    }
}
