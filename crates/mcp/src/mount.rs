//! MCP over HTTP: a room per token and person, so that nobody can be in another's.
//!
//! The SDK keeps sessions by their id, and whoever knows an id could use its session, and read what is replayed on its
//! streams. So there is not one table of sessions but one for each pair of token and person: an id from elsewhere is
//! simply unknown there. A room's server is made for its owner and can reach nothing else.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use confidant_display::debug_without_content;
use confidant_memory::Owner;
use parking_lot::Mutex;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, ProtocolVersion, RequestId};
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::access::{Access, LazyMemory};
use super::consent::Consent;
use super::hosts::Hosts;
use super::{Server, unread};

/// Every session over HTTP.
#[derive(Debug)]
pub struct Mount {
    memory: LazyMemory,
    consent: Arc<Consent>,
    settings: StreamableHttpServerConfig,
    rooms: Mutex<HashMap<Key, Room>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    token_id: String,
    owner: Owner,
}

type Service = StreamableHttpService<Server, LocalSessionManager>;

/// The sessions of one person with one token.
#[derive(Clone)]
struct Room {
    service: Service,
    sessions: Arc<LocalSessionManager>,
    /// Ids, the oldest first.
    order: Arc<Mutex<VecDeque<String>>>,
    used: Instant,
}

impl Mount {
    /// For bodies of at most so many bytes.
    pub fn new(memory: LazyMemory, hosts: Hosts, max_body_bytes: usize) -> anyhow::Result<Self> {
        let settings = StreamableHttpServerConfig::default().with_max_request_body_bytes(max_body_bytes);
        let settings = match hosts {
            Hosts::Any => settings.disable_allowed_hosts(),
            Hosts::Known(more) => {
                let known = settings.allowed_hosts.clone();
                settings.with_allowed_hosts(known.into_iter().chain(more))
            }
        };
        Ok(Self { memory, consent: Arc::new(Consent::new()?), settings, rooms: Mutex::default() })
    }

    /// The memory that is served.
    pub fn memory(&self) -> &LazyMemory {
        &self.memory
    }

    /// Answers a request of somebody who was let in, whose token and access these are. The body was read already.
    pub async fn answer(
        &self,
        token_id: &str,
        access: Access,
        request: Request<Bytes>,
    ) -> Result<Response, Refused> {
        if is_handshake_of_later_days(request.headers()) {
            return Ok(no_handshake(request.body()));
        }
        let request = request
            .map(|body| confidant_redact::with_whole_pairs(&body).map_or_else(|| body.clone(), Bytes::from));
        let (is_declared, body) = (is_json(request.headers()), request.body().clone());
        let room = self.room(token_id, access);
        let ending = (request.method() == Method::DELETE).then(|| session_id(request.headers())).flatten();
        let response = room.service.handle(request.map(Body::from)).await;
        if let Some(id) = ending {
            room.forget(&id);
        } else if let Some(id) = session_id(response.headers()) {
            room.remember(id).await;
        }
        let response = response.map(Body::new);
        if response.status().is_success() || is_json(response.headers()) {
            return Ok(response);
        }
        // The SDK says the same of what is no JSON and of what does not say that it is.
        if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
            && is_declared
            && let Some(refusal) = unread::refusal(&body)
        {
            return Ok(json(StatusCode::BAD_REQUEST, refusal));
        }
        // The SDK's texts may quote what the client sent.
        Err(Refused::of(response.status()))
    }

    /// Ends every session and stream, since the server stops.
    pub fn stop(&self) {
        self.settings.cancellation_token.cancel();
    }

    fn room(&self, token_id: &str, access: Access) -> Room {
        let key = Key { token_id: token_id.to_owned(), owner: access.owner.clone() };
        let mut rooms = self.rooms.lock();
        if let Some(room) = rooms.get_mut(&key) {
            room.used = Instant::now();
            return room.clone();
        }
        rooms.retain(|_, room| room.is_in_use());
        let room = self.new_room(access);
        rooms.insert(key, room.clone());
        room
    }

