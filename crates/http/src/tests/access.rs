//! Who may have what.

use super::*;

const BOBS: &str = "bob-marker-4711";

/// Alice and Bob have said something, in a memory of their own and in a room.
async fn inhabited() -> Server {
    let server = Server::builtin().await;
    for user in ["alice", "bob"] {
        for session in [format!("app_conv:{user}"), format!("app:room:main:{user}")] {
            let body = json!({ "query": format!("my secret is {user}-marker-4711"), "audience": "private" });
            server.post(&turns(&session), &body, &[]).await.ok();
        }
        let chat = json!({ "model": "any", "user": user, "messages": [{ "role": "user", "content": format!("my secret is {user}-marker-4711") }] });
        server.post("/v1/chat/completions", &chat, &[]).await.ok();
    }
    server
}

/// Administrators read what was done in their tenant, page by page, and nobody else does.
#[tokio::test]
async fn the_audit_log_is_read_by_administrators_and_of_their_own_tenant() {
    let server = inhabited().await;
    server.ask(Method::GET, "/api/v1/person/alice/export", None).await.ok();
    let turn = json!({ "query": "hello", "audience": "private" });
    server.ask_as(&server.elsewhere, Method::POST, &turns("app_conv:carol"), Some(turn)).await.ok();
    let all = async |token: &str, limit: usize| {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page = server
                .ask_as(token, Method::GET, &format!("/api/v1/audit?limit={limit}{after}"), None)
                .await
                .ok();
            found.extend(page["records"].as_array().unwrap().clone());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return found,
            }
        }
    };
    let ours = all(&server.admin, 1000).await;
    let actions: Vec<&str> = ours.iter().map(|record| record["action"].as_str().unwrap()).collect();
    for action in ["token.created", "turn.accepted", "turn.answered", "person.exported"] {
        assert!(actions.contains(&action), "{action}: {actions:?}");
    }
    let tenants: std::collections::BTreeSet<_> =
        ours.iter().map(|record| record["tenant"].to_string()).collect();
    assert_eq!(tenants.len(), 1);
    // In small pages the same, and what reading itself had added before: it has an end all the same.
    for limit in [1, 3] {
        let paged = all(&server.admin, limit).await;
        assert_eq!(paged[..ours.len()], ours[..]);
        assert!(paged[ours.len()..].iter().all(|record| record["action"] == "audit.viewed"), "{paged:?}");
    }
    let theirs = all(&server.elsewhere, 1000).await;
    assert!(theirs.iter().all(|record| record["tenant"] != ours[0]["tenant"]) && theirs.len() > 2);
    for token in [&server.agent, &server.alice] {
        let refused = server.ask_as(token, Method::GET, "/api/v1/audit", None).await;
        assert_eq!(refused.error().0, 403);
    }
    let odd = server.ask(Method::GET, "/api/v1/audit?after=yesterday", None).await;
    assert_eq!(odd.error(), (400, "invalid_request".to_owned()));
    assert!(!serde_json::to_string(&ours).unwrap().contains("marker-4711"));
}

/// One way to ask about somebody.
type Ask = fn(&str) -> (Method, String, Option<Value>, Option<String>);

fn chat() -> Value {
    json!({ "model": "any", "messages": [{ "role": "user", "content": "what is my secret?" }] })
}

/// Every way to reach somebody's memory, with what an agent may do with it and what another tenant finds.
const WAYS: [(&str, Ask, u16, u16); 12] = [
    ("export", |user| (Method::GET, format!("/api/v1/session/app_conv:{user}/export"), None, None), 403, 404),
    (
        "room export",
        |user| (Method::GET, format!("/api/v1/session/app:room:main:{user}/export"), None, None),
        403,
        404,
    ),
    (
        "turn",
        |user| (Method::POST, turns(&format!("app_conv:{user}")), said("what is my secret?"), None),
        200,
        200,
    ),
    (
        "room turn",
        |user| (Method::POST, turns(&format!("app:room:main:{user}")), said("what?"), None),
        200,
        200,
    ),
    (
        "approvals",
        |user| (Method::GET, format!("/api/v1/session/app_conv:{user}/approvals"), None, None),
        200,
        200,
    ),
    (
        "cancel",
        |user| (Method::DELETE, format!("{}/r1", turns(&format!("app_conv:{user}"))), None, None),
        200,
        200,
    ),
    (
        "would erase",
        |user| (Method::DELETE, format!("/api/v1/session/app_conv:{user}?dry_run=true"), None, None),
        403,
        200,
    ),
    ("person", |user| (Method::GET, format!("/api/v1/person/{user}/export"), None, None), 403, 200),
    (
        "would erase person",
        |user| (Method::DELETE, format!("/api/v1/person/{user}?dry_run=true"), None, None),
        403,
        200,
    ),
    (
        "chat by user",
        |user| {
            let mut body = chat();
            body["user"] = json!(user);
            (Method::POST, "/v1/chat/completions".to_owned(), Some(body), None)
        },
        200,
        200,
    ),
    (
        "chat by session",
        |user| {
            (Method::POST, "/v1/chat/completions".to_owned(), Some(chat()), Some(format!("app_conv:{user}")))
        },
        200,
        200,
    ),
    ("erase", |user| (Method::DELETE, format!("/api/v1/session/app:room:main:{user}"), None, None), 403, 200),
];

