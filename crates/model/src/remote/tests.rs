//! The adapter against a fake server that speaks each provider's wire format over a real socket.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use confidant_redact::Fence;

use super::*;
use crate::{
    AnswerSchema, AttachmentSource, Block, BlockLine, EmbeddingInput, PromptMessage, Role, Step, ToolSpec,
    Voice,
};

/// What the fake server does with a request.
#[derive(Clone)]
enum Reply {
    /// Answers with a status and a body, then closes.
    Whole(u16, String),
    /// Answers with status 200 and these pieces, pausing before each, then closes.
    Pieces(Vec<String>, Duration),
    /// Reads the request and says nothing.
    Silence,
    /// Answers with the head and the first piece, then says nothing more.
    Stall(String),
}

/// One recorded request: its head and its JSON body.
#[derive(Clone, Debug)]
struct Seen {
    head: String,
    body: Value,
}

struct Fake {
    address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Fake {
    async fn start(reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, reply.clone(), Arc::clone(&record)));
            }
        });
        Self { address, seen }
    }

    fn last(&self) -> Seen {
        self.seen.lock().unwrap().last().unwrap().clone()
    }
}

async fn serve(mut socket: TcpStream, reply: Reply, record: Arc<Mutex<Vec<Seen>>>) {
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 4096];
    let (head, body) = loop {
        let count = socket.read(&mut chunk).await.unwrap_or(0);
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break (head.to_owned(), body.to_owned());
            }
        }
        if count == 0 {
            return;
        }
    };
    record.lock().unwrap().push(Seen { head, body: serde_json::from_str(&body).unwrap_or(Value::Null) });
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    match reply {
        Reply::Whole(status, body) => {
            let text = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = socket.write_all(text.as_bytes()).await;
        }
        Reply::Pieces(pieces, pause) => {
            let _ = socket.write_all(head.as_bytes()).await;
            for piece in pieces {
                tokio::time::sleep(pause).await;
                let _ = socket.write_all(piece.as_bytes()).await;
            }
        }
        Reply::Silence => std::future::pending().await,
        Reply::Stall(piece) => {
            let _ = socket.write_all(format!("{head}{piece}").as_bytes()).await;
            std::future::pending().await
        }
    }
}

fn settings(provider: Provider, base_url: String) -> RemoteSettings {
    RemoteSettings {
        provider,
        model: "little".to_owned(),
        base_url: Some(base_url),
        api_key: None,
        timeout: LONG,
        sampling: Sampling::default(),
        forms: FormStyle::Function,
        embedding_model: None,
    }
}

fn chunk(text: &str) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }))
}

fn ending() -> String {
    let stop = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15 } });
    format!("data: {stop}\n\ndata: {usage}\n\ndata: [DONE]\n\n")
}

fn pieces(pieces: &[String]) -> Reply {
    Reply::Pieces(pieces.to_vec(), Duration::ZERO)
}

fn prompt() -> Prompt {
    let line = |speaker: &str, text: &str| BlockLine {
        speaker: speaker.into(),
        voice: Voice::Other,
        text: text.into(),
    };
    Prompt {
        fence: Fence::new([0; 8]),
        system: "Be brief.".to_owned(),
        blocks: vec![Block {
            intro: "Recent messages.".to_owned(),
            label: "room",
            lines: vec![line("alice", "use PostgreSQL"), line("bob", "ok")],
        }],
        history: Vec::new(),
        query: "what database?".to_owned(),
        attachments: Vec::new(),
        tools: Vec::new(),
        calling: Calling::Free,
        steps: Vec::new(),
        sampling: Sampling { temperature: Some(0.0), max_tokens: Some(64), ..Sampling::default() },
    }
}

/// Longer than any answer takes here, however busy the machine is.
const LONG: Duration = Duration::from_secs(120);

/// Asks `provider` at a fake that gives `reply`; returns the answer and the deltas.
async fn ask(provider: Provider, reply: Reply) -> (Result<Answer, ModelError>, Vec<String>, Fake) {
    ask_within(LONG, provider, reply).await
}

/// The same, by somebody who waits no longer than this for a word.
async fn ask_within(
    timeout: Duration,
    provider: Provider,
    reply: Reply,
) -> (Result<Answer, ModelError>, Vec<String>, Fake) {
    let fake = Fake::start(reply).await;
    let mut settings = settings(provider, fake.address.clone());
    settings.timeout = timeout;
    let (answer, deltas) = ask_with(settings, &prompt()).await;
    (answer, deltas, fake)
}

