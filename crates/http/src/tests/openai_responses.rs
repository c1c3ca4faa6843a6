//! Responses and conversations, with sessions behind them.

use super::surface::conforms;
use super::*;
use crate::testing::{Caller, Counting, engine};

const PATH: &str = "/v1/responses";
const CONVERSATIONS: &str = "/v1/conversations";
const ASKED: &str = "call get_weather {\"city\":\"Cork\"}";

async fn recording() -> (Server, Arc<Recorder>) {
    let model = Arc::new(Recorder::default());
    (Server::with(model.clone(), SETTINGS).await, model)
}

fn input(text: impl Into<Value>) -> Value {
    json!({ "model": "any", "input": text.into() })
}

fn with(mut body: Value, name: &str, value: impl Into<Value>) -> Value {
    body[name] = value.into();
    body
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn text_of(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

impl Server {
    async fn respond(&self, body: &Value) -> Value {
        self.post(PATH, body, &[]).await.ok()
    }

    async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, None).await.ok()
    }

    /// What is kept of a person, in all their sessions.
    async fn kept(&self, person: &str) -> Vec<Vec<String>> {
        let export = self.get(&format!("/api/v1/person/{person}/export")).await;
        let texts = |session: &Value| {
            let messages = session["messages"].as_array().unwrap().iter();
            messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let mut kept: Vec<Vec<String>> = export["sessions"].as_array().unwrap().iter().map(texts).collect();
        kept.sort();
        kept
    }
}

fn history(model: &Recorder) -> Vec<String> {
    let prompts = model.prompts.lock().unwrap();
    prompts.last().unwrap().history.iter().map(|said| said.text.clone()).collect()
}

#[tokio::test]
async fn a_response_has_openais_form_and_can_be_had_again() {
    let (server, _) = recording().await;
    let document = server.get("/openapi.json").await;
    let body = with(with(input("one"), "user", "alice"), "metadata", json!({ "k": "v" }));
    let body = with(with(body, "max_output_tokens", 50), "text", json!({ "format": { "type": "text" } }));
    let reply = server.post(PATH, &with(body, "instructions", "be brief"), &[]).await;
    assert_eq!(reply.header("x-confidant-memory"), "kept");
    let mut response = reply.ok();
    conforms(&document, "Response", &response);
    let id = response["id"].as_str().unwrap().to_owned();
    let item = response["output"][0].clone();
    assert_eq!((item["type"].as_str(), item["role"].as_str()), (Some("message"), Some("assistant")));
    assert_eq!(text_of(&response), "answer 1: yes\nindeed");
    assert_eq!((&response["usage"]["total_tokens"], &response["status"]), (&json!(8), &json!("completed")));
    assert_eq!(
        (&response["instructions"], &response["confidant"]["memory"]),
        (&json!("be brief"), &json!("kept"))
    );
    let kept = server.get(&format!("{PATH}/{id}")).await;
    conforms(&document, "Response", &kept);
    for name in
        ["id", "object", "output", "metadata", "model", "status", "instructions", "usage", "user", "text"]
            .into_iter()
            .chain([
                "max_output_tokens",
                "tools",
                "tool_choice",
                "parallel_tool_calls",
                "previous_response_id",
            ])
    {
        assert_eq!(kept[name], response[name].take(), "{name}");
    }
    assert_eq!(kept["max_output_tokens"], 50);
    let items = server.get(&format!("{PATH}/{id}/input_items")).await;
    conforms(&document, "ItemList", &items);
    assert_eq!(items["data"][0]["content"], json!([{ "type": "input_text", "text": "one" }]));
    assert_eq!((&items["first_id"], &items["has_more"]), (&items["data"][0]["id"], &json!(false)));
    // What was attached is the person's, too.
    let export = server.get("/api/v1/person/alice/export").await;
    let labels = &export["sessions"][0]["labels"][0];
    assert_eq!(labels["values"], json!({ "k": "v" }));
    assert_eq!(labels["asked_for"]["instructions"], "be brief");
}

#[tokio::test]
async fn a_stream_has_openais_events_in_their_order() {
    let (server, _) = recording().await;
    let reply = server.post(PATH, &with(input("one"), "stream", true), &[]).await;
    let events: Vec<Value> =
        reply.events().iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names, expected);
    assert_eq!(reply.events().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), expected);
    assert!(events.iter().enumerate().all(|(at, event)| event["sequence_number"] == json!(at)));
    let whole = &events.last().unwrap()["response"];
    assert_eq!(text_of(whole), "answer 1: yes\nindeed");
    assert!(events[4]["item_id"] == whole["output"][0]["id"] && events[0]["response"]["id"] == whole["id"]);
    let kept = server.get(&format!("{PATH}/{}", whole["id"].as_str().unwrap())).await;
    assert_eq!(kept["output"], whole["output"]);
}

