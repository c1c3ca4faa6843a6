//! REST: the routes that a bot uses, with their errors and limits.

use std::collections::HashMap;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, patch, post, put};
use axum::{Extension, Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Fake, GUILD, ME, Post, Room, bot_of, user_json};

pub(super) async fn serve(fake: Fake, listener: TcpListener) {
    let api = Router::new()
        .route("/gateway/bot", get(gateway))
        .route("/users/@me", get(me))
        .route("/users/@me/guilds", get(guilds))
        .route("/users/@me/channels", post(open_direct))
        .route("/applications/@me", get(application))
        .route("/applications/{app}/commands", put(set_commands))
        .route("/applications/{app}/guilds/{guild}/commands", put(set_guild_commands))
        .route("/channels/{channel}/messages", get(read).post(create))
        .route("/channels/{channel}/messages/{message}", patch(update))
        .route("/channels/{channel}/typing", post(typing))
        .layer(middleware::from_fn(authorised))
        // The interaction's own token is what authorises these.
        .route("/interactions/{id}/{token}/callback", post(callback))
        .route("/webhooks/{app}/{token}/messages/{message}", patch(answer_interaction))
        .route("/webhooks/{app}/{token}", post(answer_more))
        .layer(middleware::from_fn_with_state(fake.clone(), limited))
        .with_state(fake);
    axum::serve(listener, Router::new().nest("/api/v10", api)).await.unwrap();
}

/// The bot that asks.
#[derive(Clone, Copy)]
struct Bot(u64);

async fn authorised(headers: HeaderMap, mut request: Request, next: Next) -> Response {
    let token = headers.get("authorization").and_then(|value| value.to_str().ok());
    let Some(bot) = token.filter(|token| token.starts_with("Bot ")).and_then(bot_of) else {
        return error(StatusCode::UNAUTHORIZED, 0, "401: Unauthorized");
    };
    request.extensions_mut().insert(Bot(bot));
    next.run(request).await
}

/// Away, or asking for patience.
async fn limited(State(fake): State<Fake>, request: Request, next: Next) -> Response {
    if fake.state().down {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let instead = fake.state().instead;
    if let Some((status, body)) = instead {
        fake.count("instead");
        return (StatusCode::from_u16(status).unwrap(), body).into_response();
    }
    let wait = fake.state().limited.pop();
    if let Some(seconds) = wait {
        fake.count("429");
        return too_many(seconds, "shared");
    }
    next.run(request).await
}

fn too_many(seconds: f64, scope: &'static str) -> Response {
    let body = json!({ "message": "You are being rate limited.", "retry_after": seconds, "global": false });
    let mut response = (StatusCode::TOO_MANY_REQUESTS, Json(body)).into_response();
    let headers = response.headers_mut();
    let mut set = |name: &'static str, value: String| {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
    };
    set("retry-after", format!("{}", seconds.ceil()));
    set("x-ratelimit-scope", scope.to_owned());
    set("x-ratelimit-bucket", "messages".to_owned());
    set("x-ratelimit-limit", "5".to_owned());
    set("x-ratelimit-remaining", "0".to_owned());
    set("x-ratelimit-reset-after", format!("{seconds:.3}"));
    set("x-ratelimit-reset", "0".to_owned());
    response
}

fn error(status: StatusCode, code: u64, message: &str) -> Response {
    (status, Json(json!({ "code": code, "message": message }))).into_response()
}

async fn gateway(State(fake): State<Fake>) -> Json<Value> {
    let state = fake.state();
    Json(json!({
        "url": format!("ws://{}", fake.gateway), "shards": state.shards.0,
        "session_start_limit": { "total": 1000, "remaining": state.sessions_left, "reset_after": 3_600_000, "max_concurrency": 16 },
    }))
}

async fn me(Extension(Bot(bot)): Extension<Bot>) -> Json<Value> {
    let mut user = user_json(bot);
    user["mfa_enabled"] = json!(false);
    Json(user)
}