async fn ask_with(settings: RemoteSettings, prompt: &Prompt) -> (Result<Answer, ModelError>, Vec<String>) {
    let deltas = Mutex::new(Vec::new());
    let remote = Remote::new(settings).unwrap();
    let answer = remote.respond(prompt, &|text| deltas.lock().unwrap().push(text.to_owned())).await;
    (answer, deltas.into_inner().unwrap())
}

#[tokio::test]
async fn streams_an_answer_with_its_usage() {
    let (answer, deltas, fake) =
        ask(Provider::OpenAi, pieces(&[chunk("Postgre"), chunk("SQL"), ending()])).await;
    let answer = answer.unwrap();
    assert_eq!((answer.text.as_str(), answer.model.as_str()), ("PostgreSQL", "little"));
    assert_eq!(answer.usage, Some(Usage { prompt: 12, completion: 3 }));
    assert_eq!(deltas, ["Postgre", "SQL"]);
    let seen = fake.last();
    assert!(seen.head.starts_with("POST /chat/completions "), "{}", seen.head);
    assert!(!seen.head.to_lowercase().contains("authorization"), "{}", seen.head);
    assert_eq!(seen.body["stream"], true);
    assert_eq!(seen.body["temperature"], 0.0);
    assert_eq!(seen.body["max_tokens"], 64);
}

#[tokio::test]
async fn room_text_never_speaks_as_the_system() {
    let (_, _, fake) = ask(Provider::OpenAi, pieces(&[chunk("x"), ending()])).await;
    let room = "Recent messages.\n<<<room aaaaaaaa\nalice: use PostgreSQL\nbob: ok\naaaaaaaa room>>>\n\nwhat database?";
    let expected = json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": room }]);
    assert_eq!(fake.last().body["messages"], expected);
}

#[tokio::test]
async fn roles_alternate_whatever_the_history_is() {
    let fake = Fake::start(pieces(&[chunk("x"), ending()])).await;
    let say = |role, text: &str| PromptMessage { role, text: text.to_owned() };
    let mut prompt = prompt();
    prompt.history = vec![
        say(Role::Human, "I'm Alice"),
        say(Role::Ai, "Hi"),
        say(Role::Ai, " "),
        say(Role::Human, "unanswered"),
    ];
    ask_with(settings(Provider::OpenAi, fake.address.clone()), &prompt).await.0.unwrap();
    let body = fake.last().body;
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!(body["messages"][3]["content"], "unanswered\n\nwhat database?");
    assert!(body["messages"][1]["content"].as_str().unwrap().ends_with("room>>>\n\nI'm Alice"));
}

#[tokio::test]
async fn keys_names_and_addresses_arrive_as_configured() {
    for (path, expected) in [("", "/"), ("/v1", "/v1/"), ("/v1/", "/v1/"), ("/a/b", "/a/b/")] {
        let fake = Fake::start(pieces(&[chunk("x"), ending()])).await;
        let mut settings = settings(Provider::OpenAi, format!("{}{path}", fake.address));
        settings.api_key = Some(SecretString::from("canary-key"));
        settings.model = "qwen::some-model-high".to_owned();
        ask_with(settings, &prompt()).await.0.unwrap();
        let seen = fake.last();
        assert!(seen.head.starts_with(&format!("POST {expected}chat/completions ")), "{}", seen.head);
        assert!(seen.head.contains("Bearer canary-key"), "{}", seen.head);
        assert_eq!(seen.body["model"], "qwen::some-model-high");
    }
}

