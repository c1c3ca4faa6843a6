//! The gateway: hello, heartbeats, identify, resume with replay, and the ways in which it ends a connection.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_websockets::{CloseCode, Message, ServerBuilder, WebSocketStream};

use super::{FAR, Fake, GUILD, bot_of, user_json};

/// A session: it outlives its connection.
pub(super) struct Session {
    bot: u64,
    /// Which connection of how many.
    shard: (u64, u64),
    /// Everything it was told, in order; the sequence is the place in it, counted from 1.
    told: Vec<Value>,
    orders: Option<mpsc::UnboundedSender<Order>>,
    pub(super) dead: bool,
}

/// What a connection is to do.
#[derive(Clone)]
pub(super) enum Order {
    Send(Value),
    Cut,
    Reconnect,
    Invalidate,
    Close(u16),
}

pub(super) async fn serve(fake: Fake, listener: TcpListener) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        if fake.state().down {
            continue;
        }
        let fake = fake.clone();
        tokio::spawn(async move {
            if let Ok((_, stream)) = ServerBuilder::new().accept(stream).await {
                connection(&fake, stream).await;
            }
        });
    }
}

/// Tells every session of something, or those of one bot.
pub(super) fn dispatch(fake: &Fake, bot: Option<u64>, kind: &str, data: &Value) {
    let mut state = fake.state();
    let guild =
        data["guild_id"].as_str().or_else(|| kind.starts_with("GUILD_").then(|| data["id"].as_str())?);
    let guild: u64 = guild.map_or(0, |guild| guild.parse().unwrap());
    let hears = |session: &Session| {
        let (number, of) = session.shard;
        !session.dead && bot.is_none_or(|bot| session.bot == bot) && (guild >> 22) % of == number
    };
    for session in state.sessions.values_mut().filter(|session| hears(session)) {
        let event = json!({ "op": 0, "t": kind, "s": session.told.len() + 1, "d": data });
        session.told.push(event.clone());
        if let Some(orders) = &session.orders {
            let _ = orders.send(Order::Send(event));
        }
    }
}

pub(super) fn each(fake: &Fake, order: Order) {
    let state = fake.state();
    for orders in state.sessions.values().filter_map(|session| session.orders.as_ref()) {
        let _ = orders.send(order.clone());
    }
}

pub(super) fn one(fake: &Fake, number: u64, order: &Order) {
    let state = fake.state();
    let its = state.sessions.values().filter(|session| session.shard.0 == number);
    for orders in its.filter_map(|session| session.orders.as_ref()) {
        let _ = orders.send(order.clone());
    }
}

type Stream = WebSocketStream<TcpStream>;

async fn connection(fake: &Fake, mut stream: Stream) {
    let hello =
        json!({ "op": 10, "d": { "heartbeat_interval": HEARTBEAT.as_millis() }, "s": null, "t": null });
    if send(&mut stream, &hello).await.is_err() {
        return;
    }
    let (orders, mut inbox) = mpsc::unbounded_channel();
    let mut own: Option<String> = None;
    let mut heard = tokio::time::Instant::now();
    loop {
        let alive = if own.is_none() {
            tokio::select! {
                message = stream.next() => handle(fake, &mut stream, message, &orders, &mut own, &mut heard).await,
                () = tokio::time::sleep(PATIENCE) => false,
            }
        } else {
            tokio::select! {
                biased;
                Some(order) = inbox.recv() => obey(&mut stream, order).await,
                message = stream.next() => handle(fake, &mut stream, message, &orders, &mut own, &mut heard).await,
                // A client that does not beat is put out.
                () = tokio::time::sleep_until(heard + PATIENCE) => {
                    let _ = close(&mut stream, 4009).await;
                    false
                }
            }
        };
        if !alive {
            break;
        }
    }
    if let Some(own) = own
        && let Some(session) = fake.state().sessions.get_mut(&own)
        && session.orders.as_ref().is_some_and(|current| current.same_channel(&orders))
    {
        session.orders = None;
    }
}

/// Says whether the connection goes on.
async fn obey(stream: &mut Stream, order: Order) -> bool {
    match order {
        Order::Send(event) => send(stream, &event).await.is_ok(),
        Order::Cut => false,
        Order::Reconnect => send(stream, &json!({ "op": 7, "d": null, "s": null, "t": null })).await.is_ok(),
        Order::Invalidate => {
            send(stream, &json!({ "op": 9, "d": false, "s": null, "t": null })).await.is_ok()
        }
        Order::Close(code) => close(stream, code).await.is_ok() && drain(stream).await,
    }
}

async fn handle(
    fake: &Fake,
    stream: &mut Stream,
    message: Option<Result<Message, tokio_websockets::Error>>,
    orders: &mpsc::UnboundedSender<Order>,
    own: &mut Option<String>,
    heard: &mut tokio::time::Instant,
) -> bool {
    let Some(Ok(message)) = message else { return false };
    if let Some((code, _)) = message.as_close() {
        // 1000 and 1001 end the session; everything else leaves it to be resumed.
        if [1000, 1001].contains(&u16::from(code))
            && let Some(own) = own
            && let Some(session) = fake.state().sessions.get_mut(own)
        {
            session.dead = true;
        }
        // The answer to it goes out while somebody still reads.
        return drain(stream).await;
    }
    let Some(text) = message.as_text() else { return true };
    let told: Value = serde_json::from_str(text).unwrap();
    match told["op"].as_u64() {
        Some(1) => {
            *heard = tokio::time::Instant::now();
            fake.count("heartbeats");
            !fake.state().acks
                || send(stream, &json!({ "op": 11, "d": null, "s": null, "t": null })).await.is_ok()
        }
        Some(2) => identify(fake, stream, &told["d"], orders, own).await,
        Some(6) => resume(fake, stream, &told["d"], orders, own).await,
        // Presence and the like.
        Some(3 | 4 | 8) => true,
        _ => {
            let _ = close(stream, 4001).await;
            false
        }
    }
}

