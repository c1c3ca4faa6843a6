//! A model in this process, so that one clock has both ends of a word: when the model said it, and when a device heard it.
//!
//! ```text
//! confidant serve ── POST …/chat/completions, "stream 17" ──▶ waits for the gate ─▶ "word " "word " …, a pause between them
//!                                                                                     └── said[17][0], said[17][1], …
//! ```
//!
//! Every word has the same length, so where a piece stands in the answer tells which words are in it. Easy to get wrong: all streams
//! at the same moment. Each begins a little later than the one before it, as those of people do.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How it speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Streams that it keeps times of.
    pub(crate) streams: usize,
    /// Words of an answer.
    pub(crate) words: usize,
    /// Between two words of one answer.
    pub(crate) pause: Duration,
}

/// A model that listens.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pace: Pace,
    began: Instant,
    /// When each word of each stream was said, in nanoseconds since `began`.
    said: Vec<Vec<AtomicU64>>,
    /// How many requests have come.
    asked: watch::Sender<usize>,
    /// Whether it may speak.
    gate: watch::Sender<bool>,
}

/// What it says, again and again.
pub(crate) const WORD: &str = "word ";

impl Model {
    /// Starts it; it says nothing yet.
    pub(crate) async fn start(pace: Pace) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let said = || (0..pace.words).map(|_| AtomicU64::default()).collect();
        let shared = Arc::new(Shared {
            pace,
            began: Instant::now(),
            said: (0..pace.streams).map(|_| said()).collect(),
            asked: watch::Sender::default(),
            gate: watch::Sender::default(),
        });
        let address = listener.local_addr()?;
        let heard = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&heard);
                // Whoever hangs up was not interested.
                tokio::spawn(async move { drop(answer(stream, &shared).await) });
            }
        });
        Ok(Self { address, shared })
    }

    /// Waits until so many requests have come.
    pub(crate) async fn is_asked(&self, times: usize) -> Result<()> {
        let mut asked = self.shared.asked.subscribe();
        let all = tokio::time::timeout(PATIENCE, asked.wait_for(|asked| *asked >= times)).await;
        all.context("the model was not asked")??;
        Ok(())
    }

    /// Lets it speak.
    pub(crate) fn speak(&self) {
        self.shared.gate.send_replace(true);
    }

    /// How long ago a word of a stream was said.
    pub(crate) fn since(&self, stream: usize, word: usize) -> Option<Duration> {
        let at = self.shared.said.get(stream)?.get(word)?.load(Ordering::Acquire);
        let at = (at > 0).then(|| Duration::from_nanos(at))?;
        self.shared.began.elapsed().checked_sub(at)
    }
}

async fn answer(stream: TcpStream, shared: &Shared) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        anyhow::ensure!(stream.read_line(&mut line).await? > 0, "it was cut off");
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let number = number_of(&body)?;
    shared.asked.send_modify(|asked| *asked += 1);
    let mut gate = shared.gate.subscribe();
    gate.wait_for(|open| *open).await?;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let Pace { streams, words, pause } = shared.pace;
    let first = pause.mul_f64(number as f64 / streams.max(1) as f64);
    let mut due = tokio::time::Instant::now() + first;
    for word in 0..words {
        tokio::time::sleep_until(due).await;
        due += pause;
        if let Some(at) = shared.said.get(number).and_then(|said| said.get(word)) {
            let now = u64::try_from(shared.began.elapsed().as_nanos())?;
            at.store(now.max(1), Ordering::Release);
        }
        stream.write_all(event(&format!(r#"{{"content":"{WORD}"}}"#), "null").as_bytes()).await?;
    }
    stream.write_all(event("{}", r#""stop""#).as_bytes()).await?;
    stream.write_all(b"data: [DONE]\n\n").await?;
    Ok(stream.shutdown().await?)
}

/// A piece, as such servers send it.
fn event(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":\"bench\",\"choices\":[{{\"index\":0,\
         \"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

/// The number at the end of the question.
fn number_of(body: &[u8]) -> Result<usize> {
    let body: serde_json::Value = serde_json::from_slice(body)?;
    let messages = body["messages"].as_array().context("no messages")?;
    let asked = messages.iter().rfind(|message| message["role"] == "user").context("no question")?;
    let words = asked["content"].as_str().context("no words")?;
    let number = words.rsplit(' ').next().context("no number")?;
    number.trim().parse().context("no number")
}

/// How long requests are waited for.
const PATIENCE: Duration = Duration::from_secs(120);