#[tokio::test]
async fn failures_have_their_own_names() {
    let canary = || "SECRET reply".to_owned();
    let coded = format!("data: {}\n\n", json!({ "error": { "code": 429, "message": "SECRET" } }));
    let bare = format!("data: {}\n\n", json!({ "error": { "message": "SECRET" } }));
    let ollama_like = "{\"message\":{\"content\":\"x\"},\"done\":true}\n".to_owned();
    let cases = [
        ("401", Reply::Whole(401, canary()), ModelError::Unauthorised),
        ("403", Reply::Whole(403, canary()), ModelError::Unauthorised),
        ("404", Reply::Whole(404, canary()), ModelError::Refused(404)),
        ("429", Reply::Whole(429, canary()), ModelError::RateLimited),
        ("500", Reply::Whole(500, canary()), ModelError::Refused(500)),
        ("redirect", Reply::Whole(307, canary()), ModelError::Refused(307)),
        ("plain text", Reply::Whole(200, canary()), ModelError::Malformed),
        ("garbage events", pieces(&["data: {not json\n\n".to_owned()]), ModelError::Malformed),
        ("another protocol", pieces(&[ollama_like]), ModelError::Malformed),
        ("empty reply", Reply::Whole(200, String::new()), ModelError::Malformed),
        ("empty answer", pieces(&[chunk(" "), ending()]), ModelError::Malformed),
        ("cut off", pieces(&[chunk("Post")]), ModelError::CutOff),
        ("cut off in a piece", pieces(&[chunk("Post"), "data: {\"cho".to_owned()]), ModelError::CutOff),
        ("error at once", pieces(std::slice::from_ref(&bare)), ModelError::CutOff),
        ("error with a code", pieces(&[coded]), ModelError::RateLimited),
        ("error later", pieces(&[chunk("Post"), bare]), ModelError::CutOff),
        ("garbage later", pieces(&[chunk("Post"), "data: SECRET\n\n".to_owned()]), ModelError::CutOff),
        ("hang", Reply::Silence, ModelError::TimedOut),
        ("stall", Reply::Stall(chunk("Post")), ModelError::TimedOut),
    ];
    for (name, reply, expected) in cases {
        // Only what is waited for in vain is waited for a short time.
        let limit = if expected == ModelError::TimedOut { Duration::from_secs(1) } else { LONG };
        let (answer, _, _) = ask_within(limit, Provider::OpenAi, reply).await;
        let error = answer.err().unwrap_or_else(|| panic!("{name}: answered"));
        assert_eq!(error, expected, "{name}");
        assert!(!format!("{error} {error:?}").contains("SECRET"), "{name}");
    }
}

#[tokio::test]
async fn a_slow_answer_may_take_longer_than_the_timeout() {
    let mut parts: Vec<String> = (0..12).map(|number| chunk(&format!("{number} "))).collect();
    parts.push(ending());
    // Each piece is there long before its time is over, all of them are not.
    let (timeout, pause) = (Duration::from_secs(5), Duration::from_millis(500));
    let (answer, deltas, _) = ask_within(timeout, Provider::OpenAi, Reply::Pieces(parts, pause)).await;
    assert_eq!(answer.unwrap().text, "0 1 2 3 4 5 6 7 8 9 10 11 ");
    assert_eq!(deltas.len(), 12);
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let remote = Remote::new(settings(Provider::OpenAi, address)).unwrap();
    assert_eq!(remote.check().await, Err(ModelError::Unreachable));
    assert_eq!(remote.respond(&prompt(), &|_| ()).await.err(), Some(ModelError::Unreachable));
}

#[tokio::test]
async fn a_probe_asks_nothing_and_takes_any_reply() {
    let cases = [
        (Reply::Whole(200, "{}".to_owned()), Ok(())),
        (Reply::Whole(404, String::new()), Ok(())),
        (Reply::Whole(401, String::new()), Err(ModelError::Unauthorised)),
        (Reply::Silence, Err(ModelError::TimedOut)),
    ];
    for (reply, expected) in cases {
        let fake = Fake::start(reply).await;
        let mut settings = settings(Provider::OpenAi, format!("{}/v1", fake.address));
        if expected == Err(ModelError::TimedOut) {
            settings.timeout = Duration::from_secs(1);
        }
        assert_eq!(Remote::new(settings).unwrap().check().await, expected);
        assert!(fake.last().head.starts_with("GET /v1/models "));
    }
}

#[tokio::test]
async fn anthropic_speaks_its_own_format() {
    let event = |name: &str, data: Value| format!("event: {name}\ndata: {data}\n\n");
    let text = |text: &str| json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } });
    let start =
        json!({ "type": "message_start", "message": { "usage": { "input_tokens": 9, "output_tokens": 1 } } });
    let block =
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } });
    let stop = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 4 } });
    let mut parts = vec![
        event("message_start", start),
        event("content_block_start", block),
        event("ping", json!({ "type": "ping" })),
        event("content_block_delta", text("Postgre")),
        event("content_block_delta", text("SQL")),
    ];
    let (cut, _, _) = ask(Provider::Anthropic, pieces(&parts)).await;
    assert_eq!(cut.err(), Some(ModelError::CutOff));
    parts.push(event("content_block_stop", json!({ "type": "content_block_stop", "index": 0 })));
    parts.push(event("message_delta", stop));
    parts.push(event("message_stop", json!({ "type": "message_stop" })));
    let fake = Fake::start(pieces(&parts)).await;
    let mut settings = settings(Provider::Anthropic, format!("{}/v1", fake.address));
    settings.api_key = Some(SecretString::from("canary-key"));
    let (answer, deltas) = ask_with(settings, &prompt()).await;
    let answer = answer.unwrap();
    assert_eq!((answer.text.as_str(), deltas.len()), ("PostgreSQL", 2));
    assert_eq!(answer.usage, Some(Usage { prompt: 9, completion: 4 }));
    let seen = fake.last();
    assert!(
        seen.head.starts_with("POST /v1/messages ") && seen.head.contains("x-api-key: canary-key"),
        "{}",
        seen.head
    );
    assert_eq!(seen.body["system"], "Be brief.");
}