#[tokio::test]
async fn a_response_follows_another_and_one_that_is_not_the_newest_goes_on_in_a_copy() {
    let (server, model) = recording().await;
    let first = server.respond(&with(input("one"), "user", "alice")).await;
    let after =
        |response: &Value, text: &str| with(input(text), "previous_response_id", response["id"].clone());
    let second = server.respond(&after(&first, "two")).await;
    assert_eq!(history(&model), ["one", "answer 1: yes\nindeed"]);
    assert_eq!(second["previous_response_id"], first["id"]);
    assert_eq!(server.kept("alice").await.len(), 1, "one conversation is one session");
    for streaming in [false, true] {
        let reply = server.post(PATH, &with(after(&first, "other"), "stream", streaming), &[]).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(history(&model), ["one", "answer 1: yes\nindeed"], "what came after it is not told");
    }
    let third = server.respond(&after(&second, "three")).await;
    assert_eq!(history(&model), ["one", "answer 1: yes\nindeed", "two", "answer 2: yes\nindeed"]);
    assert_eq!(server.kept("alice").await.len(), 3);
    assert_ne!(third["id"], second["id"]);
    // Sent again under its name, nothing happens twice.
    let key = [("idempotency-key", "k1")];
    let once = server.post(PATH, &after(&first, "again"), &key).await.ok();
    let again = server.post(PATH, &after(&first, "again"), &key).await.ok();
    assert_eq!((&once["id"], &once["output"]), (&again["id"], &again["output"]));
    assert_eq!(server.kept("alice").await.len(), 4);
}