async fn go(server: &Server, token: Option<&str>, way: Ask, user: &str) -> Reply {
    let (method, path, body, session) = way(user);
    let mut request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    if let Some(session) = session {
        request = request.header("x-confidant-session", session);
    }
    server.send(request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))).await
}

#[tokio::test]
async fn every_role_reaches_what_is_its_own_and_nothing_else() {
    let server = inhabited().await;
    for (name, way, for_agent, from_elsewhere) in WAYS {
        let status =
            async |token: &str, user: &str| go(&server, Some(token), way, user).await.status.as_u16();
        assert_eq!(status(&server.alice, "alice").await, 200, "{name}: her own");
        let refused = go(&server, Some(&server.alice), way, "bob").await;
        assert_eq!(refused.status, 403, "{name}: somebody else's: {refused:?}");
        let nobody = go(&server, Some(&server.alice), way, "nobody").await;
        assert_eq!(
            (nobody.status, &nobody.text),
            (refused.status, &refused.text),
            "{name}: says what exists"
        );

        assert_eq!(status(&server.agent, "bob").await, for_agent, "{name}: an agent");
        let elsewhere = go(&server, Some(&server.elsewhere), way, "bob").await;
        assert_eq!(elsewhere.status, from_elsewhere, "{name}: another tenant: {elsewhere:?}");
        assert!(!refused.text.contains(BOBS) && !elsewhere.text.contains(BOBS), "{name}");
        assert_eq!(go(&server, None, way, "bob").await.status, 401, "{name}: nobody");
        assert_eq!(status("cft_unknown", "bob").await, 401, "{name}: an unknown token");
        assert_eq!(status(&server.admin, "bob").await, 200, "{name}: an administrator");
    }
}

#[tokio::test]
async fn refusals_are_in_the_audit_log() {
    let server = inhabited().await;
    for (_, way, ..) in WAYS {
        go(&server, Some(&server.alice), way, "bob").await;
    }
    let lines = server.engine.dangerously_administer(Actor::cli()).audit(1000).await.unwrap();
    let refused = lines
        .iter()
        .filter(|line| line.record.action == confidant_engine::audit::Action::AccessRefused)
        .count();
    assert_eq!(refused, WAYS.len());
}

#[tokio::test]
async fn a_users_token_means_that_user_and_an_agent_without_a_user_means_nobody() {
    let server = inhabited().await;
    let mine = server.ask_as(&server.alice, Method::POST, "/v1/chat/completions", Some(chat())).await;
    assert_eq!(mine.header("x-confidant-memory"), "kept");
    assert!(
        mine.ok()["choices"][0]["message"]["content"].as_str().unwrap().contains("alice-marker"),
        "{mine:?}"
    );
    let nobodys = server.ask_as(&server.agent, Method::POST, "/v1/chat/completions", Some(chat())).await;
    assert_eq!(nobodys.header("x-confidant-memory"), "off");
    assert_eq!(nobodys.ok()["confidant"]["memory"], "off");
}

#[tokio::test]
async fn metrics_are_for_operators_and_models_for_all() {
    let server = Server::builtin().await;
    for (token, metrics) in [(&server.admin, 200), (&server.agent, 200), (&server.alice, 403)] {
        assert_eq!(server.ask_as(token, Method::GET, "/metrics", None).await.status, metrics);
        assert_eq!(server.ask_as(token, Method::GET, "/v1/models", None).await.status, 200);
        assert_eq!(
            server
                .ask_as(token, Method::GET, "/v1/models/builtin-extractive", None)
                .await
                .header("cache-control"),
            "no-store"
        );
    }
}

