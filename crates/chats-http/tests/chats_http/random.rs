//! Anything at all, on sockets and as requests: the server stays as it is.

use futures_util::{SinkExt as _, StreamExt as _};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_websockets::Message;

use crate::world::{World, within};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// What somebody does with an open socket.
#[derive(Clone, Debug)]
enum Act {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Raw(Vec<u8>),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        ".{0,200}".prop_map(Act::Text),
        r#"\{"id":[0-9]{1,12},"event":\{"type":"[a-z_]{1,30}"(,"[a-z]{1,8}":(null|1|"a|\[\]))?\}\}"#
            .prop_map(Act::Text),
        vec(any::<u8>(), 0..200).prop_map(Act::Binary),
        vec(any::<u8>(), 0..125).prop_map(Act::Ping),
        vec(any::<u8>(), 1..60).prop_map(Act::Raw),
    ]
}

#[test]
fn any_frames_on_a_socket() {
    let runtime = runtime();
    let (world, session) = runtime.block_on(async {
        let world = World::new().await;
        let (_, session) = world.register("ana").await;
        (world, session)
    });
    let mut runner = TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
    let cases = (vec(act(), 1..12), any::<bool>());
    let ran = runner.run(&cases, |(acts, is_open)| {
        runtime.block_on(async {
            let mut socket = if is_open { world.open(&session).await } else { world.socket().await };
            for act in acts {
                let sent = match act {
                    Act::Text(text) => socket.send(Message::text(text)).await.is_ok(),
                    Act::Binary(bytes) => socket.send(Message::binary(bytes)).await.is_ok(),
                    Act::Ping(bytes) => socket.send(Message::ping(bytes)).await.is_ok(),
                    Act::Raw(bytes) => socket.get_mut().write_all(&bytes).await.is_ok(),
                };
                if !sent {
                    break;
                }
            }
            // Whatever was said, a goodbye ends it.
            drop(socket.get_mut().shutdown().await);
            while let Some(Ok(_)) = within(socket.next()).await {}
            world.is_unharmed(&session).await;
        });
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn any_bytes_as_a_request() {
    let runtime = runtime();
    let (world, session) = runtime.block_on(async {
        let world = World::new().await;
        let (_, session) = world.register("ana").await;
        (world, session)
    });
    let header = (
        prop_oneof![
            Just("host"),
            Just("origin"),
            Just("cookie"),
            Just("authorization"),
            Just("confidant-session"),
            Just("sec-fetch-site"),
            Just("content-type"),
            Just("content-length"),
            Just("x-forwarded-for"),
            Just("upgrade"),
            Just("sec-websocket-key")
        ],
        prop_oneof![Just(world.host()), Just(world.origin.as_str().to_owned()), "[ -~]{0,60}"],
    );
    let path =
        prop_oneof![Just("/ws"), Just("/account/login"), Just("/chats/events"), Just("/account/prelogin")];
    let cases = (prop_oneof![Just("GET"), Just("POST")], path, vec(header, 0..8), vec(any::<u8>(), 0..100));
    let mut runner = TestRunner::new(Config { cases: 96, failure_persistence: None, ..Config::default() });
    let ran = runner.run(&cases, |(method, path, headers, body)| {
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let mut request = format!("{request}\r\n").into_bytes();
        request.extend(body);
        runtime.block_on(async {
            let mut stream = TcpStream::connect(world.address).await.unwrap();
            drop(stream.write_all(&request).await);
            drop(stream.shutdown().await);
            let mut reply = Vec::new();
            drop(within(stream.read_to_end(&mut reply)).await);
            let reply = String::from_utf8_lossy(&reply);
            prop_assert!(!reply.starts_with("HTTP/1.1 5") && !reply.starts_with("HTTP/1.1 200"), "{}", reply);
            Ok(())
        })
    });
    ran.unwrap();
    runtime.block_on(world.is_unharmed(&session));
}