#[tokio::test]
async fn gemini_speaks_its_own_format() {
    let part = |text: &str, finish: Option<&str>| {
        let candidate =
            json!({ "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": finish });
        let usage = json!({ "promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13 });
        format!("data: {}\r\n\r\n", json!({ "candidates": [candidate], "usageMetadata": usage }))
    };
    let (cut, _, _) = ask(Provider::Gemini, pieces(&[part("Postgre", None)])).await;
    assert_eq!(cut.err(), Some(ModelError::CutOff));
    let (answer, _, fake) =
        ask(Provider::Gemini, pieces(&[part("Postgre", None), part("SQL", Some("STOP"))])).await;
    let answer = answer.unwrap();
    assert_eq!(answer.text, "PostgreSQL");
    assert_eq!(answer.usage, Some(Usage { prompt: 9, completion: 4 }));
    let seen = fake.last();
    assert!(seen.head.starts_with("POST /models/little:streamGenerateContent?alt=sse "), "{}", seen.head);
    assert!(!seen.body["systemInstruction"].to_string().contains("PostgreSQL"));
}

#[tokio::test]
async fn ollama_speaks_its_own_format() {
    let part = |text: &str| {
        format!("{}\n", json!({ "message": { "role": "assistant", "content": text }, "done": false }))
    };
    let done = json!({ "message": { "role": "assistant", "content": "" }, "done": true, "done_reason": "stop",
        "prompt_eval_count": 9, "eval_count": 4 });
    let (cut, _, _) = ask(Provider::Ollama, pieces(&[part("Postgre")])).await;
    assert_eq!(cut.err(), Some(ModelError::CutOff));
    let (answer, _, fake) =
        ask(Provider::Ollama, pieces(&[part("Postgre"), part("SQL"), format!("{done}\n")])).await;
    let answer = answer.unwrap();
    assert_eq!(answer.text, "PostgreSQL");
    assert_eq!(answer.usage, Some(Usage { prompt: 9, completion: 4 }));
    let seen = fake.last();
    assert!(seen.head.starts_with("POST /api/chat "), "{}", seen.head);
    assert_eq!(seen.body["messages"][0], json!({ "role": "system", "content": "Be brief." }));
    assert_eq!(seen.body["options"], json!({ "temperature": 0.0, "num_predict": 64 }));
}

#[test]
fn bad_settings_are_named() {
    let build = |address: &str, model: &str, key: Option<&str>| {
        let mut settings = settings(Provider::OpenAi, address.to_owned());
        settings.model = model.to_owned();
        settings.api_key = key.map(SecretString::from);
        Remote::new(settings).err()
    };
    assert_eq!(build("ftp://host", "m", None), Some(RemoteSetupError::BadAddress));
    assert_eq!(build("127.0.0.1:8080", "m", None), Some(RemoteSetupError::BadAddress));
    assert_eq!(build("", "m", None), Some(RemoteSetupError::BadAddress));
    assert_eq!(build("http://127.0.0.1:1", " ", None), Some(RemoteSetupError::NoModel));
    assert_eq!(build("http://127.0.0.1:1", "m", Some("a\nb")), Some(RemoteSetupError::BadKey));
    assert_eq!(build("http://127.0.0.1:1", "m", Some("key")), None);
}

#[test]
fn nothing_secret_is_printed() {
    let mut settings = settings(Provider::OpenAi, "http://127.0.0.1:1".to_owned());
    settings.api_key = Some(SecretString::from("canary-key"));
    let printed = format!("{settings:?} {:?}", Remote::new(settings.clone()).unwrap());
    assert!(!printed.contains("canary-key"), "{printed}");
}

#[test]
fn providers_have_lower_case_names() {
    let names = [
        (Provider::OpenAi, "\"openai\""),
        (Provider::Anthropic, "\"anthropic\""),
        (Provider::Gemini, "\"gemini\""),
        (Provider::Ollama, "\"ollama\""),
    ];
    for (provider, name) in names {
        assert_eq!(serde_json::to_string(&provider).unwrap(), name);
        assert_eq!(serde_json::from_str::<Provider>(name).unwrap(), provider);
    }
}

fn tool(name: &str) -> ToolSpec {
    let schema = json!({ "type": "object", "properties": { "q": { "type": "string" } } });
    ToolSpec { name: name.to_owned(), description: "Finds things.".to_owned(), schema, strict: None }
}

fn call_piece(index: usize, id: &str, name: &str, arguments: &str) -> String {
    let call = json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
    format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] }))
}

