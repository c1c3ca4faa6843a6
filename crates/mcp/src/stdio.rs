//! MCP on stdin and stdout, for a client that starts us.
//!
//! Between the client and the SDK stands a reader of lines: the SDK passes over what it cannot parse, and whoever asked waits
//! for ever. Halves of surrogate pairs are mended, and what is no JSON all the same is answered if its id can be told.

use std::sync::Arc;

use anyhow::anyhow;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::io::{
    self, AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
    BufReader, DuplexStream,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::access::Access;
use super::consent::Consent;
use super::{Server, unread};

/// Serves one client until its input ends. Stdout is the protocol's alone.
pub async fn serve(access: Access) -> anyhow::Result<()> {
    let memory = access.memory.clone();
    let served = converse(access).await;
    memory.close().await;
    served
}

async fn converse(access: Access) -> anyhow::Result<()> {
    let server = Server::new(access, Arc::new(Consent::new()?));
    let (input, output) = rmcp::transport::io::stdio_pipes();
    let (heard, said, telling) = between(input, output);
    let served = run(server, heard, said).await;
    // What was said last is told before we go.
    drop(telling.await);
    served
}

async fn run(server: Server, heard: DuplexStream, said: DuplexStream) -> anyhow::Result<()> {
    let running = match server.serve((heard, said)).await {
        Ok(running) => running,
        // A client that only looks whether we are there, or changes its mind, has done nothing wrong.
        Err(
            ServerInitializeError::ConnectionClosed(_)
            | ServerInitializeError::TransportError { .. }
            | ServerInitializeError::Cancelled,
        ) => return Ok(()),
        Err(_) => {
            // Without the SDK's own words, which may quote what the client sent.
            return Err(anyhow!(
                "the client's first message is not an MCP handshake; hint: start this from an MCP client, \
                 such as `claude mcp add confidant -- confidant mcp`"
            ));
        }
    };
    running.waiting().await.map_err(|_| anyhow!("serving failed; hint: start it again and report this"))?;
    Ok(())
}

/// What the SDK reads and writes in place of the client's own streams, and the task that ends when all it wrote is told.
fn between(
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> (DuplexStream, DuplexStream, JoinHandle<io::Result<()>>) {
    let (to_server, heard) = io::duplex(BUFFER);
    let (said, from_server) = io::duplex(BUFFER);
    let (tell, told) = mpsc::channel(1);
    tokio::spawn(hear(input, to_server, tell));
    (heard, said, tokio::spawn(say(from_server, told, output)))
}

/// Passes lines on, mended; answers those that nobody can read.
async fn hear(
    input: impl AsyncRead + Unpin,
    mut to_server: DuplexStream,
    tell: mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let mut line = Vec::new();
    while (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line).await? > 0 {
        if line.len() as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
            let end = rest_of_line(&mut input).await?;
            if let Some(refusal) = unread::too_long(&line, &end) {
                drop(tell.send(refusal).await);
            }
            line = Vec::new();
            continue;
        }
        if let Some(mended) = confidant_redact::with_whole_pairs(&line) {
            line = mended;
        }
        match unread::refusal(&line) {
            // Whoever does not listen is not told.
            Some(refusal) => drop(tell.send(refusal).await),
            None => to_server.write_all(&line).await?,
        }
        line.clear();
    }
    Ok(())
}

/// Passes over a line to its end, and keeps the last of it.
async fn rest_of_line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut end = Vec::new();
    loop {
        let before = end.len();
        input.take(BUFFER as u64).read_until(b'\n', &mut end).await?;
        if end.len() == before || end.ends_with(b"\n") {
            return Ok(end);
        }
        end.drain(..before);
    }
}

/// Writes whole lines, the server's and ours, until the server has no more.
async fn say(
    from_server: DuplexStream,
    mut told: mpsc::Receiver<Vec<u8>>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut lines = BufReader::with_capacity(BUFFER, from_server);
    let mut line = Vec::new();
    loop {
        tokio::select! {
            // What was read of a line stays in `line` when the other is quicker.
            read = lines.read_until(b'\n', &mut line) => {
                if read? == 0 && line.is_empty() {
                    return Ok(());
                }
                output.write_all(&line).await?;
                line.clear();
            }
            Some(refusal) = told.recv() => {
                output.write_all(&refusal).await?;
                output.write_all(b"\n").await?;
            }
        }
        output.flush().await?;
    }
}

const BUFFER: usize = 64 * 1024;
/// As the SDK has it; it passes over longer ones.
const LONGEST_LINE: u64 = 16 * 1024 * 1024;
