//! OpenAI's clients feel at home.

use confidant_engine::model::{Embedded, Embedding, EmbeddingInput};

use super::*;

const PATH: &str = "/v1/chat/completions";

fn user(text: &str) -> Value {
    json!({ "model": "gpt-whatever", "messages": [{ "role": "user", "content": text }] })
}

fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

fn chunks(reply: &Reply) -> Vec<Value> {
    let mut events = reply.events();
    assert_eq!(events.pop().unwrap().1, "[DONE]");
    events.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn a_whole_answer_has_openais_form() {
    let server = Server::with(Arc::new(Recorder::default()), SETTINGS).await;
    let reply =
        server.post(PATH, &with(user("one"), "user", json!("alice")), &[("idempotency-key", "r1")]).await;
    assert_eq!(reply.header("x-confidant-memory"), "kept");
    let mut body = reply.ok();
    assert!(body["created"].as_i64().unwrap() > 1_700_000_000);
    body["created"] = json!(0);
    let preparation = body["confidant"].as_object_mut().unwrap().remove("preparation").unwrap();
    assert_eq!((&preparation["by"], &preparation["title"]), (&json!("rules"), &json!("One")));
    let expected = json!({
        "id": "chatcmpl-r1",
        "object": "chat.completion",
        "created": 0,
        "model": "recorder",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": "answer 1: yes\nindeed", "refusal": null },
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8 },
        "confidant": {
            "memory": "kept", "audience": "private", "model": "recorder", "recalled": 0, "room_lines": 0,
            "usage": { "prompt_tokens": 5, "completion_tokens": 3 },
        },
    });
    assert_eq!(body, expected);
    // A retry with the same key is the same answer.
    let again = server
        .post(PATH, &with(user("one"), "user", json!("alice")), &[("idempotency-key", "r1")])
        .await
        .ok();
    assert_eq!((&again["id"], &again["choices"]), (&expected["id"], &expected["choices"]));
    assert_eq!((&again["confidant"]["replayed"], &again["usage"]["total_tokens"]), (&json!(true), &json!(0)));
}

#[tokio::test]
async fn a_stream_has_openais_chunks() {
    let server = Server::with(Arc::new(Recorder::default()), SETTINGS).await;
    let body = with(with(user("one"), "user", json!("alice")), "stream", json!(true));
    let reply =
        server.post(PATH, &with(body.clone(), "stream_options", json!({ "include_usage": true })), &[]).await;
    let got = chunks(&reply);
    let choices: Vec<&Value> = got.iter().map(|chunk| &chunk["choices"]).collect();
    let choice = |delta: Value, reason: Value| json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason }]);
    let expected = [
        choice(json!({ "role": "assistant", "content": "", "refusal": null }), Value::Null),
        choice(json!({ "content": "answer 1: " }), Value::Null),
        choice(json!({ "content": "yes\nindeed" }), Value::Null),
        choice(json!({}), json!("stop")),
        json!([]),
    ];
    assert_eq!(choices, expected.iter().collect::<Vec<_>>());
    assert!(
        got.iter().all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["id"] == got[0]["id"])
    );
    assert!(got[..4].iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)));
    assert_eq!(got[4]["usage"]["total_tokens"], 8);
    assert_eq!(got[3]["confidant"]["memory"], "kept");

    let reply = server.post(PATH, &body, &[("idempotency-key", "r2")]).await;
    assert!(chunks(&reply).iter().all(|chunk| chunk.get("usage").is_none()));
    // A recorded answer is streamed in one piece.
    let again = chunks(&server.post(PATH, &body, &[("idempotency-key", "r2")]).await);
    assert_eq!(again[1]["choices"][0]["delta"]["content"], "answer 2: yes\nindeed");
    assert_eq!(again.len(), 3);
}

