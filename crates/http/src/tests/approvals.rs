//! Turns that wait for somebody's word, and turns that are called off.

use std::sync::atomic::Ordering;

use confidant_engine::Recovered;
use confidant_engine::approval::Approver;
use confidant_engine::clock::{ManualClock, Millis};
use confidant_engine::tools::ToolPolicy;

use super::*;
use crate::testing::{Caller, Counting, DELETE, approved_by, delete, engine};

const SESSION: &str = "http:r:main:alice";

/// A server whose model calls what it is told to, and its tools.
async fn setting(approvers: Vec<Approver>) -> (Server, Arc<Counting>) {
    let tools = Counting::new();
    let engine = engine(Storage::memory(), Caller::new(), tools.clone(), approved_by(approvers)).await;
    (Server::on(engine, SETTINGS).await, tools)
}

fn decisions(session: &str) -> String {
    format!("/api/v1/session/{}/decisions", encoded(session))
}

fn waiting(session: &str) -> String {
    format!("/api/v1/session/{}/approvals", encoded(session))
}

/// Asks for something that must be approved, and gives the question.
async fn asked(server: &Server, request_id: &str) -> Value {
    let mut body = delete("/a");
    body["request_id"] = json!(request_id);
    let reply = server.post(&turns(SESSION), &body, &[]).await.ok();
    assert_eq!(reply["message_type"], "hitl_request", "{reply}");
    reply
}

fn approve(question: &Value) -> Value {
    json!({ "approval_id": question["metadata"]["approval_id"], "decision": "approve" })
}

fn with(mut body: Value, name: &str, value: &str) -> Value {
    body[name] = json!(value);
    body
}

impl Server {
    async fn decide_as(&self, token: &str, path: &str, body: &Value) -> Reply {
        self.ask_as(token, Method::POST, path, Some(body.clone())).await
    }
}

#[tokio::test]
async fn a_turn_waits_and_goes_on_when_it_is_approved() {
    let (server, tools) = setting(vec![Approver::Asker]).await;
    let document = server.ask(Method::GET, "/openapi.json", None).await.ok();
    let question = asked(&server, "r1").await;
    super::surface::conforms(&document, "TurnReply", &question);
    let metadata = &question["metadata"];
    assert_eq!((&question["request_id"], &question["content"]), (&json!("r1"), &metadata["question"]));
    assert_eq!(
        (&metadata["tool"], &metadata["arguments"]),
        (&json!("files.delete"), &json!({ "path": "/a" }))
    );
    assert_eq!(metadata["options"], json!(["approve", "deny"]));
    assert!(question["content"].as_str().unwrap().contains(metadata["code"].as_str().unwrap()), "{question}");
    assert!(metadata["hash"].as_str().unwrap().len() == 64 && metadata["expires_at"].is_i64(), "{question}");
    // The same request asks the same; the list and the approval itself say the same.
    assert_eq!(asked(&server, "r1").await, question);
    let list = server.ask_as(&server.alice, Method::GET, &waiting(SESSION), None).await.ok();
    super::surface::conforms(&document, "ApprovalList", &list);
    assert_eq!(list["approvals"], json!([metadata]));
    let one = format!("/api/v1/approvals/{}", metadata["approval_id"].as_str().unwrap());
    assert_eq!(server.ask_as(&server.alice, Method::GET, &one, None).await.ok(), *metadata);
    assert_eq!(tools.runs(), 0);

    let answer = server.decide_as(&server.alice, &decisions(SESSION), &approve(&question)).await.ok();
    super::surface::conforms(&document, "TurnReply", &answer);
    assert_eq!((&answer["request_id"], &answer["message_type"]), (&json!("r1"), &json!("final_response")));
    assert!(answer["content"].as_str().unwrap().starts_with("Looking.\n\ndone: The tool said"), "{answer}");
    assert_eq!(answer["metadata"]["tools"], json!(["files.delete"]));
    let again = server.decide_as(&server.alice, &decisions(SESSION), &approve(&question)).await;
    assert_eq!(again.error(), (409, "already_decided".to_owned()));
    assert!(again.text.contains("your decision counted"), "{again:?}");
    let replayed =
        server.post(&turns(SESSION), &json!({ "query": DELETE, "request_id": "r1" }), &[]).await.ok();
    assert_eq!((&replayed["content"], &replayed["metadata"]["replayed"]), (&answer["content"], &json!(true)));
    assert_eq!(server.ask(Method::GET, &waiting(SESSION), None).await.ok(), json!({ "approvals": [] }));
    assert_eq!(tools.runs(), 1);
    let export = server.ask(Method::GET, &format!("/api/v1/session/{SESSION}/export"), None).await.ok();
    super::surface::conforms(&document, "Export", &export);
    assert_eq!(export["messages"][1]["arguments"], json!({ "path": "/a" }));
    let metrics = server.ask(Method::GET, "/metrics", None).await.text;
    for line in ["confidant_turns_paused_total 1", "confidant_tool_calls_total 1"] {
        assert!(metrics.lines().any(|l| l == line), "{metrics}");
    }
}

