//! Sockets that nobody speaks on: what each takes of the server's memory, and what all of them take of its CPU.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use confidant_chat_protocol::{Body as _, ClientEvent, ClientFrame, Hello, ServerEvent, ServerFrame};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Serialize;
use tokio::net::TcpStream;
use tokio_websockets::{ClientBuilder, Message, WebSocketStream};

use crate::line::{Line, Session};
use crate::people;
use crate::server::{Server, Start};
use crate::times::{Times, millis, rounded};

#[derive(Debug, Serialize)]
pub(crate) struct Sockets {
    count: usize,
    /// Of the server's process; what the kernel has for a connection is not in it.
    bytes_each: u64,
    resident_before_mb: f64,
    resident_mb: f64,
    open_ms_each: f64,
    /// Of one core, while nobody speaks; pings are in it.
    idle_cpu_percent: f64,
    /// A small request beside them.
    healthz: Times,
}

/// Accounts may have a few more at once.
const PER_ACCOUNT: usize = 50;

pub(crate) async fn measure(binary: &Path, folder: &Path, count: usize) -> Result<Sockets> {
    let server = Server::start(&Start { binary, folder, postgres: None, also_at: None, model: None })?;
    let (origin, mut line) = (server.origin()?, Line::open(server.address, 1).await?);
    let mut sessions = Vec::new();
    for at in 0..count.div_ceil(PER_ACCOUNT) {
        let code = (at == 0).then_some(server.code.as_str());
        sessions.push(people::register(&mut line, &origin, &format!("person-{at}"), code).await?.1);
    }
    // What is made once, for the server or for an account, is made before it is measured.
    let mut open = Vec::new();
    for session in &sessions {
        open.push(socket(&server, &mut line, session).await?);
    }
    let (made, before, began) = (open.len(), server.resident()?, Instant::now());
    for at in made..count {
        open.push(socket(&server, &mut line, &sessions[at % sessions.len()]).await?);
    }
    let (added, took) = ((count - made).max(1), began.elapsed());
    let resident = server.resident()?;
    let (cpu, idle) = (server.cpu()?, Instant::now());
    tokio::time::sleep(if count < 1000 { Duration::from_millis(500) } else { IDLE }).await;
    let idle_cpu = (server.cpu()? - cpu).as_secs_f64() / idle.elapsed().as_secs_f64();
    // The first connection has been idle for longer than a server waits.
    let mut line = Line::open(server.address, 2).await?;
    let healthz = healthz(&mut line, if count < 1000 { 20 } else { 2000 }).await?;
    drop(open);
    server.stop()?;
    Ok(Sockets {
        count,
        bytes_each: resident.saturating_sub(before) / added as u64,
        resident_before_mb: rounded(before as f64 / 1e6),
        resident_mb: rounded(resident as f64 / 1e6),
        open_ms_each: rounded(millis(took) / added as f64),
        idle_cpu_percent: rounded(idle_cpu * 100.0),
        healthz,
    })
}

/// Longer than it takes until the server pings each of them.
const IDLE: Duration = Duration::from_secs(40);

async fn healthz(line: &mut Line, count: usize) -> Result<Times> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        anyhow::ensure!(line.get("/healthz").await?.status == 200, "the server is not well");
        times.push(began.elapsed());
    }
    Ok(Times::of(times))
}

/// A socket that nobody reads. Its own side keeps nothing but the connection.
async fn socket(server: &Server, line: &mut Line, session: &Session) -> Result<TcpStream> {
    Ok(open(server, line, session).await?.into_inner())
}

/// A socket that has said who it is.
pub(crate) async fn open(
    server: &Server,
    line: &mut Line,
    session: &Session,
) -> Result<WebSocketStream<TcpStream>> {
    let stream = TcpStream::connect(server.address).await?;
    let uri = format!("ws://{}/ws", server.address).parse()?;
    let (mut socket, _) = ClientBuilder::from_uri(uri).connect_on(stream).await?;
    let hello = Hello { v: 1, ticket: people::ticket(line, session).await?, seq: None };
    let frame = ClientFrame { id: 1, event: ClientEvent::Hello(hello) }.write()?;
    socket.send(Message::text(frame)).await?;
    let ready = socket.next().await.context("the socket was closed")??;
    let ready = ServerFrame::read(ready.as_payload())?;
    anyhow::ensure!(matches!(ready.event, ServerEvent::Ready(_)), "the socket was refused");
    Ok(socket)
}