#[tokio::test]
async fn what_the_client_brings_reaches_the_model_and_is_not_kept() {
    let model = Arc::new(Recorder::default());
    let server = Server::with(model.clone(), SETTINGS).await;
    let mut body = json!({
        "model": "x", "user": "alice", "temperature": 0.5, "top_p": 1, "max_tokens": 9, "max_completion_tokens": 7,
        "seed": 1, "metadata": {}, "store": true, "service_tier": "auto", "parallel_tool_calls": true, "n": 1,
        "tools": [], "tool_choice": "none", "response_format": { "type": "text" }, "logprobs": false, "stop": null,
        "presence_penalty": 0, "logit_bias": {}, "modalities": ["text"],
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "earlier question", "name": "alice" },
            { "role": "developer", "content": [{ "type": "text", "text": "be kind" }] },
            { "role": "assistant", "content": "earlier answer", "tool_calls": [] },
            { "role": "user", "content": [{ "type": "text", "text": "now" }, { "type": "text", "text": "this" }] },
        ],
    });
    server.post(PATH, &body, &[]).await.ok();
    body["messages"] = json!([{ "role": "user", "content": "and then?" }]);
    server.post(PATH, &body, &[]).await.ok();
    let prompts = model.prompts.lock().unwrap();
    assert_eq!(prompts[0].query, "now\nthis");
    assert!(prompts[0].system.contains("be brief") && prompts[0].system.contains("be kind"));
    let texts = |prompt: &Prompt| prompt.history.iter().map(|m| m.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&prompts[0]), ["earlier question", "earlier answer"]);
    assert_eq!(texts(&prompts[1]), ["now\nthis", "answer 1: yes\nindeed"]);
    let sampling = &prompts[0].sampling;
    assert_eq!((sampling.temperature, sampling.top_p, sampling.max_tokens), (Some(0.5), Some(1.0), Some(7)));
}

#[tokio::test]
async fn how_to_answer_reaches_the_model() {
    let model = Arc::new(Recorder::default());
    let server = Server::with(model.clone(), SETTINGS).await;
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let format = json!({ "name": "city", "schema": schema, "strict": true });
    let mut body = user("where?");
    for (name, value) in [
        ("user", json!("alice")),
        ("stop", json!(["END", "\n\n"])),
        ("seed", json!(-7)),
        ("presence_penalty", json!(0.5)),
        ("frequency_penalty", json!(-2)),
        ("response_format", json!({ "type": "json_schema", "json_schema": format })),
    ] {
        body = with(body, name, value);
    }
    server.post(PATH, &body, &[]).await.ok();
    let object = with(user("x"), "response_format", json!({ "type": "json_object" }));
    server.post(PATH, &with(object, "stop", json!("END")), &[]).await.ok();
    server.post(PATH, &with(user("x"), "response_format", json!({ "type": "text" })), &[]).await.ok();
    let prompts = model.prompts.lock().unwrap();
    let asked: Vec<Value> = prompts.iter().map(|prompt| json!(prompt.sampling)).collect();
    let nothing = json!({ "temperature": null, "top_p": null, "max_tokens": null });
    let first = json!({
        "temperature": null, "top_p": null, "max_tokens": null, "stop": ["END", "\n\n"], "seed": -7,
        "presence_penalty": 0.5, "frequency_penalty": -2.0, "format": { "schema": format },
    });
    let second = with(with(nothing.clone(), "stop", json!(["END"])), "format", json!("json"));
    assert_eq!(asked, [first, second, nothing]);
}