#[tokio::test]
async fn tools_go_out_under_names_that_providers_allow_and_come_back_under_ours() {
    let pieces = vec![
        chunk("Let me look."),
        call_piece(0, "c1", "web_search", "{\"q\":"),
        call_piece(0, "", "", "\"rust\"}"),
        call_piece(1, "c2", "web_search_1", "not json"),
        call_piece(2, "c3", "made_up", "{}"),
        ending(),
    ];
    let fake = Fake::start(Reply::Pieces(pieces, Duration::ZERO)).await;
    let mut prompt = prompt();
    prompt.tools = vec![tool("web.search"), tool("web:search")];
    let before = ToolCall {
        id: "c0".to_owned(),
        name: "web.search".to_owned(),
        arguments: json!({ "q": "x" }),
        signatures: Vec::new(),
    };
    prompt.steps = vec![Step { text: String::new(), calls: vec![before], results: vec!["found".to_owned()] }];
    let model = Remote::new(settings(Provider::OpenAi, fake.address.clone())).unwrap();
    let answer = model.respond(&prompt, &|_| {}).await.unwrap();
    assert_eq!(answer.text, "Let me look.");
    let calls: Vec<_> =
        answer.calls.iter().map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.clone())).collect();
    assert_eq!(
        calls,
        [
            ("c1", "web.search", json!({ "q": "rust" })),
            ("c2", "web:search", json!("not json")),
            ("c3", "made_up", json!({})),
        ]
    );
    let body = fake.last().body;
    let names: Vec<_> =
        body["tools"].as_array().unwrap().iter().map(|t| t["function"]["name"].clone()).collect();
    assert_eq!(names, ["web_search", "web_search_1"]);
    let messages = body["messages"].as_array().unwrap();
    let [called, result] = &messages[messages.len() - 2..] else { panic!("two messages") };
    assert_eq!(called["role"], "assistant");
    assert_eq!(called["tool_calls"][0]["function"]["name"], "web_search");
    assert_eq!(
        (&result["role"], &result["tool_call_id"], &result["content"]),
        (&json!("tool"), &json!("c0"), &json!("found"))
    );
}

#[tokio::test]
async fn what_was_called_before_has_an_allowed_name_whether_it_is_offered_or_not() {
    let call = |name: &str| ToolCall {
        id: "c0".to_owned(),
        name: name.to_owned(),
        arguments: json!({ "q": "x" }),
        signatures: Vec::new(),
    };
    let calls = vec![
        call("web.search"),
        call("gone.tool"),
        call("gone:tool"),
        call("made up \u{202e}name!"),
        call(""),
    ];
    let results = vec!["found".to_owned(); calls.len()];
    let mut prompt = prompt();
    prompt.steps = vec![Step { text: String::new(), calls, results }];
    prompt.calling = Calling::Over;
    for (offered, provider) in
        [(true, Provider::OpenAi), (false, Provider::OpenAi), (true, Provider::Anthropic)]
    {
        prompt.tools = if offered { vec![tool("web.search"), tool("web:search")] } else { Vec::new() };
        let fake = Fake::start(pieces(&[chunk("x"), ending()])).await;
        let _ = ask_with(settings(provider, fake.address.clone()), &prompt).await;
        let body = fake.last().body;
        // The last word is asked for with the tools in sight and out of reach.
        let none = if provider == Provider::OpenAi { json!("none") } else { json!({ "type": "none" }) };
        assert_eq!(body.get("tool_choice"), offered.then_some(&none), "{body}");
        assert_eq!(body["tools"].as_array().map_or(0, Vec::len), if offered { 2 } else { 0 });
        let mut names = Vec::new();
        names_in(&body, &mut names);
        assert!(names.len() >= 5, "{body}");
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(names.iter().all(|name| !name.is_empty() && name.chars().all(allowed)), "{names:?}");
    }
}

/// Every name in a body: of tools and of calls.
fn names_in(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| names_in(item, names)),
        Value::Object(object) => {
            names.extend(object.get("name").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|item| names_in(item, names));
        }
        _ => {}
    }
}

#[tokio::test]
async fn a_prompt_without_tools_offers_none() {
    let fake = Fake::start(Reply::Pieces(vec![chunk("hi"), ending()], Duration::ZERO)).await;
    let model = Remote::new(settings(Provider::OpenAi, fake.address.clone())).unwrap();
    assert!(model.respond(&prompt(), &|_| {}).await.unwrap().calls.is_empty());
    assert!(fake.last().body.get("tools").is_none());
}

