//! A server at an address: the streamable HTTP transport, over one client that believes little of what it reads.
//!
//! It follows no redirects, keeps its token to itself, reads bodies through [`Trim`], and says of failures what kind they
//! are and never what was in them.

use std::collections::HashMap;
use std::io::Cursor;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use secrecy::{ExposeSecret as _, SecretString};
use sse_stream::{Sse, SseStream};
use tokio::time::Instant;

use super::trim::{Framing, Overrun, Pace, Trim, Wire};

/// Reads the address of a server. With a token, it has to be one that nobody else listens in on.
pub fn address(text: &str, has_token: bool) -> Result<Url, String> {
    let wrong = |what: &str, hint: &str| Err(format!("url {what}; hint: {hint}"));
    let Ok(url) = Url::parse(text) else {
        return wrong("is not a URL", "write it like https://host/mcp");
    };
    if !matches!(url.scheme(), "https" | "http") {
        return wrong("is neither https nor http", "write it like https://host/mcp");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("has a user or a password in it", "name a variable that has a token as token_env");
    }
    if url.scheme() == "http" && has_token && !is_loopback(&url) {
        return wrong("is not encrypted, and a token would be sent there", "use https");
    }
    Ok(url)
}

/// Makes the transport. Connects to nothing yet. `longest` is how much of a text is kept.
pub(super) fn transport(
    url: &Url,
    token: Option<&SecretString>,
    longest: usize,
    wire: Arc<Wire>,
) -> Result<StreamableHttpClientTransport<Http>, HttpError> {
    let mut authorization = None;
    if let Some(token) = token {
        let value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret().trim()));
        let mut value = value.map_err(|_| HttpError::Token)?;
        value.set_sensitive(true);
        authorization = Some(value);
    }
    let streams = Arc::new(Mutex::new(Pace::new(STREAMS_AT_ONCE, STREAMS_PER_SECOND)));
    let http = Http { client: client(url)?, authorization, longest, wire, streams };
    let mut again = ExponentialBackoff::default();
    again.max_delay = Some(Duration::from_secs(30));
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    config.retry_config = Arc::new(again);
    Ok(StreamableHttpClientTransport::with_client(http, config))
}

/// What speaks HTTP for one server.
#[derive(Clone)]
pub(super) struct Http {
    client: reqwest::Client,
    authorization: Option<HeaderValue>,
    longest: usize,
    wire: Arc<Wire>,
    /// How often streams are opened: the server says when one is over, and when to open the next.
    streams: Arc<Mutex<Pace>>,
}

/// Why HTTP failed, without a word of what was sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpError {
    #[error("TLS cannot be set up")]
    Tls,
    #[error("the token has characters that cannot be sent")]
    Token,
    #[error("no connection")]
    NoConnection,
    #[error("the connection broke")]
    Broken,
    #[error("status {0}")]
    Status(u16),
    #[error("the answer is not MCP")]
    NoMcp,
    #[error(transparent)]
    Overrun(#[from] Overrun),
}

type Failed = StreamableHttpError<HttpError>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl Http {
    async fn send(
        &self,
        mut request: RequestBuilder,
        session: Option<&str>,
        headers: Headers,
    ) -> Result<Response, Failed> {
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let headers: HeaderMap = headers.into_iter().collect();
        let response = request.headers(headers).send().await;
        response
            .map_err(|error| if error.is_connect() { HttpError::NoConnection } else { HttpError::Broken })
            .map_err(Failed::Client)
    }

    /// All of a body that is one message.
    async fn whole(&self, mut response: Response) -> Result<Vec<u8>, Failed> {
        let mut trim = Trim::new(Framing::Whole, self.longest, Arc::clone(&self.wire));
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|_| Failed::Client(HttpError::Broken))? {
            trim.take(&chunk, &mut body).map_err(|overrun| Failed::Client(overrun.into()))?;
        }
        Ok(body)
    }

    /// The events of a body that is a stream.
    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let trim = Trim::new(Framing::Events, self.longest, Arc::clone(&self.wire));
        let chunks = stream::try_unfold((response, trim), async |(mut response, mut trim)| {
            let Some(chunk) = response.chunk().await.map_err(|_| HttpError::Broken)? else { return Ok(None) };
            let mut kept = Vec::new();
            trim.take(&chunk, &mut kept)?;
            Ok::<_, HttpError>(Some((Cursor::new(kept), (response, trim))))
        });
        SseStream::from_bytes_stream(chunks.boxed()).boxed()
    }
}