#[tokio::test]
async fn without_memory_nothing_is_recalled_and_nothing_is_kept() {
    let model = Arc::new(Recorder::default());
    let server = Server::with(model.clone(), SETTINGS).await;
    let session = "app:place:main:alice";
    let alice = |text: &str| with(user(text), "user", json!("alice"));
    let named = [("x-confidant-session", session)];
    server.post(PATH, &alice("secret one"), &[]).await.ok();
    server.post(PATH, &user("secret two"), &named).await.ok();
    let exported = async || {
        let of_session =
            server.ask(Method::GET, &format!("/api/v1/session/{session}/export"), None).await.ok();
        let of_person = server.ask(Method::GET, "/api/v1/person/alice/export", None).await.ok();
        let of_person = of_person["sessions"].as_array().unwrap();
        let messages = of_person.iter().map(|session| session["messages"].clone());
        (of_session["messages"].clone(), messages.collect::<Vec<_>>())
    };
    let audited = async || {
        let records = server.ask(Method::GET, "/api/v1/audit?newest=true&limit=1000", None).await.ok();
        let turns = records["records"].as_array().unwrap().iter();
        turns.filter(|record| record["action"].as_str().unwrap().starts_with("turn.")).count()
    };
    let (before, turns_before) = (exported().await, audited().await);
    assert_eq!((before.0.as_array().unwrap().len(), before.1.len()), (2, 2));
    let off = [("x-confidant-memory", "off")];
    let both = [named[0], ("x-confidant-memory", "OFF")];
    for (body, headers) in [(alice("unheard"), &off[..]), (user("unheard"), &both[..])] {
        for streaming in [false, true] {
            let reply = server.post(PATH, &with(body.clone(), "stream", json!(streaming)), headers).await;
            if streaming {
                assert_eq!(chunks(&reply).last().unwrap()["confidant"]["memory"], "off");
            } else {
                assert_eq!(
                    (reply.header("x-confidant-memory"), &reply.ok()["confidant"]["memory"]),
                    ("off", &json!("off"))
                );
            }
        }
    }
    // A person's own token names them, too.
    let request = Request::post(PATH)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, format!("Bearer {}", server.alice))
        .header("x-confidant-memory", "off");
    assert_eq!(
        server.send(request.body(Body::from(user("unheard").to_string()))).await.header("x-confidant-memory"),
        "off"
    );
    assert_eq!((exported().await, audited().await), (before, turns_before));
    {
        let prompts = model.prompts.lock().unwrap();
        let whole: Vec<String> =
            prompts[2..].iter().map(|prompt| format!("{}{}", prompt.system, prompt.query)).collect();
        assert_eq!(whole.len(), 5);
        assert!(whole.iter().all(|text| !text.contains("secret")));
        assert!(prompts[2..].iter().all(|prompt| prompt.history.is_empty() && prompt.blocks.is_empty()));
    }
    // What was said meanwhile is in nobody's memory.
    server.post(PATH, &alice("and now?"), &[("x-confidant-memory", "on")]).await.ok();
    let history: Vec<String> = {
        let prompts = model.prompts.lock().unwrap();
        prompts.last().unwrap().history.iter().map(|said| said.text.clone()).collect()
    };
    assert_eq!(history, ["secret one", "answer 1: yes\nindeed"]);
    let reply = server.post(PATH, &alice("x"), &[("x-confidant-memory", "canary-7f3a")]).await;
    let error = &reply.json()["error"];
    assert_eq!((reply.status.as_u16(), &error["param"]), (400, &json!("X-Confidant-Memory")));
    assert!(!reply.text.contains("canary"), "{reply:?}");
}

