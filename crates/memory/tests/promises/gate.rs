//! Promise 7: secrets do not leave. Whatever comes in is redacted, derived, scanned again; critical secrets block.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use confidant_memory::api::Raw;
use confidant_memory::{Card, CardWriter, Error, Redacted};
use serde_json::{Value, json};

use crate::support::{Place, bug_report, of, query, request};

/// Each with what of it must not be found anywhere.
fn secrets() -> Vec<(&'static str, String)> {
    let key = format!("sk_live_{}", "4eC39HqLyjWDarjtT1zdp7dc");
    vec![
        ("email", "nora.quist@secretmail.example".to_owned()),
        ("stripe", key),
        ("aws", format!("AKIA{}", "Z7QRM2VX4NTPW6KD")),
        ("iban", "DE89370400440532013000".to_owned()),
        ("card", "4111 1111 1111 1111".to_owned()),
        ("ip", "203.0.113.77".to_owned()),
        ("github", format!("ghp_{}", "16C7e42F292c6912E7710c838347Ae178B4a")),
    ]
}

fn everywhere(secret: &str) -> Value {
    json!({
        "timestamp": "2025-12-21T12:00:00Z",
        "tool_name": format!("tool {secret}"),
        "summary": format!("We saw {secret} in the log. Decided to rotate {secret} today. TODO: remove {secret} from the docs."),
        "error_message": format!("error: refused {secret}"),
        "output": format!("line one\ncontact={secret}\n"),
        "messages": [
            {"role": "user", "content": format!("Why does \"{secret}\" not work in auth-service?")},
            {"role": "tool", "content": {"nested": [{"deep": secret}, secret]}},
            {"role": "assistant", "content": format!("`{secret}` is refused; {secret}.")},
        ],
        secret: {"as a key": 1},
        "tags": [secret],
        "metadata": {"note": secret},
    })
}