#[tokio::test]
async fn a_denied_call_is_not_made() {
    let (server, tools) = setting(vec![Approver::Asker]).await;
    let question = asked(&server, "r1").await;
    let deny = with(approve(&question), "decision", "deny");
    let answer = server.decide_as(&server.alice, &decisions(SESSION), &deny).await.ok();
    assert!(answer["content"].as_str().unwrap().contains("it was denied"), "{answer}");
    assert_eq!(tools.runs(), 0);
}

#[tokio::test]
async fn streams_end_with_the_question_and_then_with_the_answer() {
    let (server, _) = setting(vec![Approver::Asker]).await;
    let streamed = [("accept", "text/event-stream")];
    let body = json!({ "query": DELETE, "request_id": "r1" });
    let parsed = |reply: &Reply| -> Vec<(String, Value)> {
        let events = reply.events().into_iter();
        events.map(|(name, data)| (name, serde_json::from_str(&data).unwrap())).collect()
    };
    let first = parsed(&server.post(&turns(SESSION), &body, &streamed).await);
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["progress", "progress", "delta", "hitl_request"]);
    let question = &first[3].1;
    assert_eq!(question["metadata"]["tool"], "files.delete");

    let decision = with(
        with(approve(question), "user_id", "alice"),
        "hash",
        question["metadata"]["hash"].as_str().unwrap(),
    );
    let second = parsed(&server.post(&decisions(SESSION), &decision, &streamed).await);
    let names: Vec<&str> = second.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["progress", "delta", "progress", "delta", "delta", "final_response"]);
    assert_eq!(second[2].1["content"], "🔧 files.delete");
    let deltas = second.iter().filter(|(name, _)| name == "delta").map(|(_, data)| data);
    let told: String = deltas.map(|data| data["content"].as_str().unwrap().to_owned()).collect();
    assert_eq!(second.last().unwrap().1["content"], told);
    for (name, data) in first.iter().chain(&second) {
        assert_eq!((&data["request_id"], &data["message_type"]), (&json!("r1"), &json!(name)));
    }
    // Nothing to decide any more, and who repeats it hears that it counted.
    let late = parsed(&server.post(&decisions(SESSION), &decision, &streamed).await);
    let (name, data) = late.last().unwrap();
    assert_eq!((name.as_str(), &data["metadata"]["code"]), ("error", &json!("already_decided")));
}

