//! The surface as a whole: what it says of itself, counts and logs.

use std::collections::{BTreeMap, BTreeSet};

use axum::middleware;
use axum::routing::get;

use super::*;

const SESSION: &str = "app:marker-place:main:marker-user";

#[tokio::test]
async fn the_description_lists_exactly_what_is_routed() {
    let server = Server::builtin().await;
    let document = server.ask(Method::GET, "/openapi.json", None).await.ok();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut described = BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods: BTreeSet<&str> = item.as_object().unwrap().keys().map(String::as_str).collect();
        described.insert(path.as_str(), methods);
    }
    let expected = BTreeMap::from([
        ("/api/v1/session/{session_id}/turns", BTreeSet::from(["post"])),
        ("/api/v1/session/{session_id}/turns/{request_id}", BTreeSet::from(["delete"])),
        ("/api/v1/session/{session_id}/approvals", BTreeSet::from(["get"])),
        ("/api/v1/session/{session_id}/decisions", BTreeSet::from(["post"])),
        ("/api/v1/approvals/{approval_id}", BTreeSet::from(["get"])),
        ("/api/v1/decisions", BTreeSet::from(["post"])),
        ("/api/v1/session/{session_id}/export", BTreeSet::from(["get"])),
        ("/api/v1/session/{session_id}/about", BTreeSet::from(["get"])),
        ("/api/v1/session/{session_id}", BTreeSet::from(["delete"])),
        ("/api/v1/person/{user_id}/export", BTreeSet::from(["get"])),
        ("/api/v1/person/{user_id}", BTreeSet::from(["delete"])),
        ("/api/v1/audit", BTreeSet::from(["get"])),
        ("/api/v1/console", BTreeSet::from(["get"])),
        ("/api/chat", BTreeSet::from(["post"])),
        ("/api/v1/conversation/{conversation_id}/context", BTreeSet::from(["delete", "get"])),
        ("/api/v1/conversation/{conversation_id}/context/pins/{node_id}", BTreeSet::from(["delete", "put"])),
        ("/api/v1/conversation/{conversation_id}/context/why/{node_id}", BTreeSet::from(["get"])),
        ("/api/v1/conversation/{conversation_id}/members/{user_id}", BTreeSet::from(["delete", "put"])),
        ("/api/v1/concepts/candidates", BTreeSet::from(["get"])),
        ("/api/v1/concepts/{node_id}/approve", BTreeSet::from(["post"])),
        ("/v1/chat/completions", BTreeSet::from(["post"])),
        ("/v1/responses", BTreeSet::from(["post"])),
        ("/v1/responses/{response_id}", BTreeSet::from(["delete", "get"])),
        ("/v1/responses/{response_id}/cancel", BTreeSet::from(["post"])),
        ("/v1/responses/{response_id}/input_items", BTreeSet::from(["get"])),
        ("/v1/conversations", BTreeSet::from(["post"])),
        ("/v1/conversations/{conversation_id}", BTreeSet::from(["delete", "get", "post"])),
        ("/v1/conversations/{conversation_id}/items", BTreeSet::from(["get", "post"])),
        ("/v1/conversations/{conversation_id}/items/{item_id}", BTreeSet::from(["delete", "get"])),
        ("/v1/embeddings", BTreeSet::from(["post"])),
        ("/v1/models", BTreeSet::from(["get"])),
        ("/v1/models/{id}", BTreeSet::from(["get"])),
        ("/healthz", BTreeSet::from(["get"])),
        ("/readyz", BTreeSet::from(["get"])),
        ("/metrics", BTreeSet::from(["get"])),
        ("/openapi.json", BTreeSet::from(["get"])),
    ]);
    assert_eq!(described, expected);
    for (path, methods) in &expected {
        let path = path.replace("{session_id}", "app_conv:x");
        let names = ["{user_id}", "{id}", "{request_id}", "{approval_id}", "{conversation_id}", "{node_id}"];
        let names = names.into_iter().chain(["{response_id}", "{item_id}"]);
        let path = names.fold(path, |path, name| path.replace(name, "x"));
        for method in ["get", "post", "delete", "put", "patch"] {
            let routed = server.ask(method.to_uppercase().parse().unwrap(), &path, None).await;
            let is_405 = routed.status == 405;
            assert_eq!(is_405, !methods.contains(method), "{method} {path}: {routed:?}");
            assert!(!routed.text.contains("no_route"), "{method} {path}");
            if is_405 {
                assert!(
                    routed.header("allow").to_lowercase().contains(methods.first().unwrap()),
                    "{routed:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn every_guarded_operation_is_described_with_its_errors_and_every_reference_resolves() {
    let server = Server::builtin().await;
    let document = server.ask(Method::GET, "/openapi.json", None).await.ok();
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            assert!(operation["summary"].is_string(), "{path}");
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{path}: the id is taken");
            let guarded = !["/healthz", "/readyz", "/openapi.json"].contains(&path.as_str());
            assert_eq!(operation["responses"].get("401").is_some(), guarded, "{path}");
            assert_eq!(operation.get("security").is_some(), guarded, "{path}");
        }
    }
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

#[tokio::test]
async fn replies_are_what_the_description_says() {
    let server = Server::builtin().await;
    let document = server.ask(Method::GET, "/openapi.json", None).await.ok();
    let reply = server.ask(Method::POST, &turns(SESSION), said("hello")).await.ok();
    conforms(&document, "TurnReply", &reply);
    let again = json!({ "query": "again", "request_id": "r", "audience": "private" });
    server.post(&turns(SESSION), &again, &[]).await.ok();
    conforms(&document, "TurnReply", &server.post(&turns(SESSION), &again, &[]).await.ok());
    let session = format!("/api/v1/session/{SESSION}");
    conforms(&document, "Export", &server.ask(Method::GET, &format!("{session}/export"), None).await.ok());
    conforms(
        &document,
        "PersonExport",
        &server.ask(Method::GET, "/api/v1/person/marker-user/export", None).await.ok(),
    );
    conforms(
        &document,
        "WouldErase",
        &server.ask(Method::DELETE, &format!("{session}?dry_run=true"), None).await.ok(),
    );
    conforms(&document, "Error", &server.ask(Method::DELETE, "/api/v1/session/x", None).await.json());
    conforms(&document, "TurnReply", &server.ask(Method::POST, &turns(SESSION), said("!forget")).await.ok());
    conforms(&document, "Receipt", &server.ask(Method::DELETE, &session, None).await.ok());
    let chat = json!({ "model": "x", "messages": [{ "role": "user", "content": "hello" }] });
    conforms(&document, "ChatCompletion", &server.post("/v1/chat/completions", &chat, &[]).await.ok());
    conforms(&document, "OpenAiError", &server.post("/v1/chat/completions", &json!({}), &[]).await.json());
    let embeddings = json!({ "model": "x", "input": "hello" });
    conforms(&document, "OpenAiError", &server.post("/v1/embeddings", &embeddings, &[]).await.json());
    let identity = json!({ "conversationId": "c", "userId": "marker-user" });
    let chat = json!({ "messages": [{ "role": "user", "content": "hello" }], "identity": identity });
    conforms(&document, "ChatResponse", &server.post("/api/chat", &chat, &[]).await.ok());
    conforms(&document, "ModelList", &server.ask(Method::GET, "/v1/models", None).await.ok());
}

/// Every field is described, and every field that is required is there; recursively.
pub(super) fn conforms(document: &Value, schema: &str, value: &Value) {
    check(document, &document["components"]["schemas"][schema], value, schema);
}

fn check_object(document: &Value, schema: &Value, fields: &serde_json::Map<String, Value>, place: &str) {
    let kind = schema["type"].as_array().map_or(&schema["type"], |kinds| &kinds[0]);
    assert_eq!(kind, "object", "{place}: {schema}");
    let (properties, others) = (&schema["properties"], &schema["additionalProperties"]);
    for (name, value) in fields {
        let property = properties.get(name).or_else(|| others.is_object().then_some(others));
        // An object of which nothing is said may have anything.
        let Some(property) = property else {
            assert!(properties.is_null() && others.is_null(), "{place}.{name} is not described");
            continue;
        };
        check(document, property, value, &format!("{place}.{name}"));
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let missing = required.iter().find(|name| !fields.contains_key(name.as_str().unwrap()));
    assert_eq!(missing, None, "{place}");
}

fn check(document: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        return check(document, document.pointer(&reference[1..]).unwrap(), value, place);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = |choice: &&Value| {
            let resolved = choice["$ref"].as_str().and_then(|r| document.pointer(&r[1..])).unwrap_or(choice);
            let required = resolved["required"].as_array().cloned().unwrap_or_default();
            choice["type"] != "null"
                && required.iter().all(|name| value.get(name.as_str().unwrap()).is_some())
        };
        if !value.is_null() {
            let mut fitting: Vec<&Value> = choices.iter().filter(fits).collect();
            // Replies of the same fields tell themselves apart by their type.
            if let Some(kind) = value.get("message_type") {
                fitting.retain(|choice| {
                    let reply = document.pointer(&choice["$ref"].as_str().unwrap()[1..]).unwrap();
                    let kinds = &reply["properties"]["message_type"];
                    let kinds = kinds["$ref"].as_str().map_or(kinds, |r| document.pointer(&r[1..]).unwrap());
                    kinds["enum"].as_array().unwrap().contains(kind)
                });
            }
            // And those of the same type by what is said beside them.
            if fitting.len() > 1 {
                let resolve = |schema: &Value| {
                    let found = schema["$ref"].as_str().and_then(|r| document.pointer(&r[1..]));
                    found.unwrap_or(schema).clone()
                };
                fitting.retain(|choice| {
                    let beside = resolve(&resolve(choice)["properties"]["metadata"]);
                    let required = beside["required"].as_array().cloned().unwrap_or_default();
                    required.iter().all(|name| value["metadata"].get(name.as_str().unwrap()).is_some())
                });
                // What asks for more says more.
                fitting.sort_by_key(|choice| {
                    let beside = resolve(&resolve(choice)["properties"]["metadata"]);
                    std::cmp::Reverse(beside["required"].as_array().map_or(0, Vec::len))
                });
                fitting.truncate(1);
            }
            assert_eq!(fitting.len(), 1, "{place}: {value}");
            check(document, fitting[0], value, place);
        }
        return;
    }
    // Any value at all.
    if schema.get("type").is_none() && schema.get("properties").is_none() {
        return;
    }
    match value {
        Value::Object(fields) => check_object(document, schema, fields, place),
        Value::Array(items) => items.iter().for_each(|item| check(document, &schema["items"], item, place)),
        Value::Null => assert!(
            schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("null"))),
            "{place}: {schema}"
        ),
        Value::String(text) => {
            assert!(schema["type"] == "string" || schema["type"][0] == "string", "{place}: {schema}");
            assert!(
                schema["enum"].as_array().is_none_or(|values| values.contains(&json!(text))),
                "{place}: {text}"
            );
        }
        Value::Number(_) => {
            let kind = schema["type"].as_array().map_or(&schema["type"], |kinds| &kinds[0]);
            assert!(kind == "integer" || kind == "number", "{place}: {schema}");
        }
        Value::Bool(_) => {
            let kind = schema["type"].as_array().map_or(&schema["type"], |kinds| &kinds[0]);
            assert_eq!(kind, "boolean", "{place}");
        }
    }
}