impl StreamableHttpClient for Http {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let body = serde_json::to_vec(&message)?;
        let request = self.client.post(&*uri).header(ACCEPT, BOTH).header(CONTENT_TYPE, JSON).body(body);
        let response = self.send(request, session_id.as_deref(), headers).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(Failed::SessionExpired);
        }
        let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let kind = kind(&response);
        if !status.is_success() {
            let body = if kind == BodyKind::Json { self.whole(response).await? } else { Vec::new() };
            return refused(&message, session_id.is_some(), status, &body);
        }
        match kind {
            BodyKind::Events => Ok(StreamableHttpPostResponse::Sse(self.events(response), session)),
            BodyKind::Json | BodyKind::Other => {
                let body = self.whole(response).await?;
                match serde_json::from_slice(&body) {
                    Ok(answer) if kind == BodyKind::Json => {
                        Ok(StreamableHttpPostResponse::Json(answer, session))
                    }
                    // Only a request has an answer.
                    _ if !matches!(message, JsonRpcMessage::Request(_)) => {
                        Ok(StreamableHttpPostResponse::Accepted)
                    }
                    _ => Err(Failed::Client(HttpError::NoMcp)),
                }
            }
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let allowed = self.streams.lock().allows(Instant::now());
        if !allowed {
            self.wire.overran(Overrun::TooMany);
            return Err(Failed::Client(Overrun::TooMany.into()));
        }
        let mut request = self.client.get(&*uri).header(ACCEPT, EVENTS);
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::try_from(id).ok()) {
            request = request.header(LAST_EVENT, id);
        }
        let response = self.send(request, session_id.as_deref(), headers).await?;
        match response.status() {
            status if status.is_success() && kind(&response) == BodyKind::Events => Ok(self.events(response)),
            // Whoever has no stream says so in one of these ways, and asking again does not help.
            status if status.is_success() || status.is_client_error() => Err(Failed::ServerDoesNotSupportSse),
            status => Err(Failed::Client(HttpError::Status(status.as_u16()))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        // That it does not know the session, or does not end sessions, is as good.
        self.send(self.client.delete(&*uri), Some(&session_id), headers).await.map(drop)
    }
}

/// What a refusal means: the server's own words if it has some, and a server of an older kind that does not know what was
/// asked first.
fn refused(
    message: &ClientJsonRpcMessage,
    in_session: bool,
    status: StatusCode,
    body: &[u8],
) -> Result<StreamableHttpPostResponse, Failed> {
    let failed = Err(Failed::Client(HttpError::Status(status.as_u16())));
    let JsonRpcMessage::Request(request) = message else { return failed };
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return failed;
    }
    let said = match serde_json::from_slice::<ServerJsonRpcMessage>(body) {
        Ok(JsonRpcMessage::Error(error)) => Some(error.error),
        _ => None,
    };
    let is_first = matches!(request.request, ClientRequest::DiscoverRequest(_)) && !in_session;
    let error = match said {
        Some(error) => error,
        None if is_first && status.is_client_error() => ErrorData::invalid_request("refused", None),
        None => return failed,
    };
    let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
    Ok(StreamableHttpPostResponse::Json(answer, None))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyKind {
    Json,
    Events,
    Other,
}

fn kind(response: &Response) -> BodyKind {
    let text = response.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let is =
        |kind: &str| text.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind.as_bytes()));
    if is(JSON) {
        BodyKind::Json
    } else if is(EVENTS) {
        BodyKind::Events
    } else {
        BodyKind::Other
    }
}

/// A loopback server is never asked through a proxy, and no certificates are loaded for it, which takes a while and fails
/// on a bare system.
fn client(url: &Url) -> Result<reqwest::Client, HttpError> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .referer(false);
    // Somebody else in the process may have installed one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if url.scheme() == "http" {
        builder = builder.tls_certs_only(std::iter::empty());
    } else {
        builder = builder.https_only(true);
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|_| HttpError::Tls)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BOTH: &str = "application/json, text/event-stream";
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const STREAMS_AT_ONCE: u32 = 20;
const STREAMS_PER_SECOND: u32 = 1;