fn form() -> Form {
    Form {
        name: "judge",
        description: "Says what it is.",
        schema: json!({ "type": "object", "properties": { "kind": { "type": "string" } }, "required": ["kind"] }),
        system: "Judge.".to_owned(),
        material: "some text".to_owned(),
        max_tokens: 50,
    }
}

#[tokio::test]
async fn forms_are_calls_that_must_be_made() {
    let pieces = vec![call_piece(0, "c1", "judge", "{\"kind\":\"note\"}"), ending()];
    let fake = Fake::start(Reply::Pieces(pieces, Duration::ZERO)).await;
    let model = Remote::new(settings(Provider::OpenAi, fake.address.clone())).unwrap();
    assert_eq!(model.fill(&form()).await.unwrap(), json!({ "kind": "note" }));
    let body = fake.last().body;
    assert_eq!(body["tool_choice"]["function"]["name"], "judge");
    assert_eq!(body["tools"][0]["function"]["parameters"]["required"], json!(["kind"]));
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.0), &json!(50)));
}

#[tokio::test]
async fn forms_can_be_answers_that_fit_a_schema() {
    let pieces = vec![chunk("```json\n{\"kind\":"), chunk("\"note\"}\n``` as asked"), ending()];
    let fake = Fake::start(Reply::Pieces(pieces, Duration::ZERO)).await;
    let settings =
        RemoteSettings { forms: FormStyle::JsonSchema, ..settings(Provider::OpenAi, fake.address.clone()) };
    let model = Remote::new(settings).unwrap();
    assert_eq!(model.fill(&form()).await.unwrap(), json!({ "kind": "note" }));
    let body = fake.last().body;
    assert_eq!(body["response_format"]["json_schema"]["name"], "judge");
    assert!(body.get("tools").is_none());
}

#[tokio::test]
async fn a_form_that_is_not_filled_in_is_malformed() {
    for text in ["I would rather not.", "{\"kind\":", "[1,2]", "{broken}"] {
        let fake = Fake::start(Reply::Pieces(vec![chunk(text), ending()], Duration::ZERO)).await;
        let model = Remote::new(settings(Provider::OpenAi, fake.address.clone())).unwrap();
        assert_eq!(model.fill(&form()).await.unwrap_err(), ModelError::Malformed, "{text}");
    }
}

fn asked() -> Sampling {
    let schema = AnswerSchema {
        name: "kind".to_owned(),
        description: None,
        schema: json!({ "type": "object", "properties": { "kind": { "type": "string" } } }),
        strict: Some(false),
    };
    Sampling {
        stop: vec!["END".to_owned()],
        seed: Some(-7),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(-0.5),
        format: Some(AnswerFormat::Schema(schema)),
        ..Sampling::default()
    }
}

#[tokio::test]
async fn how_to_answer_arrives_as_the_client_wrote_it() {
    let fake = Fake::start(pieces(&[chunk("{}"), ending()])).await;
    let prompt = Prompt { sampling: asked(), ..prompt() };
    ask_with(settings(Provider::OpenAi, fake.address.clone()), &prompt).await.0.unwrap();
    let body = fake.last().body;
    assert_eq!((&body["stop"], &body["seed"]), (&json!(["END"]), &json!(-7)));
    assert_eq!((&body["presence_penalty"], &body["frequency_penalty"]), (&json!(0.5), &json!(-0.5)));
    let schema = json!({ "name": "kind", "schema": asked_schema(), "strict": false });
    assert_eq!(body["response_format"], json!({ "type": "json_schema", "json_schema": schema }));
    let sampling = Sampling { format: Some(AnswerFormat::Json), ..Sampling::default() };
    let prompt = Prompt { sampling, ..prompt };
    ask_with(settings(Provider::OpenAi, fake.address.clone()), &prompt).await.0.unwrap();
    let body = fake.last().body;
    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
    assert!(["stop", "seed", "presence_penalty"].iter().all(|name| body.get(name).is_none()), "{body}");
}