#[tokio::test]
async fn a_conversation_is_a_session_with_items() {
    let (server, model) = recording().await;
    let document = server.get("/openapi.json").await;
    let begun = json!({ "user": "alice", "metadata": { "topic": "x" }, "items": [user("before")] });
    let conversation = server.post(CONVERSATIONS, &begun, &[]).await.ok();
    conforms(&document, "Conversation", &conversation);
    let id = conversation["id"].as_str().unwrap();
    let path = format!("{CONVERSATIONS}/{id}");
    let response = server.respond(&with(input("one"), "conversation", id)).await;
    assert_eq!(response["conversation"], json!({ "id": id }));
    assert_eq!(history(&model)[0], "before");
    server.respond(&with(input("two"), "conversation", json!({ "id": id }))).await;
    assert_eq!(server.kept("alice").await.len(), 1);
    let items = server.get(&format!("{path}/items?order=asc")).await;
    conforms(&document, "ItemList", &items);
    let texts: Vec<&str> = items["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["content"][0]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["before", "one", "answer 1: yes\nindeed", "two", "answer 2: yes\nindeed"]);
    assert_eq!(items["data"][2], response["output"][0]);
    let page = server.get(&format!("{path}/items?limit=2")).await;
    assert_eq!((page["data"].as_array().unwrap().len(), &page["has_more"]), (2, &json!(true)));
    let last = page["last_id"].as_str().unwrap();
    let next = server.get(&format!("{path}/items?limit=100&after={last}")).await;
    assert_eq!((next["data"].as_array().unwrap().len(), &next["has_more"]), (3, &json!(false)));
    let item = server.get(&format!("{path}/items/{last}")).await;
    assert_eq!(item["id"], last);
    let labels = json!({ "metadata": { "topic": "y" } });
    assert_eq!(server.post(&path, &labels, &[]).await.ok()["metadata"], labels["metadata"]);
    let shown = server.get(&path).await;
    assert_eq!(
        (&shown["metadata"], &shown["created_at"]),
        (&labels["metadata"], &conversation["created_at"])
    );
    let gone = server.ask(Method::DELETE, &path, None).await.ok();
    assert_eq!((&gone["object"], &gone["deleted"]), (&json!("conversation.deleted"), &json!(true)));
    assert_eq!(server.ask(Method::GET, &path, None).await.status, 404);
    assert!(server.kept("alice").await.is_empty());
}

#[tokio::test]
async fn items_that_are_sent_again_are_not_remembered_twice() {
    let (server, model) = recording().await;
    // With the names of what was answered, and nothing else that says whose it is.
    let mut list = vec![user("one")];
    for text in ["two", "three", "four"] {
        let response = server.respond(&input(list.clone())).await;
        list.extend([response["output"][0].clone(), user(text)]);
    }
    assert_eq!(history(&model).len(), 4);
    assert_eq!(server.kept("(conversation)").await.len(), 1);
    assert_eq!(server.kept("(conversation)").await[0].len(), 6);
    // Without them, in a person's memory.
    let mut list = vec![user("one")];
    for text in ["two", "three", "four"] {
        let response = server.respond(&with(input(list.clone()), "user", "alice")).await;
        let said = json!({ "role": "assistant", "content": text_of(&response) });
        list.extend([said, user(text)]);
    }
    assert_eq!(server.kept("alice").await[0].len(), 6);
    // What is new is remembered once, and the answer is about all of it.
    let other = json!({ "role": "assistant", "content": "said elsewhere" });
    let mut list = vec![user("elsewhere"), other, user("now")];
    let response = server.respond(&with(input(list.clone()), "user", "bob")).await;
    list.extend([response["output"][0].clone(), user("then")]);
    server.respond(&with(input(list), "user", "bob")).await;
    assert_eq!(history(&model)[..3], ["elsewhere", "said elsewhere", "now"]);
    assert_eq!(server.kept("bob").await[0].len(), 6);
}

#[tokio::test]
async fn items_are_put_into_a_conversation_once_and_taken_out_with_their_turn() {
    let (server, _) = recording().await;
    let conversation = server.post(CONVERSATIONS, &json!({ "user": "alice" }), &[]).await.ok();
    let path = format!("{CONVERSATIONS}/{}/items", conversation["id"].as_str().unwrap());
    let said = json!({ "role": "assistant", "content": [{ "type": "output_text", "text": "yes" }] });
    let items = json!({ "items": [user("is it?"), said] });
    let put = server.post(&path, &items, &[]).await.ok();
    assert_eq!(put["data"].as_array().unwrap().len(), 2);
    let again = server.post(&path, &items, &[]).await.ok();
    assert_eq!(again["data"], json!([]));
    // A question that was put there first is answered where it stands.
    let asked = server.post(&path, &json!({ "items": [user("and now?")] }), &[]).await.ok();
    assert_eq!(asked["data"].as_array().unwrap().len(), 1);
    let listed = server.get(&format!("{path}?order=asc")).await["data"].as_array().unwrap().clone();
    let list: Vec<Value> = listed[..2].iter().cloned().chain([user("and now?")]).collect();
    server.respond(&input(list)).await;
    let listed = server.get(&format!("{path}?order=asc")).await["data"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 4);
    let answer = listed[3]["id"].as_str().unwrap();
    server.ask(Method::DELETE, &format!("{path}/{answer}"), None).await.ok();
    assert_eq!(server.kept("alice").await[0], ["is it?", "yes", "and now?"]);
    let question = listed[0]["id"].as_str().unwrap();
    server.ask(Method::DELETE, &format!("{path}/{question}"), None).await.ok();
    assert_eq!(server.kept("alice").await[0], ["and now?"]);
    let refused =
        server.post(&path, &json!({ "items": [{ "role": "system", "content": "canary" }] }), &[]).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]["param"]), (400, &json!("items")));
}