/// A web session is good for the routes of chats, and for nothing here: neither as it is shown there nor as a token.
#[tokio::test]
async fn a_session_of_chats_is_no_token() {
    let server = Server::builtin().await;
    let id = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
    for path in [
        "/api/v1/person/alice/export",
        "/api/v1/audit",
        "/v1/models",
        "/api/v1/session/app_conv:alice/export",
    ] {
        for authorization in [None, Some(format!("Confidant-Session {id}")), Some(format!("Bearer {id}"))] {
            let mut request = Request::get(path)
                .header("confidant-session", id)
                .header(header::COOKIE, format!("__Host-confidant={id}; confidant-7367={id}"))
                .header(header::HOST, "localhost:7367")
                .header(header::ORIGIN, "http://localhost:7367")
                .header("sec-fetch-site", "same-origin");
            if let Some(authorization) = &authorization {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            let reply = server.send(request.body(Body::empty())).await;
            assert_eq!(reply.status, 401, "{path} {authorization:?}");
        }
    }
}

#[tokio::test]
async fn who_is_unknown_is_told_where_a_token_is() {
    let server = Server::builtin().await;
    let basic = format!("Basic {}", server.admin);
    let long = format!("Bearer {}", "x".repeat(5000));
    for value in [None, Some("Bearer "), Some("Bearer cft_wrong"), Some(basic.as_str()), Some(long.as_str())]
    {
        let mut request = Request::get("/api/v1/person/alice/export");
        if let Some(value) = value {
            request = request.header(header::AUTHORIZATION, value);
        }
        let reply = server.send(request.body(Body::empty())).await;
        assert_eq!(reply.error(), (401, "unauthenticated".to_owned()));
        assert!(
            reply.text.contains("confidant-data/admin.token") && !reply.text.contains("wrong"),
            "{reply:?}"
        );
        assert!(reply.header("www-authenticate").starts_with("Bearer"));
    }
    let lower = Request::get("/v1/models").header(header::AUTHORIZATION, format!("bearer {}", server.admin));
    assert_eq!(server.send(lower.body(Body::empty())).await.status, 200);
}

#[tokio::test]
async fn a_token_has_a_rate_and_strangers_do_too() {
    let settings = HttpSettings { requests_per_minute: 2, ..SETTINGS };
    let server = Server::with(Arc::new(Extractive), settings).await;
    for _ in 0..2 {
        server.ask(Method::GET, "/metrics", None).await;
    }
    let reply = server.ask(Method::GET, "/metrics", None).await;
    assert_eq!(reply.error(), (429, "rate_limited".to_owned()));
    assert!(reply.header("retry-after").parse::<u64>().unwrap() > 0);
    let openai = server.ask(Method::GET, "/v1/models", None).await;
    assert_eq!((openai.status.as_u16(), &openai.json()["error"]["type"]), (429, &json!("rate_limit_error")));

    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(server.ask_as("cft_wrong", Method::GET, "/v1/models", None).await.status.as_u16());
    }
    assert_eq!((statuses[0], statuses[39]), (401, 429));
    let known = server.ask_as(&server.agent, Method::GET, "/v1/models", None).await;
    assert_eq!(known.status, 200, "a known token is not locked out by strangers");
}

/// Accounts of chats that only their owner can open are nobody's to speak for, whatever the role. Administrators may count and
/// erase them.
#[tokio::test]
async fn what_belongs_to_accounts_is_refused_to_every_role() {
    const ACCOUNT: &str = "acct_aeaqcaibaeaqcaibaeaqcaibae";
    let server = inhabited().await;
    for token in [&server.admin, &server.agent, &server.alice] {
        for (name, way, ..) in WAYS {
            let reply = go(&server, Some(token), way, ACCOUNT).await;
            let counts = name == "would erase person";
            let expected = if counts && *token == server.admin {
                200
            } else if counts || name == "person" && *token != server.admin {
                403
            } else {
                400
            };
            assert_eq!(reply.status, expected, "{name}: {reply:?}");
        }
        for id in [
            "web_conv:alice",
            "web:chat:main:alice",
            "accounts:x:account:confidant",
            "concepts:x:context:confidant",
        ] {
            for (method, path, body) in [
                (Method::POST, turns(id), said("hello")),
                (Method::GET, format!("/api/v1/session/{id}/export"), None),
                (Method::DELETE, format!("/api/v1/session/{id}"), None),
            ] {
                let reply = server.ask_as(token, method, &path, body).await;
                assert_eq!(reply.error().0, 400, "{path}: {reply:?}");
                assert!(reply.text.contains("only their owner can open"), "{reply:?}");
            }
        }
    }
    // An administrator may erase one.
    server.ask(Method::DELETE, &format!("/api/v1/person/{ACCOUNT}"), None).await.ok();
}
