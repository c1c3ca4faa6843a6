//! What is refused before the service is asked, and that the server is unharmed afterwards.

use confidant_chat_protocol::limits::MAX_FRAME;
use confidant_chat_protocol::{ROUTES, Who};
use hyper::Method;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::world::{FAR, Session, World, within};

/// Headers with one changed, added or (`None`) left out.
fn but(headers: &[(String, String)], name: &str, value: Option<&str>) -> Vec<(String, String)> {
    let mut headers: Vec<_> = headers.iter().filter(|one| one.0 != name).cloned().collect();
    headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    headers
}

async fn status(world: &World, headers: &[(String, String)]) -> u16 {
    world.send(Method::POST, "/account/devices", headers, "{}").await.status.as_u16()
}

#[tokio::test]
async fn what_a_foreign_page_has_a_browser_send_is_refused() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    let page = world.page(Some(&session));
    assert_eq!(status(&world, &page).await, 200);
    let port = world.address.port();
    for (name, value) in [
        // A name that the attacker points at this machine.
        ("host", Some("evil.example".to_owned())),
        ("host", Some(format!("evil.example:{port}"))),
        ("host", Some(format!("127.0.0.1:{port}"))),
        ("host", Some("localhost".to_owned())),
        // A page of somebody else.
        ("origin", Some("https://evil.example".to_owned())),
        ("origin", Some("null".to_owned())),
        ("origin", Some(format!("https://localhost:{port}"))),
        ("origin", Some(format!("http://localhost:{}", port ^ 1))),
        ("origin", Some(FAR.to_owned())),
        // A cookie without its origin, as in a link or an image.
        ("origin", None),
        // What the browser itself calls foreign.
        ("sec-fetch-site", Some("cross-site".to_owned())),
        ("sec-fetch-site", Some("same-site".to_owned())),
        ("sec-fetch-site", Some("none".to_owned())),
        ("sec-fetch-site", None),
        // The cookie alone, which another port of this machine can have.
        ("confidant-session", None),
        // What a form can send.
        ("content-type", Some("text/plain".to_owned())),
        ("content-type", Some("application/x-www-form-urlencoded".to_owned())),
        ("content-type", None),
        // Another credential beside the cookie.
        ("authorization", Some(format!("Confidant-Session {}", session.id))),
        ("authorization", Some("Bearer x".to_owned())),
    ] {
        let refused = status(&world, &but(&page, name, value.as_deref())).await;
        assert!(matches!(refused, 400 | 401), "{name} {value:?}: {refused}");
    }
    let mut twice = page.clone();
    twice.push(("origin".to_owned(), "https://evil.example".to_owned()));
    assert_eq!(status(&world, &twice).await, 400);
    // A question in advance gets no leave.
    let reply = world.send(Method::OPTIONS, "/account/devices", &page, "").await;
    assert!(
        reply.status == 405 && !reply.headers.keys().any(|name| name.as_str().starts_with("access-control"))
    );
    assert_eq!(status(&world, &page).await, 200);
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn a_session_is_no_good_with_parts_of_another() {
    let world = World::new().await;
    let (_, ana) = world.register("ana").await;
    let (_, ben) = world.register("ben").await;
    for stolen in [
        Session { id: ana.id.clone(), secret: ben.secret.clone() },
        Session { id: ben.id.clone(), secret: ana.secret.clone() },
        Session { id: ana.secret.clone(), secret: ana.id.clone() },
        Session { id: ana.id.clone(), secret: String::new() },
        Session { id: "x".to_owned(), secret: ana.secret.clone() },
    ] {
        assert_eq!(status(&world, &world.program(Some(&stolen))).await, 401);
        assert_eq!(status(&world, &world.page(Some(&stolen))).await, 401);
    }
    // A program shows nothing of a browser.
    assert_eq!(status(&world, &world.program(Some(&ana))).await, 200);
    let program = world.program(Some(&ana));
    assert_eq!(status(&world, &but(&program, "origin", Some(world.origin.as_str()))).await, 401);
    assert_eq!(status(&world, &but(&program, "sec-fetch-site", Some("same-origin"))).await, 401);
    world.is_unharmed(&ana).await;
}

