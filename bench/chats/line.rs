//! A bare HTTP/1.1 connection that is kept: one request after another, from whichever network it says.
//!
//! Less than any client library, so that what is measured is the server's.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use confidant_chat_protocol::{Body, RefusedSent};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// The secrets of a session, as they are sent.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) secret: String,
}

pub(crate) struct Line {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    /// How many requests were made: each network makes a few.
    asked: u32,
    number: u8,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn read<T: Body>(&self) -> Result<T> {
        if self.status == 200 {
            return T::read(&self.body).context("an answer cannot be read");
        }
        let name = RefusedSent::read(&self.body).map_or("?", |refused| refused.error.name());
        anyhow::bail!("refused: {} {name}", self.status)
    }
}

impl Line {
    /// A connection; `number` tells its networks from those of others.
    pub(crate) async fn open(address: SocketAddr, number: u8) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), address, asked: 0, number })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Reply> {
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.address);
        self.ask(head.into_bytes()).await
    }

    pub(crate) async fn post(
        &mut self,
        path: &str,
        session: Option<&Session>,
        body: &impl Body,
    ) -> Result<Reply> {
        let body = body.write()?;
        let shown = session.map_or_else(String::new, |Session { id, secret }| {
            format!("authorization: Confidant-Session {id}\r\nconfidant-session: {secret}\r\n")
        });
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nx-forwarded-for: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n{shown}\r\n",
            self.address,
            self.network(),
            body.len()
        );
        self.asked += 1;
        self.ask([head.into_bytes(), body].concat()).await
    }

    /// Forty requests from one, then from the next: no network is ever too fast.
    fn network(&self) -> String {
        let [_, high, middle, low] = (self.asked / 40).to_be_bytes();
        format!("fd00:{:x}:{high:x}{middle:02x}:{low:x}::1", self.number)
    }

    async fn ask(&mut self, request: Vec<u8>) -> Result<Reply> {
        self.stream.write_all(&request).await?;
        let status = self.text().await?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.context("no answer of HTTP")?;
        let (mut session, mut length, mut chunked) = (None, 0, false);
        loop {
            let header = self.text().await?;
            if header.is_empty() {
                break;
            }
            let (name, value) = header.split_once(':').context("no header")?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "confidant-session-id" => session = Some(value.to_owned()),
                "content-length" => length = value.parse()?,
                "transfer-encoding" => chunked = true,
                _ => {}
            }
        }
        let body = if chunked { self.chunks().await? } else { self.bytes(length).await? };
        Ok(Reply { status, session, body })
    }

    async fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.text().await?, 16)?;
            body.extend(self.bytes(length).await?);
            self.text().await?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    async fn bytes(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await?;
        Ok(bytes)
    }

    /// A line without its end.
    async fn text(&mut self) -> Result<String> {
        let mut line = String::new();
        anyhow::ensure!(self.stream.read_line(&mut line).await? > 0, "the server closed the connection");
        Ok(line.trim_end().to_owned())
    }
}
