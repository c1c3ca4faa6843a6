//! The page from one's own machine, for a server elsewhere: whoever does not trust the server's code runs their own.
//!
//! ```text
//! browser ── http://127.0.0.1:7368 ──▶ admit: Host, key, Origin ─┬─▶ page: our own files, which name the server
//!                                                                ├─▶ POST /account/…, /chats/… ─▶ server, as a program
//!                                                                └─▶ GET /ws ───── bytes ──────▶ server
//! ```
//!
//! To the server this is a program: it shows a session in headers and has no cookie and no origin. To the browser it is the page's
//! origin: the session's id is in a cookie that scripts do not see, as it is at a server. Of the server's answers the browser gets
//! the status and the body as data, and none of the headers that could tell it something else.
//!
//! Easy to get wrong: two servers, one after the other, at the same address here. The cookie's name has the server in it, so that
//! no server gets the session of another; the page keeps its files under the server's name as well.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_chat_format::Origin;
use confidant_chat_protocol::{ROUTES, Route};
use confidant_display::debug_without_content;
use confidant_listener::{Connection, Kept, PlaceLimits, listen};
use futures_util::future::BoxFuture;
use futures_util::stream;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest::{SHA256, digest};

use tokio::net::TcpListener;

use crate::Page;

/// What the page is handed out with.
#[derive(Clone)]
pub struct Relay {
    /// Where it listens, on this machine.
    pub here: SocketAddr,
    /// The server.
    pub server: Origin,
    /// What whoever may use it knows: it is in the address that is printed.
    pub key: String,
    /// Asks the server. Follows no redirect, has no cookies, and takes no certificate that is wrong.
    pub client: reqwest::Client,
    /// The same over HTTP/1.1, for sockets.
    pub sockets: reqwest::Client,
    /// Is told when the server can no longer be reached, and when it can again.
    pub tell: fn(&Reach),
}

debug_without_content!(Relay { here });

/// Whether the server can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It answers.
    Answers,
    /// It does not.
    Away,
    /// Somebody answers whose certificate is wrong.
    WrongCertificate,
    /// It answers, but not as a server of chats.
    NoChats,
}

impl Relay {
    /// The address to open, with the key.
    pub fn address(&self) -> String {
        format!("http://{}/open/{}", self.host(), self.key)
    }

    /// What a browser calls this place: it leaves out the port that `http` has anyway.
    fn host(&self) -> String {
        let text = self.here.to_string();
        text.strip_suffix(":80").map_or(text.clone(), str::to_owned)
    }

    /// Serves until `shutdown` resolves.
    pub async fn serve(self, listener: TcpListener, page: Page, shutdown: BoxFuture<'static, ()>) {
        let limits = PlaceLimits { most: 256, per_peer: 0, first_head: LOOK };
        let crowded = |_: &str| Some(plain(StatusCode::SERVICE_UNAVAILABLE, "too many connections are open"));
        listen(listener, self.router(page), limits, crowded, shutdown).await;
    }

    /// All routes.
    fn router(self, page: Page) -> Router {
        let server = self.server.as_str().to_owned();
        let shared = Arc::new(Shared {
            host: self.host(),
            origin: format!("http://{}", self.host()),
            pass: format!("confidant-page-{}", self.here.port()),
            session: format!("confidant-{}-{}", self.here.port(), short(&server)),
            reached: AtomicU8::new(0),
            relay: self,
        });
        let mut router = page.for_server(&server).router();
        for route in ROUTES {
            let shared = Arc::clone(&shared);
            let relayed = async move |request| passed_on(&shared, route, request).await;
            router = router.route(route.path, post(relayed));
        }
        let (opening, socket) = (Arc::clone(&shared), Arc::clone(&shared));
        router
            .route("/ws", get(async move |request| tunnel(&socket, request).await))
            .route("/open/{key}", get(async move |request| open(&opening, &request)))
            .fallback(async || plain(StatusCode::NOT_FOUND, "there is no such page"))
            .layer(middleware::from_fn_with_state(shared, admit))
    }

    /// Asks the server whether it is there.
    pub async fn look(&self) -> Reach {
        let asked = self.client.get(format!("{}/healthz", self.server.as_str())).timeout(LOOK).send().await;
        match asked {
            Ok(answer) if answer.status().is_success() => Reach::Answers,
            Ok(_) => Reach::NoChats,
            Err(error) => reach_of(&error),
        }
    }
}

/// Why a request to the server failed.
fn reach_of(error: &reqwest::Error) -> Reach {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(one) = cause {
        // The words of rustls, which reqwest has inside.
        if one.to_string().contains("invalid peer certificate") {
            return Reach::WrongCertificate;
        }
        cause = one.source();
    }
    Reach::Away
}

#[derive(Debug)]
struct Shared {
    relay: Relay,
    /// The only name by which it is asked.
    host: String,
    /// The only origin that may ask.
    origin: String,
    /// The cookie that shows that somebody opened the printed address.
    pass: String,
    /// The cookie with the session's id at this server.
    session: String,
    /// What was last told of the server.
    reached: AtomicU8,
}

