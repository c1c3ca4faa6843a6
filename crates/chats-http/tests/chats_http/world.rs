//! A server on a port of this machine, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use confidant_chat_format::{Login, Origin, Purpose};
use confidant_chat_protocol::{
    Body as Wire, Challenge, ChallengeRequest, ClientEvent, ClientFrame, Hello, LoginRequest, Ping, Provable,
    RefusedSent, RegisterBegin, RegisterOffer, Secret, ServerEvent, ServerFrame, SessionOpened, Signed, Text,
    Ticket, TicketRequest,
};
use confidant_chats::service::{Parts, Registration, Service, Settings as Rules};
use confidant_chats::store::{Millis, sqlite::SqliteChats};
use confidant_chats::vault::MemoryVault;
use confidant_chats_http::{Patience, Settings, router};
use confidant_listener::{PlaceLimits, listen};
use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_websockets::{ClientBuilder, Message, WebSocketStream};

use crate::device::Person;

/// A second origin, with TLS.
pub(crate) const FAR: &str = "https://chat.example";
/// How long anything is waited for. It is never waited for in vain, unless something is broken.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) origin: Origin,
    first: String,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) server: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

/// The secrets of a session, as they are sent.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) secret: String,
}

pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn read<T: Wire>(&self) -> T {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        T::read(&self.body).unwrap()
    }

    /// Status and name of the refusal that this is.
    pub(crate) fn refusal(&self) -> (u16, &'static str) {
        assert_eq!(self.headers["content-type"], "application/json");
        let refused = RefusedSent::read(&self.body).unwrap();
        assert!(!refused.what.as_str().is_empty() && !refused.hint.as_str().is_empty());
        (self.status.as_u16(), refused.error.name())
    }

    pub(crate) fn frames(&self) -> Vec<ServerFrame> {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.headers["content-type"], "application/x-ndjson");
        let lines = self.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| ServerFrame::read(line).unwrap()).collect()
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Patience::default(), 1000).await
    }

    pub(crate) async fn with(patience: Patience, places: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let origin = Origin::parse(&format!("http://localhost:{}", address.port())).unwrap();
        let origins = vec![origin.clone(), Origin::parse(FAR).unwrap()];
        let folder = tempfile::tempdir().unwrap();
        let service = Service::new(Parts {
            store: Arc::new(SqliteChats::open(folder.path()).unwrap()),
            vault: Arc::new(MemoryVault::new()),
            clock: Arc::new(|| Millis(1_800_000_000_000)),
            settings: Rules {
                origins: origins.clone(),
                registration: Registration::Open,
                burst: 100_000,
                ..Rules::new(origin.clone())
            },
        });
        let first = service.first_code().await.unwrap().to_string();
        let settings = Settings { patience, ..Settings::new(origins) };
        let router = router(service, settings).merge(Router::new().route("/healthz", get(async || "ok")));
        let limits = PlaceLimits { most: places, per_peer: 0, first_head: LONG };
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = Box::pin(async { drop(stopped.await) });
        let crowded = |path: &str| (path != "/healthz").then(axum::response::Response::default);
        let server = tokio::spawn(listen(listener, router, limits, crowded, shutdown));
        Self { address, origin, first, stop: Some(stop), server, _folder: folder }
    }

    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) fn host(&self) -> String {
        format!("localhost:{}", self.address.port())
    }

    /// What a program sends.
    pub(crate) fn program(&self, session: Option<&Session>) -> Vec<(String, String)> {
        let mut headers = vec![(HOST.to_string(), self.host()), json()];
        if let Some(Session { id, secret }) = session {
            headers.push((AUTHORIZATION.to_string(), format!("Confidant-Session {id}")));
            headers.push(("confidant-session".to_owned(), secret.clone()));
        }
        headers
    }

    /// What a browser sends for our page.
    pub(crate) fn page(&self, session: Option<&Session>) -> Vec<(String, String)> {
        let mut headers = vec![
            (HOST.to_string(), self.host()),
            json(),
            ("origin".to_owned(), self.origin.as_str().to_owned()),
            ("sec-fetch-site".to_owned(), "same-origin".to_owned()),
        ];
        if let Some(Session { id, secret }) = session {
            headers.push(("cookie".to_owned(), format!("confidant-{}={id}", self.address.port())));
            headers.push(("confidant-session".to_owned(), secret.clone()));
        }
        headers
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(String, String)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = within(sender.send_request(request)).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = within(body.collect()).await.unwrap().to_bytes();
        connection.abort();
        Reply { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn post(&self, path: &str, session: Option<&Session>, body: &impl Wire) -> Reply {
        self.send(Method::POST, path, &self.program(session), body.write().unwrap()).await
    }

    pub(crate) async fn sign<T: Provable>(&self, person: &Person, request: &T) -> Signed {
        let challenge = self.challenge(T::PURPOSE).await;
        Signed::sign(request, &person.root, &self.origin, person.signer(), challenge).unwrap()
    }

    pub(crate) async fn challenge(&self, purpose: Purpose) -> Secret {
        self.post("/account/challenge", None, &ChallengeRequest { purpose })
            .await
            .read::<Challenge>()
            .challenge
    }

    pub(crate) async fn prove<T: Provable>(
        &self,
        path: &str,
        person: &Person,
        session: Option<&Session>,
        request: &T,
    ) -> Reply {
        self.post(path, session, &self.sign(person, request).await).await
    }

    /// A new account, and a program's session.
    pub(crate) async fn register(&self, login: &str) -> (Person, Session) {
        let login = Login::parse(login).unwrap();
        // Only the first account needs it; the others may show it as well.
        let invite = Some(Text::new(self.first.clone()).unwrap());
        let begin = |invite| RegisterBegin { login: login.clone(), invite };
        let mut offer = self.post("/account/register/begin", None, &begin(invite)).await;
        if offer.status != 200 {
            offer = self.post("/account/register/begin", None, &begin(None)).await;
        }
        let (person, signed) = Person::new(&login, offer.read::<RegisterOffer>(), &self.origin);
        let reply = self.post("/account/register", None, &signed).await;
        (person, opened(&reply))
    }

    pub(crate) async fn login(&self, person: &Person) -> Session {
        let request = LoginRequest { kind: confidant_chat_protocol::CredentialKind::Password, device: None };
        opened(&self.prove("/account/login", person, None, &request).await)
    }

    pub(crate) async fn ticket(&self, session: &Session) -> Secret {
        self.post("/chats/ticket", Some(session), &TicketRequest {}).await.read::<Ticket>().ticket
    }

    /// A socket of a program, without a word.
    pub(crate) async fn socket(&self) -> WebSocketStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let uri = format!("ws://{}/ws", self.host()).parse().unwrap();
        let (socket, response) = within(ClientBuilder::from_uri(uri).connect_on(stream)).await.unwrap();
        assert_eq!(response.status(), 101);
        socket
    }

    /// A socket that is open.
    pub(crate) async fn open(&self, session: &Session) -> WebSocketStream<TcpStream> {
        let mut socket = self.socket().await;
        say(&mut socket, hello(self.ticket(session).await)).await;
        let ready = hear(&mut socket).await;
        assert!(matches!(ready.event, ServerEvent::Ready(_)), "{ready:?}");
        socket
    }

    /// An honest person is served: over HTTP and on a socket.
    pub(crate) async fn is_unharmed(&self, session: &Session) {
        let mut socket = self.open(session).await;
        say(&mut socket, ClientEvent::Ping(Ping {})).await;
        assert!(matches!(hear(&mut socket).await.event, ServerEvent::Pong(_)));
    }

    /// Sends bytes on a bare connection, and gives all that comes back until it ends.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut reply = Vec::new();
        within(stream.read_to_end(&mut reply)).await.unwrap();
        String::from_utf8_lossy(&reply).into_owned()
    }
}

