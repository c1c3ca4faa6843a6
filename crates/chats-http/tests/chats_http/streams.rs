//! News without a socket: `GET /chats/events`.

use std::time::Duration;

use confidant_chat_format::ChatId;
use confidant_chat_protocol::{Body as _, ClientEvent, ClientFrame, Done, Logout, ServerEvent, ServerFrame};
use confidant_chats_http::Patience;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::world::{Session, World, within};

/// A stream that is being read.
struct Stream {
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    text: String,
    _connection: JoinHandle<hyper::Result<()>>,
}

impl Stream {
    async fn open(world: &World, headers: &[(String, String)]) -> Self {
        let stream = TcpStream::connect(world.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let mut request = Request::get("/chats/events");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let (parts, body) = within(sender.send_request(request)).await.unwrap().into_parts();
        let (status, headers) = (parts.status, parts.headers);
        Self { status, headers, body, text: String::new(), _connection: connection }
    }

    /// The next event or comment, as it is; `None` after the last.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(event);
            }
            let piece = within(self.body.frame()).await?.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The next event: its id, and the frame.
    async fn frame(&mut self) -> (Option<u64>, ServerFrame) {
        let event = self.next().await.expect("it ended");
        let (id, data) = match event.split_once('\n') {
            Some((id, data)) => (Some(id.strip_prefix("id: ").unwrap().parse().unwrap()), data),
            None => (None, event.as_str()),
        };
        (id, ServerFrame::read(data.strip_prefix("data: ").unwrap().as_bytes()).unwrap())
    }
}

async fn write(world: &World, session: &Session, person: &mut crate::device::Person) {
    let event = ClientEvent::EncryptedChatMetadata(person.write(&ChatId::random(), 10));
    let frames = world.post("/chats/events", Some(session), &ClientFrame { id: 1, event }).await.frames();
    assert!(matches!(frames[0].event, ServerEvent::EncryptedMetadataStored(_)), "{frames:?}");
}

