//! A relay on a socket of its own, in front of a server that remembers what it was asked.

use std::sync::Mutex;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::Built;

static FILES: [Built; 3] = [
    Built { name: "app.js", bytes: b"let words = 1;", brotli: None },
    Built { name: "console.html", bytes: b"console", brotli: None },
    Built {
        name: "index.html",
        bytes: b"<!doctype html><meta name=\"server\" content=\"\">",
        brotli: Some(b"packed"),
    },
];

const ID: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
const SECRET: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI";
const KEY: &str = "thekey";

/// What the server was asked, head and body.
type Asked = Arc<Mutex<Vec<String>>>;

struct World {
    here: SocketAddr,
    server: SocketAddr,
    asked: Asked,
    pass: String,
    session: String,
    stop: tokio::sync::oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<()>,
}

fn asks() -> reqwest::Client {
    // Somebody else may have installed one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    builder.tls_certs_only(std::iter::empty()).http1_only().build().unwrap()
}

impl World {
    /// A server that gives these answers, whole, one after the other, each on a connection of its own.
    async fn start(answers: Vec<Vec<u8>>) -> Self {
        let far = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (server, asked) = (far.local_addr().unwrap(), Asked::default());
        let heard = Arc::clone(&asked);
        tokio::spawn(async move {
            for answer in answers {
                let (mut stream, _) = far.accept().await.unwrap();
                let request = read_request(&mut stream).await;
                let is_socket = request.contains("sec-websocket-key");
                heard.lock().unwrap().push(request);
                stream.write_all(&answer).await.unwrap();
                if is_socket {
                    let mut bytes = [0; 64];
                    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
                        stream.write_all(&bytes[..count]).await.unwrap();
                    }
                }
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap();
        let relay = Relay {
            here,
            server: Origin::parse(&format!("http://{server}")).unwrap(),
            key: KEY.to_owned(),
            client: asks(),
            sockets: asks(),
            tell: |_| {},
        };
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let shutdown = Box::pin(async move { drop(stopped.await) });
        let serving = tokio::spawn(relay.serve(listener, Page::of(&FILES), shutdown));
        let pass = format!("confidant-page-{}={KEY}", here.port());
        let session = format!("confidant-{}-{}", here.port(), short(&format!("http://{server}")));
        Self { here, server, asked, pass, session, stop, serving }
    }

    /// The whole answer to a request with this line, these headers and this body.
    async fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut stream = TcpStream::connect(self.here).await.unwrap();
        let mut text = format!("{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn host(&self) -> String {
        self.here.to_string()
    }

    fn origin(&self) -> String {
        format!("http://{}", self.here)
    }
}

/// A request, in lower case: its head, and a body of the length that it says.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "the request ended early");
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let Some(end) = text.find("\r\n\r\n") else { continue };
        let length = text.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        if bytes.len() >= end + 4 + length.map_or(0, |length| length.parse().unwrap()) {
            return text;
        }
    }
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len())
        .into_bytes()
}

const JSON: &str = "content-type: application/json\r\n";

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

/// A request line, its headers, and the status of its answer.
type Refused<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str);

#[tokio::test]
async fn the_printed_address_opens_the_page_and_nothing_else_does() {
    let world = World::start(Vec::new()).await;
    let host = world.host();
    let opened = world
        .ask(&format!("GET /open/{KEY}"), &[("host", &host), ("sec-fetch-site", "cross-site")], "")
        .await;
    assert_eq!(status(&opened), "200");
    assert!(
        opened.contains(&format!("set-cookie: {}; Path=/; HttpOnly; SameSite=Strict\r\n", world.pass)),
        "{opened}"
    );
    let page =
        world.ask("GET /", &[("host", &host), ("cookie", &world.pass), ("accept-encoding", "br")], "").await;
    assert_eq!(status(&page), "200");
    assert!(page.ends_with(&format!("<meta name=\"server\" content=\"http://{}\">", world.server)), "{page}");
    assert!(page.contains("content-security-policy: default-src 'none'; script-src 'self'"));
    let file = world.ask("GET /app.js", &[("host", &host), ("cookie", &world.pass)], "").await;
    assert!(file.ends_with("let words = 1;"));
    let head = [("host", host.as_str()), ("cookie", &world.pass), ("sec-fetch-site", "same-origin")];
    assert_eq!(
        status(&world.ask("HEAD /app.js", &head, "").await),
        "200",
        "the page asks whether it is still this one"
    );
    let wrong_pass = format!("{}x", world.pass);
    let refused: [Refused<'_>; 8] = [
        ("GET /open/otherkey", vec![("host", &host)], "403"),
        ("GET /", vec![("host", &host)], "403"),
        ("GET /", vec![("host", &host), ("cookie", &wrong_pass)], "403"),
        ("GET /", vec![("host", "evil.example"), ("cookie", &world.pass)], "403"),
        ("GET /", vec![("host", "localhost"), ("cookie", &world.pass)], "403"),
        (
            "GET /app.js",
            vec![("host", &host), ("cookie", &world.pass), ("sec-fetch-site", "cross-site")],
            "403",
        ),
        ("GET /console", vec![("host", &host), ("cookie", &world.pass)], "404"),
        ("GET /other", vec![("host", &host), ("cookie", &world.pass)], "404"),
    ];
    for (line, headers, code) in refused {
        let answer = world.ask(line, &headers, "").await;
        assert_eq!(status(&answer), code, "{line} {headers:?}: {answer}");
        assert!(!answer.contains("set-cookie"), "{answer}");
    }
}

