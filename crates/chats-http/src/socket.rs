//! An open socket: frames in, answers and news out, until one side ends it.
//!
//! ```text
//!            ┌─ a frame ────▶ Socket::receive ─▶ answers ─┐
//!  whichever ├─ news, or a part of a long answer ─────────┼─▶ sent, within the patience; else cut off
//!  is first  ├─ quiet for a while ─▶ ping ────────────────┘
//!            └─ the server stops, or the socket has to close ─▶ close frame, a moment, gone
//! ```
//!
//! Easy to get wrong: memory. A socket that nobody speaks on takes about 12 KB (`bench/chats.sh`), of which 8 are the
//! reader's buffer: what is done now and then is boxed and goes when it is done, and so does the buffer of a large frame. One
//! that is read slowly has one frame under way; the next is made when that is gone, and news that do not fit in the hub's queue
//! end it.

use std::future::poll_fn;
use std::time::Duration;

use confidant_chat_protocol::limits::MAX_FRAME;
use confidant_chat_protocol::{Body as _, CloseCode, ServerFrame};
use confidant_chats::service::{Closing, Socket};
use confidant_listener::Kept;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_websockets::{Error, Limits, Message, Payload, ServerBuilder, WebSocketStream};

use crate::counted::Counted;
use crate::packed::Form;
use crate::settings::Patience;

/// The largest first frame, in bytes: nobody knows yet who sends it.
pub(crate) const HELLO: usize = 4096;

/// Carries a socket until it ends.
pub(crate) fn run<T>(
    io: T,
    mut socket: Socket,
    mut kept: Kept,
    (patience, form): (Patience, Form),
) -> impl Future<Output = ()> + Send
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut line = Line::new(io, patience, form);
    async move {
        let end = loop {
            let due = line.due();
            let next = tokio::select! {
                () = kept.stopping() => Next::Stop,
                message = line.next() => Next::Message(message),
                news = socket.news() => Next::News(news.map(Box::new)),
                () = sleep_until(due) => Next::Quiet,
            };
            if let Err(end) = Box::pin(line.act(&mut socket, next)).await {
                break end;
            }
        };
        // Its seat is free while the last words are on their way.
        drop(socket);
        Box::pin(line.finish(end)).await;
    }
}

/// What comes first.
enum Next {
    Stop,
    Message(Option<Result<Message, Error>>),
    News(Result<Box<ServerFrame>, Closing>),
    Quiet,
}

/// How a socket ends.
enum End {
    /// By us, with a code.
    Close(Closing),
    /// The close frame is queued already.
    Queued,
    /// Nothing more can be said.
    Gone,
}

