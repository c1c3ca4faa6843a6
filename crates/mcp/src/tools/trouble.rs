//! Why a server is away, and why a call came to nothing, in our own words: what a server says is never among them.

use std::io;

use confidant_engine::tools::ToolError;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::http::HttpError;
use super::trim::Overrun;

/// Why a server is away.
#[expect(missing_docs, reason = "the message of each says what it is")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error(
        "its program cannot be started ({0}); hint: check the command, and PATH for the account this runs as"
    )]
    NotStarted(io::ErrorKind),
    #[error("its program ended, or closed the connection; hint: run the command by hand to see why")]
    Ended,
    #[error("nothing answers at its address; hint: check the url, and whether the server runs")]
    NoConnection,
    #[error("it needs a token, or rejects the one it got; hint: check token_env and the variable's value")]
    Unauthorized,
    #[error("it answers with status {0}; hint: check the url")]
    Status(u16),
    #[error(
        "it does not speak MCP as it should; hint: check the command or the url, and the server's version"
    )]
    NoMcp,
    #[error("it refuses to talk to us; hint: look at the server's own log for the reason")]
    Refused,
    #[error("it does not answer in time; hint: run the command by hand, or look at the server's log")]
    Silent,
    #[error("it sends messages that are too long; hint: look for an option that limits its answers")]
    TooLong,
    #[error("it sends too many messages; hint: look for an option that makes it less talkative")]
    TooMany,
    #[error("TLS cannot be set up; hint: install the system's certificates (often named ca-certificates)")]
    Tls,
    #[error("the token has characters that cannot be sent; hint: check the variable's value")]
    Token,
}

impl Trouble {
    /// What went wrong before the server was ready.
    pub(super) fn at_start(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::ConnectionClosed(_) => Self::Ended,
            ClientInitializeError::TransportError { error, .. } => Self::of_transport(error),
            ClientInitializeError::JsonRpcError(_) => Self::Refused,
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::at_start(fallback),
            _ => Self::NoMcp,
        }
    }

    /// What went wrong with a request of ours, such as for the list of tools.
    pub(super) fn of_request(error: &ServiceError) -> Self {
        match error {
            ServiceError::TransportClosed => Self::Ended,
            ServiceError::TransportSend(error) => Self::of_transport(error),
            ServiceError::McpError(_) => Self::Refused,
            _ => Self::NoMcp,
        }
    }

    fn of_transport(error: &DynamicTransportError) -> Self {
        match error.error.downcast_ref::<StreamableHttpError<HttpError>>() {
            Some(StreamableHttpError::Client(error)) => (*error).into(),
            Some(StreamableHttpError::SessionExpired | StreamableHttpError::TransportChannelClosed)
            | None => Self::Ended,
            Some(_) => Self::NoMcp,
        }
    }
}

impl From<HttpError> for Trouble {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Tls => Self::Tls,
            HttpError::Token => Self::Token,
            HttpError::NoConnection => Self::NoConnection,
            HttpError::Broken => Self::Ended,
            HttpError::Status(401 | 403) => Self::Unauthorized,
            HttpError::Status(status) => Self::Status(status),
            HttpError::NoMcp => Self::NoMcp,
            HttpError::Overrun(overrun) => overrun.into(),
        }
    }
}

impl From<Overrun> for Trouble {
    fn from(overrun: Overrun) -> Self {
        match overrun {
            Overrun::TooLong => Self::TooLong,
            Overrun::TooMany => Self::TooMany,
        }
    }
}

/// What a failed call means to whoever made it. In doubt, it may have been done.
pub(super) fn of_call(error: &ServiceError) -> ToolError {
    let error = match error {
        ServiceError::TransportSend(error) => error,
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => return ToolError::Lost,
        ServiceError::Timeout { .. } => return ToolError::TimedOut,
        _ => return ToolError::Malformed,
    };
    match error.error.downcast_ref::<StreamableHttpError<HttpError>>() {
        Some(StreamableHttpError::Client(error)) => match error {
            HttpError::NoConnection | HttpError::Tls | HttpError::Token => ToolError::Unreachable,
            HttpError::Status(400..500) => ToolError::Refused,
            HttpError::Broken | HttpError::Status(_) => ToolError::Lost,
            HttpError::NoMcp | HttpError::Overrun(_) => ToolError::Malformed,
        },
        // The server does not know the session, so it did not look at the call.
        Some(StreamableHttpError::SessionExpired) => ToolError::Unreachable,
        Some(StreamableHttpError::Deserialize(_) | StreamableHttpError::UnexpectedServerResponse(_)) => {
            ToolError::Malformed
        }
        _ => ToolError::Lost,
    }
}