fn json() -> (String, String) {
    ("content-type".to_owned(), "application/json".to_owned())
}

/// The secrets that a program gets.
pub(crate) fn opened(reply: &Reply) -> Session {
    let body: SessionOpened = reply.read();
    assert!(!reply.headers.contains_key("set-cookie"));
    let id = reply.headers["confidant-session-id"].to_str().unwrap().to_owned();
    Session { id, secret: text_of(body.session) }
}

/// A secret as it is sent.
pub(crate) fn text_of(secret: Secret) -> String {
    let json = Ticket { ticket: secret, expires_ms: 1 }.write().unwrap();
    let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
    value["ticket"].as_str().unwrap().to_owned()
}

pub(crate) fn hello(ticket: Secret) -> ClientEvent {
    ClientEvent::Hello(Hello { v: 1, ticket, seq: None })
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, work).await.expect("it took too long")
}

pub(crate) type Line = WebSocketStream<TcpStream>;

pub(crate) async fn say(socket: &mut Line, event: ClientEvent) {
    let frame = ClientFrame { id: 7, event }.write().unwrap();
    within(socket.send(Message::text(frame))).await.unwrap();
}

/// The next frame.
pub(crate) async fn hear(socket: &mut Line) -> ServerFrame {
    loop {
        let message = within(socket.next()).await.expect("it ended").unwrap();
        if message.is_text() {
            return ServerFrame::read(message.as_payload()).unwrap();
        }
        assert!(message.is_ping() || message.is_pong(), "{message:?}");
    }
}

/// The code that the server closes with. What is said before is not minded.
pub(crate) async fn closed(socket: &mut Line) -> u16 {
    loop {
        match within(socket.next()).await {
            Some(Ok(message)) if message.is_close() => {
                let (code, _) = message.as_close().unwrap();
                return code.into();
            }
            Some(Ok(_)) => {}
            other => panic!("it ended without a code: {other:?}"),
        }
    }
}
