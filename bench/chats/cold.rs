//! A question in a chat that the server has nothing of: the device sends all of it again, and the answer begins after that.
//!
//! The device is the real client, with its files in memory, and the model answers at once: what is left is the sending, the proving and the keeping. Half
//! of the messages are answers, each with the server's proof. The question after it needs none of that.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use confidant_chat_format::{ChatId, Login, RecoveryCode};
use confidant_client::{
    AskOptions, Credential, Device, Error, Http, News, Registration, TurnEvent, TurnUpdate,
};
use serde::Serialize;

use crate::model::{Model, Pace};
use crate::server::{Server, Start};
use crate::sync::{BODY, Memory, setup};
use crate::times::{Times, millis, own_cpu, rounded};

/// How much is sent again, and how often that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    messages: usize,
    rounds: usize,
}

impl Size {
    pub(crate) const SMALL: Self = Self { messages: 6, rounds: 1 };
    pub(crate) const WHOLE: Self = Self { messages: 100, rounds: 8 };
}

#[derive(Debug, Serialize)]
pub(crate) struct Cold {
    messages: usize,
    body_bytes: usize,
    /// From the question to the first word, the history included.
    cold: Times,
    /// The same when the server has it.
    warm: Times,
    server_cpu_ms: f64,
    client_cpu_ms: f64,
    warm_server_cpu_ms: f64,
    warm_client_cpu_ms: f64,
}

pub(crate) async fn measure(binary: &Path, folder: &Path, size: Size) -> Result<Cold> {
    let model = Model::start(Pace { streams: 0, words: 8, pause: Duration::ZERO }).await?;
    model.speak();
    let start = Start { binary, folder, postgres: None, also_at: None, model: Some(model.address) };
    let server = Server::start(&start)?;
    let who = Registration {
        login: Login::parse("ana").ok().context("no login")?,
        credentials: vec![Credential::Recovery(RecoveryCode::random())],
        code: Some(server.code.clone()),
    };
    let way = Arc::new(Http::new(server.origin()?)?);
    let mut device = Device::register(setup(way, Arc::new(Memory::default())), who).await?;
    // What a server makes once, at its first turn, is made before it is measured.
    let chat = device.new_chat(Some("First"))?;
    ask(&mut device, &chat, "first").await?;
    let (mut times, mut cpu): ([Vec<Duration>; 2], [[Duration; 2]; 2]) = Default::default();
    for round in 0..size.rounds {
        let chat = device.new_chat(Some(&format!("Chat {round}")))?;
        for _ in 0..size.messages / 2 {
            ask(&mut device, &chat, BODY).await?;
        }
        // The server keeps the newest chats of an account only.
        for _ in 0..KEPT {
            let other = device.new_chat(None)?;
            ask(&mut device, &other, "aside").await?;
        }
        for (at, sent) in [(0, size.messages), (1, 0)] {
            let (own, theirs) = (own_cpu(), server.cpu()?);
            let (took, resent) = ask(&mut device, &chat, "and now?").await?;
            anyhow::ensure!(resent == sent, "{resent} messages were sent again, not {sent}");
            times[at].push(took);
            cpu[at][0] += own_cpu() - own;
            cpu[at][1] += server.cpu()? - theirs;
        }
    }
    server.stop()?;
    let each = |cpu: Duration| rounded(millis(cpu) / size.rounds.max(1) as f64);
    let [cold, warm] = times.map(Times::of);
    Ok(Cold {
        messages: size.messages,
        body_bytes: BODY.len(),
        cold,
        warm,
        client_cpu_ms: each(cpu[0][0]),
        server_cpu_ms: each(cpu[0][1]),
        warm_client_cpu_ms: each(cpu[1][0]),
        warm_server_cpu_ms: each(cpu[1][1]),
    })
}

/// Asks, waits for the answer and stores it: how long the first word took, and how many messages were sent again.
async fn ask(device: &mut Device, chat: &ChatId, words: &str) -> Result<(Duration, usize)> {
    let began = Instant::now();
    // Our model wants a number at the end.
    let asked = device.ask(chat, &format!("{words} 0"), &AskOptions::default())?;
    written(device).await?;
    let (mut first, mut resent) = (None, 0);
    loop {
        let news = tokio::time::timeout(PATIENCE, device.listen()).await.context("no answer comes")??;
        let News::Turn(TurnEvent { turn, what, .. }) = news else { continue };
        if turn != asked.turn {
            continue;
        }
        match what {
            TurnUpdate::History(count) => resent = count,
            TurnUpdate::Words { .. } => first = first.or_else(|| Some(began.elapsed())),
            TurnUpdate::Ended(_) => break,
            TurnUpdate::Failed(error) => anyhow::bail!("no answer: {}", error.name()),
            _ => {}
        }
    }
    written(device).await?;
    // A server hears so much from one socket and no more.
    tokio::time::sleep(BETWEEN).await;
    Ok((first.context("the answer has no words")?, resent))
}

/// Stores what waits, as fast as a socket may be.
async fn written(device: &mut Device) -> Result<()> {
    let began = Instant::now();
    while let Err(error) = device.flush().await {
        let may_wait = matches!(error, Error::Offline | Error::Denied { retry_ms: Some(_), .. });
        anyhow::ensure!(may_wait && began.elapsed() < PATIENCE, "it cannot be written: {error}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

/// How many chats of an account a server keeps for the next answer (`web.ai_cache_chats`).
const KEPT: usize = 3;

/// Between two questions.
const BETWEEN: Duration = Duration::from_millis(150);

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
