//! The fake Discord of the tests as a program of its own, for tests that run the real Confidant.
//!
//! It says on one line of JSON where everything is and which bots may sign in, and ends with its standard input. What people do and
//! what goes wrong are posts of JSON to the control address: `/say`, `/edit`, `/delete`, `/slash`, `/cut`, `/limit` and so on.
#![expect(clippy::unwrap_used, reason = "whoever runs a test sees what went wrong by its panic")]
#![expect(clippy::print_stdout, reason = "that is how it tells where it is")]

#[path = "../tests/bot/fake/mod.rs"]
#[expect(dead_code, reason = "the Rust tests wait for things, whoever uses this asks again")]
mod fake;

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use fake::{BOTS, Fake, GENERAL, GUILD, Post};

#[tokio::main]
async fn main() {
    let fake = Fake::start().await;
    let control = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let bots: Vec<Value> = BOTS.iter().map(|(id, token)| json!({ "id": id, "token": token })).collect();
    let here = json!({
        "api_url": format!("http://{}", fake.rest), "gateway_url": format!("ws://{}", fake.gateway),
        "control_url": format!("http://{}", control.local_addr().unwrap()), "bots": bots, "guild": GUILD, "general": GENERAL,
    });
    println!("{here}");
    let router = Router::new()
        .route("/messages", get(messages))
        .route("/interaction", get(interaction))
        .route("/counts", get(counts))
        .route("/{lever}", post(pull))
        .with_state(fake);
    tokio::spawn(async move { axum::serve(control, router).await.unwrap() });
    let ended = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    let _ = ended.await;
}

/// What is in a channel.
async fn messages(State(fake): State<Fake>, Query(query): Query<HashMap<String, String>>) -> Json<Value> {
    let all = fake.said(query["channel"].parse().unwrap());
    Json(all.iter().map(shown).collect())
}

fn shown(post: &Post) -> Value {
    json!({
        "id": post.id, "author": post.author, "text": post.text, "reply_to": post.reply_to, "edits": post.edits,
        "files": post.files, "nonce": post.nonce,
    })
}

/// What a slash command was answered.
async fn interaction(State(fake): State<Fake>, Query(query): Query<HashMap<String, String>>) -> Json<Value> {
    Json(json!(fake.interaction(&query["token"])))
}

async fn counts(State(fake): State<Fake>) -> Json<Value> {
    Json(json!({
        "identifies": fake.identifies(), "resumes": fake.resumes(), "pings": fake.pings(), "commands": fake.commands(),
        "typing": fake.counted("typing"), "429": fake.counted("429"), "nonce seen": fake.counted("nonce seen"),
    }))
}

/// Does what people do, or what goes wrong.
async fn pull(
    State(fake): State<Fake>,
    axum::extract::Path(lever): axum::extract::Path<String>,
    Json(body): Json<Value>,
) -> Json<Value> {
    let number = |name: &str| body[name].as_u64().unwrap();
    let text = || body["text"].as_str().unwrap();
    let mut answer = Value::Null;
    match lever.as_str() {
        "direct" => answer = json!(fake.direct_with(number("user"), number("bot"))),
        "channel" => fake.add_channel(number("channel")),
        "say" => answer = json!(fake.say(number("user"), number("channel"), text())),
        // Said while nobody is told of it.
        "post" => answer = json!(fake.post(number("user"), number("channel"), text())),
        "tell" => fake.tell(number("id")),
        "attach" => answer = json!(fake.attach(number("user"), number("channel"), text())),
        "edit" => fake.edit(number("id"), text()),
        "delete" => fake.delete(number("id")),
        "slash" => {
            let name = body["name"].as_str().unwrap();
            answer = json!(fake.slash(number("user"), number("channel"), name));
        }
        "cut" => fake.cut(),
        "reconnect" => fake.ask_to_reconnect(),
        "invalidate" => fake.invalidate(),
        "forget-sessions" => fake.forget_sessions(),
        "close" => fake.close(u16::try_from(number("code")).unwrap()),
        "down" => fake.set_down(body["down"].as_bool().unwrap()),
        "limit" => fake.limit(&[body["seconds"].as_f64().unwrap()]),
        "bound" => {
            let per = Duration::from_secs_f64(body["seconds"].as_f64().unwrap());
            fake.bound(u32::try_from(number("messages")).unwrap(), per);
        }
        "intents" => fake.allow_intents(body["allowed"].as_bool().unwrap()),
        "kick" => fake.kick(),
        "invite" => fake.invite(),
        other => panic!("no such lever: {other}"),
    }
    Json(answer)
}
