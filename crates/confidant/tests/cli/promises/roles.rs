//! Promise 1 among roles: no token reaches an account, whatever it is for, and a session of an account reaches nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use confidant_chat_format::RecoveryCode;
use confidant_client::{Credential, Device, Phase};
use serde_json::Value;

use super::{Place, Serving};
use crate::promises::on_each_store;
use crate::rows::{Row, markers};

on_each_store! {
    promise_1_no_role_reaches_an_account_and_no_account_reaches_anything_else,
}

async fn promise_1_no_role_reaches_an_account_and_no_account_reaches_anything_else(place: Place) {
    let server = Serving::start(&place);
    let code = RecoveryCode::random();
    let (mut ben, way) = server.register(&place, "ben", vec![Credential::Recovery(code)]).await;
    let chat = ben.new_chat(Some("a title")).unwrap();
    ben.say(&chat, "some words").unwrap();
    ben.set_data("settings", "theme", Some("dark")).unwrap();
    ben.flush().await.unwrap();
    ben.devices().await.unwrap();
    let account = ben.account_id().as_str().to_owned();
    let kept = place.kept().await;
    let rows = kept.rows_of(&account).await;
    let routes = routes(&server).await;
    assert!(routes.len() > 25, "{routes:?}");

    tokens_reach_nothing(&place, &server, &routes, (&account, chat.as_str()), &rows).await;
    let keys = way.session();
    session_reaches_nothing(&server, &routes, &keys.id, &keys.secret).await;
    for command in [
        vec!["session".to_owned(), "delete".to_owned(), format!("accounts:{account}:account:{account}")],
        vec!["session".to_owned(), "export".to_owned(), format!("web:{}:main:{account}", chat.as_str())],
        vec!["person".to_owned(), "export".to_owned(), account.clone()],
    ] {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let ran = place.home.run(&words);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command:?}: {}", ran.err);
    }
    let now = kept.rows_of(&account).await;
    let changed: Vec<&str> = rows.iter().filter(|row| !now.contains(row)).map(|row| row.table).collect();
    assert!(changed.is_empty() && now.len() == rows.len(), "rows changed: {changed:?}");
    is_all_there(&mut ben, &chat).await;
    place.home.run(&["keys", "verify"]).done();
    server.stop();
}

async fn is_all_there(ben: &mut Device, chat: &confidant_chat_format::ChatId) {
    ben.sync(Phase::All).await.unwrap();
    let view = ben.chat(chat).unwrap();
    assert_eq!((view.title(), view.messages.len()), (Some("a title"), 1));
}

/// Every route that the program describes, by method and path.
async fn routes(server: &Serving) -> Vec<(String, String)> {
    let (status, answer) = server.ask("GET /openapi.json", &[], "").await;
    assert_eq!(status, 200);
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let described: Value = serde_json::from_str(body).unwrap();
    let mut routes = vec![("POST".to_owned(), "/mcp".to_owned())];
    for (path, methods) in described["paths"].as_object().unwrap() {
        routes
            .extend(methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())));
    }
    routes
}

/// The path with these in the place of its ids.
fn filled(path: &str, session: &str, account: &str) -> String {
    path.replace("{session_id}", session)
        .replace("{conversation_id}", session)
        .replace("{user_id}", account)
        .replace("{request_id}", "r1")
        .replace("{approval_id}", account)
        .replace("{node_id}", account)
        .replace("{id}", account)
}

async fn tokens_reach_nothing(
    place: &Place,
    server: &Serving,
    routes: &[(String, String)],
    (account, chat): (&str, &str),
    rows: &[Row],
) {
    let token = |role: &str, tenant: &str| {
        let made = place.home.run(&["token", "new", "--role", role, "--tenant", tenant]).done();
        made.out.trim().to_owned()
    };
    let tokens = [
        ("admin", token("admin", "default")),
        ("agent", token("agent", "default")),
        ("person", token("user:mallory", "default")),
        ("stranger", token("admin", "other")),
    ];
    let ids = [
        format!("web:{chat}:main:{account}"),
        format!("web_conv:{account}"),
        format!("accounts:{account}:account:{account}"),
        format!("accounts:{account}:{chat}:{account}"),
        format!("app_conv:{account}"),
    ];
    let hidden = markers(rows);
    let body = format!(
        r#"{{"query":"what is my title?","user":"{account}","user_id":"{account}","conversation_id":"web:{chat}:main:{account}",
            "model":"any","messages":[{{"role":"user","content":"what is my title?"}}]}}"#
    );
    for (role, token) in &tokens {
        let bearer = [("authorization", format!("Bearer {token}"))];
        for (method, path) in routes {
            // An administrator may count and erase, so this one only counts.
            let counts = method == "DELETE" && path == "/api/v1/person/{user_id}";
            for id in &ids {
                let path = filled(path, id, account) + if counts { "?dry_run=true" } else { "" };
                let (status, answer) = server.ask(&format!("{method} {path}"), &bearer, &body).await;
                let told = hidden.iter().find(|marker| {
                    answer.contains(*marker) && !path.contains(*marker) && !body.contains(*marker)
                });
                assert!(told.is_none(), "{role}: {method} {path}: {answer}");
                assert!(!answer.contains("a title") && !answer.contains("some words"), "{role}: {answer}");
                let names_session = path.contains("/session/");
                assert!(!names_session || (400..500).contains(&status), "{role}: {method} {path}: {answer}");
            }
        }
        // Nor is a token anything to chats.
        for (name, value) in [
            ("authorization", format!("Bearer {token}")),
            ("authorization", format!("Confidant-Session {token}")),
        ] {
            for path in
                ["/account/devices", "/chats/ticket", "/chats/events", "/account/export", "/account/logout"]
            {
                let headers = [(name, value.clone()), ("confidant-session", token.clone())];
                let (status, answer) = server.ask(&format!("POST {path}"), &headers, "{}").await;
                assert!([400, 401].contains(&status), "{role}: {path}: {answer}");
            }
        }
    }
}

/// A session of an account, shown in every way, is a stranger's request everywhere but at chats' own routes.
async fn session_reaches_nothing(
    server: &Serving,
    routes: &[(String, String)],
    id: &[u8; 32],
    secret: &[u8; 32],
) {
    let (id, secret) = (URL_SAFE_NO_PAD.encode(id), URL_SAFE_NO_PAD.encode(secret));
    let port = server.address.port();
    let shown =
        |name: &'static str, value: String| vec![(name, value), ("confidant-session", secret.clone())];
    let mut cookie = shown("cookie", format!("confidant-{port}={id}"));
    cookie.push(("origin", server.origin().as_str().to_owned()));
    cookie.push(("sec-fetch-site", "same-origin".to_owned()));
    let ways = [
        cookie,
        shown("authorization", format!("Confidant-Session {id}")),
        shown("authorization", format!("Bearer {id}")),
        shown("authorization", format!("Bearer {secret}")),
    ];
    for headers in &ways {
        for (method, path) in routes {
            if ["/healthz", "/readyz", "/openapi.json"].contains(&path.as_str()) {
                continue;
            }
            let path = filled(path, "app_conv:alice", "alice");
            let (status, answer) = server.ask(&format!("{method} {path}"), headers, "{}").await;
            assert_eq!(status, 401, "{method} {path} with {}: {answer}", headers[0].0);
        }
    }
    // It is a good one: at chats' own route it is known.
    let (status, answer) = server.ask("POST /account/devices", &ways[1], "{}").await;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = server.ask("POST /account/devices", &ways[0], "{}").await;
    assert_eq!(status, 200, "{answer}");
}