impl Shared {
    /// Says how the server is, if that changed.
    fn note(&self, reach: &Reach) {
        let number = match reach {
            Reach::Answers => 0,
            Reach::Away => 1,
            Reach::WrongCertificate => 2,
            Reach::NoChats => 3,
        };
        if self.reached.swap(number, Ordering::Relaxed) != number {
            (self.relay.tell)(reach);
        }
    }
}

/// Lets a request through that the page makes, or that opens it, and no other: not that of another site's page, of a name that
/// somebody points at this machine, or of somebody who does not have the key.
async fn admit(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let host = single(headers, &header::HOST);
    if host != Some(shared.host.as_str()) {
        return plain(
            StatusCode::FORBIDDEN,
            "this page is at another address: open the one that was printed",
        );
    }
    let is_opening = request.method() == Method::GET && request.uri().path().starts_with("/open/");
    let site = single(headers, &FETCH_SITE);
    if headers.contains_key(FETCH_SITE) && !is_opening && !matches!(site, Some("same-origin" | "none")) {
        return plain(StatusCode::FORBIDDEN, "the request comes from another site");
    }
    let origin = single(headers, &header::ORIGIN);
    // A browser names no origin when its own page reads.
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    let must_name = !is_reading || headers.contains_key(header::UPGRADE);
    if (must_name || headers.contains_key(header::ORIGIN)) && origin != Some(shared.origin.as_str()) {
        return plain(StatusCode::FORBIDDEN, "the request comes from another site");
    }
    if !is_opening && !cookie(headers, &shared.pass).is_some_and(|given| is_key(&shared, &given)) {
        let text = "open the address that `confidant page` printed: it has the key to this page";
        return plain(StatusCode::FORBIDDEN, text);
    }
    if request.uri().path().starts_with("/console") {
        return plain(StatusCode::NOT_FOUND, "the console is at the server itself");
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn is_key(shared: &Shared, given: &str) -> bool {
    // By their hashes: how long this takes says nothing of the key.
    let hashed = |text: &str| digest(&SHA256, text.as_bytes());
    hashed(given).as_ref() == hashed(&shared.relay.key).as_ref()
}

/// Takes the key from the address into a cookie, and goes on to the page.
///
/// By a page, not by a redirect: after one, a browser that came from elsewhere would not send the cookie yet.
fn open(shared: &Shared, request: &Request) -> Response {
    let given = request.uri().path().strip_prefix("/open/").unwrap_or_default();
    if !is_key(shared, given) {
        let text = "this address is of an earlier start: open the one that `confidant page` printed last";
        return plain(StatusCode::FORBIDDEN, text);
    }
    let mut response = Response::new(Body::from(OPENING));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.extend(set_cookie(&shared.pass, given, "").map(|value| (header::SET_COOKIE, value)));
    response
}

const OPENING: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=/\">\
<title>Confidant</title><link rel=\"icon\" href=\"data:,\"><p><a href=\"/\">Open the page</a></p></html>";
/// For what is no page: nothing runs and nothing is loaded.
const NOTHING: &str =
    "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Passes a request of the page on to the server, and its answer back as it comes.
async fn passed_on(shared: &Shared, route: &Route, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, route.limit).await else {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
    };
    let url = format!("{}{}", shared.relay.server.as_str(), route.path);
    let mut asked = shared.relay.client.post(url).header(header::CONTENT_TYPE, "application/json");
    asked = asked.timeout(ANSWER).body(body);
    for (name, value) in session_headers(shared, &parts) {
        asked = asked.header(name, value);
    }
    let answer = match asked.send().await {
        Ok(answer) => answer,
        Err(error) => return away(shared, &reach_of(&error)),
    };
    let kind = answer.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let Some(kind) = KINDS.into_iter().find(|known| kind == Some(known.as_bytes())) else {
        // A proxy's page, or another server: nothing of it reaches the browser.
        return away(shared, &Reach::NoChats);
    };
    shared.note(&Reach::Answers);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING));
    headers
        .extend(answer.headers().get(header::RETRY_AFTER).map(|value| (header::RETRY_AFTER, value.clone())));
    headers.extend(session_cookie(shared, route, &answer).map(|value| (header::SET_COOKIE, value)));
    *response.body_mut() =
        Body::from_stream(stream::unfold(answer, async |mut answer| match answer.chunk().await {
            Ok(piece) => piece.map(|piece| (Ok::<Bytes, std::io::Error>(piece), answer)),
            Err(_) => Some((Err(std::io::Error::other("the server ended its answer early")), answer)),
        }));
    response
}

/// What the server's answers are.
const KINDS: [&str; 2] = ["application/json", "application/x-ndjson"];

/// The session, as a program shows it.
fn session_headers(shared: &Shared, parts: &Parts) -> Vec<(HeaderName, HeaderValue)> {
    let secret = single(&parts.headers, &SESSION).filter(|secret| is_bytes(secret));
    let id = cookie(&parts.headers, &shared.session).filter(|id| is_bytes(id));
    let (Some(secret), Some(id)) = (secret, id) else { return Vec::new() };
    let shown = [(SESSION, secret.to_owned()), (header::AUTHORIZATION, format!("Confidant-Session {id}"))];
    let hidden = |(name, text): (HeaderName, String)| {
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    };
    shown.into_iter().filter_map(hidden).collect()
}