#[tokio::test]
async fn which_tools_are_called_arrives_as_the_client_chose() {
    let fake = Fake::start(pieces(&[chunk("{}"), ending()])).await;
    let named = json!({ "type": "function", "function": { "name": "web_search" } });
    for (chosen, expected) in [
        (Some(ToolUse::Any), json!("required")),
        (Some(ToolUse::Named("web.search".to_owned())), named),
        (Some(ToolUse::Nothing), Value::Null),
        (None, Value::Null),
    ] {
        let sampling =
            Sampling { tool_choice: chosen, parallel_tool_calls: Some(false), ..Sampling::default() };
        let strict = ToolSpec { strict: Some(true), ..tool("web.search") };
        let prompt = Prompt { tools: vec![strict, tool("web.find")], sampling, ..prompt() };
        ask_with(settings(Provider::OpenAi, fake.address.clone()), &prompt).await.0.unwrap();
        let body = fake.last().body;
        assert_eq!((&body["tool_choice"], &body["parallel_tool_calls"]), (&expected, &json!(false)));
        let strict = [0, 1].map(|at| body["tools"][at]["function"]["strict"].clone());
        assert_eq!(strict, [json!(true), json!(false)]);
        // The last word is asked for without tools, whatever was chosen.
        let over = Prompt { calling: Calling::Over, ..prompt };
        ask_with(settings(Provider::OpenAi, fake.address.clone()), &over).await.0.unwrap();
        assert_eq!(fake.last().body["tool_choice"], "none");
    }
}

fn asked_schema() -> Value {
    json!({ "type": "object", "properties": { "kind": { "type": "string" } } })
}

#[test]
fn what_a_provider_cannot_do_is_named() {
    let refused = |provider, sampling: &Sampling| {
        Remote::new(settings(provider, "http://127.0.0.1:1".to_owned())).unwrap().refuses(sampling)
    };
    let format = |format| Sampling { format: Some(format), ..Sampling::default() };
    let must_call = Sampling { tool_choice: Some(ToolUse::Any), ..Sampling::default() };
    let one_by_one = Sampling { parallel_tool_calls: Some(false), ..Sampling::default() };
    let schema = Sampling { presence_penalty: None, frequency_penalty: None, ..asked() };
    let cases = [
        (asked(), [None, Some("presence_penalty"), Some("presence_penalty"), Some("presence_penalty")]),
        (schema, [None, None, None, Some("response_format")]),
        (format(AnswerFormat::Json), [None, Some("response_format"), Some("response_format"), None]),
        (must_call, [None, None, None, Some("tool_choice")]),
        (
            one_by_one,
            [None, Some("parallel_tool_calls"), Some("parallel_tool_calls"), Some("parallel_tool_calls")],
        ),
        (Sampling::default(), [None; 4]),
    ];
    let providers = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini, Provider::Ollama];
    for (sampling, expected) in cases {
        assert_eq!(providers.map(|provider| refused(provider, &sampling)), expected);
    }
    let builtin = [asked(), format(AnswerFormat::Json), Sampling { seed: Some(1), ..Sampling::default() }];
    let refused = builtin.map(|sampling| crate::Extractive.refuses(&sampling));
    assert_eq!(refused, [Some("stop"), Some("response_format"), None]);
    let choices = |choices| Sampling { choices: Some(choices), ..Sampling::default() };
    assert_eq!([1, 2].map(|n| crate::Extractive.refuses(&choices(n))), [None, Some("n")]);
}

fn attached(media_type: &str, name: Option<&str>, source: AttachmentSource) -> Attachment {
    Attachment { media_type: media_type.to_owned(), name: name.map(str::to_owned), source }
}

#[tokio::test]
async fn images_and_files_go_with_the_query() {
    let data = || AttachmentSource::Data("aGk=".to_owned());
    let attachments = vec![attached("image/png", None, data()), attached("application/pdf", None, data())];
    let prompt = Prompt { attachments, ..prompt() };
    let fake = Fake::start(pieces(&[chunk("ok"), ending()])).await;
    ask_with(settings(Provider::OpenAi, fake.address.clone()), &prompt).await.0.unwrap();
    let asked = fake.last().body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert!(asked[0]["text"].as_str().unwrap().ends_with("what database?"), "{asked}");
    let image = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } });
    let file = json!({ "filename": "file", "file_data": "data:application/pdf;base64,aGk=" });
    assert_eq!((&asked[1], &asked[2]), (&image, &json!({ "type": "file", "file": file })));
    // A server that cannot see says so when it is asked.
    let fake = Fake::start(Reply::Whole(400, "{}".to_owned())).await;
    let refused = async |prompt: &Prompt| {
        ask_with(settings(Provider::OpenAi, fake.address.clone()), prompt).await.0.unwrap_err()
    };
    assert_eq!(refused(&prompt).await, ModelError::AttachmentRefused);
    assert_eq!(refused(&Prompt { attachments: Vec::new(), ..prompt }).await, ModelError::Refused(400));
}