async fn identify(
    fake: &Fake,
    stream: &mut Stream,
    data: &Value,
    orders: &mpsc::UnboundedSender<Order>,
    own: &mut Option<String>,
) -> bool {
    fake.state().identifies += 1;
    let Some(bot) = bot_of(data["token"].as_str().unwrap()) else {
        return close(stream, 4004).await.is_ok() && drain(stream).await;
    };
    let intents = data["intents"].as_u64().unwrap();
    let wanted = 1 | (1 << 9) | (1 << 12) | (1 << 15);
    assert_eq!(intents & wanted, wanted, "guilds, messages, direct messages and their content");
    if !fake.state().intents_allowed {
        return close(stream, 4014).await.is_ok() && drain(stream).await;
    }
    let id = format!("session-{}", fake.id());
    let shard: (u64, u64) = serde_json::from_value(data["shard"].clone()).unwrap();
    let (in_guild, in_far, (_, least)) = {
        let mut state = fake.state();
        state.sessions_left = state.sessions_left.checked_sub(1).expect("no more sessions may be begun");
        (state.in_guild, state.in_far, state.shards)
    };
    if shard.1 < u64::from(least) {
        return close(stream, 4011).await.is_ok() && drain(stream).await;
    }
    let guilds = [(GUILD, in_guild), (FAR, in_far)].into_iter();
    let theirs: Vec<u64> =
        guilds.filter(|(id, is_in)| *is_in && (id >> 22) % shard.1 == shard.0).map(|(id, _)| id).collect();
    let guilds: Vec<Value> =
        theirs.iter().map(|id| json!({ "id": id.to_string(), "unavailable": true })).collect();
    let mut user = user_json(bot);
    user["mfa_enabled"] = json!(false);
    let ready = json!({
        "v": 10, "user": user, "guilds": guilds, "session_id": id, "shard": shard,
        "resume_gateway_url": format!("ws://{}", fake.gateway), "application": { "id": bot.to_string(), "flags": 1 << 19 },
        "private_channels": [], "session_type": "normal",
    });
    let mut events = vec![json!({ "op": 0, "t": "READY", "s": 1, "d": ready })];
    for guild in theirs {
        events.push(
            json!({ "op": 0, "t": "GUILD_CREATE", "s": events.len() + 1, "d": fake.guild_json(guild) }),
        );
    }
    {
        let mut state = fake.state();
        // From here on it hears everything; what it hears first is queued before that.
        let session = Session { bot, shard, told: events.clone(), orders: Some(orders.clone()), dead: false };
        for event in events {
            let _ = orders.send(Order::Send(event));
        }
        state.sessions.insert(id.clone(), session);
    }
    *own = Some(id);
    fake.changed.notify_waiters();
    true
}

async fn resume(
    fake: &Fake,
    stream: &mut Stream,
    data: &Value,
    orders: &mpsc::UnboundedSender<Order>,
    own: &mut Option<String>,
) -> bool {
    let id = data["session_id"].as_str().unwrap().to_owned();
    let seq = usize::try_from(data["seq"].as_u64().unwrap()).unwrap();
    let bot = bot_of(data["token"].as_str().unwrap());
    let replay = {
        let mut state = fake.state();
        let fits =
            |session: &&mut Session| !session.dead && seq <= session.told.len() && Some(session.bot) == bot;
        match state.sessions.get_mut(&id).filter(fits) {
            None => None,
            Some(session) => {
                for event in &session.told[seq..] {
                    let _ = orders.send(Order::Send(event.clone()));
                }
                let resumed = json!({ "op": 0, "t": "RESUMED", "s": session.told.len() + 1, "d": {} });
                session.told.push(resumed.clone());
                let _ = orders.send(Order::Send(resumed));
                session.orders = Some(orders.clone());
                Some(())
            }
        }
    };
    match replay {
        Some(()) => {
            fake.state().resumes += 1;
            *own = Some(id);
            fake.changed.notify_waiters();
            true
        }
        None => send(stream, &json!({ "op": 9, "d": false, "s": null, "t": null })).await.is_ok(),
    }
}

async fn send(stream: &mut Stream, value: &Value) -> Result<(), tokio_websockets::Error> {
    stream.send(Message::text(value.to_string())).await
}

async fn close(stream: &mut Stream, code: u16) -> Result<(), tokio_websockets::Error> {
    stream.send(Message::close(CloseCode::try_from(code).ok(), "")).await
}

/// Lets the other side hear of the close.
async fn drain(stream: &mut Stream) -> bool {
    let _ = tokio::time::timeout(Duration::from_secs(1), async {
        while let Some(Ok(_)) = stream.next().await {}
    })
    .await;
    false
}

/// Short, so that a test sees some.
const HEARTBEAT: Duration = Duration::from_millis(1500);
/// Long, so that a client on a slow machine is not put out.
const PATIENCE: Duration = Duration::from_secs(60);