#[tokio::test]
async fn calls_are_handed_over_and_their_results_go_on_with_the_turn() {
    let engine = engine(Storage::memory(), Caller::new(), Counting::new(), Vec::new()).await;
    let server = Server::on(engine, SETTINGS).await;
    let document = server.get("/openapi.json").await;
    let tools = json!([{ "type": "function", "name": "get_weather", "parameters": { "type": "object", "properties": {} } }]);
    for streaming in [false, true] {
        let person = if streaming { "bob" } else { "alice" };
        let ask = async |body: Value| {
            let body = with(with(body, "tools", tools.clone()), "stream", streaming);
            let reply = server.post(PATH, &body, &[]).await;
            if !streaming {
                return reply.ok();
            }
            let last: Value = serde_json::from_str(&reply.events().last().unwrap().1).unwrap();
            assert_eq!(last["type"], "response.completed");
            last["response"].clone()
        };
        let first = ask(with(input(ASKED), "user", person)).await;
        conforms(&document, "Response", &first);
        let call = first["output"][1].clone();
        assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("get_weather")));
        let result = json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "rain" });
        let follows = with(input(vec![result.clone()]), "previous_response_id", first["id"].clone());
        let second = ask(follows.clone()).await;
        assert!(text_of(&second).starts_with("done: ") && text_of(&second).contains("rain"), "{second}");
        assert_ne!(first["id"], second["id"]);
        for response in [&first, &second] {
            let kept = server.get(&format!("{PATH}/{}", response["id"].as_str().unwrap())).await;
            assert_eq!(kept["output"], response["output"]);
        }
        let path = format!("{PATH}/{}/input_items", second["id"].as_str().unwrap());
        let given = server.get(&path).await;
        assert_eq!(
            (&given["data"][0]["call_id"], &given["data"][0]["output"]),
            (&call["call_id"], &json!("rain"))
        );
        // One turn, however often its pieces are sent.
        assert_eq!(ask(follows).await["output"], second["output"]);
        let whole = vec![user(ASKED), first["output"][0].clone(), call, result];
        assert_eq!(ask(with(input(whole), "user", person)).await["output"], second["output"]);
        assert_eq!(server.kept(person).await[0].len(), 4);
    }
}