#[tokio::test]
async fn several_answers_are_given_and_the_first_is_remembered() {
    let model = Arc::new(Recorder::default());
    let server = Server::with(model.clone(), SETTINGS).await;
    let three = |text: &str| with(with(user(text), "user", json!("alice")), "n", json!(3));
    let body =
        server.post(PATH, &with(three("one"), "seed", json!(7)), &[("idempotency-key", "r1")]).await.ok();
    let choices = body["choices"].as_array().unwrap();
    let texts: Vec<&str> =
        choices.iter().map(|choice| choice["message"]["content"].as_str().unwrap()).collect();
    assert_eq!(texts, ["answer 1: yes\nindeed", "answer 2: yes\nindeed", "answer 3: yes\nindeed"]);
    assert!((0..).zip(choices).all(|(index, choice)| choice["index"] == json!(index)));
    assert_eq!(body["usage"], json!({ "prompt_tokens": 15, "completion_tokens": 9, "total_tokens": 24 }));
    let seeds: Vec<Option<i64>> =
        model.prompts.lock().unwrap().iter().map(|prompt| prompt.sampling.seed).collect();
    assert_eq!(seeds, [Some(7), Some(8), Some(9)]);
    let export = server.ask(Method::GET, "/api/v1/session/openai_conv:alice/export", None).await.ok();
    assert_eq!(export["messages"].as_array().unwrap().len(), 2);
    assert_eq!(export["messages"][1]["content"], texts[0]);
    // The log has one of them.
    let again = server.post(PATH, &three("one"), &[("idempotency-key", "r1")]).await.ok();
    assert_eq!(again["choices"].as_array().unwrap().len(), 1);
    let reply = server.post(PATH, &with(three("two"), "stream", json!(true)), &[]).await;
    let mut said = [String::new(), String::new(), String::new()];
    let mut ended = Vec::new();
    for chunk in chunks(&reply) {
        let choice = &chunk["choices"][0];
        let index = usize::try_from(choice["index"].as_u64().unwrap()).unwrap();
        said[index].push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        ended.extend(choice["finish_reason"].as_str().map(|_| index));
    }
    assert_eq!(said, [4, 5, 6].map(|n| format!("answer {n}: yes\nindeed")));
    assert_eq!(ended, [1, 2, 0]);
    let export = server.ask(Method::GET, "/api/v1/session/openai_conv:alice/export", None).await.ok();
    assert_eq!(export["messages"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn images_go_to_the_model_once_and_are_not_kept() {
    let model = Arc::new(Recorder::default());
    let server = Server::with(model.clone(), SETTINGS).await;
    let message = |url: &str, text: &str| {
        let image = json!({ "type": "image_url", "image_url": { "url": url } });
        json!([{ "role": "user", "content": [image, { "type": "text", "text": text }] }])
    };
    let ask = |messages: Value| with(with(user("x"), "messages", messages), "user", json!("alice"));
    server.post(PATH, &ask(message("data:image/png;base64,aGVsbG8=", "what is it?")), &[]).await.ok();
    server.post(PATH, &with(user("and now?"), "user", json!("alice")), &[]).await.ok();
    let line = "[image: image/png, 5 bytes]\nwhat is it?";
    {
        let prompts = model.prompts.lock().unwrap();
        let seen: Vec<usize> = prompts.iter().map(|prompt| prompt.attachments.len()).collect();
        assert_eq!(seen, [1, 0]);
        assert_eq!((prompts[0].query.as_str(), prompts[1].history[0].text.as_str()), (line, line));
    }
    let export = server.ask(Method::GET, "/api/v1/session/openai_conv:alice/export", None).await.ok();
    assert_eq!(export["messages"][0]["content"], line);
    assert!(!export.to_string().contains("aGVsbG8"));
    for url in
        ["https://canary.example/a.png", "data:application/pdf;base64,aGVsbG8=", "data:image/png,canary"]
    {
        let reply = server.post(PATH, &ask(message(url, "x")), &[]).await;
        assert_eq!(
            (reply.status.as_u16(), &reply.json()["error"]["param"]),
            (400, &json!("messages")),
            "{url}"
        );
        assert!(!reply.text.contains("canary"), "{reply:?}");
    }
}

#[tokio::test]
async fn the_header_goes_before_the_user() {
    let server = Server::builtin().await;
    let hello = with(user("Hello, I'm Alice"), "user", json!("frank"));
    let session = [("x-confidant-session", "!abc:matrix.org:main:@erin:matrix.org")];
    server.post(PATH, &hello, &session).await.ok();
    let name = async |body: Value, headers: &[(&str, &str)]| {
        let reply = server.post(PATH, &body, headers).await.ok();
        reply["choices"][0]["message"]["content"].as_str().unwrap().contains("Alice")
    };
    assert!(name(user("What is my name?"), &session).await);
    assert!(!name(with(user("What is my name?"), "user", json!("frank")), &[]).await);
    assert!(!name(user("What is my name?"), &[]).await);
    let export = server.ask(Method::GET, "/api/v1/session/openai_conv:frank/export", None).await.ok();
    assert_eq!(export["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_cannot_be_honoured_is_named() {
    let server = Server::builtin().await;
    let message = |role: &str, content: Value| json!([{ "role": role, "content": content }]);
    let schema = |name: &str, schema: Value| json!({ "type": "json_schema", "json_schema": { "name": name, "schema": schema } });
    let image = json!([{ "type": "image_url", "image_url": { "url": "canary-7f3a" } }]);
    let cases = [
        ("n", json!(2), "n"),
        ("n", json!(0), "n"),
        ("n", json!(9), "n"),
        ("n", json!("canary-7f3a"), "n"),
        ("tools", json!([{ "type": "function" }]), "tools"),
        ("tool_choice", json!("required"), "tool_choice"),
        ("functions", json!([{}]), "functions"),
        ("response_format", json!({ "type": "json_schema" }), "response_format"),
        ("logprobs", json!(true), "logprobs"),
        ("stop", json!(["canary-7f3a"]), "stop"),
        ("frequency_penalty", json!(0.5), "frequency_penalty"),
        ("audio", json!({}), "audio"),
        ("frequency_penalty", json!(2.5), "frequency_penalty"),
        ("presence_penalty", json!("canary-7f3a"), "presence_penalty"),
        ("stop", json!(["1", "2", "3", "4", "5"]), "stop"),
        ("stop", json!(""), "stop"),
        ("stop", json!({ "canary-7f3a": 1 }), "stop"),
        ("seed", json!("canary-7f3a"), "seed"),
        ("response_format", json!({ "type": "json_object" }), "response_format"),
        ("response_format", json!({ "type": "canary-7f3a" }), "response_format"),
        ("response_format", schema("a name", json!({})), "response_format"),
        ("response_format", schema("canary-7f3a", json!([])), "response_format"),
        ("temperature", json!(3), "temperature"),
        ("top_p", json!(-1), "top_p"),
        ("max_tokens", json!(0), "max_tokens"),
        ("max_tokens", json!("canary-7f3a"), "max_tokens"),
        ("model", json!(""), "model"),
        ("user", json!(""), "user"),
        ("messages", json!([]), "messages"),
        ("messages", message("wizard", json!("canary-7f3a")), "messages"),
        ("messages", message("tool", json!("canary-7f3a")), "messages"),
        ("messages", message("assistant", json!("canary-7f3a")), "messages"),
        ("messages", message("user", Value::Null), "messages"),
        ("messages", message("user", image), "messages"),
    ];
    for streaming in [false, true] {
        for (name, value, param) in &cases {
            let body = with(with(user("canary-7f3a"), "stream", json!(streaming)), name, value.clone());
            let reply = server.post(PATH, &body, &[]).await;
            let error = &reply.json()["error"];
            assert_eq!(
                (reply.status.as_u16(), &error["type"]),
                (400, &json!("invalid_request_error")),
                "{name}: {reply:?}"
            );
            assert_eq!(error["param"], *param, "{reply:?}");
            assert!(
                error["message"].as_str().unwrap().contains("; hint: ") && !reply.text.contains("canary"),
                "{reply:?}"
            );
        }
    }
    let image = json!([{ "role": "user", "content": [{ "type": "image_url" }] }]);
    let reply = server.post(PATH, &with(user("x"), "messages", image), &[]).await;
    assert!(reply.text.contains("`messages[0].content[0]` is not a part"), "{reply:?}");
    let reply = server.post(PATH, &user("x"), &[("x-confidant-session", "!:::")]).await;
    let error = &reply.json()["error"];
    assert_eq!((reply.status.as_u16(), &error["param"]), (400, &json!("X-Confidant-Session")));
    assert!(error["message"].as_str().unwrap().contains("session"));
}

#[tokio::test]
async fn errors_have_openais_form() {
    let server = Server::with(Arc::new(Mute(Some(ModelError::RateLimited))), SETTINGS).await;
    for streaming in [false, true] {
        let reply = server.post(PATH, &with(user("x"), "stream", json!(streaming)), &[]).await;
        let error = &reply.json()["error"];
        assert_eq!(
            (reply.status.as_u16(), &error["type"], &error["code"]),
            (502, &json!("server_error"), &json!("model_failed"))
        );
        assert_eq!(error["param"], Value::Null);
    }
    for (path, status) in [("/v1/nothing", 404), ("/v1/models/none", 404), (PATH, 405)] {
        let reply = server.ask(Method::GET, path, None).await;
        let error = &reply.json()["error"];
        assert_eq!(
            (reply.status.as_u16(), &error["type"]),
            (status, &json!("invalid_request_error")),
            "{reply:?}"
        );
    }
    let reply = server.ask_as("cft_wrong", Method::GET, "/v1/models", None).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (401, &json!("unauthenticated")));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_fails_late_says_so_among_its_chunks() {
    let server = Server::with(Arc::new(Mute(None)), SETTINGS).await;
    let reply = server.post(PATH, &with(user("x"), "stream", json!(true)), &[]).await;
    let events = reply.events();
    let (first, last): (Value, Value) =
        (serde_json::from_str(&events[0].1).unwrap(), serde_json::from_str(&events[1].1).unwrap());
    assert_eq!(first["choices"][0]["delta"]["role"], "assistant");
    assert_eq!((&last["error"]["code"], events.len()), (&json!("model_failed"), 2));
}

#[tokio::test]
async fn models_are_listed_and_found() {
    let server = Server::with(Arc::new(Recorder::default()), SETTINGS).await;
    let list = server.ask(Method::GET, "/v1/models", None).await.ok();
    assert_eq!((&list["object"], &list["data"][0]["id"]), (&json!("list"), &json!("recorder")));
    assert_eq!(server.ask(Method::GET, "/v1/models/recorder", None).await.ok(), list["data"][0]);
}

/// A model that also makes embeddings: of two numbers, or as many as are asked for.
#[derive(Debug, Default)]
struct Vectors {
    asked: Mutex<Vec<Embedding>>,
    fails: Option<ModelError>,
}

#[async_trait]
impl Model for Vectors {
    fn name(&self) -> &str {
        "recorder"
    }

    async fn respond(&self, _: &Prompt, _: Deltas<'_>) -> Result<Answer, ModelError> {
        Err(ModelError::Unreachable)
    }

    fn embedding_model(&self) -> Option<&str> {
        Some("vectors")
    }

    async fn embed(&self, embedding: &Embedding) -> Result<Embedded, ModelError> {
        self.asked.lock().unwrap().push(embedding.clone());
        let length = usize::try_from(embedding.dimensions.unwrap_or(2)).unwrap();
        let first = [0.5, -1.0, 3.25];
        let vectors = (0..embedding.input.count()).map(|_| first[..length].to_vec()).collect();
        self.fails.map_or(Ok(Embedded { vectors, tokens: Some(3) }), Err)
    }

    async fn check(&self) -> Result<(), ModelError> {
        Ok(())
    }
}

const EMBEDDINGS: &str = "/v1/embeddings";

#[tokio::test]
async fn embeddings_are_passed_on() {
    let model = Arc::new(Vectors::default());
    let server = Server::with(model.clone(), SETTINGS).await;
    let asked = |input: Value| json!({ "model": "any", "input": input, "user": "alice" });
    let reply = server.post(EMBEDDINGS, &asked(json!(["one", "two"])), &[]).await.ok();
    let item = |index: usize| json!({ "object": "embedding", "index": index, "embedding": [0.5, -1.0] });
    let expected = json!({
        "object": "list", "data": [item(0), item(1)], "model": "vectors",
        "usage": { "prompt_tokens": 3, "total_tokens": 3 },
    });
    assert_eq!(reply, expected);
    let packed = with(with(asked(json!("one")), "encoding_format", json!("base64")), "dimensions", json!(1));
    let reply = server.post(EMBEDDINGS, &packed, &[]).await.ok();
    assert_eq!(reply["data"][0]["embedding"], "AAAAPw==");
    server.post(EMBEDDINGS, &asked(json!([1, 2])), &[]).await.ok();
    server.post(EMBEDDINGS, &asked(json!([[1, 2], [3]])), &[]).await.ok();
    let inputs: Vec<EmbeddingInput> = model.asked.lock().unwrap().iter().map(|it| it.input.clone()).collect();
    let texts = |texts: &[&str]| EmbeddingInput::Texts(texts.iter().map(|text| (*text).to_owned()).collect());
    let tokens = |tokens: &[&[u32]]| EmbeddingInput::Tokens(tokens.iter().map(|one| one.to_vec()).collect());
    assert!(
        inputs == [texts(&["one", "two"]), texts(&["one"]), tokens(&[&[1, 2]]), tokens(&[&[1, 2], &[3]])]
    );
    // Both models are listed, and both are found.
    let list = server.ask(Method::GET, "/v1/models", None).await.ok();
    let ids: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["recorder", "vectors"]);
    assert_eq!(server.ask(Method::GET, "/v1/models/vectors", None).await.ok(), list["data"][1]);
}

#[tokio::test]
async fn embeddings_that_cannot_be_had_say_why() {
    let server = Server::with(Arc::new(Vectors::default()), SETTINGS).await;
    let asked = json!({ "model": "any", "input": "canary-7f3a" });
    let cases = [
        ("model", json!(" "), "model"),
        ("input", json!(""), "input"),
        ("input", json!([]), "input"),
        ("input", json!(["canary-7f3a", ""]), "input"),
        ("input", json!([[1], []]), "input"),
        ("input", json!([-1]), "input"),
        ("input", json!({ "canary-7f3a": 1 }), "input"),
        ("input", json!(vec!["x"; 2049]), "input"),
        ("encoding_format", json!("canary-7f3a"), "encoding_format"),
        ("dimensions", json!(0), "dimensions"),
    ];
    for (name, value, param) in cases {
        let reply = server.post(EMBEDDINGS, &with(asked.clone(), name, value), &[]).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status.as_u16(), &error["param"]), (400, &json!(param)), "{name}: {reply:?}");
        assert_eq!(error["type"], "invalid_request_error");
        assert!(error["message"].as_str().unwrap().contains("; hint: ") && !reply.text.contains("canary"));
    }
    let reply = server.ask_as("cft_wrong", Method::POST, EMBEDDINGS, Some(asked.clone())).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (401, &json!("unauthenticated")));
    let none = Server::builtin().await.post(EMBEDDINGS, &asked, &[]).await;
    let error = &none.json()["error"];
    assert_eq!((none.status.as_u16(), &error["code"]), (404, &json!("no_embedding_model")));
    assert!(error["message"].as_str().unwrap().contains("model.embedding_model"));
    let model = Vectors { fails: Some(ModelError::RateLimited), ..Vectors::default() };
    let reply = Server::with(Arc::new(model), SETTINGS).await.post(EMBEDDINGS, &asked, &[]).await;
    let error = &reply.json()["error"];
    assert_eq!((reply.status.as_u16(), &error["type"]), (502, &json!("server_error")));
    assert_eq!(error["code"], "model_failed");
}

#[tokio::test]
async fn embeddings_count_against_a_tokens_limit() {
    let settings = HttpSettings { requests_per_minute: 2, ..SETTINGS };
    let server = Server::with(Arc::new(Vectors::default()), settings).await;
    let asked = json!({ "model": "any", "input": "x" });
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(server.post(EMBEDDINGS, &asked, &[]).await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}
