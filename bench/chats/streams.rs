//! Many answers at once: how long a word takes from the model to the device, and what each costs.
//!
//! Everybody has a socket, an account and a chat of their own. They ask, the model waits until all have, and then all answers come
//! together. Words that come within 40 ms go in one frame on purpose ([`docs/CHATS.md`](../../docs/CHATS.md)), so that much of the time is
//! waiting. Sockets here do no work of a device: they look at what comes, and throw it away.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use confidant_chat_format::{ChatId, Digest, MessageId, TurnId};
use confidant_chat_protocol::{
    Body as _, ChatMessageAdded, ClientEvent, ClientFrame, Keep, List, ServerEvent, ServerFrame, Text,
};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Serialize;
use tokio::net::TcpStream;
use tokio_websockets::{Message, WebSocketStream};

use crate::line::Line;
use crate::model::{Model, Pace, WORD};
use crate::server::{Server, Start};
use crate::times::{Times, own_cpu, rounded};
use crate::{people, sockets};

/// How many, and how fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    streams: usize,
    words: usize,
    pause: Duration,
}

impl Size {
    pub(crate) const SMALL: Self = Self { streams: 8, words: 10, pause: Duration::from_millis(20) };
    pub(crate) const WHOLE: Self = Self { streams: 200, words: 400, pause: Duration::from_millis(50) };
}

#[derive(Debug, Serialize)]
pub(crate) struct Streams {
    count: usize,
    words_each: usize,
    /// Of all streams together.
    words_a_second: f64,
    /// From the model's word to the device's frame.
    delay: Times,
    /// Until the first word of each answer.
    first: Times,
    frames: u64,
    words_a_frame: f64,
    /// Of the frames that have words, with the headers of the socket.
    bytes_a_frame: f64,
    bytes_a_word: f64,
    /// Bytes of the words themselves.
    word_bytes: usize,
    server_cpu_us_a_word: f64,
    server_cpu_us_a_frame: f64,
    /// Of one core, while all of them stream.
    server_cpu_percent: f64,
    client_cpu_percent: f64,
    resident_mb: f64,
}

pub(crate) async fn measure(binary: &Path, folder: &Path, size: Size) -> Result<Streams> {
    let Size { streams, words, pause } = size;
    let model = Arc::new(Model::start(Pace { streams, words, pause }).await?);
    let start = Start { binary, folder, postgres: None, also_at: None, model: Some(model.address) };
    let server = Server::start(&start)?;
    let (origin, mut line) = (server.origin()?, Line::open(server.address, 1).await?);
    let mut listening = Vec::new();
    for at in 0..streams {
        let code = (at == 0).then_some(server.code.as_str());
        let (mut person, session) =
            people::register(&mut line, &origin, &format!("person-{at}"), code).await?;
        let chat = ChatId::random();
        people::write(&mut line, &session, &mut person, &chat).await?;
        let socket = sockets::open(&server, &mut line, &session).await?;
        listening.push(tokio::spawn(listen(socket, question(chat, at), Arc::clone(&model), at)));
    }
    model.is_asked(streams).await?;
    let (own, theirs, began) = (own_cpu(), server.cpu()?, Instant::now());
    model.speak();
    let mut all = Heard::default();
    for one in listening {
        all.add(one.await??);
    }
    let (took, cpu) = (began.elapsed().as_secs_f64(), (server.cpu()? - theirs).as_secs_f64());
    let own = (own_cpu() - own).as_secs_f64();
    let resident = server.resident()?;
    server.stop()?;
    let said = (streams * words) as f64;
    anyhow::ensure!(all.delays.len() == streams * words, "words are missing");
    let frames = all.frames.max(1) as f64;
    Ok(Streams {
        count: streams,
        words_each: words,
        words_a_second: rounded(said / took),
        delay: Times::of(all.delays),
        first: Times::of(all.first),
        frames: all.frames,
        words_a_frame: rounded(said / frames),
        bytes_a_frame: rounded(all.bytes as f64 / frames),
        bytes_a_word: rounded(all.bytes as f64 / said),
        word_bytes: WORD.len(),
        server_cpu_us_a_word: rounded(cpu * 1e6 / said),
        server_cpu_us_a_frame: rounded(cpu * 1e6 / frames),
        server_cpu_percent: rounded(cpu / took * 100.0),
        client_cpu_percent: rounded(own / took * 100.0),
        resident_mb: rounded(resident as f64 / 1e6),
    })
}

/// The first question of a chat. What the digests are of is between devices.
fn question(chat: ChatId, number: usize) -> ChatMessageAdded {
    ChatMessageAdded {
        chat,
        turn: TurnId::random(),
        message: MessageId::random(),
        reply: MessageId::random(),
        text: Text::cut(&format!("stream {number}")),
        count: 0,
        before: Digest::of(b"before"),
        after: Digest::of(&number.to_be_bytes()),
        keep: Keep::Cache,
        history: false,
        titled: true,
        focus: None,
        off: List::default(),
        available: List::default(),
        given: List::default(),
        asks: List::default(),
        remembers: None,
    }
}

/// What came.
#[derive(Default)]
struct Heard {
    delays: Vec<Duration>,
    first: Vec<Duration>,
    frames: u64,
    bytes: u64,
}

impl Heard {
    fn add(&mut self, other: Self) {
        self.delays.extend(other.delays);
        self.first.extend(other.first);
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

/// Asks, and looks at the answer until its end.
async fn listen(
    mut socket: WebSocketStream<TcpStream>,
    question: ChatMessageAdded,
    model: Arc<Model>,
    number: usize,
) -> Result<Heard> {
    let frame = ClientFrame { id: 2, event: ClientEvent::ChatMessageAdded(question) }.write()?;
    socket.send(Message::text(frame)).await?;
    let (mut heard, mut words) = (Heard::default(), 0);
    loop {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.context("nothing comes")?;
        let message = message.context("the socket was closed")??;
        if !message.is_text() {
            continue;
        }
        let payload = message.as_payload();
        match ServerFrame::read(payload)?.event {
            ServerEvent::AiMessageUpdate(update) => {
                heard.frames += 1;
                // Two bytes of header, or four.
                heard.bytes += payload.len() as u64 + if payload.len() < 126 { 2 } else { 4 };
                let until = (usize::try_from(update.at)? + update.text.as_str().len()) / WORD.len();
                for word in words..until {
                    let delay = model.since(number, word).context("it was heard before it was said")?;
                    heard.delays.push(delay);
                    if word == 0 {
                        heard.first.push(delay);
                    }
                }
                words = words.max(until);
            }
            ServerEvent::AiTypingEnded(_) => return Ok(heard),
            ServerEvent::AiTaskFailed(failed) => anyhow::bail!("no answer: {}", failed.what.as_str()),
            ServerEvent::Refused(refused) => anyhow::bail!("refused: {}", refused.what.as_str()),
            _ => {}
        }
    }
}

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