#[tokio::test]
async fn only_the_page_may_have_something_sent() {
    let world = World::start(Vec::new()).await;
    let (host, origin) = (world.host(), world.origin());
    let whole = [("host", host.as_str()), ("origin", &origin), ("cookie", &world.pass)];
    let with = |name: &str, value: Option<&'static str>| {
        let mut headers: Vec<(&str, &str)> = whole.iter().copied().filter(|one| one.0 != name).collect();
        headers.extend(
            value.map(|value| if name == "origin" { ("origin", value) } else { ("sec-fetch-site", value) }),
        );
        headers
    };
    let foreign = [
        with("origin", None),
        with("origin", Some("null")),
        with("origin", Some("https://evil.example")),
        with("origin", Some("http://localhost:7368")),
        with("cookie", None),
        with("host", None),
        with("sec-fetch-site", Some("cross-site")),
        with("sec-fetch-site", Some("same-site")),
    ];
    for headers in foreign {
        for line in ["POST /account/prelogin", "POST /chats/ticket"] {
            let answer = world.ask(line, &headers, "{}").await;
            assert!(["400", "403"].contains(&status(&answer)), "{headers:?}: {answer}");
        }
        let mut socket = headers.clone();
        socket.extend([("upgrade", "websocket"), ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")]);
        assert!(["400", "403"].contains(&status(&world.ask("GET /ws", &socket, "").await)), "{headers:?}");
    }
    // The other interface of a server is not for the page.
    for line in ["POST /api/v1/session/x/turns", "GET /metrics", "GET /chats/events", "DELETE /account/login"]
    {
        let answer = world.ask(line, &whole, "{}").await;
        assert!(["404", "405"].contains(&status(&answer)), "{line}: {answer}");
    }
    assert!(world.asked.lock().unwrap().is_empty(), "nothing reached the server");
}

#[tokio::test]
async fn the_server_hears_a_program_and_the_browser_hears_data_only() {
    let hostile = format!(
        "{JSON}confidant-session-id: {ID}\r\nset-cookie: evil=1\r\nclear-site-data: \"*\"\r\nlocation: https://evil.example\r\n\
         access-control-allow-origin: *\r\nretry-after: 7\r\n"
    );
    let world = World::start(vec![
        answer("200 OK", &hostile, "{\"a\":1}"),
        answer("401 Unauthorized", JSON, "{\"error\":1}"),
        answer("200 OK", JSON, "{}"),
    ])
    .await;
    let (host, origin) = (world.host(), world.origin());
    let page = [
        ("host", host.as_str()),
        ("origin", &origin),
        ("sec-fetch-site", "same-origin"),
        ("confidant-page", "abc"),
    ];
    let mut headers = page.to_vec();
    headers.push(("cookie", &world.pass));
    let opened = world.ask("POST /account/login", &headers, "{\"b\":2}").await;
    assert!(status(&opened) == "200" && opened.contains("{\"a\":1}"), "{opened}");
    assert!(
        opened.contains(&format!("set-cookie: {}={ID}; Path=/; HttpOnly; SameSite=Strict", world.session)),
        "{opened}"
    );
    assert!(opened.contains("retry-after: 7"));
    for never in ["evil", "clear-site-data", "location:", "access-control", "confidant-session-id"] {
        assert!(!opened.contains(never), "{never}: {opened}");
    }
    let both = format!("other=1; {}; {}={ID}", world.pass, world.session);
    let mut shown = page.to_vec();
    shown.extend([("cookie", both.as_str()), ("confidant-session", SECRET)]);
    let refused = world.ask("POST /chats/ticket", &shown, "{}").await;
    assert!(status(&refused) == "401" && refused.contains("{\"error\":1}"));
    assert!(!refused.contains("set-cookie"));
    let ended = world.ask("POST /account/logout", &shown, "{}").await;
    assert!(
        ended.contains(&format!(
            "set-cookie: {}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0",
            world.session
        ))
    );
    let asked = world.asked.lock().unwrap().clone();
    assert!(
        asked[0].starts_with("post /account/login http/1.1\r\n") && asked[0].ends_with("{\"b\":2}"),
        "{asked:?}"
    );
    for request in &asked {
        for never in ["cookie:", "origin:", "sec-fetch", "confidant-page", KEY] {
            assert!(!request.contains(never), "{never}: {request}");
        }
    }
    assert!(!asked[0].contains("authorization") && !asked[0].contains("confidant-session"));
    assert!(asked[1].contains(&format!("authorization: confidant-session {}", ID.to_ascii_lowercase())));
    assert!(asked[1].contains(&format!("confidant-session: {}", SECRET.to_ascii_lowercase())));
}

#[tokio::test]
async fn the_session_of_one_server_is_not_shown_to_another() {
    let world = World::start(vec![answer("200 OK", JSON, "{}")]).await;
    let (host, origin) = (world.host(), world.origin());
    let other = format!("confidant-{}-{}={ID}", world.here.port(), short("https://other.example"));
    let cookies = format!("{}; {other}", world.pass);
    let headers =
        [("host", host.as_str()), ("origin", &origin), ("cookie", &cookies), ("confidant-session", SECRET)];
    assert_eq!(status(&world.ask("POST /chats/ticket", &headers, "{}").await), "200");
    let asked = world.asked.lock().unwrap().concat();
    assert!(!asked.contains("authorization") && !asked.contains("confidant-session"), "{asked}");
}

#[tokio::test]
async fn what_is_not_the_servers_answer_does_not_reach_the_page() {
    let world = World::start(vec![
        answer("200 OK", "content-type: text/html\r\n", "<script>evil()</script>"),
        answer("302 Found", "location: https://evil.example\r\n", ""),
    ])
    .await;
    let (host, origin) = (world.host(), world.origin());
    let headers = [("host", host.as_str()), ("origin", &origin), ("cookie", &world.pass)];
    // Two answers, and then nobody is there.
    for _ in 0..3 {
        let answer = world.ask("POST /account/prelogin", &headers, "{}").await;
        assert!(status(&answer) == "502" && !answer.contains("evil"), "{answer}");
    }
    let large = "x".repeat(ROUTES.iter().find(|route| route.path == "/account/prelogin").unwrap().limit + 1);
    assert_eq!(status(&world.ask("POST /account/prelogin", &headers, &large).await), "413");
}

#[tokio::test]
async fn a_socket_carries_bytes_both_ways_and_ends_with_the_program() {
    let accepts = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                   sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nsec-websocket-protocol: confidant.deflate\r\n\
                   set-cookie: evil=1\r\n\r\n";
    let world = World::start(vec![accepts.as_bytes().to_vec()]).await;
    let mut stream = TcpStream::connect(world.here).await.unwrap();
    let request = format!(
        "GET /ws HTTP/1.1\r\nhost: {}\r\norigin: {}\r\ncookie: {}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         sec-websocket-protocol: confidant.deflate\r\nsec-websocket-extensions: permessage-deflate\r\n\r\n",
        world.host(),
        world.origin(),
        world.pass
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let head = read_request(&mut stream).await;
    assert!(
        head.starts_with("http/1.1 101") && head.contains("sec-websocket-protocol: confidant.deflate"),
        "{head}"
    );
    assert!(head.contains("sec-websocket-accept: s3ppl") && !head.contains("evil"), "{head}");
    stream.write_all(b"there and back").await.unwrap();
    let mut echoed = [0; 14];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"there and back");
    let asked = world.asked.lock().unwrap().concat();
    for never in ["cookie:", "origin:", "sec-websocket-extensions"] {
        assert!(!asked.contains(never), "{never}: {asked}");
    }
    drop(world.stop);
    assert_eq!(stream.read(&mut echoed).await.unwrap_or(0), 0, "it ends when the program does");
    world.serving.await.unwrap();
}

#[tokio::test]
async fn whether_the_server_is_there_is_found_out() {
    let world = World::start(vec![answer("200 OK", JSON, "{}"), answer("404 Not Found", "", "")]).await;
    let relay = Relay {
        here: world.here,
        server: Origin::parse(&format!("http://{}", world.server)).unwrap(),
        key: KEY.to_owned(),
        client: asks(),
        sockets: asks(),
        tell: |_| {},
    };
    assert_eq!(relay.look().await, Reach::Answers);
    assert_eq!(relay.look().await, Reach::NoChats);
    assert_eq!(relay.look().await, Reach::Away);
}