#[test]
fn what_a_provider_takes_is_known_as_far_as_it_can_be() {
    let (data, address) =
        (AttachmentSource::Data("aGk=".to_owned()), AttachmentSource::Address("https://x.org/a".to_owned()));
    let cases = [
        (attached("image/png", None, data.clone()), [true; 4]),
        (attached("application/pdf", None, data.clone()), [true, true, true, false]),
        (attached("text/plain", None, data), [true, false, true, false]),
        (attached("image/*", None, address.clone()), [true, false, false, false]),
        (attached("application/pdf", None, address), [false; 4]),
    ];
    let providers = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini, Provider::Ollama];
    for (attachment, expected) in cases {
        let takes = |provider: Provider, base_url: &str| {
            Remote::new(settings(provider, base_url.to_owned())).unwrap().takes(&attachment)
        };
        // Without TLS, since nothing is sent.
        let public = |provider: Provider| default_address(provider).replacen("https", "http", 1);
        assert_eq!(providers.map(|provider| takes(provider, &public(provider))), expected);
        // A server in the operator's own network is sent to no address.
        let own = takes(Provider::OpenAi, "http://127.0.0.1:1/v1");
        assert_eq!(own, expected[0] && !attachment.is_elsewhere());
        assert!(!crate::Extractive.takes(&attachment));
    }
}

#[tokio::test]
async fn embeddings_are_asked_for_as_numbers_and_come_back_in_order() {
    let whole = json!({ "object": "list", "model": "x", "usage": { "prompt_tokens": 4, "total_tokens": 4 }, "data": [
        { "object": "embedding", "index": 1, "embedding": [0.25, -1.0] },
        { "object": "embedding", "index": 0, "embedding": [1.0, 2.0] },
    ] });
    let embedding = |input| Embedding { input, dimensions: Some(2) };
    let texts = embedding(EmbeddingInput::Texts(vec!["one".to_owned(), "two".to_owned()]));
    for (provider, path) in [
        (Provider::OpenAi, "/v1/embeddings"),
        (Provider::Gemini, "/v1/openai/embeddings"),
        (Provider::Ollama, "/v1/v1/embeddings"),
    ] {
        let fake = Fake::start(Reply::Whole(200, whole.to_string())).await;
        let mut settings = settings(provider, format!("{}/v1", fake.address));
        settings.embedding_model = Some("small-vectors".to_owned());
        settings.api_key = Some(SecretString::from("canary-key"));
        let model = Remote::new(settings).unwrap();
        assert_eq!(model.embedding_model(), Some("small-vectors"));
        let embedded = model.embed(&texts).await.unwrap();
        assert_eq!((embedded.vectors, embedded.tokens), (vec![vec![1.0, 2.0], vec![0.25, -1.0]], Some(4)));
        let seen = fake.last();
        assert!(seen.head.starts_with(&format!("POST {path} ")), "{}", seen.head);
        assert!(seen.head.contains("Bearer canary-key"), "{}", seen.head);
        let mut expected = json!({ "model": "small-vectors", "input": ["one", "two"], "dimensions": 2 });
        expected["encoding_format"] = json!("float");
        assert_eq!(seen.body, expected);
        let tokens = embedding(EmbeddingInput::Tokens(vec![vec![1, 2], vec![3]]));
        model.embed(&tokens).await.unwrap();
        assert_eq!(fake.last().body["input"], json!([[1, 2], [3]]));
    }
}

#[tokio::test]
async fn embeddings_that_are_not_had_say_why() {
    let embedding = Embedding { input: EmbeddingInput::Texts(vec!["one".to_owned()]), dimensions: None };
    let cases = [
        (Reply::Whole(401, "SECRET".to_owned()), ModelError::Unauthorised),
        (Reply::Whole(429, "SECRET".to_owned()), ModelError::RateLimited),
        (Reply::Whole(404, "SECRET".to_owned()), ModelError::Refused(404)),
        (Reply::Whole(200, "SECRET".to_owned()), ModelError::Malformed),
    ];
    for (reply, error) in cases {
        let fake = Fake::start(reply).await;
        let mut settings = settings(Provider::OpenAi, fake.address.clone());
        settings.embedding_model = Some("x".to_owned());
        assert_eq!(Remote::new(settings).unwrap().embed(&embedding).await.err(), Some(error));
    }
    let model = Remote::new(settings(Provider::OpenAi, "http://127.0.0.1:1".to_owned())).unwrap();
    assert_eq!(model.embed(&embedding).await.err(), Some(ModelError::NoEmbeddings));
    let mut settings = settings(Provider::Anthropic, "http://127.0.0.1:1".to_owned());
    settings.embedding_model = Some("x".to_owned());
    assert_eq!(Remote::new(settings).err(), Some(RemoteSetupError::NoEmbeddings));
}
