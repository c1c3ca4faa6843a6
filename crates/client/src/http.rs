//! The way to a server over HTTP and WebSocket.
//!
//! ```text
//! POST origin/path   Authorization: Confidant-Session ID, Confidant-Session: SECRET ─▶ body, header Confidant-Session-Id
//! GET  origin/ws     upgraded, then one message per frame: text, or packed (DEFLATE) if the server agreed to that
//! ```
//!
//! A program shows its session in headers and never has a cookie or an `Origin`. It follows no redirects: proofs and
//! sessions go to the server that the person named, or nowhere. Easy to get wrong: an answer that is not the server's. A
//! proxy's error page is no refusal; it counts as no answer.

use std::io::Read as _;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use confidant_chat_format::Origin;
use confidant_chat_protocol::limits::{MAX_BODY, MAX_FRAME};
use confidant_chat_protocol::{Body as _, RefusedSent};
use flate2::read::DeflateDecoder;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderValue, UPGRADE};
use reqwest::{Client, Response, StatusCode};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tokio_websockets::{ClientBuilder, Limits, Message, WebSocketStream};

use crate::error::Error;
use crate::transport::{Connection, Posted, SessionKeys, Transport, TransportError};

/// A server, by its origin.
#[derive(Debug, Clone)]
pub struct Http {
    origin: Origin,
    client: Client,
    /// Sockets need HTTP/1.1.
    sockets: Client,
}

impl Http {
    /// The server at this origin: `https://chat.example`. Plain HTTP is for servers on this machine.
    pub fn new(origin: Origin) -> Result<Self, Error> {
        let client = builder(&origin).build().map_err(|_| Error::Offline)?;
        let sockets = builder(&origin).http1_only().build().map_err(|_| Error::Offline)?;
        Ok(Self { origin, client, sockets })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin.as_str())
    }
}

/// How a server is reached: no redirect, no cookie, no certificate that is wrong; and no proxy for one on this machine.
pub fn builder(origin: &Origin) -> reqwest::ClientBuilder {
    let mut builder =
        Client::builder().connect_timeout(CONNECT).redirect(reqwest::redirect::Policy::none()).referer(false);
    // Somebody else in the process may have installed one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match origin.as_str().strip_prefix("http://") {
        Some(host) => {
            builder = builder.tls_certs_only(std::iter::empty());
            if is_loopback(host) {
                builder = builder.no_proxy();
            }
        }
        None => builder = builder.https_only(true),
    }
    builder
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    let name = name.unwrap_or_default();
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[async_trait]
impl Transport for Http {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    async fn post(
        &self,
        path: &str,
        session: Option<&SessionKeys>,
        body: Vec<u8>,
    ) -> Result<Posted, TransportError> {
        let mut request = self
            .client
            .post(self.url(path))
            .header(CONTENT_TYPE, "application/json")
            .timeout(ANSWER)
            .body(body);
        if let Some(keys) = session {
            let id = secret_header(&format!("Confidant-Session {}", URL_SAFE_NO_PAD.encode(keys.id)))?;
            let secret = secret_header(&URL_SAFE_NO_PAD.encode(keys.secret))?;
            request = request.header(AUTHORIZATION, id).header(SESSION, secret);
        }
        let response = request.send().await.map_err(|_| TransportError::Offline)?;
        let status = response.status();
        let session = response.headers().get(SESSION_ID).and_then(|value| {
            let bytes = URL_SAFE_NO_PAD.decode(value.as_bytes()).ok()?;
            <[u8; 32]>::try_from(bytes).ok()
        });
        if status != StatusCode::OK {
            return Err(refusal(response).await);
        }
        let most = if LINES.contains(&path) { MAX_LINES } else { MAX_FRAME };
        Ok(Posted { body: read(response, most).await?, session })
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, TransportError> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|_| TransportError::Offline)?;
        let key = STANDARD.encode(key);
        let request = self
            .sockets
            .get(self.url("/ws"))
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-protocol", PACKED)
            .header("sec-websocket-key", &key);
        // The whole handshake, since a socket that is open has no time limit.
        let sent = tokio::time::timeout(CONNECT, request.send()).await;
        let response = sent.map_err(|_| TransportError::Offline)?.map_err(|_| TransportError::Offline)?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refusal(response).await);
        }
        let accepts = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
        let accepted = response.headers().get("sec-websocket-accept").map(HeaderValue::as_bytes);
        if accepted != Some(STANDARD.encode(accepts).as_bytes()) {
            return Err(TransportError::Offline);
        }
        let chosen = response.headers().get("sec-websocket-protocol");
        // One that nobody offered is a server that does not speak WebSocket.
        if chosen.is_some_and(|chosen| chosen != PACKED) {
            return Err(TransportError::Offline);
        }
        let is_packed = chosen.is_some();
        let stream = response.upgrade().await.map_err(|_| TransportError::Offline)?;
        let limits = Limits::default().max_payload_len(Some(MAX_FRAME));
        let stream = ClientBuilder::new().limits(limits).take_over(stream);
        Ok(Box::new(Socket { stream, is_packed }))
    }
}