#[tokio::test]
async fn a_body_stops_at_its_limit() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    for route in ROUTES {
        let headers = world.program(matches!(route.who, Who::Session).then_some(&session));
        // One byte more is not read at all; as many as there may be are read, and are no JSON.
        let reply = world.send(Method::POST, route.path, &headers, vec![b' '; route.limit + 1]).await;
        assert_eq!(reply.refusal(), (413, "too-large"), "{}", route.path);
        let reply = world.send(Method::POST, route.path, &headers, vec![b' '; route.limit]).await;
        assert_eq!(reply.refusal().1, "malformed", "{}", route.path);
    }
    // Without a length, it stops while it is read.
    let head = format!(
        "POST /account/prelogin HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         transfer-encoding: chunked\r\n\r\n",
        world.host()
    );
    let mut endless = head.into_bytes();
    for _ in 0..40 {
        endless.extend(format!("1000\r\n{}\r\n", " ".repeat(0x1000)).into_bytes());
    }
    endless.extend(b"0\r\n\r\n");
    let reply = world.raw(&endless).await;
    assert!(reply.starts_with("HTTP/1.1 413") && reply.contains("too-large"), "{reply}");
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn a_large_body_of_nobody_is_not_read() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    // The length is announced, nothing of it ever comes, and the refusal does not wait for it.
    let request = format!(
        "POST /chats/events HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {MAX_FRAME}\r\n\r\n",
        world.host()
    );
    let reply = world.raw(request.as_bytes()).await;
    assert!(reply.starts_with("HTTP/1.1 401"), "{reply}");
    world.is_unharmed(&session).await;
}

fn handshake(host: &str) -> Vec<(&'static str, String)> {
    vec![
        ("host", host.to_owned()),
        ("connection", "keep-alive, Upgrade".to_owned()),
        ("upgrade", "websocket".to_owned()),
        ("sec-websocket-version", "13".to_owned()),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==".to_owned()),
    ]
}

async fn answer_to(world: &World, headers: &[(&str, String)]) -> String {
    let mut request = "GET /ws HTTP/1.1\r\n".to_owned();
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += "\r\n";
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within(tokio::io::AsyncReadExt::read_u8(&mut stream)).await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test]
async fn a_handshake_is_ours_or_refused() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    let good = handshake(&world.host());
    let reply = answer_to(&world, &good).await;
    assert!(reply.starts_with("HTTP/1.1 101") && reply.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{reply}");
    let origin = ("origin", world.origin.as_str().to_owned());
    let cookie = ("cookie", format!("confidant-{}={}", world.address.port(), session.id));
    let mut page = good.clone();
    page.push(origin);
    page.push(cookie.clone());
    assert!(answer_to(&world, &page).await.starts_with("HTTP/1.1 101"));
    page.push(("sec-fetch-site", "same-origin".to_owned()));
    assert!(answer_to(&world, &page).await.starts_with("HTTP/1.1 101"));
    let changed = |name: &'static str, value: Option<&str>| {
        let mut headers: Vec<_> = good.iter().filter(|one| one.0 != name).cloned().collect();
        headers.extend(value.map(|value| (name, value.to_owned())));
        headers
    };
    let mut no_origin = good.clone();
    no_origin.push(cookie);
    let mut foreign = page.clone();
    foreign[5].1 = "https://evil.example".to_owned();
    for bad in [
        no_origin,
        foreign,
        changed("host", Some("evil.example")),
        changed("origin", Some("https://evil.example")),
        changed("origin", Some("null")),
        changed("sec-fetch-site", Some("cross-site")),
        changed("sec-websocket-version", Some("12")),
        changed("sec-websocket-version", None),
        changed("sec-websocket-key", Some("short")),
        changed("sec-websocket-key", None),
        changed("upgrade", Some("h2c")),
        changed("connection", Some("keep-alive")),
    ] {
        let reply = answer_to(&world, &bad).await;
        assert!(reply.starts_with("HTTP/1.1 40"), "{bad:?}: {reply}");
    }
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn half_a_handshake_takes_nobodys_place() {
    let world = World::with(confidant_chats_http::Patience::default(), 8).await;
    let (_, session) = world.register("ana").await;
    let mut half = Vec::new();
    for count in 0..40 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        let begun = &b"GET /ws HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n"[..count];
        stream.write_all(begun).await.unwrap();
        half.push(stream);
    }
    world.is_unharmed(&session).await;
}