#[tokio::test]
async fn metrics_count_routes_and_turns_and_name_nobody() {
    let server = Server::builtin().await;
    let body = json!({ "query": "hello", "request_id": "marker-request" });
    for _ in 0..2 {
        server.post(&turns(SESSION), &body, &[]).await.ok();
    }
    server.ask("BREW".parse().unwrap(), "/marker-path", None).await;
    server.ask(Method::GET, "/api/v1/person/marker-person/export", None).await.ok();
    let reply = server.ask(Method::GET, "/metrics", None).await;
    assert!(reply.header("content-type").starts_with("application/openmetrics-text"));
    let text = reply.text;
    let expected = [
        "confidant_turns_accepted_total 1",
        "confidant_turns_answered_total 1",
        "confidant_turns_replayed_total 1",
        "confidant_turns_failed_total 0",
        "confidant_turns_resumed_total 0",
        "confidant_turns_paused_total 0",
        "confidant_turns_cancelled_total 0",
        "confidant_tool_calls_total 0",
        "confidant_turns_degraded_total 0",
        "confidant_store_conflicts_total 0",
        "confidant_sessions_erased_total 0",
        "confidant_turns_running 0",
        "confidant_http_requests_total{route=\"/api/v1/session/{session_id}/turns\",method=\"POST\",status=\"200\"} 2",
        "confidant_http_requests_total{route=\"unmatched\",method=\"other\",status=\"404\"} 1",
        "confidant_http_request_duration_seconds_count{route=\"/api/v1/person/{user_id}/export\",method=\"GET\"} 1",
    ];
    for line in expected {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("marker") && !text.contains("cft_"), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("confidant_") && value.parse::<f64>().is_ok(), "{line}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn unknown_routes_and_methods_are_told_in_json() {
    let server = Server::builtin().await;
    assert_eq!(server.ask(Method::GET, "/nothing", None).await.error(), (404, "no_route".to_owned()));
    assert_eq!(
        server.ask(Method::GET, "/api/v1/session/a/b/turns", None).await.error(),
        (404, "no_route".to_owned())
    );
    assert_eq!(
        server.ask(Method::PUT, "/healthz", None).await.error(),
        (405, "method_not_allowed".to_owned())
    );
}

#[tokio::test]
async fn a_panic_is_the_requests_own() {
    async fn boom() {
        panic!("on purpose");
    }
    let router =
        Router::new().route("/boom", get(boom)).layer(middleware::from_fn(super::super::render_errors));
    let response = router.oneshot(Request::get("/boom").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 500);
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["error"]["code"], "internal");
    assert!(!body.to_string().contains("on purpose"));
}

