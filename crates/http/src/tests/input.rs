//! What is sent in anger or by mistake.

use axum::body::Bytes;
use futures_util::stream;

use super::*;

const CANARY: &str = "canary-7f3a";

fn raw(server: &Server, path: &str, media: &str) -> axum::http::request::Builder {
    let request = Request::post(path).header(header::AUTHORIZATION, format!("Bearer {}", server.admin));
    request.header(header::CONTENT_TYPE, media)
}

#[tokio::test]
async fn malformed_json_is_located_and_never_quoted() {
    let server = Server::builtin().await;
    let bodies = [
        "",
        "canary-7f3a",
        "{\"query\": \"canary-7f3a",
        "{\"query\": \"x\"} canary-7f3a",
        "[\"canary-7f3a\"]",
        "\"canary-7f3a\"",
        "{\"query\": {\"canary-7f3a\": 1}}",
        "{\"query\": [\"canary-7f3a\"]}",
        "{\"canary-7f3a \": 1, \"query\": \"x\"}",
        "{\"query\": \"x\", \"audience\": \"canary-7f3a\"}",
        "{\"query\": \"x\", \"room_context\": [{\"sender\": \"a\", \"content\": \"b\", \"timestamp\": \"canary-7f3a\"}]}",
        "{\"query\": \"x\", \"room_context\": \"canary-7f3a\"}",
        "{\"query\": \"x\", \"request_id\": \"canary-7f3a with spaces\"}",
        "{\"query\": \"canary-7f3a \u{0} \\ud800\"}",
    ];
    for path in [turns("app_conv:alice"), "/v1/chat/completions".to_owned()] {
        for body in bodies {
            let reply = server.send(raw(&server, &path, "application/json").body(Body::from(body))).await;
            assert_eq!(reply.status, 400, "{path} {body}: {reply:?}");
            assert!(!reply.text.contains(CANARY), "{path} {body}: {reply:?}");
        }
    }
    let invalid_utf8 = raw(&server, &turns("app_conv:alice"), "application/json")
        .body(Body::from(&b"{\"query\": \"\xff\"}"[..]));
    assert_eq!(server.send(invalid_utf8).await.status, 400);
    let deep = "[".repeat(60_000);
    assert_eq!(
        server
            .send(raw(&server, &turns("app_conv:a"), "application/json").body(Body::from(deep)))
            .await
            .status,
        400
    );
}

#[tokio::test]
async fn a_fault_names_the_field() {
    let server = Server::builtin().await;
    let cases = [
        (json!({}), "`query` is missing"),
        (json!({ "query": "x", "rom_context": [] }), "unknown field `rom_context`"),
        (json!({ "query": 7 }), "`query` has the wrong type"),
        (
            json!({ "query": "x", "room_context": [{ "sender": "a", "content": "b", "is_bot": 1 }] }),
            "`room_context[0].is_bot`",
        ),
        (json!({ "query": "  " }), "the query is empty"),
    ];
    for (body, words) in cases {
        let reply = server.post(&turns("app_conv:alice"), &body, &[]).await;
        assert_eq!(reply.error(), (400, "invalid_request".to_owned()));
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains(words), "{reply:?}");
    }
}

#[tokio::test]
async fn fifty_megabytes_are_refused_unread() {
    let server = Server::builtin().await;
    // Announced: not a byte is waited for, since this body never comes.
    let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let announced =
        raw(&server, &turns("app_conv:a"), "application/json").header(header::CONTENT_LENGTH, 50 << 20);
    let reply = server.send(announced.body(never)).await;
    assert_eq!(reply.error(), (413, "body_too_large".to_owned()));
    // Not announced: refused as soon as it is past the limit, since this body never ends.
    let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 8192])));
    for path in [turns("app_conv:a"), "/v1/chat/completions".to_owned()] {
        let reply = server
            .send(raw(&server, &path, "application/json").body(Body::from_stream(endless.clone())))
            .await;
        assert_eq!(reply.status, 413);
    }
    server.ask(Method::POST, &turns("app_conv:a"), said("still there?")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for_forever() {
    let server = Server::builtin().await;
    let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    let reply = server.send(raw(&server, &turns("app_conv:a"), "application/json").body(never)).await;
    assert_eq!(reply.error(), (408, "body_timeout".to_owned()));
}

#[tokio::test]
async fn only_json_is_read() {
    let server = Server::builtin().await;
    for media in ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"] {
        let reply = server
            .send(raw(&server, &turns("app_conv:a"), media).body(Body::from("{\"query\":\"x\"}")))
            .await;
        assert_eq!(reply.error(), (415, "unsupported_media_type".to_owned()), "{media}");
    }
    for media in ["application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"] {
        let reply = server
            .send(raw(&server, &turns("app_conv:a"), media).body(Body::from("{\"query\":\"x\"}")))
            .await;
        assert_eq!(reply.status, 200, "{media}");
    }
}

#[tokio::test]
async fn bad_ids_and_parameters_are_refused_with_a_hint() {
    let server = Server::builtin().await;
    for id in [
        "nonsense",
        "!:::",
        "app:a:b",
        "app_conv:",
        "Web_conv:x",
        "app:a%2525b:main",
        "%FF%FE",
        "app_conv:a%0Ab",
    ] {
        let reply = server.ask(Method::POST, &format!("/api/v1/session/{id}/turns"), said("x")).await;
        assert_eq!(reply.error().0, 400, "{id}: {reply:?}");
    }
    let reply = server.ask(Method::GET, &format!("/api/v1/person/{}/export", "x".repeat(600)), None).await;
    assert_eq!(reply.error().0, 400);
    server.ask(Method::POST, &turns("app_conv:a"), said("x")).await.ok();
    for query in ["dry_run=1", "dryrun=true", "dry_run=yes", "dry-run", "dry_run=true&x=1"] {
        let reply = server.ask(Method::DELETE, &format!("/api/v1/session/app_conv:a?{query}"), None).await;
        assert_eq!(reply.error(), (400, "invalid_request".to_owned()), "{query}");
    }
    server.ask(Method::GET, "/api/v1/session/app_conv:a/export", None).await.ok();
}

#[tokio::test]
async fn a_page_of_another_site_is_refused() {
    let server = Server::builtin().await;
    let cases = [
        (None, 200),
        (Some("http://localhost:7367"), 200),
        (Some("HTTP://x"), 403),
        (Some("http://LOCALHOST:7367"), 200),
        (Some("http://localhost"), 403),
        (Some("http://evil.example"), 403),
        (Some("http://localhost:7367.evil.example"), 403),
        (Some("null"), 403),
        (Some("file://localhost:7367"), 403),
    ];
    for (origin, status) in cases {
        let mut request = Request::get("/healthz").header(header::HOST, "localhost:7367");
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        assert_eq!(server.send(request.body(Body::empty())).await.status, status, "{origin:?}");
    }
}