async fn guilds(State(fake): State<Fake>) -> Json<Value> {
    let guild = json!({
        "id": GUILD.to_string(), "name": "A server", "icon": null, "owner": false,
        // View, send, read history, attach, but not in threads.
        "permissions": ((1_u64 << 10) | (1 << 11) | (1 << 15) | (1 << 16)).to_string(), "features": [],
    });
    Json(if fake.state().in_guild { json!([guild]) } else { json!([]) })
}

async fn application(State(fake): State<Fake>, Extension(Bot(bot)): Extension<Bot>) -> Json<Value> {
    let flags = if fake.state().intents_allowed { 1_u64 << 19 } else { 0 };
    Json(json!({ "id": bot.to_string(), "name": "bot", "flags": flags, "bot_public": true }))
}

async fn set_commands(State(fake): State<Fake>, Json(commands): Json<Vec<Value>>) -> Json<Value> {
    fake.state().commands =
        commands.iter().map(|command| command["name"].as_str().unwrap().to_owned()).collect();
    Json(json!([]))
}

async fn set_guild_commands(
    state: State<Fake>,
    Path(_): Path<(String, String)>,
    commands: Json<Vec<Value>>,
) -> Json<Value> {
    set_commands(state, commands).await
}

async fn open_direct(
    State(fake): State<Fake>,
    Extension(Bot(bot)): Extension<Bot>,
    Json(body): Json<Value>,
) -> Json<Value> {
    let user: u64 = body["recipient_id"].as_str().unwrap().parse().unwrap();
    let channel = fake.direct_with(user, bot);
    Json(
        json!({ "id": channel.to_string(), "type": 1, "recipients": [user_json(user)], "last_message_id": null }),
    )
}

/// Whether the bot sees the channel, and may write there.
fn channel(fake: &Fake, bot: u64, channel: u64) -> Result<(), Box<Response>> {
    let state = fake.state();
    match state.channels.get(&channel) {
        None => Err(Box::new(error(StatusCode::NOT_FOUND, 10_003, "Unknown Channel"))),
        Some(Room { direct: None, .. }) if !state.in_guild => {
            Err(Box::new(error(StatusCode::FORBIDDEN, 50_001, "Missing Access")))
        }
        Some(Room { direct: Some((_, with)), .. }) if *with != bot => {
            Err(Box::new(error(StatusCode::FORBIDDEN, 50_001, "Missing Access")))
        }
        Some(Room { direct: Some(_), .. }) if state.dm_refused => {
            Err(Box::new(error(StatusCode::FORBIDDEN, 50_007, "Cannot send messages to this user")))
        }
        Some(_) => Ok(()),
    }
}

async fn read(
    State(fake): State<Fake>,
    Extension(Bot(bot)): Extension<Bot>,
    Path(id): Path<u64>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    if let Err(refused) = channel(&fake, bot, id) {
        return *refused;
    }
    if fake.state().history_closed {
        return error(StatusCode::FORBIDDEN, 50_013, "Missing Permissions");
    }
    fake.count("reads");
    let number = |name: &str| query.get(name).map(|value| value.parse::<u64>().unwrap());
    let limit = usize::try_from(number("limit").unwrap_or(50)).unwrap();
    let mut found: Vec<Post> = fake.said(id);
    match (number("after"), number("before")) {
        // The next ones after it, though the newest of them comes first.
        (Some(after), _) => {
            found.retain(|post| post.id > after);
            found.truncate(limit);
        }
        (None, before) => {
            found.retain(|post| before.is_none_or(|before| post.id < before));
            let surplus = found.len().saturating_sub(limit);
            found.drain(..surplus);
        }
    }
    found.reverse();
    Json(found.iter().map(|post| fake.fetched_json(post)).collect::<Vec<_>>()).into_response()
}

