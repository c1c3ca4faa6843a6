//! Each route of ours doing what it is for.

use super::*;

const SESSION: &str = "!abc123:matrix.org:main:@alice:matrix.org";
const HELLO: &str = "Hello, I'm Alice and I prefer Rust";

#[tokio::test]
async fn a_turn_answers_and_is_remembered_for_that_session_only() {
    let server = Server::builtin().await;
    let reply = server.post(&turns(SESSION), &json!({ "query": HELLO, "request_id": "r1" }), &[]).await.ok();
    assert_eq!((&reply["request_id"], &reply["message_type"]), (&json!("r1"), &json!("final_response")));
    assert_eq!(reply["metadata"]["memory"], "kept");

    // Unencoded is the same session: decoding happens once.
    let unencoded = format!("/api/v1/session/{SESSION}/turns");
    let known = server.ask(Method::POST, &unencoded, said("What is my name?")).await.ok();
    assert!(known["content"].as_str().unwrap().contains("Alice"), "{known}");
    assert_eq!(known["metadata"]["audience"], "room");
    let other = SESSION.replace(":main:", ":$thread:");
    let unknown = server.ask(Method::POST, &turns(&other), said("What is my name?")).await.ok();
    assert!(!unknown["content"].as_str().unwrap().contains("Alice"), "{unknown}");
}

#[tokio::test]
async fn escapes_inside_an_id_survive_the_path() {
    let server = Server::builtin().await;
    let session = "app:a%3Ab%25/c:main:ünïcode";
    server.ask(Method::POST, &turns(session), said("hello")).await.ok();
    let export =
        server.ask(Method::GET, &format!("/api/v1/session/{}/export", encoded(session)), None).await.ok();
    assert_eq!(export["session_id"], session);
}

#[tokio::test]
async fn the_room_answers_and_edits_count() {
    let model = Arc::new(Recorder::default());
    let server = Server::with(model.clone(), SETTINGS).await;
    let room = json!([
        { "sender": "@bob:a.org", "content": "MySQL", "timestamp": 0, "is_bot": false, "event_id": "$1" },
        { "sender": "@bob:a.org", "content": "PostgreSQL", "replaces": "$1" },
    ]);
    let body = json!({ "query": "what database did we choose?", "room_context": room });
    let reply = server.post(&turns(SESSION), &body, &[]).await.ok();
    assert_eq!(reply["metadata"]["room_lines"], 1);
    let prompts = model.prompts.lock().unwrap();
    assert_eq!(prompts[0].blocks[0].lines[0].text, "PostgreSQL");
}

#[tokio::test]
async fn a_retry_gets_the_recorded_answer_and_reuse_is_a_conflict() {
    let model = Arc::new(Recorder::default());
    let server = Server::with(model.clone(), SETTINGS).await;
    let body = json!({ "query": "one", "request_id": "r1" });
    let first = server.post(&turns(SESSION), &body, &[]).await.ok();
    let again = server.post(&turns(SESSION), &body, &[]).await.ok();
    assert_eq!(again["content"], first["content"]);
    assert_eq!(again["metadata"]["replayed"], true);
    let streamed = server.post(&turns(SESSION), &body, &[("accept", "text/event-stream")]).await.events();
    let names: Vec<&str> = streamed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["progress", "final_response"]);
    assert_eq!(model.prompts.lock().unwrap().len(), 1);

    let reused = server.post(&turns(SESSION), &json!({ "query": "two", "request_id": "r1" }), &[]).await;
    assert_eq!(reused.error(), (409, "request_id_reused".to_owned()));
}

