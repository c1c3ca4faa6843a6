//! Sockets: the honest ones, and the others.

use std::time::Duration;

use confidant_chat_format::{ChatId, Origin};
use confidant_chat_protocol::limits::MAX_FRAME;
use confidant_chat_protocol::{
    Body as _, ClientEvent, Logout, Phase, PhasedSyncRequest, Ping, ServerEvent, ServerFrame, SetActiveChat,
};
use confidant_chats_http::Patience;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_websockets::{ClientBuilder, Message};

use crate::world::{FAR, LONG, Line, World, closed, hear, hello, say, within};

fn ping() -> ClientEvent {
    ClientEvent::Ping(Ping {})
}

/// The name of the refusal that comes next.
async fn refused(socket: &mut Line) -> &'static str {
    let frame = hear(socket).await;
    let ServerEvent::Refused(refused) = frame.event else { panic!("{frame:?}") };
    refused.error.name()
}

fn everything() -> ClientEvent {
    let request =
        PhasedSyncRequest { phase: Phase::All, manifest: 0, client_chat_versions: Default::default() };
    ClientEvent::PhasedSyncRequest(request)
}

#[tokio::test]
async fn a_device_logs_in_syncs_and_hears_what_another_does() {
    let world = World::new().await;
    let (mut ana, first) = world.register("ana").await;
    let second = world.login(&ana).await;
    let (mut one, mut two) = (world.open(&first).await, world.open(&second).await);
    let chat = ChatId::random();
    say(&mut one, ClientEvent::EncryptedChatMetadata(ana.write(&chat, 100))).await;
    let stored = hear(&mut one).await;
    assert!(matches!(stored.event, ServerEvent::EncryptedMetadataStored(_)), "{stored:?}");
    let news = hear(&mut two).await;
    let ServerEvent::ChatUpdated(update) = &news.event else { panic!("{news:?}") };
    assert_eq!((&update.chat, update.items.len(), news.re), (&chat, 1, None));
    assert!(matches!(hear(&mut two).await.event, ServerEvent::AccountUpdated(_)));
    say(&mut two, everything()).await;
    let mut chats = Vec::new();
    loop {
        let frame = hear(&mut two).await;
        assert_eq!(frame.re, Some(7));
        match frame.event {
            ServerEvent::PhaseOne(sent) | ServerEvent::PhaseTwo(sent) | ServerEvent::PhaseThree(sent) => {
                chats.extend(sent.chats.into_vec().into_iter().map(|part| part.chat));
            }
            ServerEvent::PhasedSyncComplete(_) => break,
            _ => {}
        }
    }
    assert_eq!(chats, [chat]);
    // Posted by the first device, heard by the second.
    let chat = ChatId::random();
    let event = ClientEvent::EncryptedChatMetadata(ana.write(&chat, 100_000));
    let frame = confidant_chat_protocol::ClientFrame { id: 1, event };
    assert_eq!(world.post("/chats/events", Some(&first), &frame).await.frames().len(), 1);
    let ServerEvent::ChatUpdated(update) = hear(&mut two).await.event else { panic!() };
    assert_eq!(update.chat, chat);
    // A goodbye is returned.
    two.send(Message::close(None, "")).await.unwrap();
    while let Some(last) = within(two.next()).await {
        assert!(last.is_ok());
    }
}

