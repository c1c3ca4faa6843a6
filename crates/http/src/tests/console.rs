//! What the administrator's page is told, and what it is never told.

use confidant_channel::Health;
use confidant_engine::clock::Millis;

use super::surface::conforms;
use super::*;
use crate::standing::{Component, Damage, Gauge, Part, Standing, Stores};

const CONSOLE: &str = "/api/v1/console";
const TAIL: &str = "/api/v1/audit?newest=true&limit=50";
const MARKER: &str = "marker-4711";

/// People have said something in several places, and one has an approval, a failure and an erasure behind them.
async fn lived_in() -> Server {
    let server = Server::builtin().await;
    for user in ["alice", "bob"] {
        for session in
            [format!("app_conv:{user}-{MARKER}"), format!("app:room-{MARKER}:main:{user}-{MARKER}")]
        {
            let body = json!({ "query": format!("my secret is {MARKER}"), "audience": "private", "request_id": format!("r-{MARKER}") });
            server.post(&turns(&session), &body, &[]).await.ok();
        }
    }
    let chat = json!({ "model": "any", "user": format!("carol-{MARKER}"), "messages": [{ "role": "user", "content": MARKER }] });
    server.post("/v1/chat/completions", &chat, &[]).await.ok();
    server.ask(Method::GET, &format!("/api/v1/person/bob-{MARKER}/export"), None).await.ok();
    server.ask(Method::DELETE, &format!("/api/v1/person/bob-{MARKER}"), None).await.ok();
    server.ask_as(&server.alice, Method::GET, &format!("/api/v1/person/bob-{MARKER}/export"), None).await;
    while server.engine.counts().running > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.engine.settle().await;
    server
}