async fn create(
    State(fake): State<Fake>,
    Extension(Bot(bot)): Extension<Bot>,
    Path(id): Path<u64>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Err(refused) = channel(&fake, bot, id) {
        return *refused;
    }
    if let Some(response) = spend(&fake, id) {
        return response;
    }
    let (payload, files) = payload(&headers, &body);
    let text = payload["content"].as_str().unwrap_or_default().to_owned();
    if text.trim().is_empty() && files.is_empty() {
        return error(StatusCode::BAD_REQUEST, 50_006, "Cannot send an empty message");
    }
    if text.chars().count() > 2000 {
        return error(StatusCode::BAD_REQUEST, 50_035, "Invalid Form Body");
    }
    let nonce = payload["nonce"].as_str().map(str::to_owned);
    assert!(nonce.as_ref().is_none_or(|nonce| nonce.len() <= 25), "nonces are short");
    if payload["enforce_nonce"] == true
        && !fake.state().nonces_forgotten
        && let Some(known) = fake
            .said(id)
            .into_iter()
            .find(|post| post.author == bot && post.nonce.is_some() && post.nonce == nonce)
    {
        fake.count("nonce seen");
        return Json(fake.message_json(known.id)).into_response();
    }
    let post = Post {
        id: fake.id(),
        channel: id,
        author: bot,
        text,
        reply_to: payload["message_reference"]["message_id"].as_str().map(|id| id.parse().unwrap()),
        edits: 0,
        edited: 0,
        files,
        attachments: 0,
        nonce,
        flags: flags(&payload),
    };
    note_pings(&fake, &payload);
    let message = post.id;
    fake.add(post);
    // The bot hears itself, too.
    fake.tell(message);
    let swallowed = fake.state().swallowed;
    if swallowed > 0 {
        fake.state().swallowed = swallowed - 1;
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let mut response = Json(fake.message_json(message)).into_response();
    with_bucket(&fake, id, &mut response);
    response
}

/// The flags that a message is given: of them all, only the one about previews is an author's to set everywhere.
fn flags(payload: &Value) -> u64 {
    let flags = payload["flags"].as_u64().unwrap_or(0);
    assert_eq!(flags & !(1 << 2), 0, "nobody may set these");
    flags
}

/// Notes a text that came without the word that nobody is to be notified.
fn note_pings(fake: &Fake, payload: &Value) {
    if payload["allowed_mentions"]["parse"] != json!([])
        || payload["allowed_mentions"]["replied_user"] == true
    {
        fake.state().pings += 1;
    }
}

/// Takes one from the channel's bucket; what is refused if it is empty.
fn spend(fake: &Fake, channel: u64) -> Option<Response> {
    let mut state = fake.state();
    let (most, per) = state.bucket?;
    let now = tokio::time::Instant::now();
    let (spent, since) = state.spent.entry(channel).or_insert((0, now));
    if now.duration_since(*since) >= per {
        (*spent, *since) = (0, now);
    }
    if *spent >= most {
        let left = per.saturating_sub(now.duration_since(*since));
        drop(state);
        fake.count("429");
        return Some(too_many(left.as_secs_f64().max(0.05), "user"));
    }
    *spent += 1;
    None
}

fn with_bucket(fake: &Fake, channel: u64, response: &mut Response) {
    let state = fake.state();
    let Some((most, per)) = state.bucket else { return };
    // The limit may have been set while this was under way.
    let Some(&(spent, since)) = state.spent.get(&channel) else { return };
    let left: Duration = per.saturating_sub(since.elapsed());
    let headers = response.headers_mut();
    let mut set = |name: &'static str, value: String| {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
    };
    set("x-ratelimit-bucket", "messages".to_owned());
    set("x-ratelimit-limit", most.to_string());
    set("x-ratelimit-remaining", most.saturating_sub(spent).to_string());
    set("x-ratelimit-reset-after", format!("{:.3}", left.as_secs_f64()));
    set("x-ratelimit-reset", "0".to_owned());
}