fn secret_header(text: &str) -> Result<HeaderValue, TransportError> {
    let mut value = HeaderValue::try_from(text).map_err(|_| TransportError::Offline)?;
    value.set_sensitive(true);
    Ok(value)
}

/// What an answer other than success says. One that is not of the protocol is not the server's.
async fn refusal(response: Response) -> TransportError {
    match read(response, MAX_BODY).await.ok().and_then(|body| RefusedSent::read(&body).ok()) {
        Some(refused) => TransportError::Refused(Box::new(refused)),
        None => TransportError::Offline,
    }
}

/// The body, of at most so many bytes.
async fn read(mut response: Response, most: usize) -> Result<Vec<u8>, TransportError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|_| TransportError::Offline)? {
        if body.len() + piece.len() > most {
            return Err(TransportError::Offline);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

#[derive(Debug)]
struct Socket {
    stream: WebSocketStream<reqwest::Upgraded>,
    /// Whether the server may pack frames.
    is_packed: bool,
}

#[async_trait]
impl Connection for Socket {
    async fn send(&mut self, frame: Vec<u8>) -> Result<(), TransportError> {
        let text = String::from_utf8(frame).map_err(|_| TransportError::Offline)?;
        self.stream.send(Message::text(text)).await.map_err(|_| TransportError::Offline)
    }

    async fn next(&mut self) -> Result<Vec<u8>, TransportError> {
        loop {
            match self.stream.next().await {
                Some(Ok(message)) if message.is_text() => return Ok(message.as_payload().to_vec()),
                Some(Ok(message)) if message.is_binary() && self.is_packed => {
                    return unpacked(message.as_payload()).ok_or(TransportError::Offline);
                }
                Some(Ok(message)) => {
                    if let Some((code, _)) = message.as_close() {
                        return Err(TransportError::Closed(code.into()));
                    }
                }
                Some(Err(_)) | None => return Err(TransportError::Offline),
            }
        }
    }
}

/// A packed frame. Its size is looked at while it grows.
fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let mut frame = Vec::with_capacity(packed.len().saturating_mul(2).min(MAX_FRAME));
    let mut bytes = DeflateDecoder::new(packed).take(MAX_FRAME as u64 + 1);
    bytes.read_to_end(&mut frame).ok()?;
    (frame.len() <= MAX_FRAME).then_some(frame)
}

/// The subprotocol of those who take packed frames.
const PACKED: &str = "confidant.deflate";
const SESSION: &str = "confidant-session";
const SESSION_ID: &str = "confidant-session-id";
/// Answers of many frames, one per line.
const LINES: &[&str] = &["/account/export", "/chats/events"];
/// How many bytes such an answer may have.
const MAX_LINES: usize = 2 << 30;
const CONNECT: Duration = Duration::from_secs(10);
/// Nobody waits longer for an answer; an export of a large account takes a while.
const ANSWER: Duration = Duration::from_secs(300);
/// RFC 6455, section 1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[cfg(test)]
mod tests {
    use super::*;

    use confidant_chat_format::Refused;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    /// Reads a request: its head, and a body of the length it says.
    async fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        loop {
            let mut piece = [0; 4096];
            let count = stream.read(&mut piece).await.unwrap();
            assert!(count > 0, "the request ended early");
            bytes.extend_from_slice(&piece[..count]);
            let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
            let Some(end) = text.find("\r\n\r\n") else { continue };
            let length = text.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
            let length = length.map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                return (text[..end].to_owned(), bytes[end + 4..].to_vec());
            }
        }
    }

    async fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
        stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    }

    async fn server() -> (TcpListener, Http) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        (listener, Http::new(origin).unwrap())
    }

    #[tokio::test]
    async fn a_session_is_shown_in_headers_and_its_id_is_read_from_one() {
        let (listener, http) = server().await;
        let id = URL_SAFE_NO_PAD.encode([1; 32]);
        let here = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let first = request(&mut stream).await;
            answer(&mut stream, "200 OK", &format!("confidant-session-id: {id}\r\n"), b"{}").await;
            let second = request(&mut stream).await;
            let refused = RefusedSent::from(Refused::LoginRefused).write().unwrap();
            answer(&mut stream, "401 Unauthorized", "", &refused).await;
            request(&mut stream).await;
            answer(&mut stream, "502 Bad Gateway", "", b"<html>").await;
            (first, second)
        });
        let posted = http.post("/account/login", None, b"{\"a\":1}".to_vec()).await.unwrap();
        assert_eq!((posted.body.as_slice(), posted.session), (&b"{}"[..], Some([1; 32])));
        let keys = SessionKeys { id: [1; 32], secret: [2; 32] };
        let refused = http.post("/chats/ticket", Some(&keys), b"{}".to_vec()).await.unwrap_err();
        let TransportError::Refused(refused) = refused else { panic!("{refused:?}") };
        assert_eq!(refused.error.name(), "login-refused");
        let nothing = http.post("/chats/ticket", Some(&keys), b"{}".to_vec()).await.unwrap_err();
        assert_eq!(nothing, TransportError::Offline, "a proxy's page is no refusal");
        let (first, second) = here.await.unwrap();
        assert!(first.0.starts_with("post /account/login http/1.1\r\n") && first.1 == b"{\"a\":1}");
        assert!(first.0.contains("content-type: application/json"));
        for absent in ["authorization", "cookie", "origin:", "confidant-session"] {
            assert!(!first.0.contains(absent), "{absent}");
        }
        let id = URL_SAFE_NO_PAD.encode([1; 32]).to_ascii_lowercase();
        let secret = URL_SAFE_NO_PAD.encode([2; 32]).to_ascii_lowercase();
        assert!(second.0.contains(&format!("authorization: confidant-session {id}")));
        assert!(second.0.contains(&format!("confidant-session: {secret}")));
    }

    #[tokio::test]
    async fn a_socket_carries_frames_and_says_why_it_closed() {
        let (listener, http) = server().await;
        let here = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (asked, mut socket) = tokio_websockets::ServerBuilder::new().accept(stream).await.unwrap();
            assert_eq!(asked.uri().path(), "/ws");
            assert!(asked.headers().get("origin").is_none());
            let first = socket.next().await.unwrap().unwrap();
            socket.send(Message::ping("")).await.unwrap();
            socket.send(Message::text(first.as_text().unwrap().to_owned())).await.unwrap();
            let code = tokio_websockets::CloseCode::try_from(4403).unwrap();
            socket.send(Message::close(Some(code), "")).await.unwrap();
            while let Some(Ok(_)) = socket.next().await {}
        });
        let mut socket = http.connect().await.unwrap();
        socket.send(b"{\"hello\":1}".to_vec()).await.unwrap();
        assert_eq!(socket.next().await.unwrap(), b"{\"hello\":1}");
        assert_eq!(socket.next().await.unwrap_err(), TransportError::Closed(4403));
        drop(socket);
        here.await.unwrap();
    }

    #[test]
    fn packed_frames_are_unpacked_up_to_the_limit_of_a_frame() {
        let pack = |bytes: &[u8]| {
            let mut packing = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut packing, bytes).unwrap();
            packing.finish().unwrap()
        };
        assert_eq!(unpacked(&pack(b"{\"hello\":1}")).unwrap(), b"{\"hello\":1}");
        let bomb = pack(&vec![b' '; MAX_FRAME + 1]);
        assert!(bomb.len() < MAX_FRAME && unpacked(&bomb).is_none());
        assert!(unpacked(b"neither").is_none());
        let cut = pack(&vec![b'1'; 1000]);
        assert!(unpacked(&cut[..cut.len() - 2]).is_none());
    }

    #[tokio::test]
    async fn nobody_there_is_offline() {
        let (listener, http) = server().await;
        drop(listener);
        let refused = http.post("/account/prelogin", None, b"{}".to_vec()).await.unwrap_err();
        assert_eq!(refused, TransportError::Offline);
        assert!(matches!(http.connect().await, Err(TransportError::Offline)));
    }
}
