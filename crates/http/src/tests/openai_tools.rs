//! The client's own tools through the door of OpenAI's clients.

use confidant_engine::approval::Approver;

use super::surface::conforms;
use super::*;
use crate::testing::{Caller, Counting, DELETE, approved_by, engine};

const PATH: &str = "/v1/chat/completions";
const ASKED: &str = "call get_weather {\"city\":\"Cork\"}";

async fn setting() -> (Server, Arc<Counting>) {
    let tools = Counting::new();
    let rules = approved_by(vec![Approver::Asker]);
    let engine = engine(Storage::memory(), Caller::new(), tools.clone(), rules).await;
    (Server::on(engine, SETTINGS).await, tools)
}

fn body(messages: Value) -> Value {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let function = json!({ "name": "get_weather", "parameters": parameters });
    json!({ "model": "x", "user": "alice", "messages": messages, "tools": [{ "type": "function", "function": function }] })
}

fn result(call: &Value, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": call["id"], "content": text })
}

async fn remembered(server: &Server) -> Vec<String> {
    let export = server.ask(Method::GET, "/api/v1/session/openai_conv:alice/export", None).await.ok();
    let messages = export["messages"].as_array().unwrap().iter();
    messages.map(|message| message["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn calls_and_the_answer_after_them_have_openais_form() {
    let (server, _) = setting().await;
    let document = server.ask(Method::GET, "/openapi.json", None).await.ok();
    let mut messages = json!([{ "role": "user", "content": ASKED }]);
    let reply = server.post(PATH, &body(messages.clone()), &[]).await;
    assert_eq!(reply.header("x-confidant-memory"), "kept");
    let reply = reply.ok();
    conforms(&document, "ChatCompletion", &reply);
    let choice = &reply["choices"][0];
    let call = choice["message"]["tool_calls"][0].clone();
    let function = json!({ "name": "get_weather", "arguments": "{\"city\":\"Cork\"}" });
    let expected = json!({
        "index": 0,
        "message": {
            "role": "assistant", "content": "Looking.", "refusal": null,
            "tool_calls": [{ "id": call["id"], "type": "function", "function": function }],
        },
        "logprobs": null,
        "finish_reason": "tool_calls",
    });
    assert_eq!(*choice, expected);
    assert!(reply["confidant"].get("calls").is_none(), "they stand where the client looks for them");
    messages.as_array_mut().unwrap().extend([choice["message"].clone(), result(&call, "rain")]);
    let last = server.post(PATH, &body(messages.clone()), &[]).await.ok();
    conforms(&document, "ChatCompletion", &last);
    let said = last["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(said.starts_with("done: ") && said.contains("rain"), "{said}");
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(remembered(&server).await, ["human", "ai", "tool", "ai"]);
    let again = server.post(PATH, &body(messages), &[]).await.ok();
    assert_eq!((&again["choices"], &again["confidant"]["replayed"]), (&last["choices"], &json!(true)));
    assert_eq!(remembered(&server).await.len(), 4);
}

#[tokio::test]
async fn a_stream_has_each_call_whole_behind_the_words() {
    let (server, _) = setting().await;
    let mut body = body(json!([{ "role": "user", "content": format!("{ASKED}\n{ASKED}") }]));
    body["stream"] = json!(true);
    let mut events = server.post(PATH, &body, &[]).await.events();
    assert_eq!(events.pop().unwrap().1, "[DONE]");
    let chunks: Vec<Value> = events.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect();
    let choices: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]).collect();
    assert_eq!(choices[1]["delta"], json!({ "content": "Looking." }));
    for (at, choice) in choices[2..4].iter().enumerate() {
        let call = &choice["delta"]["tool_calls"][0];
        assert_eq!((&call["index"], &call["type"]), (&json!(at), &json!("function")));
        assert_eq!(call["function"], json!({ "name": "get_weather", "arguments": "{\"city\":\"Cork\"}" }));
    }
    let last = (&choices[4]["delta"], &choices[4]["finish_reason"], choices.len());
    assert_eq!(last, (&json!({}), &json!("tool_calls"), 5));
}

#[tokio::test]
async fn approvals_work_beside_them() {
    let (server, tools) = setting().await;
    let asked = json!([{ "role": "user", "content": format!("{DELETE}\n{ASKED}") }]);
    let question = server.post(PATH, &body(asked), &[]).await.ok();
    assert_eq!((&question["choices"][0]["finish_reason"], tools.runs()), (&json!("stop"), 0));
    let code = question["confidant"]["code"].as_str().unwrap();
    let approve = json!([{ "role": "user", "content": format!("approve {code}") }]);
    let calls = server.post(PATH, &body(approve), &[]).await.ok();
    assert_eq!((&calls["choices"][0]["finish_reason"], tools.runs()), (&json!("tool_calls"), 1));
    let call = &calls["choices"][0]["message"]["tool_calls"][0];
    let last = server.post(PATH, &body(json!([result(call, "rain")])), &[]).await.ok();
    let said = last["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(said.contains("content of /a") && said.contains("rain"), "{said}");
    assert_eq!(tools.runs(), 1);
}

#[tokio::test]
async fn an_approval_elsewhere_tells_of_the_calls_that_wait() {
    let (server, _) = setting().await;
    let document = server.ask(Method::GET, "/openapi.json", None).await.ok();
    let asked = body(json!([{ "role": "user", "content": format!("{DELETE}\n{ASKED}") }]));
    let key = [("idempotency-key", "k1")];
    let question = server.post(PATH, &asked, &key).await.ok();
    let decision = json!({ "approval_id": question["confidant"]["approval_id"], "decision": "approve" });
    let path = format!("/api/v1/session/{}/decisions", encoded("openai_conv:alice"));
    let decided = server.ask_as(&server.alice, Method::POST, &path, Some(decision)).await.ok();
    conforms(&document, "TurnReply", &decided);
    assert_eq!(decided["metadata"]["calls"][0]["name"], "get_weather", "{decided}");
    // The client gets them when it asks again.
    let calls = server.post(PATH, &asked, &key).await.ok();
    let call = &calls["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["id"], decided["metadata"]["calls"][0]["id"]);
    let last = server.post(PATH, &body(json!([result(call, "rain")])), &[]).await.ok();
    assert!(last["choices"][0]["message"]["content"].as_str().unwrap().contains("rain"));
}

#[tokio::test]
async fn another_persons_token_does_not_go_on_with_a_turn() {
    let (server, _) = setting().await;
    let calls = server.post(PATH, &body(json!([{ "role": "user", "content": ASKED }])), &[]).await.ok();
    let call = &calls["choices"][0]["message"]["tool_calls"][0];
    let mut stolen = body(json!([result(call, "canary-7f3a")]));
    for user in [json!("bob"), Value::Null] {
        stolen["user"] = user;
        let reply = server.post(PATH, &stolen, &[]).await;
        assert_eq!(reply.status.as_u16(), 400, "{reply:?}");
        assert!(reply.text.contains("no turn here waits") && !reply.text.contains("canary"), "{reply:?}");
    }
    assert_eq!(remembered(&server).await, ["human"]);
}