/// The bytes' side of a socket.
struct Line<T> {
    stream: WebSocketStream<Counted<T>>,
    /// What was read last, until the next read: it keeps the reader from reusing the buffer of a large frame for good.
    held: Option<Payload>,
    patience: Patience,
    form: Form,
    /// When something whole came last.
    heard: Instant,
    pinged: Instant,
    /// Pings of the other side, counted from when.
    pings: (u32, Instant),
    is_open: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Line<T> {
    fn new(io: T, patience: Patience, form: Form) -> Self {
        let limits = Limits::default().max_payload_len(Some(HELLO));
        let now = Instant::now();
        Self {
            stream: ServerBuilder::new().limits(limits).serve(Counted::new(io)),
            held: None,
            patience,
            form,
            heard: now,
            pinged: now,
            pings: (0, now),
            is_open: false,
        }
    }

    /// When it has been quiet for so long that it is pinged.
    fn due(&self) -> Instant {
        self.pinged.max(self.heard) + self.patience.ping
    }

    /// The next message. May be dropped at any time.
    async fn next(&mut self) -> Option<Result<Message, Error>> {
        poll_fn(|context| {
            let next = self.stream.poll_next_unpin(context);
            self.held = None;
            next
        })
        .await
    }

    /// Does what is next.
    async fn act(&mut self, socket: &mut Socket, next: Next) -> Result<(), End> {
        match next {
            Next::Stop => Err(End::Close(Closing { code: CloseCode::Stopping, last: None })),
            Next::Message(message) => self.take(socket, message).await,
            Next::News(Ok(frame)) => self.send(&frame).await,
            Next::News(Err(closing)) => Err(End::Close(closing)),
            Next::Quiet => self.ping().await,
        }
    }

    /// Hands a message to the service and sends what it answers.
    async fn take(
        &mut self,
        socket: &mut Socket,
        message: Option<Result<Message, Error>>,
    ) -> Result<(), End> {
        let message = match message {
            Some(Ok(message)) => message,
            Some(Err(Error::PayloadTooLong { .. })) => {
                return Err(End::Close(Closing { code: CloseCode::TooLarge, last: None }));
            }
            Some(Err(Error::Io(_))) | None => return Err(End::Gone),
            Some(Err(_)) => return Err(End::Queued),
        };
        self.heard = Instant::now();
        if message.is_close() {
            return Err(End::Queued);
        }
        if message.is_ping() {
            return self.pong().await;
        }
        if message.is_pong() {
            return Ok(());
        }
        let is_text = message.is_text();
        let payload = message.into_payload();
        // Frames are text: anything else is one that cannot be read.
        let frame: &[u8] = if is_text { &payload } else { &[] };
        let answers = socket.receive(frame).await.map_err(End::Close)?;
        self.held = Some(payload);
        if !self.is_open {
            *self.stream.limits_mut() = Limits::default().max_payload_len(Some(MAX_FRAME));
            self.is_open = true;
        }
        for frame in &answers {
            self.send(frame).await?;
        }
        Ok(())
    }

    async fn send(&mut self, frame: &ServerFrame) -> Result<(), End> {
        let Ok(json) = frame.write() else {
            tracing::error!("chats: a frame cannot be written");
            return Err(End::Close(Closing { code: CloseCode::Stopping, last: None }));
        };
        let message = self.form.message(json).await;
        self.push(message).await
    }

    /// The stream has queued the answer to a ping. It goes before anything else is read, so that there is never more than one.
    async fn pong(&mut self) -> Result<(), End> {
        if self.heard.duration_since(self.pings.1) >= self.patience.ping {
            self.pings = (0, self.heard);
        }
        self.pings.0 += 1;
        if self.pings.0 > PINGS {
            return Err(End::Close(Closing { code: CloseCode::Rate, last: None }));
        }
        self.flush().await
    }

    async fn ping(&mut self) -> Result<(), End> {
        let now = Instant::now();
        if now.duration_since(self.heard) >= self.patience.idle {
            tracing::debug!("chats: a socket was silent and is cut off");
            return Err(End::Gone);
        }
        self.pinged = now;
        self.push(Message::ping(&b""[..])).await
    }

    async fn push(&mut self, message: Message) -> Result<(), End> {
        self.stream.feed(message).await.map_err(|_| End::Gone)?;
        self.flush().await
    }

    /// Sends what is queued. However large it is, some of it has to be taken all the time.
    async fn flush(&mut self) -> Result<(), End> {
        loop {
            let before = self.stream.get_ref().written;
            match timeout(self.patience.send, self.stream.flush()).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(_)) => return Err(End::Gone),
                Err(_) if self.stream.get_ref().written == before => {
                    tracing::debug!("chats: a socket was not read and is cut off");
                    return Err(End::Gone);
                }
                Err(_) => {}
            }
        }
    }

    /// The last words; then what still comes is thrown away for a moment, so that they arrive.
    async fn finish(&mut self, end: End) {
        match end {
            End::Gone => return,
            End::Queued => {}
            End::Close(Closing { code, last }) => {
                if let Some(last) = last
                    && self.send(&last).await.is_err()
                {
                    return;
                }
                if let Ok(code) = code.code().try_into() {
                    // Refused if the stream has queued one of its own.
                    drop(self.stream.feed(Message::close(Some(code), "")).await);
                }
            }
        }
        if self.flush().await.is_err() {
            return;
        }
        let io = self.stream.get_mut();
        let drain = async {
            io.shutdown().await?;
            let mut some = vec![0; 1024];
            while io.read(&mut some).await? > 0 {}
            std::io::Result::Ok(())
        };
        let _late = timeout(LINGER, drain).await;
    }
}

/// Pings of the other side, within the time after which we ping.
const PINGS: u32 = 100;
/// How long the other side has to close as well.
const LINGER: Duration = Duration::from_secs(1);