#[tokio::test]
async fn the_log_has_routes_and_token_ids_and_nothing_else() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
    let writer = log.clone();
    // With one subscriber alone, tests on other threads decide for it what is worth logging.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
    tracing::callsite::rebuild_interest_cache();
    let server = Server::builtin().await;
    server.ask(Method::POST, &turns(SESSION), said("marker-query")).await.ok();
    server.post(&turns(SESSION), &json!({ "query": { "marker-field": 1 } }), &[]).await;
    server.ask_as("marker-token", Method::GET, "/v1/models?marker-parameter", None).await;
    server.ask_as(&server.alice, Method::GET, "/api/v1/person/marker-person/export", None).await;
    server.ask(Method::GET, "/marker-path", None).await;
    server.ask(Method::GET, "/api/v1/approvals/marker-approval", None).await;
    let decision =
        json!({ "approval_id": "marker-approval", "decision": "approve", "user_id": "marker-user" });
    server.post("/api/v1/decisions", &decision, &[]).await;
    server.ask(Method::DELETE, &format!("{}/marker-request", turns(SESSION)), None).await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("http.route=\"/api/v1/session/{session_id}/turns\" http.status=200"), "{text}");
    assert!(!text.contains("marker") && !text.contains(&server.admin) && !text.contains("cft_"), "{text}");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn routes_of_others_are_beside_ours_and_answer_for_themselves() {
    async fn boom() {
        panic!("on purpose");
    }
    let engine = Engine::open(Parts::new(Storage::memory(), keys(), Arc::new(Extractive))).await.unwrap();
    let beside = Router::new()
        .route(
            "/beside",
            get(async |headers: HeaderMap| headers[header::ORIGIN].to_str().unwrap().to_owned()),
        )
        .route("/panics", get(boom));
    let router = crate::build(engine.clone(), SETTINGS, None, crate::Standing::default(), beside).0;
    let server = Server { router, ..Server::on(engine, SETTINGS).await };
    let get = |path: &str| {
        Request::get(path)
            .header(header::HOST, "here.example")
            .header(header::ORIGIN, "https://elsewhere.example")
            .body(Body::empty())
    };
    // Without a token, and who may ask from where is theirs to decide.
    let reply = server.send(get("/beside")).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, "https://elsewhere.example"));
    assert_eq!(reply.headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(server.send(get("/panics")).await.error(), (500, "internal".to_owned()));
    // Ours are as they were.
    assert_eq!(server.send(get("/healthz")).await.error().1, "foreign_origin");
    assert_eq!(server.send(Request::get("/api/v1/audit").body(Body::empty())).await.status, 401);
    assert_eq!(server.ask(Method::GET, "/neither", None).await.error(), (404, "no_route".to_owned()));
    let counted = server.ask(Method::GET, "/metrics", None).await.text;
    assert!(counted.contains("/beside"), "{counted}");
}