    fn new_room(&self, access: Access) -> Room {
        let server = Server::new(access, Arc::clone(&self.consent));
        let mut sessions = LocalSessionManager::default();
        sessions.session_config = SessionConfig::default();
        sessions.session_config.keep_alive = Some(IDLE);
        let sessions = Arc::new(sessions);
        let factory = move || Ok(server.clone());
        Room {
            service: StreamableHttpService::new(factory, Arc::clone(&sessions), self.settings.clone()),
            sessions,
            order: Arc::default(),
            used: Instant::now(),
        }
    }
}

impl Room {
    /// Whether somebody is there, or was a moment ago.
    fn is_in_use(&self) -> bool {
        self.used.elapsed() < EMPTY || self.sessions.sessions.try_read().map_or(true, |all| !all.is_empty())
    }

    /// Notes a new session, and ends the oldest if there are too many.
    async fn remember(&self, id: String) {
        let oldest = {
            let mut order = self.order.lock();
            if order.contains(&id) {
                return;
            }
            order.push_back(id);
            if order.len() > SESSIONS { order.pop_front() } else { None }
        };
        if let Some(oldest) = oldest {
            // It may have ended by itself long ago.
            drop(self.sessions.close_session(&oldest.into()).await);
        }
    }

    fn forget(&self, id: &str) {
        self.order.lock().retain(|other| other != id);
    }
}

debug_without_content!(Room { used });

/// Why a request was not understood as MCP, in words of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: &'static str,
    pub hint: &'static str,
}

impl Refused {
    fn of(status: StatusCode) -> Self {
        let (code, message, hint) = match status {
            StatusCode::FORBIDDEN => (
                "foreign_host",
                "the request names a host that is not this server",
                "use localhost or 127.0.0.1, or add the name to server.hosts",
            ),
            StatusCode::NOT_FOUND => (
                "no_session",
                "there is no such MCP session, or it has ended",
                "send initialize without Mcp-Session-Id to begin a new one",
            ),
            StatusCode::METHOD_NOT_ALLOWED => {
                ("method_not_allowed", "MCP does not use this HTTP method", "use POST, GET or DELETE")
            }
            StatusCode::NOT_ACCEPTABLE => (
                "not_acceptable",
                "MCP answers in JSON or as a stream of events",
                "send `Accept: application/json, text/event-stream`",
            ),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => (
                "not_a_message",
                "the body is not a JSON-RPC message, or is not declared as JSON",
                "send one JSON-RPC message with `Content-Type: application/json`",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => {
                ("body_too_large", "the body is too large", "send less, or raise server.max_body_bytes")
            }
            status if status.is_server_error() => {
                ("internal", "an internal server error", "try again, then see its log and report this")
            }
            _ => (
                "invalid_request",
                "the request is not what MCP expects here",
                "send initialize first, then its Mcp-Session-Id and MCP-Protocol-Version with every request",
            ),
        };
        Self { status, code, message, hint }
    }
}

/// Whether this is an `initialize` that says of itself to be of a revision that has none.
fn is_handshake_of_later_days(headers: &HeaderMap) -> bool {
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    text("mcp-method") == "initialize"
        && text("mcp-protocol-version") >= ProtocolVersion::NO_INITIALIZE.as_str()
}

fn no_handshake(body: &[u8]) -> Response {
    #[derive(serde::Deserialize)]
    struct Id {
        id: Option<RequestId>,
    }
    let id = serde_json::from_slice::<Id>(body).ok().and_then(|Id { id }| id);
    let message =
        "this revision of MCP has no initialize; hint: call server/discover, or name an older revision";
    let error = JsonRpcError::new(id, ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
    json(StatusCode::NOT_FOUND, serde_json::to_vec(&error).unwrap_or_default())
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn session_id(headers: &HeaderMap) -> Option<String> {
    headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned)
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
    media.is_some_and(|media| media.starts_with("application/json"))
}

/// How long a session may be silent before it ends; a client then begins a new one.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// How long an empty room is kept.
const EMPTY: Duration = Duration::from_secs(60);
/// How many sessions one person has with one token.
const SESSIONS: usize = 64;