#[tokio::test]
async fn the_wrong_people_decide_nothing_and_learn_nothing() {
    let (server, tools) = setting(vec![Approver::User("boss".into())]).await;
    let bob = token(&server.engine, "acme", "user:bob").await;
    let question = asked(&server, "r1").await;
    let body = approve(&question);
    let own_route = decisions(SESSION);
    for (token, body, expected) in [
        (&server.alice, body.clone(), (403, "not_your_approval")),
        (&server.alice, with(body.clone(), "user_id", "boss"), (403, "forbidden")),
        (&bob, body.clone(), (403, "forbidden")),
        (&bob, with(body.clone(), "user_id", "boss"), (403, "forbidden")),
        // An agent speaks for the session's own user unless it says for whom; an administrator for themselves.
        (&server.agent, body.clone(), (403, "not_your_approval")),
        (&server.agent, with(body.clone(), "user_id", "mallory"), (403, "not_your_approval")),
        (&server.admin, body.clone(), (403, "not_your_approval")),
        (&server.elsewhere, body.clone(), (404, "no_such_approval")),
    ] {
        let reply = server.decide_as(token, &own_route, &body).await;
        assert_eq!(reply.error(), (expected.0, expected.1.to_owned()), "{body}");
    }
    assert_eq!(server.ask_as(&bob, Method::GET, &waiting(SESSION), None).await.error().0, 403);
    // Whoever may not decide it is told the same whether it is there or not: on the route without a session, too.
    let id = question["metadata"]["approval_id"].as_str().unwrap();
    let invented = format!("{}{}", &id[..id.len() - 4], if id.ends_with("0000") { "1111" } else { "0000" });
    for token in [&bob, &server.elsewhere] {
        let looked = [id, &invented, "apr-1-2", "x"].map(|id| format!("/api/v1/approvals/{id}"));
        let mut said = Vec::new();
        for path in &looked {
            said.push(server.ask_as(token, Method::GET, path, None).await.text);
        }
        for id in [id, &invented, "apr-1-2", "x"] {
            for hash in ["", "0000"] {
                let body = with(with(body.clone(), "approval_id", id), "hash", hash);
                let reply = server.decide_as(token, "/api/v1/decisions", &body).await;
                assert_eq!(reply.error(), (404, "no_such_approval".to_owned()));
                said.push(reply.text);
            }
        }
        said.dedup();
        assert_eq!(said.len(), 1, "{said:?}");
    }
    for id in [id, &invented] {
        let body = with(with(body.clone(), "approval_id", id), "user_id", "boss");
        assert_eq!(server.decide_as(&bob, "/api/v1/decisions", &body).await.error().1, "forbidden");
    }
    let own = server.decide_as(&server.alice, "/api/v1/decisions", &body).await;
    assert_eq!(own.error(), (403, "not_your_approval".to_owned()), "her own session, so she may know");
    assert_eq!(tools.runs(), 0);
    let lines = server.engine.dangerously_administer(Actor::cli()).audit(1000).await.unwrap();
    let actions = lines.iter().map(|line| line.record.action);
    // Seven on the session's route and the list; bob's look and two tries at what is there; two as boss; her own.
    let refused = actions.filter(|action| *action == confidant_engine::audit::Action::AccessRefused).count();
    assert_eq!(refused, 8 + 3 + 2 + 1);
}

#[tokio::test]
async fn an_approver_decides_without_hearing_the_conversation() {
    let (server, tools) = setting(vec![Approver::User("boss".into())]).await;
    let boss = token(&server.engine, "acme", "user:boss").await;
    let question = asked(&server, "r1").await;
    let one = format!("/api/v1/approvals/{}", question["metadata"]["approval_id"].as_str().unwrap());
    assert_eq!(server.ask_as(&boss, Method::GET, &one, None).await.ok(), question["metadata"]);
    let reply = server.decide_as(&boss, "/api/v1/decisions", &approve(&question)).await;
    let told = reply.ok();
    assert_eq!(told["content"], "approved: it is being carried out.");
    assert!(!reply.text.contains("Looking"), "{reply:?}");
    // Who repeats it hears the same; who changes their mind, that it counted. Nobody else learns of it.
    let again = server.decide_as(&boss, "/api/v1/decisions", &approve(&question)).await.ok();
    assert_eq!(again["content"], "approved: it is being carried out.");
    let deny = with(approve(&question), "decision", "deny");
    let changed = server.decide_as(&boss, "/api/v1/decisions", &deny).await;
    assert_eq!(changed.error(), (409, "already_decided".to_owned()));
    assert!(changed.text.contains("your decision counted"), "{changed:?}");
    // What a server does every other second.
    assert_eq!(server.engine.recover().await.unwrap(), Recovered { resumed: 1, ..Recovered::default() });
    assert_eq!(tools.runs(), 1);
    let answer =
        server.post(&turns(SESSION), &json!({ "query": DELETE, "request_id": "r1" }), &[]).await.ok();
    assert!(answer["content"].as_str().unwrap().contains("content of /a"), "{answer}");
}