async fn update(
    State(fake): State<Fake>,
    Extension(Bot(bot)): Extension<Bot>,
    Path((id, message)): Path<(u64, u64)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Err(refused) = channel(&fake, bot, id) {
        return *refused;
    }
    let (payload, _) = payload(&headers, &body);
    note_pings(&fake, &payload);
    let edited = fake.id();
    {
        let mut state = fake.state();
        let Some(post) = state.posts.get_mut(&message) else {
            return error(StatusCode::NOT_FOUND, 10_008, "Unknown Message");
        };
        if post.author != bot {
            return error(StatusCode::FORBIDDEN, 50_005, "Cannot edit a message authored by another user");
        }
        post.text = payload["content"].as_str().unwrap().to_owned();
        post.edits += 1;
        post.edited = edited;
        if !payload["flags"].is_null() {
            post.flags = flags(&payload);
        }
    }
    fake.changed.notify_waiters();
    let event = fake.message_json(message);
    fake.dispatch("MESSAGE_UPDATE", event.clone());
    Json(event).into_response()
}

async fn typing(
    State(fake): State<Fake>,
    Extension(Bot(bot)): Extension<Bot>,
    Path(id): Path<u64>,
) -> Response {
    if let Err(refused) = channel(&fake, bot, id) {
        return *refused;
    }
    fake.count("typing");
    StatusCode::NO_CONTENT.into_response()
}

async fn callback(
    State(fake): State<Fake>,
    Path((_, token)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> Response {
    assert_eq!(body["data"]["flags"], 64, "only the one who asked may read it");
    let slow = fake.state().slow_callbacks;
    tokio::time::sleep(slow).await;
    let mut state = fake.state();
    if state.interactions.contains_key(&token) {
        drop(state);
        return error(StatusCode::BAD_REQUEST, 40_060, "Interaction has already been acknowledged.");
    }
    let said = body["data"]["content"].as_str().map(str::to_owned);
    state.interactions.insert(token, said.into_iter().collect());
    StatusCode::NO_CONTENT.into_response()
}

async fn answer_interaction(
    state: State<Fake>,
    Path((_, token, _)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answered(&state.0, token, &headers, &body)
}

async fn answer_more(
    state: State<Fake>,
    Path((_, token)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answered(&state.0, token, &headers, &body)
}

fn answered(fake: &Fake, token: String, headers: &HeaderMap, body: &Bytes) -> Response {
    let (payload, files) = payload(headers, body);
    let text = payload["content"].as_str().unwrap_or_default().to_owned();
    note_pings(fake, &payload);
    {
        let mut state = fake.state();
        let Some(said) = state.interactions.get_mut(&token) else {
            return error(StatusCode::NOT_FOUND, 10_015, "Unknown Webhook");
        };
        said.push(text.clone());
        said.extend(files);
    }
    fake.changed.notify_waiters();
    let post = Post {
        id: fake.id(),
        channel: super::GENERAL,
        author: ME,
        text,
        reply_to: None,
        edits: 0,
        edited: 0,
        files: Vec::new(),
        attachments: 0,
        nonce: None,
        flags: 0,
    };
    Json(fake.fetched_json(&post)).into_response()
}

/// The JSON of a request, and the files beside it.
fn payload(headers: &HeaderMap, body: &Bytes) -> (Value, Vec<String>) {
    let kind = headers["content-type"].to_str().unwrap();
    let Some((_, boundary)) = kind.split_once("boundary=") else {
        return (serde_json::from_slice(body).unwrap(), Vec::new());
    };
    let boundary = format!("--{}", boundary.trim_matches('"'));
    let text = String::from_utf8_lossy(body);
    let (mut json, mut files) = (Value::Null, Vec::new());
    for part in text.split(boundary.as_str()) {
        let Some((head, content)) = part.split_once("\r\n\r\n") else { continue };
        let content = content.trim_end_matches("\r\n");
        if head.contains("name=\"payload_json\"") {
            json = serde_json::from_str(content).unwrap();
        } else {
            files.push(content.to_owned());
        }
    }
    (json, files)
}