#[tokio::test]
async fn news_come_as_server_sent_events_until_the_session_ends() {
    let world = World::new().await;
    let (mut ana, session) = world.register("ana").await;
    let mut stream = Stream::open(&world, &world.program(Some(&session))).await;
    assert_eq!(
        (stream.status.as_u16(), &stream.headers["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    assert_eq!(stream.headers["cache-control"], "no-store");
    let (_, ready) = stream.frame().await;
    let ServerEvent::Ready(ready) = ready.event else { panic!("{ready:?}") };
    assert_eq!(ready.account, ana.id);
    let other = world.login(&ana).await;
    let mut heard = Some(ready.seq);
    for _ in 0..2 {
        write(&world, &other, &mut ana).await;
        loop {
            let (id, news) = stream.frame().await;
            assert_eq!((id, id >= heard), (news.seq, true), "in their order");
            heard = id;
            if matches!(news.event, ServerEvent::ChatUpdated(_)) {
                break;
            }
        }
    }
    // Somebody who was away says how far it heard, and is told where things are now.
    let mut again = world.program(Some(&session));
    again.push(("last-event-id".to_owned(), ready.seq.to_string()));
    let (_, now) = Stream::open(&world, &again).await.frame().await;
    assert!(matches!(&now.event, ServerEvent::Ready(now) if Some(now.seq) >= heard), "{now:?}");
    world.post("/account/logout", Some(&session), &Logout { everywhere: false }).await.read::<Done>();
    // What was told before comes before.
    while !matches!(stream.frame().await.1.event, ServerEvent::ForceLogout(_)) {}
    assert_eq!(stream.next().await, None);
    world.is_unharmed(&other).await;
}

#[tokio::test]
async fn what_is_posted_on_a_stream_is_told_to_the_others_only() {
    let world = World::new().await;
    let (mut ana, session) = world.register("ana").await;
    let mut stream = Stream::open(&world, &world.program(Some(&session))).await;
    let mut other = Stream::open(&world, &world.program(Some(&session))).await;
    let number = |stream: &Stream| stream.headers["confidant-stream"].to_str().unwrap().to_owned();
    assert_ne!(number(&stream), number(&other));
    for one in [&mut stream, &mut other] {
        assert!(matches!(one.frame().await.1.event, ServerEvent::Ready(_)));
    }
    let post = async |number: &str, event| {
        let mut headers = world.program(Some(&session));
        headers.push(("confidant-stream".to_owned(), number.to_owned()));
        let frame = ClientFrame { id: 1, event }.write().unwrap();
        world.send(Method::POST, "/chats/events", &headers, frame).await
    };
    let written = |ana: &mut crate::device::Person| {
        ClientEvent::EncryptedChatMetadata(ana.write(&ChatId::random(), 10))
    };
    for mine in [number(&stream), number(&other)] {
        let frames = post(&mine, written(&mut ana)).await.frames();
        assert!(matches!(frames[0].event, ServerEvent::EncryptedMetadataStored(_)), "{frames:?}");
    }
    // The first hears of the second one's write only, and the other way round.
    let (first, second) = (next_update(&mut stream).await, next_update(&mut other).await);
    assert!(first > second, "{first} {second}");
    assert_eq!(post("x", written(&mut ana)).await.refusal(), (400, "malformed"));
    assert_eq!(post("77777", written(&mut ana)).await.refusal(), (503, "unavailable"));
    world.is_unharmed(&session).await;
}

/// The number of the next change to a chat.
async fn next_update(stream: &mut Stream) -> u64 {
    loop {
        if let (Some(seq), ServerFrame { event: ServerEvent::ChatUpdated(_), .. }) = stream.frame().await {
            return seq;
        }
    }
}

#[tokio::test]
async fn a_stream_needs_a_session_and_our_own_page() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    let get = async |headers: &[(String, String)]| {
        let reply = Stream::open(&world, headers).await;
        (reply.status.as_u16(), reply)
    };
    let without = |name: &str| -> Vec<(String, String)> {
        world.page(Some(&session)).into_iter().filter(|(header, _)| header != name).collect()
    };
    // A browser names no origin when it reads from its own page.
    let (status, mut stream) = get(&without("origin")).await;
    assert_eq!(status, 200);
    assert!(matches!(stream.frame().await.1.event, ServerEvent::Ready(_)));
    assert_eq!(get(&world.page(Some(&session))).await.0, 200);
    let mut foreign = without("origin");
    foreign.iter_mut().for_each(|(name, value)| {
        if name == "sec-fetch-site" {
            "cross-site".clone_into(value);
        }
    });
    let mut bare = without("origin");
    bare.retain(|(name, _)| name != "sec-fetch-site");
    let mut moved = without("origin");
    "evil.example".clone_into(&mut moved[0].1);
    let mut number = world.program(Some(&session));
    number.push(("last-event-id".to_owned(), "x".to_owned()));
    for (what, headers, status) in [
        ("nobody", world.program(None), 401),
        ("a cookie alone", without("confidant-session"), 401),
        ("a page elsewhere", foreign, 401),
        ("a cookie from nowhere", bare, 401),
        ("another host", moved, 401),
        ("no number", number, 400),
    ] {
        assert_eq!(get(&headers).await.0, status, "{what}");
    }
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn a_quiet_stream_is_kept_alive_and_ends_with_the_server() {
    let quick = Patience { ping: Duration::from_millis(20), ..Patience::default() };
    let mut world = World::with(quick, 1000).await;
    let (_, session) = world.register("ana").await;
    let mut stream = Stream::open(&world, &world.program(Some(&session))).await;
    stream.frame().await;
    assert_eq!(stream.next().await.as_deref(), Some(":"));
    world.stop();
    while stream.next().await.is_some() {}
    drop(stream);
    within(world.server).await.unwrap();
}

#[tokio::test]
async fn what_is_neither_is_refused() {
    let world = World::new().await;
    let reply = world.send(Method::PUT, "/chats/events", &world.program(None), "").await;
    assert_eq!(reply.status, 405);
    assert_eq!(reply.refusal().1, "malformed");
}