#[tokio::test]
async fn agents_and_administrators_speak_for_people() {
    let anyone = vec![Approver::User("boss".into()), Approver::Admin, Approver::Asker];
    let (server, tools) = setting(anyone).await;
    let cases = [
        (&server.agent, None),
        (&server.agent, Some("boss")),
        (&server.admin, None),
        (&server.admin, Some("boss")),
    ];
    for (n, (token, user)) in cases.into_iter().enumerate() {
        let question = asked(&server, &format!("r{n}")).await;
        let body = user.map_or_else(|| approve(&question), |user| with(approve(&question), "user_id", user));
        let path = if n % 2 == 0 { decisions(SESSION) } else { "/api/v1/decisions".to_owned() };
        let answer = server.decide_as(token, &path, &body).await.ok();
        assert!(answer["content"].as_str().unwrap().contains("done"), "{answer}");
        assert_eq!(tools.runs(), n + 1);
    }
    let bad = with(approve(&json!({ "metadata": { "approval_id": "x" } })), "user_id", "");
    assert_eq!(server.decide_as(&server.agent, &decisions(SESSION), &bad).await.status, 400);
    let bad = json!({ "approval_id": "x", "decision": "perhaps" });
    assert_eq!(server.decide_as(&server.agent, &decisions(SESSION), &bad).await.error().0, 400);
}