#[tokio::test]
async fn promise_7_secrets_planted_everywhere_are_nowhere_afterwards() {
    for (name, secret) in secrets() {
        let place = Place::new();
        let own = of(&place.open(), "alice");
        let mut wish = request("demo-001", &everywhere(&secret));
        wish.tags.push(secret.clone());
        wish.metadata.insert(secret.clone(), json!([secret]));
        wish.raw = Raw::Acknowledged;
        let dry = own.preview(&wish).await.unwrap();
        let stored = own.store(&wish).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let artifact = own.retrieve(&stored.cascade_uri, None).await.unwrap();
        let found = own.query(&query("auth-service")).await.unwrap();
        assert_eq!(found.hits.len(), 1, "{name}");
        let said = format!(
            "{} {} {} {}",
            serde_json::to_string(&dry).unwrap(),
            serde_json::to_string(&stored).unwrap(),
            serde_json::to_string(&artifact).unwrap(),
            serde_json::to_string(&found).unwrap()
        );
        assert!(!said.contains(&secret), "{name} is in a reply: {said}");
        assert!(!place.holds(&secret), "{name} is in a file");
        assert!(!stored.redaction.rules_fired.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn promise_7_critical_secrets_block_and_are_named_by_rule_and_place_only() {
    let body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQ";
    let pem = format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----");
    for (secret, marker) in [
        (pem.as_str(), body),
        ("Authorization: Bearer 8f14e45fceea167a5a36dedd4bea2543", "8f14e45fceea167a5a36dedd4bea2543"),
    ] {
        for at in ["session", "tags", "metadata", "id"] {
            let place = Place::new();
            let own = of(&place.open(), "alice");
            let mut wish = request("demo-001", &json!({"summary": "A note."}));
            match at {
                "session" => {
                    wish = request("demo-001", &json!({"messages": [{"role": "tool", "content": secret}]}));
                }
                "tags" => wish.tags.push(secret.to_owned()),
                "metadata" => drop(wish.metadata.insert("note".to_owned(), json!({"x": secret}))),
                _ if secret.contains('\n') => continue,
                _ => wish.session_id = secret.to_owned(),
            }
            let before = place.bytes();
            let error = own.store(&wish).await.unwrap_err();
            let Error::Blocked { places } = &error else { panic!("{at}: {error:?}") };
            assert!(!places.is_empty() && places.iter().all(|place| !place.rule.is_empty()), "{at}");
            assert!(!format!("{error} {error:?}").contains(marker), "{at}");
            assert_eq!(own.preview(&wish).await.unwrap_err().code(), "blocked");
            assert!(place.bytes() == before, "{at}: something was written");
        }
    }
}

#[tokio::test]
async fn names_of_sessions_stay_names_unless_they_tell_something() {
    let place = Place::new();
    let own = of(&place.open(), "alice");
    let session = json!({"summary": "A note about builds."});
    for id in [
        "ses_7fGh2kLmNpQ9rStUvWxYz",
        "session_7fGh2kLmNpQ9rStUvWxYz",
        "session:7fGh2kLmNpQ9rStUvWxYz",
        "session_id=7fGh2kLmNpQ9rStUvWxYz",
        "01JCXQ5T7N8V9W0XYZABCDEFGH",
        "0199c2f1-7a3b-7c44-9d2e-1f2a3b4c5d6e",
        "0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c5d6e7f80",
        "k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz",
        "agent/k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz#2",
        "notes on the build",
    ] {
        assert_eq!(own.store(&request(id, &session)).await.unwrap().session_id, id);
    }
    for (id, told) in [
        ("deploy DB_PASSWORD=tr0ub4dor", "deploy DB_PASSWORD=<REDACTED:PASSWORD>"),
        ("deploy client_secret: 0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c", "deploy client_secret: <REDACTED:SECRET>"),
        ("client_secret=0f3a9c5b7d1e2f4a6b8c0d9e1f2a3b4c", "client_secret=<REDACTED:SECRET>"),
        ("acme SECRET 665Hkj_12ABcd-eF34xW", "acme SECRET <REDACTED:SECRET>"),
        ("ran it with k3Jd9fQw7eRt5yUi1oPa8sDf4gHj6kLz today", "ran it with <REDACTED:SECRET> today"),
    ] {
        assert_eq!(own.store(&request(id, &session)).await.unwrap().session_id, told);
        assert!(!place.holds(id));
    }
    let stored = own.store(&request("chat with nora@mail.example", &session)).await.unwrap();
    assert_eq!(stored.session_id, "chat with <REDACTED:EMAIL>");
}

/// A model that never says the same twice, and says this besides.
#[derive(Debug)]
struct Moody {
    calls: AtomicUsize,
    todo: &'static str,
}

#[async_trait]
impl CardWriter for Moody {
    async fn write(&self, _: &Redacted) -> Option<Card> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        Some(Card {
            title: format!("JWT validation, take {call}"),
            todos: vec![self.todo.to_owned()],
            ..Card::default()
        })
    }
}

#[tokio::test]
async fn what_a_model_wrote_for_a_dry_run_is_what_is_stored() {
    let model = Arc::new(Moody { calls: AtomicUsize::new(0), todo: "fix JWT validation" });
    let place = Place::new();
    let memory = place.open_with(|parts| parts.card_writer = Some(model.clone()));
    let own = of(&memory, "alice");
    let mut wish = request("demo-001", &bug_report());
    wish.raw = Raw::Acknowledged;
    let shown = own.preview(&wish).await.unwrap();
    assert_eq!(own.preview(&wish).await.unwrap(), shown);
    wish.expect_sha256 = Some(shown.preview.sha256);
    assert_eq!(own.store(&wish).await.unwrap().memory_card.title, "JWT validation, take 0");
    assert_eq!(model.calls.load(Ordering::SeqCst), 1);
    // Not for somebody else, and not for what the session became.
    assert_ne!(of(&memory, "bob").preview(&wish).await.unwrap().memory_card, shown.memory_card);
    let other = request("demo-001", &json!({"summary": "JWT validation works now."}));
    assert_ne!(own.preview(&other).await.unwrap().memory_card, shown.memory_card);
}

#[tokio::test]
async fn a_model_that_makes_up_names_or_secrets_does_not_keep_a_session_from_being_stored() {
    for todo in ["Jonathan Smith", "mail nora.quist@secretmail.example"] {
        let place = Place::new();
        let model = Arc::new(Moody { calls: AtomicUsize::new(0), todo });
        let memory = place.open_with(|parts| parts.card_writer = Some(model));
        let stored = of(&memory, "alice").store(&request("demo-001", &bug_report())).await.unwrap();
        assert!(!serde_json::to_string(&stored).unwrap().contains(todo));
        assert!(!stored.memory_card.title.is_empty());
    }
}