#[tokio::test]
async fn it_counts_and_has_nothing_that_anybody_said_or_is() {
    let server = lived_in().await;
    let console = server.ask(Method::GET, CONSOLE, None).await;
    let tail = server.ask(Method::GET, TAIL, None).await;
    assert!(tail.ok()["records"].as_array().unwrap().len() > 10, "the tail is not empty");
    let tokens = [&server.admin, &server.agent, &server.alice, &server.elsewhere];
    for text in [&console.text, &tail.text] {
        for secret in [MARKER, "alice", "bob", "carol", "cft_", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"]
        {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert!(tokens.iter().all(|token| !text.contains(token.as_str())));
    }
    // Not even what stands for a person or a session in the audit log.
    let tags: Vec<String> = tail.ok()["records"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|record| ["subject", "tenant"].map(|name| record[name].as_str().map(str::to_owned)))
        .flatten()
        .collect();
    assert!(tags.len() > 10 && tags.iter().all(|tag| !console.text.contains(tag.as_str())), "{tags:?}");

    let console = console.ok();
    assert_eq!(console["turns"]["accepted"], 5);
    assert_eq!(console["turns"]["running"], 0);
    let times = console["turn_times"]["counts"].as_array().unwrap();
    assert_eq!(times.iter().filter_map(Value::as_u64).sum::<u64>(), 5);
    assert_eq!(times.len(), console["turn_times"]["bounds_ms"].as_array().unwrap().len() + 1);
    // Alice's two, and Carol's; Bob is erased.
    let by_channel = console["sessions"]["by_channel"].as_array().unwrap();
    assert_eq!(by_channel.iter().filter_map(|one| one["sessions"].as_u64()).sum::<u64>(), 3, "{console}");
    assert_eq!((&by_channel[0]["channel"], &by_channel[0]["kept"]), (&json!("app"), &json!("store")));
    assert_eq!((&console["sessions_erased"], &console["sessions"]["unreadable"]), (&json!(2), &json!(0)));
    assert_eq!((&console["keys"]["masters"], &console["keys"]["under_others"]), (&json!(1), &json!(0)));
    assert_eq!(console["checks"][0], json!({ "part": "store", "ok": true }));
    assert!(console.get("not_counted").is_none());
}

#[tokio::test]
async fn it_is_for_administrators_and_of_their_own_tenant() {
    let server = lived_in().await;
    for token in [&server.agent, &server.alice] {
        assert_eq!(server.ask_as(token, Method::GET, CONSOLE, None).await.error().0, 403);
        assert_eq!(server.ask_as(token, Method::GET, TAIL, None).await.error().0, 403);
    }
    let nobody = Request::get(CONSOLE).body(Body::empty());
    assert_eq!(server.send(nobody).await.error().0, 401);
    let elsewhere = server.ask_as(&server.elsewhere, Method::GET, CONSOLE, None).await.ok();
    assert_eq!(elsewhere["sessions"]["by_channel"], json!([]));
    let ours = server.ask(Method::GET, TAIL, None).await.ok();
    let theirs = server.ask_as(&server.elsewhere, Method::GET, TAIL, None).await.ok();
    let tenant = |tail: &Value| tail["records"][0]["tenant"].as_str().unwrap().to_owned();
    assert_ne!(tenant(&ours), tenant(&theirs));
}

#[tokio::test]
async fn the_tail_is_the_end_of_the_log_and_reading_it_is_recorded() {
    let server = lived_in().await;
    let all = server.ask(Method::GET, "/api/v1/audit?limit=1000", None).await.ok();
    let all = all["records"].as_array().unwrap();
    let tail = server.ask(Method::GET, "/api/v1/audit?newest=true&limit=5", None).await.ok();
    let tail = tail["records"].as_array().unwrap();
    // What came last is that everything was read.
    assert_eq!(tail[..4], all[all.len() - 4..]);
    assert_eq!(tail[4]["action"], "audit.viewed");
    let again = server.ask(Method::GET, "/api/v1/audit?newest=true&limit=1", None).await.ok();
    assert_eq!(
        (&again["records"][0]["action"], &again["records"][0]["count"]),
        (&json!("audit.viewed"), &json!(5))
    );
    let both = server.ask(Method::GET, "/api/v1/audit?newest=true&after=0.0.9", None).await;
    assert_eq!(both.error().0, 400);
}

#[tokio::test]
async fn looking_is_recorded_once_for_a_while_and_counting_is_not_repeated_at_once() {
    let server = lived_in().await;
    let administrator = server.engine.dangerously_administer(Actor::cli());
    let views = async || {
        let lines = administrator.audit(1000).await.unwrap();
        let name =
            |line: &confidant_engine::audit::AuditLine| serde_json::to_value(line.record.action).unwrap();
        lines.iter().filter(|line| name(line) == json!("keys.viewed")).count()
    };
    let first = server.ask(Method::GET, CONSOLE, None).await.ok();
    let body = json!({ "query": "more", "audience": "private" });
    server.post(&turns("app:another:main:dora"), &body, &[]).await.ok();
    let second = server.ask(Method::GET, CONSOLE, None).await.ok();
    assert_eq!(views().await, 1);
    assert_eq!(first["sessions"], second["sessions"], "a count stands for a while");
    assert_eq!(second["turns"]["accepted"], 6, "what costs nothing is of now");
    server.ask_as(&server.elsewhere, Method::GET, CONSOLE, None).await.ok();
    assert_eq!(views().await, 2);
}

/// A component that is not well.
#[derive(Debug)]
struct Unwell;

#[async_trait]
impl Component for Unwell {
    fn name(&self) -> &'static str {
        "chats"
    }

    async fn ping(&self) -> Result<(), String> {
        Err("the disk is full; hint: make room".to_owned())
    }

    fn gauges(&self) -> Vec<Gauge> {
        vec![Gauge { name: "chats_sockets", help: "Sockets", value: 7 }]
    }
}

#[tokio::test]
async fn it_is_described_whole_and_says_what_is_not_well() {
    let server = lived_in().await;
    let channels = Health::default();
    channels.unusable("matrix", "main", "the password is wrong; hint: set it".to_owned(), Millis(5));
    let standing = Standing {
        components: vec![Arc::new(Unwell)],
        channels,
        damaged: vec![Damage { part: Part::Memory, trouble: "it is damaged".to_owned() }],
        stores: Some(Stores { data: "sqlite", keyring: "postgres" }),
    };
    let (router, _) = crate::build(server.engine.clone(), SETTINGS, None, standing, Router::new());
    let server = Server { router, ..server };
    let document = server.ask(Method::GET, "/openapi.json", None).await.ok();
    let console = server.ask(Method::GET, CONSOLE, None).await.ok();
    conforms(&document, "Console", &console);
    let chats = console["checks"].as_array().unwrap().iter().find(|check| check["part"] == "chats").unwrap();
    assert_eq!(
        *chats,
        json!({ "part": "chats", "ok": false, "trouble": "the disk is full; hint: make room" })
    );
    let channel = &console["channels"][0];
    assert_eq!((&channel["condition"], &channel["backlog"]), (&json!("refused"), &json!(0)));
    assert_eq!(console["stores"], json!({ "data": "sqlite", "keyring": "postgres" }));
    assert_eq!(
        (&console["gauges"][0]["value"], &console["damaged"][0]["part"]),
        (&json!(7), &json!("memory"))
    );
}