#[tokio::test]
async fn what_is_decided_is_what_was_shown() {
    let (server, tools) = setting(vec![Approver::Asker]).await;
    let (question, other) = (asked(&server, "r1").await, asked(&server, "r2").await);
    let mixed = with(approve(&question), "hash", other["metadata"]["hash"].as_str().unwrap());
    let reply = server.decide_as(&server.alice, &decisions(SESSION), &mixed).await;
    assert_eq!(reply.error(), (409, "hash_mismatch".to_owned()));
    assert_eq!(tools.runs(), 0);
    let right = with(approve(&question), "hash", question["metadata"]["hash"].as_str().unwrap());
    server.decide_as(&server.alice, &decisions(SESSION), &right).await.ok();
    // Another session's approval is none of this session's.
    let elsewhere = server.decide_as(&server.admin, &decisions("http:r:main:bob"), &approve(&other)).await;
    assert_eq!(elsewhere.error(), (404, "no_such_approval".to_owned()));
    assert_eq!(tools.runs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_decisions_counts() {
    let (server, tools) = setting(vec![Approver::Asker]).await;
    let mut runs = 0;
    for round in 0..10 {
        let question = asked(&server, &format!("r{round}")).await;
        let racing = (0..6).map(|at| {
            let decision = if at % 2 == 0 { "approve" } else { "deny" };
            let body = with(approve(&question), "decision", decision);
            let path = if at < 3 { decisions(SESSION) } else { "/api/v1/decisions".to_owned() };
            let server = &server;
            async move { (decision, server.decide_as(&server.alice, &path, &body).await) }
        });
        let replies = futures_util::future::join_all(racing).await;
        let won: Vec<&str> = replies.iter().filter(|(_, r)| r.status == 200).map(|(d, _)| *d).collect();
        assert_eq!(won.len(), 1, "{replies:?}");
        runs += usize::from(won[0] == "approve");
        for (_, reply) in replies.iter().filter(|(_, reply)| reply.status != 200) {
            let (status, code) = reply.error();
            assert!(
                matches!((status, code.as_str()), (404, "no_such_approval") | (409, "already_decided")),
                "{reply:?}"
            );
        }
        assert_eq!(tools.runs(), runs);
    }
}

#[tokio::test]
async fn too_late_is_said() {
    let (tools, clock) = (Counting::new(), Arc::new(ManualClock::new(Millis(1_000_000))));
    let parts = Parts {
        toolbox: tools.clone(),
        policy: ToolPolicy::new(approved_by(vec![Approver::Asker])),
        clock: clock.clone(),
        ..Parts::new(Storage::memory(), keys(), Caller::new())
    };
    let server = Server::on(Engine::open(parts).await.unwrap(), SETTINGS).await;
    let question = asked(&server, "r1").await;
    clock.advance(Duration::from_secs(61));
    assert_eq!(server.ask(Method::GET, &waiting(SESSION), None).await.ok(), json!({ "approvals": [] }));
    let late = server.decide_as(&server.alice, &decisions(SESSION), &approve(&question)).await;
    assert_eq!(late.error(), (409, "approval_expired".to_owned()));
    let said = server.post(&turns(SESSION), &json!({ "query": DELETE, "request_id": "r1" }), &[]).await.ok();
    assert!(said["content"].as_str().unwrap().contains("expired"), "{said}");
    assert_eq!(tools.runs(), 0);
}

#[tokio::test]
async fn later_messages_are_answered_and_words_decide() {
    let (server, tools) = setting(vec![Approver::Asker]).await;
    let question = asked(&server, "r1").await;
    let later = server.ask(Method::POST, &turns(SESSION), said("and then?")).await.ok();
    assert_eq!((&later["content"], &later["metadata"]["pending_approvals"]), (&json!("done: "), &json!(1)));
    let words = format!("approve {}", question["metadata"]["code"].as_str().unwrap());
    let answer = server.ask(Method::POST, &turns(SESSION), said(&words)).await.ok();
    assert_eq!((&answer["request_id"], tools.runs()), (&json!("r1"), 1));
    assert!(answer["metadata"].get("pending_approvals").is_none(), "{answer}");
}

/// Sends without waiting for the answer.
fn sent(server: &Server, path: &str, body: Value, accept: &str) -> tokio::task::JoinHandle<Reply> {
    let request = Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, accept)
        .header(header::AUTHORIZATION, format!("Bearer {}", server.alice))
        .body(Body::from(body.to_string()));
    let router = server.router.clone();
    tokio::spawn(async move {
        let response = router.oneshot(request.unwrap()).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        Reply { status, headers, text: String::from_utf8(body.to_vec()).unwrap() }
    })
}

async fn cancel(server: &Server, token: &str, request_id: &str) -> Reply {
    let path = format!("{}/{}", turns(SESSION), encoded(request_id));
    server.ask_as(token, Method::DELETE, &path, None).await
}

#[tokio::test]
async fn a_running_turn_is_cancelled() {
    let model = Caller::shut();
    let engine = engine(Storage::memory(), model.clone(), Counting::new(), Vec::new()).await;
    let server = Server::on(engine, SETTINGS).await;
    let document = server.ask(Method::GET, "/openapi.json", None).await.ok();
    for (n, accept) in ["application/json", "text/event-stream"].into_iter().enumerate() {
        let id = format!("r/{n}");
        let turn = sent(&server, &turns(SESSION), json!({ "query": "hello", "request_id": id }), accept);
        model.until_asked(n + 1).await;
        let bob = token(&server.engine, "acme", "user:bob").await;
        assert_eq!(cancel(&server, &bob, &id).await.error(), (403, "forbidden".to_owned()));
        assert_eq!(cancel(&server, &server.alice, "another").await.ok(), json!({ "cancelled": 0 }));
        let cancelled = cancel(&server, &server.alice, &id).await.ok();
        super::surface::conforms(&document, "Cancelled", &cancelled);
        assert_eq!(cancelled, json!({ "cancelled": 1 }));
        let reply = turn.await.unwrap();
        if n == 0 {
            assert_eq!(reply.error(), (409, "cancelled".to_owned()));
        } else {
            let (name, data) = reply.events().pop().unwrap();
            assert!(name == "error" && data.contains("\"cancelled\""), "{data}");
        }
        assert_eq!(cancel(&server, &server.alice, &id).await.ok(), json!({ "cancelled": 0 }));
    }
    model.gate.add_permits(10);
    let ask = async |id: &str| {
        server.post(&turns(SESSION), &json!({ "query": "hello", "request_id": id }), &[]).await
    };
    // Asked for again it is cancelled still; asked anew it is another turn.
    assert_eq!(ask("r/0").await.error(), (409, "cancelled".to_owned()));
    assert_eq!(ask("r/2").await.ok()["content"], json!("done: "));
}

#[tokio::test]
async fn a_turn_is_cancelled_while_it_waits_and_while_it_is_carried_out() {
    let (server, tools) = setting(vec![Approver::Asker]).await;
    let question = asked(&server, "r1").await;
    assert_eq!(cancel(&server, &server.alice, "r1").await.ok(), json!({ "cancelled": 1 }));
    let late = server.decide_as(&server.alice, &decisions(SESSION), &approve(&question)).await;
    assert_eq!(late.error(), (404, "no_such_approval".to_owned()));
    assert_eq!(tools.runs(), 0);

    tools.hangs.store(true, Ordering::SeqCst);
    let question = asked(&server, "r2").await;
    let deciding = sent(&server, &decisions(SESSION), approve(&question), "application/json");
    tools.until_run(1).await;
    assert_eq!(cancel(&server, &server.alice, "r2").await.ok(), json!({ "cancelled": 1 }));
    assert_eq!(deciding.await.unwrap().error(), (409, "cancelled".to_owned()));
    // The session goes on.
    assert_eq!(server.ask(Method::POST, &turns(SESSION), said("hello")).await.ok()["content"], "done: ");
}

const CHAT: &str = "/v1/chat/completions";

fn chat(text: &str, streamed: bool) -> Value {
    json!({ "model": "x", "user": "alice", "messages": [{ "role": "user", "content": text }], "stream": streamed })
}

#[tokio::test]
async fn an_openai_client_is_asked_in_words_and_answers_in_words() {
    let (server, tools) = setting(vec![Approver::Asker]).await;
    let document = server.ask(Method::GET, "/openapi.json", None).await.ok();
    let reply = server.post(CHAT, &chat(DELETE, false), &[]).await;
    assert_eq!(reply.header("x-confidant-memory"), "kept");
    let question = reply.ok();
    super::surface::conforms(&document, "ChatCompletion", &question);
    let choice = &question["choices"][0];
    assert_eq!(
        (&choice["message"]["content"], &choice["finish_reason"]),
        (&question["confidant"]["question"], &json!("stop"))
    );
    let code = question["confidant"]["code"].as_str().unwrap();
    let answer = server.post(CHAT, &chat(&format!("approve {code}"), false), &[]).await.ok();
    assert!(
        answer["choices"][0]["message"]["content"].as_str().unwrap().contains("content of /a"),
        "{answer}"
    );

    let events = server.post(CHAT, &chat("call files.delete {\"path\":\"/b\"}", true), &[]).await.events();
    assert_eq!(events.last().unwrap().1, "[DONE]");
    let chunks: Vec<Value> =
        events[..events.len() - 1].iter().map(|(_, d)| serde_json::from_str(d).unwrap()).collect();
    let text: String =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    let last = chunks.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(text, format!("Looking.\n\n{}", last["confidant"]["question"].as_str().unwrap()));
    let words = format!("deny {}", last["confidant"]["code"].as_str().unwrap());
    let denied = server.post(CHAT, &chat(&words, true), &[]).await;
    assert!(denied.text.contains("it was denied"), "{denied:?}");
    assert_eq!(tools.runs(), 1);
}

#[tokio::test]
async fn a_chat_that_waits_names_the_approval() {
    let (server, tools) = setting(vec![Approver::Asker]).await;
    let document = server.ask(Method::GET, "/openapi.json", None).await.ok();
    let identity = json!({ "conversationId": "c", "userId": "alice" });
    let body = json!({ "messages": [{ "role": "user", "content": DELETE }], "identity": identity });
    let question = server.post("/api/chat", &body, &[]).await.ok();
    super::surface::conforms(&document, "ChatResponse", &question);
    assert_eq!((&question["answer"], tools.runs()), (&question["approval"]["question"], 0));
    assert!(question["approval"]["code"].is_string(), "{question}");
}

#[tokio::test]
async fn an_openai_client_that_leaves_does_not_cancel() {
    let model = Caller::shut();
    let server =
        Server::on(engine(Storage::memory(), model.clone(), Counting::new(), Vec::new()).await, SETTINGS)
            .await;
    for streamed in [false, true] {
        let key = format!("r-{streamed}");
        let request = Request::post(CHAT)
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", &key)
            .header(header::AUTHORIZATION, format!("Bearer {}", server.alice))
            .body(Body::from(chat("hello", streamed).to_string()))
            .unwrap();
        let leaving = tokio::spawn(server.router.clone().oneshot(request));
        model.until_asked(1 + usize::from(streamed)).await;
        leaving.abort();
        assert!(leaving.await.unwrap_err().is_cancelled());
        model.gate.add_permits(1);
        let answer = server.post(CHAT, &chat("hello", false), &[("idempotency-key", &key)]).await.ok();
        assert_eq!(answer["choices"][0]["message"]["content"], "done: ");
    }
    assert_eq!(model.asked.load(Ordering::SeqCst), 2, "each turn was answered once, by itself");
}