#[tokio::test]
async fn a_stream_has_progress_deltas_and_one_end() {
    let server = Server::with(Arc::new(Recorder::default()), SETTINGS).await;
    let body = json!({ "query": "one", "request_id": "r1" });
    let headers = [("accept", "application/json;q=0.1, text/event-stream")];
    let by_accept = server.post(&turns(SESSION), &body, &headers).await;
    assert_eq!(by_accept.header("cache-control"), "no-store");
    let by_query = server.post(&format!("{}?stream=true", turns("app_conv:bob")), &body, &[]).await;
    for (reply, count) in [(by_accept, 1), (by_query, 2)] {
        let events = reply.events();
        let data: Vec<Value> = events.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect();
        for ((name, _), data) in events.iter().zip(&data) {
            assert_eq!((&data["message_type"], &data["request_id"]), (&json!(name), &json!("r1")));
            assert!(data["content"].is_string() && data["metadata"].is_object(), "{data}");
        }
        let deltas: Vec<&Value> = data.iter().filter(|data| data["message_type"] == "delta").collect();
        assert_eq!(deltas.iter().map(|d| d["metadata"]["seq"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);
        let joined: String = deltas.iter().map(|d| d["content"].as_str().unwrap()).collect();
        let last = data.last().unwrap();
        assert_eq!((&last["message_type"], &last["content"]), (&json!("final_response"), &json!(joined)));
        assert_eq!(joined, format!("answer {count}: yes\nindeed"));
        assert_eq!(data[0]["message_type"], "progress");
    }
}

#[tokio::test]
async fn a_stream_that_fails_says_why() {
    let server = Server::with(Arc::new(Mute(Some(ModelError::Unreachable))), SETTINGS).await;
    let reply = server.post(&turns(SESSION), &said("one").unwrap(), &[("accept", "text/event-stream")]).await;
    let (name, data) = reply.events().pop().unwrap();
    let data: Value = serde_json::from_str(&data).unwrap();
    assert_eq!((name.as_str(), &data["metadata"]["code"]), ("error", &json!("model_failed")));
    assert!(data["metadata"]["hint"].as_str().unwrap().contains("model.base_url"), "{data}");
    // What is refused at once is refused with a status.
    let reply = server.post(&turns(SESSION), &said(" ").unwrap(), &[("accept", "text/event-stream")]).await;
    assert_eq!(reply.error(), (400, "invalid_request".to_owned()));
    assert_eq!(
        server.ask(Method::POST, &turns(SESSION), said("two")).await.error(),
        (502, "model_failed".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_a_timeout_that_names_the_turn() {
    let server = Server::with(Arc::new(Mute(None)), SETTINGS).await;
    let reply = server.post(&turns(SESSION), &json!({ "query": "one", "request_id": "r1" }), &[]).await;
    assert_eq!(reply.error(), (504, "timeout".to_owned()));
    assert_eq!(reply.json()["error"]["request_id"], "r1");
    assert_eq!(server.engine.counts().running, 1, "the turn goes on");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_is_kept_alive_and_ends_with_the_reason() {
    let server = Server::with(Arc::new(Mute(None)), SETTINGS).await;
    let reply = server.post(&turns(SESSION), &said("one").unwrap(), &[("accept", "text/event-stream")]).await;
    assert!(reply.text.contains("\n\n:\n\n"), "{reply:?}");
    let (name, data) = reply.events().pop().unwrap();
    assert_eq!(name, "error");
    assert!(data.contains("model_failed"), "{data}");
}

#[tokio::test]
async fn a_turn_goes_on_when_its_client_leaves() {
    let model = Arc::new(Recorder::default());
    let server = Server::with(model.clone(), SETTINGS).await;
    let body = json!({ "query": "one", "request_id": "r1" });
    let request = Request::post(turns(SESSION)).header(header::CONTENT_TYPE, "application/json");
    let request = request
        .header(header::AUTHORIZATION, format!("Bearer {}", server.admin))
        .header("accept", "text/event-stream");
    let response =
        server.router.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
    drop(response);
    let again = server.post(&turns(SESSION), &body, &[]).await.ok();
    assert_eq!(
        (&again["content"], &again["metadata"]["replayed"]),
        (&json!("answer 1: yes\nindeed"), &json!(true))
    );
    assert_eq!(model.prompts.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_stopping_engine_takes_no_turns() {
    let server = Server::builtin().await;
    server.engine.stop(Duration::ZERO).await;
    let reply = server.ask(Method::POST, &turns(SESSION), said("one")).await;
    assert_eq!(reply.error(), (503, "stopping".to_owned()));
    assert!(!reply.header("retry-after").is_empty());
}

#[tokio::test]
async fn a_session_is_exported_and_erased_with_a_receipt() {
    let server = Server::builtin().await;
    let (path, export) = (format!("/api/v1/session/{SESSION}"), format!("/api/v1/session/{SESSION}/export"));
    assert_eq!(server.ask(Method::GET, &export, None).await.error(), (404, "not_found".to_owned()));
    server.ask(Method::POST, &turns(SESSION), said(HELLO)).await.ok();

    let exported = server.ask(Method::GET, &export, None).await.ok();
    let kinds: Vec<&Value> = exported["messages"].as_array().unwrap().iter().map(|m| &m["type"]).collect();
    assert_eq!(kinds, ["human", "ai"]);
    assert_eq!(
        (&exported["session_id"], &exported["messages"][0]["content"]),
        (&json!(SESSION), &json!(HELLO))
    );

    // Where a client of the first system looks.
    let said: Vec<Value> = exported["messages"]
        .as_array()
        .expect("it is a list")
        .iter()
        .map(|one| json!({ "type": one["type"], "content": one["content"] }))
        .collect();
    assert_eq!(exported["data"], json!({ "messages": said }));

    let would = server.ask(Method::DELETE, &format!("{path}?dry_run=true"), None).await.ok();
    assert_eq!(would, json!({ "dry_run": true, "erased": "session", "sessions": 1, "messages": 2 }));
    server.ask(Method::GET, &export, None).await.ok();

    let receipt = server.ask(Method::DELETE, &path, None).await.ok();
    assert_eq!((&receipt["erased"], &receipt["sessions"]), (&json!("session"), &json!(1)));
    assert_eq!((&receipt["deleted"], &receipt["session_id"]), (&json!(true), &json!(SESSION)));
    let receipt = serde_json::from_value(receipt).unwrap();
    server.engine.dangerously_administer(Actor::cli()).verify_receipt(&receipt).await.unwrap();
    assert_eq!(server.ask(Method::GET, &export, None).await.error(), (404, "not_found".to_owned()));
    assert_eq!(server.ask(Method::DELETE, &path, None).await.ok()["sessions"], 0);
}

#[tokio::test]
async fn a_person_is_exported_and_erased_everywhere() {
    let server = Server::builtin().await;
    for session in ["app_conv:alice", "app:room:main:alice", "app_conv:bob"] {
        server.ask(Method::POST, &turns(session), said("hello")).await.ok();
    }
    let exported = server.ask(Method::GET, "/api/v1/person/alice/export", None).await.ok();
    let ids: Vec<&Value> =
        exported["sessions"].as_array().unwrap().iter().map(|s| &s["session_id"]).collect();
    assert_eq!(ids, ["app:room:main:alice", "app_conv:alice"]);
    let would = server.ask(Method::DELETE, "/api/v1/person/alice?dry_run=true", None).await.ok();
    assert_eq!(would, json!({ "dry_run": true, "erased": "person", "sessions": 2 }));
    let receipt = server.ask(Method::DELETE, "/api/v1/person/alice", None).await.ok();
    assert_eq!((&receipt["sessions"], &receipt["tokens"]), (&json!(2), &json!(1)));
    assert_eq!((&receipt["deleted"], &receipt["user_id"]), (&json!(true), &json!("alice")));
    let empty = server.ask(Method::GET, "/api/v1/person/alice/export", None).await.ok();
    assert_eq!(empty["sessions"], json!([]));
    server.ask(Method::GET, "/api/v1/session/app_conv:bob/export", None).await.ok();
    let gone = server.ask_as(&server.alice, Method::GET, "/v1/models", None).await;
    assert_eq!(gone.status, 401, "her token went with her");
}

/// What the first system publishes on `vagent:requests`, sent as it is.
#[tokio::test]
async fn a_bus_message_is_a_turn() {
    let server = Server::builtin().await;
    let session = "!room123:matrix.org:main:@dave:matrix.org";
    let message = json!({
        "request_id": "uuid-123",
        "query": "what database did we choose?",
        "session_id": session,
        "room_context": [
            {"sender": "@alice:matrix.org", "content": "Use PostgreSQL", "timestamp": "2026-11-16T10:00:00+00:00", "is_bot": false},
            {"sender": "@bob:matrix.org", "content": "Deploy to AWS", "timestamp": 1_700_000_000, "is_bot": false},
        ],
        "metadata": {"room_id": "!room123:matrix.org", "thread_id": null, "user_id": "@dave:matrix.org"},
    });
    let reply = server.post(&turns(session), &message, &[]).await.ok();
    assert!(reply["content"].as_str().is_some_and(|said| said.contains("PostgreSQL")), "{reply}");
    assert_eq!(reply["request_id"], "uuid-123");
    // Without a room it may say so.
    let bare =
        json!({ "request_id": "uuid-124", "query": "hello", "session_id": session, "room_context": null });
    server.post(&turns(session), &bare, &[]).await.ok();
    // Another's session stays another's.
    let wrong = json!({ "query": "hello", "session_id": "!room123:matrix.org:main:@eve:matrix.org" });
    let refused = server.post(&turns(session), &wrong, &[]).await;
    assert_eq!(refused.error(), (400, "invalid_request".to_owned()));
    let odd = json!({ "query": "hello", "room_context": [{"sender": "a", "content": "b", "timestamp": "yesterday"}] });
    assert_eq!(server.post(&turns(session), &odd, &[]).await.status, 400);
}

#[tokio::test]
async fn forget_is_a_turn_that_erases() {
    let server = Server::builtin().await;
    server.ask(Method::POST, &turns(SESSION), said(HELLO)).await.ok();
    let reply = server.ask(Method::POST, &turns(SESSION), said("!forget")).await.ok();
    assert_eq!(
        (&reply["metadata"]["memory"], &reply["metadata"]["receipt"]["sessions"]),
        (&json!("forgotten"), &json!(1))
    );
}

#[tokio::test]
async fn health_needs_no_token() {
    let server = Server::builtin().await;
    for path in ["/healthz", "/readyz", "/openapi.json"] {
        let reply = server.send(Request::get(path).body(Body::empty())).await;
        assert_eq!(
            (reply.status.as_u16(), reply.header("x-content-type-options")),
            (200, "nosniff"),
            "{path}"
        );
    }
}