#[tokio::test]
async fn without_a_good_ticket_a_socket_is_closed() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    for first in [
        Message::text(r#"{"id":7,"event":{"type":"ping"}}"#),
        Message::text("{"),
        Message::text(""),
        Message::binary(&b"{}"[..]),
        Message::binary(&b"\xff\xfe"[..]),
    ] {
        let mut socket = world.socket().await;
        socket.send(first).await.unwrap();
        assert_eq!(closed(&mut socket).await, 4401);
    }
    // A ticket is good once, and at its own origin.
    let ticket = world.ticket(&session).await;
    let mut socket = world.socket().await;
    say(&mut socket, hello(ticket.clone())).await;
    assert!(matches!(hear(&mut socket).await.event, ServerEvent::Ready(_)));
    let mut again = world.socket().await;
    say(&mut again, hello(ticket)).await;
    assert_eq!(closed(&mut again).await, 4401);
    let stream = TcpStream::connect(world.address).await.unwrap();
    let uri = "ws://chat.example:443/ws".parse().unwrap();
    let builder = ClientBuilder::from_uri(uri);
    let builder = builder.add_header("origin".parse().unwrap(), FAR.parse().unwrap()).unwrap();
    let (mut far, _) = within(builder.connect_on(stream)).await.unwrap();
    assert!(Origin::parse(FAR).is_ok());
    say(&mut far, hello(world.ticket(&session).await)).await;
    assert_eq!(closed(&mut far).await, 4401);
    // Nobody says anything.
    let mut silent = world.socket().await;
    assert_eq!(closed(&mut silent).await, 4408);
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn frames_that_are_none_are_refused_and_the_socket_goes_on() {
    let world = World::new().await;
    let (mut ana, session) = world.register("ana").await;
    let (mut ben, other) = world.register("ben").await;
    let mut socket = world.open(&session).await;
    for bad in ["", "{", "null", "[]", r#"{"id":7}"#, r#"{"id":7,"event":{"type":"x"}}"#] {
        socket.send(Message::text(bad)).await.unwrap();
        assert_eq!(refused(&mut socket).await, "malformed", "{bad}");
    }
    socket.send(Message::binary(&br#"{"id":7,"event":{"type":"ping"}}"#[..])).await.unwrap();
    assert_eq!(refused(&mut socket).await, "malformed");
    say(&mut socket, hello(world.ticket(&session).await)).await;
    assert_eq!(refused(&mut socket).await, "malformed");
    // What belongs to another account is not there.
    let chat = ChatId::random();
    let mut theirs = world.open(&other).await;
    say(&mut theirs, ClientEvent::EncryptedChatMetadata(ben.write(&chat, 1))).await;
    assert!(matches!(hear(&mut theirs).await.event, ServerEvent::EncryptedMetadataStored(_)));
    say(&mut socket, ClientEvent::SetActiveChat(SetActiveChat { chat: Some(chat.clone()) })).await;
    assert_eq!(refused(&mut socket).await, "not-found");
    let write = ben.write(&chat, 1);
    say(&mut socket, ClientEvent::EncryptedChatMetadata(write)).await;
    assert_eq!(refused(&mut socket).await, "not-found");
    // And the socket goes on, with its own.
    let mine = ChatId::random();
    say(&mut socket, ClientEvent::EncryptedChatMetadata(ana.write(&mine, 1))).await;
    assert!(matches!(hear(&mut socket).await.event, ServerEvent::EncryptedMetadataStored(_)));
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn frames_over_the_limit_and_too_many_frames_end_a_socket() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    let mut stranger = world.socket().await;
    stranger.send(Message::text("x".repeat(5000))).await.unwrap();
    assert_eq!(closed(&mut stranger).await, 1009);
    let mut socket = world.open(&session).await;
    // As large as it may be: it is read, and is no frame.
    socket.send(Message::text(" ".repeat(MAX_FRAME))).await.unwrap();
    assert_eq!(refused(&mut socket).await, "malformed");
    // In many pieces, none of which is too large.
    let mut pieces = world.open(&session).await.into_inner();
    let writing = async {
        let mut piece = vec![0x01, 0xfe, 0xff, 0xff, 0, 0, 0, 0];
        piece.extend(vec![b' '; 0xffff]);
        for _ in 0..MAX_FRAME / 0xffff + 2 {
            // The server may have closed before the end.
            if pieces.write_all(&piece).await.is_err() {
                break;
            }
            piece[0] = 0;
        }
        let mut last = Vec::new();
        pieces.read_to_end(&mut last).await.map(|_| last)
    };
    let last = within(writing).await.unwrap();
    assert_eq!(last[..4], [0x88, 0x02, 0x03, 0xf1], "{last:?}");
    // In one piece; the rest is not read.
    let mut large = world.open(&session).await.into_inner();
    large.write_all(&[0x81, 0xff, 0, 0, 0, 0, 0, 0x80, 0, 1, 0, 0, 0, 0, b' ']).await.unwrap();
    let mut last = Vec::new();
    within(large.read_to_end(&mut last)).await.unwrap();
    assert_eq!((last[0], &last[2..4]), (0x88, &[0x03, 0xf1][..]), "{last:?}");
    // The clock of this server stands still, so frames run out.
    let mut flood = world.open(&session).await;
    for _ in 0..300 {
        if flood.feed(Message::text(r#"{"id":7,"event":{"type":"ping"}}"#)).await.is_err() {
            break;
        }
    }
    drop(flood.flush().await);
    assert_eq!(closed(&mut flood).await, 4429);
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn bytes_that_are_no_frames_end_a_socket() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    for (bytes, code) in [
        // Not masked; an unknown opcode; a reserved bit; a continuation of nothing; a long ping; half a close code.
        (&[0x81, 0x00][..], 1002),
        (&[0x83, 0x80, 0, 0, 0, 0], 1002),
        (&[0xc1, 0x80, 0, 0, 0, 0], 1002),
        (&[0x80, 0x80, 0, 0, 0, 0], 1002),
        (&[0x89, 0xfe, 0, 126, 0, 0, 0, 0], 1002),
        (&[0x88, 0x81, 0, 0, 0, 0, 3], 1002),
        // Text that is no UTF-8.
        (&[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xff], 1007),
    ] {
        let mut stream = world.open(&session).await.into_inner();
        stream.write_all(bytes).await.unwrap();
        let mut last = Vec::new();
        within(stream.read_to_end(&mut last)).await.unwrap();
        assert_eq!((last[0], u16::from_be_bytes([last[2], last[3]])), (0x88, code), "{bytes:?}");
    }
    // One that says that there is more and goes away.
    let mut stream = world.open(&session).await.into_inner();
    stream.write_all(&[0x81, 0xfe, 0x10, 0, 0, 0, 0, 0, b'{']).await.unwrap();
    drop(stream);
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn the_end_of_a_session_is_the_end_of_its_sockets() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    let mut socket = world.open(&session).await;
    let body = Logout { everywhere: false }.write().unwrap();
    let reply = world.send(Method::POST, "/account/logout", &world.program(Some(&session)), body).await;
    assert_eq!(reply.status, 200);
    assert!(matches!(hear(&mut socket).await.event, ServerEvent::ForceLogout(_)));
    assert_eq!(closed(&mut socket).await, 4403);
}

#[tokio::test]
async fn a_socket_is_pinged_and_cut_off_when_nobody_is_there() {
    let quick =
        Patience { ping: Duration::from_millis(20), idle: Duration::from_secs(10), ..Patience::default() };
    let world = World::with(quick, 1000).await;
    let (_, session) = world.register("ana").await;
    // Pings are answered by this client while it listens, so it stays.
    let mut alive = world.open(&session).await;
    let mut dead = world.open(&session).await.into_inner();
    let mut bytes = Vec::new();
    // Nobody answers here: after some pings it ends, without a word.
    let listening = async {
        while let Some(Ok(message)) = alive.next().await {
            assert!(message.is_ping());
        }
        panic!("the living one was cut off");
    };
    tokio::select! {
        ended = within(dead.read_to_end(&mut bytes)) => drop(ended),
        () = listening => {}
    }
    assert!(bytes.len() >= 2 && bytes.chunks(2).all(|ping| ping == [0x89, 0x00]), "{bytes:?}");
    say(&mut alive, ping()).await;
    assert!(matches!(hear(&mut alive).await.event, ServerEvent::Pong(_)));
}

#[tokio::test]
async fn large_frames_are_packed_for_whoever_offers_to_unpack_them() {
    let world = World::new().await;
    let (mut ana, session) = world.register("ana").await;
    let mut plain = world.open(&session).await;
    say(&mut plain, ClientEvent::EncryptedChatMetadata(ana.write(&ChatId::random(), 100_000))).await;
    assert!(matches!(hear(&mut plain).await.event, ServerEvent::EncryptedMetadataStored(_)));
    let stream = TcpStream::connect(world.address).await.unwrap();
    let uri = format!("ws://{}/ws", world.host()).parse().unwrap();
    let offer = ClientBuilder::from_uri(uri)
        .add_header("sec-websocket-protocol".parse().unwrap(), "other, confidant.deflate".parse().unwrap())
        .unwrap();
    let (mut packed, response) = within(offer.connect_on(stream)).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "confidant.deflate");
    say(&mut packed, hello(world.ticket(&session).await)).await;
    assert!(matches!(hear(&mut packed).await.event, ServerEvent::Ready(_)), "small ones are text");
    say(&mut packed, everything()).await;
    let (mut sent, mut unpacked) = (0, 0);
    loop {
        let message = within(packed.next()).await.unwrap().unwrap();
        let mut json = message.as_payload().to_vec();
        if message.is_binary() {
            sent += json.len();
            json.clear();
            let mut bytes = flate2::read::DeflateDecoder::new(&message.as_payload()[..]);
            std::io::Read::read_to_end(&mut bytes, &mut json).unwrap();
            unpacked += json.len();
        }
        if matches!(ServerFrame::read(&json).unwrap().event, ServerEvent::PhasedSyncComplete(_)) {
            break;
        }
    }
    // The envelope of some 100,000 bytes is 133,000 in base64url, and that many bytes again in the end.
    assert!(unpacked > 133_000 && sent < 110_000, "{sent} of {unpacked}");
}

#[tokio::test]
async fn a_socket_that_is_not_read_is_cut_off() {
    let quick = Patience { send: Duration::from_millis(100), ..Patience::default() };
    let world = World::with(quick, 1000).await;
    let (mut ana, session) = world.register("ana").await;
    let mut socket = world.open(&session).await;
    for _ in 0..20 {
        say(&mut socket, ClientEvent::EncryptedChatMetadata(ana.write(&ChatId::random(), 180_000))).await;
        assert!(matches!(hear(&mut socket).await.event, ServerEvent::EncryptedMetadataStored(_)));
    }
    // Asked for much more than fits on the way, and read nothing.
    for _ in 0..30 {
        say(&mut socket, everything()).await;
    }
    let mut stream = socket.into_inner();
    // Pongs, as many as there is room for; then this waits, too, until the connection is gone.
    let cut = async { while stream.write_all(&[0x8a, 0x80, 0, 0, 0, 0]).await.is_ok() {} };
    tokio::time::timeout(LONG, cut).await.expect("it was not cut off");
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn pings_are_answered_and_not_hoarded() {
    let world = World::new().await;
    let (_, session) = world.register("ana").await;
    let mut socket = world.open(&session).await;
    socket.send(Message::ping(&b"are you there"[..])).await.unwrap();
    let pong = within(socket.next()).await.unwrap().unwrap();
    assert!(pong.is_pong() && pong.as_payload()[..] == b"are you there"[..]);
    for _ in 0..200 {
        if socket.feed(Message::ping(&b""[..])).await.is_err() {
            break;
        }
    }
    drop(socket.flush().await);
    assert_eq!(closed(&mut socket).await, 4429);
    world.is_unharmed(&session).await;
}

#[tokio::test]
async fn a_stop_closes_every_socket_with_a_code() {
    let mut world = World::new().await;
    let (_, session) = world.register("ana").await;
    let mut sockets = vec![world.socket().await];
    for _ in 0..5 {
        sockets.push(world.open(&session).await);
    }
    world.stop();
    for socket in &mut sockets {
        assert_eq!(closed(socket).await, 1001);
    }
    drop(sockets);
    within(world.server).await.unwrap();
}

#[tokio::test]
async fn a_socket_keeps_its_place() {
    let world = World::with(Patience::default(), 4).await;
    let (_, session) = world.register("ana").await;
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(world.open(&session).await);
    }
    // Others come and go beside them, and take nobody's place.
    for _ in 0..10 {
        world.ticket(&session).await;
    }
    for socket in &mut sockets {
        say(socket, ping()).await;
        assert!(matches!(hear(socket).await.event, ServerEvent::Pong(_)));
    }
    // With one more, only health is answered.
    sockets.push(world.socket().await);
    let reply = world.send(Method::GET, "/healthz", &world.program(None), "").await;
    assert_eq!(&reply.body[..], b"ok");
}