/// The cookie that an answer sets or removes.
fn session_cookie(shared: &Shared, route: &Route, answer: &reqwest::Response) -> Option<HeaderValue> {
    let opened = answer.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).filter(|id| is_bytes(id));
    match opened {
        Some(id) => set_cookie(&shared.session, id, "; Max-Age=34560000"),
        None if answer.status() == StatusCode::OK && ENDS.contains(&route.path) => {
            set_cookie(&shared.session, "", "; Max-Age=0")
        }
        None => None,
    }
}

/// What ends a session when it succeeds.
const ENDS: [&str; 2] = ["/account/logout", "/account/erase"];

/// The socket: bytes in both directions, from when the server agrees to it.
async fn tunnel(shared: &Arc<Shared>, mut request: Request) -> Response {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    let kept = parts.extensions.get::<Connection>().map(Connection::keep);
    let key = single(&parts.headers, &header::SEC_WEBSOCKET_KEY);
    let is_upgrade =
        single(&parts.headers, &header::UPGRADE).is_some_and(|to| to.eq_ignore_ascii_case("websocket"));
    let (Some(key), Some(kept), true) = (key, kept, is_upgrade) else {
        return plain(StatusCode::BAD_REQUEST, "this is not the handshake of a WebSocket");
    };
    let url = format!("{}/ws", shared.relay.server.as_str());
    let mut asked = shared.relay.sockets.get(url);
    let mut handshake = vec![
        (header::CONNECTION, "Upgrade"),
        (header::UPGRADE, "websocket"),
        (header::SEC_WEBSOCKET_VERSION, "13"),
        (header::SEC_WEBSOCKET_KEY, key),
    ];
    let protocol = single(&parts.headers, &header::SEC_WEBSOCKET_PROTOCOL);
    handshake.extend(protocol.map(|protocol| (header::SEC_WEBSOCKET_PROTOCOL, protocol)));
    for (name, value) in handshake {
        asked = asked.header(name, value);
    }
    let answer = match tokio::time::timeout(LOOK, asked.send()).await {
        Ok(Ok(answer)) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => answer,
        Ok(Ok(_)) => return away(shared, &Reach::NoChats),
        Ok(Err(error)) => return away(shared, &reach_of(&error)),
        Err(_) => return away(shared, &Reach::Away),
    };
    shared.note(&Reach::Answers);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    for name in [header::SEC_WEBSOCKET_ACCEPT, header::SEC_WEBSOCKET_PROTOCOL] {
        headers.extend(answer.headers().get(&name).map(|value| (name, value.clone())));
    }
    tokio::spawn(carry(answer, upgrade, kept));
    response
}

/// Carries bytes until one side ends, or this program does.
async fn carry(answer: reqwest::Response, upgrade: OnUpgrade, mut kept: Kept) {
    let both = async {
        tokio::try_join!(async { answer.upgrade().await.ok().ok_or(()) }, async {
            upgrade.await.map_err(drop)
        })
    };
    let Ok(Ok((mut there, here))) = tokio::time::timeout(LOOK, both).await else { return };
    let mut here = TokioIo::new(here);
    tokio::select! {
        // Whoever goes away does so without a word; the other side hears it as an end.
        _ = tokio::io::copy_bidirectional(&mut here, &mut there) => {}
        () = kept.stopping() => {}
    }
}

/// What the page hears when the server gives no answer: that of nobody, which it takes for being offline.
fn away(shared: &Shared, reach: &Reach) -> Response {
    shared.note(reach);
    let text = match reach {
        Reach::WrongCertificate => "the server's certificate is wrong, so nothing was sent to it",
        Reach::NoChats => "what answers there is not a server of chats",
        Reach::Answers | Reach::Away => "the server cannot be reached",
    };
    plain(StatusCode::BAD_GATEWAY, text)
}

fn plain(status: StatusCode, text: &'static str) -> Response {
    let headers =
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::CONTENT_SECURITY_POLICY, NOTHING)];
    (status, headers, text).into_response()
}

/// The only value of a header.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then(|| first.to_str().ok()).flatten()
}

/// The only value of a cookie.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut found = pairs.filter(|pair| pair.0 == name).map(|(_, value)| value.to_owned());
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

fn set_cookie(name: &str, value: &str, more: &str) -> Option<HeaderValue> {
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{more}");
    let mut header = HeaderValue::try_from(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Whether a text is 32 bytes, as sessions are written.
fn is_bytes(text: &str) -> bool {
    URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == 32)
}

/// A short name for a server, the same each time.
fn short(server: &str) -> String {
    hex::encode(digest(&SHA256, server.as_bytes()).as_ref().get(..8).unwrap_or_default())
}

const SESSION: HeaderName = HeaderName::from_static("confidant-session");
const SESSION_ID: HeaderName = HeaderName::from_static("confidant-session-id");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const LOOK: Duration = Duration::from_secs(10);
/// Nobody waits longer for an answer; an export of a large account takes a while.
const ANSWER: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests;