#[tokio::test]
async fn nobody_reaches_what_is_somebody_elses() {
    let (server, model) = recording().await;
    let response = server.respond(&with(input("secret"), "user", "bob")).await;
    let conversation = server.post(CONVERSATIONS, &json!({ "user": "bob" }), &[]).await.ok();
    let (response, conversation) = (response["id"].as_str().unwrap(), conversation["id"].as_str().unwrap());
    let paths = [
        format!("{PATH}/{response}"),
        format!("{PATH}/{response}/input_items"),
        format!("{CONVERSATIONS}/{conversation}"),
        format!("{CONVERSATIONS}/{conversation}/items"),
    ];
    for token in [&server.alice, &server.elsewhere] {
        for path in &paths {
            let reply = server.ask_as(token, Method::GET, path, None).await;
            assert_eq!(reply.status, 404, "{path}: {reply:?}");
        }
        for path in [&paths[0], &paths[2]] {
            assert_eq!(server.ask_as(token, Method::DELETE, path, None).await.status, 404, "{path}");
        }
        for (name, id) in [("previous_response_id", response), ("conversation", conversation)] {
            let reply = server.ask_as(token, Method::POST, PATH, Some(with(input("x"), name, id))).await;
            assert_eq!((reply.status.as_u16(), &reply.json()["error"]["param"]), (404, &json!(name)));
        }
    }
    // Nor somebody else by the same token; and an agent runs turns, but cannot take anything back.
    let named = with(with(input("x"), "previous_response_id", response), "user", "carol");
    assert_eq!(server.post(PATH, &named, &[]).await.status, 404);
    assert_eq!(server.ask_as(&server.agent, Method::GET, &paths[0], None).await.status, 200);
    for path in [&paths[0], &paths[2]] {
        assert_eq!(server.ask_as(&server.agent, Method::DELETE, path, None).await.status, 403, "{path}");
    }
    // Items of somebody else lead nowhere: they are words that the client brought.
    let items = server.get(&paths[1]).await["data"].as_array().unwrap().clone();
    let list: Vec<Value> = items.into_iter().chain([user("mine")]).collect();
    let prompts = model.prompts.lock().unwrap().len();
    server.ask_as(&server.alice, Method::POST, PATH, Some(input(list))).await.ok();
    assert_eq!(model.prompts.lock().unwrap().len(), prompts + 1);
    assert_eq!(server.kept("bob").await.concat(), ["secret", "answer 1: yes\nindeed"]);
    server.ask(Method::DELETE, "/api/v1/person/bob", None).await.ok();
    for path in &paths {
        assert_eq!(server.ask(Method::GET, path, None).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn what_is_not_stored_leaves_nothing() {
    let (server, model) = recording().await;
    let first = server.respond(&with(input("one"), "user", "alice")).await;
    let before = server.kept("alice").await;
    let body = with(with(input("unheard"), "previous_response_id", first["id"].clone()), "store", false);
    let response = server.respond(&body).await;
    assert_eq!(history(&model), ["one", "answer 1: yes\nindeed"]);
    assert_eq!(response["confidant"]["memory"], "off");
    let alone = server.respond(&with(with(input("unheard"), "user", "alice"), "store", false)).await;
    assert!(history(&model).is_empty());
    for response in [response, alone] {
        let path = format!("{PATH}/{}", response["id"].as_str().unwrap());
        assert_eq!(server.ask(Method::GET, &path, None).await.status, 404);
    }
    let off = [("x-confidant-memory", "off")];
    server.post(PATH, &with(input("unheard"), "user", "alice"), &off).await.ok();
    assert_eq!(server.post(CONVERSATIONS, &json!({}), &off).await.status, 400);
    assert_eq!(server.kept("alice").await, before);
    assert!(server.kept("(conversation)").await.is_empty());
}

#[tokio::test]
async fn a_response_is_deleted_with_its_turn() {
    let (server, model) = recording().await;
    let first = server.respond(&with(input("one"), "user", "alice")).await;
    let second = server.respond(&with(input("two"), "user", "alice")).await;
    let path = format!("{PATH}/{}", first["id"].as_str().unwrap());
    // What has ended stays as it is.
    assert_eq!(server.post(&format!("{path}/cancel"), &json!({}), &[]).await.ok()["status"], "completed");
    let gone = server.ask(Method::DELETE, &path, None).await.ok();
    assert_eq!((&gone["object"], &gone["deleted"]), (&json!("response"), &json!(true)));
    assert_eq!(server.ask(Method::GET, &path, None).await.status, 404);
    let after_gone = with(input("x"), "previous_response_id", first["id"].clone());
    assert_eq!(server.post(PATH, &after_gone, &[]).await.status, 404);
    let next = with(input("three"), "previous_response_id", second["id"].clone());
    server.respond(&next).await;
    assert_eq!(history(&model), ["two", "answer 2: yes\nindeed"]);
}

#[tokio::test]
async fn a_response_is_cancelled_while_it_runs() {
    let model = Caller::shut();
    let engine = engine(Storage::memory(), model.clone(), Counting::new(), Vec::new()).await;
    let server = Server::on(engine, SETTINGS).await;
    let conversation = server.post(CONVERSATIONS, &json!({ "user": "alice" }), &[]).await.ok();
    let id = conversation["id"].as_str().unwrap();
    let body = with(input("one"), "conversation", id);
    let cancelling = async {
        model.until_asked(1).await;
        let items = server.get(&format!("{CONVERSATIONS}/{id}/items")).await;
        let question = items["data"][0]["id"].as_str().unwrap();
        // The first response of that turn.
        let path = format!("{PATH}/resp_{}000", &question["msg_".len().."msg_".len() + 56]);
        assert_eq!(server.get(&path).await["status"], "in_progress");
        let cancelled = server.post(&format!("{path}/cancel"), &json!({}), &[]).await.ok();
        (path, cancelled)
    };
    let (reply, (path, cancelled)) = tokio::join!(server.post(PATH, &body, &[]), cancelling);
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (409, &json!("cancelled")));
    assert_eq!(server.get(&path).await["status"], "cancelled");
}

#[tokio::test]
async fn what_cannot_be_honoured_is_named() {
    let server = Server::builtin().await;
    let cases = [
        ("model", json!(" "), "model"),
        ("background", json!(true), "background"),
        ("include", json!(["message.output_text.logprobs"]), "include"),
        ("prompt", json!({ "id": "canary-7f3a" }), "prompt"),
        ("top_logprobs", json!(2), "top_logprobs"),
        ("temperature", json!(3), "temperature"),
        ("top_p", json!(-1), "top_p"),
        ("max_output_tokens", json!(0), "max_output_tokens"),
        ("text", json!({ "format": { "type": "canary-7f3a" } }), "text.format"),
        ("text", json!({ "format": { "type": "json_object" } }), "text.format"),
        ("text", json!({ "format": { "type": "json_schema", "name": "a b", "schema": {} } }), "text.format"),
        ("tools", json!([{ "type": "web_search" }]), "tools"),
        ("tools", json!([{ "type": "function", "name": "get" }]), "tools"),
        ("tool_choice", json!("required"), "tool_choice"),
        ("metadata", json!({ "canary-7f3a": 1 }), "metadata"),
        ("metadata", json!({ "k": "x".repeat(513) }), "metadata"),
        ("previous_response_id", json!("resp_canary-7f3a"), "previous_response_id"),
        ("conversation", json!("conv_canary-7f3a"), "conversation"),
        ("user", json!(""), "user"),
        ("input", json!([]), "input"),
        ("input", json!([{ "role": "assistant", "content": "canary-7f3a" }]), "input"),
        ("input", json!([{ "type": "image_generation_call", "id": "canary-7f3a" }]), "input"),
    ];
    for streaming in [false, true] {
        for (name, value, param) in &cases {
            let body = with(with(input("canary-7f3a"), "stream", streaming), name, value.clone());
            let reply = server.post(PATH, &body, &[]).await;
            let error = &reply.json()["error"];
            let status = if reply.status == 404 { 404 } else { 400 };
            assert_eq!(
                (reply.status.as_u16(), &error["type"], &error["param"]),
                (status, &json!("invalid_request_error"), &json!(param)),
                "{name}: {reply:?}"
            );
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("; hint: ") && !reply.text.contains("canary"), "{reply:?}");
        }
    }
    let both = with(with(input("x"), "conversation", "conv_1"), "previous_response_id", "resp_1");
    assert_eq!(server.post(PATH, &both, &[]).await.json()["error"]["param"], "previous_response_id");
    let failing = Server::with(Arc::new(Mute(Some(ModelError::RateLimited))), SETTINGS).await;
    for streaming in [false, true] {
        let reply = failing.post(PATH, &with(input("x"), "stream", streaming), &[]).await;
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (502, &json!("model_failed")));
    }
    for query in ["limit=0", "order=canary", "after=canary"] {
        let begun = server.post(CONVERSATIONS, &json!({}), &[]).await.ok();
        let path = format!("{CONVERSATIONS}/{}/items?{query}", begun["id"].as_str().unwrap());
        let reply = server.ask(Method::GET, &path, None).await;
        let name = query.split('=').next().unwrap();
        assert_eq!((reply.status.as_u16(), &reply.json()["error"]["param"]), (400, &json!(name)));
        assert!(!reply.text.contains("canary"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_fails_late_ends_as_failed() {
    let server = Server::with(Arc::new(Mute(None)), SETTINGS).await;
    let reply = server.post(PATH, &with(input("x"), "stream", true), &[]).await;
    let (name, data) = reply.events().pop().unwrap();
    let last: Value = serde_json::from_str(&data).unwrap();
    assert_eq!((name.as_str(), &last["response"]["status"]), ("response.failed", &json!("failed")));
    assert_eq!(last["response"]["error"]["code"], "server_error");
}
